"""kiln plugin check finds each way to break the contract of components, whatever the plugin does to its process; train
refuses or contains it."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import json
import os
import re
import subprocess
import unittest

from kilntest import BUILD, ROOT, SHORT, TINY, Case, build_plugin, read

HOOKS = re.findall(r"X\((\w+)\)", (pathlib.Path(ROOT) / "tests/plugins/broken.c").read_text())


def is_sanitized():
    return b"__asan_init" in pathlib.Path(BUILD, "kiln").read_bytes()


class Broken(Case):
    def check(self, plugin, *args, status=1):
        """The findings that did not pass, by check."""
        out, _ = self.run_kiln("plugin", "check", plugin, "--json", *args, program="kiln", status=status)
        report = json.loads(out)
        self.assertEqual(report["target"], plugin)
        self.assertEqual(report["failed"] > 0, status == 1)
        return {found["check"]: found["text"] for found in report["findings"] if found["result"] == "failed"}

    def finds(self, check, *says, flags, args=(), only=True):
        plugin = build_plugin("broken", self.dir, *flags)
        found = self.check(plugin, *args)
        self.assertIn(check, found)
        if only:
            self.assertEqual(list(found), [check], found)
        for text in says:
            self.assertIn(text, found[check])
        return plugin

    def train(self, plugin, *says, succeeds=False, callback=True):
        tiny = [word for word in TINY if callback or not word.startswith("model")]
        process = self.start("--plugin", plugin, *tiny, "+callbacks.b=broken" if callback else "model=broken", "-q")
        _, err = process.communicate(timeout=120)
        self.assertEqual(process.returncode == 0, succeeds, err)
        for text in says:
            self.assertIn(text, err)


class Refused(Broken):
    """Plugins that are refused before any of their functions is called."""

    def refused_both(self, path, *says):
        self.assertEqual(list(found := self.check(path)), ["loading"])
        _, err = self.run_kiln("--plugin", path, *TINY, status=1)
        for text in says + (os.path.basename(path),):
            self.assertIn(text, found["loading"])
            self.assertIn(text, err)

    def variant(self, flag, *says):
        self.refused_both(build_plugin("variants", self.dir, flag), *says)

    def test_wrong_abi(self):
        self.variant("-DINFO_ABI=6", "built for ABI 6, this program has 7: rebuild the plugin")

    def test_abi_of_the_future(self):
        self.variant("-DINFO_ABI=8", "built for ABI 8, this program has 7")
        self.variant("-DINFO_COMPONENT=4096", "which is newer than this program")

    def test_no_elf(self):
        self.refused_both(self.write("text.so", "no shared object\n"), "not a shared object")

    def test_missing_symbol(self):
        self.variant("-DNO_SYMBOL", "no kiln_plugin_v1 symbol")
        self.variant("-DUNDEFINED", "undefined symbol: kiln_no_such_function")

    def test_options(self):
        self.variant("-DBAD_DEFAULT", "option size: its default many: expected an integer")
        self.variant("-DFIELDS_END", "the options table has no end")

    def test_duplicate_option(self):
        self.refused_both(build_plugin("broken", self.dir, "-DDUPLICATE_OPTION"), "callback/broken",
                          "option rate: two options have this name")

    def test_name_of_a_built_in(self):
        self.refused_both(build_plugin("broken", self.dir, '-DNAME="ema"'), "callback/ema is registered already")

    def test_crash_while_loading(self):
        plugin = build_plugin("crashes", self.dir, "-DIN_CONSTRUCTOR")
        self.assertIn("while the plugin " + plugin + " was loaded", self.check(plugin)["loading"])


class Contained(Broken):
    """Functions that take the process with them."""

    def test_crash(self):
        says = ["crashed with SIGSEGV", "of callback/broken", "of the plugin " + self.path("broken.so")]
        self.finds("building", "in init", *says, flags=["-DCRASH", '-DHOOK="init"'])
        self.finds("training", "in on_train_start", *says, flags=["-DCRASH"])

    def test_exit(self):
        says = ["exit() was called in", "of callback/broken", "of the plugin " + self.path("broken.so")]
        plugin = self.finds("building", *says, flags=["-DEXIT", '-DHOOK="init"'])
        self.train(plugin, "exit() was called in init of callback/broken (callbacks.b), of the plugin " + plugin)
        plugin = self.finds("training", *says, flags=["-DEXIT"])
        self.train(plugin, "exit() was called in on_train_start of callback/broken (callbacks.b)")
        self.finds("training", "exit status 0 in on_train_start of callback/broken", flags=["-DEXIT_NOW"])

    def test_hang(self):
        self.finds("training", "still in on_train_start of callback/broken after 3 seconds", flags=["-DHANG"],
                   args=["--timeout", "3"])

    def test_error_in_every_hook(self):
        self.assertEqual(len(HOOKS), 24)
        for hook in HOOKS[::8] if SHORT else HOOKS:
            with self.subTest(hook):
                whose = "broken on purpose (of the plugin " + self.path("broken.so") + ")"
                plugin = self.finds("training", whose, hook, flags=["-DFAIL", f'-DHOOK="{hook}"'])
                self.train(plugin, "callbacks.b: " + whose)
        self.finds("building", "broken on purpose", flags=["-DFAIL", '-DHOOK="init"'])

    def test_the_kit_goes_on(self):
        """What does not need the broken part is checked nevertheless."""
        plugin = build_plugin("broken", self.dir, "-DCRASH")
        out, _ = self.run_kiln("plugin", "check", plugin, program="kiln", status=1)
        for row in "passed   options", "passed   building", "failed   training":
            self.assertIn(row, out)
        self.assertRegex(out, rf"1 component, [4-9] passed, {int(is_sanitized())} skipped, 1 failed")


class BrokenOperation(Broken):
    """The operation of a component, and its state, with one line of the manual's component changed."""

    def finds_in_operation(self, old, new, *says, check="training"):
        code = self.path("mine/mine.c")
        if not os.path.exists(code):
            self.run_kiln("plugin", "new", "operation", "mine", program="kiln")
            self.original = read(code, "r")
        self.assertIn(old, self.original)
        self.write("mine/mine.c", self.original.replace(old, new))
        subprocess.run(["make", "-s", "-B", "-C", self.path("mine"), f"KILN=-I{ROOT}/src"], check=True, capture_output=True)
        found = self.check(self.path("mine/mine.so"))
        for text in says:
            self.assertIn(text, found[check])

    def test_operation(self):
        self.finds_in_operation("y[i] = ", "y[i + 1000000000] = ", "crashed with SIGSEGV", "in the kernel of the operation mine")
        self.finds_in_operation("kiln_mul(at->dy[0], kiln_square(root))", "kiln_sum(at->dy[0])",
                                "gradient of mine: dx[0] is [], but the input is [8, 64]")
        if not is_sanitized():  # UBSan ends the process before it crashes
            self.finds_in_operation(".state_size = sizeof(State),", "", "crashed with SIGSEGV", "in setup of model/mine",
                                    "it declares no state_size")
        self.finds_in_operation("KILN_PLUGIN_DEFINE(list)", "", "its file ends with KILN_PLUGIN_DEFINE", check="loading")


class Found(Broken):
    """What goes wrong without an error."""

    def test_good(self):
        plugin = build_plugin("broken", self.dir)
        self.assertEqual(self.check(plugin, status=0), {})
        self.train(plugin, succeeds=True)

    def test_wrong_shape(self):
        says = "task.model (model/broken) returns f32 [", "as logits, but f32 ["
        plugin = self.finds("training", *says, flags=["-DWRONG_SHAPE"])
        self.train(plugin, *says, callback=False)

    def test_wrong_gradient(self):
        self.finds("gradients", "its gradient says", flags=["-DWRONG_GRADIENT"])

    def test_leak(self):
        self.needs_glibc_malloc()
        self.finds("memory", "bytes more after each time", flags=["-DLEAK", '-DHOOK="init"'], only=False)
        self.finds("memory of runs", "bytes more after each run", flags=["-DLEAK"])

    def test_write_out_of_bounds(self):
        self.needs_glibc_malloc()
        says = "wrote beyond a block of memory", "callback/broken"
        self.finds("building", *says, flags=["-DBEYOND", '-DHOOK="init"'])
        self.finds("training", *says, flags=["-DBEYOND"])

    def test_state_that_is_not_saved(self):
        self.finds("resuming", "metrics.csv", flags=["-DFORGETS", '-DHOOK="on_train_batch_end"'], only=False)

    def test_other_bytes_each_time(self):
        self.finds("same bytes", "metrics", flags=["-DUNEQUAL", '-DHOOK="on_train_batch_end"'], only=False)

    def needs_glibc_malloc(self):
        """AddressSanitizer has an allocator of its own, and reports in its own words."""
        if is_sanitized():
            self.skipTest("built with AddressSanitizer")


class Manual(Broken):
    """Components of the manual, with mistakes."""

    def changed(self, page, name, *changes):
        return self.check(self.build(page, name, *changes))

    def build(self, page, name, *changes):
        """The component of the manual, with texts of it replaced."""
        text = (pathlib.Path(ROOT) / "docs/components" / page).read_text()
        code = re.search(rf"^```c\n(/\* {name}\.c: .*?)^```$", text, re.M | re.S)[1]
        for before, after in changes:
            self.assertEqual(code.count(before), 1)
            code = code.replace(before, after)
        plugin = self.path(name + ".so")
        subprocess.run(["cc", "-std=c17", "-D_POSIX_C_SOURCE=200809L", "-fPIC", "-shared", "-DKILN_BUILD_PLUGIN", "-I",
                        os.path.join(ROOT, "src"), "-o", plugin, self.write(name + ".c", code), "-lm"], check=True)
        return plugin

    def rings(self, *changes):
        return self.changed("data.md", "rings", *changes)

    def test_kernel_that_is_wrong_in_f32_alone(self):
        f64 = """static void cpu_f64(const KilnOpCall *call)
{
    const double slope = ((const Attrs *)call->attrs)->slope, *x = call->inputs[0].data;
    double *y = call->outputs[0].data;

    for (int64_t i = 0; i < kiln_shape_count(&call->outputs[0].shape); i++)
        y[i] = x[i] / (1.0 + slope * fabs(x[i]));
}

static const KilnCustomOp operation"""
        found = self.changed("models.md", "softsign", ("y[i] = x[i] /", "y[i] = 3.0f * x[i] /"), (".cpu = cpu,", ".cpu = cpu, .cpu_f64 = cpu_f64,"),
                             ("static const KilnCustomOp operation", f64))
        self.assertIn("the loss of a batch is", found["gradients"])

    def test_kernel_that_leaves_the_ends_of_ranges(self):
        found = self.changed("models.md", "softsign", ("for (int64_t i = begin; i < end; i++)", "for (int64_t i = begin; i + 1 < end; i++)"))
        self.assertIn("the kernel of softsign does not write element", found["training"])

    def test_loss_that_is_a_sum(self):
        found = self.changed("models.md", "brier", ("kiln_mean(", "kiln_sum("))
        self.assertIn("it is a sum", found["loss"])

    def test_sample_that_fails_or_lacks_numbers(self):
        """The error of a sample names the component, the sample and its split."""
        plugin = self.build("data.md", "rings", ("    const double angle", "    if (index == 77)\n        return kiln_error_set(err, KILN_E_FORMAT, "
                                                 "\"line 9 has 3 columns\");\n    const double angle"), ("    (void)err;\n    kiln_rng", "    kiln_rng"))
        self.assertEqual(self.check(plugin)["samples"], "sample 77 of train: line 9 has 3 columns")
        _, err = self.run_kiln("--plugin", plugin, "datamodule=rings", "task=classification", "model=mlp", status=1)
        self.assertIn("datamodule/rings: sample 77 of train: line 9 has 3 columns", err)
        plugin = self.build("data.md", "rings", ("x[0] = (float)(radius * cos(angle))", "x[0] = index == 77 ? NAN : (float)(radius * cos(angle))"))
        out, _ = self.run_kiln("plugin", "check", plugin, program="kiln")
        self.assertIn("missing numbers (NaN), which networks do not take: ", " ".join(out.split()))
        out, _ = self.run_kiln("check-data", "--plugin", plugin, "datamodule=rings", "task=classification", "model=mlp", program="kiln")
        self.assertIn("1 of 1024 samples of train lack numbers (NaN)", out)
        self.assertNotIn("all numbers are finite", out)

    def since_best(self, *changes):
        return self.changed("training.md", "since_best", *changes)

    def test_file_that_a_resumed_run_begins_again(self):
        found = self.since_best(("#include <math.h>", "#include <math.h>\n#include <stdio.h>"),
                                ("    int64_t since;\n} State;", "    int64_t since;\n    bool open;\n} State;"),
                                ("    kiln_trainer_log(trainer, \"since_best\"",
                                 "    char path[1024];\n"
                                 "    snprintf(path, sizeof(path), \"%s/notes.txt\", kiln_trainer_run_dir(trainer));\n"
                                 "    FILE *file = fopen(path, state->open ? \"a\" : \"w\");\n"
                                 "    fprintf(file, \"%.6g\\n\", value);\n"
                                 "    fclose(file);\n"
                                 "    state->open = true;\n"
                                 "    kiln_trainer_log(trainer, \"since_best\""))
        self.assertEqual(list(found), ["resuming", "killed"])
        self.assertIn("notes.txt: line 2: only in the first run", found["resuming"])

    def test_logger_that_does_not_survive_a_kill(self):
        """It does not cut its file to the checkpoint's length; it leaves lines in memory."""
        found = self.changed("training.md", "tsv", ("if (ftell(state->file) > end &&", "if (false &&"))
        self.assertEqual(list(found), ["killed"])
        self.assertIn("metrics.tsv: line ", found["killed"])
        found = self.changed("training.md", "tsv", ("fflush(state->file)", "0"))
        self.assertIn("killed", found)

    def test_missing_functions(self):
        """What kiln calls without asking is asked for when the plugin is loaded."""
        for page, name, table, says in (("data.md", "rings", ".setup = setup, ", "datamodule/rings: its table (ops.datamodule) lacks the function setup"),
                                        ("models.md", "brier", ", .loss = loss", "loss/brier: its table (ops.loss) lacks the function loss")):
            plugin = self.build(page, name, (table, ""))
            self.assertIn(says, self.check(plugin)["loading"])
            self.refused("--plugin", plugin, says=[says])

    def test_loss_of_nothing_and_batches_of_nothing(self):
        found = self.changed("models.md", "brier", ("return kiln_scale(kiln_mean(squares), (double)classes);", "(void)squares;\n    return NULL;"))
        self.assertIn("(loss/brier) returns NULL; expected an f32 scalar", found["training"])
        found = self.rings(("*ret = KILN_LOADING(opts);", "(void)opts;\n    (void)ret;"))
        self.assertIn("datamodule/rings: its `loading` gives batches of 0 samples", found["training"])

    def test_sample_that_keeps_what_was_in_memory(self):
        found = self.rings(("    x[1] = ", "    if (label > 0)\n        x[1] = "))
        self.assertIn("keeps what was in its memory", found["samples"])

    def test_value_that_is_never_logged(self):
        out, _ = self.run_kiln("plugin", "check", self.build("training.md", "since_best", ("{ \"since_best\", NULL }", "{ \"sinse_best\", NULL }")),
                               program="kiln")
        self.assertIn("it did not log sinse_best", " ".join(out.split()))

    def test_data_that_a_fork_changes(self):
        """Labels depend on the process, though it is declared shareable."""
        found = self.rings(("#include <math.h>", "#include <math.h>\n#include <unistd.h>\nstatic pid_t first;"),
                           ("state->seed =", "first = getpid();\n    state->seed ="),
                           ("sample->data[1] = label", "sample->data[1] = getpid() == first ? label : 1 - label"))
        self.assertIn("differs in a process that is forked after setup", found["samples"])

    def test_set_up_that_needs_data_to_predict(self):
        found = self.rings(("    state->seed =", "    if (context->stage == KILN_STAGE_PREDICT)\n"
                            "        return kiln_error_set(err, KILN_E_IO, \"data: no such file\");\n    state->seed ="))
        self.assertEqual(list(found), ["predicting"])
        self.assertIn("data: no such file", found["predicting"])

    def test_preparing_that_reads_what_only_training_sets(self):
        found = self.rings(("    if (!kiln_shape_equal", "    if (((const State *)kiln_state(self))->seed == 0)\n        abort();\n"
                            "    if (!kiln_shape_equal"),
                           ("    state->seed = context->seed;",
                            "    state->seed = context->stage == KILN_STAGE_PREDICT ? 0 : 1;"))
        self.assertEqual(list(found), ["predicting"])
        self.assertIn("SIGABRT", found["predicting"])


if __name__ == "__main__":
    unittest.main()

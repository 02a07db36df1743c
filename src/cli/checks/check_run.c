/* Checks of a component in tiny runs: that they end, and are the same again, with other threads and
 * after a resume. */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/system/file.h"
#include "base/text.h"
#include "cli/contract/builtin_words.h"
#include "cli/checks/checks.h"
#include "cli/checks/leak.h"
#include "cli/verify/differences.h"
#include "tensor/safetensors.h"

static const char *const nothing[] = { NULL };
/* Weights of runs with other numbers of threads: sums in another order. */
static const double most_difference = 1e-3;

/* ---- Training -------------------------------------------------------------------------------- */

/* "setup, on_fit_start, on_train_batch_end 8x, teardown" */
static void append_hooks(KilnText *text)
{
    const KilnTracedHook *hooks;
    const size_t n = kiln_contract_traced(&hooks);

    for (size_t i = 0; i < n; i++) {
        kiln_text_printf(text, "%s%s", i > 0 ? ", " : "", hooks[i].hook);
        if (hooks[i].count > 1)
            kiln_text_printf(text, " %lldx", (long long)hooks[i].count);
    }
}

/* Whether the first run logged a value under `name`, or that of its step or epoch. */
static bool was_logged(const json_t *metrics, const char *name)
{
    static const char *const ends[] = { "", "_step", "_epoch" };
    char full[256];
    bool was = false;

    for (size_t i = 0; i < KILN_COUNT(ends); i++) {
        snprintf(full, sizeof(full), "%s%s", name, ends[i]);
        was |= json_object_get(metrics, full) != NULL;
    }
    return was;
}

/* Values that a callback declares, but did not log. */
static void append_silent(KilnCase *self, KilnText *text)
{
    const char *path = kiln_arena_printf(&self->arena, "%s/summary.json",
                                         kiln_case_run_dir(self, "first run"));
    const char *const *logs = self->component->kind == KILN_KIND_CALLBACK
                                  ? self->component->ops.callback->logs
                                  : NULL;
    json_t *summary = NULL;

    if (logs == NULL || path == NULL || kiln_json_read(path, &summary, NULL) < 0)
        return;
    for (; *logs != NULL; logs++)
        if (!was_logged(json_object_get(summary, "metrics"), *logs))
            kiln_text_printf(text, "; it did not log %s, which its table declares", *logs);
    json_decref(summary);
}

static void pass_training(KilnCase *self)
{
    KilnText hooks = { 0 };

    append_hooks(&hooks);
    append_silent(self, &hooks);
    if (hooks.length > 0 && !hooks.failed)
        kiln_case_pass(self, "2 epochs; %s", hooks.data);
    else
        kiln_case_pass(self, "2 epochs");
    kiln_text_release(&hooks);
}

/* With the first line of the error: further ones say how to resume the run. */
static void fail_training(KilnCase *self, const KilnError *err)
{
    const int length = (int)strcspn(err->text, "\n");
    KilnText hooks = { 0 };

    append_hooks(&hooks);
    if (hooks.length > 0 && !hooks.failed)
        kiln_case_fail(self, "", "%.*s; called until then: %s", length, err->text, hooks.data);
    else
        kiln_case_fail(self, "", "%.*s", length, err->text);
    kiln_text_release(&hooks);
}

/* Files that a logger declares. */
static void check_files(KilnCase *self)
{
    const char *const *file = self->component->kind == KILN_KIND_LOGGER
                                  ? self->component->ops.logger->files
                                  : NULL;

    for (; file != NULL && *file != NULL; file++) {
        const char *path = kiln_arena_printf(&self->arena, "%s/%s",
                                             kiln_case_run_dir(self, "first run"), *file);

        if (path != NULL && !kiln_is_file(path) && !kiln_is_dir(path))
            kiln_case_fail(self, "write it, or remove it from `files`",
                           "its table lists the file %s, which the run folder does not have",
                           *file);
    }
}

void kiln_contract_training(KilnCase *self)
{
    static const char advice[] = "add overrides with which `train` runs it: task=... "
                                 "datamodule=... model=...";
    KilnConfig *config = NULL;
    KilnError err = { 0 };

    if (self->component->kind == KILN_KIND_METRIC &&
        self->component->ops.metric->takes > KILN_METRIC_VALUES)
        return kiln_case_skip(self, "", "its rows are no tensors of a step");
    if (kiln_case_compose(self, nothing, &config, &err) < 0)
        return kiln_case_skip(self, advice, "no config that comes with kiln trains it: %s",
                              err.text);
    kiln_config_free(config);
    kiln_contract_trace(self->component);
    const KilnStatus status = kiln_case_fit(self, "first run", nothing, -1, &err);
    if (status == KILN_E_MISSING)
        return kiln_case_skip(self, advice, "%s", err.text);
    if (status < 0)
        return fail_training(self, &err);
    check_files(self);
    pass_training(self);
}

/* ---- The same again -------------------------------------------------------------------------- */

static void compare(KilnCase *self, const char *with, const char *name, const char *advice)
{
    const char *first = kiln_case_run_dir(self, with), *other = kiln_case_run_dir(self, name);
    KilnDifferences found = { .most = 2, .sides = { with, name } };
    KilnError err = { 0 };

    if (first == NULL || other == NULL)
        return;
    if (kiln_differences_runs(first, other, &found, &err) < 0)
        kiln_case_fail_with(self, &err);
    else if (found.count > 0)
        kiln_case_fail(self, advice, "%zu difference%s: %s", found.count,
                       found.count == 1 ? "" : "s", found.text.failed ? "" : found.text.data);
    kiln_differences_release(&found);
}

/* Whether runs can't be equal; then the check is skipped. */
static bool reads_clock(KilnCase *self)
{
    const bool reads = kiln_builtin_reads_clock(self->component);

    if (reads)
        kiln_case_skip(self, "", "its state depends on the clock");
    return reads;
}

void kiln_contract_same_bytes(KilnCase *self)
{
    KilnError err = { 0 };

    if (reads_clock(self))
        return;
    if (kiln_case_fit(self, "second run", nothing, -1, &err) < 0)
        return kiln_case_fail_with(self, &err);
    compare(self, "first run", "second run",
            "depend on the options, the data and kiln_rng streams alone: no time, no addresses, no "
            "uninitialized memory; KILN_LOG_MEASURED marks measurements, and a file with times is "
            "named *.log");
    kiln_case_pass(self, "two runs with one seed wrote the same checkpoints and files");
}

void kiln_contract_resuming(KilnCase *self)
{
    enum { BATCHES = 4 /* in the second epoch */ };
    static const char advice[] =
        "save all state that changes in state_dict, load it in load_state_dict, cut files there to "
        "the saved length, and draw random numbers from streams that are keyed by epoch and batch";
    KilnError err = { 0 };

    if (reads_clock(self))
        return;
    if (kiln_case_fit(self, "resumed run", nothing, BATCHES, &err) < 0 ||
        kiln_case_resume(self, "resumed run", &err) < 0)
        return kiln_case_fail(self, advice, "%s", err.text);
    compare(self, "first run", "resumed run", advice);
    kiln_case_pass(self,
                   "interrupted in the second epoch and resumed: the same checkpoints and files");
}

/* A run that is killed has written what follows its checkpoint: here two steps with a validation
 * each. */
void kiln_contract_killed(KilnCase *self)
{
    static const char *const words[] = { "trainer.val_check_interval=1",
                                         "callbacks.model_checkpoint.every_n_train_steps=3", NULL };
    enum { BATCHES = 5 };
    static const char advice[] =
        "flush files in state_dict, save their length there, and cut them to it in on_fit_start, "
        "or in a logger's open: what follows the checkpoint is written again";
    KilnError err = { 0 };

    if (reads_clock(self))
        return;
    if (kiln_case_fit(self, "undisturbed run", words, -1, &err) < 0)
        return kiln_case_skip(self, "", "%s", err.text);
    for (int flushes = 0; flushes < 2 && !kiln_case_failed(self); flushes++) {
        const char *name = flushes ? "killed run" : "killed run with files in memory";

        KilnStatus status = kiln_case_kill(self, name, words, BATCHES, flushes, &err);
        if (status == KILN_E_RANGE)
            return kiln_case_pass(self, "not tried: %s", err.text);
        if (status >= 0)
            status = kiln_case_resume(self, name, &err);
        if (status < 0)
            return kiln_case_fail(self, advice, "%s", err.text);
        compare(self, "undisturbed run", name, advice);
    }
    kiln_case_pass(self, "killed two steps after a checkpoint and resumed: the same checkpoints "
                         "and files");
}

/* ---- Threads --------------------------------------------------------------------------------- */

/* The largest |a - b| / max(1, |a|) of two tensors; false: they can't be compared. */
static bool compare_tensor(const KilnSafetensors *files[2], const KilnStEntry *const entries[2],
                           KilnArena *arena, double *ret)
{
    const size_t n = (size_t)kiln_shape_count(&entries[0]->shape);
    double *values[2];

    if (!kiln_shape_equal(&entries[0]->shape, &entries[1]->shape))
        return false;
    for (int i = 0; i < 2; i++) {
        values[i] = kiln_arena_alloc(arena, (n + 1) * sizeof(double));
        if (values[i] == NULL ||
            kiln_safetensors_read(files[i], entries[i], KILN_F64, values[i], NULL) < 0)
            return false;
    }
    for (size_t k = 0; k < n; k++) {
        const double a = values[0][k], b = values[1][k];

        *ret = fmax(*ret, fabs(a - b) / fmax(1.0, fabs(a)));
    }
    return true;
}

/* Raise *ret to the largest difference of the weights of two runs. */
static void compare_weights(KilnCase *self, const char *a, const char *b, double *ret)
{
    static const char at[] = "checkpoints/last/model.safetensors";
    const char *runs[2] = { a, b };
    KilnSafetensors *files[2] = { NULL, NULL };
    KilnError err = { 0 };
    KilnStatus status = KILN_OK;

    for (int i = 0; i < 2 && status >= 0; i++)
        status = kiln_safetensors_open(
            kiln_arena_printf(&self->arena, "%s/%s", kiln_case_run_dir(self, runs[i]), at),
            &files[i], &err);
    for (size_t i = 0; status >= 0 && i < kiln_safetensors_count(files[0]); i++) {
        const KilnStEntry *entry = kiln_safetensors_at(files[0], i);
        const KilnStEntry *other = kiln_safetensors_find(files[1], entry->name);
        KilnDType dtype;

        if (other == NULL)
            kiln_case_fail(self, "", "with two threads the checkpoint lacks %s", entry->name);
        else if (kiln_safetensors_dtype(entry, &dtype) && dtype == KILN_F32)
            (void)!compare_tensor((const KilnSafetensors *[]) { files[0], files[1] },
                                  (const KilnStEntry *const[]) { entry, other }, &self->arena, ret);
    }
    if (status < 0)
        kiln_case_fail_with(self, &err);
    kiln_safetensors_close(files[0]);
    kiln_safetensors_close(files[1]);
}

/* Compare runs with one thread and two in f64, where sums in another order hardly differ. */
static void compare_exactly(KilnCase *self, double *ret)
{
    static const char *const one[] = { "trainer.precision=64-true", NULL };
    static const char *const two[] = { "trainer.precision=64-true", "trainer.threads=2",
                                       "trainer.num_workers=2", NULL };

    if (kiln_case_fit(self, "one thread in f64", one, -1, NULL) < 0 ||
        kiln_case_fit(self, "two threads in f64", two, -1, NULL) < 0)
        return;
    *ret = 0.0;
    compare_weights(self, "one thread in f64", "two threads in f64", ret);
}

/* Whether the component takes part in computing; others see threads only where data are loaded. */
static bool computes(const KilnComponent *component)
{
    return component->kind == KILN_KIND_MODULE || component->kind == KILN_KIND_MODEL ||
           component->kind == KILN_KIND_LOSS || component->kind == KILN_KIND_OPTIMIZER ||
           component->kind == KILN_KIND_CALLBACK;
}

void kiln_contract_threads(KilnCase *self)
{
    const char *const two[] = { "trainer.num_workers=2",
                                computes(self->component) ? "trainer.threads=2" : NULL, NULL };
    KilnError err = { 0 };
    double worst = 0.0, exact = INFINITY;

    if (kiln_case_fit(self, "two threads", two, -1, &err) < 0)
        return kiln_case_fail_with(self, &err);
    compare_weights(self, "first run", "two threads", &worst);
    if (worst > most_difference)
        compare_exactly(self, &exact);
    if (worst > most_difference && !(exact <= most_difference))
        kiln_case_fail(self,
                       "each thread may only write what belongs to its part: its own sample, or "
                       "its range in kiln_op_parallel",
                       "weights differ by up to %.2g from those of one thread%s", worst,
                       isfinite(exact) ? ", also in f64" : "");
    if (worst == 0.0)
        kiln_case_pass(self, "the same weights as with one thread");
    else
        kiln_case_pass(self, "weights within %.1g of those of one thread%s",
                       worst > most_difference ? exact : worst,
                       worst > most_difference ? ", in f64" : "");
}

/* ---- Memory ---------------------------------------------------------------------------------- */

void kiln_contract_run_leaks(KilnCase *self)
{
    enum { RUNS = 4 };
    KilnLeak leak = { 0 };
    KilnError err = { 0 };

    for (int i = 0; i < RUNS; i++) {
        char name[32];

        snprintf(name, sizeof(name), "run %d", i);
        KilnStatus status = kiln_case_fit(self, name, nothing, -1, &err);
        if (status >= 0)
            status = kiln_path_remove(kiln_case_run_dir(self, name), &err);
        if (status < 0)
            return kiln_case_fail_with(self, &err);
        kiln_leak_note(&leak);
    }
    const int64_t bytes = kiln_leak_bytes(&leak);
    if (!kiln_leak_is_known(&leak))
        kiln_case_skip(self, "", "this allocator does not count what is allocated");
    else if (bytes > 0)
        kiln_case_fail(self, "free in teardown or `release` what its functions allocate",
                       "%lld bytes more after each run", (long long)bytes);
    else
        kiln_case_pass(self, "%d runs in one process", RUNS);
}

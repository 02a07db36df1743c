/* Plugins: the example works, and faulty ones are rejected without a crash. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/system/file.h"
#include "examples/plugin/poly_loss.c"
#include "tests/support/cmocka.h"
#include "tests/support/components/toy_components.h"

static char *folder;

/* Run a command given as words; its exit status, -1 when it could not run. */
static int execute(char *const words[])
{
    int status = -1;
    pid_t child = fork();

    if (child == 0) {
        execvp(words[0], words);
        _exit(127);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
        return -1;
    return WEXITSTATUS(status);
}

static char *in_folder(const char *name)
{
    char *path = kiln_path_join(folder, name);

    assert_non_null(path);
    return path;
}

/* Compile `source` with one macro; the plugin's path, owned by the caller. */
static char *compile(const char *source, const char *name, const char *macro)
{
    char *path = in_folder(name);
    char *words[] = { "cc",
                      "-std=c17",
                      "-fPIC",
                      "-shared",
                      "-fvisibility=hidden",
                      "-Isrc",
                      "-DKILN_BUILD_PLUGIN",
                      (char *)macro,
                      "-o",
                      path,
                      (char *)source,
                      NULL };

    assert_int_equal(execute(words), 0);
    return path;
}

static int setup(void **unused)
{
    (void)unused;
    folder = folder_make();
    return 0;
}

static int teardown(void **unused)
{
    (void)unused;
    folder_remove(folder);
    return 0;
}

static bool can_compile(void)
{
    char *words[] = { "cc", "-dumpversion", NULL };

    if (!kiln_is_file("tests/plugins/variants.c")) {
        print_message("skip: tests/plugins is not here, run from the project's folder\n");
        return false;
    }
    int out = dup(1);
    bool quiet = freopen("/dev/null", "w", stdout) != NULL;
    int status = execute(words);
    fflush(stdout);
    (void)dup2(out, 1);
    close(out);
    if (status != 0 || !quiet)
        print_message("skip: no compiler \"cc\"\n");
    return status == 0;
}

static void check_good(const char *macro)
{
    KilnRegistry *registry = toy_registry_new();
    KilnConfig *config = NULL;
    KilnErrors *errors = NULL;
    KilnInstance *model = NULL;
    KilnError err = { 0 };
    char *path = compile("tests/plugins/variants.c", "good.so", macro);
    size_t before = kiln_registry_count(registry);
    if (kiln_registry_load(registry, path, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(kiln_registry_count(registry), before + 2);
    assert_non_null(kiln_registry_find(registry, KILN_KIND_MODEL, "plugin_other"));

    /* Its options are typed and have defaults like everybody's. */
    assert_int_equal(kiln_errors_new(&errors), KILN_OK);
    if (compose_yaml("model: {_target_: plugin_model, rate: 0.75}\n", NULL, registry, NULL, &config,
                     errors) < 0 ||
        kiln_config_check(config, registry, errors) < 0)
        fail_msg("%s", kiln_errors_text(errors, 0));
    if (kiln_config_build(config, "model", registry, KILN_KIND_MODEL, &model, &err) < 0)
        fail_msg("%s", err.text);
    const struct {
        int64_t size;
        double rate;
    } *opts = kiln_opts(model);
    assert_int_equal(opts->size, 3);
    assert_true(opts->rate == 0.75);
    kiln_instance_free(model);
    kiln_config_free(config);
    kiln_errors_free(errors);

    /* A second time the names are taken. */
    assert_int_equal(kiln_registry_load(registry, path, &err), KILN_E_PLUGIN);
    assert_non_null(strstr(err.text, "good.so: model/plugin_model is registered already"));
    assert_int_equal(kiln_registry_count(registry), before + 2);
    kiln_registry_free(registry);
    free(path);
}

static void test_good(void **unused)
{
    (void)unused;
    if (!can_compile())
        skip();
    check_good("-DGOOD");
    check_good("-DINFO_KINDS=3"); /* from before the other kinds: its tables are copied */
}

/* The components of the program itself, by a description as a plugin has it. */
static const KilnComponent *const own[] = { &kiln_loss_poly, NULL };
static KILN_PLUGIN_FUNCTION(own_components, own)

    static void test_own_components(void **unused)
{
    KilnRegistry *registry = NULL;
    KilnError err = { 0 };

    (void)unused;
    assert_int_equal(kiln_registry_new(&registry, &err), KILN_OK);
    const size_t before = kiln_registry_count(registry);
    if (kiln_registry_add(registry, own_components(), &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(kiln_registry_count(registry), before + 1);
    assert_int_equal(kiln_registry_add(registry, own_components(), &err), KILN_E_PLUGIN);
    assert_non_null(strstr(err.text, "is registered already"));
    kiln_registry_free(registry);
}

static void test_refused(void **unused)
{
    static const struct {
        const char *macro, *want;
    } cases[] = {
        { "-DINFO_ABI=8", "built for ABI 8, this program has 7: rebuild the plugin" },
        { "-DINFO_MAGIC=1", "does not describe a kiln plugin" },
        { "-DINFO_COMPONENT=8", "its KilnComponent has 8 bytes, fewer than the 88 of ABI 7" },
        { "-DINFO_FIELD=8", "its KilnField has 8 bytes, fewer than the 152 of ABI 7" },
        { "-DINFO_TENSOR_SPEC=40", "its KilnTensorSpec has 40 bytes, this program's 32" },
        { "-DINFO_OPS={8}", "its table of functions of a datamodule has 8 bytes, fewer than" },
        { "-DINFO_COMPONENT=4096", "which is newer than this program" },
        { "-DINFO_FIELD=4096", "its KilnField has 4096 bytes, this program's 152; update kiln" },
        { "-DINFO_OPS={4096}", "its table of functions of a datamodule has 4096 bytes" },
        { "-DINFO_KINDS=1", "a component's kind is 2, which kiln does not know" },
        { "-DINFO_LIST=NULL", "it has no components" },
        { "-DINFO_LIST=&list[2]", "it has no components" },
        { "-DLIST_END", "its list of components has no end: write NULL as its last entry" },
        { "-DFIELDS_END",
          "model/plugin_model: the options table has no end: write KILN_FIELD_END" },
        { "-DFIELDS_LENGTH", "model/plugin_model: the length of the options table is unknown" },
        { "-DNESTED_END", "model/plugin_model: the options table of window has no end" },
        { "-DCHOICES_END", "option size2: its list of choices has no end: write { NULL, 0 }" },
        { "-DNULL_INFO", "does not describe a kiln plugin" },
        { "-DNO_SYMBOL", "no kiln_plugin_v1 symbol" },
        { "-DUNDEFINED", "undefined symbol: kiln_no_such_function" },
        { "-DDUPLICATE", "model/plugin_model is registered already" },
        { "-DBAD_DEFAULT",
          "model/plugin_model: option size: its default many: expected an integer" },
        { "-DNO_FORWARD", "model/plugin_model: its table (ops.model) lacks the function forward" },
        { "-DNO_OPS", "model/plugin_other: its operations (ops.model) are missing" },
    };
    KilnRegistry *registry = toy_registry_new();
    size_t before = kiln_registry_count(registry);

    (void)unused;
    if (!can_compile()) {
        kiln_registry_free(registry);
        skip();
    }
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        char *path = compile("tests/plugins/variants.c", "bad.so", cases[i].macro);
        KilnError err = { 0 };

        if (kiln_registry_load(registry, path, &err) != KILN_E_PLUGIN ||
            strstr(err.text, cases[i].want) == NULL || !kiln_starts_with(err.text, "plugin /tmp/"))
            fail_msg("%s: %s", cases[i].macro, err.text);
        assert_int_equal(kiln_registry_count(registry), before);
        assert_int_equal(unlink(path), 0);
        free(path);
    }
    kiln_registry_free(registry);
}

static void test_files_that_are_none(void **unused)
{
    static const struct {
        const char *name, *text, *want;
    } cases[] = {
        { "text.so", "not a shared object\n", "not a shared object that can be loaded" },
        { "empty.so", "", "not a shared object that can be loaded" },
        { "absent.so", NULL, "there is no such file" },
        { "", NULL, "there is no such file" },
    };
    KilnRegistry *registry = toy_registry_new();

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        char *path = in_folder(cases[i].name);
        KilnError err = { 0 };

        if (cases[i].text != NULL)
            file_put(folder, cases[i].name, cases[i].text);
        if (kiln_registry_load(registry, path, &err) != KILN_E_PLUGIN ||
            strstr(err.text, cases[i].want) == NULL)
            fail_msg("%s: %s", cases[i].name, err.text);
        free(path);
    }
    kiln_registry_free(registry);
}

static void test_example(void **unused)
{
    KilnRegistry *registry = toy_registry_new();
    KilnError err = { 0 };

    (void)unused;
    if (!can_compile()) {
        kiln_registry_free(registry);
        skip();
    }
    char *path = compile("examples/plugin/resmlp.c", "resmlp.so", "-O1");
    if (kiln_registry_load(registry, path, &err) < 0)
        fail_msg("%s", err.text);
    assert_non_null(kiln_registry_find(registry, KILN_KIND_MODEL, "resmlp"));
    kiln_registry_free(registry);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),    cmocka_unit_test(test_own_components),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_files_that_are_none),
        cmocka_unit_test(test_example),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}

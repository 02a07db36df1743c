/* Random config trees, mostly invalid: composing, checking and building give an error or a
 * component, never a crash; and what passes the check can be built. */
#include <string.h>

#include "tests/support/cmocka.h"
#include "tests/support/components/toy_components.h"

enum { TREES = 2000, DEEPEST = 4 };

typedef struct Source {
    uint64_t state;
    KilnText text;
} Source;

/* A small generator of its own (SplitMix64, Steele, Lea and Flood 2014), so that
 * the trees stay the same whatever happens to the program's. */
static size_t draw(Source *source, size_t n)
{
    uint64_t z = source->state += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (size_t)((z ^ z >> 31) % n);
}

static const char *const keys[] = {
    "task",  "model", "optimizer", "teacher", "transforms", "hooks",   "smoothing",  "_target_",
    "depth", "width", "p",         "lr",      "sizes",      "names",   "weights",    "mode",
    "inner", "other", "callbacks", "trainer", "kiln",       "run",     "seed",       "max_epochs",
    "note",  "file",  "flag",      "count",   "odd",        "logger",  "window",     "length",
    "pad",   "left",  "stages",    "named",   "counts",     "chosen",  "time_limit", "timeout",
    "size",  "title", "name",      "filter",  "pads",       "filters",
};

static const char *const scalars[] = {
    "net",
    "nest",
    "wide",
    "flip",
    "all",
    "quiet",
    "toy",
    "rich",
    "sgd",
    "model/net",
    "optimizer/sgd",
    "nobody",
    "x/y",
    "null",
    "~",
    "''",
    "\"???\"",
    "'${model}'",
    "'${task}'",
    "'${lr}'",
    "'${nowhere}'",
    "'${task.model}'",
    "'a${lr}b'",
    "'${model.depth}'",
    "'${.p}'",
    "'${..lr}'",
    "1",
    "0",
    "-7",
    "1e3",
    "0.5",
    ".inf",
    ".nan",
    "true",
    "no",
    "0x1F",
    "min",
    "max",
    "'7'",
    "\"\\x01\"",
    "100000000000000000000",
    "90s",
    "64MiB",
    "'${logger.a.window}'",
};

static void put_value(Source *source, int depth)
{
    size_t what = depth == 0 ? 0 : draw(source, 10);

    if (what < 6) {
        kiln_text_append(&source->text, scalars[draw(source, KILN_COUNT(scalars))]);
    } else if (what < 7) {
        kiln_text_char(&source->text, '[');
        for (size_t i = draw(source, 4); i > 0; i--) {
            put_value(source, depth - 1);
            kiln_text_append(&source->text, ", ");
        }
        kiln_text_char(&source->text, ']');
    } else {
        size_t first = draw(source, KILN_COUNT(keys));

        kiln_text_char(&source->text, '{');
        if (draw(source, 3) > 0)
            kiln_text_printf(&source->text, "_target_: %s, ", scalars[draw(source, 9)]);
        for (size_t i = draw(source, 5); i > 0; i--) {
            const char *key = keys[(first + i * 5) % KILN_COUNT(keys)];

            if (strcmp(key, "_target_") == 0)
                continue;
            kiln_text_printf(&source->text, "%s: ", key);
            put_value(source, depth - 1);
            kiln_text_append(&source->text, ", ");
        }
        kiln_text_char(&source->text, '}');
    }
}

/* A root that is close to a good one. */
static void put_tree(Source *source)
{
    static const char *const usual[] = { "task",      "{_target_: toy}",
                                         "model",     "net",
                                         "lr",        "0.1",
                                         "callbacks", "{}",
                                         "trainer",   "{}",
                                         "seed",      "1",
                                         "optimizer", "{_target_: sgd}",
                                         "logger",    "{a: {_target_: rich}}",
                                         "odd",       "1" };

    for (size_t i = 0; i < KILN_COUNT(usual); i += 2) {
        kiln_text_printf(&source->text, "%s: ", usual[i]);
        if (draw(source, 3) == 0)
            put_value(source, DEEPEST);
        else
            kiln_text_append(&source->text, usual[i + 1]);
        kiln_text_char(&source->text, '\n');
    }
}

/* 1 when the tree was good enough to be built. */
static int try_tree(const KilnRegistry *registry, const char *yaml, const char *override)
{
    const char *overrides[] = { override, NULL };
    KilnConfig *config = NULL;
    KilnErrors *errors = NULL;
    KilnInstance *task = NULL, **callbacks = NULL, **loggers = NULL;
    size_t n = 0, n_loggers = 0;
    KilnError err = { 0 };
    int built = 0;

    assert_int_equal(kiln_errors_new(&errors), KILN_OK);
    KilnStatus status = compose_yaml(yaml, overrides, registry, toy_root(), &config, errors);
    if (status == KILN_OK)
        status = kiln_config_check(config, registry, errors);
    if (status < 0 && (kiln_errors_count(errors) == 0 || status == KILN_E_INTERNAL))
        fail_msg("%s: status %d, %zu messages", yaml, status, kiln_errors_count(errors));
    if (config != NULL) {
        KilnStatus one = kiln_config_build(config, "task", registry, KILN_KIND_MODULE, &task, &err);
        if (one == KILN_OK)
            one = kiln_config_build_map(config, "callbacks", registry, KILN_KIND_CALLBACK,
                                        &callbacks, &n, &err);
        if (one == KILN_OK)
            one = kiln_config_build_map(config, "logger", registry, KILN_KIND_LOGGER, &loggers,
                                        &n_loggers, &err);
        if (one == KILN_E_INTERNAL || (status == KILN_OK && one < 0))
            fail_msg("%s: checked with %d, built with %d: %s", yaml, status, one, err.text);
        built = one == KILN_OK;
    }
    kiln_instances_free(callbacks, n);
    kiln_instances_free(loggers, n_loggers);
    kiln_instance_free(task);
    kiln_config_free(config);
    kiln_errors_free(errors);
    return built;
}

static void test_random_trees(void **unused)
{
    static const char *const overrides[] = {
        NULL,
        "model=net",
        "task.model=wide",
        "task.transforms=[flip]",
        "task=toy",
        "lr=2",
        "~callbacks",
        "++model.depth=3",
        "+odd.x={_target_:net}",
        "trainer.max_epochs=3",
        "logger.a.time_limit=3s",
        "logger.a.window.size=3",
        "logger.a.window={size:4}",
        "++logger.a.stages=[{title:x}]",
    };
    KilnRegistry *registry = toy_registry_new();
    Source source = { .state = 1 };
    int built = 0;

    (void)unused;
    for (int i = 0; i < TREES; i++) {
        kiln_text_clear(&source.text);
        put_tree(&source);
        assert_false(source.text.failed);
        built += try_tree(registry, source.text.data,
                          overrides[draw(&source, KILN_COUNT(overrides))]);
    }
    assert_in_range(built, TREES / 20, TREES); /* else the trees test nothing */
    kiln_text_release(&source.text);
    kiln_registry_free(registry);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_random_trees) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Checking whole config trees: the errors, their messages and their order. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "tests/support/components/toy_components.h"

#define ROOT "task: {_target_: toy}\nmodel: {_target_: net}\nlr: 0.1\n"

/* All messages for a tree, "" when it is fine; owned by the caller. */
static char *check(const char *yaml, const char *const *overrides)
{
    KilnRegistry *registry = toy_registry_new();
    KilnConfig *config = NULL;
    KilnErrors *errors = NULL;

    assert_int_equal(kiln_errors_new(&errors), KILN_OK);
    KilnStatus status = compose_yaml(yaml, overrides, registry, toy_root(), &config, errors);
    if (status == KILN_OK)
        status = kiln_config_check(config, registry, errors);
    assert_int_equal(status == KILN_OK, kiln_errors_count(errors) == 0);
    char *text = errors_join(errors);
    kiln_config_free(config);
    kiln_errors_free(errors);
    kiln_registry_free(registry);
    return text;
}

typedef struct Case {
    const char *yaml, *override, *want; /* a part of the messages; "": no error */
} Case;

static void run(const Case *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *overrides[] = { cases[i].override, NULL };
        char *text = check(cases[i].yaml, overrides);

        if (cases[i].want[0] == '\0' ? text[0] != '\0' : strstr(text, cases[i].want) == NULL)
            fail_msg("case %zu\n%s%s\ngave\n%s", i, cases[i].yaml,
                     cases[i].override != NULL ? cases[i].override : "", text);
        free(text);
    }
}

static void test_sound(void **unused)
{
    static const Case cases[] = {
        { ROOT, NULL, "" },
        { ROOT "free: {anything: [1, x]}\nseed: \"${free.anything[0]}\"\n", NULL, "" },
        { ROOT, "task.model=net", "" },
        { ROOT, "task.transforms=[flip]", "" },
        { ROOT, "task.transforms=[flip,{_target_:wide},{_target_:transform/flip,p:1}]", "" },
        { ROOT, "+task.hooks.a=quiet", "" },
        { ROOT "callbacks: {a: {_target_: all}, b: null}\n", NULL, "" },
        { ROOT "callbacks: null\n", NULL, "" },
        { ROOT, "task.teacher=${model}", "" },
        { ROOT, "model.depth=50", "" },
        { ROOT "name: net\n", "task.model=${name}", "" },
        { ROOT "which: net\nmodel: {_target_: \"${which}\", depth: 3}\n", NULL, "duplicate" },
        { "task: {_target_: toy}\nwhich: net\nmodel: {_target_: \"${which}\", depth: 3}\nlr: 1\n",
          NULL, "" },
        { ROOT "trainer: null\n", NULL, "" },
        { ROOT, "trainer.precision=bf16", "" },
    };

    (void)unused;
    /* The key that stands twice is the reader's affair: any message will do. */
    for (size_t i = 0; i < KILN_COUNT(cases); i++)
        if (strcmp(cases[i].want, "duplicate") != 0)
            run(&cases[i], 1);
}

static void test_messages(void **unused)
{
    static const Case cases[] = {
        { ROOT, "lr=fast",
          "argument 1 `lr=fast`: task.optimizer.lr: expected a number, got \"fast\"\n"
          "  through ${lr} in default of optimizer/sgd" },
        { ROOT, "model.depth=1e3", "model.depth: expected an integer, got" },
        { ROOT, "model.depth=500",
          "argument 1 `model.depth=500`: model.depth: expected an integer from 1 to 200, got 500" },
        { ROOT, "task.smoothing=null", "task.smoothing: expected a number, got null" },
        { ROOT, "++model.dept=3",
          "argument 1 `++model.dept=3`: model.dept: unknown option of model/net; did you mean "
          "\"depth\"?\n  its options: depth, dropout" },
        { ROOT "trainer: {max_epoch: 3}\n", NULL,
          "trainer.max_epoch: unknown option of trainer; did you mean \"max_epochs\"?" },
        { "model: {_target_: net}\nlr: 0.1\n", NULL,
          "task: required value missing (what is trained)" },
        { ROOT, "task.model=wide", "task.model.width: required value missing (features)" },
        { ROOT, "task.model=netx",
          "argument 1 `task.model=netx`: task.model: there is no model \"netx\"; did you mean "
          "\"net\"?\n  there are: nest, net, wide" },
        { ROOT, "task.model=5",
          "task.model: expected a model (a name, or a mapping with _target_), got 5" },
        { ROOT, "task.model=[net]",
          "task.model: expected a model (a name, or a mapping with _target_), got a list" },
        { ROOT, "task.model=null",
          "task.model: expected a model (a name, or a mapping with _target_), got null" },
        { ROOT, "++task.model={depth:3}",
          "task.model: a mapping without _target_ where a model is expected" },
        { ROOT, "task.model=${lr}", "task.model: expected a model" },
        { ROOT, "task.model=${task.optimizer}",
          "task.model: there is no model \"sgd\", it is an optimizer\n  there are: nest, net, "
          "wide\n"
          "  from default of module/toy\n"
          "  through ${task.optimizer} in argument 1 " },
        { ROOT "late: {_target_: nest, inner: \"${model}\", other: \"${task.transforms[0]}\"}\n",
          "task.transforms=[flip]", "late.other: expected a model, got a transform (flip)" },
        { ROOT, "task.model=optimizer/sgd",
          "task.model: expected a model, got \"optimizer/sgd\", which is an optimizer" },
        { ROOT, "task.model=???", "task.model: required value missing (the network)" },
        { ROOT, "task.transforms=flip",
          "task.transforms: expected a list of transforms, got \"flip\"" },
        { ROOT, "task.transforms=[flip,null]", "task.transforms[1]: expected a transform" },
        { ROOT, "task.transforms=[{_target_:flip,p:2}]",
          "task.transforms[0].p: expected a number from 0 to 1, got 2" },
        { ROOT "callbacks: [all]\n", NULL,
          "callbacks: expected a mapping of callbacks, got a list" },
        { ROOT, "+callbacks.a={_target_:all,sizes:[1,101]}",
          "callbacks.a.sizes[1]: expected an integer from 0 to 100, got 101" },
        { ROOT, "+callbacks.a={_target_:all,sizes:7}",
          "callbacks.a.sizes: expected a list of integers, got 7" },
        { ROOT, "+callbacks.a={_target_:5}",
          "callbacks.a: expected the name of a callback, got 5" },
        { ROOT, "+callbacks.a={_target_:???}",
          "callbacks.a: required value missing (name of a callback)" },
        { ROOT, "task=3", "task: expected a module (a name, or a mapping with _target_), got 3" },
        { ROOT, "trainer=3", "trainer: expected a mapping" },
        { ROOT, "+other={_target_:netz}", "other: there is no component \"netz\"; did you mean" },
        { ROOT, "+other={_target_:wide,width:0}",
          "other: \"wide\" is the name of a model and of a transform" },
        { ROOT, "+other={_target_:model/wide,width:0}",
          "other.width: expected an integer from 1 to 100, got 0" },
        { ROOT, "+other=${nothing}", "other: " },
        { ROOT "self: {_target_: nest, inner: \"${self}\"}\n", NULL,
          "self.inner: a component that contains itself" },
    };

    (void)unused;
    run(cases, KILN_COUNT(cases));
}

#define RICH ROOT "logger: {a: {_target_: rich, "

static void test_nested_options(void **unused)
{
    static const Case cases[] = {
        { RICH "}}\n", NULL, "" },
        { RICH "window: {length: 3, pad: {left: 2}}}}\n", "logger.a.window.pad.right=4", "" },
        { RICH "stages: [{name: x, filter: flip}], named: {k: {name: y, pads: []}}}}\n", NULL, "" },
        { RICH "}}\n", "logger.a.window.length=0",
          "argument 1 `logger.a.window.length=0`: logger.a.window.length: expected an integer from "
          "1 to 99, got 0" },
        { RICH "window: {lenght: 3}}}\n", NULL,
          "logger.a.window.lenght: unknown option of window of logger/rich; did you mean "
          "\"length\"?\n  its options: length, shape, pad\n" },
        { RICH "window: 3}}\n", NULL, "logger.a.window: expected a mapping of options, got 3" },
        { RICH "stages: [{width: 3}]}}\n", NULL,
          ".yaml:4:39: logger.a.stages[0].name: required value missing (what it is called)\n" },
        { RICH "stages: [{name: x, pads: [{left: many}]}]}}\n", NULL,
          "logger.a.stages[0].pads[0].left: expected an integer, got \"many\"" },
        { RICH "named: {k: {name: x, filter: flop}}}}\n", NULL,
          "logger.a.named.k.filter: there is no transform \"flop\"; did you mean \"flip\"?" },
        { RICH "named: {k: 3}}}\n", NULL,
          "logger.a.named.k: expected a mapping of options, got 3" },
        { RICH "counts: {x: 11}}}\n", NULL,
          "logger.a.counts.x: expected an integer from 0 to 10, got 11" },
        { RICH "counts: [1]}}\n", NULL,
          "logger.a.counts: expected a mapping of integers, got a list" },
        { RICH "modes: [min, mix]}}\n", NULL,
          "logger.a.modes[1]: expected one of min, max, got \"mix\"; did you mean" },
        { RICH "timeout: soon}}\n", NULL,
          "logger.a.timeout: expected a duration (90s, 1h30m, 00:15:00), got \"soon\"" },
        { RICH "limit: 0}}\n", NULL,
          "logger.a.limit: expected a size (512, 64MiB, 2GB) from 1 to 1000000000000, got 0" },
        { RICH "maybe_count: 11}}\n", NULL,
          "logger.a.maybe_count: expected an integer from 0 to 10 or null, got 11" },
        { RICH "filters: [flip, null]}}\n", NULL, "logger.a.filters[1]: expected a transform" },
    };

    (void)unused;
    run(cases, KILN_COUNT(cases));
}

static void test_what_to_write_instead(void **unused)
{
    static const Case cases[] = {
        { ROOT, "model.depth=1e3", "got 1e3; write 1000\n" },
        { ROOT, "model.depth=3.0", "got 3.0; write 3\n" },
        { ROOT, "model.depth='3'", "got \"3\"; it is text because of the quotes, write 3\n" },
        { ROOT, "lr='0.1'", "got \"0.1\"; it is text because of the quotes, write 0.1\n" },
        { ROOT "x: 1\n", "lr=0.${x}", "got \"0.1\"; a value composed from ${...} is text" },
        { ROOT, "task.optimizer.nesterov='yes please'", "got \"yes please\"; write true\n" },
        { ROOT, "task.optimizer.nesterov=Flase", "got \"Flase\"; write false\n" },
        { ROOT, "task.optimizer.nesterov=1", "got 1; write true\n" },
        { ROOT, "task.optimizer.nesterov=maybe", "expected true or false, got \"maybe\"\n" },
        { ROOT, "++model.smoothing=1", "did you mean task.smoothing?\n  its options: depth" },
        { ROOT, "++model.max_epochs=1", "did you mean trainer.max_epochs?" },
        { ROOT, "++task.depth=1", "did you mean model.depth?" },
    };

    (void)unused;
    run(cases, KILN_COUNT(cases));
}

static void test_a_component_checks_across_options(void **unused)
{
    static const Case cases[] = {
        { RICH "maybe_count: 9}}\n", NULL, "" },
        { RICH "maybe_count: 9, window: {length: 10}}}\n", NULL,
          ".yaml:4:63: logger.a.window.length: 10 is more than maybe_count, 9\n" },
        { RICH "maybe_count: 9}}\nn: 11\n", "logger.a.window.length=${n}",
          ".yaml:5:4: logger.a.window.length: 11 is more than maybe_count, 9\n"
          "  through ${n} in argument 1" },
        { RICH "maybe_count: 7}}\n", NULL, /* 8 is the default: the place is the component's */
          ".yaml:4:24: logger.a.window.length: 8 is more than maybe_count, 7\n" },
        { RICH "maybe_count: 7, named: {k: {name: x, filter: flop}}}}\n", NULL, "8 is more than" },
    };

    (void)unused;
    run(cases, KILN_COUNT(cases));
    /* Not when an option is wrong for itself. */
    char *text = check(RICH "maybe_count: 7, limit: 0}}\n", NULL);
    assert_null(strstr(text, "more than"));
    free(text);
}

/* A wrong value is reported where it was written, with the references that lead to it. */
static void test_through_references(void **unused)
{
    static const Case cases[] = {
        { ROOT "a: \"${b}\"\nb: \"${c}\"\nc: fast\n", "lr=${a}",
          ".yaml:6:4: task.optimizer.lr: expected a number, got \"fast\"\n"
          "  through ${lr} in default of optimizer/sgd\n  and ${a} in argument 1 `lr=${a}`\n"
          "  and ${b} in " },
        { RICH "window: \"${w}\"}}\nw: {pad: {left: x}}\n", NULL,
          ".yaml:5:17: logger.a.window.pad.left: expected an integer, got \"x\"\n"
          "  through ${w} in " },
        { RICH "window: \"${w}\"}}\nw: {pad: {left: \"${n}\"}}\nn: 77\n", NULL,
          ".yaml:6:4: logger.a.window.pad.left: expected an integer from 0 to 9, got 77\n"
          "  through ${n} in " },
        { RICH "window: \"${w}\"}}\nw: {lenght: 3}\n", NULL,
          ".yaml:5:5: logger.a.window.lenght: unknown option of window of logger/rich" },
        { RICH "chosen: \"${s}\"}}\ns: [1, x]\n", NULL,
          ".yaml:5:8: logger.a.chosen[1]: expected an integer, got \"x\"\n  through ${s} in " },
        { RICH "stages: \"${s}\"}}\ns: [{name: x, width: 0}]\n", NULL,
          ".yaml:5:22: logger.a.stages[0].width: expected an integer from 1 to 99, got 0\n"
          "  through ${s} in " },
        { RICH "counts: \"${s}\"}}\ns: {a: \"${n}\"}\nn: 1.5\n", NULL,
          ".yaml:6:4: logger.a.counts.a: expected an integer, got 1.5\n  through ${n} in " },
        { RICH "counts: {a: \"${s.t[0]}\"}}}\ns: \"${u}\"\nu: {t: [x]}\n", NULL,
          ".yaml:6:9: logger.a.counts.a: expected an integer, got \"x\"\n"
          "  through ${s.t[0]} in " },
        { ROOT "x: 1y\n", "model.depth=2${x}",
          "argument 1 `model.depth=2${x}`: model.depth: expected an integer, got \"21y\"\n"
          "  with ${x} from /tmp/" },
        { ROOT "x: 1y\nz: \"${x}\"\n", "model.depth=2${z}${oc.env:NO,0}",
          "got \"21y0\"\n  with ${z} from /tmp/" },
        { RICH "counts: {a: \"${s.t}\"}}}\ns: \"${u}\"\nu: {t: x}\n", NULL,
          "\n  and ${u} in /tmp/" },
    };

    (void)unused;
    run(cases, KILN_COUNT(cases));
}

static void test_keys_that_nothing_reads(void **unused)
{
    static const Case cases[] = {
        { ROOT "sed: 3\n", NULL,
          ".yaml:4:1: sed: nothing reads this key: it is no option, and no ${sed} refers to it; "
          "did "
          "you mean \"seed\"?" },
        { ROOT "trainr: {max_epochs: 3}\n", NULL, "did you mean \"trainer\"?" },
        { ROOT "trainr: {}\n", NULL, "did you mean \"trainer\"?" },
        { ROOT "learning_rate: 3\n", NULL, "learning_rate: nothing reads this key" },
        { ROOT "learning_rate: 3\n", NULL, "did you mean \"lr\"?" },
        { ROOT "learning_rate: 3\n", "learning_rate=2", "did you mean \"lr\"?" },
        { ROOT "dropout: 0.5\n", NULL, "did you mean \"model.dropout\"?" },
        { ROOT "num_epochs: 5\n", NULL, "did you mean \"trainer.max_epochs\"?" },
        { ROOT "mine: 3\n", NULL, "refers to it; remove it, or put it below `notes`" },
        { ROOT "mine: {a: 1, b: \"${mine.a}\"}\n", NULL, "mine: nothing reads this key" },
        { ROOT "sed: 3\n", "lr=${seda}", "there is no key 'seda'" },
        { ROOT "sed: 3\n", "lr=${model.sed}", "sed: nothing reads this key" },
        { ROOT "trainr: &t {max_epochs: 3}\nmine: 3\n", NULL, "mine: nothing reads" },
        /* What is read, by whom ever, */
        { ROOT "sed: 3\n", "seed=${sed}", "" },
        { ROOT "sed: 3\n", "lr=${oc.select:sed,1}", "" },
        { ROOT "sed: 3\n", "lr=${eval: 1 if true else ${sed}}", "" },
        { ROOT "sed: 3\nseed: \"${sed}\"\n", "seed=1", "" }, /* it was used */
        { ROOT "sed: {a: 3}\n", "seed=${sed.a}", "" },
        { ROOT "a: {x: \"${..sed}\"}\nsed: 3\n", "seed=${a.x}", "" },
        { ROOT "small: 1\nlarge: 2\nsize: small\n", "seed=${${size}}", "" },
        { ROOT "in_small: 1\nin_large: 2\nsize: small\n", "seed=${in_${size}}", "" },
        { ROOT "small: 1\nlarge: 2\nsize: small\n", "seed=${oc.select:${size}}", "" },
        { ROOT "sed: &s {p: 0.1}\nnotes: {<<: *s}\n", NULL, "" },
        /* what says something to people, what is empty, what an argument adds, */
        { ROOT "name: a\ntags: [x]\nnotes: {mine: 3}\ndescription: d\n", NULL, "" },
        { ROOT "sampling: {}\n", NULL, "" },
        { ROOT, "+sed=3", "" },
        /* and components that another task may refer to. */
        { ROOT "mine: {_target_: net}\nmodel2: {_target_: net}\n", NULL, "" },
    };

    (void)unused;
    run(cases, KILN_COUNT(cases));
}

static void test_hidden_sections(void **unused)
{
    static const Case cases[] = {
        { ROOT "kiln: {run: {dri: x}}\n", NULL,
          ".yaml:4:14: kiln.run.dri: unknown option of kiln.run\n  its options: max_epochs" },
        { ROOT "kiln: {run: {max_epochs: x}}\n", NULL,
          ".yaml:4:26: kiln.run.max_epochs: expected an integer, got \"x\"" },
        { ROOT, "kiln.run.max_epoch=3",
          "kiln.run has no key 'max_epoch'; did you mean 'kiln.run.max_epochs'?" },
    };

    (void)unused;
    run(cases, KILN_COUNT(cases));
}

static size_t lines(const char *text, const char *part)
{
    size_t n = 0;

    for (const char *p = text; (p = strstr(p, part)) != NULL; p += strlen(part))
        n++;
    return n;
}

static void test_all_in_file_order(void **unused)
{
    static const char yaml[] = "trainer:\n"
                               "  max_epochs: many\n"
                               "task:\n"
                               "  _target_: toy\n"
                               "  smoothing: 7\n"
                               "  transforms: [flop]\n"
                               "model:\n"
                               "  _target_: net\n"
                               "  depth: deep\n"
                               "lr: slow\n"
                               "seed: -1\n";
    static const char *const want[] = {
        ".yaml:2:15: trainer.max_epochs: expected an integer, got \"many\"",
        ".yaml:5:14: task.smoothing: expected a number from 0 to 1, got 7",
        ".yaml:6:16: task.transforms[0]: there is no transform \"flop\"; did you mean \"flip\"?",
        ".yaml:9:10: model.depth: expected an integer, got \"deep\"",
        ".yaml:10:5: task.optimizer.lr: expected a number, got \"slow\"",
        ".yaml:11:7: seed: expected an integer from 0 to 1000000000000000, got -1",
    };
    char *text = check(yaml, NULL);
    const char *at = text;

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(want); i++) {
        const char *found = strstr(text, want[i]);

        if (found == NULL)
            fail_msg("no \"%s\" in\n%s", want[i], text);
        if (found < at)
            fail_msg("\"%s\" is out of order in\n%s", want[i], text);
        at = found;
    }
    assert_int_equal(lines(text, "expected an integer"), 3);
    free(text);
}

static void test_shared_nodes_are_checked_once(void **unused)
{
    const char *overrides[] = { "task.teacher=${model}", "model.depth=0", NULL };
    char *text = check(ROOT, overrides);

    (void)unused;
    assert_int_equal(lines(text, "depth"), 2); /* the message and the argument */
    free(text);
}

static void test_a_broken_reference_is_reported_at_its_line(void **unused)
{
    char *text = check("task: {_target_: toy}\nmodel: {_target_: net}\nlr: ${learning_rate}\n",
                       NULL);

    (void)unused;
    if (lines(text, "learning_rate") == 0 || lines(text, "task.optimizer.lr") != 0)
        fail_msg("%s", text);
    free(text);
    text = check("task: {_target_: toy}\nmodel: {_target_: net}\nlr: ${a}\na: ${lr}\n", NULL);
    assert_true(strlen(text) > 0);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sound),
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_nested_options),
        cmocka_unit_test(test_what_to_write_instead),
        cmocka_unit_test(test_a_component_checks_across_options),
        cmocka_unit_test(test_through_references),
        cmocka_unit_test(test_keys_that_nothing_reads),
        cmocka_unit_test(test_hidden_sections),
        cmocka_unit_test(test_all_in_file_order),
        cmocka_unit_test(test_shared_nodes_are_checked_once),
        cmocka_unit_test(test_a_broken_reference_is_reported_at_its_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

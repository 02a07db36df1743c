/* The report of a sweep: importance of known functions, suggestions, the best config. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/file.h"
#include "base/text.h"
#include "sweep/report/sweep_report.h"

/* ---- Importance of functions that are known -------------------------------------------------- */

enum { MOST = 1000, DIMS = 3 };

typedef double Function(const double *x);

/* Evaluate a function at n points that are spread evenly (Philox), and analyse it. */
static KilnFanova analyse(Function *function, size_t n, const size_t *categories, KilnArena *arena)
{
    static double x[MOST * DIMS], y[MOST];
    static const double halves[] = { 0.5, 0.25, 0.25 };
    const double *const weights[] = { halves, halves, halves };
    KilnTreeData data = { .n = n, .dims = DIMS, .x = x, .y = y, .categories = categories };
    KilnFanova ret = { .single = NULL };
    KilnRng rng;

    kiln_rng_init(&rng, 7, KILN_RNG_SEARCH, 0, 0);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < DIMS; k++) {
            const double u = (double)kiln_rng_uniform(&rng);

            x[i * DIMS + k] = categories[k] == 0 ? u : u < 0.5 ? 0.0 : u < 0.75 ? 1.0 : 2.0;
        }
        y[i] = function(x + i * DIMS);
    }
    assert_int_equal(kiln_fanova(&data, weights, arena, &ret, NULL), KILN_OK);
    return ret;
}

static const size_t ordered[DIMS] = { 0 };

static double additive(const double *x)
{
    return 3.0 * x[0] + 2.0 * x[1];
}

/* The variance of a·x is a²/12: shares of 9/13 and 4/13. */
static void shares_of_an_additive_function(void **unused)
{
    KilnArena arena = { 0 };
    KilnFanova found = analyse(additive, 400, ordered, &arena);

    (void)unused;
    assert_true(fabs(found.single[0] - 9.0 / 13.0) < 0.04);
    assert_true(fabs(found.single[1] - 4.0 / 13.0) < 0.04);
    assert_true(found.single[2] < 0.01);
    assert_true(found.pairs[0 * DIMS + 1] < 0.02);
    assert_true(found.pairs[0 * DIMS + 2] < 0.01);
    assert_true(found.explained > 0.95);

    KilnFanova again = analyse(additive, 400, ordered, &arena);
    assert_memory_equal(found.single, again.single, DIMS * sizeof(double));
    assert_memory_equal(found.pairs, again.pairs, DIMS * DIMS * sizeof(double));

    KilnFanova few = analyse(additive, 16, ordered, &arena);
    assert_true(few.single[0] > few.single[1] && few.single[1] > few.single[2]);
    kiln_arena_release(&arena);
}

static double interaction(const double *x)
{
    return (x[0] < 0.5) == (x[1] < 0.5) ? 1.0 : -1.0;
}

/* Alone neither of the two has any effect. */
static void a_pure_interaction(void **unused)
{
    KilnArena arena = { 0 };
    KilnFanova found = analyse(interaction, 400, ordered, &arena);

    (void)unused;
    assert_true(found.single[0] < 0.06 && found.single[1] < 0.06 && found.single[2] < 0.02);
    assert_true(found.pairs[0 * DIMS + 1] > 0.85);
    assert_true(found.pairs[0 * DIMS + 1] == found.pairs[1 * DIMS + 0]);
    assert_true(found.pairs[0 * DIMS + 2] < 0.04 && found.pairs[1 * DIMS + 2] < 0.04);
    kiln_arena_release(&arena);
}

/* A category with the probabilities 1/2, 1/4, 1/4 and the values 0, 1, 3: mean 1, variance 3/2. The
 * variance of 3·x is 3/4. */
static double mixed(const double *x)
{
    static const double values[] = { 0.0, 1.0, 3.0 };

    return values[(size_t)x[1]] + 3.0 * x[0];
}

static void categories_by_their_probabilities(void **unused)
{
    static const size_t categories[DIMS] = { 0, 3, 3 };
    KilnArena arena = { 0 };
    KilnFanova found = analyse(mixed, 400, categories, &arena);

    (void)unused;
    assert_true(fabs(found.single[1] - 2.0 / 3.0) < 0.05);
    assert_true(fabs(found.single[0] - 1.0 / 3.0) < 0.05);
    assert_true(found.single[2] < 0.01 && found.pairs[0 * DIMS + 1] < 0.03);
    kiln_arena_release(&arena);
}

static double constant(const double *x)
{
    (void)x;
    return 2.0;
}

static void a_constant_has_no_shares(void **unused)
{
    KilnArena arena = { 0 };
    KilnFanova found = analyse(constant, 20, ordered, &arena);

    (void)unused;
    for (size_t i = 0; i < DIMS; i++)
        assert_true(found.single[i] == 0.0);
    kiln_arena_release(&arena);
}

/* ---- Reports of journals ----------------------------------------------------------------------
 */

static char folder[] = "/tmp/kiln-test-XXXXXX";

static int make_folder(void **unused)
{
    (void)unused;
    strcpy(folder + sizeof(folder) - 7, "XXXXXX");
    return mkdtemp(folder) != NULL ? 0 : 1;
}

static int remove_folder(void **unused)
{
    (void)unused;
    return kiln_path_remove(folder, NULL) < 0;
}

static void write_file(const char *name, const char *text)
{
    char *path = kiln_path_join(folder, name);

    assert_int_equal(kiln_dir_make_parent(path, NULL), KILN_OK);
    assert_int_equal(kiln_file_write(path, text, strlen(text), NULL), KILN_OK);
    free(path);
}

/* Append a job that has ended with a loss. */
static void put_job(KilnText *journal, size_t number, const char *overrides, double loss)
{
    kiln_text_printf(journal, "{\"event\":\"submitted\",\"job\":%zu,\"overrides\":[%s]}\n", number,
                     overrides);
    kiln_text_printf(journal, "{\"event\":\"started\",\"job\":%zu,\"dir\":\"%zu\"}\n", number,
                     number);
    kiln_text_printf(journal,
                     "{\"event\":\"ended\",\"job\":%zu,\"status\":\"ok\",\"seconds\":1,\"metrics\":"
                     "{\"val/loss\":{\"last\":%g,\"best\":%g,\"mode\":\"min\"}}}\n",
                     number, loss, loss);
}

/* A space of lr, from 0.001 to 0.1, wd and model, of which mlp has a width. */
static void put_begun(KilnText *journal)
{
    kiln_text_append(
        journal,
        "{\"event\":\"begun\",\"cwd\":\"/x\",\"config_name\":\"config\",\"metric\":\"val/loss\","
        "\"arguments\":[\"lr=tag(log,interval(0.001,0.1))\",\"wd=0,1,2\",\"kiln.sweep.dir=s\"],"
        "\"space\":[{\"key\":\"lr\",\"low\":0.001,\"high\":0.1,\"int\":false,\"log\":true},"
        "{\"key\":\"+wd\",\"overrides\":[\"+wd=0\",\"+wd=1\",\"+wd=2\"],\"leader\":1},"
        "{\"key\":\"model\",\"overrides\":[\"model=cnn\",\"model=mlp\"],\"leader\":2},"
        "{\"key\":\"model.width\",\"overrides\":[\"model.width=8\",\"model.width=4\"],"
        "\"leader\":3,\"parent\":2,\"active_for\":[false,true]}]}\n");
}

/* The loss falls with lr; the other parameters have no effect. */
static void write_sweep(void)
{
    KilnText journal = { 0 };
    char overrides[128];

    put_begun(&journal);
    for (size_t i = 0; i < 24; i++) {
        const double lr = 0.001 * pow(100.0, ((double)(7 * i % 24) + 0.5) / 24.0);

        snprintf(overrides, sizeof(overrides), "\"lr=%.17g\",\"+wd=%zu\",\"model=%s\"%s", lr, i % 3,
                 i % 2 == 0 ? "cnn" : "mlp",
                 i % 2 == 0         ? ""
                 : (i / 2) % 2 == 0 ? ",\"model.width=8\""
                                    : ",\"model.width=4\"");
        put_job(&journal, i, overrides, -log(lr));
    }
    kiln_text_append(&journal, "{\"event\":\"ended\",\"job\":1"); /* being written */
    write_file("journal.jsonl", journal.data);
    kiln_text_release(&journal);
}

static void find_suggestion(const KilnSweepReport *report, KilnSuggestionKind kind, const char *key,
                            const char *want)
{
    for (size_t i = 0; i < report->n_suggestions; i++) {
        const KilnReportSuggestion *suggestion = &report->suggestions[i];

        if (suggestion->kind == kind &&
            strcmp(report->parameters[suggestion->parameter].key, key) == 0) {
            if (strstr(suggestion->text, want) == NULL)
                fail_msg("%s: %s", key, suggestion->text);
            return;
        }
    }
    fail_msg("no suggestion for %s", key);
}

static void check_command(const KilnSweepReport *report, const char *want)
{
    for (size_t i = 0; i < report->n_commands; i++)
        if (strcmp(report->commands[i].line, want) == 0)
            return;
    fail_msg("no command %s", want);
}

static void values_at_an_end(void **unused)
{
    KilnSweepReport report;
    KilnError err = { 0 };

    (void)unused;
    write_sweep();
    if (kiln_sweep_report_open(folder, &report, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(report.n_parameters, 4);
    assert_int_equal(report.n_points, 24);
    assert_true(report.parameters[3].inactive == 0.5);
    assert_string_equal(report.parameters[3].texts[0], "4"); /* numbers in their order */
    assert_true(isnan(kiln_sweep_report_number(&report, 0, 3)));
    assert_true(report.parameters[0].importance > 0.9);
    for (size_t i = 1; i < 4; i++)
        assert_true(report.parameters[i].importance < 0.02);
    find_suggestion(&report, KILN_SUGGEST_WIDEN, "lr",
                    "the best 3 of 24 jobs are at the upper end, 0.1");
    find_suggestion(&report, KILN_SUGGEST_FIX, "wd", "it hardly matters");
    find_suggestion(&report, KILN_SUGGEST_FIX, "model", "it hardly matters");
    assert_int_equal(report.suggestions[0].kind, KILN_SUGGEST_WIDEN);
    assert_true(report.n_suggestions == 1 || report.suggestions[1].kind == KILN_SUGGEST_FIX);
    check_command(&report, "train -m 'lr=tag(log,interval(0.001,1))' wd=0,1,2");
    kiln_sweep_report_release(&report);
}

/* ---- The best config ----------------------------------------------------------------------------
 */

static void the_best_config(void **unused)
{
    KilnSweepReport report;
    KilnError err = { 0 };
    KilnText journal = { 0 };
    char *text = NULL;

    (void)unused;
    kiln_text_append(&journal,
                     "{\"event\":\"begun\",\"cwd\":\"/x\",\"metric\":\"val/loss\",\"space\":[]}\n");
    put_job(&journal, 0,
            "\"model=cnn\",\"+logger=csv\",\"lr=0.01\",\"+note=a: b\",\"tags+=x\",\"list[0].a=1\","
            "\"~old\",\"map:={a: 1}\",\"experiment=mnist/cnn\"",
            0.5);
    write_file("journal.jsonl", journal.data);
    kiln_text_release(&journal);
    write_file("0/.kiln/job.yaml", "lr: 0.01\nnote: 'a: b'\ntags: [y, x]\nlist: [{a: 1, b: 2}]\n"
                                   "map: {a: 1}\ntrainer: {threads: 2}\n");
    write_file("0/.kiln/kiln.yaml",
               "kiln: {runtime: {choices: {model: cnn, logger: csv, experiment: mnist/cnn}}}\n");
    if (kiln_sweep_report_open(folder, &report, &err) < 0 ||
        kiln_sweep_report_best_config(&report, "best", &text, &err) < 0)
        fail_msg("%s", err.text);
    static const char *const lines[] = {
        "# @package _global_\n",
        "\n#   train experiment=best\n",
        "\ndefaults:\n  - override /model: cnn ",
        "\n  - /logger: csv ",
        "\n  - mnist/cnn\n",
        "\nlr: 0.01 ",
        "\nnote: 'a: b' ",
        "\ntags: ['y', 'x'] ",
        "\nlist: [{'a': 1, 'b': 2}] ",
        "\nold: !delete ",
        "\nmap: !replace {'a': 1} ",
        "\ntrainer:\n  threads: 2 ",
    };
    for (size_t i = 0; i < KILN_COUNT(lines); i++)
        if (strstr(text, lines[i]) == NULL)
            fail_msg("no %s in:\n%s", lines[i], text);
    free(text);
    kiln_sweep_report_release(&report);
}

/* ---- Errors -------------------------------------------------------------------------------------
 */

static void check_error(const char *journal, KilnStatus want, const char *says)
{
    KilnSweepReport report;
    KilnError err = { 0 };

    write_file("journal.jsonl", journal);
    assert_int_equal(kiln_sweep_report_open(folder, &report, &err), want);
    if (strstr(err.text, says) == NULL)
        fail_msg("no %s in: %s", says, err.text);
    kiln_sweep_report_release(&report);
}

static void damaged_journals(void **unused)
{
    (void)unused;
    check_error("", KILN_E_FORMAT, "does not say how the sweep began");
    check_error("{\"event\":\"begun\",\"space\":[]}\n{torn\n", KILN_E_FORMAT,
                "journal.jsonl:2: the line is damaged: ");
    check_error("{\"event\":\"begun\",\"space\":[]}\n[]\n", KILN_E_FORMAT, "it is no object");
    check_error("{\"event\":\"begun\",\"space\":[]}\n{\"event\":\"submitted\",\"job\":3}\n",
                KILN_E_FORMAT, "journal.jsonl:2: the journal is damaged: job 3 comes where job 0");
    check_error("{\"event\":\"begun\",\"space\":7}\n", KILN_E_FORMAT, "the space of the sweep");
    check_error(
        "{\"event\":\"begun\",\"space\":[{\"key\":\"a\",\"overrides\":[\"a=1\"],\"leader\":4}]}"
        "\n",
        KILN_E_FORMAT, "an axis varies with a later one");
    check_error(
        "{\"event\":\"begun\",\"space\":[{\"key\":\"a\",\"overrides\":[\"a=1\"],\"parent\":4,"
        "\"active_for\":[true]}]}\n",
        KILN_E_FORMAT, "a condition does not fit its parent");
    check_error("{\"event\":\"begun\",\"space\":[]}\n", KILN_E_MISSING, "names the metric");
    check_error("{\"event\":\"begun\",\"space\":[],\"metric\":\"loss\"}\n", KILN_E_MISSING,
                "no job has finished");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_of_an_additive_function),
        cmocka_unit_test(a_pure_interaction),
        cmocka_unit_test(categories_by_their_probabilities),
        cmocka_unit_test(a_constant_has_no_shares),
        cmocka_unit_test_setup_teardown(values_at_an_end, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(the_best_config, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(damaged_journals, make_folder, remove_folder),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

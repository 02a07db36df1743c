/* Runs over arrays of the embedding program, with the functions of kiln_embed.h alone: equal bytes,
 * a resumed run, evaluation, silence, errors. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kiln_embed.h"
#include "tests/support/cmocka.h"
#include "tests/support/run_fixture.h"

enum { N = 60, COLUMNS = 3, TESTED = 12 };

static float rows[N + TESTED][COLUMNS];
static int32_t labels[N + TESTED];

static const KilnFeature features[] = {
    { .name = "row", .content = KILN_ROW, .shape = { 1, { COLUMNS } } },
    { .name = "label", .content = KILN_LABEL, .dtype = KILN_I32 },
};
static const KilnArray train[] = {
    { .name = "row", .data = rows },
    { .name = "label", .dtype = KILN_I32, .data = labels },
};
static const KilnArray test[] = {
    { .name = "row", .data = rows + N },
    { .name = "label", .dtype = KILN_I32, .data = labels + N },
};
static const KilnMemoryData data = {
    .spec = { .features = features, .n_features = 2, .n_classes = 2 },
    .sets = { [KILN_TRAIN] = { .n = N, .arrays = train, .n_arrays = 2 },
              [KILN_TEST] = { .n = TESTED, .arrays = test, .n_arrays = 2 } },
};

static int begin(void **unused)
{
    for (int i = 0; i < N + TESTED; i++) {
        for (int c = 0; c < COLUMNS; c++)
            rows[i][c] = (float)((7 * i + 11 * c * i) % 23 - 3 * c);
        labels[i] = rows[i][0] + rows[i][1] > 20.0f;
    }
    return make_work(unused);
}

typedef struct Run {
    const char *name;
    const char *more;           /* a further override; NULL: none */
    const KilnMemoryData *data; /* NULL: `data` */
    int64_t batches;            /* until it is interrupted; 0: never */
    const char *resume;         /* NULL: a new run */
    const char *ckpt_path;      /* evaluate it instead */
    char *json;                 /* of the evaluation */
    KilnRunResult result;
    KilnError err;
} Run;

static bool may_continue(void *ctx, KilnTrainer *trainer)
{
    Run *run = ctx;

    (void)trainer;
    return run->batches-- != 0;
}

static KilnStatus run_config(Run *run, const KilnRegistry *registry, KilnConfig *config,
                             const char *const *overrides)
{
    const KilnRunEnv env = {
        .registry = registry,
        .overrides = overrides,
        .data = run->data != NULL ? run->data : &data,
        .may_continue = run->batches > 0 ? may_continue : NULL,
        .ctx = run,
        .resume = run->resume,
    };

    return run->ckpt_path != NULL ? kiln_run_eval(config, &env, KILN_TEST, &run->json, &run->err)
                                  : kiln_run_fit(config, &env, &run->result, &run->err);
}

/* As a program would: compose, check, run. */
static KilnStatus go(Run *run)
{
    char dir[128], ckpt_path[256];
    const char *const overrides[] = {
        "task=classification",
        "datamodule=arrays",
        "model=mlp",
        "model.hidden=[5]",
        "datamodule.standardize=true",
        "batch_size=8",
        "trainer.max_epochs=4",
        "trainer.threads=1",
        dir,
        ckpt_path,
        run->more,
        NULL,
    };
    KilnRegistry *registry = NULL;
    KilnErrors *errors = NULL;
    KilnConfig *config = NULL;

    snprintf(dir, sizeof(dir), "kiln.run.dir=%s/%s", work, run->name);
    snprintf(ckpt_path, sizeof(ckpt_path), "ckpt_path=%s",
             run->ckpt_path != NULL ? run->ckpt_path : "null");
    assert_int_equal(kiln_registry_new(&registry, NULL), KILN_OK);
    assert_int_equal(kiln_errors_new(&errors), KILN_OK);
    const KilnComposeRequest request = { .overrides = overrides,
                                         .registry = registry,
                                         .sections = kiln_run_sections() };
    if (kiln_compose(&request, &config, errors) < 0 ||
        kiln_config_check(config, registry, errors) < 0)
        fail_msg("%s", kiln_errors_text(errors, 0));
    KilnStatus status = run_config(run, registry, config, overrides);
    kiln_config_free(config);
    kiln_errors_free(errors);
    kiln_registry_free(registry);
    return status;
}

static void go_well(Run *run, const char *status)
{
    if (go(run) < 0)
        fail_msg("%s", run->err.text);
    if (run->ckpt_path == NULL)
        assert_string_equal(run->result.status, status);
}

static void assert_same_weights(const char *a, const char *b)
{
    static const char *const files[] = { "model.safetensors", "trainer.safetensors" };

    for (size_t i = 0; i < KILN_COUNT(files); i++) {
        char left[128], right[128];

        snprintf(left, sizeof(left), "%s/checkpoints/last/%s", a, files[i]);
        snprintf(right, sizeof(right), "%s/checkpoints/last/%s", b, files[i]);
        assert_same_file(left, right);
    }
}

/* Two runs of one process, and one that is interrupted and resumed. */
static void test_same_bytes(void **unused)
{
    char whole[128], part[128];
    Run a = { .name = "a" }, b = { .name = "b" }, c = { .name = "c", .batches = 9 };

    (void)unused;
    snprintf(whole, sizeof(whole), "%s/a", work);
    snprintf(part, sizeof(part), "%s/c", work);
    go_well(&a, "finished");
    go_well(&b, "finished");
    assert_same_weights("a", "b");
    go_well(&c, "interrupted");
    Run rest = { .name = "c", .resume = part };
    go_well(&rest, "finished");
    assert_same_weights("a", "c");
    assert_same_rows("a", "c");
    Run tested = { .name = "t", .ckpt_path = whole };
    go_well(&tested, "");
    assert_non_null(strstr(tested.json, "test/accuracy"));
    free(tested.json);
}

/* Without a console a run writes nothing to the program's streams, whatever happens. */
static void test_silence_and_errors(void **unused)
{
    static const int32_t beyond[N] = { [17] = 2 };
    static const KilnArray wrong[] = {
        { .name = "row", .data = rows },
        { .name = "label", .dtype = KILN_I32, .data = beyond },
    };
    KilnMemoryData bad = data;
    Run good = { .name = "good" }, refused = { .name = "refused", .data = &bad };
    Run misfit = { .name = "misfit", .more = "task=vision" };
    char path[128];
    int saved[2];

    (void)unused;
    bad.sets[KILN_TRAIN].arrays = wrong;
    snprintf(path, sizeof(path), "%s/output", work);
    fflush(NULL);
    for (int fd = 1; fd <= 2; fd++) {
        saved[fd - 1] = dup(fd);
        assert_non_null(freopen(path, "a", fd == 1 ? stdout : stderr));
    }
    const KilnStatus status[] = { go(&good), go(&refused), go(&misfit) };
    fflush(NULL);
    FILE *file = fopen(path, "r");
    const int first = file != NULL ? fgetc(file) : 0;
    for (int fd = 1; fd <= 2; fd++) {
        dup2(saved[fd - 1], fd);
        close(saved[fd - 1]);
    }
    if (file != NULL)
        fclose(file);
    assert_int_equal(first, EOF);
    assert_int_equal(status[0], KILN_OK);
    assert_int_equal(status[1], KILN_E_RANGE);
    assert_non_null(strstr(refused.err.text,
                           "array \"label\" of the train set: sample 17: id 2; expected 0 to 1"));
    assert_string_equal(refused.result.run_dir, "");
    assert_int_equal(status[2], KILN_E_SHAPE);
    assert_non_null(strstr(misfit.err.text, "feeds its model an image"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_same_bytes, begin, remove_work),
        cmocka_unit_test_setup_teardown(test_silence_and_errors, begin, remove_work),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

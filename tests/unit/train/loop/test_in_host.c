/* What a program that embeds kiln relies on: runs at the same time in several threads, processes
 * forked after use, and threads, signals and settings of its own that stay as they are. */
#include <fenv.h>
#include <locale.h>
#include <omp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/system/file.h"
#include "tests/support/cmocka.h"
#include "tests/support/run_fixture.h"

/* Convolutions, products and loader threads; two threads compute. */
static const char *const base[] = {
    "model=cnn",
    "datamodule.train_count=256",
    "datamodule.val_count=64",
    "datamodule.batch_size=32",
    "trainer.max_epochs=2",
    "trainer.threads=2",
    "trainer.num_workers=1",
    "test=false",
};
enum { BASE = sizeof(base) / sizeof(base[0]), POINTS = 3, PIXELS = 28 * 28 };

typedef struct Run {
    const char *name;
    KilnStatus status;
    KilnError err;
} Run;

static KilnConfig *compose_digits(const KilnRegistry *registry, const char *const *overrides)
{
    const KilnComposeRequest request = {
        .overrides = overrides,
        .registry = registry,
        .sections = kiln_run_sections(),
    };
    KilnErrors *errors = NULL;
    KilnConfig *ret = NULL;

    if (kiln_errors_new(&errors) < 0 || kiln_compose(&request, &ret, errors) < 0 ||
        kiln_config_check(ret, registry, errors) < 0)
        (void)fprintf(stderr, "%s\n", kiln_errors_text(errors, 0));
    kiln_errors_free(errors);
    return ret;
}

/* Train in work/NAME, with everything of its own. */
static void *train(void *arg)
{
    Run *run = arg;
    char dir[192];
    const char *overrides[BASE + 2] = { dir };
    KilnRegistry *registry = NULL;

    snprintf(dir, sizeof(dir), "kiln.run.dir=%s/%s", work, run->name);
    memcpy(overrides + 1, base, sizeof(base));
    run->status = kiln_registry_new(&registry, &run->err);
    if (run->status >= 0) {
        const KilnRunEnv env = { .registry = registry, .overrides = overrides };
        KilnConfig *config = compose_digits(registry, overrides);

        run->status = kiln_run_fit(config, &env, NULL, &run->err);
        kiln_config_free(config);
    }
    kiln_registry_free(registry);
    return NULL;
}

static void train_well(const char *name)
{
    Run run = { .name = name };

    train(&run);
    if (run.status < 0)
        fail_msg("%s", run.err.text);
}

static void assert_same_weights(const char *a, const char *b)
{
    char paths[2][128];

    snprintf(paths[0], sizeof(paths[0]), "%s/checkpoints/last/trainer.safetensors", a);
    snprintf(paths[1], sizeof(paths[1]), "%s/checkpoints/last/trainer.safetensors", b);
    assert_same_file(paths[0], paths[1]);
    assert_same_rows(a, b);
}

/* One after the other, and three at once. */
static void test_runs_at_once(void **unused)
{
    Run runs[] = { { .name = "b" }, { .name = "c" }, { .name = "d" } };
    pthread_t threads[KILN_COUNT(runs)];

    (void)unused;
    train_well("a");
    train_well("again");
    assert_same_weights("a", "again");
    for (size_t i = 0; i < KILN_COUNT(runs); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, train, &runs[i]), 0);
    for (size_t i = 0; i < KILN_COUNT(runs); i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (size_t i = 0; i < KILN_COUNT(runs); i++) {
        if (runs[i].status < 0)
            fail_msg("%s", runs[i].err.text);
        assert_same_weights("a", runs[i].name);
    }
}

/* ---- Forks --------------------------------------------------------------------------------- */

/* The first probability of each of some points. */
static KilnStatus predict(KilnPredictor *predictor, float ret[POINTS], KilnError *err)
{
    static float pixels[POINTS][PIXELS];
    KilnRawValue values[POINTS];
    KilnRawSample samples[POINTS];
    KilnPredictions *results = NULL;

    for (int i = 0; i < POINTS; i++) {
        for (int j = 0; j < PIXELS; j++)
            pixels[i][j] = (float)((i + 1) * j % 17) / 16.0f;
        values[i] = (KilnRawValue) { .type = KILN_RAW_ARRAY,
                                     .data = pixels[i],
                                     .shape = { 3, { 28, 28, 1 } } };
        samples[i] = (KilnRawSample) { .values = &values[i], .n_values = 1 };
    }
    KilnStatus status = kiln_predict(predictor, samples, POINTS, &results, err);
    for (size_t i = 0; i < POINTS && status >= 0; i++) {
        status = results->list[i].status;
        if (status >= 0)
            ret[i] = results->list[i].outputs[0].data[0];
        else
            kiln_error_set(err, status, "%s", results->list[i].error);
    }
    kiln_predictions_free(results);
    return status;
}

/* 0: the child trains the same bytes, and predicts the same with its parent's predictor. It has no
 * cmocka of its own to fail. */
static int child(KilnPredictor *predictor, const float want[POINTS])
{
    float got[POINTS] = { 0 };
    Run run = { .name = "child" };

    alarm(120); /* a process that waits for threads it does not have would wait for ever */
    if (predict(predictor, got, NULL) < 0 || memcmp(want, got, sizeof(got)) != 0)
        return 1;
    train(&run);
    return run.status < 0 ? 2 : 0;
}

static void test_fork(void **unused)
{
    float before[POINTS] = { 0 }, after[POINTS] = { 0 };
    KilnPredictor *predictor = NULL;
    KilnRegistry *registry = NULL;
    KilnError err = { 0 };
    char path[128];
    int status = -1;

    (void)unused;
    train_well("parent");
    snprintf(path, sizeof(path), "%s/parent", work);
    assert_int_equal(kiln_registry_new(&registry, &err), KILN_OK);
    const KilnPredictorSpec spec = { .registry = registry, .ckpt_path = path };
    if (kiln_predictor_open(&spec, &predictor, &err) < 0 || predict(predictor, before, &err) < 0)
        fail_msg("%s", err.text);
    const pid_t pid = fork();
    if (pid == 0)
        _exit(child(predictor, before));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_same_weights("parent", "child");
    assert_int_equal(predict(predictor, after, &err), KILN_OK);
    assert_memory_equal(before, after, sizeof(before));
    kiln_predictor_free(predictor);
    kiln_registry_free(registry);
}

/* ---- The program's own settings ------------------------------------------------------------ */

enum { SIGNALS = 32 };
typedef struct Settings {
    int threads, dynamic, levels, rounding;
    bool blocked[SIGNALS];
    void (*handlers[SIGNALS])(int);
    mode_t mask;
    char dir[256], locale[64];
} Settings;

static void read_settings(Settings *ret)
{
    char dir[256];
    sigset_t blocked;

    memset(ret, 0, sizeof(*ret)); /* they are compared as bytes */
    ret->threads = omp_get_max_threads();
    ret->dynamic = omp_get_dynamic();
    ret->levels = omp_get_max_active_levels();
    ret->rounding = fegetround();
    assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &blocked), 0);
    for (int i = 1; i < SIGNALS; i++) {
        struct sigaction action;

        assert_int_equal(sigaction(i, NULL, &action), 0);
        ret->handlers[i] = action.sa_handler;
        ret->blocked[i] = sigismember(&blocked, i) == 1;
    }
    ret->mask = umask(0);
    (void)umask(ret->mask);
    assert_non_null(getcwd(dir, sizeof(dir)));
    memcpy(ret->dir, dir, strlen(dir));
    strncpy(ret->locale, setlocale(LC_ALL, NULL), sizeof(ret->locale) - 1);
}

static void test_settings(void **unused)
{
    Settings before, after;
    sigset_t one;

    (void)unused;
    omp_set_num_threads(3);
    sigemptyset(&one);
    sigaddset(&one, SIGUSR2);
    assert_int_equal(pthread_sigmask(SIG_BLOCK, &one, NULL), 0);
    read_settings(&before);
    assert_int_equal(before.threads, 3);
    train_well("run");
    read_settings(&after);
    assert_memory_equal(&before, &after, sizeof(before));
    assert_int_equal(pthread_sigmask(SIG_UNBLOCK, &one, NULL), 0);
}

#define RUN_TEST(name) cmocka_unit_test_setup_teardown(name, make_work, remove_work)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN_TEST(test_runs_at_once),
        RUN_TEST(test_fork),
        RUN_TEST(test_settings),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

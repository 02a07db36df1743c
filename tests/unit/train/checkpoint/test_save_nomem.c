/* Allocations of a save: if one fails, or all after it, the run ends with an error or continues
 * unharmed, and its folder resumes to identical bytes. Counts kiln's own calls of malloc,
 * calloc and realloc (the linker redirects them) and those of jansson. */
#include <jansson.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "tests/support/cmocka.h"
#include "tests/support/failing_malloc.h"
#include "tests/support/run_fixture.h"
#include "train/trainer.h"

#define RUN_TEST(test) cmocka_unit_test_setup_teardown(test, make_work, remove_work)

/* ---- Counting -------------------------------------------------------------------- */

static _Atomic bool armed; /* allocations count; also those of the thread that writes */
static _Atomic long allocations;
static long fail_at; /* the allocation that fails */
static bool all;     /* those after it fail, too */

bool allocation_fails(void)
{
    if (!atomic_load(&armed))
        return false;
    const long n = atomic_fetch_add(&allocations, 1) + 1;
    return n == fail_at || (all && n > fail_at);
}

/* ---- Runs ------------------------------------------------------------------------ */

enum { ARMED_AT = 7, FOLDERS = 2 };

/* Counting begins with the hooks in which callbacks ask for checkpoints. */
static KilnStatus arm(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    (void)self;
    (void)err;
    if (fail_at > 0 && kiln_trainer_global_step(trainer) == ARMED_AT)
        atomic_store(&armed, true);
    return KILN_OK;
}

static void set_state(KilnInstance *self, KilnState *saved)
{
    static const float sums[3] = { 1, 2, 3 };

    (void)self;
    kiln_state_set_i64(saved, "n", 7);
    kiln_state_set_str(saved, "name", "seven");
    kiln_state_set_tensor(saved, "sums", KILN_F32, &KILN_SHAPE(3), sums);
}

static const KilnCallbackOps arming_ops = { .on_train_batch_end = arm, .state_dict = set_state };

static const KilnComponent arming_component = {
    .kind = KILN_KIND_CALLBACK,
    .name = "test_arming",
    .summary = "Count allocations from a step on",
    .ops.callback = &arming_ops,
};

static const KilnComponent *const components[] = { &arming_component, NULL };

#define ARGS                                                                                       \
    "+callbacks.arming._target_=test_arming +callbacks.model_checkpoint.every_n_train_steps=4 "    \
    "trainer.max_steps=10 test=false"

static KilnStatus fit_armed(const char *name, KilnError *err)
{
    KilnRunResult result;
    KilnStatus status;

    atomic_store(&allocations, 0);
    status = fit(name, ARGS, &result, err);
    atomic_store(&armed, false);
    return status;
}

/* From what the run left, with memory. */
static void go_on(const char *name)
{
    char overrides[512], path[128];

    fail_at = 0;
    snprintf(path, sizeof(path), "%s/checkpoints/last/state.json", name);
    if (exists(path)) {
        snprintf(overrides, sizeof(overrides), ARGS " ckpt_path=%s/%s", work, name);
        fit_well(name, overrides, "finished");
    } else {
        snprintf(path, sizeof(path), "%s/%s", work, name);
        assert_int_equal(kiln_path_remove(path, NULL), KILN_OK);
        fit_well(name, ARGS, "finished");
    }
}

/* `lost`: a checkpoint could not be written, and the message says so; what was best may be gone. */
static void assert_same_checkpoints(const char *name, bool lost)
{
    static const char *const files[] = { "last/model.safetensors",   "last/trainer.safetensors",
                                         "last/state.json",          "best/model.safetensors",
                                         "best/trainer.safetensors", "best/state.json" };
    char a[128], b[128];

    for (size_t i = 0; i < (lost ? 1 : KILN_COUNT(files)); i++) {
        snprintf(a, sizeof(a), "whole/checkpoints/%s", files[i]);
        snprintf(b, sizeof(b), "%s/checkpoints/%s", name, files[i]);
        assert_same_file(a, b);
    }
}

/* Fails allocation after allocation until a run has none left that could; the number of them. */
static long fail_each(long step)
{
    for (long n = 1;; n += step) {
        KilnError err = { 0 };
        char name[32];

        fail_at = n;
        snprintf(name, sizeof(name), "run%ld%s", n, all ? "all" : "");
        const KilnStatus status = fit_armed(name, &err);
        const long counted = atomic_load(&allocations);
        if (status < 0 && (status != KILN_E_NOMEM || strstr(err.text, "memory") == NULL))
            fail_msg("allocation %ld%s: status %d: %s", n, all ? " and on" : "", status, err.text);
        if (status < 0)
            go_on(name);
        assert_same_checkpoints(name, strstr(err.text, "was not saved") != NULL);
        if (counted < n)
            return n;
    }
}

static void test_each_allocation(void **unused)
{
    const char *want = getenv("KILN_FAULTS"); /* each with "all", else a sample */
    const long step = want != NULL && strcmp(want, "all") == 0 ? 1 : 7;

    (void)unused;
    extra_components = components;
    fail_at = 0;
    all = false;
    fit_well("whole", ARGS, "finished");
    assert_true(fail_each(step) > 100);
    all = true;
    assert_true(fail_each(5 * step) > 50);
}

int main(void)
{
    static const struct CMUnitTest tests[] = { RUN_TEST(test_each_allocation) };

    json_set_alloc_funcs(__wrap_malloc, free);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

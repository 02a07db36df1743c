/* Threads: a team that stays the same whatever loops ask for, loops inside of loops, and results
 * that are the same bytes for any number of threads. */
#include <dirent.h>
#include <omp.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cpu/parallel.h"
#include "tests/support/cmocka.h"
#include "tests/support/cpu_variants.h"
#include "tests/support/ops/samples.h"

/* ---- The team ------------------------------------------------------------------------- */

enum { TEAM = 4, MOST = 64 };

/* The numbers of this process's threads, in the system's order. */
static int list_threads(long ids[MOST])
{
    DIR *folder = opendir("/proc/self/task");
    int n = 0;

    assert_non_null(folder);
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL && n < MOST;)
        if (entry->d_name[0] != '.')
            ids[n++] = strtol(entry->d_name, NULL, 10);
    closedir(folder);
    return n;
}

typedef struct Seen {
    _Atomic int64_t items;
    _Atomic int most; /* the highest number of a thread */
} Seen;

static void see(Seen *seen, int64_t items)
{
    int most = atomic_load(&seen->most);

    atomic_fetch_add(&seen->items, items);
    while (most < kiln_thread() && !atomic_compare_exchange_weak(&seen->most, &most, kiln_thread()))
        ;
}

static void see_range(void *context, int64_t begin, int64_t end)
{
    see(context, end - begin);
}

static void see_items(void *context, KilnShares *shares)
{
    while (kiln_next_item(shares) >= 0)
        see(context, 1);
}

/* Loops of every number of parts, one after the other. */
static void test_team_stays(void **unused)
{
    long before[MOST], after[MOST];
    int n = 0;

    (void)unused;
    for (int time = 0; time < 3; time++)
        for (int64_t parts = 1; parts <= 2 * TEAM; parts++) {
            Seen loop = { 0 }, items = { 0 };

            kiln_parallel(TEAM, parts, 1, 1, see_range, &loop);
            kiln_parallel_items(TEAM, parts, see_items, &items);
            assert_int_equal(loop.items, parts);
            assert_int_equal(items.items, parts);
            assert_true(loop.most < parts && loop.most < TEAM);
            assert_true(items.most < parts && items.most < TEAM);
            if (time == 0)
                continue;
            assert_int_equal(list_threads(after), TEAM);
            if (n == 0)
                n = list_threads(before);
            assert_memory_equal(before, after, sizeof(long) * TEAM);
        }
}

static void see_inner(void *context, int64_t begin, int64_t end)
{
    const int own = kiln_thread();

    kiln_parallel(TEAM, 10 * (end - begin), 1, 1, see_range, context);
    assert_int_equal(kiln_thread(), own);
}

/* A loop inside of a loop runs on the thread that meets it, under that thread's number. */
static void test_nested(void **unused)
{
    Seen seen = { 0 };

    (void)unused;
    kiln_parallel(TEAM, TEAM, 1, 1, see_inner, &seen);
    assert_int_equal(seen.items, 10 * TEAM);
    assert_true(seen.most < TEAM);
    assert_int_equal(kiln_thread(), 0);
}

/* Threads of a program that uses OpenMP itself each have number 0. */
static void test_inside_openmp(void **unused)
{
    Seen seen[TEAM] = { 0 };

    (void)unused;
#pragma omp parallel num_threads(TEAM)
    kiln_parallel(TEAM, 100, 1, 1, see_range, &seen[omp_get_thread_num()]);
    for (int i = 0; i < TEAM; i++) {
        assert_int_equal(seen[i].items, 100);
        assert_int_equal(seen[i].most, 0);
    }
}

/* ---- Results -------------------------------------------------------------------------- */

static const int counts[] = { 2, 3, 4, 8 };

typedef void Run(KilnBackend *backend, const Case *c, Result *result);

static void run_f32(KilnBackend *backend, const Case *c, Result *result)
{
    run_case(backend, c, result);
}

static void run_mixed(KilnBackend *backend, const Case *c, Result *result)
{
    run_case_bf16(backend, KILN_BF16_MIXED, c, result);
}

/* Runs a case with one thread, then with more: the same bytes. */
static void check_counts(KilnBackend *const *backends, Run *run, const char *how, const Case *c)
{
    Result want, got;

    run(backends[0], c, &want);
    for (size_t i = 0; i < KILN_COUNT(counts); i++) {
        run(backends[1 + i], c, &got);
        if (!same_result(&want, &got))
            fail_msg("%s, %s: %d threads give other bytes than one", c->name, how, counts[i]);
        result_free(&got);
    }
    result_free(&want);
}

typedef struct Backends {
    KilnBackend *all[1 + KILN_COUNT(counts)];
} Backends;

static Backends backends_new(void)
{
    Backends backends = { { cpu_new(1, KILN_CONVOLUTION_AUTO) } };

    for (size_t i = 0; i < KILN_COUNT(counts); i++)
        backends.all[1 + i] = cpu_new(counts[i], KILN_CONVOLUTION_AUTO);
    return backends;
}

static void backends_free(Backends *backends)
{
    for (size_t i = 0; i < KILN_COUNT(backends->all); i++)
        kiln_backend_free(backends->all[i]);
}

/* oneDNN divides the sums of convolutions between its threads, on some processors and at some
 * levels. */
static bool by_onednn(const Case *c)
{
    return strstr(c->name, "conv") != NULL;
}

BUILD(build_batch_norm)
{
    UNUSED_ARG;
    return kiln_batch_norm(leaf[0], leaf[1], leaf[2], leaf[3], leaf[4],
                           (KilnBatchNorm) { .eps = 1e-5, .momentum = 0.1, .training = true });
}

BUILD(build_layer_norm)
{
    UNUSED_ARG;
    return kiln_layer_norm(leaf[0], leaf[1], leaf[2], 1, 1e-5);
}

BUILD(build_linear)
{
    UNUSED_ARG;
    return kiln_linear(leaf[0], leaf[1], leaf[2]);
}

BUILD(build_matmul)
{
    return kiln_matmul(leaf[0], leaf[1], arg[0] != 0, arg[1] != 0);
}

BUILD(build_attention)
{
    return kiln_attention(
        leaf[0], leaf[1], leaf[2],
        (KilnAttention) { .causal = arg[0] != 0, .mask = arg[1] != 0 ? leaf[3] : NULL });
}

BUILD(build_rotary)
{
    UNUSED_ARG;
    return kiln_rotary(leaf[0], (KilnRotary) { .first = 3 });
}

BUILD(build_lstm)
{
    KilnRecurrentOut out = kiln_lstm(leaf[0], leaf[1],
                                     (KilnRecurrent) { .reverse = arg[0] == 0,
                                                       .batch_first = arg[1] != 0,
                                                       .h0 = leaf[2],
                                                       .c0 = leaf[3],
                                                       .lengths = leaf[4] });

    return kiln_add(kiln_sum(kiln_mul(out.y, out.y)), kiln_sum(kiln_mul(out.h, out.c)));
}

BUILD(build_gru)
{
    KilnRecurrentOut out =
        kiln_gru(leaf[0], leaf[1], leaf[2],
                 (KilnRecurrent) { .reverse = arg[1] != 0, .h0 = leaf[3], .lengths = leaf[4] });

    return kiln_add(kiln_sum(kiln_mul(out.y, out.y)), kiln_sum(out.h));
}

/* Shapes that are split in several ways. */
static const Case split[] = {
    { "batch norm, one group of channels", build_batch_norm, "gggvv",
      .shape = { SHAPE(9, 64, 61, 16), SHAPE(16), SHAPE(16), SHAPE(16), SHAPE(16) } },
    { "batch norm, three groups", build_batch_norm, "gggvv",
      .shape = { SHAPE(40, 32, 32, 48), SHAPE(48), SHAPE(48), SHAPE(48), SHAPE(48) } },
    { "layer norm, many rows", build_layer_norm, "ggg",
      .shape = { SHAPE(3001, 96), SHAPE(96), SHAPE(96) } },
    { "linear, a row more than whole tiles", build_linear, "ggg",
      .shape = { SHAPE(49, 700), SHAPE(97, 700), SHAPE(97) } },
    { "linear, narrow and deep", build_linear, "ggg",
      .shape = { SHAPE(5003, 24), SHAPE(17, 24), SHAPE(17) } },
    { "linear, few rows and a deep sum", build_linear, "ggg",
      .shape = { SHAPE(6, 9001), SHAPE(11, 9001), SHAPE(11) } },
    { "matmul, deep sums", build_matmul, "gg", .shape = { SHAPE(5, 2500, 31), SHAPE(5, 2500, 9) },
      .arg = { 1, 0 } },
    { "matmul, a batch of small products", build_matmul, "gg",
      .shape = { SHAPE(37, 33, 40), SHAPE(37, 40, 17) } },
    { "matmul, few larger products", build_matmul, "gg",
      .shape = { SHAPE(3, 133, 200), SHAPE(3, 200, 117) } },
    { "attention, one head", build_attention, "ggg",
      .shape = { SHAPE(1, 300, 1, 48), SHAPE(1, 300, 1, 48), SHAPE(1, 300, 1, 48) }, .arg = { 1 } },
    { "attention, two heads of two", build_attention, "ggg",
      .shape = { SHAPE(1, 200, 4, 32), SHAPE(1, 330, 2, 32), SHAPE(1, 330, 2, 32) } },
    { "attention, mask that wants a gradient", build_attention, "gggg",
      .shape = { SHAPE(1, 150, 1, 16), SHAPE(1, 170, 1, 16), SHAPE(1, 170, 1, 16),
                 SHAPE(150, 170) },
      .arg = { 0, 1 } },
    { "rotary", build_rotary, "g", .shape = { SHAPE(2, 300, 3, 64) } },
    { "lstm, one sequence, units", build_lstm, "gggg",
      .shape = { SHAPE(5, 1, 920), SHAPE(920, 230), SHAPE(1, 230), SHAPE(1, 230) } },
    { "lstm, few sequences, batch first, lengths", build_lstm, "ggggL",
      .shape = { SHAPE(6, 4, 560), SHAPE(560, 140), SHAPE(6, 140), SHAPE(6, 140), SHAPE(6) },
      .arg = { 5, 1 } },
    { "lstm, more sequences than a product has", build_lstm, "gggg",
      .shape = { SHAPE(3, 45, 280), SHAPE(280, 70), SHAPE(45, 70), SHAPE(45, 70) } },
    { "gru, few sequences, reverse, lengths", build_gru, "ggggL",
      .shape = { SHAPE(4, 3, 540), SHAPE(540, 180), SHAPE(540), SHAPE(3, 180), SHAPE(3) },
      .arg = { 5, 1 } },
};

static void check_cases(Run *run, const char *how)
{
    Backends backends = backends_new();

    for (size_t i = 0; i < op_samples_count; i++)
        for (size_t k = 0; k < samples_to_run(i); k++)
            if (!by_onednn(&op_samples[i].samples->cases[k]))
                check_counts(backends.all, run, how, &op_samples[i].samples->cases[k]);
    for (size_t i = 0; i < KILN_COUNT(split); i++)
        check_counts(backends.all, run, how, &split[i]);
    backends_free(&backends);
}

/* Loops, convolutions and changes of layout take turns; the program's own number of threads is
 * another one. */
static void test_onednn_team(void **unused)
{
    static const Case c = { "conv2d between plain images", build_conv, "gg",
                            .shape = { SHAPE(8, 32, 32, 64), SHAPE(64, 64, 3, 3) },
                            .arg = { 1, 1, 0 } };
    KilnBackend *backend = cpu_new(TEAM, KILN_CONVOLUTION_AUTO);
    const int own = omp_get_max_threads();
    long before[MOST], after[MOST];
    Result result;

    (void)unused;
    omp_set_num_threads(TEAM - 1);
    for (int time = 0; time < 3; time++) {
        run_f32(backend, &c, &result);
        result_free(&result);
        assert_int_equal(list_threads(time == 0 ? before : after), TEAM);
    }
    assert_memory_equal(before, after, sizeof(long) * TEAM);
    omp_set_num_threads(own);
    kiln_backend_free(backend);
}

static void test_f32(void **unused)
{
    (void)unused;
    check_cases(run_f32, "f32");
}

/* How much is packed for the second-level cache changes no sum. */
static void test_caches(void **unused)
{
    static const int64_t floats[] = { 24576, 50000, 100000 };
    static const Case c = { "linear, larger than caches", build_linear, "ggg",
                            .shape = { SHAPE(530, 1300), SHAPE(190, 1300), SHAPE(190) } };
    KilnBackend *backend = cpu_new(2, KILN_CONVOLUTION_AUTO);
    KilnCpuBackend *cpu = (KilnCpuBackend *)backend;
    Result want, got;

    (void)unused;
    run_case(backend, &c, &want);
    for (size_t i = 0; i < KILN_COUNT(floats); i++) {
        cpu->gemm_packed = floats[i];
        run_case(backend, &c, &got);
        assert_true(same_result(&want, &got));
        result_free(&got);
    }
    result_free(&want);
    kiln_backend_free(backend);
}

static void test_bf16(void **unused)
{
    (void)unused;
    check_cases(run_mixed, "bf16");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_team_stays), /* first: only the main thread exists */
        cmocka_unit_test(test_nested),      cmocka_unit_test(test_inside_openmp),
        cmocka_unit_test(test_onednn_team), /* before teams of other sizes */
        cmocka_unit_test(test_f32),         cmocka_unit_test(test_caches),
        cmocka_unit_test(test_bf16),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

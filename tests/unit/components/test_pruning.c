/* Pruning against torch.nn.utils.prune (tests/record/callbacks.py). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "nn/params.h"
#include "train/trainer.h"

/* The component with what it keeps to itself, beside the one that the library has. */
#define kiln_callback_pruning test_pruning
#include "callbacks/pruning.c"

#include "tests/data/pruning.h"
#include "tests/support/param_memory.h"

static char *all_patterns[] = { "*weight" };

/* A trainer with the network whose weights were recorded. */
typedef struct Net {
    KilnTrainer trainer;
    KilnRootOptions root;
    State state;
} Net;

static void net_init(Net *net)
{
    const KilnInit zero = { .kind = KILN_INIT_CONSTANT };
    KilnError err = { 0 };
    KilnParam *param;

    *net = (Net) { 0 };
    net->trainer.options.root = &net->root;
    assert_int_equal(kiln_params_new(1, &net->trainer.params, &err), KILN_OK);
    KilnScope root = kiln_params_root(net->trainer.params);
    assert_int_equal(
        kiln_param_new(&root, "conv.weight", KILN_SHAPE(4, 3, 2, 2), zero, &param, &err), KILN_OK);
    assert_int_equal(kiln_param_new(&root, "fc.weight", KILN_SHAPE(5, 6), zero, &param, &err),
                     KILN_OK);
    assert_int_equal(kiln_params_seal(net->trainer.params, store_backend(), &err), KILN_OK);
    memcpy(params_values(net->trainer.params), prune_weights, sizeof(prune_weights));
    assert_true(make_mask(&net->state, &net->trainer));
}

static void net_release(Net *net)
{
    kiln_params_free(net->trainer.params);
    free(net->state.pruned);
    free(net->state.values);
}

static void prune_once(Net *net, const Opts *opts)
{
    const Pruning pruning = {
        .opts = opts, .state = &net->state, .trainer = &net->trainer, .params = net->trainer.params
    };
    KilnError err = { 0 };

    if (choose(&pruning, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(put_in_place(&pruning, &err), KILN_OK);
    net->state.round++;
}

static void test_masks(void **unused)
{
    (void)unused;
    for (size_t k = 0; k < KILN_COUNT(prune_cases); k++) {
        bool global = prune_cases[k].global != 0;
        int64_t dim = prune_cases[k].dim;
        double norm = prune_cases[k].norm;
        const Opts opts = {
            .pruning_fn = prune_cases[k].structured ? LN_STRUCTURED : L1_UNSTRUCTURED,
            .parameters_to_prune = all_patterns,
            .parameters_to_prune_count = 1,
            .use_global_unstructured = &global,
            .amount = { .of = prune_cases[k].count ? KILN_QUANTITY_COUNT : KILN_QUANTITY_FRACTION,
                        .value = prune_cases[k].amount },
            .pruning_dim = prune_cases[k].structured ? &dim : NULL,
            .pruning_norm = prune_cases[k].structured ? &norm : NULL,
        };
        Net net;

        net_init(&net);
        for (int round = 0; round < prune_cases[k].rounds; round++) {
            prune_once(&net, &opts);
            for (int64_t i = 0; i < net.state.size; i++)
                if (net.state.pruned[i] != prune_cases[k].masks[round * net.state.size + i])
                    fail_msg("%s, round %d, value %lld: pruned %d", prune_cases[k].name, round,
                             (long long)i, net.state.pruned[i]);
        }
        for (int64_t i = 0; i < net.state.size; i++)
            assert_true(net.state.pruned[i] != 0
                            ? !(fabsf(params_values(net.trainer.params)[i]) > 0.0f)
                            : !(params_values(net.trainer.params)[i] < prune_weights[i]));
        net_release(&net);
    }
}

static int64_t count_pruned(const Net *net, int64_t from, int64_t to)
{
    int64_t n = 0;

    for (int64_t i = from; i < to; i++)
        n += net->state.pruned[i];
    return n;
}

/* The requested number, the same in every draw, different in the next round. */
static void test_random_pruning(void **unused)
{
    int64_t dim = 0;
    bool global = false;
    Opts opts = { .pruning_fn = RANDOM_UNSTRUCTURED,
                  .parameters_to_prune = all_patterns,
                  .parameters_to_prune_count = 1,
                  .use_global_unstructured = &global,
                  .amount = { .of = KILN_QUANTITY_FRACTION, .value = 0.5 } };
    Net a, b;

    (void)unused;
    net_init(&a);
    net_init(&b);
    prune_once(&a, &opts);
    prune_once(&b, &opts);
    assert_memory_equal(a.state.pruned, b.state.pruned, (size_t)a.state.size);
    assert_int_equal(count_pruned(&a, 0, 48), 24);
    assert_int_equal(count_pruned(&a, 48, 78), 15);
    prune_once(&a, &opts);
    assert_int_equal(count_pruned(&a, 0, 48), 36);
    assert_int_equal(count_pruned(&a, 48, 78), 15 + 8); /* half of 15, to even */
    net_release(&a);
    opts.pruning_fn = RANDOM_STRUCTURED;
    opts.pruning_dim = &dim;
    opts.amount = (KilnQuantity) { .of = KILN_QUANTITY_COUNT, .value = 2 };
    net_init(&a);
    prune_once(&a, &opts);
    assert_int_equal(count_pruned(&a, 0, 48), 2 * 12);
    assert_int_equal(count_pruned(&a, 48, 78), 2 * 6);
    net_release(&a);
    net_release(&b);
}

static void test_too_much_pruning(void **unused)
{
    bool global = true;
    const Opts opts = { .pruning_fn = L1_UNSTRUCTURED,
                        .parameters_to_prune = all_patterns,
                        .parameters_to_prune_count = 1,
                        .use_global_unstructured = &global,
                        .amount = { .of = KILN_QUANTITY_COUNT, .value = 50 } };
    KilnError err = { 0 };
    Net net;

    (void)unused;
    net_init(&net);
    prune_once(&net, &opts);
    const Pruning again = {
        .opts = &opts, .state = &net.state, .trainer = &net.trainer, .params = net.trainer.params
    };
    assert_int_equal(choose(&again, &err), KILN_E_RANGE);
    assert_non_null(strstr(err.text, "amount=50 is more than the 28 values"));
    net_release(&net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_masks),
        cmocka_unit_test(test_random_pruning),
        cmocka_unit_test(test_too_much_pruning),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Every operation's samples in other sizes: one row, one channel, primes, empty, and too many
 * elements. Sizes that fit give the reference's results on the CPU backend; others are rejected
 * with a message. */
#include <stdio.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "tests/support/cpu_variants.h"
#include "tests/support/ops/samples.h"

enum { MOST_SIZES = MAX_LEAVES * KILN_MAX_RANK };
#ifdef __SANITIZE_ADDRESS__
enum { MOST_ELEMENTS = 4000 }; /* it takes longer */
#else
enum { MOST_ELEMENTS = 20000 };
#endif
static const int64_t limit = INT64_C(1) << 31;

/* ---- Resizing a sample -------------------------------------------------------------- */

/* The different sizes in a sample's shapes; returns their number. */
static int sizes_of(const Case *c, int64_t sizes[MOST_SIZES])
{
    int n = 0;

    for (int i = 0; c->leaves[i] != '\0'; i++)
        for (int axis = 0; axis < c->shape[i].rank; axis++) {
            int at = 0;

            while (at < n && sizes[at] != c->shape[i].dim[axis])
                at++;
            sizes[at] = c->shape[i].dim[axis];
            n = at == n ? n + 1 : n;
        }
    return n;
}

/* The sample with one size in place of another, wherever it stands: what must agree
 * still does, and indices stay below it. */
static Case resized(const Case *c, int64_t from, int64_t to)
{
    Case other = *c;

    for (int i = 0; c->leaves[i] != '\0'; i++)
        for (int axis = 0; axis < c->shape[i].rank; axis++)
            if (c->shape[i].dim[axis] == from)
                other.shape[i].dim[axis] = to;
    if (strchr(c->leaves, LEAF_INDEX) != NULL && c->arg[0] == from)
        other.arg[0] = to;
    return other;
}

/* Record the sample and its gradients on leaves without data; whether all fits. */
static bool fits(KilnGraph *graph, const Case *c, KilnError *err)
{
    KilnTensor *leaf[MAX_LEAVES] = { NULL };

    kiln_graph_begin(graph);
    for (int i = 0; c->leaves[i] != '\0'; i++) {
        const Bytes none = { .dtype = leaf_dtype(c->leaves[i], graph->float_type) };

        leaf[i] = leaf_tensor(graph, c, i, &none, NULL);
    }
    KilnTensor *y = c->build(leaf, c->arg);
    if (y != NULL && case_wants_grad(c))
        kiln_graph_backward(graph, kiln_sum(y));
    return kiln_graph_check(graph, err) == KILN_OK;
}

static void check_refusal(const Case *c, int64_t from, int64_t to, const KilnError *err)
{
    const bool ours = err->status == KILN_E_SHAPE || err->status == KILN_E_RANGE ||
                      err->status == KILN_E_TYPE;

    if (!ours || err->text[0] == '\0')
        fail_msg("%s with %lld for %lld: status %d, \"%s\"", c->name, (long long)to,
                 (long long)from, err->status, err->text);
}

static KilnGraph *graph_new(KilnBackend *backend)
{
    KilnGraph *graph = NULL;
    KilnError err = { 0 };

    assert_int_equal(kiln_graph_new(backend, &graph, &err), KILN_OK);
    return graph;
}

/* ---- One, and primes ------------------------------------------------------------------ */

static int64_t elements(const Case *c)
{
    int64_t count = 0;

    for (int i = 0; c->leaves[i] != '\0'; i++)
        count += kiln_shape_count(&c->shape[i]);
    return count;
}

/* Whether the sample fits in that size; then both backends must agree. */
static bool check_size(KilnBackend *ref, KilnBackend *cpu, KilnGraph *graph, const Case *c,
                       int64_t from, int64_t to)
{
    const Case other = resized(c, from, to);
    KilnError err = { 0 };
    Result want, got;
    char how[64];

    if (elements(&other) > MOST_ELEMENTS)
        return false;
    if (!fits(graph, &other, &err)) {
        check_refusal(c, from, to, &err);
        return false;
    }
    snprintf(how, sizeof(how), "%lld for %lld", (long long)to, (long long)from);
    run_case(ref, &other, &want);
    run_case(cpu, &other, &got);
    extremes.min = 1.0; /* of few values the gradients may cancel */
    compare(&other, how, &want, &got);
    extremes.min = 0.0;
    result_free(&want);
    result_free(&got);
    return true;
}

static void check_sizes(int64_t to)
{
    KilnBackend *ref = ref_new(), *cpu = cpu_new(1, KILN_CONVOLUTION_DIRECT);
    KilnGraph *graph = graph_new(ref);

    for (size_t i = 0; i < op_samples_count; i++) {
        int ran = 0, axes = 0;

        for (size_t k = 0; k < samples_to_run(i); k++) {
            int64_t sizes[MOST_SIZES];
            const int n = sizes_of(&op_samples[i].samples->cases[k], sizes);

            for (int s = 0; s < n; s++)
                ran += check_size(ref, cpu, graph, &op_samples[i].samples->cases[k], sizes[s], to);
            axes += n;
        }
        /* What it broadcasts to stands in its arguments. */
        if (axes > 0 && ran == 0 && op_samples[i].op != &kiln_op_broadcast)
            fail_msg("no sample of %s fits with a size of %lld", op_samples[i].op->name,
                     (long long)to);
    }
    kiln_graph_free(graph);
    kiln_backend_free(cpu);
    kiln_backend_free(ref);
}

static void test_one(void **unused)
{
    (void)unused;
    check_sizes(1);
}

static void test_primes(void **unused)
{
    (void)unused;
    check_sizes(13);
    check_sizes(67);
}

/* ---- Nothing -------------------------------------------------------------------------- */

static void check_empty(KilnGraph *graph, const Case *c)
{
    for (int i = 0; c->leaves[i] != '\0'; i++)
        for (int axis = 0; axis < c->shape[i].rank; axis++) {
            Case empty = *c;
            KilnError err = { 0 };

            empty.shape[i].dim[axis] = 0;
            if (fits(graph, &empty, &err))
                fail_msg("%s: leaf %d is empty and nobody minds", c->name, i);
            assert_int_equal(err.status, KILN_E_SHAPE);
            assert_non_null(strstr(err.text, "every size must be at least 1"));
        }
}

/* An empty batch, or anything else without elements, is refused where it comes in. */
static void test_empty_leaves(void **unused)
{
    KilnBackend *ref = ref_new();
    KilnGraph *graph = graph_new(ref);

    (void)unused;
    for (size_t i = 0; i < op_samples_count; i++)
        for (size_t k = 0; k < samples_to_run(i); k++)
            check_empty(graph, &op_samples[i].samples->cases[k]);
    kiln_graph_free(graph);
    kiln_backend_free(ref);
}

/* And where it would come to be. */
static KilnTensor *make_empty(int which, KilnTensor *x, KilnTensor *index)
{
    static const int64_t before[] = { -4, 0 }, after[] = { 0, 0 }, parts[] = { 4, 0 };
    KilnTensor *image = kiln_reshape(x, KILN_SHAPE(1, 4, 3, 1)), *pieces[2] = { NULL };

    switch (which) {
    case 0:
        return kiln_slice(x, 0, 2, 2, 1);
    case 1:
        return kiln_slice(x, 1, 5, KILN_END, 1);
    case 2:
        return kiln_narrow(x, 0, 1, 0);
    case 3:
        kiln_split(x, 0, parts, 2, pieces);
        return pieces[1];
    case 4:
        return kiln_reshape(x, KILN_SHAPE(0, -1));
    case 5:
        return kiln_broadcast_to(kiln_sum(x), KILN_SHAPE(3, 0));
    case 6:
        return kiln_pad(x, before, after, 0.0);
    case 7:
        return kiln_arange(kiln_tensor_graph(x), KILN_F32, 0.0, 1.0, 0);
    case 8:
        return kiln_one_hot(index, 0);
    case 9:
        return kiln_upsample_nearest(image, (KilnSize) { 0, 3 });
    case 10:
        return kiln_upsample_bilinear(image, (KilnSize) { 2, 0 }, false);
    case 11:
        return kiln_adaptive_avg_pool2d(image, 0, 1);
    case 12:
        return kiln_avg_pool2d(image, (KilnPool) { .kernel = 5 });
    default:
        return NULL;
    }
}

static void test_empty_results(void **unused)
{
    KilnBackend *ref = ref_new();
    KilnGraph *graph = graph_new(ref);
    KilnTensor *x, *y;
    int which = 0;

    (void)unused;
    do {
        KilnError err = { 0 };

        kiln_graph_begin(graph);
        x = kiln_graph_input(graph, KILN_F32, KILN_SHAPE(4, 3), NULL);
        y = make_empty(which, x, kiln_graph_input(graph, KILN_I32, KILN_SHAPE(4), NULL));
        if (y != NULL && (!kiln_tensor_poisoned(y) || kiln_graph_check(graph, &err) == KILN_OK ||
                          err.text[0] == '\0'))
            fail_msg("result %d is empty and nobody minds", which);
        which++;
    } while (y != NULL);
    assert_int_equal(which, 14);
    kiln_graph_free(graph);
    kiln_backend_free(ref);
}

/* ---- Too much --------------------------------------------------------------------------- */

/* Whatever was recorded has less than 2^31 elements. */
static void check_counts(const KilnGraph *graph, const Case *c, int64_t to)
{
    for (size_t i = 0; i < graph->n_nodes; i++)
        for (int k = 0; k < graph->nodes[i]->n_outputs; k++) {
            const int64_t count = kiln_shape_count(&graph->nodes[i]->outputs[k]->shape);

            if (count < 1 || count >= limit)
                fail_msg("%s with %lld: %s has %lld elements", c->name, (long long)to,
                         graph->nodes[i]->op->name, (long long)count);
        }
}

/* Only updates and the norm read the flat buffers of large models (test_large_params.c). */
static bool is_of_flat_buffers(const KilnGraph *graph)
{
    const KilnOp *op = graph->n_nodes > 0 ? graph->nodes[graph->n_nodes - 1]->op : NULL;

    return op != NULL && (op->updates != 0 || op == &kiln_op_l2_norm);
}

/* Sizes of which one, two or a few make too much; returns how many were refused. */
static int check_huge(KilnGraph *graph, const Case *c)
{
    static const int64_t huge[] = { 46349, (1 << 30) + 3, INT32_MAX, INT64_C(1) << 31, INT64_MAX };
    int64_t sizes[MOST_SIZES];
    const int n = sizes_of(c, sizes);
    int refused = 0;

    for (int s = 0; s < n; s++)
        for (size_t h = 0; h < KILN_COUNT(huge); h++) {
            const Case other = resized(c, sizes[s], huge[h]);
            KilnError err = { 0 };

            if (fits(graph, &other, &err)) {
                check_counts(graph, c, huge[h]);
                if (huge[h] >= limit && !is_of_flat_buffers(graph))
                    fail_msg("%s takes a size of %lld", c->name, (long long)huge[h]);
                continue;
            }
            check_refusal(c, sizes[s], huge[h], &err);
            refused += strstr(err.text, "are possible") != NULL;
        }
    return refused;
}

static void test_huge(void **unused)
{
    KilnBackend *ref = ref_new();
    KilnGraph *graph = graph_new(ref);

    (void)unused;
    for (size_t i = 0; i < op_samples_count; i++) {
        int refused = 0, axes = 0;

        for (size_t k = 0; k < samples_to_run(i); k++) {
            int64_t sizes[MOST_SIZES];

            axes += sizes_of(&op_samples[i].samples->cases[k], sizes);
            refused += check_huge(graph, &op_samples[i].samples->cases[k]);
        }
        if (axes > 0 && refused == 0)
            fail_msg("no size is too large for %s", op_samples[i].op->name);
    }
    kiln_graph_free(graph);
    kiln_backend_free(ref);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one),          cmocka_unit_test(test_primes),
        cmocka_unit_test(test_empty_leaves), cmocka_unit_test(test_empty_results),
        cmocka_unit_test(test_huge),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

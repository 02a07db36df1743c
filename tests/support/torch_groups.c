#include "tests/support/torch_groups.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"

static const Recorded *all_records;

static size_t n_records;

static const Recorded *find(const char *group, const char *name, const char *prefix)
{
    char full[64];

    snprintf(full, sizeof(full), "%s.%s%s", group, prefix, name);
    for (size_t i = 0; i < n_records; i++)
        if (strcmp(all_records[i].name, full) == 0)
            return &all_records[i];
    return NULL;
}

/* ---- Running one -------------------------------------------------------------------- */

static void check(const char *backend, const char *group, const char *what, const Recorded *want,
                  const float *got)
{
    double worst = 0.0, scale = 1e-30;

    for (size_t i = 0; i < want->n; i++) {
        double d = fabs((double)want->values[i] - (double)got[i]);

        worst = d > worst || isnan(d) ? d : worst;
        scale = fmax(scale, fabs((double)want->values[i]));
    }
    if (!(worst / scale <= 1e-5))
        fail_msg("%s.%s on %s: differs by %g", group, what, backend, worst / scale);
}

/* The recorded values of a leaf, in its type; freed by the caller. */
static void *leaf_data(const Leaf *leaf, const Recorded *record)
{
    float *data = calloc(record->n, sizeof(*data));

    assert_non_null(data);
    assert_int_equal(record->n, kiln_shape_count(&leaf->shape));
    for (size_t i = 0; i < record->n; i++) {
        if (leaf->dtype == KILN_I32)
            ((int32_t *)(void *)data)[i] = (int32_t)record->values[i];
        else if (leaf->dtype == KILN_U8)
            ((uint8_t *)(void *)data)[i] = (uint8_t)record->values[i];
        else
            data[i] = record->values[i];
    }
    return data;
}

static void run_group(KilnBackend *backend, const Group *group)
{
    KilnTensor *leaf[GROUP_LEAVES] = { NULL };
    void *data[GROUP_LEAVES] = { NULL };
    float *grad[GROUP_LEAVES] = { NULL };
    KilnGraph *graph = NULL;
    KilnError err = { 0 };

    assert_int_equal(kiln_graph_new(backend, &graph, &err), KILN_OK);
    kiln_graph_begin(graph);
    for (int i = 0; i < GROUP_LEAVES && group->leaves[i].name != NULL; i++) {
        const Leaf *l = &group->leaves[i];
        const Recorded *record = find(group->name, l->name, "");
        const bool wants = find(group->name, l->name, "d") != NULL;

        if (record == NULL)
            fail_msg("no record %s.%s", group->name, l->name);
        data[i] = leaf_data(l, record);
        grad[i] = calloc(record->n, sizeof(float));
        leaf[i] = kiln_graph_variable(graph, l->dtype, l->shape, data[i], wants, grad[i]);
    }

    KilnTensor *y = group->build(leaf);
    const Recorded *dy = find(group->name, "dy", "");
    KilnTensor *weights = kiln_graph_input(graph, KILN_F32, *kiln_tensor_shape(y), dy->values);

    if (y->wants_grad)
        kiln_graph_backward(graph, kiln_sum(kiln_mul(y, weights)));
    if (kiln_graph_run(graph, &y, 1, &err) != KILN_OK)
        fail_msg("%s on %s: %s", group->name, backend->ops->name, err.text);
    assert_int_equal(dy->n, kiln_shape_count(kiln_tensor_shape(y)));
    check(backend->ops->name, group->name, "y", find(group->name, "y", ""), kiln_tensor_data(y));
    for (int i = 0; i < GROUP_LEAVES && group->leaves[i].name != NULL; i++) {
        const Recorded *want = find(group->name, group->leaves[i].name, "d");

        if (want != NULL)
            check(backend->ops->name, group->name, want->name, want, grad[i]);
        free(data[i]);
        free(grad[i]);
    }
    kiln_graph_free(graph);
}

/* Every group on both backends. */
static void check_groups(const Group *groups, size_t n, const Recorded *records, size_t count)
{
    KilnBackend *backends[2] = { NULL };
    KilnError err = { 0 };

    all_records = records;
    n_records = count;
    assert_int_equal(kiln_backend_ref_new(&backends[0], &err), KILN_OK);
    assert_int_equal(kiln_backend_cpu_new(2, &backends[1], &err), KILN_OK);
    for (size_t b = 0; b < KILN_COUNT(backends); b++) {
        for (size_t i = 0; i < n; i++)
            run_group(backends[b], &groups[i]);
        kiln_backend_free(backends[b]);
    }
}

/* How many groups are recorded. */
static size_t recorded_groups(const Recorded *records, size_t count)
{
    size_t n = 0;

    for (size_t i = 0; i < count; i++) {
        const size_t length = strlen(records[i].name);

        n += length > 2 && strcmp(records[i].name + length - 2, ".y") == 0;
    }
    return n;
}

/* ---- Tests -------------------------------------------------------------------------- */

static void test_groups(void **state)
{
    const Recording *all = *state;

    check_groups(all->groups, all->n_groups, all->records, all->n_records);
}

/* Each group of the script is checked. */
static void test_all_recorded(void **state)
{
    const Recording *all = *state;

    assert_int_equal(recorded_groups(all->records, all->n_records), all->n_groups);
}

int test_recording(Recording all)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(test_groups, &all),
        cmocka_unit_test_prestate(test_all_recorded, &all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

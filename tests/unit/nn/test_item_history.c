/* The items that users have in the training data: found in a table, and left out of scores by both
 * backends; tables that do not fit. */
#include "tests/support/cmocka.h"

#include <string.h>

#include "kiln.h"
#include "kiln/tools/item_history.h"

enum { USERS = 4, ITEMS = 5, ROWS = 6 };

static const int32_t user[ROWS] = { 3, 0, 3, 1, 0, 3 }, item[ROWS] = { 4, 2, 0, 1, 2, 0 };

static KilnTable table_of(KilnColumn *columns, int64_t n)
{
    columns[0] = (KilnColumn) { .name = "user", .dtype = KILN_I32, .data = user };
    columns[1] = (KilnColumn) { .name = "film", .dtype = KILN_I32, .data = item };
    return (KilnTable) { .n_rows = n, .columns = columns, .n_columns = 2, .label = 2 };
}

static KilnItemHistory fitted(void)
{
    KilnColumn columns[2];
    const KilnTable table = table_of(columns, ROWS);
    KilnItemHistory history = { 0 };
    KilnError err = { 0 };

    /* the second replaces the first */
    for (int i = 0; i < 2; i++)
        assert_int_equal(
            kiln_item_history_fit(&history, &table, "user", "film", USERS, ITEMS, &err), KILN_OK);
    return history;
}

static void check_mask(bool cpu)
{
    /* the last user is none of the table's */
    static const int32_t users[] = { 0, 1, 2, 3, USERS };
    static const bool has[5][ITEMS] = {
        { 0, 0, 1, 0, 0 }, { 0, 1, 0, 0, 0 }, { 0 }, { 1, 0, 0, 0, 1 }, { 0 }
    };
    KilnItemHistory history = fitted();
    KilnBackend *backend;
    KilnGraph *graph;
    KilnError err = { 0 };
    float scores[5][ITEMS];

    assert_int_equal(cpu ? kiln_backend_cpu_new(2, &backend, &err)
                         : kiln_backend_ref_new(&backend, &err),
                     KILN_OK);
    assert_int_equal(kiln_graph_new(backend, &graph, &err), KILN_OK);
    for (int i = 0; i < 5 * ITEMS; i++)
        (&scores[0][0])[i] = (float)i;
    kiln_graph_begin(graph);
    KilnTensor *x = kiln_graph_input(graph, KILN_F32, KILN_SHAPE(5, ITEMS), scores);
    KilnTensor *who = kiln_graph_input(graph, KILN_I32, KILN_SHAPE(5, 1), users);
    KilnTensor *y = kiln_item_history_mask(&history, x, who, -7.0);
    assert_int_equal(kiln_graph_run(graph, &y, 1, &err), KILN_OK);
    const float *values = kiln_tensor_data(y);
    for (int row = 0; row < 5; row++)
        for (int i = 0; i < ITEMS; i++)
            assert_true(values[row * ITEMS + i] == (has[row][i] ? -7.0F : scores[row][i]));

    kiln_graph_begin(graph);
    x = kiln_graph_input(graph, KILN_F32, KILN_SHAPE(5, ITEMS - 1), scores);
    who = kiln_graph_input(graph, KILN_I32, KILN_SHAPE(5, 1), users);
    (void)kiln_item_history_mask(&history, x, who, -7.0);
    assert_true(kiln_graph_check(graph, &err) < 0);
    assert_non_null(strstr(err.text, "needs scores [batch, 5] and users i32 [batch, 1]"));
    kiln_item_history_release(&history);
    kiln_graph_begin(graph);
    x = kiln_graph_input(graph, KILN_F32, KILN_SHAPE(5, ITEMS), scores);
    assert_ptr_equal(kiln_item_history_mask(&history, x, x, -7.0), x);
    kiln_graph_free(graph);
    kiln_backend_free(backend);
}

static void test_mask(void **unused)
{
    (void)unused;
    check_mask(false);
    check_mask(true);
}

static void test_tables_that_do_not_fit(void **unused)
{
    KilnColumn columns[2];
    const KilnTable table = table_of(columns, ROWS);
    KilnItemHistory history = { 0 };
    KilnError err = { 0 };

    (void)unused;
    assert_int_equal(kiln_item_history_fit(&history, &table, "user", "book", USERS, ITEMS, &err),
                     KILN_E_MISSING);
    assert_non_null(strstr(err.text, "no column of categories \"book\""));
    assert_int_equal(kiln_item_history_fit(&history, &table, "user", "film", USERS, 4, &err),
                     KILN_E_RANGE);
    assert_string_equal(err.text, "column \"film\" has the id 4; expected 0 to 3");
    const KilnTable none = table_of(columns, 0);
    assert_int_equal(kiln_item_history_fit(&history, &none, "user", "film", USERS, ITEMS, &err),
                     KILN_OK);
    assert_int_equal(history.count, 0);
    kiln_item_history_release(&history);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mask),
        cmocka_unit_test(test_tables_that_do_not_fit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

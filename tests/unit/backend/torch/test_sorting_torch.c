/* Sorting and groups of rows on both backends against values and gradients recorded from PyTorch
 * (tests/record/sorting.py). */
#include "tests/support/torch_groups.h"

#include "tests/data/ops/sorting.h"

RETURNS(sort, kiln_sort(x[0], 1, false).values)
RETURNS(sort_descending, kiln_sort(x[0], 1, true).values)
RETURNS(argsort, kiln_to_float(kiln_argsort(kiln_log(x[0]), 1, false)))
RETURNS(argsort_descending, kiln_to_float(kiln_argsort(kiln_log(x[0]), 1, true)))
RETURNS(argsort_integers, kiln_to_float(kiln_argsort(x[0], 0, false)))
RETURNS(topk, kiln_topk(x[0], 5, 1, true).values)
RETURNS(topk_indices, kiln_to_float(kiln_topk(x[0], 5, 1, true).indices))
RETURNS(topk_smallest, kiln_topk(x[0], 3, 0, false).values)
RETURNS(segment_sum, kiln_segment_sum(x[0], x[1], 6))
RETURNS(segment_mean, kiln_segment_mean(x[0], x[1], 6))
RETURNS(segment_max, kiln_segment_max(x[0], x[1], 6))
RETURNS(segment_max_equals, kiln_segment_max(x[0], x[1], 6))

static const Group groups[] = {
    GROUP(sort, F("x", 3, 7)),
    GROUP(sort_descending, F("x", 4, 5, 2)),
    GROUP(argsort, F("x", 2, 8)),
    GROUP(argsort_descending, F("x", 2, 8)),
    GROUP(argsort_integers, I("x", 2, 8)),
    GROUP(topk, F("x", 3, 70)),
    GROUP(topk_indices, F("x", 3, 70)),
    GROUP(topk_smallest, F("x", 9, 4)),
    GROUP(segment_sum, F("x", 8, 3), I("ids", 8)),
    GROUP(segment_mean, F("x", 8, 3), I("ids", 8)),
    GROUP(segment_max, F("x", 8, 3), I("ids", 8)),
    GROUP(segment_max_equals, F("x", 8, 3), I("ids", 8)),
};

int main(void)
{
    return test_recording((Recording) { groups, KILN_COUNT(groups), records, KILN_COUNT(records) });
}

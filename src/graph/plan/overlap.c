/* Overlapping bytes of a recorded step: sorts the ranges by address, then sweeps. */
#include "graph/plan/overlap.h"

/* Bytes of a leaf or of a destination. */
typedef struct Range {
    uintptr_t begin, end;
    int64_t name; /* twice the tensor's id; odd for a destination */
} Range;

static Range range_of(const KilnTensor *tensor, const KilnLocation *location, bool dest)
{
    const uintptr_t begin = kiln_location_address(location);

    return (Range) { .begin = begin,
                     .end = begin + kiln_tensor_bytes(tensor),
                     .name = 2 * (int64_t)tensor->id + (dest ? 1 : 0) };
}

static size_t find_ranges(const KilnGraph *graph, Range *ranges)
{
    size_t n = 0;

    for (size_t i = 0; i < graph->n_tensors; i++) {
        const KilnTensor *tensor = graph->tensors[i];

        if (tensor->node == NULL && kiln_location_address(&tensor->at) != 0)
            ranges[n++] = range_of(tensor, &tensor->at, false);
        if (kiln_tensor_has_dest(tensor))
            ranges[n++] = range_of(tensor, &tensor->dest, true);
    }
    return n;
}

static bool before(const Range *a, const Range *b)
{
    return a->begin != b->begin ? a->begin < b->begin : a->name < b->name;
}

/* Shell sort: the C library's qsort allocates, which a step must not. */
static void sort(Range *ranges, size_t n)
{
    for (size_t gap = n / 2; gap > 0; gap /= 2)
        for (size_t i = gap; i < n; i++) {
            const Range range = ranges[i];
            size_t at = i;

            for (; at >= gap && before(&range, &ranges[at - gap]); at -= gap)
                ranges[at] = ranges[at - gap];
            ranges[at] = range;
        }
}

static size_t count_ranges(const KilnGraph *graph)
{
    size_t n = 0;

    for (size_t i = 0; i < graph->n_tensors; i++) {
        const KilnTensor *tensor = graph->tensors[i];

        n += (tensor->node == NULL ? 1u : 0u) + (kiln_tensor_has_dest(tensor) ? 1u : 0u);
    }
    return n;
}

bool kiln_overlap_add_to_key(KilnGraph *graph)
{
    Range *ranges = kiln_arena_alloc(&graph->arena, (count_ranges(graph) + 1) * sizeof(*ranges));

    if (ranges == NULL)
        return false;
    const size_t n = find_ranges(graph, ranges);

    sort(ranges, n);
    for (size_t i = 0; i < n; i++)
        for (size_t k = i + 1; k < n && ranges[k].begin < ranges[i].end; k++) {
            const int64_t pair[] = { ranges[i].name, ranges[k].name };

            kiln_plan_key_add(&graph->plan_key, pair, sizeof(pair));
        }
    return true;
}

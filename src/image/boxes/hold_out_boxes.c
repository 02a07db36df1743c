/* Moves a part of the images of a set to another one. */
#include "kiln/images/box_sets.h"

#include <stdlib.h>
#include <string.h>

#include "kiln/metric.h"

/* The n images of a set that `order` names. Paths are shared; the rest is new. */
static KilnStatus take(const KilnBoxSet *from, const int32_t *order, int64_t n, KilnBoxSet *ret,
                       KilnError *err)
{
    const size_t row = KILN_TRUTH_COLUMNS * sizeof(float);
    int64_t n_boxes = 0;

    for (int64_t i = 0; i < n; i++)
        n_boxes += from->starts[order[i] + 1] - from->starts[order[i]];
    ret->count = n;
    ret->relative = from->relative;
    ret->paths = malloc((size_t)(n + 1) * sizeof(*ret->paths));
    ret->starts = calloc((size_t)n + 1, sizeof(*ret->starts));
    ret->boxes = malloc((size_t)(n_boxes + 1) * row);
    if (ret->paths == NULL || ret->starts == NULL || ret->boxes == NULL)
        return kiln_error_nomem(err, (size_t)(n_boxes + 1) * row);
    for (int64_t i = 0; i < n; i++) {
        const int64_t first = from->starts[order[i]], count = from->starts[order[i] + 1] - first;

        ret->paths[i] = from->paths[order[i]];
        ret->starts[i + 1] = ret->starts[i] + count;
        ret->most = count > ret->most ? count : ret->most;
        memcpy(ret->boxes + ret->starts[i] * KILN_TRUTH_COLUMNS,
               from->boxes + first * KILN_TRUTH_COLUMNS, (size_t)count * row);
    }
    return KILN_OK;
}

/* What take() made. */
static void drop(KilnBoxSet *part)
{
    free(part->paths);
    free(part->starts);
    free(part->boxes);
}

KilnStatus kiln_box_set_hold_out(KilnBoxSet *set, double fraction, uint64_t seed, KilnBoxSet *ret,
                                 KilnError *err)
{
    const int64_t part = (int64_t)((double)set->count * fraction + 0.5), held = part > 1 ? part : 1;
    KilnBoxSet stay = { 0 }, out = { 0 };

    if (held >= set->count)
        return kiln_error_set(err, KILN_E_RANGE,
                              "%g of %lld training images leaves none to train on", fraction,
                              (long long)set->count);
    int32_t *order = malloc((size_t)set->count * sizeof(*order));
    KilnStatus status = order != NULL ? kiln_hold_out(set->count, held, seed, order, err)
                                      : kiln_error_nomem(err, (size_t)set->count * sizeof(*order));
    if (status >= 0)
        status = take(set, order, set->count - held, &stay, err);
    if (status >= 0)
        status = take(set, order + (set->count - held), held, &out, err);
    free(order);
    if (status < 0) {
        drop(&stay);
        drop(&out);
        return status;
    }
    drop(set);
    set->count = stay.count;
    set->paths = stay.paths;
    set->starts = stay.starts;
    set->boxes = stay.boxes;
    set->most = stay.most;
    kiln_box_set_release(ret); /* it may have classes */
    *ret = out;
    return KILN_OK;
}

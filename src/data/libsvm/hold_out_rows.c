/* Rows for validation: a part of the training rows, of queries whole ones. */
#include <math.h>
#include <stdlib.h>

#include "kiln/files/libsvm.h"

/* The group of each row: its query, or itself. Returns their number. */
static int64_t group_rows(const KilnLibsvm *rows, int64_t *group)
{
    int64_t n = 0;

    for (int64_t i = 0; i < rows->n; i++) {
        n += i == 0 || rows->queries == NULL || rows->queries[i] != rows->queries[i - 1];
        group[i] = n - 1;
    }
    return n;
}

/* List the rows whose group is held out, or those whose is not; returns their number. */
static int64_t list_rows(const int64_t *group, int64_t n, const bool *held, bool which,
                         int64_t *ret)
{
    int64_t count = 0;

    for (int64_t i = 0; i < n; i++)
        if (held[group[i]] == which)
            ret[count++] = i;
    return count;
}

/* Mark `n_held` of the groups by the seed. */
static KilnStatus choose(int64_t n_groups, int64_t n_held, uint64_t seed, bool *ret, KilnError *err)
{
    int32_t *order = malloc((size_t)n_groups * sizeof(*order) + 1);
    KilnStatus status = order != NULL ? kiln_hold_out(n_groups, n_held, seed, order, err)
                                      : kiln_error_nomem(err, (size_t)n_groups * sizeof(*order));

    for (int64_t i = n_groups - n_held; i < n_groups && status >= 0; i++)
        ret[order[i]] = true;
    free(order);
    return status;
}

KilnStatus kiln_libsvm_hold_out(const KilnLibsvm *rows, double fraction, uint64_t seed,
                                int64_t **ret_kept, int64_t *ret_n_kept, int64_t **ret_held,
                                int64_t *ret_n_held, KilnError *err)
{
    const size_t bytes = (size_t)rows->n * sizeof(int64_t);
    int64_t *group = malloc(bytes + 1);
    bool *held = calloc((size_t)rows->n + 1, sizeof(*held));

    *ret_kept = malloc(bytes + 1);
    *ret_held = malloc(bytes + 1);
    KilnStatus status = group != NULL && held != NULL && *ret_kept != NULL && *ret_held != NULL
                            ? KILN_OK
                            : kiln_error_nomem(err, bytes);
    const int64_t n = status >= 0 ? group_rows(rows, group) : 0;
    const int64_t n_held = llround((double)n * fraction);
    if (status >= 0 && n_held >= n)
        status = kiln_error_set(err, KILN_E_RANGE,
                                "val_fraction: %g of %lld %s leaves none to train on", fraction,
                                (long long)n, rows->queries != NULL ? "queries" : "rows");
    if (status >= 0)
        status = choose(n, n_held, seed, held, err);
    if (status >= 0) {
        *ret_n_kept = list_rows(group, rows->n, held, false, *ret_kept);
        *ret_n_held = list_rows(group, rows->n, held, true, *ret_held);
    }
    free(group);
    free(held);
    return status;
}

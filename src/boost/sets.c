/* The sets that a task of trees reads as a whole. */
#include <stdlib.h>

#include "kiln/tools/boost_task.h"

static KilnStatus make_labels(KilnBoostSet *set, KilnError *err)
{
    const size_t bytes = (size_t)set->rows.n * sizeof(*set->labels);

    set->labels = malloc(bytes + 1);
    if (set->labels == NULL)
        return kiln_error_nomem(err, bytes);
    for (int64_t i = 0; i < set->rows.n; i++) {
        if (set->rows.targets[i] < 0.0f)
            return kiln_error_set(err, KILN_E_RANGE, "row %lld has no class", (long long)i + 1);
        set->labels[i] = (int32_t)set->rows.targets[i];
    }
    return KILN_OK;
}

KilnStatus kiln_boost_set_read(KilnTrainer *trainer, KilnSplit split, size_t set,
                               const KilnBoostColumns *columns, KilnBoostKind kind,
                               KilnBoostSet *ret, KilnError *err)
{
    const KilnTable *table = NULL;
    KilnStatus status = kiln_trainer_table(trainer, split, set, &table, err);

    *ret = (KilnBoostSet) { 0 };
    if (status >= 0)
        status = kiln_boost_rows_init(kiln_trainer_spec(trainer), columns, table, &ret->rows, err);
    if (status >= 0 && ret->rows.targets == NULL)
        status = kiln_error_set(err, KILN_E_MISSING, "its samples have no label or target");
    if (status >= 0 && kind == KILN_BOOST_RANKINGS && ret->rows.groups == NULL)
        status = kiln_error_set(err, KILN_E_MISSING, "its samples have no queries to rank within");
    if (status >= 0 && kind == KILN_BOOST_CLASSES)
        status = make_labels(ret, err);
    if (status >= 0)
        status = kiln_boost_data_new(columns, &ret->rows, kiln_trainer_threads(trainer), &ret->data,
                                     err);
    free(ret->rows.values);
    ret->rows.values = NULL;
    if (status >= 0)
        return KILN_OK;
    kiln_boost_set_release(ret);
    return kiln_error_prefix(err, "the %s set: ", kiln_split_name(split));
}

void kiln_boost_set_release(KilnBoostSet *set)
{
    kiln_boost_data_free(set->data);
    kiln_boost_rows_release(&set->rows);
    free(set->labels);
    *set = (KilnBoostSet) { 0 };
}

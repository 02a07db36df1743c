/* A table while its rows are read and fitted. */
#ifndef KILN_DATA_TABLE_LOAD_H
#define KILN_DATA_TABLE_LOAD_H

#include "data/table/table_data.h"

typedef struct KilnTableLoad {
    KilnTableData *data;
    const KilnDataContext *context;
    KilnCellColumn *columns; /* of the plan */
    bool *wanted;            /* which are read */
    KilnCells cells[KILN_SPLIT_COUNT];
    KilnSplit reading; /* whose files are read now */
    bool again;        /* a second time: bad rows are counted */
    KilnSplitBy by;
    KilnSplitList lists[KILN_SPLIT_COUNT];
} KilnTableLoad;

/* The columns of the training files, with the kinds that the user gives, into the plan.
 * (columns.c) */
KILN_NODISCARD KilnStatus kiln_table_list_columns(KilnTableLoad *load, KilnError *err);
/* Find the columns that say which rows are held out: load->by. */
KILN_NODISCARD KilnStatus kiln_table_find_split_columns(KilnTableLoad *load, KilnError *err);
/* Which columns are read, and which as texts: load->wanted, load->columns. */
KILN_NODISCARD KilnStatus kiln_table_choose_columns(KilnTableLoad *load, KilnError *err);

/* Keep the rows of a list whose cells are what their columns are; `no_target`: the target is not
 * looked at. (check_rows.c) */
KILN_NODISCARD KilnStatus kiln_table_check_list(KilnTableLoad *load, KilnSplitList *list,
                                                bool no_target, KilnError *err);
/* Drop rows of the source's cells without a target; of test files that have none at all keep
 * them. */
KILN_NODISCARD KilnStatus kiln_table_check_targets(KilnTableLoad *load, KilnSplit source,
                                                   KilnError *err);

#endif

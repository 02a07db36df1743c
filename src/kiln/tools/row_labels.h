/* The labels of a row of text data that may have any number of them. */
#ifndef KILN_ROW_LABELS_H
#define KILN_ROW_LABELS_H

#include "kiln/files/text_records.h"
#include "kiln/tools/name_list.h"

/* How a row with any number of labels has them: in one column, as a list (KILN_RECORDS_ITEM_END) of
 * texts with `separator` between labels; or in columns of their own, with a flag in each. */
typedef struct KilnLabelFormat {
    const char *end;            /* of kiln_label_cut; NULL: none */
    const char *separator;      /* NULL: none */
    const char *const *columns; /* the names of labels with columns of their own */
    size_t n_columns;
} KilnLabelFormat;

/* The labels of a row that are still to be read. */
typedef struct KilnRowLabels {
    const KilnLabelFormat *format;
    const KilnString *fields; /* the column of the labels, or n_columns flags */
    KilnString list, item;    /* the rest of the column, and of an item of it */
    size_t column;            /* of `columns`, the next one */
} KilnRowLabels;

/* Begin to read a row; both are borrowed. */
KILN_API KilnRowLabels kiln_row_labels(const KilnLabelFormat *format, const KilnString *fields);
/* The next label, without blanks around it; empty ones are none. False: there is none left. */
KILN_API bool kiln_row_labels_next(KilnRowLabels *labels, KilnString *ret);
/* Whether a value is a flag: 1, true, 0 or false. */
KILN_API bool kiln_label_flag(KilnString value, bool *ret);
/* The part of a label before the text `end`; all of it if `end` is NULL or not in it. */
KILN_API KilnString kiln_label_cut(KilnString label, const char *end);

/* What the labels of a row must be. */
typedef struct KilnLabelRule {
    const KilnLabelFormat *format;
    bool several;       /* any number; else one */
    const char *column; /* of the labels, for messages */
    bool given;         /* the classes are those of the option datamodule.classes */
} KilnLabelRule;

/* Check a row's labels: KILN_E_MISSING if there is none but should be, KILN_E_TYPE for several
 * where there should be one, a label of several lines and a flag that is none, KILN_E_KEY for a
 * label that is not among `classes`; with `adds` it is added. */
KILN_API KILN_NODISCARD KilnStatus kiln_row_labels_check(const KilnLabelRule *rule,
                                                         const KilnString *fields,
                                                         KilnNameList *classes, bool adds,
                                                         KilnError *err);

/* ---- Labels of all rows ---------------------------------------------------------------------- */

/* The labels of rows by their numbers in a list of names. A zeroed one is ready. */
typedef struct KilnLabelNumbers {
    int64_t n;        /* rows */
    int32_t *numbers; /* of all rows */
    int64_t *starts;  /* [n + 1]: row i has numbers[starts[i]] to numbers[starts[i + 1] - 1] */
    size_t room, starts_room;
} KilnLabelNumbers;

/* Append a row's labels, each once; all must be among the names. KILN_E_NOMEM. */
KILN_API KILN_NODISCARD KilnStatus kiln_label_numbers_add(KilnLabelNumbers *to,
                                                          const KilnLabelFormat *format,
                                                          const KilnString *fields,
                                                          const KilnNameList *names,
                                                          KilnError *err);
/* Write 1 for each label of row i to ret[n_names], and 0 for all others. */
KILN_API void kiln_label_numbers_flags(const KilnLabelNumbers *labels, int64_t i, size_t n_names,
                                       float *ret);
/* Free the memory; zeroed afterwards. */
KILN_API void kiln_label_numbers_release(KilnLabelNumbers *labels);

#endif

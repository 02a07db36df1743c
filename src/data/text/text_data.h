/* What the files of text data share. */
#ifndef KILN_DATA_TEXT_TEXT_DATA_H
#define KILN_DATA_TEXT_TEXT_DATA_H

#include "kiln/tools/text_data.h"

/* The rows of a split. */
typedef struct KilnTextRows {
    const KilnRecords *records; /* of held-out rows those of the training split */
    size_t *columns;            /* numbers of the wanted ones; shared likewise */
    int64_t *list;              /* [count]: numbers of rows */
    int64_t count;
} KilnTextRows;

/* Rows that were skipped for one reason. */
typedef struct KilnTextSkipped {
    int64_t count;
    char example[256], reason[256]; /* where the first one is, and its message */
} KilnTextSkipped;

struct KilnTextData {
    KilnTextWanted wanted; /* its names only while it is opened */
    KilnOnError on_error;
    bool inferred; /* the format of the files */
    KilnRecords *owned[KILN_SPLIT_COUNT];
    KilnTextRows rows[KILN_SPLIT_COUNT];
    KilnTextSkipped skipped[KILN_SPLIT_COUNT][5];
};

#endif

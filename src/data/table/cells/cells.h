/* Cells of a table while it is read: a number, a text by its code, or nothing. */
#ifndef KILN_DATA_TABLE_CELLS_H
#define KILN_DATA_TABLE_CELLS_H

#include <string.h>

#include "base/arena.h"
#include "data/table/cells/number.h"
#include "kiln/files/text_records.h"

/* The bits of a finite f64; or a NaN that stands for a missing value, or for the text of a code. */
typedef uint64_t KilnCell;
#define KILN_CELL_MISSING UINT64_C(0x7ff8000000000000)
#define KILN_CELL_TEXT UINT64_C(0x7ffc000000000000)

static inline bool kiln_cell_is_number(KilnCell cell)
{
    return (cell & UINT64_C(0x7ff0000000000000)) != UINT64_C(0x7ff0000000000000);
}

static inline bool kiln_cell_is_text(KilnCell cell)
{
    return (cell & KILN_CELL_TEXT) == KILN_CELL_TEXT;
}

static inline int32_t kiln_cell_code(KilnCell cell)
{
    return (int32_t)(uint32_t)cell;
}

static inline KilnCell kiln_cell_of_number(double number)
{
    KilnCell cell;

    memcpy(&cell, &number, sizeof(cell));
    return cell;
}

static inline double kiln_cell_number(KilnCell cell)
{
    double number;

    memcpy(&number, &cell, sizeof(number));
    return number;
}

/* ---- From text ------------------------------------------------------------------------------- */

/* How texts are read as cells. */
typedef struct KilnCellRules {
    char decimal;               /* '.' or ',' */
    const char *const *missing; /* texts that stand for a missing value, beside "" */
    size_t n_missing;
    bool numeric_missing; /* one of them looks like a number */
    bool first[256];      /* bytes that one of them begins with */
} KilnCellRules;

void kiln_cell_rules_init(KilnCellRules *rules, char decimal, const char *const *missing, size_t n);

/* A text as a cell. */
typedef struct KilnCellValue {
    enum { KILN_VALUE_MISSING, KILN_VALUE_NUMBER, KILN_VALUE_TEXT } kind;
    double number;
    KilnString text; /* without blanks around it; also of a number */
} KilnCellValue;

/* Read a text; with `as_text` a number is a text, too. */
KilnCellValue kiln_cell_value(const KilnCellRules *rules, KilnString text, bool as_text);
/* ---- Dates ----------------------------------------------------------------------------------- */

/* The numbers that a date becomes. */
typedef enum KilnDatePart {
    KILN_DATE_TIME, /* days since 1970-01-01, with a fraction */
    KILN_DATE_YEAR,
    KILN_DATE_MONTH,   /* 1 to 12 */
    KILN_DATE_DAY,     /* 1 to 31 */
    KILN_DATE_WEEKDAY, /* Monday is 0 */
    KILN_DATE_HOUR,    /* with a fraction; of columns that have times */
    KILN_DATE_PARTS
} KilnDatePart;
extern const char *const kiln_date_parts[KILN_DATE_PARTS];

/* Read YYYY-MM-DD or YYYY/MM/DD, with a time after "T" or a blank where there is one: HH:MM,
 * HH:MM:SS, fractions of seconds; Z or +HH:MM after it is taken off, so that times are UTC. False:
 * it is no such date. */
bool kiln_date_read(KilnString text, double ret[KILN_DATE_PARTS]);

/* ---- Texts by code --------------------------------------------------------------------------- */

/* The different texts of a column. A zeroed one is ready. */
typedef struct KilnDictionary {
    KilnString *texts; /* by code; each ends with a NUL */
    uint64_t *hashes;
    size_t n, texts_capacity, hashes_capacity;
    uint32_t *slots; /* code + 1; 0: empty */
    size_t n_slots;  /* a power of two */
    KilnArena arena;
} KilnDictionary;

/* The code of a text, which is added if it is new; -1: memory is out. */
int32_t kiln_dictionary_add(KilnDictionary *dictionary, KilnString text);
/* -1: it is not there. */
int32_t kiln_dictionary_find(const KilnDictionary *dictionary, KilnString text);
void kiln_dictionary_release(KilnDictionary *dictionary);

/* Read a text as a cell; a new text of it is added. False: memory is out. */
bool kiln_cell_of_text(const KilnCellRules *rules, bool as_text, KilnDictionary *dictionary,
                       KilnString text, KilnCell *ret);

#endif

/* The values of a sweep: a,b or choice(...), range(...), glob(...), interval(...). */
#ifndef KILN_CONFIG_SWEEP_SWEEP_VALUE_H
#define KILN_CONFIG_SWEEP_SWEEP_VALUE_H

#include "config/override/value.h"

/* The most values of all arguments of a sweep together. */
enum { KILN_SWEEP_VALUES = 100000 };

typedef enum KilnSweepKind {
    KILN_SWEEP_CHOICE,
    KILN_SWEEP_RANGE,
    KILN_SWEEP_GLOB,
    KILN_SWEEP_INTERVAL
} KilnSweepKind;

typedef struct KilnNumber {
    bool real;     /* a float */
    int64_t whole; /* of an integer */
    double value;  /* of both */
} KilnNumber;

struct KilnSweepValue {
    KilnSweepKind kind;
    KilnConfigNode *items;        /* CHOICE: the values; GLOB: the patterns. A list, which is the
                                   * sweep where a function takes a value */
    KilnConfigNode *exclude;      /* GLOB: patterns; NULL: none */
    KilnNumber start, stop, step; /* RANGE, INTERVAL */
    bool stepped;                 /* INTERVAL: `step` is given */
    const double *weights;        /* CHOICE: of its values; NULL: equal ones */
    bool simple;                  /* CHOICE: only commas, which choice(...) may contain */
    bool shuffle, zip;
    const char *const *tags; /* NULL-terminated; NULL: none */
    const char *when_key;    /* when(): the override on which this one depends; or NULL */
    const KilnConfigNode
        *when_values;     /* a list: those of its values with which there is this one */
    KilnSweepValue *next; /* of the same override */
};

/* A new sweep of the parser's override. `items` may be NULL (an empty list) or the arguments of a
 * call. NULL when memory is out. */
KilnSweepValue *kiln_sweep_value_new(KilnValueParser *parser, KilnSweepKind kind,
                                     KilnConfigNode *items);
/* A new sweep like `from`, with items of its own. NULL when memory is out. */
KilnSweepValue *kiln_sweep_value_copy(KilnValueParser *parser, const KilnSweepValue *from);
/* The sweep whose items the node is; NULL when it is a value. */
KilnSweepValue *kiln_sweep_value_of(const KilnValueParser *parser, const KilnConfigNode *node);
/* The values in order, a list in the arena; of an INTERVAL there is none. `options`: names in the
 * group, for GLOB. NULL after an error (too many values), or when memory is out. */
KilnConfigNode *kiln_sweep_value_list(const KilnSweepValue *sweep, const KilnMaker *maker,
                                      const char *const *options, KilnError *err);

/* Sort a list of numbers or of text; false for others. */
KILN_NODISCARD bool kiln_list_sort(KilnConfigNode *list, bool reverse);
/* Shuffle a list; lists of the same length get the same order. */
void kiln_list_shuffle(KilnConfigNode *list);
/* The number of a scalar; false when it is not a number or does not fit. */
bool kiln_number_of(const KilnConfigNode *node, KilnNumber *ret);
/* A new scalar with the number; NULL when memory is out. */
KilnConfigNode *kiln_number_node(const KilnMaker *maker, const KilnNumber *number);

#endif

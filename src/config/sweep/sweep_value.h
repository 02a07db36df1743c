/* A value that stands for several: a,b or choice(...), range(...), glob(...),
 * interval(...); and what functions do with it. */
#ifndef KILN_CONFIG_SWEEP_SWEEP_VALUE_H
#define KILN_CONFIG_SWEEP_SWEEP_VALUE_H

#include "config/override/value.h"

/* Values that the arguments of a sweep may have, all together. */
enum { KILN_SWEEP_VALUES = 100000 };

typedef enum KilnSweepKind {
    KILN_SWEEP_CHOICE,
    KILN_SWEEP_RANGE,
    KILN_SWEEP_GLOB,
    KILN_SWEEP_INTERVAL
} KilnSweepKind;

typedef struct KilnNumber {
    bool real;     /* no integer */
    int64_t whole; /* of an integer */
    double value;  /* of both */
} KilnNumber;

struct KilnSweepValue {
    KilnSweepKind kind;
    KilnConfigNode *items;        /* CHOICE: the values; GLOB: the patterns. A list, which stands
                                   * for the sweep where a function takes a value */
    KilnConfigNode *exclude;      /* GLOB: patterns; NULL: none */
    KilnNumber start, stop, step; /* RANGE; INTERVAL: start and stop */
    bool simple;                  /* CHOICE: only commas, so choice(...) may stand around it */
    bool shuffle, zip;
    KilnSweepValue *next; /* the others that were met in the same override */
};

/* A new one that `value` knows. `items` may be NULL (an empty list) or an argument
 * list of a call. NULL when memory is out. */
KilnSweepValue *kiln_sweep_value_new(KilnValueParser *parser, KilnSweepKind kind,
                                     KilnConfigNode *items);
/* The sweep that the node stands for; NULL when it is a value. */
KilnSweepValue *kiln_sweep_value_of(const KilnValueParser *parser, const KilnConfigNode *node);
/* The values in order, a list in the arena. `options`: names in the group, for GLOB.
 * KILN_E_RANGE when there is no end of them. */
KILN_NODISCARD KilnStatus kiln_sweep_value_list(const KilnSweepValue *sweep, const KilnMaker *maker,
                                                const char *const *options, KilnConfigNode **ret,
                                                KilnError *err);

/* In another order (a list). Only numbers, or only text, can be sorted: KILN_E_TYPE
 * without a message. */
KILN_NODISCARD KilnStatus kiln_list_sort(KilnConfigNode *list, bool reverse);
/* The same command gives the same order. */
void kiln_list_shuffle(KilnConfigNode *list);
/* The number that a scalar is; false when it is none, or does not fit. */
bool kiln_number_of(const KilnConfigNode *node, KilnNumber *ret);

#endif

/* The names that steps log, each with its accumulator over the epoch. */
#ifndef KILN_TRAIN_METRICS_LOGGED_NAMES_H
#define KILN_TRAIN_METRICS_LOGGED_NAMES_H

#include "kiln/array.h"
#include "kiln/trainer.h"
#include "train/loop/phase.h"

enum {
    KILN_METRIC_NAME = 256,               /* longest name of a metric */
    KILN_LOG_ALL = 2 * KILN_LOG_CELL - 1, /* all of KilnLogFlags */
};
#define KILN_NO_VALUE SIZE_MAX

/* A name logged both by step and by epoch is forked: its values are NAME_step and NAME_epoch. */
typedef struct KilnLoggedName {
    char *name;
    KilnPhase phase; /* each phase accumulates a name by itself */
    unsigned flags;
    double sum, weight; /* of the epoch so far; with KILN_LOG_MIN or MAX, `sum` is that value */
    size_t step_value, epoch_value; /* numbers in KilnMetricValues; KILN_NO_VALUE: none yet */
} KilnLoggedName;

/* Zeroed at the start. */
typedef struct KilnLoggedNames {
    KilnLoggedName *list;
    size_t n, capacity;
    size_t next; /* where the next search starts: steps log in the same order again and again */
} KilnLoggedNames;

void kiln_logged_names_release(KilnLoggedNames *names);
/* The number of the name in that phase, added when it is new; -1 when memory is out. */
int kiln_logged_names_declare(KilnLoggedNames *names, KilnPhase phase, const char *name,
                              unsigned flags);
/* Whether the name is logged both by step and by epoch. */
bool kiln_logged_name_is_forked(const KilnLoggedName *name);
/* The name of its value by step or epoch (`by`: KILN_LOG_STEP or KILN_LOG_EPOCH). Returns buf. */
const char *kiln_logged_name_value(const KilnLoggedName *name, unsigned by,
                                   char buf[KILN_METRIC_NAME]);
/* Whether `name` is the declared name or that of one of its values. */
bool kiln_logged_name_matches(const KilnLoggedName *declared, const char *name);
/* Add a value to the epoch's. */
void kiln_logged_name_accumulate(KilnLoggedName *name, double value, double weight);
/* Add what another rank accumulated under the name. */
void kiln_logged_name_merge(KilnLoggedName *name, double sum, double weight);
/* The value of the epoch: mean, sum, minimum or maximum. */
double kiln_logged_name_result(const KilnLoggedName *name);
/* Start a new epoch of a phase. */
void kiln_logged_names_reset(KilnLoggedNames *names, KilnPhase phase);

#endif

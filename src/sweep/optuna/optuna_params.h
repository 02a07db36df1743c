/* The parameters of a sweep as Optuna has them: one for each key, with its distribution. */
#ifndef KILN_SWEEP_OPTUNA_OPTUNA_PARAMS_H
#define KILN_SWEEP_OPTUNA_OPTUNA_PARAMS_H

#include <jansson.h>

#include "sweep/sweep_state.h"

typedef enum KilnOptunaKind {
    KILN_OPTUNA_CATEGORICAL,
    KILN_OPTUNA_FLOAT,
    KILN_OPTUNA_INT
} KilnOptunaKind;

typedef struct KilnOptunaParam {
    const char *key; /* without its + */
    KilnOptunaKind kind;
    double low, high, step;   /* FLOAT, INT; step 0: none */
    bool log;                 /* FLOAT, INT */
    const char **choices;     /* CATEGORICAL: texts of overrides, after their = */
    size_t n_choices;         /* more than KILN_OPTUNA_CHOICES: the key is left out */
    size_t choices_capacity;  /* of the array */
    const char *distribution; /* in Optuna's JSON; NULL: the key is left out */
} KilnOptunaParam;

typedef struct KilnOptunaParams {
    KilnOptunaParam *items;
    size_t count;
} KilnOptunaParams;

/* Each trial repeats the choices of its parameters in the file. */
enum { KILN_OPTUNA_CHOICES = 1000 };

/* Find the parameters of the space and of all jobs: the keys that vary, with all their values. They
 * live in the arena. */
KILN_NODISCARD KilnStatus kiln_optuna_params(const KilnSweep *sweep, KilnArena *arena,
                                             KilnOptunaParams *ret, KilnError *err);
/* Put the values of a job, and their distributions, into two objects. False: the job has a value
 * that the parameters lack, and which is left out; find them again. */
bool kiln_optuna_values(const KilnSweep *sweep, const KilnOptunaParams *params, const KilnJob *job,
                        json_t **values, json_t **distributions);

#endif

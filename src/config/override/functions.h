/* Functions of the override grammar: choice(1,2), int(x), sort([3,1]). functions.c has their
 * table and binds arguments to parameters, casts.c and sweep/sweep_functions.c run them. */
#ifndef KILN_CONFIG_OVERRIDE_FUNCTIONS_H
#define KILN_CONFIG_OVERRIDE_FUNCTIONS_H

#include "config/sweep/sweep_value.h"

#define KILN_FUNCTION_PARAMETERS 3

/* A call with its arguments bound. */
typedef struct KilnFunctionCall {
    KilnValueParser *parser;
    const char *name;
    size_t at;                                       /* of the name, for messages */
    KilnConfigNode *args;                            /* of a variadic function: a list */
    KilnConfigNode *named[KILN_FUNCTION_PARAMETERS]; /* by parameter; NULL: not given */
} KilnFunctionCall;

/* Runs a call and returns a value, or the items of a new sweep (kiln_sweep_value_of); NULL after an
 * error, or when memory is out. */
typedef KilnConfigNode *KilnFunction(const KilnFunctionCall *call);

KilnFunction kiln_function_cast;   /* bool float int json_str str */
KilnFunction kiln_function_choice; /* zip */
KilnFunction kiln_function_extend_list;
KilnFunction kiln_function_glob;
KilnFunction kiln_function_range; /* interval */
KilnFunction kiln_function_shuffle;
KilnFunction kiln_function_sort;
KilnFunction kiln_function_tag;
KilnFunction kiln_function_when;

/* "column 3: sort(): ..."; returns NULL. */
KilnConfigNode *kiln_function_fail(const KilnFunctionCall *call, const char *format, ...)
    KILN_PRINTF(2, 3);
/* An error and false when one of the arguments is a sweep. */
bool kiln_function_refuse_sweeps(const KilnFunctionCall *call);

#endif

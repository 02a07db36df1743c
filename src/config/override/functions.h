/* Calls of functions in the override grammar. */
#ifndef KILN_CONFIG_OVERRIDE_FUNCTIONS_H
#define KILN_CONFIG_OVERRIDE_FUNCTIONS_H

#include "config/sweep/sweep_value.h"

#define KILN_CALL_NAMED 3

/* A call with its arguments sorted out. */
typedef struct KilnFunctionCall {
    KilnValueText *value;
    const char *name;
    size_t at;                              /* of the name, for messages */
    KilnConfigNode *places;                 /* arguments without a name, a list; of a function
                                             * with fixed parameters: none */
    KilnConfigNode *named[KILN_CALL_NAMED]; /* in the order of the function's parameters */
} KilnFunctionCall;

/* One function; *ret is a value, or stands for a sweep. */
typedef KilnStatus (*KilnFunction)(const KilnFunctionCall *call, KilnConfigNode **ret,
                                   KilnError *err);

/* "column 3: sort(): ..." */
KilnStatus kiln_call_fail(const KilnFunctionCall *call, KilnError *err, const char *format, ...)
    KILN_PRINTF(3, 4);

/* Casts: (value...), value= */
KilnStatus kiln_call_bool(const KilnFunctionCall *call, KilnConfigNode **ret, KilnError *err);
KilnStatus kiln_call_float(const KilnFunctionCall *call, KilnConfigNode **ret, KilnError *err);
KilnStatus kiln_call_int(const KilnFunctionCall *call, KilnConfigNode **ret, KilnError *err);
KilnStatus kiln_call_json_str(const KilnFunctionCall *call, KilnConfigNode **ret, KilnError *err);
KilnStatus kiln_call_str(const KilnFunctionCall *call, KilnConfigNode **ret, KilnError *err);
/* Appending to a list, as Hydra 1.4 has it. */
KilnStatus kiln_call_extend_list(const KilnFunctionCall *call, KilnConfigNode **ret,
                                 KilnError *err);
/* Sweeps. */
KilnStatus kiln_call_choice(const KilnFunctionCall *call, KilnConfigNode **ret, KilnError *err);
KilnStatus kiln_call_glob(const KilnFunctionCall *call, KilnConfigNode **ret, KilnError *err);
KilnStatus kiln_call_interval(const KilnFunctionCall *call, KilnConfigNode **ret, KilnError *err);
KilnStatus kiln_call_range(const KilnFunctionCall *call, KilnConfigNode **ret, KilnError *err);
KilnStatus kiln_call_shuffle(const KilnFunctionCall *call, KilnConfigNode **ret, KilnError *err);
KilnStatus kiln_call_sort(const KilnFunctionCall *call, KilnConfigNode **ret, KilnError *err);
KilnStatus kiln_call_tag(const KilnFunctionCall *call, KilnConfigNode **ret, KilnError *err);
KilnStatus kiln_call_zip(const KilnFunctionCall *call, KilnConfigNode **ret, KilnError *err);

#endif

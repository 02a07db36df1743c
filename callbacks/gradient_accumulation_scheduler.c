/* Changes the number of batches per optimizer step by epoch. */
#include "kiln.h"

#include <stdlib.h>
#include <string.h>

typedef struct Opts {
    KilnPairI64 *scheduling;
    size_t scheduling_count;
} Opts;

typedef struct State {
    KilnAccumulation *changes; /* by rising epochs */
} State;

static const KilnField fields[] = {
    KILN_FIELD_I64_MAP(Opts, scheduling, NULL, 1, 1000000,
                       "batches per optimizer step from an epoch (from 0) on: {0: 8, 4: 4, 8: 1}; "
                       "1 before the first"),
    KILN_FIELD_END,
};

enum { LARGEST_EPOCH = 1000000000 };

/* A decimal integer; -1: it is not one. */
static int64_t epoch_of(const char *text)
{
    int64_t epoch = text[0] != '\0' ? 0 : -1;

    for (const char *p = text; *p != '\0' && epoch >= 0; p++)
        epoch = *p >= '0' && *p <= '9' && epoch <= LARGEST_EPOCH / 10 ? 10 * epoch + (*p - '0')
                                                                      : -1;
    return epoch;
}

static KilnStatus check(const void *options, const char **ret_option, KilnError *err)
{
    const Opts *opts = options;

    *ret_option = "scheduling";
    if (opts->scheduling_count == 0)
        return kiln_error_set(err, KILN_E_MISSING,
                              "expected epochs with numbers of batches, such as {0: 8, 4: 1}");
    for (size_t i = 0; i < opts->scheduling_count; i++) {
        const char *key = opts->scheduling[i].key;

        if (epoch_of(key) < 0)
            return kiln_error_set(err, KILN_E_TYPE, "expected the number of an epoch, got \"%s\"",
                                  key);
        for (size_t k = 0; k < i; k++)
            if (epoch_of(opts->scheduling[k].key) == epoch_of(key))
                return kiln_error_set(err, KILN_E_KEY, "duplicate epoch %s", key);
    }
    return KILN_OK;
}

static int by_epoch(const void *a, const void *b)
{
    const KilnAccumulation *x = a, *y = b;

    return (x->epoch > y->epoch) - (x->epoch < y->epoch);
}

static KilnStatus init(KilnInstance *self, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);

    state->changes = calloc(opts->scheduling_count, sizeof(*state->changes));
    if (state->changes == NULL)
        return kiln_error_nomem(err, opts->scheduling_count * sizeof(*state->changes));
    for (size_t i = 0; i < opts->scheduling_count; i++)
        state->changes[i] = (KilnAccumulation) {
            .epoch = epoch_of(opts->scheduling[i].key),
            .batches = opts->scheduling[i].value,
        };
    qsort(state->changes, opts->scheduling_count, sizeof(*state->changes), by_epoch);
    return KILN_OK;
}

static void release(KilnInstance *self)
{
    State *state = kiln_state(self);

    free(state->changes);
}

static size_t accumulation(const KilnInstance *self, const KilnAccumulation **ret)
{
    const Opts *opts = kiln_opts(self);
    const State *state = kiln_state((KilnInstance *)self);

    *ret = state->changes;
    return opts->scheduling_count;
}

static const KilnCallbackOps ops = { .accumulation = accumulation };

const KilnComponent kiln_callback_gradient_accumulation_scheduler = {
    .kind = KILN_KIND_CALLBACK,
    .name = "gradient_accumulation_scheduler",
    .summary = "Change the number of batches per optimizer step by epoch",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .check = check,
    .init = init,
    .release = release,
    .ops.callback = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_callback_gradient_accumulation_scheduler, NULL };
KILN_PLUGIN_DEFINE(list)
#endif

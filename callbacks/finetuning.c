/* Freezes parts of the network and unfreezes them later, with growing learning rates. Lightning's
 * BackboneFinetuning for any number of phases, selected by patterns. */
#include "kiln.h"

#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct Phase {
    char **params;
    size_t params_count;
    int64_t *unfreeze_at_epoch;
    double initial_ratio_lr, growth;
    bool should_align;
} Phase;

typedef struct NamedPhase {
    char *key;
    Phase value;
} NamedPhase;

typedef struct Opts {
    NamedPhase *phases;
    size_t phases_count;
    char **freeze;
    size_t freeze_count;
    bool train_bn;
} Opts;

static const KilnField phase_fields[] = {
    KILN_FIELD_STR_LIST(Phase, params, NULL,
                        "patterns of parameter names, such as ['conv1.*', 'layer?.*']"),
    KILN_FIELD_I64_OPT(Phase, unfreeze_at_epoch, "10", 0, 1000000000,
                       "the first epoch, from 0, in which they train; null: never"),
    KILN_FIELD_F64(Phase, initial_ratio_lr, "0.1", 1e-12, 1e6,
                   "factor on their learning rate in that epoch"),
    KILN_FIELD_F64(Phase, growth, "2.0", 1e-6, 1e6, "growth of that factor in each later epoch"),
    KILN_FIELD_BOOL(Phase, should_align, "true", "limit the factor to 1"),
    KILN_FIELD_END,
};

static const KilnField fields[] = {
    KILN_FIELD_STRUCT_MAP(Opts, phases, NamedPhase, phase_fields, "{}",
                          "named phases; a parameter is in the first phase that matches"),
    KILN_FIELD_STR_LIST(Opts, freeze, "[]",
                        "patterns of parameter names that never train, such as ['encoder.*']; "
                        "before any phase"),
    KILN_FIELD_BOOL(Opts, train_bn, "true",
                    "train batch normalization in frozen parts and update its statistics; false: "
                    "freeze it, too, "
                    "and use its statistics"),
    KILN_FIELD_END,
};

static KilnStatus check(const void *opts, const char **ret_option, KilnError *err)
{
    const Opts *all = opts;

    *ret_option = "phases";
    if (all->phases_count == 0 && all->freeze_count == 0)
        return kiln_error_set(err, KILN_E_MISSING,
                              "nothing to freeze; write {backbone: {params: [...]}}, or patterns "
                              "in freeze");
    for (size_t i = 0; i < all->phases_count; i++)
        if (all->phases[i].value.params_count == 0)
            return kiln_error_set(err, KILN_E_MISSING, "%s.params is empty", all->phases[i].key);
    return KILN_OK;
}

/* ---- Which parameters -------------------------------------------------------------------- */

static bool fits(char *const *patterns, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (fnmatch(patterns[i], name, 0) == 0)
            return true;
    return false;
}

static bool is_always_frozen(const Opts *opts, const KilnParam *param)
{
    return fits(opts->freeze, opts->freeze_count, kiln_param_name(param));
}

/* NULL: it trains as usual. */
static const Phase *phase_of(const Opts *opts, const KilnParam *param)
{
    for (size_t i = 0; i < opts->phases_count; i++) {
        const Phase *phase = &opts->phases[i].value;

        if (fits(phase->params, phase->params_count, kiln_param_name(param)))
            return is_always_frozen(opts, param) ? NULL : phase;
    }
    return NULL;
}

/* A parameter of a layer that has running statistics. */
static bool of_batch_norm(const KilnParams *params, const KilnParam *param)
{
    const char *name = kiln_param_name(param), *dot = strrchr(name, '.');
    char sibling[300];

    if (dot == NULL)
        return false;
    snprintf(sibling, sizeof(sibling), "%.*s.running_mean", (int)(dot - name), name);
    return kiln_params_find(params, sibling) != NULL;
}

/* ---- Which epochs -----------------------------------------------------------------------------
 */

static bool is_frozen(const Phase *phase, int64_t epoch)
{
    return phase->unfreeze_at_epoch == NULL || epoch < *phase->unfreeze_at_epoch;
}

static double lr_scale(const KilnInstance *self, const KilnParams *params, const KilnParam *param,
                       int64_t epoch)
{
    const Opts *opts = kiln_opts(self);
    const Phase *phase = phase_of(opts, param);

    const bool frozen = is_always_frozen(opts, param);

    if ((phase == NULL && !frozen) || (opts->train_bn && of_batch_norm(params, param)))
        return 1.0;
    if (frozen)
        return 0.0;
    if (is_frozen(phase, epoch))
        return 0.0;
    const double scale = phase->initial_ratio_lr *
                         pow(phase->growth, (double)(epoch - *phase->unfreeze_at_epoch));
    if (!kiln_param_trained(param))
        return 1.0;
    return phase->should_align ? fmin(scale, 1.0) : scale;
}

static int64_t next_freeze(const KilnInstance *self, int64_t epoch)
{
    const Opts *opts = kiln_opts(self);
    int64_t next = -1;

    for (size_t i = 0; i < opts->phases_count; i++) {
        const int64_t *at = opts->phases[i].value.unfreeze_at_epoch;

        if (at != NULL && *at > epoch && (next < 0 || *at < next))
            next = *at;
    }
    return next;
}

/* ---- What the user sees --------------------------------------------------------------------- */

/* Values of the parameters of a phase. */
static int64_t count(const Opts *opts, const Phase *phase, const KilnParams *params)
{
    int64_t n = 0;

    for (size_t i = 0; i < kiln_params_count(params); i++) {
        const KilnParam *param = kiln_params_at(params, i);

        if (kiln_param_trained(param) && phase_of(opts, param) == phase)
            n += kiln_shape_count(kiln_param_shape(param));
    }
    return n;
}

static KilnStatus no_such_parameter(const char *option, const char *pattern,
                                    const KilnParams *params, KilnError *err)
{
    char names[400] = "";
    size_t used = 0, n = 0;

    for (size_t i = 0; i < kiln_params_count(params) && n < 8; i++) {
        const KilnParam *param = kiln_params_at(params, i);

        if (kiln_param_trained(param) && used < sizeof(names))
            used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s",
                                     n++ > 0 ? ", " : "", kiln_param_name(param));
    }
    return kiln_error_set(err, KILN_E_KEY,
                          "%s: \"%s\" matches no trained parameter; there are %s%s", option,
                          pattern, names, n == 8 ? ", ..." : "");
}

/* Every pattern must match a trained parameter. */
static KilnStatus check_patterns(const char *option, char *const *patterns, size_t n,
                                 const KilnParams *params, KilnError *err)
{
    for (size_t i = 0; i < n; i++) {
        bool any = false;

        for (size_t p = 0; p < kiln_params_count(params) && !any; p++)
            any = kiln_param_trained(kiln_params_at(params, p)) &&
                  fnmatch(patterns[i], kiln_param_name(kiln_params_at(params, p)), 0) == 0;
        if (!any)
            return no_such_parameter(option, patterns[i], params, err);
    }
    return KILN_OK;
}

static KilnStatus setup(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    const KilnParams *params = kiln_trainer_params(trainer);
    KilnStatus status = check_patterns("freeze", opts->freeze, opts->freeze_count, params, err);

    for (size_t i = 0; i < opts->phases_count && status >= 0; i++) {
        const Phase *phase = &opts->phases[i].value;
        char option[128];

        snprintf(option, sizeof(option), "phases.%s.params", opts->phases[i].key);
        status = check_patterns(option, phase->params, phase->params_count, params, err);
    }
    return status;
}

/* Values of the parameters that never train. */
static int64_t count_frozen(const Opts *opts, const KilnParams *params)
{
    int64_t n = 0;

    for (size_t i = 0; i < kiln_params_count(params); i++) {
        const KilnParam *param = kiln_params_at(params, i);

        if (kiln_param_trained(param) && is_always_frozen(opts, param))
            n += kiln_shape_count(kiln_param_shape(param));
    }
    return n;
}

static void tell(KilnTrainer *trainer, const Opts *opts, const NamedPhase *phase, int64_t epoch)
{
    const Phase *value = &phase->value;
    const long long n = (long long)count(opts, value, kiln_trainer_params(trainer));

    if (!is_frozen(value, epoch))
        kiln_trainer_print(trainer,
                           "finetuning: %s (%lld values) trains at %g of the learning rate",
                           phase->key, n, value->initial_ratio_lr);
    else if (value->unfreeze_at_epoch == NULL)
        kiln_trainer_print(trainer, "finetuning: %s (%lld values) is frozen", phase->key, n);
    else
        kiln_trainer_print(trainer, "finetuning: %s (%lld values) is frozen until epoch %lld",
                           phase->key, n, (long long)*value->unfreeze_at_epoch);
}

static KilnStatus on_train_epoch_start(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    const int64_t epoch = kiln_trainer_epoch(trainer);

    (void)err;
    if (epoch == 0 && opts->freeze_count > 0)
        kiln_trainer_print(trainer, "finetuning: %lld values are frozen",
                           (long long)count_frozen(opts, kiln_trainer_params(trainer)));
    for (size_t i = 0; i < opts->phases_count; i++) {
        const int64_t *at = opts->phases[i].value.unfreeze_at_epoch;

        if (epoch == 0 || (at != NULL && *at == epoch))
            tell(trainer, opts, &opts->phases[i], epoch);
    }
    return KILN_OK;
}

static const KilnCallbackOps ops = {
    .setup = setup,
    .on_train_epoch_start = on_train_epoch_start,
    .lr_scale = lr_scale,
    .next_freeze = next_freeze,
};

const KilnComponent kiln_callback_finetuning = {
    .kind = KILN_KIND_CALLBACK,
    .name = "finetuning",
    .summary = "Freeze parts of the network, and train them later at their own rates",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .check = check,
    .ops.callback = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_callback_finetuning, NULL };
KILN_PLUGIN_DEFINE(list)
#endif

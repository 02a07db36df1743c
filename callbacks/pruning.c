/* Sets parameters to zero and keeps them zero: the methods of torch.nn.utils.prune at the times of
 * Lightning's ModelPruning. Repeated pruning applies to the remaining values. */
#include "kiln.h"

#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum Method {
    L1_UNSTRUCTURED,
    RANDOM_UNSTRUCTURED,
    LN_STRUCTURED,
    RANDOM_STRUCTURED
} Method;

typedef struct Opts {
    int64_t pruning_fn; /* Method */
    char **parameters_to_prune;
    size_t parameters_to_prune_count;
    bool *use_global_unstructured;
    KilnQuantity amount;
    int64_t *epochs;
    size_t epochs_count;
    bool use_lottery_ticket_hypothesis, prune_on_train_epoch_end;
    int64_t *pruning_dim;
    double *pruning_norm;
} Opts;

static const KilnChoice methods[] = {
    { "l1_unstructured", L1_UNSTRUCTURED },
    { "random_unstructured", RANDOM_UNSTRUCTURED },
    { "ln_structured", LN_STRUCTURED },
    { "random_structured", RANDOM_STRUCTURED },
    { NULL, 0 },
};

static const KilnField fields[] = {
    KILN_FIELD_ENUM(Opts, pruning_fn, NULL, methods,
                    "unstructured: single values, the smallest or random ones; structured: whole "
                    "channels, those with "
                    "the smallest norm or random ones"),
    KILN_FIELD_STR_LIST(Opts, parameters_to_prune, "['*weight', '*bias']",
                        "patterns over parameter names"),
    KILN_FIELD_BOOL_OPT(Opts, use_global_unstructured, "null",
                        "choose among the values of all parameters together, not per parameter; "
                        "null: yes for single "
                        "values"),
    KILN_FIELD_QUANTITY(
        Opts, amount, "0.5", KILN_ALLOW_COUNT | KILN_ALLOW_FRACTION,
        "values or channels to prune each time, or the fraction of the remaining ones"),
    KILN_FIELD_I64_LIST(Opts, epochs, "[]", 0, 1000000000,
                        "epochs, from 0, at whose end to prune; empty: all but the last"),
    KILN_FIELD_BOOL(
        Opts, use_lottery_ticket_hypothesis, "true",
        "reset the remaining values to those at the start of the run (Frankle and Carbin 2019)"),
    KILN_FIELD_BOOL(Opts, prune_on_train_epoch_end, "true",
                    "false: prune at the end of validation"),
    KILN_FIELD_I64_OPT(Opts, pruning_dim, "null", -6, 5, "structured: the axis of the channels"),
    KILN_FIELD_F64_OPT(Opts, pruning_norm, "null", 1e-6, (double)INFINITY,
                       "ln_structured: the norm of a channel, such as 2"),
    KILN_FIELD_END,
};

typedef struct State {
    uint8_t *pruned; /* per element of the flat parameters: 1: pruned */
    int64_t size;
    float *values; /* of the parameter at work; as long as the largest */
    int64_t round; /* number of prunings; keys the random numbers */
} State;

static bool is_structured(const Opts *opts)
{
    return opts->pruning_fn == LN_STRUCTURED || opts->pruning_fn == RANDOM_STRUCTURED;
}

static bool is_global(const Opts *opts)
{
    return opts->use_global_unstructured != NULL ? *opts->use_global_unstructured
                                                 : !is_structured(opts);
}

static KilnStatus check(const void *opts, const char **ret_option, KilnError *err)
{
    const Opts *all = opts;
    const char *name = methods[all->pruning_fn].name;

    if (is_structured(all) && is_global(all)) {
        *ret_option = "use_global_unstructured";
        return kiln_error_set(err, KILN_E_RANGE, "%s prunes channels, parameter by parameter",
                              name);
    }
    if (is_structured(all) != (all->pruning_dim != NULL)) {
        *ret_option = "pruning_dim";
        return kiln_error_set(err, KILN_E_RANGE,
                              is_structured(all)
                                  ? "%s needs the axis of the channels, 0 for outputs"
                                  : "%s prunes single values and has no axis",
                              name);
    }
    if ((all->pruning_fn == LN_STRUCTURED) != (all->pruning_norm != NULL)) {
        *ret_option = "pruning_norm";
        return kiln_error_set(
            err, KILN_E_RANGE,
            all->pruning_norm == NULL ? "%s needs a norm, such as 2" : "%s has no norm", name);
    }
    return KILN_OK;
}

static void release(KilnInstance *self)
{
    State *state = kiln_state(self);

    free(state->pruned);
    free(state->values);
}

/* ---- Which parameters --------------------------------------------------------------------- */

/* Structured methods skip parameters with one axis. */
static bool is_subject(const Opts *opts, const KilnParam *param)
{
    if (!kiln_param_trained(param) || (is_structured(opts) && kiln_param_shape(param)->rank < 2))
        return false;
    for (size_t i = 0; i < opts->parameters_to_prune_count; i++)
        if (fnmatch(opts->parameters_to_prune[i], kiln_param_name(param), 0) == 0)
            return true;
    return false;
}

/* Set pruned elements to zero. */
static void apply(const State *state, KilnParam *param)
{
    const uint8_t *pruned = state->pruned + kiln_param_offset(param);

    kiln_param_read(param, KILN_F32, state->values);
    for (int64_t i = 0; i < kiln_shape_count(kiln_param_shape(param)); i++)
        if (pruned[i] != 0)
            state->values[i] = 0.0f;
    kiln_param_write(param, KILN_F32, state->values);
}

/* ---- Pruning ------------------------------------------------------------------------ */

typedef struct Pruning {
    const Opts *opts;
    State *state;
    KilnTrainer *trainer;
    KilnParams *params;
} Pruning;

static int64_t share_of(const Opts *opts, int64_t left)
{
    if (opts->amount.of == KILN_QUANTITY_COUNT)
        return (int64_t)opts->amount.value;
    return (int64_t)nearbyint(opts->amount.value * (double)left); /* half to even, as Python */
}

static KilnStatus too_many(const Opts *opts, int64_t left, const char *what, KilnError *err)
{
    return kiln_error_set(err, KILN_E_RANGE, "amount=%lld is more than the %lld %s that are left",
                          (long long)opts->amount.value, (long long)left, what);
}

static void start_draw(const Pruning *pruning, const KilnParam *param, KilnRng *rng)
{
    kiln_rng_init(rng, kiln_trainer_seed(pruning->trainer), KILN_RNG_USER,
                  (uint32_t)pruning->state->round, (uint64_t)kiln_param_offset(param));
}

/* ---- Single values ------------------------------------------------------------------ */

typedef void Visit(void *ctx, uint32_t bits, uint8_t *pruned);

/* A remaining value of a parameter with its key; the smallest keys are pruned. Keys are not
 * negative, so their bits sort like the numbers. */
static void visit(const Pruning *pruning, KilnParam *param, Visit *then, void *ctx)
{
    uint8_t *pruned = pruning->state->pruned + kiln_param_offset(param);
    const bool draws = pruning->opts->pruning_fn == RANDOM_UNSTRUCTURED;
    const int64_t n = kiln_shape_count(kiln_param_shape(param));
    KilnRng rng;

    start_draw(pruning, param, &rng);
    kiln_param_read(param, KILN_F32, pruning->state->values);
    for (int64_t i = 0; i < n; i++) {
        const float key = draws ? kiln_rng_uniform(&rng) : fabsf(pruning->state->values[i]);
        uint32_t bits;

        memcpy(&bits, &key, sizeof(bits));
        if (pruned[i] == 0)
            then(ctx, bits, &pruned[i]);
    }
}

/* The same over one parameter, or (NULL) all pruned parameters. */
static void visit_some(const Pruning *pruning, KilnParam *only, Visit *then, void *ctx)
{
    for (size_t i = 0; i < kiln_params_count(pruning->params); i++) {
        KilnParam *param = kiln_params_at(pruning->params, i);

        if (only != NULL ? param == only : is_subject(pruning->opts, param))
            visit(pruning, param, then, ctx);
    }
}

/* The k-th smallest key, found eight bits at a time. */
typedef struct Search {
    uint32_t prefix, known; /* known bits of the key, and their mask */
    int shift;
    int64_t counts[256];
    int64_t left; /* remaining values */
    int64_t k;    /* among those with the prefix */
} Search;

static void count_bits(void *ctx, uint32_t bits, uint8_t *pruned)
{
    Search *search = ctx;

    (void)pruned;
    search->left++;
    if ((bits & search->known) == search->prefix)
        search->counts[(bits >> search->shift) & 255u]++;
}

static void prune_small(void *ctx, uint32_t bits, uint8_t *pruned)
{
    Search *search = ctx;

    if (bits < search->prefix || (bits == search->prefix && search->k-- > 0))
        *pruned = 1;
}

static KilnStatus prune_values(const Pruning *pruning, KilnParam *only, KilnError *err)
{
    Search search = { .shift = 24 };

    for (; search.shift >= 0; search.shift -= 8) {
        uint32_t byte = 0;

        memset(search.counts, 0, sizeof(search.counts));
        search.left = 0;
        visit_some(pruning, only, count_bits, &search);
        if (search.shift == 24)
            search.k = share_of(pruning->opts, search.left);
        if (search.k > search.left)
            return too_many(pruning->opts, search.left, "values", err);
        if (search.k < 1)
            return KILN_OK;
        for (; search.counts[byte] < search.k; byte++)
            search.k -= search.counts[byte];
        search.prefix |= byte << search.shift;
        search.known |= 255u << search.shift;
    }
    visit_some(pruning, only, prune_small, &search);
    return KILN_OK;
}

/* ---- Channels ----------------------------------------------------------------------- */

typedef struct Channel {
    double norm;
    int64_t number;
} Channel;

/* Elements of a parameter: those of channel c are the blocks of `inner` at (o * channels + c). */
typedef struct Axis {
    int64_t outer, channels, inner;
} Axis;

static KilnStatus axis_of(const Opts *opts, const KilnParam *param, Axis *ret, KilnError *err)
{
    const KilnShape *shape = kiln_param_shape(param);
    const int64_t dim = *opts->pruning_dim + (*opts->pruning_dim < 0 ? shape->rank : 0);

    if (dim < 0 || dim >= shape->rank)
        return kiln_error_set(err, KILN_E_RANGE, "pruning_dim=%lld: %s has %d axes",
                              (long long)*opts->pruning_dim, kiln_param_name(param), shape->rank);
    *ret = (Axis) { .outer = 1, .channels = shape->dim[dim], .inner = 1 };
    for (int i = 0; i < shape->rank; i++)
        if (i != dim)
            *(i < dim ? &ret->outer : &ret->inner) *= shape->dim[i];
    return KILN_OK;
}

static double norm_of(const Opts *opts, const float *values, const Axis *axis, int64_t channel)
{
    const double p = *opts->pruning_norm;
    double sum = 0.0;

    for (int64_t o = 0; o < axis->outer; o++)
        for (int64_t i = 0; i < axis->inner; i++) {
            const double x = fabs((double)values[(o * axis->channels + channel) * axis->inner + i]);

            sum = isinf(p) ? fmax(sum, x) : sum + (p < 2.0 || p > 2.0 ? pow(x, p) : x * x);
        }
    return isinf(p) ? sum : pow(sum, 1.0 / p);
}

/* A channel remains while any of its values does. */
static bool channel_left(const uint8_t *pruned, const Axis *axis, int64_t channel)
{
    for (int64_t o = 0; o < axis->outer; o++)
        for (int64_t i = 0; i < axis->inner; i++)
            if (pruned[(o * axis->channels + channel) * axis->inner + i] == 0)
                return true;
    return false;
}

static void prune_channel(uint8_t *pruned, const Axis *axis, int64_t channel)
{
    for (int64_t o = 0; o < axis->outer; o++)
        memset(pruned + (o * axis->channels + channel) * axis->inner, 1, (size_t)axis->inner);
}

static int by_norm(const void *a, const void *b)
{
    const Channel *x = a, *y = b;

    if (x->norm < y->norm || x->norm > y->norm)
        return x->norm < y->norm ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

static KilnStatus prune_channels(const Pruning *pruning, KilnParam *param, KilnError *err)
{
    uint8_t *pruned = pruning->state->pruned + kiln_param_offset(param);
    Axis axis;
    KilnRng rng;
    int64_t left = 0;
    KilnStatus status = axis_of(pruning->opts, param, &axis, err);

    if (status < 0)
        return status;
    Channel *channels = calloc((size_t)axis.channels, sizeof(*channels));
    if (channels == NULL)
        return kiln_error_nomem(err, (size_t)axis.channels * sizeof(*channels));
    start_draw(pruning, param, &rng);
    kiln_param_read(param, KILN_F32, pruning->state->values);
    for (int64_t c = 0; c < axis.channels; c++) {
        const double drawn = (double)kiln_rng_uniform(&rng);

        if (!channel_left(pruned, &axis, c))
            continue;
        channels[left].number = c;
        channels[left++].norm = pruning->opts->pruning_fn == RANDOM_STRUCTURED
                                    ? drawn
                                    : norm_of(pruning->opts, pruning->state->values, &axis, c);
    }
    const int64_t n = share_of(pruning->opts, left);
    if (n > left)
        status = too_many(pruning->opts, left, "channels", err);
    qsort(channels, (size_t)left, sizeof(*channels), by_norm);
    for (int64_t i = 0; i < n && status >= 0; i++)
        prune_channel(pruned, &axis, channels[i].number);
    free(channels);
    if (status < 0)
        (void)kiln_error_prefix(err, "%s: ", kiln_param_name(param));
    return status;
}

/* ---- All of it ---------------------------------------------------------------------- */

static KilnStatus choose(const Pruning *pruning, KilnError *err)
{
    KilnStatus status = KILN_OK;

    if (is_global(pruning->opts))
        return prune_values(pruning, NULL, err);
    for (size_t i = 0; i < kiln_params_count(pruning->params) && status >= 0; i++) {
        KilnParam *param = kiln_params_at(pruning->params, i);

        if (is_subject(pruning->opts, param))
            status = is_structured(pruning->opts) ? prune_channels(pruning, param, err)
                                                  : prune_values(pruning, param, err);
    }
    return status;
}

static KilnStatus put_in_place(const Pruning *pruning, KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < kiln_params_count(pruning->params) && status >= 0; i++) {
        KilnParam *param = kiln_params_at(pruning->params, i);

        if (!is_subject(pruning->opts, param))
            continue;
        if (pruning->opts->use_lottery_ticket_hypothesis)
            status = kiln_trainer_rewind(pruning->trainer, param, err);
        apply(pruning->state, param);
    }
    return status;
}

static void tell(const Pruning *pruning)
{
    int64_t pruned = 0, all = 0;
    size_t n = 0;

    for (size_t i = 0; i < kiln_params_count(pruning->params); i++) {
        const KilnParam *param = kiln_params_at(pruning->params, i);
        const int64_t count = kiln_shape_count(kiln_param_shape(param));

        if (!is_subject(pruning->opts, param))
            continue;
        n++;
        all += count;
        for (int64_t k = 0; k < count; k++)
            pruned += pruning->state->pruned[kiln_param_offset(param) + k];
    }
    const double share = all > 0 ? (double)pruned / (double)all : 0.0;
    kiln_trainer_print(pruning->trainer,
                       "pruning: %lld of the %lld values of %zu parameters (%.4g%%)",
                       (long long)pruned, (long long)all, n, 100.0 * share);
    kiln_trainer_log(pruning->trainer, "sparsity", share, KILN_LOG_EPOCH);
}

/* Nothing would train after the last epoch, so prune there only if `epochs` names it. */
static bool is_due(const Opts *opts, const KilnTrainer *trainer)
{
    const int64_t epoch = kiln_trainer_epoch(trainer), last = kiln_trainer_max_epochs(trainer) - 1;

    for (size_t i = 0; i < opts->epochs_count; i++)
        if (opts->epochs[i] == epoch)
            return true;
    return opts->epochs_count == 0 && (last < 0 || epoch < last);
}

static KilnStatus prune(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    const Pruning pruning = { .opts = opts,
                              .state = kiln_state(self),
                              .trainer = trainer,
                              .params = kiln_trainer_params(trainer) };

    if (!is_due(opts, trainer))
        return KILN_OK;
    KilnStatus status = choose(&pruning, err);
    if (status >= 0)
        status = put_in_place(&pruning, err);
    pruning.state->round++;
    if (status >= 0)
        tell(&pruning);
    return status;
}

/* ---- Hooks -------------------------------------------------------------------------- */

static bool make_mask(State *state, KilnTrainer *trainer)
{
    const KilnParams *params = kiln_trainer_params(trainer);

    if (state->pruned == NULL) {
        state->size = kiln_params_size(params);
        state->pruned = calloc((size_t)state->size, 1);
    }
    if (state->values == NULL)
        state->values = malloc((size_t)kiln_params_largest(params) * sizeof(*state->values));
    return state->pruned != NULL && state->values != NULL;
}

static void warn_of_epochs(const Opts *opts, KilnTrainer *trainer)
{
    const int64_t last = kiln_trainer_max_epochs(trainer);

    for (size_t i = 0; i < opts->epochs_count; i++)
        if (last >= 0 && opts->epochs[i] >= last)
            kiln_trainer_print(trainer,
                               "warning: pruning: there is no epoch %lld, only 0 to %lld; ignored",
                               (long long)opts->epochs[i], (long long)last - 1);
}

static KilnStatus setup(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    const KilnParams *params = kiln_trainer_params(trainer);
    State *state = kiln_state(self);
    bool any = false;

    if (strcmp(kiln_trainer_phase(trainer), "fit") != 0)
        return KILN_OK;
    for (size_t i = 0; i < kiln_params_count(params); i++)
        any = any || is_subject(opts, kiln_params_at(params, i));
    if (!any)
        return kiln_error_set(
            err, KILN_E_KEY,
            "parameters_to_prune: no trained parameter%s matches a pattern; the first is %s",
            is_structured(opts) ? " of two axes or more" : "",
            kiln_param_name(kiln_params_at(params, 0)));
    warn_of_epochs(opts, trainer);
    return make_mask(state, trainer) ? KILN_OK : kiln_error_nomem(err, (size_t)state->size);
}

/* variable := 0 for pruned elements. */
static void hold(State *state, KilnTensor *variable)
{
    KilnGraph *graph = kiln_tensor_graph(variable);
    KilnTensor *mask = kiln_graph_input(graph, KILN_U8, KILN_SHAPE(state->size), state->pruned);

    kiln_store(variable, kiln_masked_fill(variable, mask, 0.0));
}

/* Clipping and the optimizer's averages must not see gradients of pruned elements. */
static void before_step(KilnInstance *self, KilnTrainer *trainer, const KilnRecording *at)
{
    if (make_mask(kiln_state(self), trainer))
        hold(kiln_state(self), at->gradients);
}

static void record_update(KilnInstance *self, KilnTrainer *trainer, const KilnRecording *at)
{
    if (make_mask(kiln_state(self), trainer))
        hold(kiln_state(self),
             kiln_params_flat_values(kiln_trainer_params(trainer), kiln_step_graph(at->step)));
}

static KilnStatus on_train_epoch_end(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    const Opts *opts = kiln_opts(self);

    return opts->prune_on_train_epoch_end ? prune(self, trainer, err) : KILN_OK;
}

static KilnStatus on_validation_epoch_end(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    const bool fits = strcmp(kiln_trainer_phase(trainer), "validate") == 0;

    return fits && !opts->prune_on_train_epoch_end ? prune(self, trainer, err) : KILN_OK;
}

/* The mask, the copy of it that a checkpoint takes, and the values of a parameter: present and
 * initial ones. */
static int64_t memory(const KilnInstance *self, KilnTrainer *trainer)
{
    const KilnParams *params = kiln_trainer_params(trainer);

    (void)self;
    return 2 * kiln_params_size(params) + 2 * kiln_params_largest(params) * (int64_t)sizeof(float);
}

/* ---- State -------------------------------------------------------------------------- */

/* The mask is one tensor over the flat parameters. */
static void state_dict(KilnInstance *self, KilnState *out)
{
    const State *state = kiln_state(self);
    const KilnShape shape = KILN_SHAPE(state->size);

    kiln_state_set_i64(out, "round", state->round);
    if (state->round > 0)
        kiln_state_set_tensor(out, "pruned", KILN_U8, &shape, state->pruned);
}

static KilnStatus load_state_dict(KilnInstance *self, const KilnState *in, KilnError *err)
{
    State *state = kiln_state(self);
    const KilnShape shape = KILN_SHAPE(state->size);

    kiln_state_get_i64(in, "round", &state->round);
    if (state->round > 0 && !kiln_state_get_tensor(in, "pruned", KILN_U8, &shape, state->pruned))
        return kiln_error_set(err, KILN_E_FORMAT, "the checkpoint lacks the pruning mask");
    return KILN_OK;
}

static const char *const logs[] = { "sparsity", NULL };

static const KilnCallbackOps ops = {
    .setup = setup,
    .on_train_epoch_end = on_train_epoch_end,
    .on_validation_epoch_end = on_validation_epoch_end,
    .on_before_optimizer_step = before_step,
    .record_update = record_update,
    .state_dict = state_dict,
    .load_state_dict = load_state_dict,
    .memory = memory,
    .logs = logs,
};

const KilnComponent kiln_callback_pruning = {
    .kind = KILN_KIND_CALLBACK,
    .name = "pruning",
    .summary = "Set parameters to zero, step by step, and keep them zero",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .check = check,
    .release = release,
    .ops.callback = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_callback_pruning, NULL };
KILN_PLUGIN_DEFINE(list)
#endif

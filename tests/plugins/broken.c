/* Components that break their contract, one for each macro: `kiln plugin check` must find each. */
#define _DEFAULT_SOURCE
#include "kiln.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef HOOK
#define HOOK "on_train_start"
#endif
#ifndef NAME
#define NAME "broken"
#endif

/* ---- A callback that misbehaves in HOOK, or in init ----------------------------------------- */

typedef struct State {
    int64_t batches, unused;
} State;

static State *kept; /* what a release would free */

static KilnStatus misbehave(KilnInstance *self, KilnTrainer *trainer, const char *hook,
                            KilnError *err)
{
    State *state = kiln_state(self);

    (void)trainer, (void)err;
    if (strcmp(hook, HOOK) != 0)
        return KILN_OK;
#if defined(CRASH)
    *(volatile char *)NULL = 1;
#elif defined(EXIT)
    exit(0);
#elif defined(EXIT_NOW)
    _exit(0);
#elif defined(HANG)
    for (;;)
        pause();
#elif defined(FAIL)
    return kiln_error_set(err, KILN_E_IO, "broken on purpose");
#elif defined(LEAK)
    kept = malloc(1000);
    if (kept != NULL)
        memset(kept, 1, 1000);
#elif defined(BEYOND)
    memset(state, 1, sizeof(*state) + 1); /* its state_size is one too small */
#elif defined(FORGETS) /* a count that it does not save */
    kiln_trainer_log(trainer, "counted", (double)++state->batches, 0);
#elif defined(UNEQUAL) /* differs in every process */
    kiln_trainer_log(trainer, "process", (double)getpid(), 0);
#endif
    (void)state;
    return KILN_OK;
}

static KilnStatus init(KilnInstance *self, KilnError *err)
{
    return misbehave(self, NULL, "init", err);
}

#define DEFINE_HOOK(name)                                                                          \
    static KilnStatus name(KilnInstance *self, KilnTrainer *trainer, KilnError *err)               \
    {                                                                                              \
        return misbehave(self, trainer, #name, err);                                               \
    }
#define HOOKS(X)                                                                                   \
    X(setup)                                                                                       \
    X(on_fit_start)                                                                                \
    X(on_sanity_check_start)                                                                       \
    X(on_sanity_check_end)                                                                         \
    X(on_train_start)                                                                              \
    X(on_train_epoch_start)                                                                        \
    X(on_train_batch_start)                                                                        \
    X(on_train_batch_end)                                                                          \
    X(on_train_epoch_end)                                                                          \
    X(on_validation_start)                                                                         \
    X(on_validation_epoch_start)                                                                   \
    X(on_validation_batch_start)                                                                   \
    X(on_validation_batch_end)                                                                     \
    X(on_validation_epoch_end)                                                                     \
    X(on_validation_end)                                                                           \
    X(on_train_end)                                                                                \
    X(on_fit_end)                                                                                  \
    X(on_test_start)                                                                               \
    X(on_test_epoch_start)                                                                         \
    X(on_test_batch_start)                                                                         \
    X(on_test_batch_end)                                                                           \
    X(on_test_epoch_end)                                                                           \
    X(on_test_end)                                                                                 \
    X(teardown)
HOOKS(DEFINE_HOOK)

static const KilnCallbackOps callback_ops = {
#define SET_HOOK(name) .name = name,
    HOOKS(SET_HOOK)
};

#ifdef DUPLICATE_OPTION
typedef struct Opts {
    double rate, more;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_F64(Opts, rate, "0.5", 0.0, 1.0, "how fast"),
    KILN_FIELD_F64(Opts, rate, "0.1", 0.0, 1.0, "how fast"),
    KILN_FIELD_END,
};
#endif

static const KilnComponent broken_callback = {
    .kind = KILN_KIND_CALLBACK,
    .name = NAME,
    .summary = "Break the contract of callbacks",
#ifdef DUPLICATE_OPTION
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
#endif
#ifdef BEYOND
    .state_size = sizeof(State) - 1,
#else
    .state_size = sizeof(State),
#endif
    .init = init,
    .ops.callback = &callback_ops,
};

/* ---- A model whose output has another shape than it declares, or wrong gradients ------------- */

static const KilnTensorSpec takes[] = {
    { .name = "x", .content = KILN_IMAGE | KILN_VECTOR, .dtype = KILN_F32 },
};
static const KilnTensorSpec gives[] = {
    { .name = "logits", .content = KILN_VECTOR, .dtype = KILN_F32, .axes = "classes" },
};
static const KilnSignature signature = KILN_SIGNATURE(takes, gives);

typedef struct Net {
    KilnLinear layer;
} Net;

static KilnStatus net_setup(KilnInstance *self, const KilnScope *scope, const KilnModelIo *io,
                            KilnError *err)
{
    Net *net = kiln_state(self);

    return kiln_nn_linear_init(&net->layer, scope, "layer", kiln_shape_count(&io->inputs[0].shape),
                               io->outputs[0].shape.dim[0], true, err);
}

#ifdef WRONG_GRADIENT
/* y = x, whose gradient is twice what it should be. */
static KilnStatus copy_infer(const void *attrs, const KilnOpArg *inputs, KilnOpArg *outputs,
                             KilnError *err)
{
    (void)attrs, (void)err;
    outputs[0] = inputs[0];
    return KILN_OK;
}

static void copy_gradient(const KilnOpGradient *at)
{
    at->dx[0] = kiln_scale(at->dy[0], 2.0);
}

static void copy_f32(const KilnOpCall *call)
{
    memcpy(call->outputs[0].data, call->inputs[0].data,
           (size_t)kiln_shape_count(&call->inputs[0].shape) * sizeof(float));
}

static void copy_f64(const KilnOpCall *call)
{
    memcpy(call->outputs[0].data, call->inputs[0].data,
           (size_t)kiln_shape_count(&call->inputs[0].shape) * sizeof(double));
}

static const KilnCustomOp copy = {
    .size = sizeof(KilnCustomOp),
    .name = "copy",
    .n_inputs = 1,
    .n_outputs = 1,
    .infer = copy_infer,
    .gradient = copy_gradient,
    .cpu = copy_f32,
    .cpu_f64 = copy_f64,
};
#endif

static void forward(KilnInstance *self, KilnStep *step, const KilnModelValue *inputs,
                    KilnModelValue *outputs)
{
    const Net *net = kiln_state(self);
    KilnTensor *x = kiln_flatten(inputs[0].tensor);
    KilnTensor *y = kiln_nn_linear(&net->layer, x);

    (void)step;
#ifdef WRONG_GRADIENT
    y = kiln_custom_op(kiln_step_graph(step), &copy, &y, NULL, NULL);
#endif
#ifdef WRONG_SHAPE
    y = kiln_concat((KilnTensor *[]) { y, y }, 2, 1);
#endif
    outputs[0].tensor = y;
}

static const KilnModelOps model_ops = {
    .signature = &signature,
    .setup = net_setup,
    .forward = forward,
};

static const KilnComponent broken_model = {
    .kind = KILN_KIND_MODEL,
    .name = "broken",
    .summary = "Break the contract of models",
    .state_size = sizeof(Net),
    .ops.model = &model_ops,
};

#if defined(WRONG_SHAPE) || defined(WRONG_GRADIENT)
static const KilnComponent *const list[] = { &broken_model, NULL };
#else
static const KilnComponent *const list[] = { &broken_callback, NULL };
#endif
KILN_PLUGIN_DEFINE(list)

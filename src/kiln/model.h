/* Models (networks): what they take and give, what others need of them, and how those run them. */
#ifndef KILN_MODEL_H
#define KILN_MODEL_H

#include "kiln/data.h"
#include "kiln/nn.h"

/* One training, validation, test or predict step while it is recorded. */
typedef struct KilnStep KilnStep; /* module.h */

enum { KILN_MODEL_VALUES = 16 }; /* inputs, or outputs, that a model may have */
enum { KILN_MODEL_MEMORIES = 4 };

/* What a model takes and gives. Static; everything that reads it knows the model without data. */
typedef struct KilnSignature {
    const KilnTensorSpec *inputs;
    size_t n_inputs;
    /* Instead of `inputs`: the option that holds a model whose inputs are this one's. */
    const char *inputs_of;
    const KilnTensorSpec *outputs; /* each f32, of one content */
    size_t n_outputs;
} KilnSignature;

/* The signature of two arrays of KilnTensorSpec. */
#define KILN_SIGNATURE(takes, gives)                                                               \
    {                                                                                              \
        .inputs = takes, .n_inputs = KILN_COUNT(takes), .outputs = gives,                          \
        .n_outputs = KILN_COUNT(gives)                                                             \
    }

/* How a module, or another model, uses a model in its options. Static.
 *
 * An input of the model gets the value of its name if content, type and variation fit, else the
 * only one left that fits. A need is met by the output of its name if content fits, else by the
 * only output of that content. So any model fits under any task whose contents agree. */
typedef struct KilnModelUse {
    const char *option; /* that holds the model, or nothing if it is optional: "model" */
    /* What it feeds the model: all features of the data that fit one of these, whatever their
     * names; with `own`, values of these names that it makes itself (noise, say). NULL in a model
     * whose signature has this option as inputs_of. */
    const KilnTensorSpec *feeds;
    size_t n_feeds;
    bool own;
    const KilnTensorSpec *needs; /* outputs that it reads, each of one content */
    size_t n_needs;
} KilnModelUse;

/* A value that goes into a model or comes out of it. */
typedef struct KilnModelValue {
    KilnTensor *tensor;  /* [batch, ...]; NULL: an optional input that is absent */
    KilnTensor *lengths; /* i32 [batch], of its first axis after the batch; NULL: all are whole */
} KilnModelValue;

/* An output in setup. */
typedef struct KilnModelOutput {
    bool wanted; /* only then parameters are needed for it, and forward must fill it */
    /* Of one sample. Axes that the signature names like an input's are filled in, and the last one
     * if its size is prescribed (the number of classes). Setup fills those that are 0. */
    KilnShape shape;
} KilnModelOutput;

/* Inputs and outputs in setup, each in the order of the signature. Borrowed for the call. */
typedef struct KilnModelIo {
    const KilnFeature *inputs; /* the name of an absent one is NULL */
    size_t n_inputs;
    KilnModelOutput *outputs;
} KilnModelIo;

struct KilnModelOps {
    const KilnSignature *signature;
    const KilnModelUse *models; /* among its own options; NULL: none */
    size_t n_models;
    /* Declare parameters under `scope`. KILN_E_SHAPE for shapes that the model cannot use, with
     * what it needs and what it got. */
    KilnStatus (*setup)(KilnInstance *self, const KilnScope *scope, const KilnModelIo *io,
                        KilnError *err);
    /* Record the network: set the tensors of the wanted outputs, which are zeroed. Those that are
     * not wanted may be set too and cost nothing. Lengths of an output whose first axis is an
     * input's are set by the caller. */
    void (*forward)(KilnInstance *self, KilnStep *step, const KilnModelValue *inputs,
                    KilnModelValue *outputs);
    /* Optional, both: for models that write a sequence token by token (kiln/tools/beam_search.h).
     * Record what every token is computed from, f32 [batch, ...], of the inputs that the batch has;
     * returns the number of tensors, at most KILN_MODEL_MEMORIES. */
    size_t (*encode)(KilnInstance *self, KilnStep *step, const KilnModelValue *inputs,
                     KilnTensor **memories);
    /* Record the logits [rows, 1, classes] of what follows `tokens` i32 [rows, 1], in a step that
     * continues earlier ones (kiln_step_cache). rows is a multiple of the memories' batch: rows of
     * one sample follow each other. */
    KilnTensor *(*decode)(KilnInstance *self, KilnStep *step, KilnTensor *const *memories,
                          KilnTensor *tokens);
};

/* Set up a model in the user's options as `use` says. `given`: the features of the data, of which
 * those that `use` feeds are matched to the inputs, or a description of the user's own values;
 * their names must outlive the model. `sizes`: of the last axis of each need, or 0, the model's own
 * width; NULL: 0 for all. Once per model. KILN_E_SHAPE if they do not fit, with both sides. */
KILN_API KILN_NODISCARD KilnStatus kiln_model_setup(KilnInstance *model, const KilnScope *scope,
                                                    const KilnModelUse *use,
                                                    const KilnFeature *given, size_t n_given,
                                                    const int64_t *sizes, KilnError *err);
/* The shape of need number i, for one sample, after setup. A varying axis has its maximum. */
KILN_API KilnShape kiln_model_need_shape(const KilnInstance *model, size_t i);
/* Whether an input of the model got the value of that name, after setup. */
KILN_API bool kiln_model_takes(const KilnInstance *model, const char *name);
/* Record the model's forward. `values`: one for each of `given` at setup, of which unused ones may
 * be zero; NULL: the batch's features of those names. ret[i] is need number i; if the model returns
 * another type or shape than its signature and setup say, a poisoned tensor with both. */
KILN_API void kiln_model_forward(KilnInstance *model, KilnStep *step, const KilnModelValue *values,
                                 KilnModelValue *ret);

/* Whether the model writes sequences token by token (KilnModelOps.encode and .decode). */
KILN_API bool kiln_model_decodes(const KilnInstance *model);
/* Record its two parts, after setup; kiln_model_encode reads the batch's features. */
KILN_API size_t kiln_model_encode(KilnInstance *model, KilnStep *step,
                                  KilnTensor *ret[KILN_MODEL_MEMORIES]);
KILN_API KilnTensor *kiln_model_decode(KilnInstance *model, KilnStep *step,
                                       KilnTensor *const *memories, KilnTensor *tokens);

#endif

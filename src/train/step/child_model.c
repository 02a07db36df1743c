/* Sets up and runs a model for the module, or the model, that has it in its options. Errors of the
 * model get its config path as a prefix, and what it returns is checked. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/call.h"
#include "graph/graph.h"
#include "registry/instance.h"
#include "registry/signature/model_match.h"
#include "schema/table.h"

/* A model's place under its user. */
typedef struct KilnModelBinding {
    const KilnModelUse *use;
    const KilnTensorSpec *inputs;
    size_t n_inputs;
    KilnModelMatch match;
    const char *features[KILN_MODEL_VALUES]; /* of each input; NULL: absent */
    bool varies[KILN_MODEL_VALUES];          /* of each input */
    KilnModelOutput outputs[KILN_MODEL_VALUES];
    /* For each axis of an output the input of whose axis it has the size, and which; -1: none. */
    struct {
        int input, axis;
    } source[KILN_MODEL_VALUES][KILN_MAX_RANK];
} KilnModelBinding;

static const KilnSignature *signature_of(const KilnInstance *model)
{
    return kiln_instance_component(model)->ops.model->signature;
}

/* The inputs of a model, which may be those of a model in its options. */
static void find_inputs(const KilnInstance *model, KilnModelBinding *binding)
{
    const KilnSignature *signature = signature_of(model);

    while (signature->inputs_of != NULL) {
        const KilnField *field = kiln_table_find(kiln_instance_component(model)->fields,
                                                 signature->inputs_of);

        memcpy(&model, (const char *)kiln_opts(model) + field->offset, sizeof(KilnInstance *));
        signature = signature_of(model);
    }
    binding->inputs = signature->inputs;
    binding->n_inputs = signature->n_inputs;
}

/* ---- Shapes ------------------------------------------------------------------------- */

/* Find axis `word`, of `length` characters, in the inputs' axes; false: none has it. */
static bool find_axis(const KilnModelBinding *binding, const char *word, size_t length,
                      int *ret_input, int *ret_axis)
{
    for (size_t i = 0; i < binding->n_inputs; i++) {
        const char *at = binding->inputs[i].axes;

        for (int axis = 0; binding->features[i] != NULL && at != NULL && *at != '\0'; axis++) {
            const size_t n = strcspn(at, " ");

            if (n == length && strncmp(at, word, n) == 0) {
                *ret_input = (int)i;
                *ret_axis = axis;
                return true;
            }
            at += n + (at[n] == ' ');
        }
    }
    return false;
}

/* Fill the axes of output number o that the inputs and `size` determine. */
static void start_shape(KilnModelBinding *binding, const KilnSignature *signature, size_t o,
                        const KilnFeature *inputs, int64_t size)
{
    KilnShape *shape = &binding->outputs[o].shape;
    const char *at = signature->outputs[o].axes;

    for (int axis = 0; axis < KILN_MAX_RANK && *at != '\0'; axis++) {
        const size_t n = strcspn(at, " ");
        int input = -1, from = -1;

        if (signature->inputs_of == NULL && find_axis(binding, at, n, &input, &from))
            shape->dim[axis] = inputs[input].shape.dim[from];
        binding->source[o][axis].input = input;
        binding->source[o][axis].axis = from;
        shape->rank = axis + 1;
        at += n + (at[n] == ' ');
    }
    if (size > 0 && shape->rank > 0)
        shape->dim[shape->rank - 1] = size;
}

/* The model must know the shapes of the outputs that are wanted. */
static KilnStatus check_outputs(const KilnInstance *model, KilnError *err)
{
    const KilnSignature *signature = signature_of(model);
    char text[KILN_SHAPE_TEXT];

    for (size_t o = 0; o < signature->n_outputs; o++) {
        const KilnModelOutput *output = &model->binding->outputs[o];

        if (output->wanted && kiln_shape_count(&output->shape) < 1)
            return kiln_error_set(err, KILN_E_SHAPE,
                                  "the shape %s of its output \"%s\" is not known after setup: it "
                                  "has no width of its own, or its setup must fill the zeros",
                                  kiln_shape_text(&output->shape, text, sizeof(text)),
                                  signature->outputs[o].name);
    }
    return KILN_OK;
}

/* ---- Setup -------------------------------------------------------------------------- */

/* The key of the component that has the model: "task" for "task.model". */
static char *user_of(const KilnInstance *model)
{
    const char *path = kiln_instance_path(model), *dot = strrchr(path, '.');

    return strndup(path, dot != NULL ? (size_t)(dot - path) : 0);
}

static KilnStatus refuse(const KilnInstance *model, KilnModelPair *pair, KilnError *err)
{
    char *user = user_of(model);
    KilnText text = { 0 };

    pair->user = user != NULL && user[0] != '\0' ? user : "its user";
    kiln_misfit_text(&text, pair, &model->binding->match);
    free(user);
    return kiln_text_to_error(&text, KILN_E_SHAPE, err);
}

static KilnStatus match(KilnInstance *model, const KilnFeature *given, size_t n_given,
                        KilnError *err)
{
    KilnModelBinding *binding = model->binding;
    KilnTensorSpec *specs = calloc(n_given + 1, sizeof(*specs));
    KilnModelPair pair = {
        .giver = "the datamodule",
        .use = binding->use,
        .model = kiln_instance_name(model),
        .inputs = binding->inputs,
        .n_inputs = binding->n_inputs,
        .signature = signature_of(model),
        .given = specs,
        .n_given = n_given,
    };

    if (specs == NULL)
        return kiln_error_nomem(err, n_given * sizeof(*specs));
    for (size_t i = 0; i < n_given; i++)
        specs[i] = kiln_feature_spec(&given[i]);
    binding->match = kiln_model_match(&pair);
    KilnStatus status = binding->match.misfit == KILN_FITS ? KILN_OK : refuse(model, &pair, err);
    free(specs);
    return status;
}

/* Run the model's setup with the features that its inputs got. */
static KilnStatus run_setup(KilnInstance *model, const KilnScope *scope, const KilnFeature *given,
                            const int64_t *sizes, KilnError *err)
{
    const KilnModelOps *ops = kiln_instance_component(model)->ops.model;
    KilnModelBinding *binding = model->binding;
    KilnFeature inputs[KILN_MODEL_VALUES] = { 0 };
    const KilnModelIo io = { inputs, binding->n_inputs, binding->outputs };
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < binding->n_inputs && status >= 0; i++) {
        if (binding->match.given[i] == SIZE_MAX)
            continue;
        inputs[i] = given[binding->match.given[i]];
        status = kiln_feature_check(&inputs[i], err);
        binding->features[i] = inputs[i].name;
        binding->varies[i] = inputs[i].varies;
    }
    for (size_t i = 0; i < binding->use->n_needs; i++) {
        const size_t o = binding->match.output[i];

        binding->outputs[o].wanted = true;
        start_shape(binding, ops->signature, o, inputs, sizes != NULL ? sizes[i] : 0);
    }
    if (status >= 0)
        status = KILN_CALLED(model, "setup", ops->setup(model, scope, &io, err), err);
    return status >= 0 ? check_outputs(model, err) : status;
}

KilnStatus kiln_model_setup(KilnInstance *model, const KilnScope *scope, const KilnModelUse *use,
                            const KilnFeature *given, size_t n_given, const int64_t *sizes,
                            KilnError *err)
{
    free(model->binding);
    model->binding = calloc(1, sizeof(*model->binding));
    if (model->binding == NULL)
        return kiln_error_nomem(err, sizeof(*model->binding));
    model->binding->use = use;
    find_inputs(model, model->binding);
    KilnStatus status = match(model, given, n_given, err);
    if (status >= 0)
        status = run_setup(model, scope, given, sizes, err);
    if (status < 0)
        (void)kiln_error_prefix(err, "%s (model/%s): ", kiln_instance_path(model),
                                kiln_instance_name(model));
    return status;
}

KilnShape kiln_model_need_shape(const KilnInstance *model, size_t i)
{
    return model->binding->outputs[model->binding->match.output[i]].shape;
}

bool kiln_model_takes(const KilnInstance *model, const char *name)
{
    const KilnModelBinding *binding = model->binding;

    for (size_t i = 0; i < binding->n_inputs; i++)
        if (binding->features[i] != NULL && strcmp(binding->features[i], name) == 0)
            return true;
    return false;
}

/* ---- Forward ------------------------------------------------------------------------ */

/* The batch's feature for input number i. */
static KilnModelValue feature_value(const KilnModelBinding *binding, KilnStep *step, size_t i)
{
    if (binding->inputs[i].optional && !kiln_step_has(step, binding->features[i]))
        return (KilnModelValue) { 0 };
    return (KilnModelValue) {
        .tensor = kiln_step_input(step, binding->features[i]),
        .lengths = binding->varies[i] ? kiln_step_lengths(step, binding->features[i]) : NULL,
    };
}

/* The shape that output number o must have in this batch. An axis that varies on its own has the
 * size that it got. */
static KilnShape expected_shape(const KilnModelBinding *binding, const KilnSignature *signature,
                                size_t o, const KilnModelValue *inputs, int64_t batch,
                                const KilnShape *got)
{
    const KilnShape *sample = &binding->outputs[o].shape;
    KilnShape shape = { .rank = sample->rank + 1, .dim = { batch } };

    for (int axis = 0; axis < sample->rank && axis + 1 < KILN_MAX_RANK; axis++) {
        const int input = binding->source[o][axis].input;

        shape.dim[axis + 1] = sample->dim[axis];
        if (input >= 0 && inputs[input].tensor != NULL)
            shape.dim[axis + 1] = kiln_tensor_dim(inputs[input].tensor,
                                                  binding->source[o][axis].axis + 1);
        else if (axis == 0 && signature->outputs[o].varies && got->rank > 1)
            shape.dim[1] = got->dim[1];
    }
    return shape;
}

/* The layer that a tensor comes from; "" outside of layers. */
static const char *layer_of(const KilnTensor *tensor)
{
    return tensor->node != NULL && tensor->node->layer != NULL ? tensor->node->layer : "";
}

static KilnTensor *refuse_output(const KilnInstance *model, KilnGraph *graph, size_t o,
                                 const KilnTensor *y, const KilnShape *wanted)
{
    const char *layer = layer_of(y);
    char got[KILN_SHAPE_TEXT], want[KILN_SHAPE_TEXT];

    return kiln_graph_poison(
        graph, "%s (model/%s) returns %s %s%s%s%s as %s, but f32 %s is needed",
        kiln_instance_path(model), kiln_instance_name(model), kiln_dtype_name(y->dtype),
        kiln_shape_text(&y->shape, got, sizeof(got)), layer[0] != '\0' ? " (layer \"" : "", layer,
        layer[0] != '\0' ? "\")" : "", signature_of(model)->outputs[o].name,
        kiln_shape_text(wanted, want, sizeof(want)));
}

/* Output number o as its reader gets it. */
static KilnModelValue check_output(const KilnInstance *model, KilnGraph *graph, size_t o,
                                   const KilnModelValue *inputs, KilnModelValue value,
                                   int64_t batch)
{
    const KilnModelBinding *binding = model->binding;
    const int source = binding->source[o][0].input;

    if (value.tensor == NULL)
        value.tensor = kiln_graph_poison(graph, "%s (model/%s) does not return its output %s",
                                         kiln_instance_path(model), kiln_instance_name(model),
                                         signature_of(model)->outputs[o].name);
    if (value.tensor->poisoned)
        return value;
    const KilnShape wanted = expected_shape(binding, signature_of(model), o, inputs, batch,
                                            &value.tensor->shape);
    if (!kiln_shape_equal(&wanted, &value.tensor->shape) ||
        value.tensor->dtype != graph->float_type)
        value.tensor = refuse_output(model, graph, o, value.tensor, &wanted);
    if (value.lengths == NULL && source >= 0 && binding->source[o][0].axis == 0)
        value.lengths = inputs[source].lengths;
    return value;
}

void kiln_model_forward(KilnInstance *model, KilnStep *step, const KilnModelValue *values,
                        KilnModelValue *ret)
{
    const KilnModelOps *ops = kiln_instance_component(model)->ops.model;
    const KilnModelBinding *binding = model->binding;
    KilnGraph *graph = kiln_step_graph(step);
    KilnModelValue inputs[KILN_MODEL_VALUES] = { 0 }, outputs[KILN_MODEL_VALUES] = { 0 };
    KilnTensor *bad = NULL;
    int64_t batch = 0;

    for (size_t i = 0; i < binding->n_inputs; i++) {
        if (binding->features[i] != NULL)
            inputs[i] = values != NULL ? values[binding->match.given[i]]
                                       : feature_value(binding, step, i);
        if (inputs[i].tensor != NULL && kiln_tensor_poisoned(inputs[i].tensor))
            bad = inputs[i].tensor;
        else if (inputs[i].tensor != NULL)
            batch = kiln_tensor_dim(inputs[i].tensor, 0);
    }
    if (bad == NULL) {
        kiln_call_enter(model, "forward");
        ops->forward(model, step, inputs, outputs);
        kiln_call_leave();
    }
    for (size_t i = 0; i < binding->use->n_needs; i++) {
        const size_t o = binding->match.output[i];

        ret[i] = bad != NULL ? (KilnModelValue) { .tensor = bad }
                             : check_output(model, graph, o, inputs, outputs[o], batch);
    }
}

/* ---- Writing sequences ------------------------------------------------------------------ */

bool kiln_model_decodes(const KilnInstance *model)
{
    const KilnModelOps *ops = kiln_instance_component(model)->ops.model;

    return ops->encode != NULL && ops->decode != NULL;
}

size_t kiln_model_encode(KilnInstance *model, KilnStep *step, KilnTensor *ret[KILN_MODEL_MEMORIES])
{
    const KilnModelBinding *binding = model->binding;
    KilnModelValue inputs[KILN_MODEL_VALUES] = { 0 };

    for (size_t i = 0; i < binding->n_inputs; i++)
        if (binding->features[i] != NULL && kiln_step_has(step, binding->features[i]))
            inputs[i] = feature_value(binding, step, i);
    kiln_call_enter(model, "encode");
    const size_t n = kiln_instance_component(model)->ops.model->encode(model, step, inputs, ret);
    kiln_call_leave();
    return n;
}

KilnTensor *kiln_model_decode(KilnInstance *model, KilnStep *step, KilnTensor *const *memories,
                              KilnTensor *tokens)
{
    kiln_call_enter(model, "decode");
    KilnTensor *logits = kiln_instance_component(model)->ops.model->decode(model, step, memories,
                                                                           tokens);
    kiln_call_leave();
    return logits;
}

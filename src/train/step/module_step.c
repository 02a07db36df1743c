/* The functions that a module's step calls while it is recorded (kiln/module.h), and running what
 * they recorded: graph/plan/plan.c plans it, graph/plan/execute.c executes it. */
#include "train/step/module_step.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "graph/graph.h"
#include "graph/lookup_factors.h"
#include "graph/plan/execute.h"
#include "kiln/tools/row_results.h"
#include "nn/lora.h"
#include "train/loop/loop_schedule.h"

/* Give adapters their dropout; layers, which record them, know no step. */
static void begin_adapters(KilnStep *step)
{
    KilnDropoutState dropout = { 0 };

    if (step->params == NULL || !kiln_lora_drops(step->params))
        return;
    if (step->training)
        dropout = (KilnDropoutState) { .key = kiln_step_dropout_key(step),
                                       .stream = kiln_step_stream(step) << 32 };
    kiln_lora_set_dropout(step->params, dropout);
}

void kiln_step_begin(KilnStep *step, KilnPhase phase, bool training, const KilnBatch *batch,
                     uint64_t seed, int64_t number)
{
    KilnRng rng;

    step->phase = phase;
    step->training = training;
    step->batch = *batch;
    step->dropout_key = NULL;
    step->stream = 0;
    step->n_logs = 0;
    step->n_outputs = 0;
    step->n_metric_inputs = 0;
    step->n_extra_reads = 0;
    step->n_kept = 0;
    step->has_run = false;
    step->position = NULL;
    if (step->decode != NULL)
        step->decode->used = 0;
    kiln_rng_init(&rng, seed, KILN_RNG_DROPOUT, 0, (uint64_t)number);
    for (size_t i = 0; i < KILN_COUNT(step->dropout_seed); i++)
        step->dropout_seed[i] = (int32_t)(kiln_rng_u32(&rng) >> 1);
    kiln_graph_begin(step->graph);
    const size_t n = step->spec != NULL ? step->spec->n_features : 0;
    step->inputs = kiln_arena_alloc(&step->graph->arena, n * sizeof(KilnTensor *));
    step->lengths = kiln_arena_alloc(&step->graph->arena, n * sizeof(KilnTensor *));
    begin_adapters(step);
}

KilnGraph *kiln_step_graph(const KilnStep *step)
{
    return step->graph;
}

bool kiln_step_training(const KilnStep *step)
{
    return step->training;
}

const KilnProgress *kiln_step_progress(KilnStep *step)
{
    if (!step->training)
        return NULL;
    if (step->schedule != NULL)
        step->progress = kiln_loop_progress(step->schedule, step->at);
    return &step->progress;
}

int64_t kiln_step_batch_size(const KilnStep *step)
{
    return step->batch.size;
}

/* "image, label" */
static KilnTensor *no_such_feature(KilnStep *step, const char *name)
{
    KilnText names = { 0 };

    for (size_t i = 0; i < step->spec->n_features; i++)
        kiln_text_printf(&names, "%s%s", i > 0 ? ", " : "", step->spec->features[i].name);
    KilnTensor *poison = kiln_graph_poison(
        step->graph, "the step asks for feature \"%s\", but the datamodule yields: %s", name,
        names.length > 0 ? names.data : "nothing");
    kiln_text_release(&names);
    return poison;
}

/* Feature number i of the batch; of a batch without data, nothing but its shape. */
static KilnBatchFeature in_batch(const KilnStep *step, size_t i)
{
    return step->batch.features != NULL ? step->batch.features[i] : (KilnBatchFeature) { 0 };
}

/* Let an explanation have the input of feature number i. */
static void probe_input(const KilnStep *step, const KilnFeature *feature, size_t i,
                        KilnTensor *input)
{
    const KilnProbe *probe = step->probe;
    KilnTensor *point = input;

    if (feature->content == KILN_LABEL || kiln_tensor_poisoned(input))
        return;
    if (feature->dtype != KILN_F32) {
        if (probe->factors[i] == NULL)
            return;
        point = kiln_graph_input(step->graph, KILN_F32, input->shape, probe->factors[i]);
        if (kiln_tensor_poisoned(point))
            return;
        probe->lookups[i] = kiln_lookup_factors_set(input, point);
    }
    point->wants_grad = probe->gradients;
    probe->points[i] = point;
}

/* The input for feature number i of `spec`. */
static KilnTensor *record_input(KilnStep *step, const KilnDataSpec *spec, size_t i)
{
    const KilnFeature *feature = &spec->features[i];
    const KilnBatchFeature values = in_batch(step, i);
    const char *const *names;

    if (feature->content == KILN_TEXT)
        return kiln_graph_poison(step->graph,
                                 "the step asks for feature \"%s\", which is a text: texts are for "
                                 "output (kiln_trainer_text)",
                                 feature->name);
    KilnShape shape = { .rank = feature->shape.rank + 1, .dim = { step->batch.size } };

    if (shape.rank > KILN_MAX_RANK)
        return kiln_graph_poison(step->graph,
                                 "feature \"%s\" has %d axes; with the batch axis at most %d are "
                                 "possible",
                                 feature->name, feature->shape.rank, KILN_MAX_RANK);
    for (int axis = 0; axis < feature->shape.rank; axis++)
        shape.dim[axis + 1] = feature->shape.dim[axis];
    if (values.padded > 0)
        shape.dim[1] = values.padded;
    KilnTensor *input = kiln_graph_input(step->graph, feature->dtype, shape, values.data);
    if (feature->content == KILN_LABEL && !kiln_tensor_poisoned(input))
        input->classes = kiln_spec_ids(spec, feature, &names);
    if (step->probe != NULL)
        probe_input(step, feature, i, input);
    return input;
}

/* Whether the set of samples that the batch is of has a feature of the spec. */
static bool is_present(const KilnStep *step, const char *name)
{
    return step->batch.dataset == NULL || kiln_dataset_has(step->batch.dataset, name);
}

bool kiln_step_has(const KilnStep *step, const char *name)
{
    return kiln_spec_feature(step->spec, name) != NULL && is_present(step, name);
}

const int64_t *kiln_step_class_counts(KilnStep *step, int64_t *ret_samples)
{
    KilnError err = { 0 };

    if (kiln_class_counts_make(step->class_counts, &err) < 0) {
        (void)kiln_graph_poison(step->graph, "%s", err.text);
        return NULL;
    }
    *ret_samples = step->class_counts->samples;
    return step->class_counts->counts;
}

static KilnTensor *lacks(KilnStep *step, const char *name)
{
    return kiln_graph_poison(step->graph,
                             "the step asks for feature \"%s\", which these samples lack; use data "
                             "that have it",
                             name);
}

KilnTensor *kiln_step_input(KilnStep *step, const char *name)
{
    const KilnDataSpec *spec = step->training && step->train_spec != NULL ? step->train_spec
                                                                          : step->spec;
    const KilnFeature *feature = kiln_spec_feature(spec, name);

    if (feature == NULL)
        return no_such_feature(step, name);
    if (!is_present(step, name))
        return lacks(step, name);
    const size_t i = (size_t)(feature - spec->features);
    if (step->inputs == NULL)
        return kiln_graph_poison_nomem(step->graph, spec->n_features * sizeof(*step->inputs));
    if (step->inputs[i] == NULL)
        step->inputs[i] = record_input(step, spec, i);
    return step->inputs[i];
}

KilnTensor *kiln_step_lengths(KilnStep *step, const char *name)
{
    const KilnFeature *feature = kiln_spec_feature(step->spec, name);

    if (feature == NULL)
        return no_such_feature(step, name);
    if (!is_present(step, name))
        return lacks(step, name);
    const size_t i = (size_t)(feature - step->spec->features);
    if (!feature->varies)
        return kiln_graph_poison(step->graph,
                                 "the step asks for the lengths of feature \"%s\", but all samples "
                                 "have its shape",
                                 name);
    if (step->lengths == NULL)
        return kiln_graph_poison_nomem(step->graph, step->spec->n_features * sizeof(KilnTensor *));
    if (step->lengths[i] == NULL)
        step->lengths[i] = kiln_graph_input(step->graph, KILN_I32, KILN_SHAPE(step->batch.size),
                                            in_batch(step, i).lengths);
    return step->lengths[i];
}

KilnTensor *kiln_step_dropout_key(KilnStep *step)
{
    if (step->dropout_key == NULL)
        step->dropout_key = kiln_graph_input(step->graph, KILN_I32, KILN_SHAPE(2),
                                             step->dropout_seed);
    return step->dropout_key;
}

int64_t kiln_step_stream(KilnStep *step)
{
    return step->stream++;
}

const char *kiln_step_name(const KilnStep *step, const char *name, char buf[KILN_STEP_NAME])
{
    if (step->set == NULL || step->set[0] == '\0')
        return name;
    snprintf(buf, KILN_STEP_NAME, "%s/%s", name, step->set);
    return buf;
}

void kiln_step_log(KilnStep *step, const char *name, KilnTensor *value, unsigned flags)
{
    char buf[KILN_STEP_NAME];
    int declared;

    if (kiln_tensor_poisoned(value))
        return;
    if (kiln_tensor_shape(value)->rank != 0) {
        char text[KILN_SHAPE_TEXT];

        kiln_graph_poison(step->graph,
                          "\"%s\" is logged with a tensor %s; a scalar is needed (kiln_mean)", name,
                          kiln_shape_text(kiln_tensor_shape(value), text, sizeof(text)));
        return;
    }
    if (step->n_logs == KILN_STEP_LOGS) {
        kiln_graph_poison(step->graph, "\"%s\": a step logs more than %d values", name,
                          (int)KILN_STEP_LOGS);
        return;
    }
    declared = kiln_metrics_declare(step->metrics, step->phase, kiln_step_name(step, name, buf),
                                    kiln_log_flags(step->phase, flags));
    if (declared < 0) {
        kiln_graph_poison(step->graph, "\"%s\" is not logged: out of memory", name);
        return;
    }
    step->logs[step->n_logs].name = declared;
    step->logs[step->n_logs].value = value;
    step->n_logs++;
}

KilnTensor *kiln_step_as_f32(KilnTensor *value)
{
    return kiln_tensor_dtype(value) == KILN_F64 ? kiln_cast(value, KILN_F32) : value;
}

void kiln_step_output(KilnStep *step, const char *name, KilnTensor *value)
{
    if (kiln_tensor_poisoned(value))
        return;
    value = kiln_step_as_f32(value);
    if (step->n_outputs == KILN_STEP_OUTPUTS || kiln_tensor_dtype(value) != KILN_F32 ||
        kiln_tensor_shape(value)->rank < 1 ||
        kiln_tensor_dim(value, 0) != kiln_step_batch_size(step)) {
        kiln_graph_poison(step->graph,
                          "output \"%s\": at most %d outputs are possible, each f32 with the "
                          "batch as its first axis",
                          name, (int)KILN_STEP_OUTPUTS);
        return;
    }
    step->outputs[step->n_outputs].name = name;
    step->outputs[step->n_outputs].value = value;
    step->n_outputs++;
}

void kiln_step_keep(KilnStep *step, const char *name, KilnTensor *value)
{
    if (kiln_tensor_poisoned(value))
        return;
    if (step->n_kept == KILN_STEP_KEPT) {
        kiln_graph_poison(step->graph, "\"%s\": a step keeps at most %d values", name,
                          (int)KILN_STEP_KEPT);
        return;
    }
    step->kept[step->n_kept].name = name;
    step->kept[step->n_kept].value = kiln_step_as_f32(value);
    step->n_kept++;
}

/* Add a tensor to the list once. */
static void add_once(KilnTensor **list, size_t *n, KilnTensor *tensor)
{
    for (size_t i = 0; i < *n; i++)
        if (list[i] == tensor)
            return;
    list[(*n)++] = tensor;
}

enum {
    MAX_READS = 1 + KILN_STEP_LOGS + KILN_STEP_OUTPUTS + 2 * KILN_STEP_METRICS +
                KILN_STEP_EXTRA_READS + KILN_STEP_KEPT
};

/* The tensors that are read after the step has run; returns their number. */
static size_t read_tensors(const KilnStep *step, KilnTensor *loss, KilnTensor *ret[MAX_READS])
{
    size_t n = 0;

    if (loss != NULL)
        add_once(ret, &n, loss);
    for (size_t i = 0; i < step->n_logs; i++)
        add_once(ret, &n, step->logs[i].value);
    for (size_t i = 0; i < step->n_outputs; i++)
        add_once(ret, &n, step->outputs[i].value);
    for (size_t i = 0; i < step->n_metric_inputs; i++) {
        add_once(ret, &n, step->metric_inputs[i].scores);
        add_once(ret, &n, step->metric_inputs[i].targets);
    }
    for (size_t i = 0; i < step->n_kept; i++)
        add_once(ret, &n, step->kept[i].value);
    for (size_t i = 0; i < step->n_extra_reads; i++)
        add_once(ret, &n, step->extra_reads[i]);
    return n;
}

KilnStatus kiln_step_plan(KilnStep *step, KilnTensor *loss, KilnPlan **ret, KilnError *err)
{
    KilnTensor *list[MAX_READS];
    size_t n = read_tensors(step, loss, list);

    return kiln_graph_plan(step->graph, list, n, ret, err);
}

KilnStatus kiln_step_execute(KilnStep *step, KilnTensor *loss, KilnPlan *plan, KilnError *err)
{
    KilnTensor *list[MAX_READS];
    size_t n = read_tensors(step, loss, list);
    KilnStatus status = kiln_graph_execute(step->graph, plan, list, n, err);

    step->has_run = status >= 0;
    return status;
}

KilnStatus kiln_step_run(KilnStep *step, KilnTensor *loss, KilnError *err)
{
    KilnPlan *plan = NULL;
    KilnStatus status = kiln_step_plan(step, loss, &plan, err);

    return status >= 0 ? kiln_step_execute(step, loss, plan, err) : status;
}

KilnStatus kiln_step_update_metrics(KilnStep *step, int64_t epoch, int64_t global_step,
                                    KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < step->n_logs && status >= 0; i++)
        status = kiln_metrics_add(step->metrics, step->logs[i].name,
                                  kiln_tensor_scalar(step->logs[i].value), (double)step->batch.size,
                                  epoch, global_step, err);
    return status >= 0 ? kiln_step_update_metric_states(step, err) : status;
}

/* Batches of variants of one sample. */
#include "train/explain/variants.h"

#include <string.h>

#include "base/call.h"
#include "graph/lookup_factors.h"
#include "graph/op.h"
#include "train/trainer.h"

/* ---- The sample and room for its variants --------------------------------------------------- */

static bool has_ids(const KilnFeature *feature)
{
    return feature->dtype == KILN_I32 && (feature->n_ids > 0 || feature->columns != NULL);
}

static bool is_explained(const KilnFeature *feature)
{
    return feature->content != KILN_LABEL && feature->content != KILN_TEXT &&
           (feature->dtype == KILN_F32 || has_ids(feature));
}

static bool is_read(const KilnFeature *feature)
{
    return feature->content != KILN_LABEL && feature->content != KILN_TEXT;
}

/* Make room for feature f, and fill all variants with the sample. */
static void make_room(KilnVariants *variants, size_t f)
{
    const KilnFeature *feature = &variants->spec->features[f];
    KilnArena *arena = &variants->arena;
    const int64_t rows = variants->rows;
    KilnShape shape = feature->shape;

    if (!is_read(feature))
        return;
    if (feature->varies)
        shape.dim[0] = variants->sample->lengths[f];
    variants->lengths[f] = shape.rank > 0 ? shape.dim[0] : 1;
    const int64_t count = kiln_shape_count(&shape);
    const size_t bytes = (size_t)count * kiln_dtype_size(feature->dtype);
    char *data = kiln_arena_alloc(arena, bytes * (size_t)rows);
    int32_t *lengths = feature->varies ? kiln_arena_alloc(arena, (size_t)rows * sizeof(*lengths))
                                       : NULL;
    float *factors = has_ids(feature)
                         ? kiln_arena_alloc(arena, (size_t)(rows * count) * sizeof(*factors))
                         : NULL;
    if (arena->failed)
        return;
    for (int64_t row = 0; row < rows; row++) {
        memcpy(data + (size_t)row * bytes, variants->sample->data[f], bytes);
        if (lengths != NULL)
            lengths[row] = (int32_t)variants->lengths[f];
    }
    for (int64_t i = 0; factors != NULL && i < rows * count; i++)
        factors[i] = 1.0f;
    variants->count[f] = is_explained(feature) ? count : 0;
    variants->data[f] = data;
    variants->factors[f] = factors;
    variants->batch[f] = (KilnBatchFeature) { .data = data,
                                              .padded = feature->varies ? variants->lengths[f] : 0,
                                              .lengths = lengths };
}

KilnStatus kiln_variants_init(KilnVariants *variants, KilnPredictor *predictor,
                              const KilnRawSample *raw, int64_t rows, KilnError *err)
{
    const KilnDataSpec *spec = kiln_predictor_data_spec(predictor);
    const size_t n = spec->n_features;
    KilnArena *arena = &variants->arena;

    *variants = (KilnVariants) { .predictor = predictor, .spec = spec, .rows = rows };
    KilnStatus status = kiln_predictor_preprocess(predictor, raw, &variants->sample, err);
    if (status < 0)
        return status;
    variants->lengths = kiln_arena_alloc(arena, n * sizeof(*variants->lengths));
    variants->count = kiln_arena_alloc(arena, n * sizeof(*variants->count));
    variants->data = kiln_arena_alloc(arena, n * sizeof(*variants->data));
    variants->factors = kiln_arena_alloc(arena, n * sizeof(*variants->factors));
    variants->batch = kiln_arena_alloc(arena, n * sizeof(*variants->batch));
    variants->points = kiln_arena_alloc(arena, n * sizeof(*variants->points));
    variants->lookups = kiln_arena_alloc(arena, n * sizeof(*variants->lookups));
    variants->numbers = kiln_arena_alloc(arena, (size_t)rows * sizeof(*variants->numbers));
    for (size_t f = 0; f < n && !arena->failed; f++)
        make_room(variants, f);
    if (arena->failed)
        return kiln_error_nomem(err, kiln_arena_bytes(arena));
    status = kiln_predict_slot_take(&predictor->slots, &variants->slot, err);
    if (status >= 0)
        variants->precision = variants->slot->step->graph->precision;
    return status;
}

void kiln_variants_release(KilnVariants *variants)
{
    if (variants->slot != NULL) {
        kiln_graph_set_precision(variants->slot->step->graph, variants->precision);
        kiln_predict_slot_give_back(&variants->predictor->slots, variants->slot);
    }
    if (variants->sample != NULL)
        kiln_predictor_sample_free(variants->predictor, variants->sample);
    kiln_arena_release(&variants->arena);
}

void kiln_variants_use_f32(KilnVariants *variants)
{
    if (variants->precision == KILN_BF16_MIXED || variants->precision == KILN_BF16_TRUE)
        kiln_graph_set_precision(variants->slot->step->graph, KILN_PRECISION_32);
}

double kiln_variants_way(const KilnVariants *variants, size_t feature, int64_t element)
{
    return variants->factors[feature] != NULL
               ? 1.0
               : (double)((const float *)variants->sample->data[feature])[element];
}

void kiln_variants_scale(KilnVariants *variants, int64_t row, double part)
{
    for (size_t f = 0; f < variants->spec->n_features; f++) {
        const int64_t count = variants->count[f];
        float *to = variants->factors[f] != NULL ? variants->factors[f] : variants->data[f];

        for (int64_t i = 0; i < count; i++)
            to[row * count + i] = (float)(part * kiln_variants_way(variants, f, i));
    }
}

/* ---- The score ------------------------------------------------------------------------------ */

/* The output that predicts: probabilities, else the first with one value or one row per sample. */
static KilnTensor *find_prediction(const KilnStep *step)
{
    KilnTensor *found = NULL;

    for (size_t i = 0; i < step->n_outputs; i++) {
        KilnTensor *value = step->outputs[i].value;

        if (value->shape.rank > 2)
            continue;
        if (strcmp(step->outputs[i].name, "probabilities") == 0)
            return value;
        if (found == NULL)
            found = value;
    }
    return found;
}

/* The logits below a softmax or sigmoid. */
static KilnTensor *below(KilnTensor *prediction)
{
    const KilnNode *node = prediction->node;

    while (node != NULL && node->op == &kiln_op_cast)
        node = node->inputs[0]->node;
    return node != NULL && (node->op == &kiln_op_softmax || node->op == &kiln_op_sigmoid)
               ? node->inputs[0]
               : prediction;
}

static KilnStatus find_score(const KilnVariants *variants, KilnTensor **ret, KilnError *err)
{
    const KilnStep *step = variants->slot->step;
    KilnTensor *prediction = find_prediction(step);
    KilnStatus status = kiln_graph_check(step->graph, err);

    if (status < 0)
        return status;
    if (prediction == NULL)
        return kiln_error_set(err, KILN_E_MISSING,
                              "task %s has no prediction of one value or one class a sample, which "
                              "is what can be explained",
                              kiln_instance_name(variants->predictor->trainer->module));
    *ret = below(prediction);
    return KILN_OK;
}

/* The score of `target`, summed over the variants, of which each depends on itself alone. */
static KilnTensor *total(KilnTensor *score, int64_t target)
{
    return kiln_sum(score->shape.rank == 2 ? kiln_narrow(score, 1, target, 1) : score);
}

/* ---- Recording and running ------------------------------------------------------------------ */

typedef struct Recording {
    KilnVariants *variants;
    int64_t n, target; /* target -1: no gradients */
    KilnVariantReads *reads;
    void *ctx;
    KilnTensor *list[KILN_STEP_EXTRA_READS]; /* what is read; the first is the score */
    size_t n_list;
} Recording;

static void begin(const Recording *recording, const KilnProbe *probe, const KilnDataset *dataset)
{
    KilnVariants *variants = recording->variants;
    const KilnTrainer *trainer = variants->predictor->trainer;
    const KilnBatch batch = { .size = recording->n,
                              .samples = variants->numbers,
                              .features = variants->batch,
                              .dataset = dataset };

    kiln_step_begin(variants->slot->step, KILN_PHASE_PREDICT, false, &batch,
                    (uint64_t)trainer->options.root->seed, 0);
    variants->slot->step->probe = probe;
}

static void call_step(KilnInstance *module, KilnStep *step, const char *name,
                      void (*record)(KilnInstance *self, KilnStep *step))
{
    kiln_call_enter(module, name);
    record(module, step);
    kiln_call_leave();
    step->probe = NULL;
}

static bool has_reader(const KilnGraph *graph, const KilnTensor *tensor)
{
    for (size_t i = 0; i < graph->n_nodes; i++)
        for (int k = 0; k < graph->nodes[i]->n_inputs; k++)
            if (graph->nodes[i]->inputs[k] == tensor)
                return true;
    return false;
}

/* Leave out features with ids that the model does not use; refuse those that it uses without
 * looking them up. */
static KilnStatus check_lookups(const KilnVariants *variants, KilnError *err)
{
    for (size_t f = 0; f < variants->spec->n_features; f++) {
        const KilnLookupFactors *lookup = variants->lookups[f];

        if (lookup == NULL || lookup->used)
            continue;
        if (has_reader(variants->slot->step->graph, lookup->index))
            return kiln_error_set(err, KILN_E_MISSING,
                                  "the model uses the ids of feature \"%s\" without an embedding "
                                  "layer (kiln_nn_embedding), which explanations need",
                                  variants->spec->features[f].name);
        variants->points[f] = NULL;
    }
    return KILN_OK;
}

static KilnStatus record_gradients(Recording *recording, KilnTensor *score, KilnError *err)
{
    KilnVariants *variants = recording->variants;
    KilnGraph *graph = variants->slot->step->graph;
    KilnTensor *loss = total(score, recording->target);

    kiln_graph_backward(graph, loss);
    KilnStatus status = kiln_graph_check(graph, err);
    if (status < 0)
        return kiln_error_prefix(err, "the score's gradient: ");
    for (size_t f = 0; f < variants->spec->n_features; f++) {
        KilnTensor *point = variants->points[f];

        if (point == NULL || point->grad == NULL)
            continue;
        if (recording->n_list + 3 > KILN_STEP_EXTRA_READS)
            return kiln_error_set(err, KILN_E_MISSING, "the model has too many inputs to explain");
        point->grad = kiln_step_as_f32(point->grad);
        recording->list[recording->n_list++] = point->grad;
    }
    return recording->reads == NULL
               ? KILN_OK
               : recording->reads(recording->ctx, graph, recording->list, &recording->n_list, err);
}

/* Record the step and plan it, under the predictor's lock. */
static KilnStatus record(Recording *recording, KilnPlan **ret, KilnError *err)
{
    KilnVariants *variants = recording->variants;
    KilnInstance *module = variants->predictor->trainer->module;
    KilnStep *step = variants->slot->step;
    const KilnDataset dataset = { .count = 1, .absent = variants->predictor->preprocessor.absent };
    const KilnProbe probe = { .gradients = recording->target >= 0,
                              .factors = variants->factors,
                              .points = variants->points,
                              .lookups = variants->lookups };
    KilnTensor *score = NULL;

    memset(variants->points, 0, variants->spec->n_features * sizeof(*variants->points));
    memset(variants->lookups, 0, variants->spec->n_features * sizeof(*variants->lookups));
    begin(recording, &probe, &dataset);
    call_step(module, step, "predict_step",
              kiln_instance_component(module)->ops.module->predict_step);
    KilnStatus status = find_score(variants, &score, err);
    if (status >= 0)
        status = check_lookups(variants, err);
    if (status < 0)
        return status;
    variants->n_scores = score->shape.rank == 2 ? score->shape.dim[1] : 1;
    recording->list[recording->n_list++] = kiln_step_as_f32(score);
    if (recording->target >= 0)
        status = record_gradients(recording, score, err);
    step->n_outputs = 0; /* the score is read in their place */
    step->n_kept = 0;
    step->extra_reads = recording->list;
    step->n_extra_reads = recording->n_list;
    return status < 0 ? status : kiln_step_plan(step, NULL, ret, err);
}

static KilnStatus run(Recording *recording, KilnError *err)
{
    KilnVariants *variants = recording->variants;
    KilnPlan *plan = NULL;

    pthread_mutex_lock(&variants->predictor->recording);
    KilnStatus status = record(recording, &plan, err);
    pthread_mutex_unlock(&variants->predictor->recording);
    if (status >= 0)
        status = kiln_step_execute(variants->slot->step, NULL, plan, err);
    if (status < 0)
        return status;
    const size_t size = (size_t)(variants->rows * variants->n_scores) * sizeof(*variants->scores);
    if (variants->scores == NULL)
        variants->scores = kiln_arena_alloc(&variants->arena, size);
    if (variants->scores == NULL)
        return kiln_error_nomem(err, size);
    memcpy(variants->scores, kiln_tensor_data(recording->list[0]),
           (size_t)(recording->n * variants->n_scores) * sizeof(*variants->scores));
    return KILN_OK;
}

KilnStatus kiln_variants_score(KilnVariants *variants, int64_t n, KilnError *err)
{
    Recording recording = { .variants = variants, .n = n, .target = -1 };

    return run(&recording, err);
}

KilnStatus kiln_variants_differentiate(KilnVariants *variants, int64_t n, int64_t target,
                                       KilnVariantReads *reads, void *ctx, KilnError *err)
{
    Recording recording = {
        .variants = variants, .n = n, .target = target, .reads = reads, .ctx = ctx
    };

    return run(&recording, err);
}

KilnStatus kiln_variants_contributions(KilnVariants *variants, const KilnTensor **ret,
                                       KilnError *err)
{
    KilnInstance *module = variants->predictor->trainer->module;
    KilnStep *step = variants->slot->step;
    const KilnDataset dataset = { .count = 1, .absent = variants->predictor->preprocessor.absent };
    const Recording recording = { .variants = variants, .n = 1 };
    KilnPlan *plan = NULL;

    pthread_mutex_lock(&variants->predictor->recording);
    begin(&recording, NULL, &dataset);
    call_step(module, step, "contributions_step",
              kiln_instance_component(module)->ops.module->contributions_step);
    KilnStatus status = kiln_step_plan(step, NULL, &plan, err);
    pthread_mutex_unlock(&variants->predictor->recording);
    if (status >= 0)
        status = kiln_step_execute(step, NULL, plan, err);
    if (status < 0)
        return status;
    *ret = step->outputs[0].value;
    return KILN_OK;
}

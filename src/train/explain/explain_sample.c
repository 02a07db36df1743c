/* kiln_explain: finds the target and its score, and has a method explain it. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "base/text.h"
#include "train/explain/explaining.h"
#include "train/trainer.h"

const KilnChoice kiln_explain_methods[] = {
    { "auto", KILN_EXPLAIN_AUTO },
    { "integrated_gradients", KILN_EXPLAIN_INTEGRATED_GRADIENTS },
    { "occlusion", KILN_EXPLAIN_OCCLUSION },
    { "grad_cam", KILN_EXPLAIN_GRAD_CAM },
    { "contributions", KILN_EXPLAIN_CONTRIBUTIONS },
    { NULL, 0 },
};

/* ---- The result ------------------------------------------------------------------------------ */

KilnShape kiln_explaining_shape(const KilnExplaining *self, size_t f)
{
    KilnShape shape = self->variants->spec->features[f].shape;

    if (self->variants->spec->features[f].varies)
        shape.dim[0] = self->variants->lengths[f];
    return shape;
}

float *kiln_explaining_add(KilnExplaining *self, size_t f, KilnShape shape)
{
    const KilnVariants *variants = self->variants;
    const KilnFeature *feature = &variants->spec->features[f];
    KilnAttribution *list = (KilnAttribution *)self->result.list;
    const size_t bytes = (size_t)variants->count[f] * kiln_dtype_size(feature->dtype);
    void *input = kiln_arena_alloc(&self->arena, bytes);
    float *values = kiln_arena_alloc(&self->arena,
                                     (size_t)kiln_shape_count(&shape) * sizeof(*values));

    if (list == NULL)
        self->result.list = list = kiln_arena_alloc(&self->arena,
                                                    variants->spec->n_features * sizeof(*list));
    if (input == NULL || values == NULL || list == NULL)
        return NULL;
    memcpy(input, variants->sample->data[f], bytes);
    list[self->result.n++] = (KilnAttribution) { .feature = feature,
                                                 .input = input,
                                                 .length = variants->lengths[f],
                                                 .shape = shape,
                                                 .values = values };
    return values;
}

void kiln_explanation_free(KilnExplanation *explanation)
{
    KilnExplaining *self = (KilnExplaining *)explanation;

    if (self == NULL)
        return;
    kiln_arena_release(&self->arena);
    free(self);
}

/* ---- The target ------------------------------------------------------------------------------ */

static const char *name_of(const KilnDataSpec *spec, int64_t n_scores, int64_t target)
{
    return spec->class_names != NULL && spec->n_classes == n_scores && target < n_scores
               ? spec->class_names[target]
               : NULL;
}

/* The score that `text` names among n: a class, else a number. */
static KilnStatus parse_target(const KilnDataSpec *spec, int64_t n, const char *text, int64_t *ret,
                               KilnError *err)
{
    const bool named = name_of(spec, n, 0) != NULL;

    for (int64_t i = 0; named && i < n; i++)
        if (strcmp(spec->class_names[i], text) == 0) {
            *ret = i;
            return KILN_OK;
        }
    const bool number = kiln_parse_i64(text, ret, NULL) >= 0;
    if (number && *ret >= 0 && *ret < n)
        return KILN_OK;
    const char *nearest = named && !number ? kiln_nearest(text, spec->class_names, (size_t)n)
                                           : NULL;
    return kiln_error_set(
        err, KILN_E_KEY,
        "target %s: no such class; %s%s%s are %" PRId64 ", from 0 (%s) to %" PRId64 " (%s)", text,
        nearest != NULL ? "did you mean " : "", nearest != NULL ? nearest : "",
        nearest != NULL ? "? There" : "there", n, named ? spec->class_names[0] : "0", n - 1,
        named ? spec->class_names[n - 1] : "the last score");
}

/* The given target, or the score that is the largest of `scores`. */
static KilnStatus choose_target(KilnExplaining *self, const float *scores, int64_t n,
                                KilnError *err)
{
    const KilnDataSpec *spec = self->variants->spec;
    KilnStatus status = KILN_OK;

    if (self->spec->target != NULL)
        status = parse_target(spec, n, self->spec->target, &self->result.target, err);
    for (int64_t i = 0; i < n && self->spec->target == NULL; i++)
        if (scores[i] > scores[self->result.target])
            self->result.target = i;
    self->result.target_name = name_of(spec, n, self->result.target);
    return status;
}

/* ---- Contributions --------------------------------------------------------------------------- */

/* Divide a row of contributions among the features. Of two classes with one score, that of the
 * first is the other way round. */
static KilnStatus divide(KilnExplaining *self, const float *row, float sign, KilnError *err)
{
    const KilnVariants *variants = self->variants;

    for (size_t f = 0; f < variants->spec->n_features; f++) {
        const int64_t count = variants->count[f];

        if ((variants->spec->features[f].content & (KILN_VECTOR | KILN_ROW)) == 0)
            continue;
        float *values = kiln_explaining_add(self, f, kiln_explaining_shape(self, f));
        if (values == NULL)
            return kiln_error_nomem(err, kiln_arena_bytes(&self->arena));
        for (int64_t i = 0; i < count; i++)
            values[i] = sign * row[i];
        row += count;
    }
    self->result.baseline = (double)(sign * row[0]);
    return KILN_OK;
}

static KilnStatus explain_contributions(KilnExplaining *self, KilnError *err)
{
    const KilnDataSpec *data = self->variants->spec;
    const KilnTensor *output = NULL;
    KilnStatus status = kiln_variants_contributions(self->variants, &output, err);

    if (status < 0)
        return status;
    const KilnShape *shape = kiln_tensor_shape(output);
    const float *rows = kiln_tensor_data(output);
    const int64_t width = shape->dim[shape->rank - 1], scores = shape->rank > 2 ? shape->dim[1] : 1;
    const bool binary = scores == 1 && data->n_classes == 2;
    const int64_t n = binary ? 2 : scores;
    float *sums = kiln_arena_alloc(&self->variants->arena, (size_t)n * sizeof(*sums));
    if (sums == NULL)
        return kiln_error_nomem(err, (size_t)n * sizeof(*sums));
    for (int64_t k = 0; k < scores; k++)
        for (int64_t i = 0; i < width; i++)
            sums[binary ? 1 : k] += rows[k * width + i];
    sums[0] = binary ? -sums[1] : sums[0];
    status = choose_target(self, sums, n, err);
    if (status < 0)
        return status;
    const int64_t target = self->result.target;
    self->result.score = (double)sums[target];
    return divide(self, rows + (binary ? 0 : target) * width, binary && target == 0 ? -1.0f : 1.0f,
                  err);
}

/* ---- Explaining ------------------------------------------------------------------------------ */

/* The score of the sample and of the baseline, in f32; without a target that of the class which
 * kiln_predict gives, in the run's precision. */
static KilnStatus score(KilnExplaining *self, KilnError *err)
{
    KilnVariants *variants = self->variants;

    kiln_variants_scale(variants, 0, 1.0);
    kiln_variants_scale(variants, 1, 0.0);
    KilnStatus status = kiln_variants_score(variants, 2, err);
    if (status >= 0)
        status = choose_target(self, variants->scores, variants->n_scores, err);
    kiln_variants_use_f32(variants);
    if (status >= 0 && variants->slot->step->graph->precision != variants->precision)
        status = kiln_variants_score(variants, 2, err);
    if (status < 0)
        return status;
    self->result.score = (double)variants->scores[self->result.target];
    self->result.baseline = (double)variants->scores[variants->n_scores + self->result.target];
    return KILN_OK;
}

static KilnStatus explain(KilnExplaining *self, KilnError *err)
{
    static KilnStatus (*const methods[])(KilnExplaining * self, KilnError * err) = {
        [KILN_EXPLAIN_INTEGRATED_GRADIENTS] = kiln_explain_integrated_gradients,
        [KILN_EXPLAIN_OCCLUSION] = kiln_explain_occlusion,
        [KILN_EXPLAIN_GRAD_CAM] = kiln_explain_grad_cam,
    };

    if (self->result.method == KILN_EXPLAIN_CONTRIBUTIONS)
        return explain_contributions(self, err);
    KilnStatus status = score(self, err);
    return status < 0 ? status : methods[self->result.method](self, err);
}

/* The method to use; KILN_E_MISSING if the module does not have it. */
static KilnStatus choose_method(const KilnInstance *module, KilnExplainMethod wanted,
                                KilnExplainMethod *ret, KilnError *err)
{
    const KilnModuleOps *ops = kiln_instance_component(module)->ops.module;
    const char *name = kiln_instance_name(module);

    *ret = wanted;
    if (wanted == KILN_EXPLAIN_AUTO)
        *ret = ops->contributions_step != NULL ? KILN_EXPLAIN_CONTRIBUTIONS
                                               : KILN_EXPLAIN_INTEGRATED_GRADIENTS;
    if (*ret == KILN_EXPLAIN_CONTRIBUTIONS && ops->contributions_step == NULL)
        return kiln_error_set(err, KILN_E_MISSING,
                              "task %s has no contributions, which are of trees; "
                              "integrated_gradients and occlusion explain networks",
                              name);
    if (*ret != KILN_EXPLAIN_CONTRIBUTIONS && ops->contributions_step != NULL)
        return kiln_error_set(err, KILN_E_MISSING,
                              "task %s is explained by contributions alone: trees have no "
                              "gradients, and no baseline",
                              name);
    return ops->predict_step != NULL
               ? KILN_OK
               : kiln_error_set(err, KILN_E_MISSING, "task %s has no predict step to explain",
                                name);
}

static void add_up(KilnExplanation *result)
{
    for (size_t i = 0; i < result->n; i++) {
        const int64_t count = kiln_shape_count(&result->list[i].shape);

        for (int64_t k = 0; k < count; k++)
            result->sum += (double)result->list[i].values[k];
    }
}

KilnStatus kiln_explain(KilnPredictor *predictor, const KilnRawSample *raw,
                        const KilnExplainSpec *spec, KilnExplanation **ret, KilnError *err)
{
    const int64_t batch = predictor->trainer->data.batch_size;
    KilnVariants variants = { 0 };
    KilnExplaining *self = calloc(1, sizeof(*self));

    if (self == NULL)
        return kiln_error_nomem(err, sizeof(*self));
    self->variants = &variants;
    self->spec = spec;
    self->steps = spec->steps > 0 ? spec->steps : 50;
    KilnStatus status = choose_method(predictor->trainer->module, spec->method,
                                      &self->result.method, err);
    if (status >= 0)
        status = kiln_variants_init(&variants, predictor, raw, batch > 2 ? batch : 2, err);
    if (status >= 0)
        status = explain(self, err);
    if (status >= 0)
        status = kiln_explaining_spell(self, raw, err);
    if (status >= 0 && self->result.n == 0)
        status = kiln_error_set(err, KILN_E_MISSING,
                                "the score depends on none of the features that can be explained: "
                                "numbers, and ids that are looked up");
    add_up(&self->result);
    kiln_variants_release(&variants);
    self->variants = NULL;
    self->spec = NULL;
    if (status < 0)
        kiln_explanation_free(&self->result);
    else
        *ret = &self->result;
    return status;
}

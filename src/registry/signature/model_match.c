/* Matches what a user of a model feeds and needs with the model's signature, and says what does not
 * fit. */
#include "registry/signature/model_match.h"

#include <string.h>

/* ---- Matching ----------------------------------------------------------------------- */

static size_t count_axes(const char *axes)
{
    size_t n = axes[0] != '\0';

    for (; *axes != '\0'; axes++)
        n += *axes == ' ';
    return n;
}

/* Whether a value may be taken where `wanted` is declared. */
static bool fits(const KilnTensorSpec *given, const KilnTensorSpec *wanted)
{
    return (given->content & wanted->content) != 0 && given->dtype == wanted->dtype &&
           (wanted->varies || !given->varies) &&
           (wanted->axes == NULL || given->axes == NULL ||
            count_axes(wanted->axes) == count_axes(given->axes));
}

static bool same_name(const KilnTensorSpec *a, const KilnTensorSpec *b)
{
    return strcmp(a->name, b->name) == 0;
}

bool kiln_model_is_fed(const KilnModelUse *use, const KilnTensorSpec *given)
{
    bool fed = use->feeds == NULL;

    for (size_t i = 0; i < use->n_feeds && !fed; i++)
        fed = fits(given, &use->feeds[i]) && (!use->own || same_name(given, &use->feeds[i]));
    return fed;
}

static bool is_taken(const KilnModelMatch *match, size_t n_inputs, size_t given)
{
    for (size_t i = 0; i < n_inputs; i++)
        if (match->given[i] == given)
            return true;
    return false;
}

/* Whether input i may get value g of the pair. */
static bool may_get(const KilnModelPair *pair, const KilnModelMatch *match, size_t i, size_t g)
{
    return fits(&pair->given[g], &pair->inputs[i]) &&
           kiln_model_is_fed(pair->use, &pair->given[g]) && !is_taken(match, pair->n_inputs, g);
}

static void match_names(const KilnModelPair *pair, KilnModelMatch *match)
{
    for (size_t i = 0; i < pair->n_inputs; i++)
        for (size_t g = 0; g < pair->n_given && match->given[i] == SIZE_MAX; g++)
            if (same_name(&pair->inputs[i], &pair->given[g]) && may_get(pair, match, i, g))
                match->given[i] = g;
}

/* Give input i the only value left that fits; of those that may be absent none. */
static KilnMisfit match_content(const KilnModelPair *pair, KilnModelMatch *match, size_t i)
{
    size_t found = SIZE_MAX, n = 0;

    for (size_t g = 0; g < pair->n_given; g++)
        if (!pair->given[g].optional && may_get(pair, match, i, g)) {
            found = g;
            n++;
        }
    if (n > 1)
        return KILN_MISFIT_AMBIGUOUS;
    match->given[i] = found;
    return n == 1 || pair->inputs[i].optional ? KILN_FITS : KILN_MISFIT_INPUT;
}

/* Without knowledge of the data: whether the user feeds something that fits. */
static bool may_be_fed(const KilnModelPair *pair, size_t i)
{
    bool found = pair->inputs[i].optional || pair->use->feeds == NULL;

    for (size_t f = 0; f < pair->use->n_feeds && !found; f++)
        found = fits(&pair->use->feeds[f], &pair->inputs[i]);
    return found;
}

static bool anything_fed(const KilnModelPair *pair)
{
    for (size_t g = 0; g < pair->n_given; g++)
        if (kiln_model_is_fed(pair->use, &pair->given[g]))
            return true;
    return pair->given == NULL;
}

static bool anything_matched(const KilnModelPair *pair, const KilnModelMatch *match)
{
    for (size_t i = 0; i < pair->n_inputs; i++)
        if (match->given[i] != SIZE_MAX)
            return true;
    return pair->given == NULL;
}

KilnMisfit kiln_model_match_inputs(const KilnModelPair *pair, KilnModelMatch *ret)
{
    *ret = (KilnModelMatch) { .misfit = KILN_FITS };
    for (size_t i = 0; i < KILN_MODEL_VALUES; i++)
        ret->given[i] = SIZE_MAX;
    match_names(pair, ret);
    for (size_t i = 0; i < pair->n_inputs && ret->misfit == KILN_FITS; i++) {
        ret->at = i;
        if (pair->given == NULL)
            ret->misfit = may_be_fed(pair, i) ? KILN_FITS : KILN_MISFIT_INPUT;
        else if (ret->given[i] == SIZE_MAX)
            ret->misfit = match_content(pair, ret, i);
    }
    if (ret->misfit == KILN_FITS && pair->n_inputs > 0 && !anything_matched(pair, ret))
        ret->misfit = KILN_MISFIT_INPUT;
    if (ret->misfit == KILN_MISFIT_INPUT && !pair->use->own && !anything_fed(pair))
        ret->misfit = KILN_MISFIT_DATA;
    return ret->misfit;
}

/* The output that meets a need; SIZE_MAX: none does, or several might. */
static size_t find_output(const KilnSignature *signature, const KilnTensorSpec *need)
{
    size_t found = SIZE_MAX, n = 0;

    for (size_t i = 0; i < signature->n_outputs; i++) {
        if ((signature->outputs[i].content & need->content) == 0)
            continue;
        if (same_name(&signature->outputs[i], need))
            return i;
        found = i;
        n++;
    }
    return n == 1 ? found : SIZE_MAX;
}

KilnModelMatch kiln_model_match(const KilnModelPair *pair)
{
    KilnModelMatch match;

    if (kiln_model_match_inputs(pair, &match) != KILN_FITS)
        return match;
    for (size_t i = 0; i < pair->use->n_needs && match.misfit == KILN_FITS; i++) {
        match.at = i;
        match.output[i] = find_output(pair->signature, &pair->use->needs[i]);
        if (match.output[i] == SIZE_MAX)
            match.misfit = KILN_MISFIT_OUTPUT;
    }
    return match;
}

const KilnTensorSpec *kiln_features_unmet(const KilnTensorSpec *needs, size_t n_needs,
                                          const KilnTensorSpec *given, size_t n_given)
{
    for (size_t i = 0; i < n_needs; i++) {
        bool met = needs[i].optional;

        for (size_t g = 0; g < n_given; g++)
            if (same_name(&needs[i], &given[g]))
                met = fits(&given[g], &needs[i]);
        if (!met)
            return &needs[i];
    }
    return NULL;
}

/* The axes of a label; those of other contents follow from the content. */
static const char *axes_of(const KilnFeature *feature)
{
    static const char *const of_label[] = { "", "values", "height width" };

    if (feature->shape.rank == 0)
        return "";
    return feature->content == KILN_LABEL && feature->shape.rank < (int)KILN_COUNT(of_label)
               ? of_label[feature->shape.rank]
               : NULL;
}

KilnTensorSpec kiln_feature_spec(const KilnFeature *feature)
{
    return (KilnTensorSpec) {
        .name = feature->name != NULL ? feature->name : "",
        .content = feature->content,
        .dtype = feature->dtype,
        .axes = axes_of(feature),
        .varies = feature->varies,
    };
}

/* ---- Texts -------------------------------------------------------------------------- */

/* Append ", " or " and " before item i of n. */
static void put_comma(KilnText *text, size_t i, size_t n, const char *last)
{
    if (i > 0)
        kiln_text_append(text, i + 1 < n ? ", " : last);
}

static size_t count_bits(unsigned bits)
{
    size_t n = 0;

    for (; bits != 0; bits &= bits - 1)
        n++;
    return n;
}

/* One content with its article. */
static const char *noun_of(unsigned content)
{
    static const struct {
        unsigned content;
        const char *noun;
    } nouns[] = {
        { KILN_IMAGE, "an image" },  { KILN_TOKENS, "tokens" },       { KILN_ROW, "a row" },
        { KILN_VECTOR, "a vector" }, { KILN_SEQUENCE, "a sequence" }, { KILN_MAP, "a map" },
        { KILN_LABEL, "a label" },   { KILN_TEXT, "text" },
    };

    for (size_t i = 0; i < KILN_COUNT(nouns); i++)
        if (nouns[i].content == content)
            return nouns[i].noun;
    return "an unknown content";
}

/* "an image", "an image, a row or a vector". */
static void put_contents(KilnText *text, unsigned contents)
{
    const size_t n = count_bits(contents);
    size_t i = 0;

    for (unsigned bit = KILN_IMAGE; bit <= contents; bit <<= 1)
        if ((contents & bit) != 0) {
            put_comma(text, i++, n, " or ");
            kiln_text_append(text, noun_of(bit));
        }
}

static void put_spec(KilnText *text, const KilnTensorSpec *spec, bool given)
{
    const char *content = kiln_content_name(spec->content);

    put_contents(text, spec->content);
    if (spec->content == KILN_LABEL && spec->axes != NULL && spec->axes[0] != '\0')
        kiln_text_append(text,
                         count_axes(spec->axes) == 1 ? " with several values" : " for each pixel");
    if ((spec->content & (KILN_ROW | KILN_MAP | KILN_LABEL)) != 0 && content != NULL)
        kiln_text_printf(text, " of %s", kiln_dtype_name(spec->dtype));
    if (content != NULL && strcmp(content, spec->name) != 0)
        kiln_text_printf(text, " \"%s\"", spec->name);
    if (given && spec->varies)
        kiln_text_append(text, " of varying length");
}

static void put_specs(KilnText *text, const KilnTensorSpec *specs, size_t n, bool given)
{
    for (size_t i = 0; i < n; i++) {
        put_comma(text, i, n, " and ");
        put_spec(text, &specs[i], given);
    }
    if (n == 0)
        kiln_text_append(text, "nothing");
}

void kiln_wanted_text(KilnText *text, const KilnTensorSpec *specs, size_t n)
{
    put_specs(text, specs, n, false);
}

void kiln_given_text(KilnText *text, const KilnTensorSpec *specs, size_t n)
{
    put_specs(text, specs, n, true);
}

/* What the model is offered: "datamodule text gives tokens", "task gan feeds it a vector". */
static void put_offer(KilnText *text, const KilnModelPair *pair)
{
    const bool feeds = pair->use->own || pair->given == NULL;

    kiln_text_printf(text, "%s %s ", feeds ? pair->user : pair->giver,
                     feeds ? "feeds it" : "gives");
    if (feeds)
        kiln_given_text(text, pair->use->feeds, pair->use->n_feeds);
    else
        kiln_given_text(text, pair->given, pair->n_given);
}

void kiln_misfit_text(KilnText *text, const KilnModelPair *pair, const KilnModelMatch *match)
{
    switch (match->misfit) {
    case KILN_FITS:
        return;
    case KILN_MISFIT_DATA:
        kiln_text_printf(text, "%s feeds its model ", pair->user);
        kiln_wanted_text(text, pair->use->feeds, pair->use->n_feeds);
        kiln_text_append(text, ", but ");
        put_offer(text, pair);
        return;
    case KILN_MISFIT_INPUT:
        kiln_text_printf(text, "%s takes ", pair->model);
        kiln_wanted_text(text, pair->inputs, pair->n_inputs);
        kiln_text_append(text, ", but ");
        put_offer(text, pair);
        return;
    case KILN_MISFIT_AMBIGUOUS:
        kiln_text_printf(text, "input \"%s\" of %s has several candidates: ",
                         pair->inputs[match->at].name, pair->model);
        put_offer(text, pair);
        kiln_text_append(text, "; call one like the input");
        return;
    case KILN_MISFIT_OUTPUT:
        kiln_text_printf(text, "%s needs ", pair->user);
        kiln_wanted_text(text, &pair->use->needs[match->at], 1);
        kiln_text_printf(text, ", but %s gives ", pair->model);
        kiln_wanted_text(text, pair->signature->outputs, pair->signature->n_outputs);
        return;
    }
}

/* The type and the axes: "f32 [height, width, channels]"; a scalar has no brackets. */
static void put_help(KilnText *text, const KilnTensorSpec *spec)
{
    kiln_text_append(text, spec->name);
    if (kiln_content_name(spec->content) == NULL) {
        kiln_text_append(text, " (");
        put_contents(text, spec->content);
        kiln_text_append(text, ")");
    }
    kiln_text_printf(text, " %s", kiln_dtype_name(spec->dtype));
    if (spec->axes != NULL && spec->axes[0] != '\0') {
        kiln_text_append(text, " [");
        for (const char *at = spec->axes; *at != '\0'; at++)
            *at == ' ' ? kiln_text_append(text, ", ") : kiln_text_char(text, *at);
        kiln_text_append(text, "]");
    }
    if (spec->varies)
        kiln_text_append(text, " of varying length");
    if (spec->optional)
        kiln_text_append(text, ", optional");
}

static void put_list(KilnText *text, const char *what, const KilnTensorSpec *specs, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        kiln_text_append(text, i == 0 ? what : ", ");
        put_help(text, &specs[i]);
    }
}

/* Start another part of the line. */
static void put_end(KilnText *text)
{
    if (text->length > 0)
        kiln_text_append(text, "; ");
}

static void put_uses(KilnText *text, const KilnComponent *component)
{
    size_t n = 0;
    const KilnModelUse *uses = kiln_component_models(component, &n);

    for (size_t i = 0; i < n; i++) {
        put_end(text);
        kiln_text_append(text, uses[i].option);
        put_list(text, " is fed ", uses[i].feeds, uses[i].n_feeds);
        put_list(text, uses[i].n_feeds > 0 ? " and must give " : " must give ", uses[i].needs,
                 uses[i].n_needs);
    }
}

void kiln_signature_text(KilnText *text, const KilnComponent *component)
{
    if (component->kind == KILN_KIND_DATAMODULE) {
        put_list(text, "gives ", component->ops.datamodule->features,
                 component->ops.datamodule->n_features);
    } else if (component->kind == KILN_KIND_MODEL) {
        const KilnSignature *signature = component->ops.model->signature;

        if (signature->inputs_of != NULL)
            kiln_text_printf(text, "takes what %s takes", signature->inputs_of);
        put_list(text, "takes ", signature->inputs, signature->n_inputs);
        put_end(text);
        put_list(text, "gives ", signature->outputs, signature->n_outputs);
    } else if (component->kind == KILN_KIND_MODULE) {
        put_list(text, "reads ", component->ops.module->features,
                 component->ops.module->n_features);
    }
    put_uses(text, component);
}

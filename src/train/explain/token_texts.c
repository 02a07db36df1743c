/* What the ids of explained tokens stand for. */
#include <inttypes.h>
#include <string.h>

#include "kiln/tokenizer.h"
#include "train/explain/explaining.h"
#include "train/trainer.h"

static const KilnDataModuleOps *ops_of(const KilnInstance *datamodule)
{
    return kiln_instance_component(datamodule)->ops.datamodule;
}

/* A bag's axis is called "ids" (kiln/tools/bag_head.h). */
static bool is_bag(const KilnInstance *datamodule, const char *feature)
{
    const KilnDataModuleOps *ops = ops_of(datamodule);

    for (size_t i = 0; i < ops->n_features; i++)
        if (strcmp(ops->features[i].name, feature) == 0)
            return ops->features[i].axes != NULL && strcmp(ops->features[i].axes, "ids") == 0;
    return false;
}

/* The text of an id alone. */
static KilnStatus spell_id(const KilnInstance *datamodule, const KilnFeature *feature, int32_t id,
                           KilnText *ret, KilnError *err)
{
    const KilnDataModuleOps *ops = ops_of(datamodule);
    KilnStatus status = KILN_OK;

    if (ops->tokenizer != NULL && strcmp(feature->name, "tokens") == 0)
        status = kiln_tokenizer_spell_id(ops->tokenizer(datamodule), id, ret, err);
    else if (feature->id_names != NULL && id < feature->n_ids)
        kiln_text_append(ret, feature->id_names[id]);
    if (status >= 0 && ret->length == 0)
        kiln_text_printf(ret, "#%" PRId32, id);
    return status;
}

/* `spelt` has the texts of the first ids, each followed by a NUL; those of others are their
 * own. */
static KilnStatus set_texts(KilnExplaining *self, KilnAttribution *attribution,
                            const KilnText *spelt, KilnError *err)
{
    const KilnInstance *datamodule = self->variants->predictor->trainer->datamodule;
    const int64_t n = kiln_shape_count(&attribution->shape);
    const char **texts = kiln_arena_alloc(&self->arena, (size_t)n * sizeof(*texts));
    const int32_t *ids = attribution->input;
    KilnStatus status = KILN_OK;
    KilnText text = { 0 };
    size_t at = 0;

    for (int64_t i = 0; i < n && texts != NULL && status >= 0; i++) {
        kiln_text_clear(&text);
        if (at < spelt->length)
            kiln_text_append(&text, spelt->data + at);
        else
            status = spell_id(datamodule, attribution->feature, ids[i], &text, err);
        at += text.length + 1;
        if (status >= 0 && text.failed)
            status = kiln_error_nomem(err, 64);
        texts[i] = kiln_arena_strdup(&self->arena, text.data);
    }
    kiln_text_release(&text);
    attribution->texts = texts;
    if (status >= 0 && self->arena.failed)
        status = kiln_error_nomem(err, (size_t)n * sizeof(*texts));
    return status;
}

KilnStatus kiln_explaining_spell(KilnExplaining *self, const KilnRawSample *raw, KilnError *err)
{
    const KilnPreprocessor *preprocessor = &self->variants->predictor->preprocessor;
    const KilnFeature *features = self->variants->spec->features;
    KilnAttribution *list = (KilnAttribution *)self->result.list;
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < self->result.n && status >= 0; i++) {
        KilnText spelt = { 0 };

        if (list[i].feature->content != KILN_TOKENS || list[i].feature->dtype != KILN_I32)
            continue;
        status = kiln_preprocess_spell(preprocessor, raw, (size_t)(list[i].feature - features),
                                       &spelt, err);
        if (status >= 0)
            status = set_texts(self, &list[i], &spelt, err);
        list[i].is_bag = is_bag(preprocessor->datamodule, list[i].feature->name);
        kiln_text_release(&spelt);
    }
    return status;
}

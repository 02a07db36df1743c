/* What the features of a sample are: the contents, and the check of a sample's description. */
#include "kiln/data.h"

#include <string.h>

/* One content: the types and the numbers of axes that a sample of it may have. */
typedef struct Content {
    unsigned content;
    const char *name;
    const char *needs;
    bool f32, i32;
    int min_rank, max_rank;
} Content;

static const Content contents[] = {
    { KILN_IMAGE, "image", "f32 [height, width, channels]", true, false, 3, 3 },
    { KILN_TOKENS, "tokens", "i32 [time]", false, true, 1, 1 },
    { KILN_ROW, "row", "f32 or i32 [columns]", true, true, 1, 1 },
    { KILN_VECTOR, "vector", "f32 [features]", true, false, 1, 1 },
    { KILN_SEQUENCE, "sequence", "f32 [time, features]", true, false, 2, 2 },
    { KILN_MAP, "map", "f32 or i32 [height, width, channels]", true, true, 3, 3 },
    { KILN_LABEL, "label", "i32 or f32, one number or a list", true, true, 0, 1 },
    { KILN_TEXT, "text", "no type, no axes and no lengths", true, false, 0, 0 },
};

static const Content *find_content(unsigned content)
{
    for (size_t i = 0; i < KILN_COUNT(contents); i++)
        if (contents[i].content == content)
            return &contents[i];
    return NULL;
}

const char *kiln_content_name(unsigned content)
{
    const Content *found = find_content(content);

    return found != NULL ? found->name : NULL;
}

static bool fits(const Content *content, const KilnFeature *feature)
{
    return feature->shape.rank >= content->min_rank && feature->shape.rank <= content->max_rank &&
           ((content->f32 && feature->dtype == KILN_F32) ||
            (content->i32 && feature->dtype == KILN_I32)) &&
           !(feature->varies && content->content == KILN_TEXT);
}

KilnStatus kiln_feature_check(const KilnFeature *feature, KilnError *err)
{
    const Content *content = find_content(feature->content);
    char shape[KILN_SHAPE_TEXT];

    if (content == NULL)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "feature \"%s\" has no content: expected one of KILN_IMAGE, "
                              "KILN_TOKENS, ... (kiln/data.h), got %u",
                              feature->name, feature->content);
    if (!fits(content, feature))
        return kiln_error_set(
            err, KILN_E_SHAPE, "feature \"%s\" is %s %s, but its content %s needs %s",
            feature->name, kiln_dtype_name(feature->dtype),
            kiln_shape_text(&feature->shape, shape, sizeof(shape)), content->name, content->needs);
    return KILN_OK;
}

KilnStatus kiln_spec_check(const KilnDataSpec *spec, KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < spec->n_features && status >= 0; i++) {
        const KilnFeature *feature = &spec->features[i];

        status = kiln_feature_check(feature, err);
        if (status >= 0 && kiln_spec_feature(spec, feature->name) != feature)
            status = kiln_error_set(err, KILN_E_SHAPE, "two features are called \"%s\"",
                                    feature->name);
    }
    return status;
}

/* What the features of a sample are: the contents, and the check of a sample's description. */
#include "kiln/data.h"

#include <stdio.h>
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
    { KILN_SEQUENCE, "sequence", "f32 or i32 [time, features]", true, true, 2, 2 },
    { KILN_MAP, "map", "f32 or i32 [height, width, channels]", true, true, 3, 3 },
    { KILN_LABEL, "label", "i32 or f32: one number, a list, or one for each pixel", true, true, 0,
      2 },
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

static KilnStatus check_ids(const KilnFeature *feature, const char *what, int64_t n_ids,
                            const char *const *names, KilnError *err)
{
    if (n_ids < 0 || (n_ids > 0 && feature->dtype != KILN_I32))
        return kiln_error_set(err, KILN_E_SHAPE,
                              "%s has %lld ids and is %s: expected i32 where there are ids, and no "
                              "fewer than 0",
                              what, (long long)n_ids, kiln_dtype_name(feature->dtype));
    for (int64_t i = 0; names != NULL && i < n_ids; i++)
        if (names[i] == NULL)
            return kiln_error_set(err, KILN_E_SHAPE, "%s: id %lld has no name", what, (long long)i);
    return KILN_OK;
}

static KilnStatus check_columns(const KilnFeature *feature, KilnError *err)
{
    KilnStatus status = KILN_OK;
    char what[256];

    if (feature->columns != NULL && feature->content != KILN_ROW)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "feature \"%s\" has columns, but its content is %s: only a row has "
                              "columns",
                              feature->name, kiln_content_name(feature->content));
    for (int64_t i = 0; feature->columns != NULL && i < feature->shape.dim[0] && status >= 0; i++) {
        const KilnRowColumn *column = &feature->columns[i];

        snprintf(what, sizeof(what), "column \"%s\" of feature \"%s\"",
                 column->name != NULL ? column->name : "", feature->name);
        status = column->name != NULL
                     ? check_ids(feature, what, column->n_ids, column->id_names, err)
                     : kiln_error_set(err, KILN_E_SHAPE,
                                      "column %lld of feature \"%s\" has no name", (long long)i,
                                      feature->name);
    }
    return status;
}

KilnStatus kiln_feature_check(const KilnFeature *feature, KilnError *err)
{
    const Content *content = find_content(feature->content);
    char shape[KILN_SHAPE_TEXT], what[256];

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
    snprintf(what, sizeof(what), "feature \"%s\"", feature->name);
    KilnStatus status = check_ids(feature, what, feature->n_ids, feature->id_names, err);
    return status >= 0 ? check_columns(feature, err) : status;
}

/* Check that classes have names, and that the ids of "label", where it has some, are the classes.
 */
static KilnStatus check_classes(const KilnDataSpec *spec, KilnError *err)
{
    const KilnFeature *label = kiln_spec_label(spec);

    if (spec->n_classes > 0 && spec->class_names == NULL)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "the %lld classes of the data have no names: set class_names "
                              "(kiln_class_names_copy)",
                              (long long)spec->n_classes);
    if (label == NULL)
        return KILN_OK;
    if (label->n_ids != 0 && label->n_ids != spec->n_classes)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "feature \"label\" has %lld ids, but the data have %lld classes: "
                              "expected the same number, or no ids",
                              (long long)label->n_ids, (long long)spec->n_classes);
    for (int64_t i = 0; i < label->n_ids && label->id_names != NULL; i++)
        if (strcmp(label->id_names[i], spec->class_names[i]) != 0)
            return kiln_error_set(err, KILN_E_SHAPE,
                                  "feature \"label\": id %lld is called \"%s\", but the class is "
                                  "called \"%s\"",
                                  (long long)i, label->id_names[i], spec->class_names[i]);
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
    return status >= 0 ? check_classes(spec, err) : status;
}

/* Features of a datamodule in Python, as its first sample and its class describe them. */
#include "python/python_spec.h"

#include <string.h>

static unsigned content_of(const char *name)
{
    for (unsigned content = KILN_IMAGE; content <= KILN_TEXT; content *= 2)
        if (strcmp(kiln_content_name(content), name) == 0)
            return content;
    return 0;
}

static const char *copy_text(KilnArena *arena, const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return kiln_arena_strdup(arena, text != NULL ? text : "");
}

static KilnStatus set_feature(KilnArena *arena, const json_t *described, KilnFeature *feature,
                              KilnError *err)
{
    const json_t *shape = json_object_get(described, "shape");
    const char *content = json_string_value(json_object_get(described, "content"));
    const char *dtype = json_string_value(json_object_get(described, "dtype"));

    *feature = (KilnFeature) {
        .name = copy_text(arena, described, "name"),
        .content = content_of(content != NULL ? content : ""),
        .dtype = dtype != NULL && strcmp(dtype, "i32") == 0 ? KILN_I32 : KILN_F32,
        .shape.rank = (int)json_array_size(shape),
        .varies = json_is_true(json_object_get(described, "varies")),
        .pad = json_number_value(json_object_get(described, "pad")),
        .n_ids = json_integer_value(json_object_get(described, "ids")),
    };
    if (json_array_size(shape) > KILN_MAX_RANK)
        return kiln_error_set(err, KILN_E_SHAPE, "\"%s\" has %zu axes; expected at most %d",
                              feature->name, json_array_size(shape), KILN_MAX_RANK);
    for (int i = 0; i < feature->shape.rank; i++)
        feature->shape.dim[i] = json_integer_value(json_array_get(shape, (size_t)i));
    return KILN_OK;
}

KilnStatus kiln_python_set_spec(KilnDataSpec *spec, KilnArena *arena, const json_t *opened,
                                KilnError *err)
{
    const json_t *list = json_object_get(opened, "features");
    const json_t *classes = json_object_get(opened, "classes");
    const size_t n = json_array_size(list), n_classes = json_array_size(classes);
    const char **names = kiln_arena_alloc(arena, (n_classes + 1) * sizeof(*names));
    KilnStatus status = KILN_OK;

    KilnFeature *features = kiln_arena_alloc(arena, (n + 1) * sizeof(*features));
    for (size_t i = 0; names != NULL && i < n_classes; i++)
        names[i] = kiln_arena_strdup(arena, json_string_value(json_array_get(classes, i)));
    for (size_t i = 0; features != NULL && i < n && status >= 0; i++)
        status = set_feature(arena, json_array_get(list, i), &features[i], err);
    if (arena->failed)
        return kiln_error_nomem(err, n * sizeof(*features));
    *spec = (KilnDataSpec) { .features = features,
                             .n_features = n,
                             .n_classes = (int64_t)n_classes,
                             .class_names = n_classes > 0 ? names : NULL };
    return status >= 0 ? kiln_spec_check(spec, err) : status;
}

/* The data spec of a run as JSON in state.json: features, ids and classes. */
#include <string.h>

#include "base/json.h"
#include "train/checkpoint/checkpoint.h"

/* ---- Writing ------------------------------------------------------------------------ */

static json_t *names_json(const char *const *names, int64_t n)
{
    json_t *all = json_array();

    for (int64_t i = 0; i < n; i++)
        kiln_json_add(&all, kiln_json_text(names[i]));
    return all;
}

static void put_id_names(json_t **object, int64_t n, const char *const *names)
{
    if (names != NULL)
        kiln_json_put(object, "id_names", names_json(names, n));
}

static json_t *columns_json(const KilnFeature *feature)
{
    json_t *all = json_array();

    for (int64_t i = 0; i < feature->shape.dim[0]; i++) {
        const KilnRowColumn *column = &feature->columns[i];
        json_t *one = json_pack("{s:o, s:I}", "name", kiln_json_text(column->name), "ids",
                                (json_int_t)column->n_ids);

        put_id_names(&one, column->n_ids, column->id_names);
        kiln_json_add(&all, one);
    }
    return all;
}

static json_t *feature_json(const KilnFeature *feature)
{
    json_t *shape = json_array(), *ret;

    for (int axis = 0; axis < feature->shape.rank; axis++)
        kiln_json_add(&shape, json_integer(feature->shape.dim[axis]));
    ret = json_pack("{s:s, s:s, s:I, s:s, s:o, s:b, s:f}", "name", feature->name, "content",
                    kiln_content_name(feature->content), "ids", (json_int_t)feature->n_ids, "dtype",
                    kiln_dtype_name(feature->dtype), "shape", shape, "varies", (int)feature->varies,
                    "pad", feature->pad);
    put_id_names(&ret, feature->n_ids, feature->id_names);
    if (feature->columns != NULL)
        kiln_json_put(&ret, "columns", columns_json(feature));
    return ret;
}

json_t *kiln_data_spec_json(const KilnDataSpec *spec)
{
    json_t *features = json_array();

    for (size_t i = 0; i < spec->n_features; i++)
        kiln_json_add(&features, feature_json(&spec->features[i]));
    return json_pack("{s:o, s:o}", "features", features, "classes",
                     names_json(spec->class_names, spec->n_classes));
}

/* ---- Reading ------------------------------------------------------------------------ */

/* The texts of an array, after which NULL; NULL if it is invalid. */
static const char **read_names(const json_t *saved, KilnArena *arena)
{
    const size_t n = json_array_size(saved);
    const char **ret = kiln_arena_alloc(arena, (n + 1) * sizeof(*ret));

    for (size_t i = 0; i < n && ret != NULL; i++) {
        ret[i] = json_string_value(json_array_get(saved, i));
        if (ret[i] == NULL)
            return NULL;
    }
    return ret;
}

static bool read_ids(const json_t *saved, KilnArena *arena, int64_t *ret,
                     const char *const **ret_names)
{
    const json_t *names = json_object_get(saved, "id_names");

    *ret = json_integer_value(json_object_get(saved, "ids"));
    if (names == NULL)
        return *ret >= 0;
    *ret_names = read_names(names, arena);
    return *ret_names != NULL && json_array_size(names) == (size_t)*ret;
}

static bool read_columns(const json_t *saved, KilnArena *arena, KilnFeature *feature)
{
    const json_t *columns = json_object_get(saved, "columns");
    const size_t n = json_array_size(columns);
    KilnRowColumn *ret;

    if (columns == NULL)
        return true;
    ret = kiln_arena_alloc(arena, (n + 1) * sizeof(*ret));
    for (size_t i = 0; i < n && ret != NULL; i++) {
        const json_t *column = json_array_get(columns, i);

        ret[i].name = json_string_value(json_object_get(column, "name"));
        if (!read_ids(column, arena, &ret[i].n_ids, &ret[i].id_names))
            return false;
    }
    feature->columns = ret;
    return ret != NULL && feature->shape.rank == 1 && n == (size_t)feature->shape.dim[0];
}

static bool read_dtype(const char *name, KilnDType *ret)
{
    static const KilnDType all[] = { KILN_F32, KILN_I32, KILN_U8, KILN_I64, KILN_F64 };

    for (size_t i = 0; name != NULL && i < KILN_COUNT(all); i++)
        if (strcmp(kiln_dtype_name(all[i]), name) == 0) {
            *ret = all[i];
            return true;
        }
    return false;
}

/* Older checkpoints have no contents: their features were images, labels and vectors. */
static unsigned read_content(const json_t *saved, const KilnFeature *feature)
{
    const char *name = json_string_value(json_object_get(saved, "content"));

    for (unsigned bit = KILN_IMAGE; name != NULL && kiln_content_name(bit) != NULL; bit <<= 1)
        if (strcmp(kiln_content_name(bit), name) == 0)
            return bit;
    if (strcmp(feature->name, "label") == 0)
        return KILN_LABEL;
    return feature->shape.rank == 3 ? KILN_IMAGE : KILN_VECTOR;
}

static bool read_feature(const json_t *saved, KilnArena *arena, KilnFeature *feature)
{
    const json_t *shape = json_object_get(saved, "shape");

    feature->name = json_string_value(json_object_get(saved, "name"));
    feature->shape.rank = (int)json_array_size(shape);
    if (feature->name == NULL || json_array_size(shape) > KILN_MAX_RANK ||
        !read_dtype(json_string_value(json_object_get(saved, "dtype")), &feature->dtype))
        return false;
    feature->content = read_content(saved, feature);
    feature->varies = json_is_true(json_object_get(saved, "varies"));
    feature->pad = json_number_value(json_object_get(saved, "pad"));
    for (int axis = 0; axis < feature->shape.rank; axis++)
        feature->shape.dim[axis] = json_integer_value(json_array_get(shape, (size_t)axis));
    return kiln_shape_count(&feature->shape) >= 0 &&
           read_ids(saved, arena, &feature->n_ids, &feature->id_names) &&
           read_columns(saved, arena, feature);
}

bool kiln_data_spec_read(const json_t *saved, KilnArena *arena, KilnDataSpec *ret)
{
    const json_t *features = json_object_get(saved, "features");
    const json_t *classes = json_object_get(saved, "classes");
    KilnFeature *list = kiln_arena_alloc(arena, (json_array_size(features) + 1) * sizeof(*list));

    *ret = (KilnDataSpec) {
        .features = list,
        .n_features = json_array_size(features),
        .n_classes = (int64_t)json_array_size(classes),
        .class_names = read_names(classes, arena),
    };
    if (list == NULL || ret->class_names == NULL)
        return false;
    for (size_t i = 0; i < ret->n_features; i++)
        if (!read_feature(json_array_get(features, i), arena, &list[i]))
            return false;
    return true;
}

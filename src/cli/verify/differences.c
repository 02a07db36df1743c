/* Comparing checkpoints. */
#include "cli/verify/differences.h"

#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/system/file.h"
#include "base/json.h"
#include "config/yaml/yaml_reader.h"
#include "config/yaml/yaml_writer.h"
#include "tensor/safetensors.h"
#include "train/checkpoint/checkpoint.h"

static const size_t largest = (size_t)1 << 30;

void kiln_differences_add(KilnDifferences *found, const char *format, ...)
{
    char line[1024];
    va_list args;

    if (found->count++ >= found->most)
        return;
    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    kiln_text_printf(&found->text, "%s\n", line);
}

/* ---- Tensors --------------------------------------------------------------------------- */

/* All elements in a type that says everything of them. Owned by the caller. */
static KilnStatus read_tensor(const KilnSafetensors *file, const KilnStEntry *entry,
                              KilnDType *ret_dtype, void **ret, KilnError *err)
{
    const bool f64 = strcmp(entry->dtype, "F64") == 0;
    KilnDType dtype = KILN_F64;

    if (!f64 && !kiln_safetensors_dtype(entry, &dtype))
        return kiln_error_set(err, KILN_E_FORMAT, "%s has type %s, which kiln lacks", entry->name,
                              entry->dtype);
    void *data = malloc((size_t)kiln_shape_count(&entry->shape) * kiln_dtype_size(dtype) + 1);
    if (data == NULL)
        return kiln_error_nomem(err, (size_t)(entry->end - entry->begin));
    KilnStatus status = kiln_safetensors_read(file, entry, dtype, data, err);
    if (status < 0) {
        free(data);
        return status;
    }
    *ret_dtype = dtype;
    *ret = data;
    return KILN_OK;
}

static double element(const void *data, KilnDType dtype, int64_t i)
{
    switch (dtype) {
    case KILN_F32:
        return (double)((const float *)data)[i];
    case KILN_F64:
        return ((const double *)data)[i];
    case KILN_I32:
        return (double)((const int32_t *)data)[i];
    case KILN_I64:
        return (double)((const int64_t *)data)[i];
    default:
        return (double)((const uint8_t *)data)[i];
    }
}

static void compare_elements(const char *name, const void *a, const void *b, KilnDType dtype,
                             int64_t n, KilnDifferences *found)
{
    const size_t size = kiln_dtype_size(dtype);
    int64_t differ = 0, at = 0;
    double most = -1.0;

    if (memcmp(a, b, (size_t)n * size) == 0)
        return;
    for (int64_t i = 0; i < n; i++) {
        if (memcmp((const char *)a + (size_t)i * size, (const char *)b + (size_t)i * size, size) ==
            0)
            continue;
        const double gap = fabs(element(a, dtype, i) - element(b, dtype, i));
        if (differ++ == 0 || gap > most || isnan(gap)) {
            most = gap;
            at = i;
        }
    }
    kiln_differences_add(found,
                         "%s: %lld of %lld values differ, by %.3g at most (%.9g and %.9g at %lld)",
                         name, (long long)differ, (long long)n, most, element(a, dtype, at),
                         element(b, dtype, at), (long long)at);
}

static KilnStatus compare_tensor(const KilnSafetensors *const files[2], const KilnStEntry *a,
                                 const KilnStEntry *b, KilnDifferences *found, KilnError *err)
{
    char shapes[2][KILN_SHAPE_TEXT];
    void *data[2] = { NULL, NULL };
    KilnDType dtype = KILN_F32;

    if (!kiln_shape_equal(&a->shape, &b->shape) || strcmp(a->dtype, b->dtype) != 0) {
        kiln_differences_add(found, "%s: %s %s and %s %s", a->name, a->dtype,
                             kiln_shape_text(&a->shape, shapes[0], KILN_SHAPE_TEXT), b->dtype,
                             kiln_shape_text(&b->shape, shapes[1], KILN_SHAPE_TEXT));
        return KILN_OK;
    }
    KilnStatus status = read_tensor(files[0], a, &dtype, &data[0], err);
    if (status >= 0)
        status = read_tensor(files[1], b, &dtype, &data[1], err);
    if (status >= 0)
        compare_elements(a->name, data[0], data[1], dtype, kiln_shape_count(&a->shape), found);
    free(data[0]);
    free(data[1]);
    return status;
}

static KilnStatus compare_tensors(const char *a, const char *b, KilnDifferences *found,
                                  KilnError *err)
{
    KilnSafetensors *files[2] = { NULL, NULL };
    KilnStatus status = kiln_safetensors_open(a, &files[0], err);

    if (status >= 0)
        status = kiln_safetensors_open(b, &files[1], err);
    for (size_t i = 0; status >= 0 && i < kiln_safetensors_count(files[0]); i++) {
        const KilnStEntry *entry = kiln_safetensors_at(files[0], i);
        const KilnStEntry *other = kiln_safetensors_find(files[1], entry->name);

        if (other == NULL)
            kiln_differences_add(found, "%s: only in the first", entry->name);
        else
            status = compare_tensor((const KilnSafetensors *const *)files, entry, other, found,
                                    err);
    }
    for (size_t i = 0; status >= 0 && i < kiln_safetensors_count(files[1]); i++) {
        const KilnStEntry *entry = kiln_safetensors_at(files[1], i);

        if (kiln_safetensors_find(files[0], entry->name) == NULL)
            kiln_differences_add(found, "%s: only in the second", entry->name);
    }
    kiln_safetensors_close(files[0]);
    kiln_safetensors_close(files[1]);
    return status;
}

/* ---- state.json ------------------------------------------------------------------------ */

static const char *dump(const json_t *value, char **ret)
{
    *ret = kiln_json_dump(value, JSON_ENCODE_ANY | JSON_COMPACT);
    return *ret != NULL ? *ret : "absent";
}

/* Checksums differ wherever files do. */
static bool says_nothing(const char *key)
{
    return strcmp(key, "files") == 0 || strcmp(key, "tensors") == 0 || strcmp(key, "xxh3") == 0;
}

static void compare_json(const char *key, const json_t *a, const json_t *b, KilnDifferences *found)
{
    const json_t *member;
    const char *name;
    char *texts[2];

    if (a != NULL && b != NULL && json_equal((json_t *)a, (json_t *)b))
        return;
    if (json_is_object(a) && json_is_object(b)) {
        json_object_foreach((json_t *)a, name, member)
        {
            KilnText path = { 0 };

            kiln_text_printf(&path, "%s%s%s", key, *key != '\0' ? "." : "", name);
            if (!path.failed && !says_nothing(name))
                compare_json(path.data, member, json_object_get(b, name), found);
            kiln_text_release(&path);
        }
        json_object_foreach((json_t *)b, name, member)
        {
            if (json_object_get(a, name) == NULL && !says_nothing(name))
                kiln_differences_add(found, "state: %s%s%s: only in the second", key,
                                     *key != '\0' ? "." : "", name);
        }
        return;
    }
    kiln_differences_add(found, "state: %s: %s and %s", key, dump(a, &texts[0]),
                         dump(b, &texts[1]));
    free(texts[0]);
    free(texts[1]);
}

static KilnStatus compare_states(const char *a, const char *b, KilnDifferences *found,
                                 KilnError *err)
{
    json_t *first = NULL, *second = NULL;
    KilnStatus status = kiln_json_read(a, &first, err);

    if (status >= 0)
        status = kiln_json_read(b, &second, err);
    if (status >= 0)
        compare_json("", first, second, found);
    json_decref(first);
    json_decref(second);
    return status;
}

/* ---- config.yaml ----------------------------------------------------------------------- */

static KilnStatus read_yaml(KilnArena *arena, const char *path, KilnConfigNode **ret,
                            KilnError *err)
{
    KilnMaker maker = { .arena = arena, .origin = { .source = kiln_arena_strdup(arena, path) } };
    char *text = NULL;
    size_t size = 0;
    KilnStatus status = kiln_file_read(path, KILN_YAML_BYTES, &text, &size, err);

    if (status >= 0)
        status = kiln_yaml_read(&maker, text, size, false, ret, err);
    free(text);
    return status;
}

/* In one line; "absent" for NULL. */
static void put_node(KilnText *text, const KilnConfigNode *node)
{
    if (node == NULL)
        kiln_text_append(text, "absent");
    else if (node->kind == KILN_NODE_SCALAR)
        kiln_text_append(text, node->text);
    else
        kiln_text_printf(text, "%s of %zu", node->kind == KILN_NODE_MAP ? "a mapping" : "a list",
                         node->count);
}

static bool is_same_leaf(const KilnConfigNode *a, const KilnConfigNode *b)
{
    return a != NULL && b != NULL && a->kind == KILN_NODE_SCALAR && b->kind == KILN_NODE_SCALAR &&
           strcmp(a->text, b->text) == 0 && a->quoted == b->quoted;
}

static const KilnConfigNode *child(const KilnConfigNode *node, const KilnEntry *entry, size_t i)
{
    if (node->kind == KILN_NODE_MAP)
        return kiln_node_get(node, entry->key);
    return i < node->count ? node->entries[i].value : NULL;
}

static void compare_nodes(const char *key, const KilnConfigNode *a, const KilnConfigNode *b,
                          KilnDifferences *found)
{
    const bool deep = a != NULL && b != NULL && a->kind == b->kind && a->kind != KILN_NODE_SCALAR;
    KilnText text = { 0 };

    if (is_same_leaf(a, b))
        return;
    if (!deep) {
        kiln_text_printf(&text, "config: %s: ", key);
        put_node(&text, a);
        kiln_text_append(&text, " and ");
        put_node(&text, b);
        kiln_differences_add(found, "%s", text.failed ? key : text.data);
    }
    for (int side = 0; deep && side < 2; side++) {
        const KilnConfigNode *of = side == 0 ? a : b, *other = side == 0 ? b : a;

        for (size_t i = 0; i < of->count; i++) {
            const KilnEntry *entry = &of->entries[i];
            const KilnConfigNode *twin = child(other, entry, i);

            kiln_text_clear(&text);
            if (of->kind == KILN_NODE_MAP)
                kiln_text_printf(&text, "%s%s%s", key, *key != '\0' ? "." : "", entry->key);
            else
                kiln_text_printf(&text, "%s[%zu]", key, i);
            if (!text.failed && (side == 0 || twin == NULL))
                compare_nodes(text.data, side == 0 ? entry->value : NULL,
                              side == 0 ? twin : entry->value, found);
        }
    }
    kiln_text_release(&text);
}

static KilnStatus compare_configs(const char *a, const char *b, KilnDifferences *found,
                                  KilnError *err)
{
    KilnConfigNode *first = NULL, *second = NULL;
    KilnArena arena = { 0 };
    KilnStatus status = read_yaml(&arena, a, &first, err);

    if (status >= 0)
        status = read_yaml(&arena, b, &second, err);
    if (status >= 0)
        compare_nodes("", first, second, found);
    if (err != NULL)
        err->origin = (KilnOrigin) { 0 }; /* it ends with the arena */
    kiln_arena_release(&arena);
    return status;
}

/* ---- Folders ----------------------------------------------------------------------------- */

static KilnStatus compare_bytes(const char *name, const char *a, const char *b,
                                KilnDifferences *found, KilnError *err)
{
    char *texts[2] = { NULL, NULL };
    size_t sizes[2] = { 0, 0 };
    KilnStatus status = kiln_file_read(a, largest, &texts[0], &sizes[0], err);

    if (status >= 0)
        status = kiln_file_read(b, largest, &texts[1], &sizes[1], err);
    if (status >= 0 && (sizes[0] != sizes[1] || memcmp(texts[0], texts[1], sizes[0]) != 0))
        kiln_differences_add(found, "%s: the bytes differ", name);
    free(texts[0]);
    free(texts[1]);
    return status;
}

/* A file by what it is; what is found says more than that the bytes differ, but not all: the
 * order of members, say. */
static KilnStatus compare_file(const char *name, const char *a, const char *b,
                               KilnDifferences *found, KilnError *err)
{
    const size_t before = found->count;
    KilnStatus status = KILN_OK;

    if (kiln_ends_with(name, ".safetensors"))
        status = compare_tensors(a, b, found, err);
    else if (strcmp(name, KILN_CHECKPOINT_STATE) == 0)
        status = compare_states(a, b, found, err);
    else if (strcmp(name, KILN_CHECKPOINT_CONFIG) == 0)
        status = compare_configs(a, b, found, err);
    if (status >= 0 && found->count == before && strcmp(name, KILN_CHECKPOINT_STATE) != 0)
        status = compare_bytes(name, a, b, found, err);
    return status;
}

/* The weights come first: they are what people want to know of. */
static int by_weight(const void *a, const void *b)
{
    const char *const *x = a, *const *y = b;
    const int model = (strcmp(*y, KILN_CHECKPOINT_MODEL) == 0) -
                      (strcmp(*x, KILN_CHECKPOINT_MODEL) == 0);

    return model != 0 ? model : -strcmp(*x, *y);
}

static KilnStatus compare_all(const char *a, const char *b, char **names, size_t n, bool whole,
                              KilnDifferences *found, KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < n && status >= 0; i++) {
        char *paths[2] = { kiln_path_join(a, names[i]), kiln_path_join(b, names[i]) };

        if (paths[0] == NULL || paths[1] == NULL)
            status = kiln_error_nomem(err, strlen(names[i]));
        else if (!kiln_is_file(paths[1]))
            kiln_differences_add(found, "%s: only in the %s", names[i], whole ? "first" : "second");
        else if (whole)
            status = compare_file(names[i], paths[0], paths[1], found, err);
        free(paths[0]);
        free(paths[1]);
    }
    return status;
}

KilnStatus kiln_differences_checkpoints(const char *a, const char *b, KilnDifferences *found,
                                        KilnError *err)
{
    char **names[2] = { NULL, NULL };
    size_t n[2] = { 0, 0 };
    KilnStatus status = kiln_dir_list(a, &names[0], &n[0], err);

    if (status >= 0)
        status = kiln_dir_list(b, &names[1], &n[1], err);
    if (status >= 0) {
        qsort(names[0], n[0], sizeof(*names[0]), by_weight);
        status = compare_all(a, b, names[0], n[0], true, found, err);
    }
    if (status >= 0)
        status = compare_all(b, a, names[1], n[1], false, found, err);
    kiln_names_free(names[0], n[0]);
    kiln_names_free(names[1], n[1]);
    return status;
}

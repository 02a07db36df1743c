/* Compares two folders: checkpoints, or all checkpoints of two runs. */
#include "cli/verify/differences.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/file.h"
#include "config/yaml/yaml_reader.h"
#include "tensor/safetensors.h"
#include "train/checkpoint/checkpoint.h"

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

/* Read a tensor in a type that holds all its values exactly. Owned by the caller. */
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

static void compare_elements(const char *where, const char *name, const void *a, const void *b,
                             KilnDType dtype, int64_t n, KilnDifferences *found)
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
    kiln_differences_add(
        found, "%s%s: %lld of %lld values differ, by %.3g at most (%.9g and %.9g at %lld)", where,
        name, (long long)differ, (long long)n, most, element(a, dtype, at), element(b, dtype, at),
        (long long)at);
}

static KilnStatus compare_tensor(const char *where, const KilnSafetensors *const files[2],
                                 const KilnStEntry *a, const KilnStEntry *b, KilnDifferences *found,
                                 KilnError *err)
{
    char shapes[2][KILN_SHAPE_TEXT];
    void *data[2] = { NULL, NULL };
    KilnDType dtype = KILN_F32;

    if (!kiln_shape_equal(&a->shape, &b->shape) || strcmp(a->dtype, b->dtype) != 0) {
        kiln_differences_add(found, "%s%s: %s %s and %s %s", where, a->name, a->dtype,
                             kiln_shape_text(&a->shape, shapes[0], KILN_SHAPE_TEXT), b->dtype,
                             kiln_shape_text(&b->shape, shapes[1], KILN_SHAPE_TEXT));
        return KILN_OK;
    }
    KilnStatus status = read_tensor(files[0], a, &dtype, &data[0], err);
    if (status >= 0)
        status = read_tensor(files[1], b, &dtype, &data[1], err);
    if (status >= 0)
        compare_elements(where, a->name, data[0], data[1], dtype, kiln_shape_count(&a->shape),
                         found);
    free(data[0]);
    free(data[1]);
    return status;
}

static KilnStatus compare_tensors(const char *where, const char *const paths[2],
                                  KilnDifferences *found, KilnError *err)
{
    KilnSafetensors *files[2] = { NULL, NULL };
    KilnStatus status = kiln_safetensors_open(paths[0], &files[0], err);

    if (status >= 0)
        status = kiln_safetensors_open(paths[1], &files[1], err);
    for (int side = 0; side < 2 && status >= 0; side++)
        for (size_t i = 0; status >= 0 && i < kiln_safetensors_count(files[side]); i++) {
            const KilnStEntry *entry = kiln_safetensors_at(files[side], i);
            const KilnStEntry *other = kiln_safetensors_find(files[1 - side], entry->name);

            if (other == NULL)
                kiln_differences_add(found, "%s%s: only in the %s", where, entry->name,
                                     found->sides[side]);
            else if (side == 0)
                status = compare_tensor(where, (const KilnSafetensors *const *)files, entry, other,
                                        found, err);
        }
    kiln_safetensors_close(files[0]);
    kiln_safetensors_close(files[1]);
    return status;
}

/* ---- config.yaml and state.json ---------------------------------------------------------- */

/* Append a value on one line; "absent" for NULL. */
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

/* The checksums in state.json differ wherever files do. */
static bool is_checksum(const KilnEntry *entry)
{
    return entry->key != NULL &&
           (strcmp(entry->key, "files") == 0 || strcmp(entry->key, "tensors") == 0 ||
            strcmp(entry->key, "xxh3") == 0);
}

/* `where` is the text before the key: "config: ". */
static void compare_nodes(const char *where, const char *key, const KilnConfigNode *a,
                          const KilnConfigNode *b, bool is_state, KilnDifferences *found)
{
    const bool deep = a != NULL && b != NULL && a->kind == b->kind && a->kind != KILN_NODE_SCALAR;
    KilnText text = { 0 };

    if (is_same_leaf(a, b))
        return;
    if (!deep) {
        kiln_text_printf(&text, "%s%s: ", where, key);
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
            if (!text.failed && (side == 0 || twin == NULL) && !(is_state && is_checksum(entry)))
                compare_nodes(where, text.data, side == 0 ? entry->value : NULL,
                              side == 0 ? twin : entry->value, is_state, found);
        }
    }
    kiln_text_release(&text);
}

/* JSON is YAML, too. */
static KilnStatus compare_trees(const char *where, const char *const paths[2], bool is_state,
                                KilnDifferences *found, KilnError *err)
{
    KilnConfigNode *roots[2] = { NULL, NULL };
    KilnArena arena = { 0 };
    KilnText prefix = { 0 };
    KilnStatus status = kiln_yaml_read_file(&arena, paths[0], &roots[0], err);

    kiln_text_printf(&prefix, "%s%s: ", where, is_state ? "state" : "config");
    if (status >= 0 && prefix.failed)
        status = kiln_error_nomem(err, 1);
    if (status >= 0)
        status = kiln_yaml_read_file(&arena, paths[1], &roots[1], err);
    if (status >= 0)
        compare_nodes(prefix.data, "", roots[0], roots[1], is_state, found);
    if (err != NULL)
        err->origin = (KilnOrigin) { 0 }; /* it ends with the arena */
    kiln_text_release(&prefix);
    kiln_arena_release(&arena);
    return status;
}

/* ---- Files and folders --------------------------------------------------------------------- */

static KilnStatus compare_bytes(const char *where, const char *const paths[2],
                                KilnDifferences *found, KilnError *err)
{
    static const size_t largest = (size_t)1 << 30;
    char *texts[2] = { NULL, NULL };
    size_t sizes[2] = { 0, 0 };
    KilnStatus status = kiln_file_read(paths[0], largest, &texts[0], &sizes[0], err);

    if (status >= 0)
        status = kiln_file_read(paths[1], largest, &texts[1], &sizes[1], err);
    if (status >= 0 && (sizes[0] != sizes[1] || memcmp(texts[0], texts[1], sizes[0]) != 0))
        kiln_differences_add(found, "%s: the bytes differ", where);
    free(texts[0]);
    free(texts[1]);
    return status;
}

/* Compare a file by its content, and by its bytes where that finds nothing. `where` is the text
 * before its differences, `path` its own name in messages. */
static KilnStatus compare_file(const char *where, const char *path, const char *const paths[2],
                               KilnDifferences *found, KilnError *err)
{
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    const bool is_state = strcmp(name, KILN_CHECKPOINT_STATE) == 0;
    const size_t before = found->count;
    KilnStatus status = KILN_OK;

    if (kiln_ends_with(name, ".safetensors"))
        status = compare_tensors(where, paths, found, err);
    else if (is_state || strcmp(name, KILN_CHECKPOINT_CONFIG) == 0)
        status = compare_trees(where, paths, is_state, found, err);
    if (status >= 0 && found->count == before && !is_state) /* the checksums in state.json differ */
        status = compare_bytes(path, paths, found, err);
    return status;
}

/* The weights come first: they are what people want to know. */
static int by_weight(const void *a, const void *b)
{
    const char *const *x = a, *const *y = b;
    const int model = (strcmp(*y, KILN_CHECKPOINT_MODEL) == 0) -
                      (strcmp(*x, KILN_CHECKPOINT_MODEL) == 0);

    return model != 0 ? model : -strcmp(*x, *y);
}

/* Compare the entry `name` of two folders. What both have is compared from side 0. */
static KilnStatus compare_entry(const char *where, const char *const folders[2], const char *name,
                                int side, KilnDifferences *found, KilnError *err)
{
    char *paths[2] = { kiln_path_join(folders[0], name), kiln_path_join(folders[1], name) };
    char targets[2][256];
    bool is_link = false;
    KilnText path = { 0 };
    KilnStatus status = KILN_OK;

    for (int i = 0; i < 2; i++)
        is_link |= paths[i] != NULL && kiln_link_read(paths[i], targets[i], sizeof(targets[i]));
    kiln_text_printf(&path, "%s%s", where, name);
    if (paths[0] == NULL || paths[1] == NULL || path.failed) {
        status = kiln_error_nomem(err, strlen(name));
    } else if (is_link) {
        if (strcmp(targets[0], targets[1]) != 0 && (side == 0 || *targets[0] == '\0'))
            kiln_differences_add(found, "%s: points to \"%s\" and \"%s\"", path.data, targets[0],
                                 targets[1]);
    } else if (kiln_is_dir(paths[0]) && kiln_is_dir(paths[1])) {
        kiln_text_append(&path, ": ");
        if (side == 0 && path.failed)
            status = kiln_error_nomem(err, 1);
        else if (side == 0)
            status = kiln_differences_folders(path.data, paths[0], paths[1], found, err);
    } else if (!kiln_is_file(paths[1 - side])) {
        kiln_differences_add(found, "%s: only in the %s", path.data, found->sides[side]);
    } else if (side == 0) {
        status = compare_file(where, path.data, (const char *const *)paths, found, err);
    }
    free(paths[0]);
    free(paths[1]);
    kiln_text_release(&path);
    return status;
}

KilnStatus kiln_differences_folders(const char *where, const char *a, const char *b,
                                    KilnDifferences *found, KilnError *err)
{
    const char *const folders[2] = { a, b };
    KilnStatus status = KILN_OK;

    for (int side = 0; side < 2 && status >= 0; side++) {
        char **names = NULL;
        size_t n = 0;

        status = kiln_dir_list(folders[side], &names, &n, err);
        if (status >= 0 && n > 0)
            qsort(names, n, sizeof(*names), by_weight);
        for (size_t i = 0; i < n && status >= 0; i++)
            status = compare_entry(where, folders, names[i], side, found, err);
        kiln_names_free(names, n);
    }
    return status;
}

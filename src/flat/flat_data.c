/* Collects features and arrays of callers that know no structs: kiln/flat/data.h. */
#include "flat/flat_data.h"

#include <stdlib.h>
#include <string.h>

KilnFlatData *kiln_flat_data_new(void)
{
    KilnFlatData *data = calloc(1, sizeof(*data));

    if (data == NULL)
        return NULL;
    data->memory.spec.features = data->features;
    for (int split = 0; split < KILN_SPLIT_COUNT; split++)
        data->memory.sets[split].arrays = data->arrays[split];
    return data;
}

void kiln_flat_data_free(KilnFlatData *data)
{
    if (data != NULL)
        kiln_arena_release(&data->arena);
    free(data);
}

KilnStatus kiln_flat_split(const char *name, KilnSplit *ret, KilnError *err)
{
    for (int split = 0; split < KILN_SPLIT_COUNT; split++)
        if (strcmp(kiln_split_name((KilnSplit)split), name) == 0) {
            *ret = (KilnSplit)split;
            return KILN_OK;
        }
    return kiln_error_set(err, KILN_E_KEY, "there is no split \"%s\"; expected train, val or test",
                          name);
}

static KilnStatus find_content(const char *name, unsigned *ret, KilnError *err)
{
    for (unsigned content = KILN_IMAGE; content <= KILN_TEXT; content <<= 1)
        if (strcmp(kiln_content_name(content), name) == 0) {
            *ret = content;
            return KILN_OK;
        }
    return kiln_error_set(err, KILN_E_KEY,
                          "there is no content \"%s\"; expected image, tokens, row, vector, "
                          "sequence, map, label or text",
                          name);
}

KilnStatus kiln_flat_data_feature(KilnFlatData *data, const char *name, const char *content,
                                  int dtype, int rank, const int64_t *dims, bool varies,
                                  int64_t n_ids, KilnError *err)
{
    KilnDataSpec *spec = &data->memory.spec;
    KilnFeature feature = { .name = kiln_arena_strdup(&data->arena, name),
                            .dtype = (KilnDType)dtype,
                            .varies = varies,
                            .n_ids = n_ids };

    if (spec->n_features == KILN_FLAT_FEATURES)
        return kiln_error_set(err, KILN_E_RANGE, "%s: a sample has at most %d features", name,
                              KILN_FLAT_FEATURES);
    if (rank < 0 || rank > KILN_MAX_RANK)
        return kiln_error_set(err, KILN_E_SHAPE, "%s: expected at most %d axes, got %d", name,
                              KILN_MAX_RANK, rank);
    feature.shape.rank = rank;
    for (int i = 0; i < rank; i++)
        feature.shape.dim[i] = dims[i];
    KilnStatus status = find_content(content, &feature.content, err);
    if (status >= 0)
        status = kiln_feature_check(&feature, err);
    if (status >= 0 && feature.name == NULL)
        status = kiln_error_nomem(err, strlen(name));
    if (status >= 0)
        data->features[spec->n_features++] = feature;
    return status;
}

KilnStatus kiln_flat_data_classes(KilnFlatData *data, const char *const *names, int64_t n,
                                  KilnError *err)
{
    const char **copy = kiln_arena_alloc(&data->arena, ((size_t)n + 1) * sizeof(*copy));

    for (int64_t i = 0; i < n && copy != NULL; i++)
        copy[i] = kiln_arena_strdup(&data->arena, names[i]);
    if (data->arena.failed)
        return kiln_error_nomem(err, (size_t)n * sizeof(*copy));
    data->memory.spec.n_classes = n;
    data->memory.spec.class_names = copy;
    return KILN_OK;
}

KilnStatus kiln_flat_data_samples(KilnFlatData *data, const char *split, int64_t n, KilnError *err)
{
    KilnSplit which = KILN_TRAIN;
    KilnStatus status = kiln_flat_split(split, &which, err);

    if (status >= 0)
        data->memory.sets[which].n = n;
    return status;
}

KilnStatus kiln_flat_data_array(KilnFlatData *data, const char *split, const char *name, int dtype,
                                const void *values, const int64_t *lengths, KilnError *err)
{
    KilnSplit which = KILN_TRAIN;
    KilnStatus status = kiln_flat_split(split, &which, err);

    if (status < 0)
        return status;
    KilnArraySet *set = &data->memory.sets[which];
    const KilnFeature *feature = kiln_spec_feature(&data->memory.spec, name);
    if (feature == NULL || set->n_arrays == KILN_FLAT_FEATURES)
        return kiln_error_set(err, KILN_E_KEY,
                              "array \"%s\" of the %s set: no feature has this name", name, split);
    data->arrays[which][set->n_arrays++] = (KilnArray) {
        .name = feature->name, .dtype = (KilnDType)dtype, .data = values, .lengths = lengths
    };
    return KILN_OK;
}

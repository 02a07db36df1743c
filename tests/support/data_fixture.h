/* For tests of datamodules and transforms: components built from options in
 * YAML, in a scratch folder that is removed at the end. */
#ifndef TESTS_DATA_FIXTURE_H
#define TESTS_DATA_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/file.h"
#include "kiln.h"

/* A component on its own, and what it needs to live. */
typedef struct Built {
    KilnRegistry *registry;
    KilnConfig *config;
    KilnInstance *instance;
} Built;

static char fixture_root[] = "/tmp/kiln-test-data-XXXXXX";

static int fixture_begin(void **unused)
{
    (void)unused;
    return mkdtemp(fixture_root) == NULL;
}

static int fixture_end(void **unused)
{
    (void)unused;
    return kiln_path_remove(fixture_root, NULL) < 0;
}

/* A path below the scratch folder, one of four buffers in turn. */
static inline const char *fixture_path(const char *name)
{
    static char paths[4][512];
    static unsigned next;
    char *path = paths[next++ % 4];

    snprintf(path, sizeof(paths[0]), "%s/%s", fixture_root, name);
    return path;
}

/* A file below the scratch folder, with the folders that it is in. */
static inline void fixture_put(const char *name, const void *data, size_t size)
{
    char path[512];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", fixture_root, name);
    *strrchr(path, '/') = '\0';
    assert_int_equal(kiln_dir_make(path, NULL), KILN_OK);
    file = fopen(fixture_path(name), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static inline void built_free(Built *built)
{
    kiln_instance_free(built->instance);
    kiln_config_free(built->config);
    kiln_registry_free(built->registry);
    *built = (Built) { 0 };
}

/* Build "{ _target_: KIND/NAME, OPTIONS }". On failure nothing is left to free. */
static inline KilnStatus build(KilnKind kind, const char *name, const char *options, Built *ret,
                               KilnError *err)
{
    char yaml[1024];
    KilnErrors *errors = NULL;
    KilnStatus status;

    *ret = (Built) { 0 };
    snprintf(yaml, sizeof(yaml), "it: { _target_: %s/%s%s%s }\n", kiln_kind_name(kind), name,
             options[0] != '\0' ? ", " : "", options);
    fixture_put("config.yaml", yaml, strlen(yaml));
    KilnComposeRequest request = { .config_path = fixture_root };
    assert_int_equal(kiln_errors_new(&errors), KILN_OK);
    assert_int_equal(kiln_registry_new(&ret->registry, NULL), KILN_OK);
    request.registry = ret->registry;
    status = kiln_compose(&request, &ret->config, errors);
    if (status >= 0)
        status = kiln_config_check(ret->config, ret->registry, errors);
    if (status < 0)
        kiln_error_set(err, status, "%s", kiln_errors_text(errors, 0));
    else
        status = kiln_config_build(ret->config, "it", ret->registry, kind, &ret->instance, err);
    kiln_errors_free(errors);
    if (status < 0)
        built_free(ret);
    return status;
}

/* Build a datamodule and set it up. On failure nothing is left to free. */
static inline KilnStatus open_data(const char *name, const char *options,
                                   const KilnDataContext *context, Built *ret, KilnError *err)
{
    KilnStatus status = build(KILN_KIND_DATAMODULE, name, options, ret, err);

    if (status >= 0)
        status = kiln_instance_component(ret->instance)
                     ->ops.datamodule->setup(ret->instance, context, err);
    if (status < 0)
        built_free(ret);
    return status;
}

static inline const KilnDataModuleOps *data_ops(const Built *built)
{
    return kiln_instance_component(built->instance)->ops.datamodule;
}

/* The dataset of a split; a failure fails the test. */
static inline KilnDataset open_split(const Built *built, KilnSplit split)
{
    KilnDataset dataset = { 0 };
    KilnError err = { 0 };

    if (data_ops(built)->dataset(built->instance, split, 0, &dataset, &err) < 0)
        fail_msg("%s: %s", kiln_split_name(split), err.text);
    return dataset;
}

/* One sample with an image of `floats` floats; the stream is that of `epoch`. */
static inline KilnStatus get_sample(const KilnDataset *dataset, int64_t index, uint32_t epoch,
                                    float *image, int32_t *label, KilnError *err)
{
    KilnSample sample = { .data = { image, label } };
    KilnRng rng;

    kiln_rng_init(&rng, 1, KILN_RNG_AUGMENT, epoch, (uint64_t)index);
    return dataset->get(dataset->ctx, index, &rng, &sample, err);
}

#endif

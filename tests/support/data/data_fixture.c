#include "tests/support/data/data_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/file.h"

static char fixture_root[] = "/tmp/kiln-test-data-XXXXXX";

int fixture_begin(void **unused)
{
    (void)unused;
    return mkdtemp(fixture_root) == NULL;
}

int fixture_end(void **unused)
{
    (void)unused;
    return kiln_path_remove(fixture_root, NULL) < 0;
}

const char *fixture_path(const char *name)
{
    static char paths[4][512];
    static unsigned next;
    char *path = paths[next++ % 4];

    snprintf(path, sizeof(paths[0]), "%s/%s", fixture_root, name);
    return path;
}

void fixture_put(const char *name, const void *data, size_t size)
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

KilnStatus build_yaml(Built *ret, KilnKind kind, const char *name, const char *options,
                      KilnError *err)
{
    char yaml[1024];

    snprintf(yaml, sizeof(yaml), "it: { _target_: %s/%s%s%s }\n", kiln_kind_name(kind), name,
             options[0] != '\0' ? ", " : "", options);
    fixture_put("config.yaml", yaml, strlen(yaml));
    return build_request(ret, kind, (KilnComposeRequest) { .config_path = fixture_root }, err);
}

KilnStatus open_data(const char *name, const char *options, const KilnDataContext *context,
                     Built *ret, KilnError *err)
{
    KilnStatus status = build_yaml(ret, KILN_KIND_DATAMODULE, name, options, err);

    if (status >= 0)
        status = kiln_instance_component(ret->instance)
                     ->ops.datamodule->setup(ret->instance, context, err);
    if (status < 0)
        built_free(ret);
    return status;
}

const KilnDataModuleOps *data_ops(const Built *built)
{
    return kiln_instance_component(built->instance)->ops.datamodule;
}

KilnDataset open_split(const Built *built, KilnSplit split)
{
    KilnDataset dataset = { 0 };
    KilnError err = { 0 };

    if (data_ops(built)->dataset(built->instance, split, 0, &dataset, &err) < 0)
        fail_msg("%s: %s", kiln_split_name(split), err.text);
    return dataset;
}

KilnStatus get_sample(const KilnDataset *dataset, int64_t index, uint32_t epoch, float *image,
                      int32_t *label, KilnError *err)
{
    void *data[] = { image, label };
    int64_t lengths[2] = { 0 };
    KilnSample sample = { .data = data, .lengths = lengths };
    KilnRng rng;

    kiln_rng_init(&rng, 1, KILN_RNG_AUGMENT, epoch, (uint64_t)index);
    return dataset->get(dataset->ctx, index, &rng, &sample, err);
}

/* A scratch folder for a test, and datamodules that are built and set up from options in YAML. */
#ifndef KILN_TESTS_SUPPORT_DATA_FIXTURE_H
#define KILN_TESTS_SUPPORT_DATA_FIXTURE_H

#include "kiln_embed.h"
#include "tests/support/components/built_component.h"

int fixture_begin(void **unused);

int fixture_end(void **unused);

/* A path below the scratch folder, one of four buffers in turn. */
const char *fixture_path(const char *name);

/* A file below the scratch folder, with the folders that it is in. */
void fixture_put(const char *name, const void *data, size_t size);

/* Build "{ _target_: KIND/NAME, OPTIONS }". On failure nothing is left to free. */
KilnStatus build_yaml(Built *ret, KilnKind kind, const char *name, const char *options,
                      KilnError *err);

/* Build a datamodule and set it up. On failure nothing is left to free. */
KilnStatus open_data(const char *name, const char *options, const KilnDataContext *context,
                     Built *ret, KilnError *err);

const KilnDataModuleOps *data_ops(const Built *built);

/* The dataset of a split; a failure fails the test. */
KilnDataset open_split(const Built *built, KilnSplit split);

/* One sample with an image of `floats` floats; the stream is that of `epoch`. */
KilnStatus get_sample(const KilnDataset *dataset, int64_t index, uint32_t epoch, float *image,
                      int32_t *label, KilnError *err);

#endif

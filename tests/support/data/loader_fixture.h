/* Loaders for tests: each opens with a sampler and fails the test if it can't. */
#ifndef KILN_TESTS_SUPPORT_LOADER_FIXTURE_H
#define KILN_TESTS_SUPPORT_LOADER_FIXTURE_H

#include "tests/support/data/data_fixture.h"
#include "train/loader/loader.h"

/* The sampler "shuffle", between begin and end. */
extern Built loader_shuffle;

int loader_fixture_begin(void **state);
int loader_fixture_end(void **state);

/* build_yaml; a failure fails the test. */
Built build_yaml_or_fail(KilnKind kind, const char *name, const char *options);

KilnLoader *loader_open(const KilnLoaderSpec *spec);

/* The next batch; false at the end of the epoch. */
bool loader_take(KilnLoader *loader, KilnBatch *batch);

#endif

/* Composes one config.yaml in a folder of its own. */
#ifndef KILN_TESTS_SUPPORT_COMPOSE_SUPPORT_H
#define KILN_TESTS_SUPPORT_COMPOSE_SUPPORT_H

#include "registry/registry.h"

/* A folder for one test; removed by folder_remove. */
char *folder_make(void);

void folder_remove(char *folder);

/* Write folder/name. */
void file_put(const char *folder, const char *name, const char *text);

/* Compose `yaml` with `overrides`; *ret stays NULL on failure. */
KilnStatus compose_yaml(const char *yaml, const char *const *overrides,
                        const KilnRegistry *registry, const KilnSection *sections, KilnConfig **ret,
                        KilnErrors *errors);

/* All messages of a collection, one below the other; owned by the caller. */
char *errors_join(const KilnErrors *errors);

#endif

/* Builds one component from options. */
#ifndef KILN_TESTS_SUPPORT_BUILT_COMPONENT_H
#define KILN_TESTS_SUPPORT_BUILT_COMPONENT_H

#include "kiln_embed.h"
#include "tests/support/cmocka.h"

/* A component with its registry and config, which must outlive it. */
typedef struct Built {
    KilnRegistry *registry;
    KilnConfig *config;
    KilnInstance *instance;
} Built;

void built_free(Built *built);

/* Compose and check the request, and build its component at `it`. A failure leaves nothing to
 * free, and the first error in `err`. */
KilnStatus build_request(Built *ret, KilnKind kind, KilnComposeRequest request, KilnError *err);

/* The component at `it` of these overrides, NULL-terminated. */
KilnStatus build_overrides(Built *ret, KilnKind kind, const char *const *overrides, KilnError *err);

/* KIND/NAME with `key=value` words as options. */
KilnStatus build_words(Built *ret, KilnKind kind, const char *name, char *const *options, size_t n,
                       KilnError *err);

#endif

#include "tests/support/components/built_component.h"

#include <stdio.h>

void built_free(Built *built)
{
    kiln_instance_free(built->instance);
    kiln_config_free(built->config);
    kiln_registry_free(built->registry);
    *built = (Built) { 0 };
}

KilnStatus build_request(Built *ret, KilnKind kind, KilnComposeRequest request, KilnError *err)
{
    KilnErrors *errors = NULL;

    *ret = (Built) { 0 };
    assert_int_equal(kiln_errors_new(&errors), KILN_OK);
    assert_int_equal(kiln_registry_new(&ret->registry, NULL), KILN_OK);
    request.registry = ret->registry;
    KilnStatus status = kiln_compose(&request, &ret->config, errors);
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

KilnStatus build_overrides(Built *ret, KilnKind kind, const char *const *overrides, KilnError *err)
{
    return build_request(ret, kind,
                         (KilnComposeRequest) {
                             .config_path = "tests/data/models",
                             .config_name = "empty",
                             .overrides = overrides,
                         },
                         err);
}

KilnStatus build_words(Built *ret, KilnKind kind, const char *name, char *const *options, size_t n,
                       KilnError *err)
{
    char texts[16][128];
    const char *overrides[17];

    assert_true(n < 16);
    snprintf(texts[0], sizeof(texts[0]), "++it._target_=%s/%s", kiln_kind_name(kind), name);
    for (size_t i = 0; i < n; i++)
        snprintf(texts[i + 1], sizeof(texts[0]), "++it.%s", options[i]);
    for (size_t i = 0; i <= n; i++)
        overrides[i] = texts[i];
    overrides[n + 1] = NULL;
    return build_overrides(ret, kind, overrides, err);
}

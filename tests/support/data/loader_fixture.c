#include "tests/support/data/loader_fixture.h"

#include "tests/support/cmocka.h"

Built loader_shuffle;

Built build_yaml_or_fail(KilnKind kind, const char *name, const char *options)
{
    KilnError err = { 0 };
    Built built;

    if (build_yaml(&built, kind, name, options, &err) < 0)
        fail_msg("%s: %s", name, err.text);
    return built;
}

int loader_fixture_begin(void **state)
{
    if (fixture_begin(state) != 0)
        return -1;
    loader_shuffle = build_yaml_or_fail(KILN_KIND_SAMPLER, "shuffle", "");
    return 0;
}

int loader_fixture_end(void **state)
{
    built_free(&loader_shuffle);
    return fixture_end(state);
}

KilnLoader *loader_open(const KilnLoaderSpec *spec)
{
    KilnLoader *loader = NULL;
    KilnError err = { 0 };

    if (kiln_sampler_setup(spec, &err) < 0 || kiln_loader_new(spec, &loader, &err) < 0)
        fail_msg("%s", err.text);
    return loader;
}

bool loader_take(KilnLoader *loader, KilnBatch *batch)
{
    KilnError err = { 0 };

    if (kiln_loader_next(loader, batch, &err) < 0)
        fail_msg("%s", err.text);
    return batch->size > 0;
}

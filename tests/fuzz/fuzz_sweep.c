/* Fuzzes arguments of sweeps: what they are taken apart into can be parsed as arguments of single
 * runs. */
#include "tree.h"

#include "config/override/override.h"
#include "config/provenance/error_list.h"
#include "config/sweep/sweep_arguments.h"

enum { MOST_READ = 1000 };

static void read_axis(const KilnAxis *axis)
{
    fuzz_require(axis->key != NULL, "an axis without a key", "");
    for (size_t i = 0; i < axis->count && i < MOST_READ; i++) {
        KilnArena arena = { 0 };
        KilnOverride override = { 0 };
        KilnError err = { 0 };
        KilnStatus status = kiln_override_read(&arena, axis->overrides[i], 1, &override, &err);

        fuzz_require(status >= 0 && override.problem == NULL,
                     status >= 0 ? "the value is wrong" : err.text, axis->overrides[i]);
        fuzz_require(override.sweep == NULL, "still a sweep", axis->overrides[i]);
        kiln_arena_release(&arena);
    }
}

static void take_apart(const KilnComposeRequest *request, KilnErrors *errors)
{
    KilnSweepArguments arguments = { 0 };
    KilnConfig *config = NULL;
    KilnStatus status = kiln_config_compose_sweep(request, NULL, &config, errors);

    if (status >= 0)
        status = kiln_sweep_arguments(request, NULL, config, kiln_config_arena(config), &arguments,
                                      errors);
    fuzz_require(status >= 0 || kiln_errors_failures(errors) > 0, "refused without a word",
                 kiln_status_name(status));
    for (size_t i = 0; status >= 0 && i < arguments.space.count; i++)
        read_axis(arguments.space.axes[i]);
    kiln_config_free(config);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    KilnErrors *errors = NULL;
    FuzzTree tree;

    fuzz_tree_write(&tree, text);
    KilnComposeRequest request = { .config_path = tree.dir, .overrides = tree.arguments };
    if (kiln_errors_new(&errors) >= 0)
        take_apart(&request, errors);
    kiln_errors_free(errors);
    free(text);
    return 0;
}

/* A program that trains with kiln as a library: compose, check, fit.
 *
 *   cc embed.c -o embed $(pkg-config --cflags --libs kiln)
 *   cc embed.c -o embed $(pkg-config --static --cflags --libs kiln | sed 's/-lkiln/-l:libkiln.a/')
 *   ./embed model=mlp trainer.max_epochs=2 */
#include <stdio.h>

#include <kiln_embed.h>

static int report(const KilnErrors *errors)
{
    for (size_t i = 0; i < kiln_errors_count(errors); i++)
        fprintf(stderr, "embed: %s\n", kiln_errors_text(errors, i));
    return 1;
}

int main(int argc, char **argv)
{
    KilnRegistry *registry = NULL;
    KilnErrors *errors = NULL;
    KilnConfig *config = NULL;
    KilnRunResult result;
    KilnError err = { 0 };
    int status = 1;

    (void)argc;
    if (kiln_registry_new(&registry, &err) < 0 || kiln_errors_new(&errors) < 0) {
        fprintf(stderr, "embed: %s\n", err.text);
        return 1;
    }
    KilnComposeRequest request = {
        .overrides = (const char *const *)argv + 1,
        .registry = registry,
        .sections = kiln_run_sections(),
    };
    if (kiln_compose(&request, &config, errors) < 0 ||
        kiln_config_check(config, registry, errors) < 0) {
        status = report(errors);
    } else {
        KilnRunEnv env = { .registry = registry, .overrides = request.overrides };

        if (kiln_run_fit(config, &env, &result, &err) < 0) {
            fprintf(stderr, "embed: %s\n", err.text);
        } else {
            printf("%s: %s\n", result.status, result.run_dir);
            status = 0;
        }
    }
    kiln_config_free(config);
    kiln_errors_free(errors);
    kiln_registry_free(registry);
    return status;
}

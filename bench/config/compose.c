/* Times composing a config inside one process: compose, check, resolve and print.
 *
 *     compose CONFIG_PATH ROUNDS OVERRIDE...
 *
 * Prints the median microseconds of ROUNDS compositions with these overrides, and of ROUNDS with a
 * different `seed` each, as a sweep composes them ("-" as CONFIG_PATH: the built-in config). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kiln_embed.h"

static void compose(const KilnComposeRequest *request)
{
    KilnErrors *errors = NULL;
    KilnConfig *config = NULL;
    char *yaml = NULL;
    KilnError err = { 0 };
    KilnStatus status = kiln_errors_new(&errors);

    if (status >= 0)
        status = kiln_compose(request, &config, errors);
    if (status >= 0)
        status = kiln_config_check(config, request->registry, errors);
    if (status >= 0)
        status = kiln_config_yaml(config, NULL, true, &yaml, &err);
    if (status < 0) {
        fprintf(stderr, "compose: %s\n",
                kiln_errors_count(errors) > 0 ? kiln_errors_text(errors, 0) : err.text);
        exit(1);
    }
    free(yaml);
    kiln_config_free(config);
    kiln_errors_free(errors);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The median of `rounds` compositions; `last` is the varying override, or NULL. */
static double median(const KilnComposeRequest *request, int rounds, char *last, size_t size)
{
    double *times = calloc((size_t)rounds, sizeof(*times));

    if (times == NULL)
        exit(1);
    for (int i = 0; i < rounds; i++) {
        double start = kiln_clock();

        if (last != NULL)
            snprintf(last, size, "++seed=%d", i);
        compose(request);
        times[i] = kiln_clock() - start;
    }
    qsort(times, (size_t)rounds, sizeof(*times), compare);
    double result = times[rounds / 2] * 1e6;
    free(times);
    return result;
}

int main(int argc, char **argv)
{
    KilnComposeRequest request = { 0 };
    KilnRegistry *registry = NULL;
    int rounds = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 0;
    char last[32] = "++seed=0";

    if (rounds < 1 || kiln_registry_new(&registry, NULL) < 0) {
        fprintf(stderr, "usage: compose CONFIG_PATH ROUNDS OVERRIDE...\n");
        return 2;
    }
    const char **overrides = calloc((size_t)argc, sizeof(*overrides));
    if (overrides == NULL)
        return 1;
    for (int i = 3; i < argc; i++)
        overrides[i - 3] = argv[i];
    if (strcmp(argv[1], "-") == 0)
        request.sections = kiln_run_sections(); /* other configs need not be for training */
    else
        request.config_path = argv[1];
    request.overrides = overrides;
    request.registry = registry;
    double same = median(&request, rounds, NULL, 0);
    overrides[argc - 3] = last;
    double changing = median(&request, rounds, last, sizeof(last));
    printf("%.1f %.1f\n", same, changing);
    free(overrides);
    kiln_registry_free(registry);
    return 0;
}

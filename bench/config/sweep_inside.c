/* The baseline of bench/config/sweep.py: the same runs, one after the other in one process. Prints wall
 * seconds and processor seconds. */
#include <stdio.h>
#include <time.h>

#include "kiln_embed.h"

static double now(clockid_t clock)
{
    struct timespec at = { 0 };

    clock_gettime(clock, &at);
    return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

static KilnStatus run(const KilnRegistry *registry, const char *const *overrides, KilnError *err)
{
    KilnComposeRequest request = { .overrides = overrides,
                                   .registry = registry,
                                   .sections = kiln_run_sections() };
    KilnRunEnv env = { .registry = registry, .overrides = overrides };
    KilnErrors *errors = NULL;
    KilnConfig *config = NULL;
    KilnStatus status = kiln_errors_new(&errors);

    if (status >= 0)
        status = kiln_compose(&request, &config, errors);
    if (status >= 0)
        status = kiln_config_check(config, registry, errors);
    if (status >= 0)
        status = kiln_run_fit(config, &env, NULL, err);
    kiln_config_free(config);
    kiln_errors_free(errors);
    return status;
}

/* argv: number of runs, folder, overrides. */
int main(int argc, char **argv)
{
    enum { MOST = 32 };
    const char *overrides[MOST + 3] = { NULL };
    char seed[32], dir[4096];
    KilnRegistry *registry = NULL;
    KilnError err = { 0 };
    int runs = 0, n = 0;

    if (argc < 3 || argc - 3 > MOST || sscanf(argv[1], "%d", &runs) != 1)
        return 2;
    for (int i = 3; i < argc; i++)
        overrides[n++] = argv[i];
    overrides[n++] = seed;
    overrides[n++] = dir;
    if (kiln_registry_new(&registry, &err) < 0)
        return 1;
    double wall = now(CLOCK_MONOTONIC), cpu = now(CLOCK_PROCESS_CPUTIME_ID);
    for (int i = 1; i <= runs; i++) {
        snprintf(seed, sizeof(seed), "seed=%d", i);
        snprintf(dir, sizeof(dir), "kiln.run.dir=%s/%d", argv[2], i);
        if (run(registry, overrides, &err) < 0) {
            fprintf(stderr, "%s\n", err.text);
            return 1;
        }
    }
    printf("%.6f %.6f\n", now(CLOCK_MONOTONIC) - wall, now(CLOCK_PROCESS_CPUTIME_ID) - cpu);
    kiln_registry_free(registry);
    return 0;
}

/* Differential test: random graphs on the CPU's backend against the reference.
 *
 *   fuzz_graphs [--seed N] [--graphs N] [--seconds N] [--op NAME] [--keep-going]
 *
 * Graph k has the seed N + k. Without --graphs and --seconds it is one graph. --op: every
 * operation is NAME's. The first difference is printed with its graph, made as small as possible,
 * and the command that repeats it; the exit status is 1. KILN_ISA caps the processor's features. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/fuzz/graphs/shrink.h"

typedef struct Options {
    uint64_t seed;
    unsigned long graphs; /* 0: as many as there is time for */
    double seconds;       /* 0: no limit */
    const char *op;       /* NULL: all */
    bool keep_going;      /* print differences as they are, and look for more */
    const char *program;
} Options;

static double seconds_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void print_command(const Options *options, uint64_t seed)
{
    const char *isa = getenv("KILN_ISA");

    printf("repeat: %s%s%s%s --seed %" PRIu64, isa != NULL ? "KILN_ISA=" : "",
           isa != NULL ? isa : "", isa != NULL ? " " : "", options->program, seed);
    printf(options->op != NULL ? " --op %s\n" : "\n", options->op);
    fflush(stdout);
}

static void report(const Options *options, Spec *spec, Difference *difference)
{
    const uint64_t seed = spec->seed;

    printf("graph %" PRIu64 ": %s\n", seed, difference->text);
    if (!options->keep_going) {
        spec_print(spec, stdout);
        fflush(stdout);
    }
    shrink(spec, difference);
    printf("the smallest graph that differs: %s\n", difference->text);
    spec_print(spec, stdout);
    printf("   ");
    check_print_way(&difference->way, stdout);
    printf("\n");
    print_command(options, seed);
}

/* Operations that no graph contained. */
static size_t count_missing_ops(bool print)
{
    size_t missing = 0;

    for (size_t k = 0; k < kiln_ops_count; k++) {
        if (executed_ops[k] > 0)
            continue;
        missing++;
        if (print)
            printf(" %s", kiln_ops[k]->name);
    }
    return missing;
}

static void print_counts(const Options *options, unsigned long graphs, unsigned long differences,
                         double seconds)
{
    const char *isa = getenv("KILN_ISA");

    printf("fuzz graphs%s%s: %lu graphs in %.0f s, %lu differ; %zu of %zu operations\n",
           isa != NULL ? " " : "", isa != NULL ? isa : "", graphs, seconds, differences,
           kiln_ops_count - count_missing_ops(false), kiln_ops_count);
    if (graphs > 1 && options->op == NULL) {
        printf("runs: %lu close, %lu by noise, %lu extreme, %lu refused; no graph had:",
               check_counts.close, check_counts.measured, check_counts.extreme,
               check_counts.refused);
        count_missing_ops(true);
        printf("\n");
    }
}

/* Runs the graphs; *ret_seed is the one being run. Returns the exit status. */
static int fuzz(const Options *options, volatile uint64_t *ret_seed)
{
    const double start = seconds_now();
    unsigned long graphs = 0, differences = 0;

    while ((options->graphs == 0 || graphs < options->graphs) &&
           (options->seconds <= 0.0 || seconds_now() - start < options->seconds)) {
        static Spec spec;
        Way ways[CHECK_WAYS];
        Difference difference = { .text = "" };

        *ret_seed = options->seed + graphs;
        spec_draw(&spec, *ret_seed, options->op);
        graphs++;
        if (check_differs(&spec, ways, check_ways(spec.seed, ways), &difference)) {
            differences++;
            report(options, &spec, &difference);
            if (!options->keep_going)
                break;
        }
    }
    print_counts(options, graphs, differences, seconds_now() - start);
    execute_finish();
    return differences > 0 ? 1 : 0;
}

static bool parse(int argc, char **argv, Options *ret)
{
    *ret = (Options) { .seed = 1, .program = argv[0] };
    for (int i = 1; i < argc; i++) {
        const bool has_value = i + 1 < argc;
        if (strcmp(argv[i], "--keep-going") == 0)
            ret->keep_going = true;
        else if (strcmp(argv[i], "--seed") == 0 && has_value)
            ret->seed = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--graphs") == 0 && has_value)
            ret->graphs = strtoul(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--seconds") == 0 && has_value)
            ret->seconds = strtod(argv[++i], NULL);
        else if (strcmp(argv[i], "--op") == 0 && has_value)
            ret->op = argv[++i];
        else
            return false;
    }
    if (ret->graphs == 0 && ret->seconds <= 0.0)
        ret->graphs = 1;
    return true;
}

/* In a child process, so that a crash, too, names its graph. */
int main(int argc, char **argv)
{
    uint64_t *seed = mmap(NULL, sizeof(*seed), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                          -1, 0);
    Options options;
    int status = 0;

    if (!parse(argc, argv, &options) || seed == MAP_FAILED) {
        fprintf(stderr, "usage: fuzz_graphs [--seed N] [--graphs N] [--seconds N] [--op NAME] "
                        "[--keep-going]\n");
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    const pid_t child = fork();
    if (child == 0)
        return fuzz(&options, seed);
    if (child < 0 || waitpid(child, &status, 0) < 0)
        return 2;
    if (WIFEXITED(status) && WEXITSTATUS(status) < 2)
        return WEXITSTATUS(status);
    printf("graph %" PRIu64 ": the program ended by %s %d\n", *seed,
           WIFSIGNALED(status) ? "signal" : "exit status",
           WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    print_command(&options, *seed);
    return 1;
}

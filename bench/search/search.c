/* Runs sweepers on test functions, without training, and prints the regret of the best trial: the
 * median over seeds with its 95 % bootstrap interval, and microseconds per trial.
 *
 *     build/release/bench/search/search [SEEDS [FIRST_SEED]]
 *     build/release/bench/search/search --time
 *
 * --time prints what the last of 200 trials of 6 parameters and of 1,000 trials of 20 cost tpe.
 * Times are of the processor. Run it in the root of the repository. bench/search/optuna_peer.py
 * measures Optuna. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/support/components/built_component.h"

enum { MOST_AXES = 20, MOST_TRIALS = 1001, RESAMPLES = 1000 };

/* ---- Functions ------------------------------------------------------------------------ */

typedef struct Function {
    const char *name;
    size_t n_axes, n_trials;
    double (*value)(const KilnAxisValue *point);
    double least;
    const KilnAxis *axes;
} Function;

#define FLOAT_AXIS(i, lo, hi)                                                                      \
    {                                                                                              \
        .kind = KILN_AXIS_FLOAT, .low = (lo), .high = (hi), .leader = (i)                          \
    }

static const KilnAxis branin_axes[] = { FLOAT_AXIS(0, -5, 10), FLOAT_AXIS(1, 0, 15) };

static double branin(const KilnAxisValue *point)
{
    const double pi = acos(-1.0), x = point[0].number, y = point[1].number;
    const double bend = y - 5.1 / (4.0 * pi * pi) * x * x + 5.0 / pi * x - 6.0;

    return bend * bend + 10.0 * (1.0 - 1.0 / (8.0 * pi)) * cos(x) + 10.0;
}

static const KilnAxis hartmann_axes[] = { FLOAT_AXIS(0, 0, 1), FLOAT_AXIS(1, 0, 1),
                                          FLOAT_AXIS(2, 0, 1), FLOAT_AXIS(3, 0, 1),
                                          FLOAT_AXIS(4, 0, 1), FLOAT_AXIS(5, 0, 1) };

static double hartmann(const KilnAxisValue *point)
{
    static const double scale[4] = { 1.0, 1.2, 3.0, 3.2 };
    static const double a[4][6] = { { 10, 3, 17, 3.5, 1.7, 8 },
                                    { 0.05, 10, 17, 0.1, 8, 14 },
                                    { 3, 3.5, 1.7, 10, 17, 8 },
                                    { 17, 8, 0.05, 10, 0.1, 14 } };
    static const double p[4][6] = { { 0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886 },
                                    { 0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991 },
                                    { 0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650 },
                                    { 0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381 } };
    double sum = 0.0;

    for (size_t i = 0; i < 4; i++) {
        double distance = 0.0;

        for (size_t j = 0; j < 6; j++)
            distance += a[i][j] * (point[j].number - p[i][j]) * (point[j].number - p[i][j]);
        sum -= scale[i] * exp(-distance);
    }
    return sum;
}

static const KilnAxis rosenbrock_axes[] = { FLOAT_AXIS(0, -5, 10), FLOAT_AXIS(1, -5, 10),
                                            FLOAT_AXIS(2, -5, 10), FLOAT_AXIS(3, -5, 10),
                                            FLOAT_AXIS(4, -5, 10) };

static double rosenbrock(const KilnAxisValue *point)
{
    double sum = 0.0;

    for (size_t i = 0; i + 1 < 5; i++) {
        const double x = point[i].number, y = point[i + 1].number;

        sum += 100.0 * (y - x * x) * (y - x * x) + (1.0 - x) * (1.0 - x);
    }
    return sum;
}

/* Three models with offsets; the best one alone has a momentum. The best learning rate depends on
 * the number of layers. Least: 0, at the first model with 5 layers and 96 units, a learning rate of
 * 10^-3.5 and the momentum 0.9. */
static const bool for_first[] = { true, false, false };
static const KilnAxis mixed_axes[] = {
    { .kind = KILN_AXIS_CHOICE, .count = 3, .leader = 0 },
    { .kind = KILN_AXIS_FLOAT, .low = 1e-5, .high = 1.0, .log = true, .leader = 1 },
    { .kind = KILN_AXIS_INT, .low = 1, .high = 10, .leader = 2 },
    { .kind = KILN_AXIS_INT, .low = 8, .high = 512, .log = true, .leader = 3 },
    { .kind = KILN_AXIS_CHOICE, .count = 4, .leader = 4 },
    { .kind = KILN_AXIS_FLOAT, .low = 0, .high = 1, .leader = 5, .active_for = for_first },
};

static double mixed(const KilnAxisValue *point)
{
    static const double offsets[3] = { 0.0, 0.1, 0.4 }, activations[4] = { 0.2, 0.0, 0.1, 0.3 };
    const double layers = point[2].number, units = log2(point[3].number / 96.0);
    const double rate = log10(point[1].number) + 3.0 + 0.25 * (layers - 3.0);
    const double momentum = point[0].index == 0 ? point[5].number - 0.9 : 0.0;

    return offsets[point[0].index] + activations[point[4].index] + 0.3 * rate * rate +
           0.02 * (layers - 5.0) * (layers - 5.0) + 0.1 * units * units + 4.0 * momentum * momentum;
}

/* For the time alone. */
static double sphere(const KilnAxisValue *point)
{
    double sum = 0.0;

    for (size_t i = 0; i < MOST_AXES; i++)
        sum += (point[i].number - 0.3) * (point[i].number - 0.3);
    return sum;
}

static const Function functions[] = {
    { "branin", 2, 100, branin, 0.39788735772973816, branin_axes },
    { "hartmann6", 6, 200, hartmann, -3.322368011415514, hartmann_axes },
    { "rosenbrock5", 5, 300, rosenbrock, 0.0, rosenbrock_axes },
    { "mixed", 6, 100, mixed, 0.0, mixed_axes },
};

/* ---- Runs ----------------------------------------------------------------------------- */

/* Processor time: other processes do not change it. */
static double now(void)
{
    struct timespec at = { 0 };

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &at);
    return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

static void die(const char *text)
{
    fprintf(stderr, "%s\n", text);
    exit(1);
}

/* The regret of the best trial; adds the seconds that the sweeper took for trials `from` and later
 * to *seconds. */
static double run(const Function *function, KilnInstance *sweeper, size_t from, double *seconds)
{
    static KilnAxisValue points[MOST_TRIALS][MOST_AXES];
    static KilnTrial trials[MOST_TRIALS];
    static const KilnTrial *list[MOST_TRIALS];
    static double values[MOST_TRIALS];
    const KilnSweeperOps *ops = kiln_instance_component(sweeper)->ops.sweeper;
    const KilnAxis *axes[MOST_AXES];
    const KilnSpace space = { .axes = axes, .count = function->n_axes };
    const KilnObjective objective = { .metric = "loss", .mode = KILN_MODE_MIN };
    KilnHistory history = { .space = &space,
                            .objectives = (const KilnObjective *[]) { &objective },
                            .n_objectives = 1,
                            .trials = list };
    KilnError err = { 0 };
    double best = (double)INFINITY;

    for (size_t i = 0; i < function->n_axes; i++)
        axes[i] = &function->axes[i];
    for (size_t n = 0;; n++) {
        KilnSuggestion suggestion = { .point = points[n], .trial = KILN_NO_TRIAL };
        const double start = now();

        history.count = n;
        memset(points[n], 0, sizeof(points[n]));
        if (ops->ask(sweeper, &history, &suggestion, &err) < 0)
            die(err.text);
        if (suggestion.advice != KILN_ADVICE_TRIAL)
            break;
        if (n >= from)
            *seconds += now() - start;
        values[n] = function->value(points[n]);
        best = fmin(best, values[n]);
        trials[n] = (KilnTrial) { .job = n,
                                  .point = points[n],
                                  .status = KILN_JOB_OK,
                                  .values = &values[n],
                                  .parent = KILN_NO_TRIAL };
        list[n] = &trials[n];
    }
    return best - function->least;
}

/* One run of a new sweeper. */
static double run_new(const Function *function, const char *sweeper, size_t trials, size_t seed,
                      size_t from, double *seconds)
{
    char texts[2][64], *options[2] = { texts[0], texts[1] };
    Built built;
    KilnError err = { 0 };

    snprintf(texts[0], sizeof(texts[0]), "n_trials=%zu", trials);
    snprintf(texts[1], sizeof(texts[1]), "seed=%zu", seed);
    if (build_words(&built, KILN_KIND_SWEEPER, sweeper, options, 2, &err) < 0)
        die(err.text);
    const double regret = run(function, built.instance, from, seconds);
    built_free(&built);
    return regret;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Of `values`, which it sorts. */
static double median(double *values, size_t n)
{
    qsort(values, n, sizeof(*values), compare);
    return 0.5 * (values[(n - 1) / 2] + values[n / 2]);
}

static void report(const Function *function, const char *sweeper, size_t seeds, size_t first)
{
    double *regrets = calloc(2 * seeds, sizeof(double)), medians[RESAMPLES], seconds = 0.0;
    KilnRng rng;

    if (regrets == NULL)
        die("out of memory");
    for (size_t i = 0; i < seeds; i++)
        regrets[i] = run_new(function, sweeper, function->n_trials, first + i, 0, &seconds);
    kiln_rng_init(&rng, 1, KILN_RNG_USER, 0, 0);
    for (size_t i = 0; i < RESAMPLES; i++) {
        for (size_t j = 0; j < seeds; j++)
            regrets[seeds + j] = regrets[kiln_rng_below(&rng, (uint32_t)seeds)];
        medians[i] = median(regrets + seeds, seeds);
    }
    qsort(medians, RESAMPLES, sizeof(*medians), compare);
    printf("%-12s %-22s %4zu seeds  %8.4g  [%.4g, %.4g]  %.1f us\n", function->name, sweeper, seeds,
           median(regrets, seeds), medians[RESAMPLES / 40], medians[RESAMPLES - RESAMPLES / 40],
           1e6 * seconds / (double)(seeds * function->n_trials));
    fflush(stdout);
    free(regrets);
}

static bool has_choices(const Function *function)
{
    for (size_t i = 0; i < function->n_axes; i++)
        if (function->axes[i].kind == KILN_AXIS_CHOICE)
            return true;
    return false;
}

/* The last 20 of the trials. */
static void report_time(const Function *function, size_t trials)
{
    double seconds = 0.0;

    run_new(function, "tpe", trials, 1, trials - 20, &seconds);
    printf("tpe, %zu trials of %s, %zu parameters: %.1f us per trial\n", trials, function->name,
           function->n_axes, 1e6 * seconds / 20.0);
}

static void report_times(void)
{
    KilnAxis axes[MOST_AXES];

    for (size_t i = 0; i < MOST_AXES; i++)
        axes[i] = (KilnAxis)FLOAT_AXIS(i, 0, 1);
    report_time(&functions[1], 200);
    report_time(&functions[3], 200);
    report_time(&(Function) { "sphere", MOST_AXES, 0, sphere, 0.0, axes }, 1000);
    for (size_t i = 0; i < MOST_AXES; i++)
        axes[i] =
            (KilnAxis) { .kind = KILN_AXIS_INT, .low = 1, .high = 100, .leader = i, .log = true };
    report_time(&(Function) { "whole numbers, log scale", MOST_AXES, 0, sphere, 0.0, axes }, 1000);
}

int main(int argc, char **argv)
{
    static const char *const sweepers[] = { "random", "halton", "tpe", "cmaes" };
    const bool times = argc > 1 && strcmp(argv[1], "--time") == 0;
    const size_t seeds = argc > 1 ? strtoul(argv[1], NULL, 10) : 200;
    const size_t first = argc > 2 ? strtoul(argv[2], NULL, 10) : 1;

    if (times) {
        report_times();
        return 0;
    }
    if (seeds == 0)
        die("usage: search [SEEDS [FIRST_SEED]] | --time");
    for (size_t i = 0; i < KILN_COUNT(functions); i++)
        for (size_t j = 0; j < KILN_COUNT(sweepers); j++)
            if (strcmp(sweepers[j], "cmaes") != 0 || !has_choices(&functions[i]))
                report(&functions[i], sweepers[j], seeds, first);
    return 0;
}

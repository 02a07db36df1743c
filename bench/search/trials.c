/* Runs sweepers and pruners on trials that report after each epoch, without training.
 *
 *     build/release/bench/search/trials [SEEDS]
 *
 * Curves: the validation loss after 1 to 27 epochs of 400 multilayer perceptrons with random
 * hyperparameters, trained with kiln on 2,900 images of MNIST an epoch (curves.csv). A sweep tries
 * 81 of them; printed are the epochs that it trains, and the loss of its best trial above that of
 * the best of the 81: medians over seeds.
 *
 * Toy: the triangle of learning rates of Ray's example of PBT, without noise: a trial gains up to 1
 * a step, the less the farther its rate is from the best one, which rises and then falls. Printed
 * are the steps until a population of 8 has reached 200, and how far the best fixed rate gets in
 * 2,000. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kiln/search/simulate.h"
#include "tests/support/components/built_component.h"

enum { CURVES = 400, EPOCHS = 27, TRIALS = 81, MOST_TRIALS = 4000, KEYS = 6, TOY_STEPS = 2000 };

static void die(const char *text)
{
    fprintf(stderr, "%s\n", text);
    exit(1);
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

static void build(Built *ret, KilnKind kind, const char *name, char *const *options, size_t n)
{
    KilnError err = { 0 };

    if (build_words(ret, kind, name, options, n, &err) < 0)
        die(err.text);
}

static KilnSimulated *simulate(const KilnSimulation *simulation)
{
    KilnSimulated *simulated;
    KilnError err = { 0 };

    if (kiln_simulate(simulation, &simulated, &err) < 0)
        die(err.text);
    return simulated;
}

/* ---- Curves ---------------------------------------------------------------------------------- */

static double curves[CURVES][EPOCHS];

static void read_curves(const char *path)
{
    FILE *file = fopen(path, "r");
    char line[1024];

    if (file == NULL || fgets(line, sizeof(line), file) == NULL)
        die("bench/search/curves.csv cannot be read; run this in the root of the repository");
    for (size_t i = 0; i < CURVES; i++) {
        char *at = line;

        if (fgets(line, sizeof(line), file) == NULL)
            die("bench/search/curves.csv is not whole");
        for (int key = 0; key < KEYS; key++)
            at = strchr(at, ',') + 1;
        for (size_t epoch = 0; epoch < EPOCHS; epoch++)
            curves[i][epoch] = strtod(at, &at), at += *at == ',';
    }
    fclose(file);
}

static KilnSimulatedEpoch next_of_curve(void *ctx, size_t trial, const KilnAxisValue *point,
                                        int64_t epoch)
{
    (void)ctx, (void)trial;
    return (KilnSimulatedEpoch) { .value = curves[point[0].index][epoch - 1],
                                  .seconds = 1.0,
                                  .last = epoch == EPOCHS };
}

/* The least loss of the curves that were tried. */
static double least_tried(const KilnSimulated *simulated)
{
    double least = (double)INFINITY;

    for (size_t i = 0; i < simulated->history.count; i++)
        for (size_t epoch = 0; epoch < EPOCHS; epoch++)
            least = fmin(least, curves[simulated->history.trials[i]->point[0].index][epoch]);
    return least;
}

static void report_pruner(const char *name, const char *option, size_t seeds)
{
    static const char *overrides[CURVES];
    const KilnAxis axis = {
        .key = "curve", .kind = KILN_AXIS_CHOICE, .overrides = overrides, .count = CURVES
    };
    const KilnAxis *axes[] = { &axis };
    const KilnSpace space = { .axes = axes, .count = 1 };
    double *epochs = calloc(2 * seeds, sizeof(double)), *regrets = epochs + seeds;
    char trials[32], seed[32];

    if (epochs == NULL)
        die("out of memory");
    snprintf(trials, sizeof(trials), "n_trials=%d", TRIALS);
    for (size_t i = 0; i < seeds; i++) {
        Built sweeper, pruner = { .instance = NULL };

        snprintf(seed, sizeof(seed), "seed=%zu", i + 1);
        build(&sweeper, KILN_KIND_SWEEPER, "random", (char *[]) { trials, seed }, 2);
        if (name != NULL)
            build(&pruner, KILN_KIND_PRUNER, name, (char *[]) { (char *)option },
                  option != NULL ? 1 : 0);
        KilnSimulated *simulated = simulate(&(KilnSimulation) {
            .space = &space,
            .objective = &(KilnObjective) { .metric = "loss", .mode = KILN_MODE_MIN },
            .sweeper = sweeper.instance,
            .pruner = pruner.instance,
            .workers = 1,
            .train = next_of_curve,
        });
        const KilnTrial *best = simulated->history.trials[simulated->best];
        epochs[i] = (double)simulated->epochs;
        regrets[i] = best->values[0] - least_tried(simulated);
        kiln_simulated_free(simulated);
        built_free(&sweeper);
        if (name != NULL)
            built_free(&pruner);
    }
    double mean = 0.0;
    size_t found = 0;
    for (size_t i = 0; i < seeds; i++) {
        mean += regrets[i] / (double)seeds;
        found += regrets[i] <= 0.0;
    }
    printf(
        "curves  %-11s %-22s %4zu seeds: %5.0f epochs (%.2f), %3.0f %% find the best, regret %.4f "
        "(mean %.4f)\n",
        name != NULL ? name : "none", option != NULL ? option : "", seeds, median(epochs, seeds),
        median(epochs, seeds) / (TRIALS * EPOCHS), 100.0 * (double)found / (double)seeds,
        median(regrets, seeds), mean);
    fflush(stdout);
    free(epochs);
}

/* ---- The toy ------------------------------------------------------------------------------- */

static const double goal = 200.0;

/* A step of a trial that has learned `learned` and trains with `rate`. */
static double toy_step(double learned, double rate)
{
    const double middle = 100.0, tolerance = 3.0, rising = 0.01 * learned / middle;
    const double best = fmin(fmax(learned < middle ? rising : 0.02 - rising, 0.001), 0.01);
    const double off = fmax(rate, best) / fmin(rate, best);

    if (off < tolerance)
        learned += 1.0 / off;
    else if (rate > best)
        learned -= off - tolerance;
    return fmax(learned, 0.0);
}

/* What trials have learned; `ctx` of a simulation. */
static bool begin_toy(void *ctx, size_t trial, size_t parent, KilnAxisValue *point)
{
    double *learned = ctx;

    (void)point;
    if (trial == MOST_TRIALS)
        die("too many trials");
    learned[trial] = parent != KILN_NO_TRIAL ? learned[parent] : 0.0;
    return true;
}

static KilnSimulatedEpoch next_of_toy(void *ctx, size_t trial, const KilnAxisValue *point,
                                      int64_t epoch)
{
    double *learned = ctx;

    learned[trial] = toy_step(learned[trial], point[0].number);
    return (KilnSimulatedEpoch) { .value = learned[trial],
                                  .seconds = 1.0,
                                  .last = epoch == TOY_STEPS,
                                  .goal = learned[trial] >= goal };
}

static void report_population(size_t seeds)
{
    const KilnAxis axis = { .key = "lr", .kind = KILN_AXIS_FLOAT, .low = 0.0001, .high = 0.02 };
    const KilnAxis *axes[] = { &axis };
    const KilnSpace space = { .axes = axes, .count = 1 };
    double *steps = calloc(seeds, sizeof(double)), fixed = 0.0;
    double *learned = calloc(MOST_TRIALS, sizeof(double));
    char seed[32];

    if (steps == NULL || learned == NULL)
        die("out of memory");
    for (size_t i = 0; i < seeds; i++) {
        Built built;

        snprintf(seed, sizeof(seed), "seed=%zu", i + 1);
        build(&built, KILN_KIND_SWEEPER, "pbt", (char *[]) { seed, "interval_epochs=20" }, 2);
        KilnSimulated *simulated = simulate(&(KilnSimulation) {
            .space = &space,
            .objective = &(KilnObjective) { .metric = "learned", .mode = KILN_MODE_MAX },
            .sweeper = built.instance,
            .workers = 1,
            .ctx = learned,
            .begin = begin_toy,
            .train = next_of_toy,
        });
        const size_t found = simulated->goal;
        const KilnTrial *trial = found != KILN_NO_TRIAL ? simulated->history.trials[found] : NULL;
        steps[i] = trial != NULL ? (double)trial->reports[trial->n_reports - 1]->epoch : TOY_STEPS;
        kiln_simulated_free(simulated);
        built_free(&built);
    }
    for (int i = 0; i < 400; i++) {
        double at = 0.0;

        for (int step = 0; step < TOY_STEPS; step++)
            fixed = fmax(fixed, at = toy_step(at, 0.0001 * pow(200.0, i / 399.0)));
    }
    printf("toy     pbt, population 8      %4zu seeds: reaches 200 in %.0f steps; the best of 400 "
           "fixed "
           "rates %.0f in 2,000\n",
           seeds, median(steps, seeds), fixed);
    free(steps);
    free(learned);
}

int main(int argc, char **argv)
{
    const size_t seeds = argc > 1 ? strtoul(argv[1], NULL, 10) : 100;

    if (seeds == 0)
        die("usage: trials [SEEDS]");
    read_curves("bench/search/curves.csv");
    report_pruner(NULL, NULL, seeds);
    report_pruner("percentile", NULL, seeds);
    report_pruner("percentile", "percentile=25", seeds);
    report_pruner("patient", NULL, seeds);
    report_pruner("asha", NULL, seeds);
    report_pruner("asha", "brackets=3", seeds);
    report_population(seeds);
    return 0;
}

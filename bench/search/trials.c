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

#include "tests/support/components/built_component.h"

enum { CURVES = 400, EPOCHS = 27, TRIALS = 81, MOST_TRIALS = 4000, MOST_REPORTS = 2100, KEYS = 6 };

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

/* ---- A sweep with one worker ----------------------------------------------------------------- */

/* What trials train: the value after another epoch. `trial` holds what it has learned. */
typedef double Epoch(double *learned, const KilnAxisValue *point, int64_t epoch);

typedef struct Sweep {
    KilnInstance *sweeper, *pruner; /* pruner NULL: none */
    Epoch *train;
    int64_t epochs;
    double goal; /* of a larger value; the sweep ends there */
    const KilnAxis *axis;
    KilnSpace space;
    KilnObjective objective;
    const KilnObjective *objectives[1];
    KilnAxisValue points[MOST_TRIALS][1];
    double learned[MOST_TRIALS], last[MOST_TRIALS], *values[MOST_TRIALS];
    KilnTrialReport *reports[MOST_TRIALS];
    const KilnTrialReport **lists[MOST_TRIALS];
    KilnTrial trials[MOST_TRIALS];
    const KilnTrial *list[MOST_TRIALS];
    KilnHistory history;
    int64_t trained; /* epochs of all trials */
    double best;     /* loss, or value that reached the goal */
} Sweep;

static void sweep_init(Sweep *sweep, const KilnAxis *axis, KilnMode mode)
{
    memset(sweep, 0, sizeof(*sweep));
    sweep->axis = axis;
    sweep->space = (KilnSpace) { .axes = &sweep->axis, .count = 1 };
    sweep->objective = (KilnObjective) { .metric = "value", .mode = mode };
    sweep->objectives[0] = &sweep->objective;
    sweep->history = (KilnHistory) { .space = &sweep->space,
                                     .objectives = sweep->objectives,
                                     .n_objectives = 1,
                                     .trials = sweep->list };
    sweep->best = (double)INFINITY;
}

static void sweep_release(Sweep *sweep)
{
    for (size_t i = 0; i < sweep->history.count; i++) {
        free(sweep->values[i]);
        free(sweep->reports[i]);
        free(sweep->lists[i]);
    }
}

static size_t add(Sweep *sweep, const KilnSuggestion *suggestion)
{
    const size_t n = sweep->history.count++;

    if (n == MOST_TRIALS)
        die("too many trials");
    sweep->values[n] = calloc(MOST_REPORTS, sizeof(double));
    sweep->reports[n] = calloc(MOST_REPORTS, sizeof(KilnTrialReport));
    sweep->lists[n] = calloc(MOST_REPORTS, sizeof(KilnTrialReport *));
    if (sweep->values[n] == NULL || sweep->reports[n] == NULL || sweep->lists[n] == NULL)
        die("out of memory");
    sweep->trials[n] = (KilnTrial) {
        .job = n,
        .point = sweep->points[n],
        .reports = (const KilnTrialReport *const *)sweep->lists[n],
        .parent = suggestion->trial,
    };
    sweep->list[n] = &sweep->trials[n];
    return n;
}

/* The epochs that the trial has trained, with those of the trials from which it began. */
static int64_t age(const Sweep *sweep, size_t trial)
{
    const KilnTrial *of = &sweep->trials[trial];

    if (of->n_reports > 0)
        return of->reports[of->n_reports - 1]->epoch;
    return of->parent != KILN_NO_TRIAL ? age(sweep, of->parent) : 0;
}

static bool stops(Sweep *sweep, size_t trial)
{
    const KilnSweeperOps *ops = kiln_instance_component(sweep->sweeper)->ops.sweeper;
    char reason[KILN_SWEEP_REASON];

    if (ops->count == NULL && ops->tell != NULL &&
        ops->tell(sweep->sweeper, &sweep->history, trial, reason))
        return true;
    return sweep->pruner != NULL &&
           kiln_instance_component(sweep->pruner)
               ->ops.pruner->prune(sweep->pruner, &sweep->history, trial, reason);
}

/* Train a trial until it is stopped, or to its end; true: it reached the goal. */
static bool train(Sweep *sweep, size_t n)
{
    KilnTrial *trial = &sweep->trials[n];

    trial->status = KILN_JOB_RUNNING;
    while (trial->status == KILN_JOB_RUNNING) {
        const int64_t epoch = age(sweep, n) + 1;
        const double value = sweep->train(&sweep->learned[n], sweep->points[n], epoch);
        const size_t i = trial->n_reports++;

        sweep->trained++;
        sweep->values[n][i] = sweep->last[n] = value;
        sweep->reports[n][i] =
            (KilnTrialReport) { .epoch = epoch, .step = epoch, .values = &sweep->values[n][i] };
        sweep->lists[n][i] = &sweep->reports[n][i];
        if (value >= sweep->goal)
            return true;
        if (epoch == sweep->epochs)
            trial->status = isfinite(value) ? KILN_JOB_OK : KILN_JOB_FAILED;
        else if (stops(sweep, n))
            trial->status = KILN_JOB_STOPPED;
    }
    if (trial->status == KILN_JOB_OK) {
        sweep->last[n] = kiln_trial_best(&sweep->history, n, 0, sweep->epochs);
        sweep->best = fmin(sweep->best, sweep->last[n]);
    }
    trial->values = &sweep->last[n];
    return false;
}

static size_t resumed(Sweep *sweep)
{
    const KilnPrunerOps *ops = sweep->pruner != NULL
                                   ? kiln_instance_component(sweep->pruner)->ops.pruner
                                   : NULL;

    return ops != NULL && ops->resume != NULL ? ops->resume(sweep->pruner, &sweep->history)
                                              : KILN_NO_TRIAL;
}

/* The next trial: one that the pruner resumes, one of the sweeper, or KILN_NO_TRIAL. */
static size_t next(Sweep *sweep)
{
    const KilnSweeperOps *ops = kiln_instance_component(sweep->sweeper)->ops.sweeper;
    KilnSuggestion suggestion = { .point = sweep->points[sweep->history.count],
                                  .trial = KILN_NO_TRIAL };
    KilnError err = { 0 };
    const size_t trial = resumed(sweep);

    if (trial != KILN_NO_TRIAL)
        return trial;
    if (ops->ask(sweep->sweeper, &sweep->history, &suggestion, &err) < 0)
        die(err.text);
    if (suggestion.advice == KILN_ADVICE_RESUME)
        return suggestion.trial;
    if (suggestion.advice != KILN_ADVICE_TRIAL) {
        sweep->history.complete = true;
        return resumed(sweep);
    }
    const size_t n = add(sweep, &suggestion);
    if (suggestion.trial != KILN_NO_TRIAL)
        sweep->learned[n] = sweep->learned[suggestion.trial];
    return n;
}

static void run(Sweep *sweep)
{
    size_t trial;

    while ((trial = next(sweep)) != KILN_NO_TRIAL && !train(sweep, trial))
        continue;
}

static void build(Built *ret, KilnKind kind, const char *name, char *const *options, size_t n)
{
    KilnError err = { 0 };

    if (build_words(ret, kind, name, options, n, &err) < 0)
        die(err.text);
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

static double next_of_curve(double *learned, const KilnAxisValue *point, int64_t epoch)
{
    (void)learned;
    return curves[point[0].index][epoch - 1];
}

/* The least loss of the curves that the sweep tried. */
static double least_tried(const Sweep *sweep)
{
    double least = (double)INFINITY;

    for (size_t i = 0; i < sweep->history.count; i++)
        for (size_t epoch = 0; epoch < EPOCHS; epoch++)
            least = fmin(least, curves[sweep->points[i][0].index][epoch]);
    return least;
}

static void report_pruner(const char *name, const char *option, size_t seeds)
{
    static const char *overrides[CURVES];
    const KilnAxis axis = {
        .key = "curve", .kind = KILN_AXIS_CHOICE, .overrides = overrides, .count = CURVES
    };
    double *epochs = calloc(2 * seeds, sizeof(double)), *regrets = epochs + seeds;
    char trials[32], seed[32];
    Sweep *sweep = malloc(sizeof(*sweep));

    if (epochs == NULL || sweep == NULL)
        die("out of memory");
    snprintf(trials, sizeof(trials), "n_trials=%d", TRIALS);
    for (size_t i = 0; i < seeds; i++) {
        Built sweeper, pruner = { .instance = NULL };

        snprintf(seed, sizeof(seed), "seed=%zu", i + 1);
        build(&sweeper, KILN_KIND_SWEEPER, "random", (char *[]) { trials, seed }, 2);
        if (name != NULL)
            build(&pruner, KILN_KIND_PRUNER, name, (char *[]) { (char *)option },
                  option != NULL ? 1 : 0);
        sweep_init(sweep, &axis, KILN_MODE_MIN);
        sweep->sweeper = sweeper.instance;
        sweep->pruner = pruner.instance;
        sweep->train = next_of_curve;
        sweep->epochs = EPOCHS;
        sweep->goal = (double)INFINITY;
        run(sweep);
        epochs[i] = (double)sweep->trained;
        regrets[i] = sweep->best - least_tried(sweep);
        sweep_release(sweep);
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
    free(sweep);
}

/* ---- The toy ------------------------------------------------------------------------------- */

static double next_of_toy(double *learned, const KilnAxisValue *point, int64_t epoch)
{
    const double middle = 100.0, tolerance = 3.0, rate = point[0].number;
    const double rising = 0.01 * *learned / middle;
    const double best = fmin(fmax(*learned < middle ? rising : 0.02 - rising, 0.001), 0.01);
    const double off = fmax(rate, best) / fmin(rate, best);

    (void)epoch;
    if (off < tolerance)
        *learned += 1.0 / off;
    else if (rate > best)
        *learned -= off - tolerance;
    *learned = fmax(*learned, 0.0);
    return *learned;
}

static void report_population(size_t seeds)
{
    const KilnAxis axis = { .key = "lr", .kind = KILN_AXIS_FLOAT, .low = 0.0001, .high = 0.02 };
    double *steps = calloc(seeds, sizeof(double)), fixed = 0.0;
    char seed[32];
    Sweep *sweep = malloc(sizeof(*sweep));

    if (steps == NULL || sweep == NULL)
        die("out of memory");
    for (size_t i = 0; i < seeds; i++) {
        Built built;

        snprintf(seed, sizeof(seed), "seed=%zu", i + 1);
        build(&built, KILN_KIND_SWEEPER, "pbt", (char *[]) { seed, "interval_epochs=20" }, 2);
        sweep_init(sweep, &axis, KILN_MODE_MAX);
        sweep->sweeper = built.instance;
        sweep->train = next_of_toy;
        sweep->epochs = 2000;
        sweep->goal = 200.0;
        run(sweep);
        double most = 2000.0;
        for (size_t j = 0; j < sweep->history.count; j++)
            if (sweep->last[j] >= sweep->goal)
                most = (double)age(sweep, j);
        steps[i] = most;
        sweep_release(sweep);
        built_free(&built);
    }
    for (int i = 0; i < 400; i++) {
        const KilnAxisValue point = { .number = 0.0001 * pow(200.0, i / 399.0) };
        double learned = 0.0;

        for (int64_t step = 1; step <= 2000; step++)
            fixed = fmax(fixed, next_of_toy(&learned, &point, step));
    }
    printf("toy     pbt, population 8      %4zu seeds: reaches 200 in %.0f steps; the best of 400 "
           "fixed "
           "rates %.0f in 2,000\n",
           seeds, median(steps, seeds), fixed);
    free(steps);
    free(sweep);
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

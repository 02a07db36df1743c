/* How large a difference may be is measured: the reference runs again with leaves, results and
 * updated variables changed at random by as much as one rounding changes them. What that changes by
 * far less than the CPU's kernels do is wrong; what it changes much, the graph itself makes
 * uncertain (cancellation, a comparison of almost equal numbers, the order of such numbers, and how
 * many of them differ). */
#include "tests/fuzz/graphs/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/passes/passes.h"

CheckCounts check_counts;

static const unsigned all_passes = (1u << (KILN_PASS_share_memory + 1)) - 1;

int check_ways(uint64_t seed, Way *ret)
{
    KilnRng rng;

    kiln_rng_init(&rng, seed, KILN_RNG_USER, 3, 0);
    for (int w = 0; w < CHECK_WAYS; w++) {
        const uint32_t kind = kiln_rng_below(&rng, 10);
        const unsigned some = kiln_rng_u32(&rng) & all_passes;

        ret[w] = (Way) {
            .threads = 1 + w,
            .convolution = kiln_rng_below(&rng, 3) == 0 ? KILN_CONVOLUTION_AUTO
                                                        : KILN_CONVOLUTION_DIRECT,
        };
        if (w > 0)
            ret[w].passes_off = kind < 4   ? 0
                                : kind < 7 ? 1u << kiln_rng_below(&rng, KILN_PASS_share_memory + 1)
                                : kind < 8 ? all_passes
                                           : some;
        /* Without this pass everything is f32, and the reference is not. */
        ret[w].passes_off &= ~(1u << KILN_PASS_precision);
    }
    return CHECK_WAYS;
}

void check_print_way(const Way *way, FILE *file)
{
    fprintf(file, "%d thread%s, convolution %s", way->threads, way->threads > 1 ? "s" : "",
            way->convolution == KILN_CONVOLUTION_AUTO ? "auto" : "direct");
    if (way->passes_off == 0)
        return;
    fprintf(file, ", without");
    for (size_t i = 0; i < kiln_passes_count; i++)
        if ((way->passes_off >> i & 1) != 0)
            fprintf(file, " %s", kiln_passes[i].name);
}

/* ---- Tolerances ----------------------------------------------------------------------------- */

typedef struct Tolerance {
    double floor;  /* of the largest value: allowed without measuring */
    double factor; /* of what noise changes */
    double lost;   /* where kernels cancel: of the largest number that they may have cancelled */
} Tolerance;

static bool cancels(const Spec *spec)
{
    for (int i = 0; i < spec->n; i++)
        if (spec->items[i].row != NULL && spec->items[i].row->cancels)
            return true;
    return false;
}

static Tolerance tolerance_of(const Spec *spec, const Way *way)
{
    const bool lost = cancels(spec);

    switch (spec->precision) {
    case KILN_PRECISION_64:
        return (Tolerance) { .floor = lost ? 3e-14 : 1e-15, .factor = 32.0 };
    case KILN_BF16_MIXED:
    case KILN_BF16_TRUE:
        return (Tolerance) { .floor = lost ? 0x1p-5 : 0x1p-8, .factor = 4.0 };
    case KILN_PRECISION_32:
        break;
    }
    if (lost)
        return (Tolerance) { .floor = 2e-5, .factor = 32.0 };
    return (Tolerance) { .floor = way->convolution == KILN_CONVOLUTION_AUTO ? 1e-5 : 2e-6,
                         .factor = 32.0 };
}

static double largest_of(const Field *field)
{
    double largest = 1e-37;

    for (int64_t i = 0; i < field->n; i++)
        if (isfinite(field->values[i]))
            largest = fmax(largest, fabs(field->values[i]));
    return largest;
}

static bool same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

/* ---- The reference with noise --------------------------------------------------------------- */

/* For each element the largest change by noise; infinite: it may become anything. */
typedef struct Spread {
    double *fields[SPEC_ITEMS];
    int n;
    uint64_t runs;
} Spread;

static void spread_add(Spread *spread, const Outcome *want, const Outcome *noisy, double scale)
{
    if (noisy->failed) {
        fprintf(stderr, "fuzz_graphs: the reference with noise: %s\n", noisy->error.text);
        exit(2);
    }
    for (int f = 0; f < want->n; f++) {
        const Field *a = &want->fields[f], *b = &noisy->fields[f];

        for (int64_t i = 0; i < a->n; i++) {
            double *x = &spread->fields[f][i];
            if (same(a->values[i], b->values[i]))
                continue;
            *x = isfinite(a->values[i]) && isfinite(b->values[i])
                     ? fmax(*x, fabs(a->values[i] - b->values[i]) / scale)
                     : INFINITY;
        }
    }
}

/* Runs the reference with noise until there were `runs` runs. */
static void spread_measure(Spread *spread, const Spec *spec, const Outcome *want, uint64_t runs)
{
    for (; spread->n < want->n; spread->n++) {
        spread->fields[spread->n] = calloc((size_t)want->fields[spread->n].n, sizeof(double));
        if (spread->fields[spread->n] == NULL)
            exit(2);
    }
    for (; spread->runs < runs; spread->runs++) {
        const Way way = { .reference = true,
                          .passes_off = all_passes & ~(1u << KILN_PASS_precision),
                          .noise = spread->runs + 1 };
        Outcome noisy;

        execute(spec, &way, &noisy, NULL);
        spread_add(spread, want, &noisy, execute_noise_scale(way.noise));
        outcome_release(&noisy);
    }
}

static void spread_release(Spread *spread)
{
    for (int f = 0; f < spread->n; f++)
        free(spread->fields[f]);
}

/* ---- Comparing ------------------------------------------------------------------------------ */

/* What is compared: everything, or only that no infinity and no NaN of the reference is hidden, or
 * nothing but two runs. */
typedef enum Strictness { COMPARE_ALL, COMPARE_HIDDEN, COMPARE_NOTHING } Strictness;

/* Whether the elements differ by more than `allowed`; NaN: by anything. */
static bool element_differs(double want, double got, double allowed, Strictness strictness)
{
    if (same(want, got) || isinf(allowed) || strictness == COMPARE_NOTHING)
        return false;
    if (!isfinite(want))
        return isfinite(got) || strictness == COMPARE_ALL;
    if (strictness == COMPARE_HIDDEN)
        return false;
    return !isfinite(got) || fabs(want - got) > allowed;
}

/* Whether the fields differ; the difference goes into `ret`. `spread` may be NULL. */
static bool field_differs(const Field *want, const Field *got, const double *spread,
                          Tolerance tolerance, Strictness strictness, Difference *ret)
{
    const double floor = want->is_float ? tolerance.floor * largest_of(want) + tolerance.lost : 0.0;

    for (int64_t i = 0; i < want->n; i++) {
        const double measured = spread != NULL ? tolerance.factor * spread[i] : 0.0;
        const double allowed = want->is_float || measured <= 0.0 ? floor + measured : INFINITY;

        if (!element_differs(want->values[i], got->values[i], allowed, strictness))
            continue;
        snprintf(ret->text, sizeof(ret->text),
                 "%s, element %lld of %lld: %.9g, expected %.9g to within %.3g (largest %.3g)",
                 want->name, (long long)i, (long long)want->n, got->values[i], want->values[i],
                 allowed, largest_of(want));
        return true;
    }
    return false;
}

static bool outcomes_differ(const Outcome *want, const Outcome *got, const Spread *spread,
                            Tolerance tolerance, Strictness strictness, Difference *ret)
{
    for (int f = 0; f < want->n; f++)
        if (field_differs(&want->fields[f], &got->fields[f],
                          spread->n > 0 ? spread->fields[f] : NULL, tolerance, strictness, ret))
            return true;
    return false;
}

/* Two runs by one plan give the same bytes. */
static bool runs_differ(const Outcome *first, const Outcome *second, Difference *ret)
{
    for (int f = 0; f < first->n; f++) {
        const Field *a = &first->fields[f], *b = &second->fields[f];
        for (int64_t i = 0; i < a->n; i++) {
            if (same(a->values[i], b->values[i]))
                continue;
            snprintf(ret->text, sizeof(ret->text),
                     "%s, element %lld: %.9g in the first run, %.9g in the second", a->name,
                     (long long)i, a->values[i], b->values[i]);
            return true;
        }
    }
    return false;
}

/* Whether one NaN more or less may change other elements, or an activation that a convolution takes
 * may make a number of NaN (graph/passes/fold_norm.c). */
static bool hides(const Spec *spec, const Way *way)
{
    const bool folds = (way->passes_off >> KILN_PASS_fold_norm & 1) == 0;

    for (int i = 0; i < spec->n; i++) {
        const Row *row = spec->items[i].row;

        if (row != NULL && (row->hides || (folds && strcmp(row->name, "conv2d") == 0)))
            return true;
    }
    return false;
}

/* Computes the graph in f32 and looks at every number on the way. */
static Outcome survey(const Spec *spec)
{
    const Way way = { .reference = true, .passes_off = all_passes, .survey = true };
    Outcome outcome;

    execute(spec, &way, &outcome, NULL);
    outcome_release(&outcome);
    return outcome;
}

/* Whether numbers on the way are so far apart that squares and sums of them overflow, or lose what
 * the reference's doubles keep. */
static bool is_extreme(const Outcome *surveyed)
{
    return surveyed->failed || surveyed->not_finite || surveyed->largest > 1e10 ||
           surveyed->smallest < 1e-18;
}

/* What kernels may have cancelled: far numbers are also products of two of them. */
static double largest_cancelled(const Outcome *surveyed)
{
    return surveyed->largest * fmin(fmax(surveyed->largest / 10.0, 1.0), 1e3);
}

/* Asks for more and more runs with noise before it calls something a difference. */
static bool way_differs(const Spec *spec, const Way *way, const Outcome *want, Spread *spread,
                        Difference *ret)
{
    static const uint64_t runs[] = { 0, 3, 100 };
    Tolerance tolerance = tolerance_of(spec, way);
    const Strictness not_finite = hides(spec, way) ? COMPARE_NOTHING : COMPARE_HIDDEN;
    Strictness strictness = spec_has_infinite_leaf(spec) ? not_finite : COMPARE_ALL;
    Outcome got, again;
    bool differs = true;

    execute(spec, way, &got, &again);
    if (got.failed != want->failed) {
        snprintf(ret->text, sizeof(ret->text), "%.200s",
                 got.failed ? got.error.text : "the reference fails");
    } else if (got.failed) {
        check_counts.refused++;
        differs = false;
    } else if (!runs_differ(&got, &again, ret)) {
        for (size_t r = 0; r < KILN_COUNT(runs) && differs; r++) {
            spread_measure(spread, spec, want, runs[r]);
            if (r == 1 && strictness == COMPARE_ALL) {
                const Outcome surveyed = survey(spec);
                const bool extreme = is_extreme(&surveyed);

                check_counts.extreme += extreme;
                strictness = extreme ? not_finite : COMPARE_ALL;
                if (cancels(spec))
                    tolerance.lost = tolerance.floor * largest_cancelled(&surveyed);
            }
            differs = outcomes_differ(want, &got, spread, tolerance, strictness, ret);
            check_counts.close += r == 0 && !differs;
            check_counts.measured += r > 0 && !differs;
        }
    }
    outcome_release(&got);
    outcome_release(&again);
    return differs;
}

bool check_differs(const Spec *spec, const Way *ways, int n, Difference *ret)
{
    const Way way = { .reference = true, .passes_off = all_passes & ~(1u << KILN_PASS_precision) };
    Spread spread = { .n = 0 };
    Outcome want;
    bool differs = false;

    execute(spec, &way, &want, NULL);
    for (int w = 0; w < n && !differs; w++) {
        differs = way_differs(spec, &ways[w], &want, &spread, ret);
        ret->way = ways[w];
    }
    spread_release(&spread);
    outcome_release(&want);
    return differs;
}

/* A genetic algorithm for several objectives: generations of trials, each made from the best and
 * least crowded ones before. Deb et al., "A fast and elitist multiobjective genetic algorithm:
 * NSGA-II" (2002). Crossover and mutation of numbers: Deb and Agrawal, "Simulated binary crossover
 * for continuous search space" (1995). */
#include "kiln.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kiln/search/pareto.h"

typedef struct Opts {
    int64_t n_trials, population, seed;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_I64(Opts, n_trials, "200", 1, 1e7, "jobs"),
    KILN_FIELD_I64(Opts, population, "20", 2, 1e6,
                   "jobs of a generation; as many of the best are the parents of the next one"),
    KILN_FIELD_I64(Opts, seed, "1", 0, 1e15, "the same seed and results, the same points"),
    KILN_FIELD_END,
};

/* How close children are to their parents: larger is closer. With the 20 of the paper a few hundred
 * trials do not get far. */
static const double crossover_index = 5.0, mutation_index = 5.0;
/* Of a child to have two parents, and of a number of it to be between them. */
static const float crossover_chance = 0.9f, number_chance = 0.9f;
/* Tries to make a child that is no trial yet. */
enum { TRIES = 20 };

/* A trial that may become a parent. */
typedef struct Member {
    size_t trial, rank;
    double distance; /* crowding */
} Member;

/* ---- Parents ------------------------------------------------------------------------------- */

static bool put_losses(const KilnHistory *history, size_t trial, double *ret)
{
    bool finite = history->trials[trial]->values != NULL;

    for (size_t i = 0; i < history->n_objectives && finite; i++) {
        ret[i] = kiln_objective_loss(history->objectives[i], history->trials[trial]->values[i]);
        finite = isfinite(ret[i]);
    }
    return finite;
}

/* Lower ranks first, then less crowded ones, then earlier ones. */
static int compare(const void *a, const void *b)
{
    const Member *x = a, *y = b;

    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (x->distance != y->distance)
        return x->distance > y->distance ? -1 : 1;
    return (x->trial > y->trial) - (x->trial < y->trial);
}

/* Rank the first `n` trials that have values, and sort them, best first; *ret_n of them. */
static KilnStatus rank_members(const KilnHistory *history, size_t n, Member *ret, size_t *ret_n,
                               KilnError *err)
{
    const size_t width = history->n_objectives;
    double *losses = calloc(n * width + 1, sizeof(*losses));
    double *distances = calloc(n + 1, sizeof(*distances));
    size_t *ranks = calloc(n + 1, sizeof(*ranks)), count = 0;
    KilnStatus status = KILN_OK;

    if (losses == NULL || distances == NULL || ranks == NULL)
        status = kiln_error_nomem(err, n * width);
    for (size_t i = 0; i < n && status >= 0; i++)
        if (put_losses(history, i, losses + count * width))
            ret[count++].trial = i;
    if (status >= 0)
        status = kiln_pareto_ranks(losses, count, width, ranks, err);
    if (status >= 0)
        status = kiln_crowding(losses, ranks, count, width, distances, err);
    for (size_t i = 0; i < count && status >= 0; i++) {
        ret[i].rank = ranks[i];
        ret[i].distance = distances[i];
    }
    if (count > 0 && status >= 0)
        qsort(ret, count, sizeof(*ret), compare);
    *ret_n = count;
    free(losses);
    free(distances);
    free(ranks);
    return status;
}

/* The better one of two; members are sorted. */
static const KilnTrial *select_parent(const KilnHistory *history, const Member *members, size_t n,
                                      KilnRng *rng)
{
    const size_t a = kiln_rng_below(rng, (uint32_t)n), b = kiln_rng_below(rng, (uint32_t)n);

    return history->trials[members[a < b ? a : b].trial];
}

/* ---- Children -------------------------------------------------------------------------------- */

/* The share of a parent's value; where the axis is inactive, any. */
static double share_of(const KilnSpace *space, size_t axis, const KilnTrial *parent, KilnRng *rng)
{
    const double any = (double)kiln_rng_uniform(rng);

    return kiln_axis_is_active(space, axis, parent->point)
               ? kiln_axis_share(space->axes[axis], parent->point[axis])
               : any;
}

/* The place of a child on the scale of its parents' distance from one another: 1 is at a parent,
 * and `room` is where the bound is that limits how far beyond a child may be. */
static double spread(double u, double room)
{
    const double n = crossover_index + 1.0, all = 2.0 - pow(room, -n);

    return u <= 1.0 / all ? pow(u * all, 1.0 / n) : pow(1.0 / (2.0 - u * all), 1.0 / n);
}

/* Simulated binary crossover: a number near one of two, the closer the closer they are. */
static double cross(double a, double b, KilnRng *rng)
{
    const double low = fmin(a, b), high = fmax(a, b), u = (double)kiln_rng_uniform(rng);
    const bool lower = kiln_rng_uniform(rng) < 0.5f;

    if (high - low < 1e-12)
        return a;
    const double room = 1.0 + 2.0 * (lower ? low : 1.0 - high) / (high - low);
    const double half = 0.5 * spread(u, room) * (high - low);
    return lower ? 0.5 * (low + high) - half : 0.5 * (low + high) + half;
}

/* Polynomial mutation: mostly a small step. */
static double mutate(double share, KilnRng *rng)
{
    const double n = mutation_index + 1.0, u = (double)kiln_rng_uniform(rng);

    if (u < 0.5)
        return share + pow(2.0 * u + (1.0 - 2.0 * u) * pow(1.0 - share, n), 1.0 / n) - 1.0;
    return share + 1.0 - pow(2.0 * (1.0 - u) + (2.0 * u - 1.0) * pow(share, n), 1.0 / n);
}

/* Of the axes that vary on their own. */
static double mutation_chance(const KilnSpace *space)
{
    size_t n = 0;

    for (size_t i = 0; i < space->count; i++)
        n += space->axes[i]->leader == i && space->axes[i]->count != 1;
    return n > 0 ? 1.0 / (double)n : 0.0;
}

/* The value of one axis of a child. */
static KilnAxisValue inherit(const KilnSpace *space, size_t axis, const KilnTrial *mother,
                             const KilnTrial *father, bool crosses, KilnRng *rng)
{
    const bool choice = space->axes[axis]->kind == KILN_AXIS_CHOICE;
    const double a = share_of(space, axis, mother, rng), b = share_of(space, axis, father, rng);
    const float u = kiln_rng_uniform(rng);
    const bool fathers = crosses && choice && u < 0.5f;
    const double from = fathers ? b : a;
    double share = crosses && !choice && u < number_chance ? cross(a, b, rng) : from;

    if ((double)kiln_rng_uniform(rng) < mutation_chance(space))
        share = choice ? (double)kiln_rng_uniform(rng) : mutate(share, rng);
    const KilnTrial *parent = fathers ? father : mother;
    if (share == from && kiln_axis_is_active(space, axis, parent->point))
        return parent->point[axis]; /* without the rounding of a share */
    return kiln_axis_value(space->axes[axis], fmin(fmax(share, 0.0), 1.0 - 1e-12));
}

static void make_child(const KilnSpace *space, const KilnTrial *mother, const KilnTrial *father,
                       KilnRng *rng, KilnAxisValue *ret)
{
    const bool crosses = kiln_rng_uniform(rng) < crossover_chance;

    for (size_t i = 0; i < space->count; i++)
        ret[i] = inherit(space, i, mother, father, crosses, rng);
}

static void draw(const KilnSpace *space, KilnRng *rng, KilnAxisValue *ret)
{
    for (size_t i = 0; i < space->count; i++)
        ret[i] = kiln_axis_value(space->axes[i], (double)kiln_rng_uniform(rng));
}

/* ---- Asking ---------------------------------------------------------------------------------- */

static bool equal(const KilnSpace *space, const KilnAxisValue *a, const KilnAxisValue *b)
{
    for (size_t i = 0; i < space->count; i++) {
        const KilnAxis *axis = space->axes[i];
        const bool number = axis->kind == KILN_AXIS_FLOAT || axis->kind == KILN_AXIS_INT;

        if (axis->leader != i || !kiln_axis_is_active(space, i, a))
            continue;
        if (number ? a[i].number != b[i].number : a[i].index != b[i].index)
            return false;
    }
    return true;
}

static bool is_trial(const KilnHistory *history, const KilnAxisValue *point)
{
    for (size_t i = 0; i < history->count; i++)
        if (equal(history->space, point, history->trials[i]->point))
            return true;
    return false;
}

/* A child of the trials of earlier generations; a random point while none of them has values. */
static KilnStatus breed(const KilnHistory *history, size_t population, KilnRng *rng,
                        KilnAxisValue *ret, KilnError *err)
{
    const size_t before = history->count / population * population;
    Member *members = calloc(before + 1, sizeof(*members));
    size_t n = 0;

    if (members == NULL)
        return kiln_error_nomem(err, before);
    KilnStatus status = rank_members(history, before, members, &n, err);
    if (n > population)
        n = population;
    for (size_t try = 0; try < TRIES && status >= 0; try++) {
        if (n > 0)
            make_child(history->space, select_parent(history, members, n, rng),
                       select_parent(history, members, n, rng), rng, ret);
        else
            draw(history->space, rng, ret);
        if (!is_trial(history, ret))
            break;
    }
    free(members);
    return status;
}

static KilnStatus ask(KilnInstance *self, const KilnHistory *history, KilnSuggestion *ret,
                      KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    KilnRng rng;

    ret->advice = history->count < (size_t)opts->n_trials ? KILN_ADVICE_TRIAL : KILN_ADVICE_DONE;
    if (ret->advice == KILN_ADVICE_DONE)
        return KILN_OK;
    kiln_rng_init(&rng, (uint64_t)opts->seed, KILN_RNG_SEARCH, 0, history->count);
    return breed(history, (size_t)opts->population, &rng, ret->point, err);
}

static const KilnSweeperOps ops = {
    .axes = KILN_AXIS_CHOICE | KILN_AXIS_RANGE | KILN_AXIS_FLOAT | KILN_AXIS_INT,
    .ask = ask,
};

const KilnComponent kiln_sweeper_nsga2 = {
    .kind = KILN_KIND_SWEEPER,
    .name = "nsga2",
    .summary = "A genetic algorithm for several objectives",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .ops.sweeper = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_sweeper_nsga2, NULL };
KILN_PLUGIN_DEFINE(list)
#endif

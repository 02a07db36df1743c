/* Simulates a sweep: trials whose epochs cost nothing, workers, and a virtual clock. */
#include "kiln/search/simulate.h"

#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/call.h"
#include "kiln/rng.h"
#include "kiln/search/history.h"
#include "sweep/sweep_state.h"

/* A trial of the simulation; its parts live in the arena. */
typedef struct Trial {
    KilnTrial as_seen;
    KilnTrialReport **reports;
    size_t capacity;
    double last; /* its values while it is STOPPED, or OK */
    size_t starts;
} Trial;

/* A worker trains an epoch at a time. */
typedef struct Worker {
    size_t trial; /* KILN_NO_TRIAL: it is idle */
    int64_t epoch;
    KilnSimulatedEpoch now; /* what it reports at `until` */
    double until, slowdown;
} Worker;

typedef struct State {
    KilnSimulated simulated; /* first: kiln_simulated_free gets it */
    const KilnSimulation *of;
    KilnArena arena;
    KilnObjective objective;
    const KilnObjective *objectives[1];
    Trial **trials;
    const KilnTrial **list;
    size_t trials_capacity, list_capacity;
    KilnSimulatedEvent *events;
    size_t events_capacity;
    Worker *workers;
    double now;
    size_t n_points; /* of a sweeper that does not learn; SIZE_MAX: it does */
    bool waits, done, settled;
} State;

static const KilnSweeperOps *sweeper_ops(const State *state)
{
    return kiln_instance_component(state->of->sweeper)->ops.sweeper;
}

static const KilnPrunerOps *pruner_ops(const State *state)
{
    return kiln_instance_component(state->of->pruner)->ops.pruner;
}

/* ---- Trials ---------------------------------------------------------------------------------- */

/* The epochs that the trial has trained, with those of the trials from which it began. */
static int64_t age_of(const State *state, size_t trial)
{
    const KilnTrial *at = state->list[trial];

    while (at->n_reports == 0 && at->parent != KILN_NO_TRIAL)
        at = state->list[at->parent];
    return at->n_reports > 0 ? at->reports[at->n_reports - 1]->epoch : 0;
}

static KilnStatus add_event(State *state, KilnSimulatedKind kind, size_t worker, const char *reason,
                            KilnError *err)
{
    KilnSimulated *simulated = &state->simulated;
    const size_t trial = state->workers[worker].trial;
    const KilnTrial *of = state->list[trial];

    if (!KILN_ARENA_RESERVE(&state->arena, state->events, state->events_capacity,
                            simulated->n_events + 1))
        return kiln_error_nomem(err, simulated->n_events);
    state->events[simulated->n_events++] = (KilnSimulatedEvent) {
        .time = state->now,
        .kind = kind,
        .trial = trial,
        .worker = worker,
        .epoch = age_of(state, trial),
        .value = of->n_reports > 0 ? of->reports[of->n_reports - 1]->values[0] : (double)NAN,
        .reason = reason,
    };
    simulated->events = state->events;
    return KILN_OK;
}

static KilnStatus add_report(State *state, Trial *trial, int64_t epoch, double value,
                             KilnError *err)
{
    KilnTrial *seen = &trial->as_seen;
    KilnTrialReport *report = kiln_arena_alloc(&state->arena, sizeof(*report));
    double *values = kiln_arena_alloc(&state->arena, sizeof(*values));

    if (report == NULL || values == NULL ||
        !KILN_ARENA_RESERVE(&state->arena, trial->reports, trial->capacity, seen->n_reports + 1))
        return kiln_error_nomem(err, sizeof(*report));
    *values = trial->last = value;
    *report = (KilnTrialReport) { .epoch = epoch, .step = epoch, .values = values };
    trial->reports[seen->n_reports++] = report;
    seen->reports = (const KilnTrialReport *const *)trial->reports;
    return KILN_OK;
}

static KilnStatus add_trial(State *state, const KilnSuggestion *suggestion, size_t *ret,
                            KilnError *err)
{
    KilnHistory *history = &state->simulated.history;
    Trial *trial = kiln_arena_alloc(&state->arena, sizeof(*trial));

    if (trial == NULL ||
        !KILN_ARENA_RESERVE(&state->arena, state->trials, state->trials_capacity,
                            history->count + 1) ||
        !KILN_ARENA_RESERVE(&state->arena, state->list, state->list_capacity, history->count + 1))
        return kiln_error_nomem(err, sizeof(*trial));
    *ret = history->count++;
    trial->as_seen =
        (KilnTrial) { .job = *ret, .point = suggestion->point, .parent = suggestion->trial };
    state->trials[*ret] = trial;
    state->list[*ret] = &trial->as_seen;
    history->trials = state->list;
    return KILN_OK;
}

/* ---- What runs next, as in sweep/next_job.c -------------------------------------------------- */

static bool is_stopped(const State *state, size_t trial)
{
    return trial < state->simulated.history.count && state->list[trial]->status == KILN_JOB_STOPPED;
}

static KilnStatus refuse(const KilnInstance *who, const char *what, size_t trial, KilnError *err)
{
    return kiln_error_set(err, KILN_E_PLUGIN, "%s cannot %s trial %zu", kiln_instance_name(who),
                          what, trial);
}

static KilnStatus ask_pruner(State *state, size_t *ret, KilnError *err)
{
    *ret = KILN_NO_TRIAL;
    if (state->settled || state->of->pruner == NULL || pruner_ops(state)->resume == NULL)
        return KILN_OK;
    kiln_call_enter(state->of->pruner, "resume");
    *ret = pruner_ops(state)->resume(state->of->pruner, &state->simulated.history);
    kiln_call_leave();
    state->settled = *ret == KILN_NO_TRIAL;
    return *ret == KILN_NO_TRIAL || is_stopped(state, *ret)
               ? KILN_OK
               : refuse(state->of->pruner, "resume", *ret, err);
}

static KilnStatus begin(State *state, KilnSuggestion *suggestion, size_t *ret, KilnError *err)
{
    const KilnSimulation *of = state->of;
    const size_t parent = suggestion->trial;
    size_t wrong = 0;

    if (parent != KILN_NO_TRIAL && !is_stopped(state, parent) &&
        (parent >= state->simulated.history.count || state->list[parent]->status != KILN_JOB_OK))
        return refuse(of->sweeper, "start from", parent, err);
    if (of->begin != NULL &&
        !of->begin(of->ctx, state->simulated.history.count, parent, suggestion->point)) {
        state->done = true;
        return KILN_OK;
    }
    if (!kiln_space_complete(of->space, suggestion->point, &wrong))
        return kiln_error_set(err, KILN_E_PLUGIN,
                              "sweeper/%s: its trial %zu has a value of %s that the space does not "
                              "have",
                              kiln_instance_name(of->sweeper), state->simulated.history.count,
                              of->space->axes[wrong]->key);
    return add_trial(state, suggestion, ret, err);
}

static KilnStatus ask_sweeper(State *state, size_t *ret, KilnError *err)
{
    const KilnHistory *history = &state->simulated.history;
    KilnSuggestion suggestion = { .advice = KILN_ADVICE_DONE, .trial = KILN_NO_TRIAL };

    if (history->count >= state->n_points) {
        state->done = true;
        return KILN_OK;
    }
    suggestion.point = kiln_arena_alloc(&state->arena,
                                        (history->space->count + 1) * sizeof(KilnAxisValue));
    if (suggestion.point == NULL)
        return kiln_error_nomem(err, history->space->count);
    KilnStatus status =
        KILN_CALLED(state->of->sweeper, "ask",
                    sweeper_ops(state)->ask(state->of->sweeper, history, &suggestion, err), err);
    if (status < 0)
        return status;
    state->waits = suggestion.advice == KILN_ADVICE_WAIT;
    state->done = suggestion.advice == KILN_ADVICE_DONE;
    if (suggestion.advice == KILN_ADVICE_TRIAL)
        return begin(state, &suggestion, ret, err);
    if (suggestion.advice != KILN_ADVICE_RESUME)
        return KILN_OK;
    *ret = suggestion.trial;
    return is_stopped(state, *ret) ? KILN_OK : refuse(state->of->sweeper, "resume", *ret, err);
}

/* A trial to start or resume now; KILN_NO_TRIAL: none. */
static KilnStatus next(State *state, size_t *ret, KilnError *err)
{
    const double timeout = state->of->timeout;

    *ret = KILN_NO_TRIAL;
    if (timeout > 0.0 && state->now >= timeout)
        return KILN_OK;
    KilnStatus status = ask_pruner(state, ret, err);
    if (status >= 0 && *ret == KILN_NO_TRIAL && !state->waits && !state->done)
        status = ask_sweeper(state, ret, err);
    if (status < 0 || *ret != KILN_NO_TRIAL || !state->done || state->simulated.history.complete)
        return status;
    /* Now that no trial follows, the pruner may resume more. */
    state->simulated.history.complete = true;
    state->settled = false;
    return ask_pruner(state, ret, err);
}

/* ---- Workers --------------------------------------------------------------------------------- */

/* A factor of the time that this start of the trial takes. */
static double slowdown(const State *state, size_t trial, size_t start)
{
    KilnRng rng;

    if (state->of->straggle <= 0.0)
        return 1.0;
    kiln_rng_init(&rng, state->of->seed, KILN_RNG_SEARCH, (uint32_t)start, trial);
    return 1.0 + fabs((double)kiln_rng_normal(&rng)) * state->of->straggle;
}

static void train_epoch(State *state, Worker *worker)
{
    const KilnSimulation *of = state->of;

    worker->epoch++;
    worker->now = of->train(of->ctx, worker->trial, state->list[worker->trial]->point,
                            worker->epoch);
    worker->until = state->now + worker->now.seconds * worker->slowdown;
}

static KilnStatus start(State *state, size_t index, size_t number, KilnError *err)
{
    Trial *trial = state->trials[number];
    Worker *worker = &state->workers[index];
    const bool resumes = trial->starts > 0;

    *worker = (Worker) { .trial = number,
                         .epoch = age_of(state, number),
                         .slowdown = slowdown(state, number, trial->starts) };
    trial->as_seen.status = KILN_JOB_RUNNING;
    trial->as_seen.values = NULL;
    trial->starts++;
    state->simulated.resumed += resumes;
    KilnStatus status = add_event(state, resumes ? KILN_SIMULATED_RESUME : KILN_SIMULATED_START,
                                  index, "", err);
    train_epoch(state, worker);
    return status;
}

/* Does the sweeper or the pruner stop the trial here? */
static bool stops(State *state, size_t trial, char reason[KILN_SWEEP_REASON])
{
    const KilnSimulation *of = state->of;
    const KilnSweeperOps *ops = sweeper_ops(state);
    bool stop = false;

    reason[0] = '\0';
    if (ops->count == NULL && ops->tell != NULL) {
        kiln_call_enter(of->sweeper, "tell");
        stop = ops->tell(of->sweeper, &state->simulated.history, trial, reason);
        kiln_call_leave();
    }
    if (!stop && of->pruner != NULL) {
        kiln_call_enter(of->pruner, "prune");
        stop = pruner_ops(state)->prune(of->pruner, &state->simulated.history, trial, reason);
        kiln_call_leave();
    }
    return stop;
}

/* The trial has ended; its value is the best that it reported. */
static void end(State *state, size_t number)
{
    Trial *trial = state->trials[number];
    const KilnHistory *history = &state->simulated.history;
    const double loss = kiln_trial_best(history, number, 0, INT64_MAX);

    trial->as_seen.status = KILN_JOB_OK;
    trial->last = !isfinite(loss)                               ? (double)NAN
                  : state->of->objective->mode == KILN_MODE_MAX ? -loss
                                                                : loss;
    trial->as_seen.values = &trial->last;
}

/* A worker reports what it has trained, and continues or becomes idle. */
static KilnStatus report(State *state, size_t index, KilnError *err)
{
    Worker *worker = &state->workers[index];
    const size_t number = worker->trial;
    Trial *trial = state->trials[number];
    char reason[KILN_SWEEP_REASON] = "";

    state->simulated.epochs++;
    state->simulated.busy += worker->now.seconds * worker->slowdown;
    state->simulated.seconds = state->now;
    state->waits = state->settled = false;
    KilnStatus status = add_report(state, trial, worker->epoch, worker->now.value, err);
    if (status < 0)
        return status;
    if (worker->now.goal)
        state->simulated.goal = number;
    if (worker->now.last || worker->now.goal) {
        end(state, number);
        status = add_event(state, KILN_SIMULATED_END, index, "", err);
    } else if (stops(state, number, reason)) {
        const char *kept = kiln_arena_strdup(&state->arena, reason);

        trial->as_seen.status = KILN_JOB_STOPPED;
        trial->as_seen.values = &trial->last;
        status = kept != NULL ? add_event(state, KILN_SIMULATED_STOP, index, kept, err)
                              : kiln_error_nomem(err, KILN_SWEEP_REASON);
    } else {
        train_epoch(state, worker);
        return KILN_OK;
    }
    worker->trial = KILN_NO_TRIAL;
    return status;
}

/* Give idle workers trials, as long as there are some. */
static KilnStatus fill(State *state, KilnError *err)
{
    KilnStatus status = KILN_OK;
    size_t trial = 0;

    for (size_t i = 0; i < state->of->workers && status >= 0 && trial != KILN_NO_TRIAL; i++) {
        if (state->workers[i].trial != KILN_NO_TRIAL)
            continue;
        status = next(state, &trial, err);
        if (status >= 0 && trial != KILN_NO_TRIAL)
            status = start(state, i, trial, err);
    }
    return status;
}

/* The worker that reports next; of several the first one. SIZE_MAX: all are idle. */
static size_t first_worker(const State *state)
{
    size_t first = SIZE_MAX;

    for (size_t i = 0; i < state->of->workers; i++)
        if (state->workers[i].trial != KILN_NO_TRIAL &&
            (first == SIZE_MAX || state->workers[i].until < state->workers[first].until))
            first = i;
    return first;
}

static KilnStatus run(State *state, KilnError *err)
{
    KilnStatus status = KILN_OK;

    while (status >= 0 && state->simulated.goal == KILN_NO_TRIAL) {
        status = fill(state, err);
        const size_t worker = first_worker(state);
        if (status < 0 || worker == SIZE_MAX)
            break;
        state->now = state->workers[worker].until;
        status = report(state, worker, err);
    }
    if (status >= 0 && state->waits)
        status = kiln_error_set(err, KILN_E_PLUGIN, "sweeper/%s waits, but no trial runs",
                                kiln_instance_name(state->of->sweeper));
    return status;
}

static void summarize(State *state)
{
    KilnSimulated *simulated = &state->simulated;
    double least = (double)INFINITY;

    for (size_t i = 0; i < simulated->history.count; i++) {
        const KilnTrial *trial = state->list[i];

        simulated->stopped += trial->status == KILN_JOB_STOPPED;
        if (trial->status != KILN_JOB_OK)
            continue;
        const double loss = kiln_objective_loss(state->of->objective, trial->values[0]);
        if (loss < least) {
            least = loss;
            simulated->best = i;
        }
    }
}

/* ---- The interface --------------------------------------------------------------------------- */

static void init(State *state, const KilnSimulation *simulation)
{
    state->of = simulation;
    state->objective = *simulation->objective;
    state->objectives[0] = &state->objective;
    state->simulated = (KilnSimulated) {
        .history = { .space = simulation->space,
                     .objectives = state->objectives,
                     .n_objectives = 1 },
        .best = KILN_NO_TRIAL,
        .goal = KILN_NO_TRIAL,
    };
    for (size_t i = 0; i < simulation->workers; i++)
        state->workers[i].trial = KILN_NO_TRIAL;
    const KilnSweeperOps *ops = sweeper_ops(state);
    state->n_points = ops->count != NULL ? ops->count(simulation->sweeper, simulation->space)
                                         : SIZE_MAX;
}

KilnStatus kiln_simulate(const KilnSimulation *simulation, KilnSimulated **ret, KilnError *err)
{
    State *state = calloc(1, sizeof(*state));
    KilnStatus status = KILN_OK;

    *ret = NULL;
    if (state != NULL)
        state->workers = calloc(simulation->workers + 1, sizeof(*state->workers));
    if (state == NULL || state->workers == NULL)
        status = kiln_error_nomem(err, simulation->workers);
    if (status >= 0) {
        init(state, simulation);
        status = run(state, err);
    }
    if (status >= 0) {
        summarize(state);
        *ret = &state->simulated;
    } else if (state != NULL) {
        kiln_simulated_free(&state->simulated);
    }
    return status;
}

void kiln_simulated_free(KilnSimulated *simulated)
{
    State *state = (State *)simulated;

    if (state == NULL)
        return;
    kiln_arena_release(&state->arena);
    free(state->workers);
    free(state);
}

/* Sweeps on a virtual clock: what runs when, stragglers, and what pruners and sweepers may ask. */
#include <math.h>
#include <string.h>

#include "kiln/search/simulate.h"
#include "tests/support/components/built_component.h"

enum { EPOCHS = 9 };

/* The loss falls to x, faster for some. */
static KilnSimulatedEpoch train(void *ctx, size_t trial, const KilnAxisValue *point, int64_t epoch)
{
    (void)ctx, (void)trial;
    return (KilnSimulatedEpoch) { .value = point[0].number + 1.0 / (double)epoch,
                                  .seconds = 2.0,
                                  .last = epoch == EPOCHS };
}

static const KilnAxis x = { .key = "x", .kind = KILN_AXIS_FLOAT, .low = 0.0, .high = 1.0 };
static const KilnAxis *const axes[] = { &x };
static const KilnSpace space = { .axes = axes, .count = 1 };
static const KilnObjective loss = { .metric = "loss", .mode = KILN_MODE_MIN };

static KilnSimulation simulation_of(const Built *sweeper, const Built *pruner, size_t workers)
{
    return (KilnSimulation) {
        .space = &space,
        .objective = &loss,
        .sweeper = sweeper->instance,
        .pruner = pruner != NULL ? pruner->instance : NULL,
        .workers = workers,
        .train = train,
    };
}

static Built build(KilnKind kind, const char *name, const char *option)
{
    Built built;
    KilnError err = { 0 };

    if (build_words(&built, kind, name, (char *[]) { (char *)option }, option != NULL, &err) < 0)
        fail_msg("%s", err.text);
    return built;
}

static KilnSimulated *run(const KilnSimulation *simulation)
{
    KilnSimulated *simulated;
    KilnError err = { 0 };

    if (kiln_simulate(simulation, &simulated, &err) < 0)
        fail_msg("%s", err.text);
    return simulated;
}

static void test_workers_share_time(void **state)
{
    Built sweeper = build(KILN_KIND_SWEEPER, "random", "n_trials=10");
    (void)state;

    for (size_t workers = 1; workers <= 5; workers += 4) {
        const KilnSimulation simulation = simulation_of(&sweeper, NULL, workers);
        KilnSimulated *simulated = run(&simulation);

        assert_int_equal(simulated->history.count, 10);
        assert_int_equal(simulated->epochs, 10 * EPOCHS);
        assert_true(fabs(simulated->seconds - 180.0 / (double)workers) < 1e-9);
        assert_true(fabs(simulated->busy - 180.0) < 1e-9);
        assert_int_equal(simulated->stopped, 0);
        for (size_t i = 0; i < 10; i++)
            assert_true(simulated->history.trials[simulated->best]->values[0] <=
                        simulated->history.trials[i]->values[0]);
        kiln_simulated_free(simulated);
    }
    built_free(&sweeper);
}

/* All events in order, at most `workers` trials at a time, and each stop has a reason. */
static void check_events(const KilnSimulated *simulated, size_t workers)
{
    size_t running = 0, stops = 0;
    double before = 0.0;

    for (size_t i = 0; i < simulated->n_events; i++) {
        const KilnSimulatedEvent *event = &simulated->events[i];
        const bool starts = event->kind == KILN_SIMULATED_START ||
                            event->kind == KILN_SIMULATED_RESUME;

        assert_true(event->time >= before);
        before = event->time;
        running = starts ? running + 1 : running - 1;
        assert_true(running <= workers);
        assert_true(event->worker < workers);
        stops += event->kind == KILN_SIMULATED_STOP;
        assert_int_equal(event->kind == KILN_SIMULATED_STOP, event->reason[0] != '\0');
    }
    assert_int_equal(running, 0);
    assert_int_equal(stops, simulated->stopped + simulated->resumed);
}

static void test_asha_stops_and_resumes(void **state)
{
    Built sweeper = build(KILN_KIND_SWEEPER, "random", "n_trials=27");
    Built pruner = build(KILN_KIND_PRUNER, "asha", NULL);
    (void)state;

    for (size_t workers = 1; workers <= 8; workers *= 2) {
        const KilnSimulation simulation = simulation_of(&sweeper, &pruner, workers);
        KilnSimulated *simulated = run(&simulation);

        assert_true(simulated->history.complete);
        assert_true(simulated->epochs < 27 * EPOCHS / 2);
        assert_true(simulated->stopped > 13);
        assert_true(simulated->resumed > 0);
        check_events(simulated, workers);
        /* The values of trials differ by the same in each epoch: the best one is found. */
        double least = 1.0;
        for (size_t i = 0; i < 27; i++)
            least = fmin(least, simulated->history.trials[i]->point[0].number);
        assert_true(simulated->history.trials[simulated->best]->point[0].number == least);
        kiln_simulated_free(simulated);
    }
    built_free(&pruner);
    built_free(&sweeper);
}

static void test_same_events_every_time(void **state)
{
    Built sweeper = build(KILN_KIND_SWEEPER, "tpe", "n_trials=30");
    Built pruner = build(KILN_KIND_PRUNER, "asha", NULL);
    KilnSimulation simulation = simulation_of(&sweeper, &pruner, 4);
    (void)state;

    simulation.straggle = 0.5;
    KilnSimulated *first = run(&simulation), *second = run(&simulation);
    assert_int_equal(first->n_events, second->n_events);
    for (size_t i = 0; i < first->n_events; i++) {
        const KilnSimulatedEvent *a = &first->events[i], *b = &second->events[i];

        assert_true(a->time == b->time && a->trial == b->trial && a->worker == b->worker);
        assert_string_equal(a->reason, b->reason);
    }
    simulation.seed = 1;
    KilnSimulated *other = run(&simulation);
    assert_true(other->seconds != first->seconds);
    kiln_simulated_free(first);
    kiln_simulated_free(second);
    kiln_simulated_free(other);
    built_free(&pruner);
    built_free(&sweeper);
}

static void test_stragglers_and_timeout(void **state)
{
    Built sweeper = build(KILN_KIND_SWEEPER, "random", "n_trials=1000");
    KilnSimulation simulation = simulation_of(&sweeper, NULL, 1);
    (void)state;

    simulation.straggle = 0.5;
    KilnSimulated *simulated = run(&simulation);
    /* The mean of |z| is the root of 2/pi. */
    const double slower = simulated->seconds / (1000 * EPOCHS * 2.0);
    assert_true(fabs(slower - 1.0 - 0.5 * sqrt(2.0 / acos(-1.0))) < 0.03);
    kiln_simulated_free(simulated);

    simulation.straggle = 0.0;
    simulation.timeout = 40.0;
    simulated = run(&simulation);
    assert_int_equal(simulated->history.count, 3); /* they start at 0, 18 and 36 */
    assert_true(fabs(simulated->seconds - 54.0) < 1e-9);
    kiln_simulated_free(simulated);
    built_free(&sweeper);
}

/* Trials of the first two rates reach the goal. */
static bool begin(void *ctx, size_t trial, size_t parent, KilnAxisValue *point)
{
    const size_t *most = ctx;

    assert_true(parent == KILN_NO_TRIAL || parent < trial);
    point[0].number = 0.5;
    return trial < *most;
}

static KilnSimulatedEpoch reach(void *ctx, size_t trial, const KilnAxisValue *point, int64_t epoch)
{
    (void)ctx;
    assert_true(point[0].number == 0.5);
    return (KilnSimulatedEpoch) {
        .value = (double)NAN, .seconds = 1.0, .last = epoch == 2, .goal = trial == 7
    };
}

static void test_begin_and_goal(void **state)
{
    Built sweeper = build(KILN_KIND_SWEEPER, "random", "n_trials=1000");
    KilnSimulation simulation = simulation_of(&sweeper, NULL, 3);
    size_t most = 5;
    (void)state;

    simulation.ctx = &most;
    simulation.begin = begin;
    simulation.train = reach;
    KilnSimulated *simulated = run(&simulation);
    assert_int_equal(simulated->history.count, 5); /* as many as begin() allows */
    assert_true(simulated->best == KILN_NO_TRIAL && simulated->goal == KILN_NO_TRIAL);
    kiln_simulated_free(simulated);
    most = 100;
    simulated = run(&simulation);
    assert_int_equal(simulated->goal, 7);
    assert_true(simulated->history.count < 12);
    kiln_simulated_free(simulated);
    built_free(&sweeper);
}

/* Each generation of 4 begins once the last one has ended, with the checkpoints of the better. */
static void test_pbt_waits_for_generations(void **state)
{
    Built sweeper = build(KILN_KIND_SWEEPER, "pbt", "population=4");
    const KilnSimulation simulation = simulation_of(&sweeper, NULL, 3);
    size_t children = 0;
    (void)state;

    KilnSimulated *simulated = run(&simulation);
    check_events(simulated, 3);
    for (size_t i = 0; i < simulated->history.count; i++)
        children += simulated->history.trials[i]->parent != KILN_NO_TRIAL;
    assert_true(children > 0);
    for (size_t i = 1; i < simulated->n_events; i++) {
        const KilnSimulatedEvent *event = &simulated->events[i];

        if (event->kind == KILN_SIMULATED_STOP)
            for (size_t j = 0; j < i; j++)
                assert_true(simulated->events[j].epoch <= event->epoch);
    }
    kiln_simulated_free(simulated);
    built_free(&sweeper);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_workers_share_time),
        cmocka_unit_test(test_asha_stops_and_resumes),
        cmocka_unit_test(test_same_events_every_time),
        cmocka_unit_test(test_stragglers_and_timeout),
        cmocka_unit_test(test_begin_and_goal),
        cmocka_unit_test(test_pbt_waits_for_generations),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

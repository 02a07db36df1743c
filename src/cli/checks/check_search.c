/* Checks a sweeper or pruner in simulated sweeps: it ends, and decides the same again, also in an
 * instance that has seen another sweep. */
#include <math.h>
#include <string.h>

#include "base/call.h"
#include "cli/checks/checks.h"
#include "kiln/search/simulate.h"

enum { EPOCHS = 6, TRIALS = 60 /* at most */, WORKERS = 3, AXES = 4 };

static const char *const choices[] = { "a=x", "a=y", "a=z" };
static const char *const steps[] = { "b=1", "b=2", "b=3", "b=4" };
static const KilnAxis axes[AXES] = {
    { .key = "a", .kind = KILN_AXIS_CHOICE, .overrides = choices, .count = 3, .leader = 0 },
    { .key = "b",
      .kind = KILN_AXIS_RANGE,
      .overrides = steps,
      .count = 4,
      .low = 1.0,
      .high = 4.0 },
    { .key = "c", .kind = KILN_AXIS_FLOAT, .low = 1e-3, .high = 1.0, .log = true },
    { .key = "d", .kind = KILN_AXIS_INT, .low = 1.0, .high = 16.0 },
};

typedef struct Search {
    KilnCase *self;
    KilnAxis list[AXES];
    const KilnAxis *pointers[AXES];
    KilnSpace space;
} Search;

/* The axes of these kinds. */
static void make_space(Search *search, unsigned kinds)
{
    size_t n = 0;

    for (size_t i = 0; i < AXES; i++)
        if ((axes[i].kind & kinds) != 0) {
            search->list[n] = axes[i];
            search->list[n].leader = n;
            search->pointers[n] = &search->list[n];
            n++;
        }
    search->space = (KilnSpace) { .axes = search->pointers, .count = n };
}

static bool begin(void *ctx, size_t trial, size_t parent, KilnAxisValue *point)
{
    (void)ctx, (void)parent, (void)point;
    return trial < TRIALS;
}

static KilnSimulatedEpoch train(void *ctx, size_t trial, const KilnAxisValue *point, int64_t epoch)
{
    const Search *search = ctx;
    double value = 1.0 / (double)epoch + 0.001 * (double)(trial % 7);

    for (size_t i = 0; i < search->space.count; i++) {
        const KilnAxis *axis = search->space.axes[i];
        const bool is_number = axis->kind == KILN_AXIS_FLOAT || axis->kind == KILN_AXIS_INT;

        value += is_number ? fabs(point[i].number / axis->high - 0.3)
                           : 0.1 * (double)point[i].index;
    }
    return (KilnSimulatedEpoch) { .value = value,
                                  .seconds = 1.0 + (double)(trial % 3),
                                  .last = epoch == EPOCHS };
}

static bool simulate(Search *search, KilnInstance *sweeper, KilnInstance *pruner,
                     KilnSimulated **ret)
{
    static const KilnObjective loss = { .metric = "loss", .mode = KILN_MODE_MIN };
    const KilnSimulation simulation = {
        .space = &search->space,
        .objective = &loss,
        .sweeper = sweeper,
        .pruner = pruner,
        .workers = WORKERS,
        .ctx = search,
        .begin = begin,
        .train = train,
    };
    KilnError err = { 0 };

    if (kiln_simulate(&simulation, ret, &err) >= 0)
        return true;
    kiln_case_fail_with(search->self, &err);
    return false;
}

static bool is_same(const KilnSimulated *a, const KilnSimulated *b)
{
    if (a->n_events != b->n_events)
        return false;
    for (size_t i = 0; i < a->n_events; i++) {
        const KilnSimulatedEvent *x = &a->events[i], *y = &b->events[i];

        if (x->time != y->time || x->kind != y->kind || x->trial != y->trial ||
            (x->value != y->value && !(isnan(x->value) && isnan(y->value))) ||
            strcmp(x->reason, y->reason) != 0)
            return false;
    }
    return true;
}

/* The sweep in one instance, in another one, and again in the first. */
static void check_sweeps(Search *search, const KilnCaseInstance checked[2], KilnInstance *sweeper)
{
    static const int order[] = { 0, 1, 0 };
    KilnCase *self = search->self;
    KilnSimulated *first = NULL;

    for (size_t i = 0; i < KILN_COUNT(order) && !kiln_case_failed(self); i++) {
        KilnInstance *one = checked[order[i]].instance;
        KilnSimulated *simulated = NULL;

        if (!(sweeper != NULL ? simulate(search, sweeper, one, &simulated)
                              : simulate(search, one, NULL, &simulated)))
            break;
        if (first != NULL && !is_same(first, simulated))
            kiln_case_fail(self,
                           "answer from the options and the history alone: a resumed sweep builds "
                           "a new instance",
                           "the same sweep goes another way the %s time",
                           i == 1 ? "second" : "third");
        if (first == NULL)
            first = simulated;
        else
            kiln_simulated_free(simulated);
    }
    if (first != NULL)
        kiln_case_pass(self, "%zu trials, %zu stopped, %lld epochs; three times the same",
                       first->history.count, first->stopped, (long long)first->epochs);
    kiln_simulated_free(first);
}

/* Whether the sweeper accepts the space. */
static bool accepts(const Search *search, const KilnInstance *sweeper)
{
    const KilnSweeperOps *ops = kiln_instance_component(sweeper)->ops.sweeper;
    KilnError err = { 0 };

    if (search->space.count == 0)
        kiln_case_fail(search->self, "set `axes` (KILN_AXIS_FLOAT, ...)",
                       "it searches no kind of axis");
    else if (ops->check != NULL &&
             KILN_CALLED(sweeper, "check", ops->check(sweeper, &search->space, &err), &err) < 0)
        kiln_case_skip(search->self, "add sweeper.OPTION=VALUE to the command",
                       "it refuses a space of %zu axes: %s", search->space.count, err.text);
    else
        return true;
    return false;
}

void kiln_contract_search(KilnCase *self)
{
    const bool prunes = self->component->kind == KILN_KIND_PRUNER;
    KilnCaseInstance checked[2] = { { 0 } }, sweeper = { 0 };
    Search search = { .self = self };
    KilnError err = { 0 };

    if (!kiln_case_open(self, &checked[0]))
        return;
    if (!kiln_case_open(self, &checked[1]))
        return kiln_case_close(&checked[0]);
    if (prunes && kiln_case_build_other(self, KILN_KIND_SWEEPER, "random", &sweeper, &err) < 0)
        kiln_case_fail_with(self, &err);
    make_space(&search, prunes ? KILN_AXIS_FLOAT : self->component->ops.sweeper->axes);
    if (!kiln_case_failed(self) && (prunes || accepts(&search, checked[0].instance)))
        check_sweeps(&search, checked, sweeper.instance);
    kiln_case_close(&sweeper);
    kiln_case_close(&checked[1]);
    kiln_case_close(&checked[0]);
}

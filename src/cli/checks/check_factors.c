/* Checks a scheduler over a made-up run: factors that are numbers, the same again, and its state.
 */
#include <math.h>
#include <string.h>

#include "base/call.h"
#include "cli/checks/checks.h"
#include "kiln/module.h"
#include "train/checkpoint/component_state.h"

enum { EPOCHS = 12, EPOCH_STEPS = 5, STEPS = EPOCHS * EPOCH_STEPS };

static KilnProgress progress(int64_t step)
{
    return (KilnProgress) { .step = step,
                            .epoch = step / EPOCH_STEPS,
                            .steps_per_epoch = EPOCH_STEPS,
                            .total_steps = STEPS,
                            .total_epochs = EPOCHS };
}

static double factor(const KilnInstance *self, int64_t step)
{
    const KilnProgress at = progress(step);

    kiln_call_enter(self, "factor");
    const double value = kiln_instance_component(self)->ops.scheduler->factor(self, &at);
    kiln_call_leave();
    return value;
}

/* Report a value at the end of an epoch, which falls and then stays. */
static void observe(KilnInstance *self, int64_t step)
{
    const KilnSchedulerOps *ops = kiln_instance_component(self)->ops.scheduler;
    const int64_t epoch = step / EPOCH_STEPS;

    if (ops->observe == NULL || step % EPOCH_STEPS != EPOCH_STEPS - 1)
        return;
    kiln_call_enter(self, "observe");
    ops->observe(self, epoch < 3 ? 3.0 - (double)epoch : 1.0, false);
    kiln_call_leave();
}

static void check_factor(KilnCase *self, const KilnInstance *scheduler, int64_t step, double value)
{
    const KilnSchedulerOps *ops = self->component->ops.scheduler;

    if (!isfinite(value) || value < 0.0)
        return kiln_case_fail(self, "factors are finite and at least 0",
                              "the factor of step %lld is %g", (long long)step, value);
    if (value != factor(scheduler, step))
        return kiln_case_fail(self, "only `observe` may change the state",
                              "the factor of step %lld differs when it is asked again",
                              (long long)step);
    if (ops->by_epoch != NULL && ops->by_epoch(scheduler) && step % EPOCH_STEPS > 0 &&
        value != factor(scheduler, step - 1))
        kiln_case_fail(self, "",
                       "`by_epoch` says that factors stay within an epoch, and that of "
                       "step %lld differs from the one before",
                       (long long)step);
}

/* Save the state of one instance and load it into another; false: it failed. */
static bool move_state(KilnCase *self, KilnInstance *from, KilnInstance *to)
{
    const KilnSchedulerOps *ops = self->component->ops.scheduler;
    KilnState state = { .path = "scheduler", .object = json_object() };
    KilnError err = { 0 };

    if (ops->state_dict == NULL || ops->load_state_dict == NULL || state.object == NULL) {
        kiln_case_fail(self, "set observe, monitor, state_dict and load_state_dict, or none",
                       "it observes a metric, but does not save what it has seen");
        json_decref(state.object);
        return false;
    }
    ops->state_dict(from, &state);
    if (KILN_CALLED(to, "load_state_dict", ops->load_state_dict(to, &state, &err), &err) < 0)
        kiln_case_fail_with(self, &err);
    kiln_state_release(&state);
    json_decref(state.object);
    return !kiln_case_failed(self);
}

/* A schedule with state continues in another instance as in the first one. */
static void check_state(KilnCase *self, double *factors)
{
    enum { HALF = STEPS / 2 };
    KilnCaseInstance first, second;

    if (!kiln_case_open(self, &first))
        return;
    if (!kiln_case_open(self, &second))
        return kiln_case_close(&first);
    for (int64_t step = 0; step < HALF; step++) {
        (void)factor(first.instance, step);
        observe(first.instance, step);
    }
    bool whole = move_state(self, first.instance, second.instance);
    for (int64_t step = HALF; step < STEPS && whole; step++) {
        whole = factor(second.instance, step) == factors[step];
        if (!whole)
            kiln_case_fail(self, "save everything that `observe` changes",
                           "after its state was saved and loaded, the factor of step %lld differs",
                           (long long)step);
        observe(second.instance, step);
    }
    kiln_case_close(&second);
    kiln_case_close(&first);
}

void kiln_contract_factors(KilnCase *self)
{
    const KilnSchedulerOps *ops = self->component->ops.scheduler;
    const KilnProgress start = progress(0);
    KilnCaseInstance built;
    KilnError err = { 0 };
    double factors[STEPS];

    if (!kiln_case_open(self, &built))
        return;
    if (ops->check != NULL &&
        KILN_CALLED(built.instance, "check", ops->check(built.instance, &start, &err), &err) < 0) {
        kiln_case_skip(self, "add scheduler.OPTION=VALUE to the command",
                       "it refuses a run of %d epochs of %d steps: %s", EPOCHS, EPOCH_STEPS,
                       err.text);
        return kiln_case_close(&built);
    }
    for (int64_t step = 0; step < STEPS && !kiln_case_failed(self); step++) {
        factors[step] = factor(built.instance, step);
        check_factor(self, built.instance, step, factors[step]);
        observe(built.instance, step);
    }
    if (ops->observe != NULL && !kiln_case_failed(self))
        check_state(self, factors);
    kiln_case_pass(self, "%d steps%s", STEPS,
                   ops->observe != NULL ? "; its state can be saved and loaded" : "");
    kiln_case_close(&built);
}

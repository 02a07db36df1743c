/* Groups the calls of a plan by layer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/graph/graph_view.h"

const char *kiln_step_phase_name(KilnStepPhase phase)
{
    static const char *const names[] = { "forward", "backward", "update" };

    return names[phase];
}

KilnStepPhase kiln_step_phase(const KilnCallReport *call)
{
    return !call->backward ? KILN_STEP_FORWARD
           : call->update  ? KILN_STEP_UPDATE
                           : KILN_STEP_BACKWARD;
}

double kiln_call_seconds(const KilnCallReport *call)
{
    return call->runs > 0 ? call->seconds / (double)call->runs : 0.0;
}

/* ---- Groups --------------------------------------------------------------------------- */

/* The layer of the nearest call of the same phase that has one, before (step -1) or after (step 1)
 * call i; NULL: none. */
static const char *layer_near(const KilnStepView *view, size_t i, int step)
{
    const KilnStepPhase phase = kiln_step_phase(&view->calls[i]);

    for (long k = (long)i + step; k >= 0 && k < (long)view->n_calls; k += step)
        if (kiln_step_phase(&view->calls[k]) == phase && view->calls[k].layer[0] != '\0')
            return view->calls[k].layer;
    return NULL;
}

/* An operation between two layers belongs to the first of them, and so does its gradient, which
 * comes before that layer's. Operations after the last layer are the loss. */
static const char *layer_of(const KilnStepView *view, size_t i)
{
    const KilnStepPhase phase = kiln_step_phase(&view->calls[i]);
    const int onward = phase == KILN_STEP_FORWARD ? 1 : -1;

    if (phase == KILN_STEP_UPDATE)
        return "optimizer";
    if (view->calls[i].layer[0] != '\0')
        return view->calls[i].layer;
    const char *first = layer_near(view, i, -onward), *second = layer_near(view, i, onward);
    return second == NULL ? "loss and metrics" : first != NULL ? first : second;
}

/* The index of the group of a layer; adds it if it is new. */
static size_t group_of(KilnStepView *view, const char *layer)
{
    int64_t depth = view->depth;
    char *name = view->groups[view->n_groups].name; /* there is room for one more */
    size_t i = 0;

    snprintf(name, KILN_GROUP_NAME, "%s", layer);
    for (char *dot = name; (dot = strchr(dot, '.')) != NULL; dot++)
        if (--depth == 0) {
            *dot = '\0';
            break;
        }
    while (strcmp(view->groups[i].name, name) != 0)
        i++;
    view->n_groups += i == view->n_groups;
    return i;
}

static void sort_into_groups(KilnStepView *view)
{
    for (size_t i = 0; i < view->n_calls; i++) {
        const KilnCallReport *call = &view->calls[i];
        const size_t group = group_of(view, layer_of(view, i));

        view->group[i] = (int)group;
        view->groups[group].seconds[kiln_step_phase(call)] += kiln_call_seconds(call);
        view->groups[group].calls[kiln_step_phase(call)]++;
        view->seconds += kiln_call_seconds(call);
    }
}

bool kiln_step_view_fill(KilnStepView *view, const KilnPlan *plan)
{
    const size_t n = kiln_plan_calls(plan);

    view->plan = plan;
    view->calls = kiln_plan_report(plan);
    view->group = calloc(n + 1, sizeof(*view->group));
    view->groups = calloc(n + 1, sizeof(*view->groups));
    if (view->calls == NULL || view->group == NULL || view->groups == NULL)
        return false;
    view->n_calls = n;
    sort_into_groups(view);
    return true;
}

void kiln_step_view_release(KilnStepView *view)
{
    free(view->calls);
    free(view->group);
    free(view->groups);
    *view = (KilnStepView) { 0 };
}

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

/* ---- Names ------------------------------------------------------------------------- */

static const char outside[] = "loss and metrics", optimizer[] = "optimizer";

static void cut(const char *layer, int depth, char *ret)
{
    snprintf(ret, KILN_GROUP_NAME, "%s", layer);
    for (char *dot = ret; depth > 0 && (dot = strchr(dot, '.')) != NULL; dot++)
        if (--depth == 0) {
            *dot = '\0';
            return;
        }
}

/* The layer of the nearest call of the same phase that has one, before (step -1) or after (step 1)
 * call i; NULL: none. */
static const char *layer_near(const KilnStepView *view, size_t i, int step)
{
    KilnStepPhase phase = kiln_step_phase(&view->calls[i]);

    for (long k = (long)i + step; k >= 0 && k < (long)view->n_calls; k += step) {
        const KilnCallReport *call = &view->calls[k];

        if (kiln_step_phase(call) != phase)
            continue;
        if (call->layer[0] != '\0')
            return call->layer;
    }
    return NULL;
}

/* An operation between two layers belongs to the first of them, and so does its gradient, which
 * comes before that layer's. Operations after the last layer are the loss. */
static void name_group(const KilnStepView *view, size_t i, int depth, char *ret)
{
    const KilnCallReport *call = &view->calls[i];
    KilnStepPhase phase = kiln_step_phase(call);
    const char *layer = call->layer;

    if (phase == KILN_STEP_UPDATE) {
        snprintf(ret, KILN_GROUP_NAME, "%s", optimizer);
        return;
    }
    if (layer[0] == '\0') {
        const char *before = layer_near(view, i, -1), *after = layer_near(view, i, 1);

        layer = phase == KILN_STEP_FORWARD ? (after == NULL    ? NULL
                                              : before != NULL ? before
                                                               : after)
                                           : (before == NULL  ? NULL
                                              : after != NULL ? after
                                                              : before);
    }
    if (layer != NULL)
        cut(layer, depth, ret);
    else
        snprintf(ret, KILN_GROUP_NAME, "%s", outside);
}

/* ---- Groups --------------------------------------------------------------------------- */

static size_t group_of(KilnStepView *view, const char *name)
{
    size_t i = 0;

    while (i < view->n_groups && strcmp(view->groups[i].name, name) != 0)
        i++;
    if (i == view->n_groups) {
        snprintf(view->groups[i].name, KILN_GROUP_NAME, "%s", name);
        view->n_groups++;
    }
    return i;
}

static void sort_into_groups(KilnStepView *view, int depth)
{
    char name[KILN_GROUP_NAME];

    for (size_t i = 0; i < view->n_calls; i++) {
        const KilnCallReport *call = &view->calls[i];
        KilnStepPhase phase = kiln_step_phase(call);

        name_group(view, i, depth, name);
        size_t group = group_of(view, name);
        view->group[i] = (int)group;
        view->groups[group].seconds[phase] += kiln_call_seconds(call);
        view->groups[group].calls[phase]++;
        view->seconds += kiln_call_seconds(call);
    }
}

bool kiln_step_view(const KilnPlan *plan, int depth, KilnStepView *ret)
{
    size_t n = kiln_plan_calls(plan);
    KilnStepView view = { .plan = plan, .n_calls = n };

    view.calls = kiln_plan_report(plan);
    view.group = calloc(n + 1, sizeof(*view.group));
    view.groups = calloc(n + 1, sizeof(*view.groups));
    if (view.calls == NULL || view.group == NULL || view.groups == NULL) {
        kiln_step_view_release(&view);
        return false;
    }
    sort_into_groups(&view, depth);
    *ret = view;
    return true;
}

void kiln_step_view_release(KilnStepView *view)
{
    free(view->calls);
    free(view->group);
    free(view->groups);
    *view = (KilnStepView) { 0 };
}

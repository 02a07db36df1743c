/* Declares names and accumulates their values over an epoch; train/metrics/metric_values.c holds
 * what becomes of them. */
#include "train/metrics/logged_names.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

void kiln_logged_names_release(KilnLoggedNames *names)
{
    for (size_t i = 0; i < names->n; i++)
        free(names->list[i].name);
    free(names->list);
    *names = (KilnLoggedNames) { 0 };
}

/* ---- Declaring -------------------------------------------------------------- */

/* The number of a name; -1: it is new. */
static int find(KilnLoggedNames *names, KilnPhase phase, const char *name)
{
    for (size_t i = 0; i < names->n; i++) {
        const size_t at = (names->next + i) % names->n;

        if (names->list[at].phase == phase && strcmp(names->list[at].name, name) == 0) {
            names->next = at + 1;
            return (int)at;
        }
    }
    return -1;
}

int kiln_logged_names_declare(KilnLoggedNames *names, KilnPhase phase, const char *name,
                              unsigned flags)
{
    const int found = find(names, phase, name);

    if (found >= 0) {
        KilnLoggedName *known = &names->list[found];

        if (known->flags != flags) /* its values may have other names now */
            known->step_value = known->epoch_value = KILN_NO_VALUE;
        known->flags = flags;
        return found;
    }
    char *copy = kiln_strdup(name);
    if (copy == NULL || !KILN_RESERVE(names->list, names->capacity, names->n + 1)) {
        free(copy);
        return -1;
    }
    names->list[names->n] = (KilnLoggedName) {
        .name = copy,
        .phase = phase,
        .flags = flags,
        .step_value = KILN_NO_VALUE,
        .epoch_value = KILN_NO_VALUE,
    };
    return (int)names->n++;
}

bool kiln_logged_name_is_forked(const KilnLoggedName *name)
{
    return (name->flags & KILN_LOG_STEP) != 0 && (name->flags & KILN_LOG_EPOCH) != 0;
}

const char *kiln_logged_name_value(const KilnLoggedName *name, unsigned by,
                                   char buf[KILN_METRIC_NAME])
{
    snprintf(buf, KILN_METRIC_NAME, "%s%s", name->name,
             !kiln_logged_name_is_forked(name) ? ""
             : by == KILN_LOG_STEP             ? "_step"
                                               : "_epoch");
    return buf;
}

bool kiln_logged_name_matches(const KilnLoggedName *declared, const char *name)
{
    char buf[KILN_METRIC_NAME];

    return strcmp(declared->name, name) == 0 ||
           strcmp(kiln_logged_name_value(declared, KILN_LOG_STEP, buf), name) == 0 ||
           strcmp(kiln_logged_name_value(declared, KILN_LOG_EPOCH, buf), name) == 0;
}

/* ---- Accumulating ------------------------------------------------------------- */

void kiln_logged_name_accumulate(KilnLoggedName *name, double value, double weight)
{
    const bool first = !(name->weight > 0.0);

    if ((name->flags & KILN_LOG_SUM) != 0)
        name->sum += value;
    else if ((name->flags & KILN_LOG_MIN) != 0)
        name->sum = first || value < name->sum || isnan(value) ? value : name->sum;
    else if ((name->flags & KILN_LOG_MAX) != 0)
        name->sum = first || value > name->sum || isnan(value) ? value : name->sum;
    else
        name->sum += value * weight;
    name->weight += weight;
}

void kiln_logged_name_merge(KilnLoggedName *name, double sum, double weight)
{
    const bool extreme = (name->flags & (KILN_LOG_MIN | KILN_LOG_MAX)) != 0;

    if (!(weight > 0.0))
        return;
    if (extreme)
        kiln_logged_name_accumulate(name, sum, weight);
    else {
        name->sum += sum;
        name->weight += weight;
    }
}

double kiln_logged_name_result(const KilnLoggedName *name)
{
    const bool mean = (name->flags & (KILN_LOG_MIN | KILN_LOG_MAX | KILN_LOG_SUM)) == 0;

    return mean ? name->sum / name->weight : name->sum;
}

void kiln_logged_names_reset(KilnLoggedNames *names, KilnPhase phase)
{
    for (size_t i = 0; i < names->n; i++)
        if (names->list[i].phase == phase)
            names->list[i].sum = names->list[i].weight = 0.0;
}

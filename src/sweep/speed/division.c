/* Lists divisions of the processors, and chooses the fastest one. */
#include "sweep/speed/division.h"

#include <math.h>

/* Fewer jobs take less memory, and a job ends sooner: worth this fraction of the speed. */
static const double close_enough = 0.97;

static void add(KilnDivisions *divisions, size_t n_jobs, size_t threads)
{
    if (divisions->count < KILN_MAX_DIVISIONS)
        divisions->items[divisions->count++] =
            (KilnDivision) { .n_jobs = n_jobs, .threads = threads, .steps_per_s = (double)NAN };
}

void kiln_divisions_list(size_t processors, size_t threads, size_t most, KilnDivisions *ret)
{
    const size_t room = threads > 0 ? processors / threads : processors;
    size_t last = room < most ? room : most;

    ret->count = 0;
    if (last < 1)
        last = 1;
    if (threads > 0)
        for (size_t n_jobs = 1; n_jobs < last; n_jobs *= 2)
            add(ret, n_jobs, threads);
    else
        for (size_t each = processors; each > 0 && processors / each < last; each /= 2)
            add(ret, processors / each, each);
    const size_t share = processors / last;
    add(ret, last, threads > 0 ? threads : share > 0 ? share : 1);
}

/* Steps per second until the last job ends: 3 jobs, 2 at a time, use three quarters of the time of
 * two. */
static double speed_of(const KilnDivisions *divisions, const KilnDivision *division)
{
    const double all = (double)divisions->all_jobs, at_once = (double)division->n_jobs;

    if (divisions->all_jobs == SIZE_MAX)
        return division->steps_per_s;
    return division->steps_per_s * all / (ceil(all / at_once) * at_once);
}

const KilnDivision *kiln_divisions_fastest(const KilnDivisions *divisions)
{
    double fastest = 0.0;

    for (size_t i = 0; i < divisions->count; i++) /* fmax leaves out NaN */
        fastest = fmax(fastest, speed_of(divisions, &divisions->items[i]));
    for (size_t i = 0; i < divisions->count; i++)
        if (speed_of(divisions, &divisions->items[i]) >= close_enough * fastest)
            return &divisions->items[i];
    return NULL;
}

/* ---- Text ----------------------------------------------------------------------------------- */

static void append_result(const KilnDivision *division, KilnText *text)
{
    if (division->threads == 1)
        kiln_text_append(text, " with a thread");
    else
        kiln_text_printf(text, " with %zu threads", division->threads);
    kiln_text_append(text, division->n_jobs > 1 ? " each: " : ": ");
    if (division->failed[0] != '\0')
        kiln_text_printf(text, "failed (%s)", division->failed);
    else if (division->steps_per_s >= 100.0)
        kiln_text_printf(text, "%.0f steps/s", division->steps_per_s);
    else
        kiln_text_printf(text, "%.3g steps/s", division->steps_per_s);
}

void kiln_divisions_text(const KilnDivisions *divisions, const KilnDivision *chosen, KilnText *text)
{
    if (chosen->failed[0] != '\0') {
        kiln_text_printf(text, "one job at a time, as no speed could be measured: %s",
                         chosen->failed);
        return;
    }
    if (chosen->n_jobs > 1)
        kiln_text_printf(text, "%zu jobs at a time", chosen->n_jobs);
    else
        kiln_text_append(text, "one job at a time");
    append_result(chosen, text);
    for (size_t i = 0; i < divisions->count; i++) {
        const KilnDivision *division = &divisions->items[i];

        if (division == chosen)
            continue;
        if (division->n_jobs > 1)
            kiln_text_printf(text, "; %zu", division->n_jobs);
        else
            kiln_text_append(text, "; one");
        append_result(division, text);
        if (division->steps_per_s > chosen->steps_per_s / close_enough)
            kiln_text_printf(text, ", but %zu jobs would end later", divisions->all_jobs);
    }
}

/* The schedule of a job that began with the weights of another one: the jobs that trained them, as
 * the phases of sweeper/schedule. */
#include <string.h>

#include "base/json.h"
#include "base/system/file.h"
#include "config/yaml/yaml_writer.h"
#include "sweep/report/sweep_report.h"

enum { MAX_PHASES = 10000 };

/* The jobs of a schedule, the first phase first. */
typedef struct Lineage {
    const KilnSweepReport *report;
    const KilnJob **jobs;
    int64_t *until; /* epochs; of all but the last */
    size_t count;
} Lineage;

/* Finished epochs of the checkpoint from which a job started; -1: it can't be read. */
static int64_t start_epoch(const KilnSweepReport *report, const KilnJob *job)
{
    KilnText path = { 0 };
    json_t *state = NULL;
    int64_t epoch = -1;

    kiln_text_printf(&path, "%s/%s/.kiln/start/state.json", report->sweep.path, job->dir);
    if (!path.failed && job->dir != NULL && kiln_json_read(path.data, &state, NULL) >= 0 &&
        json_is_integer(json_object_get(state, "epoch")))
        epoch = json_integer_value(json_object_get(state, "epoch"));
    json_decref(state);
    kiln_text_release(&path);
    return epoch;
}

static KilnStatus find(Lineage *lineage, size_t number, KilnArena *arena, KilnError *err)
{
    const KilnJob *jobs = lineage->report->sweep.jobs.items, *job = &jobs[number];

    for (lineage->count = 1; job->parent > 0 && lineage->count < MAX_PHASES; lineage->count++)
        job = &jobs[job->parent - 1];
    lineage->jobs = kiln_arena_alloc(arena, lineage->count * sizeof(*lineage->jobs));
    lineage->until = kiln_arena_alloc(arena, lineage->count * sizeof(*lineage->until));
    if (lineage->jobs == NULL || lineage->until == NULL)
        return kiln_error_nomem(err, lineage->count);
    job = &jobs[number];
    for (size_t i = lineage->count; i-- > 0; job = &jobs[job->parent - 1]) {
        lineage->jobs[i] = job;
        if (i == 0)
            break;
        lineage->until[i - 1] = start_epoch(lineage->report, job);
        if (lineage->until[i - 1] < 1)
            return kiln_error_set(
                err, KILN_E_IO,
                "%s/%s/.kiln/start/state.json: the checkpoint from which job #%zu "
                "began can't be read; restore the folder",
                lineage->report->sweep.dir, job->dir != NULL ? job->dir : "", (size_t)(job - jobs));
    }
    return KILN_OK;
}

/* Is the override the same in all phases? */
static bool is_constant(const Lineage *lineage, size_t override)
{
    for (size_t i = 1; i < lineage->count; i++)
        if (strcmp(lineage->jobs[i]->overrides[override], lineage->jobs[0]->overrides[override]) !=
            0)
            return false;
    return true;
}

/* A param for each override that differs: "  lr: zip(0.1,0.12)". */
static void put_params(const Lineage *lineage, KilnText *text)
{
    for (size_t n = 0; lineage->jobs[0]->overrides[n] != NULL; n++) {
        const char *key, *value;
        KilnText values = { 0 };
        const size_t length = kiln_override_split(lineage->jobs[0]->overrides[n], &key, &value);

        if (is_constant(lineage, n))
            continue;
        for (size_t i = 0; i < lineage->count; i++) {
            (void)kiln_override_split(lineage->jobs[i]->overrides[n], &key, &value);
            kiln_text_printf(&values, "%s%s", i > 0 ? "," : "zip(", value);
        }
        kiln_text_char(&values, ')');
        kiln_text_printf(text, "      %.*s: ", (int)length, key);
        kiln_write_string(text, values.data != NULL ? values.data : "");
        kiln_text_char(text, '\n');
        text->failed = text->failed || values.failed;
        kiln_text_release(&values);
    }
}

static size_t count_overrides(const KilnJob *job)
{
    size_t n = 0;

    while (job->overrides[n] != NULL)
        n++;
    return n;
}

KilnStatus kiln_sweep_report_put_schedule(const KilnSweepReport *report, size_t number,
                                          KilnArena *arena, KilnText *text, KilnError *err)
{
    Lineage lineage = { .report = report };
    KilnStatus status = find(&lineage, number, arena, err);

    for (size_t i = 1; status >= 0 && i < lineage.count; i++)
        if (count_overrides(lineage.jobs[i]) != count_overrides(lineage.jobs[0]))
            status = kiln_error_set(err, KILN_E_TYPE,
                                    "job #%zu has other keys than the job from which it began, so "
                                    "there is no schedule of its values",
                                    (size_t)(lineage.jobs[i] - report->sweep.jobs.items));
    if (status < 0)
        return status;
    kiln_text_append(text, "# Its weights come from others: this trains them, one phase after the "
                           "other.\nkiln:\n  mode: MULTIRUN\n  sweeper:\n    _target_: "
                           "sweeper/schedule\n    until: [");
    for (size_t i = 0; i + 1 < lineage.count; i++)
        kiln_text_printf(text, "%s%lld", i > 0 ? ", " : "", (long long)lineage.until[i]);
    kiln_text_append(text, "] # epochs\n    params:\n");
    put_params(&lineage, text);
    return KILN_OK;
}

/* Telling the user when loading is the bottleneck, from what the loader measured. */
#include "train/loader/bottleneck.h"

#include "base/call.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Waiting counts from this share of the time on, and from this long. */
static const double notable_share = 0.2, notable_s = 1.0;

enum { WORKERS_MOST = 256 }; /* that trainer.num_workers allows */

/* The workers that would keep up: each batch takes fill_s / filled of one of them, and the steps
 * take one every (seconds - waited) / batches. 0: no number would. */
static int workers_needed(const KilnLoadingRate *schedule)
{
    const KilnLoaderTimes *times = &schedule->times;
    const double step_s = (schedule->seconds - times->waited_s) / (double)times->taken;
    const double batch_s = times->fill_s / (double)times->filled;
    const double needed = ceil(batch_s / step_s);

    return needed > WORKERS_MOST        ? 0
           : needed > schedule->workers ? (int)needed
                                        : schedule->workers + 1;
}

bool kiln_loading_advice(const KilnLoadingRate *schedule, bool cache, char *ret, size_t room)
{
    const KilnLoaderTimes *times = &schedule->times;

    if (times->taken < 1 || times->filled < 1 || times->waited_s < notable_s ||
        times->waited_s < notable_share * schedule->seconds)
        return false;
    const int needed = workers_needed(schedule);
    const double busy = times->fill_s > 0.0 ? times->cpu_s / times->fill_s : 0.0; /* of a core */
    int length = snprintf(
        ret, room,
        "the steps waited for data %.0f %% of the epoch: a batch takes %.3g ms to load and %.3g ms "
        "to train on",
        100.0 * times->waited_s / schedule->seconds, 1e3 * times->fill_s / (double)times->filled,
        1e3 * (schedule->seconds - times->waited_s) / (double)times->taken);
    char *end = ret + (length < 0 ? 0 : (size_t)length < room ? (size_t)length : room - 1);
    const size_t left = room - (size_t)(end - ret);
    if (needed > 0 && busy * (double)needed <= (double)schedule->processors)
        snprintf(end, left, "; trainer.num_workers=%d would keep up (now %d)%s", needed,
                 schedule->workers, cache ? ", or datamodule.cache=DIR" : "");
    else if (schedule->workers < schedule->processors)
        snprintf(end, left, "; trainer.num_workers=%d would help (now %d)%s", schedule->processors,
                 schedule->workers, cache ? ", datamodule.cache=DIR more" : "");
    else
        snprintf(end, left,
                 "; more workers would not help, as there are %d processors: make samples cheaper "
                 "to read%s",
                 schedule->processors,
                 cache ? " (datamodule.cache=DIR)" : " (smaller files, fewer transforms)");
    return true;
}

static void say(void *ctx, const char *message)
{
    KilnTrainer *trainer = ctx;

    kiln_output_print(&trainer->output, "warning: %s", message);
}

/* Whether the data module can keep what it decoded, and is not told to yet. */
static bool could_cache(const KilnInstance *datamodule)
{
    const char *opts = kiln_opts(datamodule);

    for (const KilnField *f = kiln_instance_component(datamodule)->fields;
         f != NULL && f->name != NULL; f++)
        if (strcmp(f->name, "cache") == 0)
            return f->type == KILN_TYPE_PATH && f->optional &&
                   *(char *const *)(opts + f->offset) == NULL;
    return false;
}

/* Processors that the process may use, as far as known. */
static int processors_of(const KilnTrainer *trainer)
{
    const KilnProcessors *have = &trainer->processors;
    const int n = have->allowed > 0 ? have->allowed : have->threads;

    return have->quota < (double)n ? (int)ceil(have->quota) : n;
}

void kiln_loading_report(KilnTrainer *trainer, KilnLoader *loader, double seconds)
{
    const KilnDataModuleOps *ops = kiln_instance_component(trainer->datamodule)->ops.datamodule;
    KilnLoadingRate schedule = {
        .seconds = seconds,
        .workers = (int)trainer->options.trainer->num_workers,
        .processors = processors_of(trainer),
    };
    char line[512];

    if (ops->report != NULL) {
        kiln_call_enter(trainer->datamodule, "report");
        ops->report(trainer->datamodule, say, trainer);
        kiln_call_leave();
    }
    kiln_loader_times(loader, &schedule.times);
    trainer->timing.waited_s += schedule.times.waited_s;
    if (trainer->data.bottleneck_reported ||
        !kiln_loading_advice(&schedule, could_cache(trainer->datamodule), line, sizeof(line)))
        return;
    trainer->data.bottleneck_reported = true;
    kiln_output_print(&trainer->output, "%s", line);
}

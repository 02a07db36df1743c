/* Detects from the loader's times that data loading is the bottleneck, and advises. */
#include "train/loader/bottleneck.h"

#include "base/call.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Advice needs at least this fraction of the epoch and this many seconds of waiting. */
static const double min_fraction = 0.2, min_wait_s = 1.0;

enum { MAX_WORKERS = 256 }; /* that trainer.num_workers allows */

/* The number of workers that keeps up: a batch takes one of them fill_s / filled seconds, and
 * training takes a batch every (seconds - waited) / batches. 0: more than allowed. */
static int workers_needed(const KilnLoadingRate *rate)
{
    const KilnLoaderTimes *times = &rate->times;
    const double step_s = (rate->seconds - times->waited_s) / (double)times->taken;
    const double batch_s = times->fill_s / (double)times->filled;
    const double needed = ceil(batch_s / step_s);

    return needed > MAX_WORKERS ? 0 : needed > rate->workers ? (int)needed : rate->workers + 1;
}

/* Append as printf does to the NUL-terminated ret[room], cut if it does not fit. */
static void add(char *ret, size_t room, const char *format, ...) KILN_PRINTF(3, 4);
static void add(char *ret, size_t room, const char *format, ...)
{
    const size_t length = strlen(ret);
    va_list args;

    va_start(args, format);
    vsnprintf(ret + length, room - length, format, args);
    va_end(args);
}

/* What loading a batch takes, and how busy it keeps a processor: the rest waits for files. */
static void add_times(const KilnLoadingRate *rate, char *ret, size_t room)
{
    const KilnLoaderTimes *times = &rate->times;
    const double batch_ms = 1e3 * times->fill_s / (double)times->filled;
    const double transforms_ms = 1e3 * times->transform_s / (double)times->filled;

    add(ret, room, "a batch takes %.3g ms to load (", batch_ms);
    if (transforms_ms >= 0.01 * batch_ms)
        add(ret, room, "%.3g ms reading samples, %.3g ms batch_transforms",
            batch_ms - transforms_ms, transforms_ms);
    else
        add(ret, room, "reading samples");
    if (times->cpu_s > 0.0)
        add(ret, room, ", %.0f %% of it computing",
            100.0 * fmin(times->cpu_s / times->fill_s, 1.0));
    add(ret, room, ") and %.3g ms to train on",
        1e3 * (rate->seconds - times->waited_s) / (double)times->taken);
}

bool kiln_loading_advice(const KilnLoadingRate *rate, bool cache, char *ret, size_t room)
{
    const KilnLoaderTimes *times = &rate->times;

    if (times->taken < 1 || times->filled < 1 || times->waited_s < min_wait_s ||
        times->waited_s < min_fraction * rate->seconds)
        return false;
    const int needed = workers_needed(rate);
    const double busy = times->fill_s > 0.0 ? times->cpu_s / times->fill_s : 0.0; /* of a core */
    snprintf(ret, room, "the steps waited for data %.0f %% of the epoch: ",
             100.0 * times->waited_s / rate->seconds);
    add_times(rate, ret, room);
    if (needed > 0 && busy * (double)needed <= (double)rate->processors)
        add(ret, room, "; trainer.num_workers=%d would keep up (now %d)%s", needed, rate->workers,
            cache ? ", or datamodule.cache=DIR" : "");
    else if (rate->workers < rate->processors)
        add(ret, room, "; trainer.num_workers=%d would help (now %d)%s", rate->processors,
            rate->workers, cache ? ", datamodule.cache=DIR more" : "");
    else
        add(ret, room,
            "; more workers would not help, as there are %d processors: make samples cheaper to "
            "read%s",
            rate->processors,
            cache ? " (datamodule.cache=DIR)" : " (smaller files, fewer transforms)");
    return true;
}

static void warn(void *ctx, const char *message)
{
    KilnTrainer *trainer = ctx;

    kiln_output_print(&trainer->output, "warning: %s", message);
}

/* Whether the datamodule has an option `cache` that is not set. */
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

/* The number of processors that the process may use. */
static int processors_of(const KilnTrainer *trainer)
{
    const KilnProcessors *have = &trainer->processors;
    const int n = have->allowed > 0 ? have->allowed : have->threads;

    return have->quota < (double)n ? (int)ceil(have->quota) : n;
}

void kiln_loading_report(KilnTrainer *trainer, KilnLoader *loader, double seconds)
{
    const KilnDataModuleOps *ops = kiln_instance_component(trainer->datamodule)->ops.datamodule;
    KilnLoadingRate rate = {
        .seconds = seconds,
        .workers = (int)trainer->options.trainer->num_workers,
        .processors = processors_of(trainer),
    };
    char line[512];

    if (ops->report != NULL) {
        kiln_call_enter(trainer->datamodule, "report");
        ops->report(trainer->datamodule, warn, trainer);
        kiln_call_leave();
    }
    kiln_loader_times(loader, &rate.times);
    trainer->timing.waited_s += rate.times.waited_s;
    if (trainer->data.bottleneck_reported ||
        !kiln_loading_advice(&rate, could_cache(trainer->datamodule), line, sizeof(line)))
        return;
    trainer->data.bottleneck_reported = true;
    kiln_output_print(&trainer->output, "%s", line);
}

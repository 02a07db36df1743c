/* Writes summary.json and prints the closing table of a run. */
#include "train/report/summary.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/system/file.h"
#include "base/json.h"
#include "base/text.h"
#include "kiln/tools/clock.h"
#include "registry/plugin/plugin_record.h"
#include "train/loader/data_summary.h"
#include "train/loop/signals.h"
#include "train/report/run_messages.h"
#include "train/trainer.h"

enum { WARM_UP_STEPS = 5 }; /* not measured: plans are made and caches filled */

/* ---- Measurements --------------------------------------------------------------------- */

static int compare_floats(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;

    return (x > y) - (x < y);
}

/* The median time of the recorded training steps; NaN when there are too few. */
static double step_ms_median(const KilnTiming *timing)
{
    bool all = timing->steps <= KILN_STEP_TIMES;
    size_t kept = (size_t)(all ? timing->steps : KILN_STEP_TIMES);
    size_t first = all ? WARM_UP_STEPS : 0;
    double median = (double)NAN;

    if (kept <= first)
        return median;
    size_t n = kept - first;
    float *sorted = malloc(n * sizeof(*sorted));
    if (sorted == NULL)
        return median;
    memcpy(sorted, timing->step_ms + first, n * sizeof(*sorted));
    qsort(sorted, n, sizeof(*sorted), compare_floats);
    median = n % 2 == 1 ? (double)sorted[n / 2]
                        : 0.5 * ((double)sorted[n / 2 - 1] + (double)sorted[n / 2]);
    free(sorted);
    return median;
}

static double samples_per_s(const KilnTiming *timing)
{
    return timing->loop_s > 0.0 ? (double)timing->samples / timing->loop_s : (double)NAN;
}

static int64_t peak_rss_bytes(void)
{
    struct rusage usage;

    return getrusage(RUSAGE_SELF, &usage) == 0 ? (int64_t)usage.ru_maxrss * 1024 : 0;
}

static int64_t epochs_done(const KilnTrainer *trainer)
{
    return trainer->at.epoch + (trainer->at.epoch_done ? 1 : 0);
}

/* ---- summary.json ------------------------------------------------------------------------ */

/* A number as JSON; null for NaN and infinity, which JSON lacks. */
static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *value_json(double value, int64_t epoch, int64_t step)
{
    return json_pack("{s:o, s:I, s:I}", "value", number(value), "epoch", (json_int_t)epoch, "step",
                     (json_int_t)step);
}

/* The metrics' last and best values. A metric without a mode (min, max) has no best value. */
static json_t *metrics_json(const KilnTrainer *trainer)
{
    const KilnMetric *metrics;
    size_t n = kiln_metrics_list(trainer->metrics, &metrics);
    const KilnMetricBest *best = kiln_metrics_best(trainer->metrics);
    json_t *all = json_object();

    for (size_t i = 0; i < n; i++) {
        const KilnMetric *metric = &metrics[i];
        const KilnMode mode = kiln_log_mode(metric->flags);
        const bool has_best = mode != KILN_MODE_AUTO;

        if (kiln_metrics_has_epoch_value(trainer->metrics, metric))
            continue;
        kiln_json_put(&all, metric->name,
                      json_pack("{s:o, s:o, s:s?, s:b}", "last",
                                value_json(metric->value, metric->epoch, metric->step), "best",
                                has_best ? value_json(best[i].value, best[i].epoch, best[i].step)
                                         : json_null(),
                                "mode", has_best ? kiln_modes[mode].name : NULL, "measured",
                                (metric->flags & KILN_LOG_MEASURED) != 0));
    }
    return all;
}

static json_t *overrides_json(const KilnTrainer *trainer)
{
    const char *const *overrides = trainer->env->overrides;
    json_t *list = json_array();

    for (size_t i = 0; overrides != NULL && overrides[i] != NULL; i++)
        kiln_json_add(&list, kiln_json_text(overrides[i]));
    return list;
}

/* "checkpoints/epoch=004-step=4690", the target of a link in the run folder; null: none. */
static json_t *checkpoint_json(const KilnTrainer *trainer, const char *link)
{
    char target[256];

    if (!kiln_run_link(trainer, link, target, sizeof(target)))
        return json_null();
    return json_sprintf("checkpoints/%s", target);
}

KilnStatus kiln_summary_write(const KilnTrainer *trainer, const char *status, const char *reason,
                              KilnError *err)
{
    const KilnTiming *timing = &trainer->timing;
    char *path = kiln_path_join(trainer->run_dir, "summary.json");
    json_t *summary = json_pack(
        "{s:s, s:s, s:s?, s:o, s:I, s:I, s:I, s:o, s:o, s:o, s:I, s:o, s:I, s:i, s:s, s:o, s:s, "
        "s:o, s:{s:o, s:o}}",
        "status", status, "reason", reason, "signal",
        kiln_signal_name(
            trainer->state.interrupted && trainer->env->stop != NULL ? *trainer->env->stop : 0),
        "metrics", metrics_json(trainer), "parameters",
        (json_int_t)kiln_params_size(trainer->params), "epochs", (json_int_t)epochs_done(trainer),
        "steps", (json_int_t)trainer->at.step, "wall_s", number(kiln_clock() - timing->start),
        "samples_per_s", number(samples_per_s(timing)), "step_ms_median",
        number(step_ms_median(timing)), "peak_rss_bytes", (json_int_t)peak_rss_bytes(), "overrides",
        overrides_json(trainer), "seed", (json_int_t)trainer->options.root->seed, "threads",
        trainer->threads, "version", KILN_VERSION, "plugins",
        kiln_plugins_record(trainer->env->registry), "run_dir", trainer->run_dir, "data",
        kiln_data_summary_json(trainer), "checkpoints", "best", checkpoint_json(trainer, "best"),
        "last", checkpoint_json(trainer, "last"));
    char *text = summary != NULL ? kiln_json_dump(summary, JSON_INDENT(2) | JSON_REAL_PRECISION(17))
                                 : NULL;
    KilnStatus result = text != NULL && path != NULL
                            ? kiln_file_write(path, text, strlen(text), err)
                            : kiln_error_nomem(err, 1);

    json_decref(summary);
    free(text);
    free(path);
    return result;
}

/* ---- The table ------------------------------------------------------------------------------ */

static void print_heading(KilnTrainer *trainer, int width)
{
    KilnText plain = { 0 }, styled = { 0 };

    kiln_text_printf(&plain, "%-*s %9s  %9s  of epoch", width, "metric", "last", "best");
    kiln_text_printf(&styled, "\033[1m%s\033[0m", plain.data != NULL ? plain.data : "");
    if (plain.data != NULL && styled.data != NULL)
        kiln_output_styled(&trainer->output, plain.data, styled.data);
    kiln_text_release(&plain);
    kiln_text_release(&styled);
}

static bool is_shown(const KilnTrainer *trainer, const KilnMetric *metric)
{
    return (metric->flags & KILN_LOG_CELL) == 0 &&
           !kiln_metrics_has_epoch_value(trainer->metrics, metric);
}

static void print_metric(KilnTrainer *trainer, int width, const KilnMetric *metric,
                         const KilnMetricBest *best)
{
    if (isnan(best->value))
        kiln_output_print(&trainer->output, "%-*s %9.4g  %9s", width, metric->name, metric->value,
                          "-");
    else
        kiln_output_print(&trainer->output, "%-*s %9.4g  %9.4g  %lld", width, metric->name,
                          metric->value, best->value, (long long)best->epoch);
}

/* Print one line per metric: its last value, its best value and the epoch of the best. */
static void print_metrics(KilnTrainer *trainer)
{
    const KilnMetric *metrics;
    size_t n = kiln_metrics_list(trainer->metrics, &metrics);
    const KilnMetricBest *best = kiln_metrics_best(trainer->metrics);
    int width = 0;

    for (size_t i = 0; i < n; i++)
        if (is_shown(trainer, &metrics[i]) && (int)strlen(metrics[i].name) > width)
            width = (int)strlen(metrics[i].name);
    if (width > 0 && width < (int)strlen("metric"))
        width = (int)strlen("metric");
    if (width > 0)
        print_heading(trainer, width);
    for (size_t i = 0; i < n; i++)
        if (is_shown(trainer, &metrics[i]))
            print_metric(trainer, width, &metrics[i], &best[i]);
}

/* Print how and why the run ended: "finished after 1 epoch, 16 steps, 2.1 s". */
static void print_end(KilnTrainer *trainer, const char *status)
{
    const KilnTiming *timing = &trainer->timing;
    const bool interrupted = trainer->state.interrupted;
    const char *reason = trainer->state.stop_reason;
    const int64_t epochs = epochs_done(trainer), steps = trainer->at.step;
    const double rate = samples_per_s(timing);
    KilnText line = { 0 };

    kiln_text_printf(&line, "%s after %lld epoch%s, %lld step%s, %.1f s",
                     interrupted ? reason : status, (long long)epochs, epochs == 1 ? "" : "s",
                     (long long)steps, steps == 1 ? "" : "s", kiln_clock() - timing->start);
    if (isfinite(rate))
        kiln_text_printf(&line, " (%.0f samples/s)", rate);
    else
        kiln_text_append(&line, " (no training)");
    if (!interrupted && reason[0] != '\0')
        kiln_text_printf(&line, ": %s", reason);
    kiln_output_words(&trainer->output, "run", line.data != NULL ? line.data : "");
    kiln_text_release(&line);
}

typedef void PutCommand(const KilnTrainer *trainer, const char *checkpoint, KilnText *text);

static void print_command(KilnTrainer *trainer, const char *name, PutCommand *put)
{
    char target[256];
    const bool best = kiln_trainer_link_target(trainer, "best", target, sizeof(target));
    KilnText line = { 0 };

    put(trainer, best ? "best" : "last", &line);
    kiln_output_pair(&trainer->output, name, line.data != NULL ? line.data : "");
    kiln_text_release(&line);
}

static void print_commands(KilnTrainer *trainer)
{
    const KilnModuleOps *module = kiln_instance_component(trainer->module)->ops.module;
    KilnText line = { 0 };
    char target[256];

    if (trainer->env->prepared || /* a job of a sweep is resumed with the sweep */
        !kiln_trainer_link_target(trainer, "last", target, sizeof(target)))
        return;
    kiln_run_resume_command(trainer, &line);
    if (!trainer->newest.weights_only)
        kiln_output_pair(&trainer->output, "resume", line.data != NULL ? line.data : "");
    kiln_text_release(&line);
    print_command(trainer, "evaluate", kiln_run_eval_command);
    if (module->predict_step != NULL)
        print_command(trainer, "predict", kiln_run_predict_command);
    if (module->generate_step != NULL)
        print_command(trainer, "generate", kiln_run_generate_command);
}

static void print_pair(void *ctx, const char *name, const char *text)
{
    KilnTrainer *trainer = ctx;

    kiln_output_words(&trainer->output, name, text);
}

void kiln_summary_print(KilnTrainer *trainer, const char *status)
{
    kiln_output_print(&trainer->output, "%s", "");
    print_metrics(trainer);
    kiln_output_print(&trainer->output, "%s", "");
    print_end(trainer, status);
    kiln_data_summary_left_out(trainer, print_pair, trainer);
    kiln_output_pair(&trainer->output, "run folder", kiln_path_near(trainer->run_dir));
    print_commands(trainer);
}

/* train --plan: builds the network on shapes alone and prints its layers, FLOPs and memory; a
 * second of training gives the time. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/commands/commands.h"
#include "cli/screen/screen.h"
#include "base/text.h"
#include "kiln/tools/clock.h"
#include "train/analysis/timing_run.h"
#include "train/assemble.h"
#include "train/check/data_check.h"
#include "train/loader/data_summary.h"
#include "train/loader/inferred_options.h"

static const double measured_seconds = 1.0;

/* ---- Sums ------------------------------------------------------------------------------- */

enum { TEXT = 20 };

static void put_data_line(void *ctx, const char *name, const char *text)
{
    kiln_page_pair(ctx, TEXT, name, "%s", text);
}

/* What a run writes into its config, and what a user may want in theirs. */
static KilnStatus put_inferred(KilnPage *page, const KilnTrainer *trainer, KilnError *err)
{
    KilnText yaml = { 0 };
    const KilnStatus status = kiln_inferred_options_write(trainer, &yaml, err);

    if (yaml.length > 0) {
        kiln_page_heading(page, "inferred from the data; a config with this keeps it");
        kiln_text_append(&page->text, yaml.data);
    }
    page->text.failed |= yaml.failed;
    kiln_text_release(&yaml);
    return status;
}

/* The short form of `kiln check-data`: the first samples, and what to run for all. */
static KilnStatus put_checks(KilnPage *page, KilnTrainer *trainer, const KilnArgs *args,
                             KilnError *err)
{
    enum { SAMPLES = 256 };
    const KilnDataCheck check = { .config = trainer->config,
                                  .registry = trainer->env->registry,
                                  .datamodule = trainer->datamodule,
                                  .spec = &trainer->data.spec,
                                  .data = trainer->env->data,
                                  .seed = (uint64_t)trainer->options.root->seed,
                                  .poll = &trainer->poll,
                                  .limit = SAMPLES,
                                  .brief = true };
    KilnDataReport report = { 0 };
    KilnText command = { 0 };
    const KilnStatus status = kiln_data_check(&check, &report, err);

    kiln_text_append(&command, "kiln check-data");
    for (size_t i = 0; i < args->n_words; i++) {
        kiln_text_char(&command, ' ');
        kiln_text_shell_word(&command, args->words[i]);
    }
    if (status >= 0)
        kiln_page_pair(page, TEXT, "checks",
                       "%lld passed, %lld warnings, %lld errors in %lld samples; which, and in all "
                       "samples: `%s`",
                       (long long)report.levels[KILN_CHECK_PASSED],
                       (long long)report.levels[KILN_CHECK_WARNING],
                       (long long)report.levels[KILN_CHECK_ERROR], (long long)report.looked,
                       command.data != NULL ? command.data : "kiln check-data");
    kiln_text_release(&command);
    kiln_data_report_release(&report);
    return status;
}

/* A full batch, or all samples when there are fewer. */
static int64_t step_samples(const KilnTrainer *trainer)
{
    return kiln_trainer_shape_batch(trainer, KILN_TRAIN, 0).size;
}

/* Plans so far; batches of other lengths, or the last batch of an epoch, need more. */
static void put_plans(KilnPage *page, const KilnTrainer *trainer)
{
    const KilnPlanCache *cache = &trainer->graph->plan_cache;
    const size_t lengths = trainer->data.loading.buckets_count;
    char bytes[KILN_UNIT_TEXT], seconds[KILN_UNIT_TEXT], each[64] = "";

    if (lengths > 1)
        snprintf(each, sizeof(each), "; more for each of the %zu lengths", lengths);
    kiln_page_pair(page, TEXT, "plans", "%zu: %s, made in %s%s", cache->kept,
                   kiln_bytes_text((double)cache->bytes, bytes),
                   kiln_seconds_text(cache->seconds, seconds), each);
}

static void put_work(KilnPage *page, const KilnTrainer *trainer)
{
    const KilnMemoryEstimate *memory = &trainer->memory;
    char a[KILN_UNIT_TEXT], b[KILN_UNIT_TEXT], c[KILN_UNIT_TEXT], why[128];

    kiln_page_heading(page, "a step of %lld samples", (long long)step_samples(trainer));
    kiln_page_pair(page, TEXT, "parameters", "%s",
                   kiln_commas_text(kiln_params_size(trainer->params), a));
    kiln_page_pair(page, TEXT, "FLOPs", "%s: forward %s, gradients %s (products and convolutions)",
                   kiln_quantity_text(memory->flops + memory->flops_backward, a),
                   kiln_quantity_text(memory->flops, b),
                   kiln_quantity_text(memory->flops_backward, c));
    kiln_processors_why(&trainer->processors, why, sizeof(why));
    bool limited = trainer->options.trainer->threads == 0 && why[0] != '\0';
    put_plans(page, trainer);
    kiln_page_pair(page, TEXT, "threads", "%d%s%s", trainer->threads, limited ? ": " : "",
                   limited ? why : "");
}

static void put_bytes(KilnPage *page, const char *name, int64_t bytes)
{
    char text[KILN_UNIT_TEXT];

    if (bytes > 0)
        kiln_page_pair(page, TEXT, name, "%12s", kiln_bytes_text((double)bytes, text));
}

static void put_memory(KilnPage *page, const KilnMemoryEstimate *memory)
{
    char a[KILN_UNIT_TEXT], b[KILN_UNIT_TEXT];

    kiln_page_heading(page, "memory");
    put_bytes(page, "activations", memory->activations);
    put_bytes(page, "converted weights", memory->constants + memory->converted);
    put_bytes(page, "parameters", memory->parameters);
    put_bytes(page, "gradients", memory->gradients);
    put_bytes(page, "buffers", memory->buffers);
    put_bytes(page, "optimizer state", memory->optimizer);
    put_bytes(page, "averaged weights", memory->average);
    put_bytes(page, "callbacks", memory->callbacks);
    put_bytes(page, "metrics", memory->metrics + memory->computing);
    put_bytes(page, "batches", memory->batches);
    put_bytes(page, "reading samples", memory->reading);
    put_bytes(page, "order of samples", memory->order);
    put_bytes(page, "checkpoint copy", memory->snapshot);
    put_bytes(page, "program and data", memory->program + memory->growth);
    put_bytes(page, "peak", kiln_memory_estimate_peak(memory));
    if (memory->memory_known)
        kiln_page_pair(page, TEXT, "available", "%12s of the %s %s",
                       kiln_bytes_text((double)memory->memory.available, a),
                       memory->memory.process ? "process's"
                       : memory->memory.group ? "control group's"
                                              : "machine's",
                       kiln_bytes_text((double)memory->memory.limit, b));
    put_bytes(page, "a checkpoint", memory->checkpoint);
}

static void put_time(KilnPage *page, const KilnTrainer *trainer, const KilnTimingRun *timing)
{
    const KilnMemoryEstimate *memory = &trainer->memory;
    int64_t steps = kiln_trainer_split_batches(trainer, KILN_TRAIN);
    double rate = (memory->flops + memory->flops_backward) / timing->step_s;
    char a[KILN_UNIT_TEXT], b[KILN_UNIT_TEXT];

    kiln_page_heading(page, "time, from %lld step%s", (long long)timing->steps,
                      timing->steps == 1 ? "" : "s");
    kiln_page_pair(page, TEXT, "a step", "%s: %s samples/s, %s FLOP/s",
                   kiln_seconds_text(timing->step_s, a),
                   kiln_commas_text((int64_t)((double)step_samples(trainer) / timing->step_s), b),
                   kiln_quantity_text(rate, (char[KILN_UNIT_TEXT]) { 0 }));
    kiln_page_pair(page, TEXT, "an epoch", "%s: %s steps%s", kiln_seconds_text(timing->epoch_s, a),
                   kiln_commas_text(steps, b), timing->eval_s > 0.0 ? ", and validation" : "");
    if (isfinite(timing->run_s))
        kiln_page_pair(page, TEXT, "the run", "%s: %s steps", kiln_seconds_text(timing->run_s, a),
                       kiln_commas_text(timing->run_steps, b));
    else
        kiln_page_pair(page, TEXT, "the run",
                       "without end: neither trainer.max_epochs nor trainer.max_steps "
                       "is set");
}

/* ---- The command ---------------------------------------------------------------------------- */

/* Print the page so far and start a new one. */
static int flush(KilnPage *page)
{
    KilnPage next = kiln_screen_page();
    int exit_status = kiln_screen_print(page);

    fflush(stdout);
    *page = next;
    return exit_status;
}

static KilnStatus plan(KilnTrainer *trainer, KilnConfig *config, const KilnRunEnv *env,
                       const KilnArgs *args, KilnError *err)
{
    KilnPage page = kiln_screen_page();
    KilnTimingRun timing;
    KilnStatus status = kiln_trainer_dry_build(trainer, config, env, KILN_STAGE_FIT, NULL, err);

    if (status >= 0) {
        char *layers = kiln_trainer_layer_table(trainer, -1, page.width);

        kiln_text_append(&page.text, layers != NULL ? layers : "");
        free(layers);
        kiln_page_heading(&page, "data");
        kiln_data_summary_lines(trainer, put_data_line, &page);
        status = put_checks(&page, trainer, args, err);
    }
    if (status >= 0)
        status = put_inferred(&page, trainer, err);
    if (status >= 0) {
        put_work(&page, trainer);
        put_memory(&page, &trainer->memory);
        flush(&page);
        status = kiln_trainer_allocate(trainer, err);
    }
    if (status >= 0)
        status = KILN_CALL(trainer, setup, err);
    if (status >= 0)
        status = kiln_trainer_timing_run(trainer, measured_seconds, &timing, err);
    if (status >= 0 && timing.steps > 0) {
        fputc('\n', stdout);
        put_time(&page, trainer, &timing);
    }
    flush(&page);
    return status;
}

int kiln_command_plan(const KilnArgs *args, KilnConfig *config, const KilnRegistry *registry)
{
    KilnConsole console = kiln_screen_console(stderr);
    KilnRunEnv env = { .registry = registry, .console = &console, .overrides = args->words };
    KilnTrainer *trainer = calloc(1, sizeof(*trainer));
    KilnError err = { 0 };
    KilnStatus status = trainer != NULL ? plan(trainer, config, &env, args, &err)
                                        : kiln_error_nomem(&err, sizeof(*trainer));

    const int exit_status = kiln_screen_result(args->command, status, &err);
    if (trainer != NULL)
        kiln_trainer_release(trainer);
    free(trainer);
    return exit_status;
}

/* kiln graph: plans a training step, measures it, and prints or draws it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "cli/commands/commands.h"
#include "cli/graph/graph_view.h"
#include "cli/open_config.h"
#include "cli/screen/screen.h"
#include "kiln/tools/clock.h"
#include "train/analysis/timing_run.h"
#include "train/assemble.h"
#include "train/trainer.h"

/* The first seconds run without profiling, until caches and pages are warm. */
static const double warm_up_seconds = 0.2, measured_seconds = 0.8;

static KilnStatus read_flags(const KilnArgs *args, KilnStepView *view, KilnError *err)
{
    if (args->depth != NULL && (kiln_parse_i64(args->depth, &view->depth, NULL) < 0 ||
                                view->depth < 0 || view->depth > 64))
        return kiln_error_set(err, KILN_E_USAGE,
                              "--depth %s: expected how many parts of a layer's name to use, from "
                              "1 to 64, or 0 for all",
                              args->depth);
    view->only = KILN_STEP_FORWARD;
    while (view->only < KILN_STEP_PHASES &&
           (args->phase == NULL || strcmp(args->phase, kiln_step_phase_name(view->only)) != 0))
        view->only++;
    return KILN_OK;
}

/* The plan of a full batch's training step. */
static const KilnPlan *training_plan(const KilnGraph *graph)
{
    const KilnPlan *best = NULL;

    for (const KilnPlan *plan = graph->plans; plan != NULL; plan = kiln_plan_next(plan))
        if (kiln_plan_trains(plan) &&
            (best == NULL || kiln_plan_bytes(plan) > kiln_plan_bytes(best)))
            best = plan;
    return best;
}

static void describe(const KilnTrainer *trainer, const KilnStepView *view, KilnText *text)
{
    const KilnMemoryEstimate *memory = &trainer->memory;
    char a[KILN_UNIT_TEXT], b[KILN_UNIT_TEXT], c[KILN_UNIT_TEXT], d[KILN_UNIT_TEXT];

    kiln_text_printf(text,
                     "a step of %lld samples: %zu calls, %s, %s FLOPs, %s parameters, %s of "
                     "activations, %d thread%s",
                     (long long)trainer->data.batch_size, view->n_calls,
                     kiln_seconds_text(view->seconds, a),
                     kiln_quantity_text(memory->flops + memory->flops_backward, b),
                     kiln_quantity_text((double)kiln_params_size(trainer->params), c),
                     kiln_bytes_text((double)kiln_plan_bytes(view->plan), d), trainer->threads,
                     trainer->threads == 1 ? "" : "s");
}

/* Written in place, not by rename, so that --svg /dev/stdout works. */
static KilnStatus write_picture(const char *path, const KilnStepView *view, KilnError *err)
{
    KilnStatus status = KILN_OK;
    KilnText svg = { 0 };

    kiln_step_svg(view, &svg);
    FILE *file = fopen(path, "we");
    if (svg.failed)
        status = kiln_error_nomem(err, 1);
    else if (file == NULL || fputs(svg.data, file) == EOF || fflush(file) != 0)
        status = kiln_error_errno(err, path);
    if (file != NULL)
        (void)fclose(file);
    kiln_text_release(&svg);
    return status;
}

static KilnStatus print_table(const KilnStepView *view, KilnError *err)
{
    KilnPage page = kiln_screen_page();

    kiln_page_words(&page, 0, view->title);
    kiln_page_end(&page);
    kiln_text_char(&page.text, '\n');
    kiln_step_table(view, &page);
    return kiln_screen_print(&page) == 0 ? KILN_OK : kiln_error_nomem(err, 1);
}

static KilnStatus measure(KilnTrainer *trainer, KilnError *err)
{
    KilnTimingRun timing;
    KilnStatus status = kiln_trainer_allocate(trainer, err);

    trainer->graph->profile = false;
    if (status >= 0)
        status = kiln_trainer_timing_run(trainer, warm_up_seconds, &timing, err);
    trainer->graph->profile = true;
    return status >= 0 ? kiln_trainer_timing_run(trainer, measured_seconds, &timing, err) : status;
}

static KilnStatus show(const KilnArgs *args, KilnTrainer *trainer, KilnStepView *view,
                       KilnError *err)
{
    KilnText title = { 0 };
    KilnStatus status = KILN_OK;

    if (kiln_step_view_fill(view, training_plan(trainer->graph)))
        describe(trainer, view, &title);
    view->title = title.data;
    if (title.failed || title.data == NULL)
        status = kiln_error_nomem(err, 1);
    else
        status = args->svg != NULL ? write_picture(args->svg, view, err) : print_table(view, err);
    kiln_text_release(&title);
    return status;
}

static KilnStatus graph(KilnArgs *args, const KilnRegistry *registry, KilnConfig *config, void *ctx,
                        KilnError *err)
{
    KilnConsole console = kiln_screen_console(stderr);
    KilnRunEnv env = { .registry = registry, .console = &console, .overrides = args->words };
    KilnTrainer *trainer = calloc(1, sizeof(*trainer));
    KilnStepView view = { 0 };
    KilnStatus status = read_flags(args, &view, err);

    (void)ctx;
    if (trainer == NULL)
        return kiln_error_nomem(err, sizeof(*trainer));
    if (status >= 0)
        status = kiln_trainer_dry_build(trainer, config, &env, KILN_STAGE_FIT, NULL, err);
    if (status >= 0)
        status = measure(trainer, err);
    if (status >= 0)
        status = show(args, trainer, &view, err);
    kiln_step_view_release(&view);
    kiln_trainer_release(trainer);
    free(trainer);
    return status;
}

int kiln_command_graph(KilnArgs *args)
{
    return kiln_command_run(args, true, graph, NULL);
}

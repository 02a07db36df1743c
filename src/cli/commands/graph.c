/* kiln graph: plan a training step, try it, and show it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "base/parse.h"
#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/graph/graph_view.h"
#include "cli/screen/screen.h"
#include "train/analysis/timing_run.h"
#include "train/assemble.h"
#include "train/trainer.h"

/* First without looking at the clock between calls: caches and pages are cold. */
static const double warm_up_seconds = 0.2, probe_seconds = 0.8;

typedef struct Wishes {
    int64_t depth;
    KilnStepPhase only; /* KILN_STEP_PHASES: all */
} Wishes;

static KilnStatus read_wishes(const KilnArgs *args, Wishes *ret, KilnError *err)
{
    *ret = (Wishes) { .only = KILN_STEP_PHASES };
    if (args->depth != NULL &&
        (kiln_parse_i64(args->depth, &ret->depth, NULL) < 0 || ret->depth < 0 || ret->depth > 64))
        return kiln_error_set(err, KILN_E_USAGE,
                              "--depth %s: expected a number of parts of a layer's name, from 1, "
                              "or 0 for all",
                              args->depth);
    if (args->phase == NULL)
        return KILN_OK;
    for (int phase = 0; phase < KILN_STEP_PHASES; phase++)
        if (strcmp(args->phase, kiln_step_phase_name((KilnStepPhase)phase)) == 0)
            ret->only = (KilnStepPhase)phase;
    if (ret->only == KILN_STEP_PHASES)
        return kiln_error_set(err, KILN_E_USAGE, "--phase %s: expected forward, backward or update",
                              args->phase);
    return KILN_OK;
}

/* The plan of a whole batch's training step. */
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

/* Where the user says, through links too: --svg /dev/stdout. */
static KilnStatus write_picture(const char *path, const char *text, KilnError *err)
{
    FILE *file = fopen(path, "we");
    KilnStatus status = file != NULL && fputs(text, file) != EOF ? KILN_OK
                                                                 : kiln_error_errno(err, path);

    if (file != NULL && fclose(file) != 0 && status >= 0)
        status = kiln_error_errno(err, path);
    return status;
}

static KilnStatus show(const KilnArgs *args, const Wishes *wishes, KilnStepView *view,
                       const char *title, KilnError *err)
{
    KilnText svg = { 0 };
    KilnPage page = kiln_screen_page();
    KilnStatus status = KILN_OK;

    view->title = title;
    if (args->svg != NULL) {
        kiln_step_svg(view, wishes->only, &svg);
        status = svg.failed ? kiln_error_nomem(err, svg.length)
                            : write_picture(args->svg, svg.data, err);
        kiln_text_release(&svg);
        return status;
    }
    kiln_page_words(&page, 0, title);
    kiln_page_end(&page);
    kiln_text_char(&page.text, '\n');
    if (wishes->depth > 0)
        kiln_step_groups_table(view, wishes->only, &page);
    else
        kiln_step_table(view, wishes->only, &page);
    return kiln_screen_print(&page) == 0 ? KILN_OK : kiln_error_nomem(err, 1);
}

static KilnStatus measure(KilnTrainer *trainer, KilnError *err)
{
    KilnTimingRun probe;
    KilnStatus status = kiln_trainer_allocate(trainer, err);

    trainer->graph->profile = false;
    if (status >= 0)
        status = kiln_trainer_timing_run(trainer, warm_up_seconds, &probe, err);
    trainer->graph->profile = true;
    return status >= 0 ? kiln_trainer_timing_run(trainer, probe_seconds, &probe, err) : status;
}

static KilnStatus graph(const KilnArgs *args, const Wishes *wishes, KilnTrainer *trainer,
                        KilnConfig *config, const KilnRunEnv *env, KilnError *err)
{
    KilnStepView view = { 0 };
    KilnText title = { 0 };
    KilnStatus status = kiln_trainer_dry_build(trainer, config, env, KILN_STAGE_FIT, NULL, err);

    if (status >= 0)
        status = measure(trainer, err);
    if (status < 0)
        return status;
    if (!kiln_step_view(training_plan(trainer->graph), (int)wishes->depth, &view))
        return kiln_error_nomem(err, 1);
    describe(trainer, &view, &title);
    status = title.failed ? kiln_error_nomem(err, 1) : show(args, wishes, &view, title.data, err);
    kiln_text_release(&title);
    kiln_step_view_release(&view);
    return status;
}

static KilnStatus run(const KilnArgs *args, const KilnRegistry *registry, KilnConfig *config,
                      KilnError *err)
{
    KilnConsole console = kiln_screen_console(stderr);
    KilnRunEnv env = { .registry = registry, .console = &console, .overrides = args->words };
    KilnTrainer *trainer = calloc(1, sizeof(*trainer));
    Wishes wishes;
    KilnStatus status = read_wishes(args, &wishes, err);

    if (status >= 0)
        status = trainer != NULL ? graph(args, &wishes, trainer, config, &env, err)
                                 : kiln_error_nomem(err, sizeof(*trainer));
    if (trainer != NULL)
        kiln_trainer_release(trainer);
    free(trainer);
    return status;
}

int kiln_command_graph(KilnArgs *args)
{
    KilnRegistry *registry = NULL;
    KilnConfig *config = NULL;
    KilnError err = { 0 };
    KilnStatus status = kiln_command_registry(args, &registry);

    if (status >= 0)
        status = kiln_command_compose(args, registry, true, &config);
    if (status >= 0) {
        status = run(args, registry, config, &err);
        if (status < 0)
            kiln_screen_error(args->command, &err);
    }
    kiln_config_free(config);
    kiln_registry_free(registry);
    return kiln_screen_exit_status(status);
}

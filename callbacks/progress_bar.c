/* Shows progress: on a terminal one line that is redrawn, and everywhere one
 * plain line an epoch. */
#include "kiln.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { BAR = 20, LONGEST = 1024 };

static const double redraw_s = 0.1;

typedef struct Loop {
    double start;
    int64_t first_batch; /* done when it started: not 0 after a resume */
} Loop;

typedef struct State {
    Loop train, eval; /* validation may come in the middle of an epoch */
    double drawn;     /* when the line was drawn last */
    double epoch_start;
    double rate; /* of training, at the end of its batches */
} State;

static double now(void)
{
    struct timespec at = { 0 };

    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

/* ---- Text ------------------------------------------------------------------------------ */

typedef struct Line {
    char text[LONGEST];
    size_t used;
} Line;

KILN_PRINTF(2, 3) static void append(Line *line, const char *format, ...)
{
    size_t room = sizeof(line->text) - line->used;
    va_list args;

    va_start(args, format);
    int more = vsnprintf(line->text + line->used, room, format, args);
    va_end(args);
    if (more > 0)
        line->used += (size_t)more < room ? (size_t)more : room - 1;
}

static void append_time(Line *line, double seconds)
{
    long whole = (long)(seconds + 0.5);

    if (whole >= 3600)
        append(line, "%ld:%02ld:%02ld", whole / 3600, whole / 60 % 60, whole % 60);
    else
        append(line, "%ld:%02ld", whole / 60, whole % 60);
}

/* Metrics that want to be seen; those of epochs (or all). */
static void append_metrics(Line *line, const KilnTrainer *trainer, bool all)
{
    const KilnMetric *metrics;
    size_t n = kiln_trainer_metrics(trainer, &metrics);

    for (size_t i = 0; i < n; i++)
        if ((metrics[i].flags & KILN_LOG_PROG_BAR) != 0 ||
            (all && (metrics[i].flags & KILN_LOG_EPOCH) != 0))
            append(line, "  %s %.4g", metrics[i].name, metrics[i].value);
}

/* Counted from 0, as in the names of checkpoints and in metrics.csv. */
static void append_epoch(Line *line, const KilnTrainer *trainer)
{
    append(line, "epoch %lld", (long long)kiln_trainer_epoch(trainer));
    if (kiln_trainer_max_epochs(trainer) > 0)
        append(line, "/%lld", (long long)kiln_trainer_max_epochs(trainer) - 1);
}

/* ---- The redrawn line ---------------------------------------------------------------------- */

static void draw(const Loop *loop, KilnTrainer *trainer, const char *what)
{
    int64_t done = kiln_trainer_batch(trainer), all = kiln_trainer_batches(trainer);
    const KilnConsole *console = kiln_trainer_console(trainer);
    int filled = all > 0 ? (int)(BAR * done / all) : 0;
    Line line = { .used = 0 };
    double elapsed = now() - loop->start;

    append_epoch(&line, trainer);
    append(&line, "%s [%.*s%.*s] %lld/%lld  ", what, filled, "####################", BAR - filled,
           "--------------------", (long long)done, (long long)all);
    if (done > loop->first_batch)
        append_time(&line, elapsed / (double)(done - loop->first_batch) * (double)(all - done));
    append(&line, "  %.0f/s", kiln_trainer_samples_per_s(trainer));
    append_metrics(&line, trainer, false);
    /* The last column stays free: a terminal would wrap there. */
    if (console->width > 1 && line.used >= (size_t)console->width)
        line.text[console->width - 1] = '\0';
    kiln_trainer_status_line(trainer, line.text);
}

static void tick(KilnInstance *self, KilnTrainer *trainer, const Loop *loop, const char *what)
{
    State *state = kiln_state(self);

    if (!kiln_trainer_console(trainer)->terminal)
        return;
    double time = now();
    if (time - state->drawn < redraw_s)
        return;
    state->drawn = time;
    draw(loop, trainer, what);
}

static void start(Loop *loop, const KilnTrainer *trainer)
{
    loop->start = now();
    loop->first_batch = kiln_trainer_batch(trainer);
}

/* ---- Hooks --------------------------------------------------------------------------------------
 */

/* Also where a run goes on within an epoch, whose start it does not see. */
static KilnStatus on_train_epoch_start(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    State *state = kiln_state(self);

    (void)err;
    start(&state->train, trainer);
    state->epoch_start = state->train.start;
    return KILN_OK;
}

static KilnStatus on_train_batch_end(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    State *state = kiln_state(self);

    (void)err;
    tick(self, trainer, &state->train, "");
    state->rate = kiln_trainer_samples_per_s(trainer);
    return KILN_OK;
}

static KilnStatus on_eval_start(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    State *state = kiln_state(self);

    (void)err;
    start(&state->eval, trainer);
    return KILN_OK;
}

static KilnStatus on_validation_batch_end(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    const State *state = kiln_state(self);
    const bool sanity = strcmp(kiln_trainer_phase(trainer), "sanity") == 0;

    (void)err;
    tick(self, trainer, &state->eval, sanity ? " checking" : " validating");
    return KILN_OK;
}

static KilnStatus on_test_batch_end(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    const State *state = kiln_state(self);

    (void)err;
    tick(self, trainer, &state->eval, " testing");
    return KILN_OK;
}

static KilnStatus on_train_epoch_end(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    const State *state = kiln_state(self);
    Line line = { .used = 0 };

    (void)err;
    append_epoch(&line, trainer);
    append_metrics(&line, trainer, true);
    append(&line, "  %.1f s  %.0f samples/s", now() - state->epoch_start, state->rate);
    kiln_trainer_status_line(trainer, NULL);
    kiln_trainer_print(trainer, "%s", line.text);
    return KILN_OK;
}

static KilnStatus clear(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    (void)self;
    (void)err;
    kiln_trainer_status_line(trainer, NULL);
    return KILN_OK;
}

static void on_exception(KilnInstance *self, KilnTrainer *trainer, const KilnError *why)
{
    (void)self;
    (void)why;
    kiln_trainer_status_line(trainer, NULL);
}

static const KilnCallbackOps ops = {
    .on_train_start = on_train_epoch_start,
    .on_train_epoch_start = on_train_epoch_start,
    .on_train_batch_end = on_train_batch_end,
    .on_validation_start = on_eval_start,
    .on_validation_batch_end = on_validation_batch_end,
    .on_train_epoch_end = on_train_epoch_end,
    .on_test_start = on_eval_start,
    .on_test_batch_end = on_test_batch_end,
    .on_test_end = clear,
    .on_train_end = clear,
    .on_exception = on_exception,
    .shows_progress = true,
};

const KilnComponent kiln_callback_progress_bar = {
    .kind = KILN_KIND_CALLBACK,
    .name = "progress_bar",
    .summary = "Show progress, speed and metrics",
    .state_size = sizeof(State),
    .ops.callback = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_callback_progress_bar, NULL };
KILN_PLUGIN_DEFINE(list)
#endif

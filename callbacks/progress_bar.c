/* Shows progress: on a terminal a line per running loop, redrawn several times a second, and a
 * permanent line per epoch; elsewhere lines at intervals. */
#include "kiln.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { BAR_MIN = 5, BAR_MAX = 30, FIELDS = 32, FIELD = 96, WIDE = 60, VALUE = 7 };

typedef struct Opts {
    double refresh_s, plain_s;
    bool leave;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_DURATION(Opts, refresh_s, "0.1", 0.01, 3600, "seconds between two redraws"),
    KILN_FIELD_DURATION(
        Opts, plain_s, "30", 0, 1e9,
        "seconds between lines within an epoch if the output is not a terminal; 0: none"),
    KILN_FIELD_BOOL(Opts, leave, "true", "keep a line of each epoch on the terminal"),
    KILN_FIELD_END,
};

typedef struct Loop {
    double start;
    int64_t first_batch; /* batches done at its start: not 0 after a resume */
} Loop;

typedef struct State {
    Loop train, eval; /* validation may run inside an epoch */
    double drawn;     /* time of the last redraw or plain line */
    double epoch_start;
    KilnText train_line; /* the last drawn line: it stays above that of a validation */
} State;

/* ---- Text ------------------------------------------------------------------------------ */

static const char *text_of(const KilnText *text)
{
    return text->data != NULL ? text->data : "";
}

static void format_rate(char *text, size_t size, double rate)
{
    if (rate >= 1e7)
        snprintf(text, size, "%.1fM/s", rate * 1e-6);
    else if (rate >= 1e4)
        snprintf(text, size, "%.1fk/s", rate * 1e-3);
    else
        snprintf(text, size, rate >= 100.0 ? "%.0f/s" : "%.1f/s", rate);
}

/* Columns of a metric's name, which may be in any language: one per character. */
static int columns(const char *text)
{
    int n = 0;

    for (; *text != '\0'; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

/* ---- A running loop's line ------------------------------------------------------------------ */

/* The fields of a line, most important first; it shows those that fit. */
typedef struct Fields {
    char text[FIELDS][FIELD];
    int n;
} Fields;

KILN_PRINTF(2, 3) static void add(Fields *list, const char *format, ...)
{
    va_list args;

    if (list->n == FIELDS)
        return;
    va_start(args, format);
    vsnprintf(list->text[list->n], FIELD, format, args);
    va_end(args);
    list->n += list->text[list->n][0] != '\0';
}

/* Whether to show a metric. Of a value with both step and epoch, a running loop shows the step's,
 * the line of an epoch the mean. */
static bool is_wanted(const KilnMetric *metric, unsigned way)
{
    const unsigned other = way ^ (KILN_LOG_STEP | KILN_LOG_EPOCH);

    return (metric->flags & KILN_LOG_PROG_BAR) != 0 &&
           ((metric->flags & KILN_LOG_FORKED) == 0 || (metric->flags & other) == 0);
}

/* In a narrow window "train/loss_step" is "loss". */
static void add_metric(Fields *list, const KilnMetric *metric, bool narrow)
{
    const char *slash = strrchr(metric->name, '/');
    const char *name = narrow && slash != NULL ? slash + 1 : metric->name;
    const bool cut = narrow && (metric->flags & KILN_LOG_FORKED) != 0;
    const size_t length = strlen(name) - (cut ? strlen("_step") : 0);

    add(list, "%.*s %.*g", (int)length, name, narrow ? 2 : 4, metric->value);
}

static void add_metrics(Fields *list, const KilnTrainer *trainer)
{
    const KilnMetric *metrics;
    size_t n = kiln_trainer_metrics(trainer, &metrics);

    for (size_t i = 0; i < n; i++)
        if (is_wanted(&metrics[i], KILN_LOG_STEP))
            add_metric(list, &metrics[i], kiln_trainer_console(trainer)->width < WIDE);
}

static void append_bar(KilnText *line, const KilnConsole *console, double share, int width)
{
    const int filled = (int)(share * width);

    kiln_text_append(line, console->colour ? "\033[36m" : "");
    for (int i = 0; i < filled; i++)
        kiln_text_append(line, console->utf8 ? "━" : "#");
    kiln_text_append(line, console->colour ? "\033[0;2m" : "");
    for (int i = filled; i < width; i++)
        kiln_text_append(line, console->utf8 ? "─" : "-");
    kiln_text_append(line, console->colour ? "\033[0m" : "");
}

/* Label, bar and as many fields as fit; the bar takes the rest. The last column stays free, since a
 * terminal would wrap there, and two more for an echoed ^C. */
static void lay_out(KilnText *line, const KilnConsole *console, const char *label, double share,
                    const Fields *list)
{
    int room = console->width - 3 - columns(label) - 1, bar = BAR_MIN, n = 0;

    room -= bar;
    while (n < list->n && columns(list->text[n]) + 2 <= room)
        room -= columns(list->text[n++]) + 2;
    bar += room < 0 ? room : room < BAR_MAX - BAR_MIN ? room : BAR_MAX - BAR_MIN;
    kiln_text_printf(line, "%s ", label);
    append_bar(line, console, share, bar > 0 ? bar : 0);
    for (int i = 0; i < n; i++)
        kiln_text_printf(line, "  %s", list->text[i]);
}

/* Time left of the run while it trains, else of the loop; negative: unknown. */
static double seconds_left(const KilnTrainer *trainer, const Loop *loop, bool trains)
{
    const int64_t done = kiln_trainer_batch(trainer), all = kiln_trainer_batches(trainer);
    double left = trains ? kiln_trainer_seconds_left(trainer) : -1.0;

    if (left < 0.0 && done > loop->first_batch)
        left = (kiln_clock() - loop->start) / (double)(done - loop->first_batch) *
               (double)(all - done);
    return left;
}

static void draw_loop(KilnText *line, const KilnTrainer *trainer, const Loop *loop,
                      const char *label, bool trains)
{
    const int64_t done = kiln_trainer_batch(trainer), all = kiln_trainer_batches(trainer);
    const KilnConsole *console = kiln_trainer_console(trainer);
    const double share = all > 0 ? (double)done / (double)all : 0.0;
    const double left = seconds_left(trainer, loop, trains);
    Fields list = { .n = 0 };
    char text[KILN_UNIT_TEXT];

    if (console->width >= WIDE)
        add(&list, "%lld/%lld", (long long)done, (long long)all);
    else
        add(&list, "%d%%", (int)(100.0 * share));
    if (left >= 0.0)
        add(&list, console->width >= WIDE ? "%s left" : "%s", kiln_clock_text(left, text));
    if (trains && console->width < 100)
        add_metrics(&list, trainer);
    format_rate(text, sizeof(text), kiln_trainer_samples_per_s(trainer));
    add(&list, "%s", text);
    if (trains && console->width >= 100)
        add_metrics(&list, trainer);
    lay_out(line, console, label, share, &list);
}

/* From 0, as in names of checkpoints and in metrics.csv. */
static void append_epoch(KilnText *line, const KilnTrainer *trainer)
{
    kiln_text_printf(line, "epoch %lld", (long long)kiln_trainer_epoch(trainer));
    if (kiln_trainer_max_epochs(trainer) > 0)
        kiln_text_printf(line, "/%lld", (long long)kiln_trainer_max_epochs(trainer) - 1);
}

static void draw_training(State *state, KilnTrainer *trainer)
{
    KilnText label = { 0 };

    append_epoch(&label, trainer);
    kiln_text_clear(&state->train_line);
    draw_loop(&state->train_line, trainer, &state->train, text_of(&label), true);
    kiln_text_release(&label);
    kiln_trainer_status_line(trainer, state->train_line.data);
}

/* Below the line of training, if there is one. */
static void draw_evaluation(State *state, KilnTrainer *trainer, const char *label)
{
    KilnText both = { 0 };

    if (state->train_line.length > 0)
        kiln_text_printf(&both, "%s\n", state->train_line.data);
    draw_loop(&both, trainer, &state->eval, label, false);
    kiln_trainer_status_line(trainer, both.data);
    kiln_text_release(&both);
}

/* ---- Plain lines -------------------------------------------------------------------- */

static void append_metrics(KilnText *line, const KilnTrainer *trainer)
{
    const KilnMetric *metrics;
    size_t n = kiln_trainer_metrics(trainer, &metrics);

    for (size_t i = 0; i < n; i++)
        if (is_wanted(&metrics[i], KILN_LOG_STEP))
            kiln_text_printf(line, "  %s %.4g", metrics[i].name, metrics[i].value);
}

static void print_plain(KilnTrainer *trainer, const Loop *loop, const char *label, bool trains)
{
    const int64_t done = kiln_trainer_batch(trainer), all = kiln_trainer_batches(trainer);
    const double left = seconds_left(trainer, loop, trains);
    KilnText line = { 0 };
    char text[KILN_UNIT_TEXT];

    append_epoch(&line, trainer);
    kiln_text_printf(&line, "%s%s  %lld/%lld", label[0] != '\0' ? "  " : "", label, (long long)done,
                     (long long)all);
    if (left >= 0.0)
        kiln_text_printf(&line, "  %s left", kiln_clock_text(left, text));
    kiln_text_printf(&line, "  %.0f samples/s", kiln_trainer_samples_per_s(trainer));
    if (trains)
        append_metrics(&line, trainer);
    kiln_trainer_print(trainer, "%s", text_of(&line));
    kiln_text_release(&line);
}

/* ---- The line of an epoch ------------------------------------------------------------ */

/* Four decimals or three digits, in VALUE columns if possible. */
static void format_value(char *text, size_t size, double value)
{
    const double magnitude = fabs(value);
    const int decimals = magnitude < 10.0 ? 4 : magnitude < 100.0 ? 3 : magnitude < 1000.0 ? 2 : 1;

    if (!isfinite(value) || (magnitude < 1e4 && (magnitude >= 1e-3 || value == 0.0)))
        snprintf(text, size, "%.*f", decimals, value);
    else
        snprintf(text, size, "%.1e", value);
}

/* "train/loss 0.5163": the mean, which is "train/loss_epoch" elsewhere. */
static void append_mean(KilnText *line, const KilnMetric *metric)
{
    const size_t ending = (metric->flags & KILN_LOG_FORKED) != 0 ? strlen("_epoch") : 0;
    const size_t length = strlen(metric->name);
    char value[32];

    format_value(value, sizeof(value), metric->value);
    kiln_text_printf(line, "  %.*s %-*s", (int)(length - ending), metric->name, (int)VALUE, value);
}

static int digits(int64_t number)
{
    int n = 1;

    while ((number /= 10) != 0)
        n++;
    return n;
}

/* Values are aligned with those of the previous epoch. Time and speed are shown if they fit; the
 * output wraps longer lines. */
static void write_epoch(KilnText *line, const KilnTrainer *trainer, double seconds)
{
    const KilnConsole *console = kiln_trainer_console(trainer);
    const KilnMetric *metrics;
    const size_t n = kiln_trainer_metrics(trainer, &metrics);
    char time[KILN_UNIT_TEXT], rate[32];

    append_epoch(line, trainer);
    const int narrower = digits(kiln_trainer_max_epochs(trainer) - 1) -
                         digits(kiln_trainer_epoch(trainer));
    kiln_text_printf(line, "%*s", narrower > 0 ? narrower : 0, "");
    for (size_t i = 0; i < n; i++)
        if (is_wanted(&metrics[i], KILN_LOG_EPOCH))
            append_mean(line, &metrics[i]);
    if (seconds < 59.95)
        snprintf(time, sizeof(time), "%4.1f s", seconds);
    else
        (void)kiln_clock_text(seconds, time);
    snprintf(rate, sizeof(rate), "%5.0f samples/s", kiln_trainer_samples_per_s(trainer));
    const char *const rest[] = { time, rate };
    for (size_t i = 0; i < KILN_COUNT(rest); i++)
        if (!console->terminal || columns(text_of(line)) + 2 + columns(rest[i]) < console->width)
            kiln_text_printf(line, "  %6s", rest[i]);
    while (line->length > 0 && line->data[line->length - 1] == ' ')
        line->data[--line->length] = '\0';
}

/* ---- Hooks -------------------------------------------------------------------------- */

/* Whether a redraw or a plain line is due. */
static bool due(const Opts *opts, State *state, const KilnTrainer *trainer)
{
    const bool terminal = kiln_trainer_console(trainer)->terminal;
    const double time = kiln_clock(), interval = terminal ? opts->refresh_s : opts->plain_s;

    if (time - state->drawn < interval || interval <= 0.0)
        return false;
    state->drawn = time;
    return true;
}

static void start(Loop *loop, const KilnTrainer *trainer)
{
    loop->start = kiln_clock();
    loop->first_batch = kiln_trainer_batch(trainer);
}

/* Also when a run is resumed inside an epoch, whose start it does not see. */
static KilnStatus on_train_epoch_start(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    State *state = kiln_state(self);

    (void)err;
    start(&state->train, trainer);
    state->epoch_start = state->train.start;
    if (!kiln_trainer_console(trainer)->terminal)
        state->drawn = state->train.start;
    return KILN_OK;
}

static KilnStatus on_train_batch_end(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    State *state = kiln_state(self);

    (void)err;
    if (!due(kiln_opts(self), state, trainer))
        return KILN_OK;
    if (kiln_trainer_console(trainer)->terminal)
        draw_training(state, trainer);
    else
        print_plain(trainer, &state->train, "", true);
    return KILN_OK;
}

static KilnStatus on_eval_start(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    State *state = kiln_state(self);

    (void)err;
    start(&state->eval, trainer);
    if (!kiln_trainer_console(trainer)->terminal && state->drawn <= 0.0)
        state->drawn = state->eval.start;
    return KILN_OK;
}

static void tick_evaluation(KilnInstance *self, KilnTrainer *trainer, const char *label)
{
    State *state = kiln_state(self);

    if (!due(kiln_opts(self), state, trainer))
        return;
    if (kiln_trainer_console(trainer)->terminal) {
        draw_evaluation(state, trainer, label);
    } else {
        print_plain(trainer, &state->eval, label, false);
    }
}

static KilnStatus on_validation_batch_end(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    (void)err;
    tick_evaluation(self, trainer,
                    strcmp(kiln_trainer_phase(trainer), "sanity") == 0 ? "check" : "validate");
    return KILN_OK;
}

/* Only the line of training remains. */
static KilnStatus on_validation_end(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    const State *state = kiln_state(self);

    (void)err;
    kiln_trainer_status_line(trainer, state->train_line.length > 0 ? state->train_line.data : NULL);
    return KILN_OK;
}

static KilnStatus on_test_batch_end(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    (void)err;
    tick_evaluation(self, trainer, "test");
    return KILN_OK;
}

static KilnStatus on_predict_batch_end(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    (void)err;
    tick_evaluation(self, trainer, "predict");
    return KILN_OK;
}

static void clear_lines(KilnInstance *self, KilnTrainer *trainer)
{
    State *state = kiln_state(self);

    kiln_text_clear(&state->train_line);
    kiln_trainer_status_line(trainer, NULL);
}

static KilnStatus on_train_epoch_end(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    const State *state = kiln_state(self);
    KilnText line = { 0 };

    (void)err;
    write_epoch(&line, trainer, kiln_clock() - state->epoch_start);
    clear_lines(self, trainer);
    if (opts->leave || !kiln_trainer_console(trainer)->terminal)
        kiln_trainer_print(trainer, "%s", text_of(&line));
    kiln_text_release(&line);
    return KILN_OK;
}

static KilnStatus clear(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    (void)err;
    clear_lines(self, trainer);
    return KILN_OK;
}

static void on_exception(KilnInstance *self, KilnTrainer *trainer, const KilnError *why)
{
    (void)why;
    clear_lines(self, trainer);
}

static void release(KilnInstance *self)
{
    kiln_text_release(&((State *)kiln_state(self))->train_line);
}

static const KilnCallbackOps ops = {
    .on_sanity_check_end = clear,
    .on_train_start = on_train_epoch_start,
    .on_train_epoch_start = on_train_epoch_start,
    .on_train_batch_end = on_train_batch_end,
    .on_validation_start = on_eval_start,
    .on_validation_batch_end = on_validation_batch_end,
    .on_validation_end = on_validation_end,
    .on_train_epoch_end = on_train_epoch_end,
    .on_test_start = on_eval_start,
    .on_test_batch_end = on_test_batch_end,
    .on_test_end = clear,
    .on_predict_start = on_eval_start,
    .on_predict_batch_end = on_predict_batch_end,
    .on_predict_end = clear,
    .on_train_end = clear,
    .on_exception = on_exception,
    .shows_progress = true,
};

const KilnComponent kiln_callback_progress_bar = {
    .kind = KILN_KIND_CALLBACK,
    .name = "progress_bar",
    .summary = "Show progress, speed and metrics",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .release = release,
    .ops.callback = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_callback_progress_bar, NULL };
KILN_PLUGIN_DEFINE(list)
#endif

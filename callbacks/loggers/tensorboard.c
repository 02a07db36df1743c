/* Writes an event file for TensorBoard: scalars, histograms, images, texts, hyperparameters. */
#include "kiln.h"
#include "kiln/files/events.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { X_STEP, X_EPOCH, X_SAMPLES };

#define MAIN_FILE "tensorboard/events.out.tfevents.0.kiln"

typedef struct Opts {
    int64_t x_axis;
} Opts;

typedef struct State {
    const Opts *opts;
    KilnEvents *events;
    KilnEvents *measured; /* NULL: no measured value yet */
    const char *dir;      /* the run folder */
    double wall_time;     /* of the newest row */
    int64_t x;
} State;

static const KilnChoice axes[] = {
    { "step", X_STEP }, { "epoch", X_EPOCH }, { "samples", X_SAMPLES }, { NULL, 0 }
};

static const KilnField fields[] = {
    KILN_FIELD_ENUM(Opts, x_axis, "step", axes,
                    "the x axis (TensorBoard's step): optimizer steps, epochs or samples"),
    KILN_FIELD_END,
};

static KilnStatus check(const void *opts, const char **ret_option, KilnError *err)
{
    (void)opts;
    (void)ret_option;
    return kiln_events_supported(err);
}

static KilnStatus init(KilnInstance *self, KilnError *err)
{
    State *state = kiln_state(self);

    (void)err;
    state->opts = kiln_opts(self);
    return KILN_OK;
}

static KilnStatus add_to(State *state, KilnEvents *events, KilnEvent event, const KilnLogRow *at,
                         KilnError *err)
{
    if (at != NULL) {
        state->wall_time = at->wall_time;
        state->x = state->opts->x_axis == X_EPOCH     ? at->epoch
                   : state->opts->x_axis == X_SAMPLES ? at->samples
                                                      : at->step;
    }
    event.wall_time = state->wall_time;
    event.step = state->x;
    return kiln_events_add(events, &event, err);
}

static KilnStatus add(State *state, KilnEvent event, const KilnLogRow *at, KilnError *err)
{
    return add_to(state, state->events, event, at, err);
}

/* The config as a Markdown code block, indented by four. */
static KilnStatus add_config(State *state, const char *config, KilnError *err)
{
    size_t lines = 1;

    for (const char *p = config; *p != '\0'; p++)
        lines += *p == '\n';
    char *text = malloc(strlen(config) + 4 * lines + 1), *to = text;
    if (text == NULL)
        return kiln_error_nomem(err, strlen(config));
    for (const char *line = config; *line != '\0';) {
        size_t length = strcspn(line, "\n");

        length += line[length] == '\n';
        memcpy(to, "    ", 4);
        memcpy(to + 4, line, length);
        to += 4 + length;
        line += length;
    }
    *to = '\0';
    KilnStatus status = add(
        state, (KilnEvent) { .kind = KILN_EVENT_TEXT, .tag = "config", .text = text }, NULL, err);
    free(text);
    return status;
}

static KilnStatus begin(State *state, const KilnLogRun *run, KilnError *err)
{
    KilnStatus status = add(state, (KilnEvent) { .kind = KILN_EVENT_EXPERIMENT, .run = run }, NULL,
                            err);

    if (status >= 0)
        status = add(state, (KilnEvent) { .kind = KILN_EVENT_SESSION, .run = run }, NULL, err);
    return status >= 0 && run->config != NULL ? add_config(state, run->config, err) : status;
}

/* One name for all sessions of a run, so a resumed run continues its file. */
static KilnStatus open_file(KilnInstance *self, const KilnLogRun *run, KilnError *err)
{
    State *state = kiln_state(self);
    char path[4096 + 64];
    int64_t offset = 0;

    if (strlen(run->dir) >= 4096)
        return kiln_error_set(err, KILN_E_RANGE, "%s: the path is too long", run->dir);
    snprintf(path, sizeof(path), "%s/tensorboard", run->dir);
    if (mkdir(path, 0777) != 0 && errno != EEXIST)
        return kiln_error_errno(err, path);
    snprintf(path, sizeof(path), "%s/" MAIN_FILE, run->dir);
    if (run->state != NULL)
        (void)kiln_state_get_i64(run->state, "offset", &offset);
    state->dir = run->dir;
    state->wall_time = (double)time(NULL);
    KilnStatus status = kiln_events_open(path, offset, &state->events, err);
    if (status >= 0 && (offset == 0 || kiln_events_offset(state->events) != offset))
        status = begin(state, run, err);
    return status;
}

/* The measured values of each session are a separate file and, for TensorBoard, a separate run, so
 * the main file of a resumed run equals that of an uninterrupted one. */
static KilnStatus open_measured(State *state, KilnError *err)
{
    char path[4096 + 96];

    snprintf(path, sizeof(path), "%s/tensorboard/measured", state->dir);
    if (mkdir(path, 0777) != 0 && errno != EEXIST)
        return kiln_error_errno(err, path);
    snprintf(path, sizeof(path), "%s/tensorboard/measured/events.out.tfevents.%lld.kiln",
             state->dir, (long long)state->wall_time);
    return kiln_events_open(path, 0, &state->measured, err);
}

static KilnStatus log_metrics(KilnInstance *self, const KilnLogRow *row, KilnError *err)
{
    State *state = kiln_state(self);
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < row->n && status >= 0; i++) {
        const KilnMetric *metric = &row->metrics[i];
        const bool measured = (metric->flags & KILN_LOG_MEASURED) != 0;

        if (measured && state->measured == NULL)
            status = open_measured(state, err);
        if (status >= 0)
            status = add_to(state, measured ? state->measured : state->events,
                            (KilnEvent) { .kind = KILN_EVENT_SCALAR,
                                          .tag = metric->name,
                                          .scalar = metric->value },
                            row, err);
    }
    return status;
}

static KilnStatus log_histogram(KilnInstance *self, const KilnLogRow *at, const char *name,
                                const KilnHistogram *histogram, KilnError *err)
{
    return add(kiln_state(self),
               (KilnEvent) { .kind = KILN_EVENT_HISTOGRAM, .tag = name, .histogram = histogram },
               at, err);
}

static KilnStatus log_image(KilnInstance *self, const KilnLogRow *at, const char *name,
                            const KilnPixels *pixels, KilnError *err)
{
    KilnEvent event = {
        .kind = KILN_EVENT_IMAGE,
        .tag = name,
        .height = pixels->height,
        .width = pixels->width,
        .channels = pixels->channels,
    };
    uint8_t *png = NULL;
    KilnStatus status = kiln_png_encode(pixels->data, pixels->height, pixels->width,
                                        pixels->channels, &png, &event.png_size, err);

    event.png = png;
    if (status >= 0)
        status = add(kiln_state(self), event, at, err);
    free(png);
    return status;
}

static KilnStatus log_text(KilnInstance *self, const KilnLogRow *at, const char *name,
                           const char *text, KilnError *err)
{
    return add(kiln_state(self), (KilnEvent) { .kind = KILN_EVENT_TEXT, .tag = name, .text = text },
               at, err);
}

static KilnStatus flush(KilnInstance *self, KilnError *err)
{
    State *state = kiln_state(self);

    KilnStatus status = state->events != NULL ? kiln_events_flush(state->events, err) : KILN_OK;
    if (status >= 0 && state->measured != NULL)
        status = kiln_events_flush(state->measured, err);
    return status;
}

static void state_dict(KilnInstance *self, KilnState *saved)
{
    const State *state = kiln_state(self);

    kiln_state_set_i64(saved, "offset", kiln_events_offset(state->events));
}

static KilnStatus close_file(KilnInstance *self, const char *status, const KilnMetric *metrics,
                             size_t n, KilnError *err)
{
    State *state = kiln_state(self);

    (void)metrics;
    (void)n;
    state->wall_time = (double)time(NULL);
    return add(
        state,
        (KilnEvent) { .kind = KILN_EVENT_SESSION_END, .failed = strcmp(status, "failed") == 0 },
        NULL, err);
}

static void release(KilnInstance *self)
{
    State *state = kiln_state(self);

    kiln_events_close(state->events);
    kiln_events_close(state->measured);
}

static const char *const files[] = { MAIN_FILE, NULL };

static const KilnLoggerOps ops = {
    .open = open_file,
    .log_metrics = log_metrics,
    .log_histogram = log_histogram,
    .log_image = log_image,
    .log_text = log_text,
    .flush = flush,
    .state_dict = state_dict,
    .close = close_file,
    .files = files,
};

const KilnComponent kiln_logger_tensorboard = {
    .kind = KILN_KIND_LOGGER,
    .name = "tensorboard",
    .summary = "Write an event file for TensorBoard to tensorboard/ in the run folder",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .check = check,
    .init = init,
    .release = release,
    .ops.logger = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_logger_tensorboard, NULL };
KILN_PLUGIN_DEFINE(list)
#endif

/* kiln top: shows the live runs of this user on this machine, again and again. */
#include <jansson.h>
#include <math.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "base/system/file.h"
#include "base/system/process_registry.h"
#include "base/text.h"
#include "base/utf8.h"
#include "cli/commands/commands.h"
#include "cli/screen/screen.h"
#include "kiln/tools/clock.h"
#include "sweep/sweep.h"
#include "train/report/live_page.h"
#include "train/report/run_messages.h"

enum { REFRESH_MS = 500, PATH = 4096, BAR = 20, BAR_NARROW = 10, NARROW = 70, QUIET_S = 30 };

static const char plain[] = "", bold[] = "\033[1m", dim[] = "\033[2m", green[] = "\033[32m",
                  yellow[] = "\033[33m", cyan[] = "\033[36m";

typedef struct Run {
    KilnLiveSnapshot live;
    char dir[PATH];
    char sweep[PATH]; /* the folder of the sweep that it is a job of; "": none */
} Run;

/* ---- Collecting ------------------------------------------------------------------------- */

/* Jobs of a sweep come together, in order of their numbers. */
static int compare_runs(const void *a, const void *b)
{
    const Run *x = a, *y = b;
    int order = strcmp(x->sweep, y->sweep);

    if (order == 0 && x->sweep[0] != '\0')
        order = (strlen(x->dir) > strlen(y->dir)) - (strlen(x->dir) < strlen(y->dir));
    return order != 0 ? order : strcmp(x->dir, y->dir);
}

/* Set run->sweep to the folder above, if that is a sweep. */
static void find_sweep(Run *run)
{
    size_t jobs, ended;

    snprintf(run->sweep, sizeof(run->sweep), "%s", run->dir);
    *strrchr(run->sweep, '/') = '\0'; /* the registry has absolute paths */
    if (kiln_sweep_status(run->sweep, &jobs, &ended, NULL) < 0)
        run->sweep[0] = '\0';
}

/* The runs that are live now, owned by the caller (free). */
static KilnStatus collect(Run **ret, size_t *ret_count, KilnError *err)
{
    char **dirs = NULL;
    size_t n = 0, count = 0;
    KilnStatus status = kiln_process_registry_list(&dirs, &n, err);
    Run *runs = status >= 0 ? calloc(n + 1, sizeof(*runs)) : NULL;

    if (status >= 0 && runs == NULL)
        status = kiln_error_nomem(err, (n + 1) * sizeof(*runs));
    for (size_t i = 0; i < n && runs != NULL; i++) {
        Run *run = &runs[count];

        if (dirs[i][0] != '/' || strlen(dirs[i]) >= PATH ||
            kiln_live_page_read(dirs[i], &run->live, NULL) < 0 || !kiln_live_alive(&run->live))
            continue;
        snprintf(run->dir, sizeof(run->dir), "%s", dirs[i]);
        find_sweep(run);
        count++;
    }
    kiln_names_free(dirs, n);
    if (count > 0)
        qsort(runs, count, sizeof(*runs), compare_runs);
    *ret = runs;
    *ret_count = count;
    return status;
}

/* ---- Parts of lines ------------------------------------------------------------------------ */

/* A picture in the making. Text that does not fit the width of its line is left out. */
typedef struct Picture {
    KilnText text;
    const KilnConsole *console;
    int used;             /* columns of this line */
    const char *line_end; /* erases the rest of the line where the picture replaces another */
} Picture;

/* Append text of any origin, without control characters, as far as there are columns. */
static void put(Picture *picture, const char *style, const char *text)
{
    const bool styled = picture->console->colour && style[0] != '\0';

    kiln_text_append(&picture->text, styled ? style : "");
    while (*text != '\0') {
        uint32_t character;
        const size_t size = kiln_utf8_next(text, strlen(text), &character);
        const int width = kiln_utf8_width(character);

        if (picture->used + width >= picture->console->width)
            break;
        if (character < 0x20 || character == 0x7f || character == 0xfffd)
            kiln_text_char(&picture->text, '?');
        else
            kiln_text_append_n(&picture->text, text, size);
        picture->used += width;
        text += size;
    }
    kiln_text_append(&picture->text, styled ? "\033[0m" : "");
}

/* Append a field after two spaces, if there is room for all of it. */
static void put_field(Picture *picture, const char *style, const char *format, ...)
    KILN_PRINTF(3, 4);
static void put_field(Picture *picture, const char *style, const char *format, ...)
{
    char text[KILN_LIVE_NAME + 64];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (picture->used + 2 + (int)strlen(text) >= picture->console->width)
        return;
    put(picture, plain, "  ");
    put(picture, style, text);
}

static void end_line(Picture *picture)
{
    kiln_text_append(&picture->text, picture->line_end);
    picture->used = 0;
}

/* ---- One run ------------------------------------------------------------------------ */

/* The fraction done of the run, or of its epoch when the run has no end; 0 to 1. */
static double share_done(const KilnLiveSnapshot *live)
{
    const KilnLivePosition *at = &live->at;
    double done = at->batches > 0 ? (double)at->batch / (double)at->batches : 0.0;

    if (at->phase == KILN_LIVE_TEST) /* of a checkpoint of any epoch, after all of them */
        done = 1.0;
    else if (live->run.max_steps > 0)
        done = (double)at->step / (double)live->run.max_steps;
    else if (live->run.max_epochs > 0)
        done = ((double)at->epoch + done) / (double)live->run.max_epochs;
    return done < 0.0 || !isfinite(done) ? 0.0 : done > 1.0 ? 1.0 : done;
}

static void put_bar(Picture *picture, double share)
{
    const KilnConsole *console = picture->console;
    const int width = console->width < NARROW ? BAR_NARROW : BAR, filled = (int)(share * width);

    put(picture, plain, "  ");
    for (int i = 0; i < width; i++)
        put(picture, i < filled ? cyan : dim,
            i < filled ? (console->utf8 ? "━" : "#") : (console->utf8 ? "─" : "-"));
    put_field(picture, plain, "%d%%", (int)(100.0 * share));
}

/* "validate 3/9  epoch 2/9", "fit  epoch 2", "saving  epoch 2". */
static void put_phase(Picture *picture, const KilnLiveSnapshot *live)
{
    const char *phase = kiln_live_phase_name(live->at.phase);
    const long long epoch = live->at.epoch, last = live->run.max_epochs - 1;

    if (live->saving == 0 && live->at.evals > 0)
        put_field(picture, green, "%s %lld/%lld", phase, (long long)live->at.eval_batch,
                  (long long)live->at.evals);
    else
        put_field(picture, green, "%s", live->saving > 0 ? "saving" : phase);
    if (last >= 0)
        put_field(picture, plain, "epoch %lld/%lld", epoch, last);
    else
        put_field(picture, plain, "epoch %lld", epoch);
}

static void put_progress(Picture *picture, const KilnLiveSnapshot *live)
{
    const KilnLiveRates *rates = &live->rates;
    struct timespec now = { 0 };
    char time[KILN_UNIT_TEXT];

    clock_gettime(CLOCK_REALTIME, &now);
    const double silent = (double)now.tv_sec - rates->written;
    put_phase(picture, live);
    put_bar(picture, share_done(live));
    if (rates->left_s >= 0.0 && rates->left_s < 1e9)
        put_field(picture, plain, "%s left", kiln_clock_text(rates->left_s, time));
    if (silent > QUIET_S && silent < 1e9)
        put_field(picture, yellow, "no news for %s", kiln_clock_text(silent, time));
    if (live->at.stopping != 0)
        put_field(picture, yellow, "stopping");
    if (rates->samples_per_s > 0.0)
        put_field(picture, plain, "%.0f/s", rates->samples_per_s);
    if (!isnan(rates->loss))
        put_field(picture, plain, "loss %.4g", rates->loss);
    for (int i = 0; i < rates->n_metrics; i++)
        if (strcmp(rates->metrics[i].name, "train/loss_step") != 0) /* the loss above */
            put_field(picture, plain, "%s %.4g", rates->metrics[i].name, rates->metrics[i].value);
    end_line(picture);
}

static bool has_word(const char *label, const char *word)
{
    const size_t length = strlen(word);

    for (const char *p = label; (p = strstr(p, word)) != NULL; p++)
        if ((p == label || p[-1] == ' ') && (p[length] == ' ' || p[length] == '\0'))
            return true;
    return false;
}

/* The overrides of a run; of a sweep's job only those that its n jobs do not share. */
static void put_label(Picture *picture, const Run *run, const Run *jobs, size_t n)
{
    const char *gap = "  ";

    for (const char *p = run->live.run.label; *p != '\0'; p += strspn(p, " ")) {
        char word[KILN_LIVE_LABEL];
        size_t with = 0;

        snprintf(word, sizeof(word), "%.*s", (int)strcspn(p, " "), p);
        p += strlen(word);
        for (size_t i = 0; i < n; i++)
            with += has_word(jobs[i].live.run.label, word);
        if (n > 1 && with == n)
            continue;
        put(picture, plain, gap);
        put(picture, dim, word);
        gap = " ";
    }
}

/* A run, or a job of a sweep with n live jobs. */
static void put_run(Picture *picture, const Run *run, const Run *jobs, size_t n)
{
    const bool job = run->sweep[0] != '\0';

    put(picture, plain, job ? "  " : "");
    put(picture, bold, job ? strrchr(run->dir, '/') + 1 : kiln_path_near(run->dir));
    put_label(picture, run, jobs, n);
    end_line(picture);
    put(picture, plain, job ? "  " : "");
    put_progress(picture, &run->live);
}

/* Start a sweep's jobs with a line for the sweep. Returns the number of its live jobs. */
static size_t put_sweep(Picture *picture, const Run *first, const Run *end)
{
    size_t jobs = 0, ended = 0, running = 0;

    while (first + running < end && strcmp(first[running].sweep, first->sweep) == 0)
        running++;
    put(picture, bold, kiln_path_near(first->sweep));
    if (kiln_sweep_status(first->sweep, &jobs, &ended, NULL) >= 0)
        put_field(picture, dim, "sweep: %zu of %zu jobs done, %zu running", ended, jobs, running);
    end_line(picture);
    return running;
}

/* Draw two lines for each run: its folder and overrides, and its progress. At most `rows` lines (0:
 * any number). */
static void draw(Picture *picture, const Run *runs, size_t n, int rows)
{
    const Run *jobs = NULL;
    size_t n_jobs = 0;
    int used = 0;
    char more[64];

    if (n == 0) {
        put(picture, plain, "you have no live runs on this machine");
        end_line(picture);
    }
    for (size_t i = 0; i < n; i++) {
        const bool heads = i == 0 || strcmp(runs[i].sweep, runs[i - 1].sweep) != 0;

        used += 2 + (heads && runs[i].sweep[0] != '\0');
        if (rows > 0 && used > rows - (i + 1 < n)) {
            snprintf(more, sizeof(more), "... and %zu more", n - i);
            put(picture, plain, more);
            end_line(picture);
            return;
        }
        if (heads) {
            jobs = &runs[i];
            n_jobs = runs[i].sweep[0] != '\0' ? put_sweep(picture, jobs, runs + n) : 0;
        }
        put_run(picture, &runs[i], jobs, n_jobs);
    }
}

/* ---- JSON --------------------------------------------------------------------------- */

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *run_json(const Run *run)
{
    const KilnLiveSnapshot *live = &run->live;
    json_t *metrics = json_object();

    for (int i = 0; i < live->rates.n_metrics; i++)
        json_object_set_new(metrics, live->rates.metrics[i].name,
                            number(live->rates.metrics[i].value));
    return json_pack(
        "{s:s%, s:o, s:I, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:b, s:o, s:o, s:o, "
        "s:o}",
        "run_dir", run->dir, strlen(run->dir), "sweep",
        run->sweep[0] != '\0' ? json_string(run->sweep) : json_null(), "pid",
        (json_int_t)live->run.pid, "overrides", live->run.label, "phase",
        kiln_live_phase_name(live->at.phase), "epoch", (json_int_t)live->at.epoch, "max_epochs",
        (json_int_t)live->run.max_epochs, "step", (json_int_t)live->at.step, "batch",
        (json_int_t)live->at.batch, "batches", (json_int_t)live->at.batches, "eval_batch",
        (json_int_t)live->at.eval_batch, "eval_batches", (json_int_t)live->at.evals, "done",
        share_done(live), "saving", live->saving > 0, "samples_per_s",
        number(live->rates.samples_per_s), "seconds_left",
        live->rates.left_s >= 0.0 ? number(live->rates.left_s) : json_null(), "loss",
        number(live->rates.loss), "metrics", metrics);
}

static void put_json(KilnText *text, const Run *runs, size_t n)
{
    json_t *all = json_array();

    for (size_t i = 0; i < n; i++)
        (void)json_array_append_new(all, run_json(&runs[i])); /* ignores NULL: a name is no UTF-8 */
    char *dumped = kiln_json_dump(all, JSON_INDENT(2));
    kiln_text_printf(text, "%s\n", dumped != NULL ? dumped : "[]");
    free(dumped);
    json_decref(all);
}

/* ---- The screen ---------------------------------------------------------------------------- */

/* Show the runs that are live now, on a terminal in place of what was there. */
static KilnStatus show(KilnConsole *console, bool json, int rows, KilnError *err)
{
    const bool replaces = rows > 0; /* line by line, so that nothing flickers */
    Picture picture = { .console = console, .line_end = replaces ? "\033[K\n" : "\n" };
    Run *runs = NULL;
    size_t n = 0;
    KilnStatus status = collect(&runs, &n, err);

    if (status < 0)
        return status;
    kiln_text_append(&picture.text, replaces ? "\033[H" : "");
    if (json)
        put_json(&picture.text, runs, n);
    else
        draw(&picture, runs, n, rows);
    if (replaces)
        kiln_text_printf(&picture.text, "\033[J\n%sq: quit%s", console->colour ? dim : "",
                         console->colour ? "\033[0m" : "");
    if (picture.text.failed)
        status = kiln_error_nomem(err, picture.text.length);
    else
        console->write(console->ctx, picture.text.data);
    kiln_text_release(&picture.text);
    free(runs);
    return status;
}

static int terminal_rows(void)
{
    struct winsize size = { 0 };

    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 ? size.ws_row : 24;
}

/* Read keys one by one, without echo; false: there are no keys. */
static bool take_keys(struct termios *before)
{
    struct termios raw;

    if (!isatty(STDIN_FILENO) || tcgetattr(STDIN_FILENO, before) != 0)
        return false;
    raw = *before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    return tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
}

/* Wait until the next refresh; true: the user quits. */
static bool quits(bool keys, const volatile int *stop)
{
    struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
    char key = 'q'; /* also at the end of input */

    if (poll(&in, keys ? 1 : 0, REFRESH_MS) > 0 &&
        (read(STDIN_FILENO, &key, 1) < 0 || memchr("qQ\004\033", key, 4) != NULL))
        return true;
    return *stop != 0;
}

static KilnStatus watch(KilnConsole *console, KilnError *err)
{
    const volatile int *stop = kiln_screen_catch_signals().stop;
    struct termios before;
    const bool keys = take_keys(&before);
    KilnStatus status;

    console->write(console->ctx, "\033[?1049h\033[?25l");
    do {
        console->width = console->measure(console->ctx);
        status = show(console, false, terminal_rows() - 2, err);
    } while (status >= 0 && !quits(keys, stop));
    console->write(console->ctx, "\033[?25h\033[?1049l");
    if (keys)
        (void)tcsetattr(STDIN_FILENO, TCSANOW, &before);
    return status;
}

int kiln_command_top(KilnArgs *args)
{
    KilnConsole console = kiln_screen_console(stdout);
    KilnError err = { 0 };
    KilnStatus status;

    if (args->n_words > 0)
        status = kiln_error_set(&err, KILN_E_USAGE,
                                "%s: top takes no words; `kiln top --help` lists its flags",
                                args->words[0]);
    else if (args->json || args->once || !console.terminal)
        status = show(&console, args->json, 0, &err);
    else
        status = watch(&console, &err);
    return kiln_screen_result(args->command, status, &err);
}

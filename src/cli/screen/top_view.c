/* Collects live runs and draws them. */
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/system/file.h"
#include "base/json.h"
#include "base/system/process_registry.h"
#include "base/utf8.h"
#include "cli/screen/top_view.h"
#include "sweep/sweep.h"
#include "train/report/live_page.h"
#include "train/report/run_messages.h"

enum { PATH = 4096, BAR = 20, BAR_NARROW = 10, NARROW = 70, QUIET_S = 30 };

struct KilnTopRun {
    KilnLiveSnapshot live;
    char dir[PATH];
    char sweep[PATH]; /* the folder of the sweep that it is a job of; "": none */
};

/* ---- Collecting ------------------------------------------------------------------------- */

static int compare_runs(const void *a, const void *b)
{
    const KilnTopRun *x = a, *y = b;
    int order = strcmp(x->sweep, y->sweep);

    if (order != 0)
        return order;
    order = strlen(x->dir) < strlen(y->dir) ? -1 : strlen(x->dir) > strlen(y->dir);
    return order != 0 && x->sweep[0] != '\0' ? order : strcmp(x->dir, y->dir);
}

/* Set run->sweep to the folder above, if that is a sweep. */
static void find_sweep(KilnTopRun *run)
{
    size_t jobs, ended;

    snprintf(run->sweep, sizeof(run->sweep), "%s", run->dir);
    char *slash = strrchr(run->sweep, '/');
    if (slash != NULL)
        *slash = '\0';
    if (slash == NULL || kiln_sweep_status(run->sweep, &jobs, &ended, NULL) < 0)
        run->sweep[0] = '\0';
}

KilnStatus kiln_top_collect(KilnTopRun **ret, size_t *ret_count, KilnError *err)
{
    char **dirs = NULL;
    size_t n = 0, count = 0;
    KilnStatus status = kiln_process_registry_list(&dirs, &n, err);

    if (status < 0)
        return status;
    KilnTopRun *runs = calloc(n + 1, sizeof(*runs));
    for (size_t i = 0; i < n && runs != NULL; i++) {
        KilnTopRun *run = &runs[count];

        if (strlen(dirs[i]) >= PATH || kiln_live_page_read(dirs[i], &run->live, NULL) < 0 ||
            !kiln_live_alive(&run->live))
            continue;
        snprintf(run->dir, sizeof(run->dir), "%s", dirs[i]);
        find_sweep(run);
        count++;
    }
    kiln_names_free(dirs, n);
    if (runs == NULL)
        return kiln_error_nomem(err, (n + 1) * sizeof(*runs));
    qsort(runs, count, sizeof(*runs), compare_runs);
    *ret = runs;
    *ret_count = count;
    return KILN_OK;
}

/* ---- Parts of lines ------------------------------------------------------------------------ */

/* A line in the making; text that does not fit its width is left out. */
typedef struct Row {
    KilnText *text;
    const KilnConsole *console;
    int used;
} Row;

/* Append text of any origin, without control characters, as far as there are columns. */
static void put(Row *row, const char *style, const char *text)
{
    const int room = row->console->width - 1;
    const bool styled = row->console->colour && style[0] != '\0';

    kiln_text_append(row->text, styled ? style : "");
    while (*text != '\0') {
        uint32_t character;
        const size_t size = kiln_utf8_next(text, strlen(text), &character);
        const int width = kiln_utf8_width(character);

        if (row->used + width > room)
            break;
        if (character < 0x20 || character == 0x7f || character == 0xfffd)
            kiln_text_char(row->text, '?');
        else
            kiln_text_append_n(row->text, text, size);
        row->used += width;
        text += size;
    }
    kiln_text_append(row->text, styled ? "\033[0m" : "");
}

/* Append a field after two spaces, if there is room for all of it. */
static void put_field(Row *row, const char *style, const char *format, ...) KILN_PRINTF(3, 4);
static void put_field(Row *row, const char *style, const char *format, ...)
{
    char text[KILN_LIVE_NAME + 64];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (row->used + 2 + (int)strlen(text) > row->console->width - 1)
        return;
    put(row, "", "  ");
    put(row, style, text);
}

static void end_row(Row *row)
{
    kiln_text_char(row->text, '\n');
    row->used = 0;
}

static const char *time_text(double seconds, char *buf, size_t size)
{
    const long whole = (long)(seconds + 0.5);

    if (whole >= 86400)
        snprintf(buf, size, "%ldd%02ldh", whole / 86400, whole / 3600 % 24);
    else if (whole >= 3600)
        snprintf(buf, size, "%ld:%02ld:%02ld", whole / 3600, whole / 60 % 60, whole % 60);
    else
        snprintf(buf, size, "%ld:%02ld", whole / 60, whole % 60);
    return buf;
}

/* ---- One run ------------------------------------------------------------------------ */

/* The fraction done of the run, or of its epoch when the run has no end; 0 to 1. */
static double share_done(const KilnLiveSnapshot *live)
{
    const KilnLivePosition *at = &live->at;
    const double epoch = at->batches > 0 ? (double)at->batch / (double)at->batches : 0.0;
    double done = epoch;

    if (at->phase == KILN_LIVE_TEST) /* of a checkpoint of any epoch, after all of them */
        done = 1.0;
    else if (live->run.max_steps > 0)
        done = (double)at->step / (double)live->run.max_steps;
    else if (live->run.max_epochs > 0)
        done = ((double)at->epoch + epoch) / (double)live->run.max_epochs;
    return done < 0.0 || !isfinite(done) ? 0.0 : done > 1.0 ? 1.0 : done;
}

static void put_bar(Row *row, double share, int width)
{
    const KilnConsole *console = row->console;
    const int filled = (int)(share * width);

    put(row, "", "  ");
    for (int i = 0; i < width; i++)
        put(row, i < filled ? "\033[36m" : "\033[2m",
            i < filled ? (console->utf8 ? "━" : "#") : (console->utf8 ? "─" : "-"));
}

/* "validate 3/9", "fit", "saving". */
static void put_phase(Row *row, const KilnLiveSnapshot *live)
{
    static const char green[] = "\033[32m";
    const char *phase = kiln_live_phase_name(live->at.phase);
    const long long epoch = live->at.epoch, last = live->run.max_epochs - 1;

    if (live->saving > 0)
        put_field(row, green, "saving");
    else if (live->at.evals > 0)
        put_field(row, green, "%s %lld/%lld", phase, (long long)live->at.eval_batch,
                  (long long)live->at.evals);
    else
        put_field(row, green, "%s", phase);
    if (last >= 0)
        put_field(row, "", "epoch %lld/%lld", epoch, last);
    else
        put_field(row, "", "epoch %lld", epoch);
}

static double wall_clock(void)
{
    struct timespec at = { 0 };

    clock_gettime(CLOCK_REALTIME, &at);
    return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

static void put_progress(Row *row, const KilnLiveSnapshot *live)
{
    static const char yellow[] = "\033[33m";
    const KilnLiveRates *rates = &live->rates;
    const double silent = wall_clock() - rates->written;
    char time[32];

    put_phase(row, live);
    put_bar(row, share_done(live), row->console->width < NARROW ? BAR_NARROW : BAR);
    put_field(row, "", "%d%%", (int)(100.0 * share_done(live)));
    if (rates->left_s >= 0.0 && rates->left_s < 1e9)
        put_field(row, "", "%s left", time_text(rates->left_s, time, sizeof(time)));
    if (silent > QUIET_S && silent < 1e9)
        put_field(row, yellow, "no news for %s", time_text(silent, time, sizeof(time)));
    if (live->at.stopping != 0)
        put_field(row, yellow, "stopping");
    if (rates->samples_per_s > 0.0)
        put_field(row, "", "%.0f/s", rates->samples_per_s);
    if (!isnan(rates->loss))
        put_field(row, "", "loss %.4g", rates->loss);
    for (int i = 0; i < rates->n_metrics; i++)
        if (strcmp(rates->metrics[i].name, "train/loss_step") != 0) /* the loss above */
            put_field(row, "", "%s %.4g", rates->metrics[i].name, rates->metrics[i].value);
    end_row(row);
}

/* Whether a word, of that length, is in the label. */
static bool has_word(const char *label, const char *word, size_t length)
{
    for (const char *p = label; *p != '\0'; p += *p == ' ') {
        const size_t size = strcspn(p, " ");

        if (size == length && strncmp(p, word, length) == 0)
            return true;
        p += size;
    }
    return false;
}

/* The overrides of a run; of a sweep's job only those that its n jobs do not share. */
static void put_label(Row *row, const KilnTopRun *run, const KilnTopRun *jobs, size_t n)
{
    const char *label = run->live.run.label;
    bool first = true;

    for (const char *p = label; *p != '\0'; p += *p == ' ') {
        const size_t size = strcspn(p, " ");
        char word[KILN_LIVE_LABEL];
        size_t with = 0;

        for (size_t i = 0; i < n; i++)
            with += has_word(jobs[i].live.run.label, p, size);
        snprintf(word, sizeof(word), "%s%.*s", first ? "" : " ", (int)size, p);
        if (n < 2 || with < n) {
            put(row, "\033[2m", word);
            first = false;
        }
        p += size;
    }
}

/* A run, or a job of a sweep with n live jobs. */
static void put_run(Row *row, const KilnTopRun *run, const KilnTopRun *jobs, size_t n)
{
    const char *slash = strrchr(run->dir, '/');
    const bool job = run->sweep[0] != '\0' && slash != NULL;

    if (job)
        put(row, "", "  ");
    put(row, "\033[1m", job ? slash + 1 : kiln_path_near(run->dir));
    put(row, "", "  ");
    put_label(row, run, jobs, n);
    end_row(row);
    if (job)
        put(row, "", "  ");
    put_progress(row, &run->live);
}

static void put_sweep(Row *row, const char *dir, size_t running)
{
    size_t jobs = 0, ended = 0;

    put(row, "\033[1m", kiln_path_near(dir));
    if (kiln_sweep_status(dir, &jobs, &ended, NULL) >= 0)
        put_field(row, "\033[2m", "sweep: %zu of %zu jobs done, %zu running", ended, jobs, running);
    end_row(row);
}

/* The number of jobs of one sweep from `first` on. */
static size_t same_sweep(const KilnTopRun *runs, size_t n, size_t first)
{
    size_t count = 0;

    while (first + count < n && strcmp(runs[first + count].sweep, runs[first].sweep) == 0)
        count++;
    return count;
}

void kiln_top_draw(KilnText *text, const KilnTopRun *runs, size_t n, const KilnConsole *console,
                   int rows)
{
    Row row = { .text = text, .console = console };
    const KilnTopRun *jobs = NULL;
    size_t n_jobs = 0;
    int used = 0;

    if (n == 0) {
        put(&row, "", "you have no live runs on this machine");
        end_row(&row);
    }
    for (size_t i = 0; i < n; i++) {
        const bool heads = runs[i].sweep[0] != '\0' &&
                           (i == 0 || strcmp(runs[i].sweep, runs[i - 1].sweep) != 0);
        char more[64];

        used += 2 + heads;
        if (rows > 0 && used > rows - (i + 1 < n)) {
            snprintf(more, sizeof(more), "... and %zu more", n - i);
            put(&row, "", more);
            end_row(&row);
            return;
        }
        if (runs[i].sweep[0] == '\0')
            n_jobs = 0;
        if (heads) {
            jobs = &runs[i];
            n_jobs = same_sweep(runs, n, i);
            put_sweep(&row, runs[i].sweep, n_jobs);
        }
        put_run(&row, &runs[i], jobs, n_jobs);
    }
}

/* ---- JSON --------------------------------------------------------------------------- */

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *run_json(const KilnTopRun *run)
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

void kiln_top_json(KilnText *text, const KilnTopRun *runs, size_t n)
{
    json_t *all = json_array();

    for (size_t i = 0; i < n; i++) {
        json_t *one = run_json(&runs[i]);

        if (one != NULL) /* NULL: a name is no UTF-8 */
            json_array_append_new(all, one);
    }
    char *dumped = kiln_json_dump(all, JSON_INDENT(2));
    kiln_text_append(text, dumped != NULL ? dumped : "[]");
    kiln_text_char(text, '\n');
    free(dumped);
    json_decref(all);
}

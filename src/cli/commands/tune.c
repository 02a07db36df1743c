/* kiln tune: search a learning rate, a batch size, for the run that the arguments describe. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "cli/commands/commands.h"
#include "cli/screen/screen.h"
#include "kiln/plot.h"
#include "train/analysis/tune.h"

/* What can be searched, in the order in which one depends on the other. */
typedef struct Search {
    const char *word, *path, *choose;
    bool draws;
} Search;

static const Search searches[] = {
    { "batch_size", "callbacks.batch_size_finder",
      "++callbacks.batch_size_finder._target_=callback/batch_size_finder", false },
    { "lr", "callbacks.lr_finder", "++callbacks.lr_finder._target_=callback/lr_finder", true },
};
enum { SEARCHES = KILN_COUNT(searches) };

/* ---- Arguments ------------------------------------------------------------------------- */

/* Take the words that name searches out of the arguments; none: all are asked for. */
static void take_words(KilnArgs *args, bool asked[SEARCHES])
{
    bool any = false;
    size_t n = 0;

    for (size_t i = 0; i < args->n_words; i++) {
        bool taken = false;

        for (size_t k = 0; k < SEARCHES; k++)
            if (strcmp(args->words[i], searches[k].word) == 0)
                asked[k] = any = taken = true;
        if (!taken)
            args->words[n++] = args->words[i];
    }
    args->n_words = n;
    args->words[n] = NULL;
    for (size_t k = 0; k < SEARCHES; k++)
        asked[k] = asked[k] || !any;
}

/* The config, with the callbacks that search in front of the arguments about their options. */
static KilnStatus compose(KilnArgs *args, const bool asked[SEARCHES], const KilnRegistry *registry,
                          KilnConfig **ret)
{
    const char **words = calloc(args->n_words + SEARCHES + 1, sizeof(*words)), **own = args->words;
    KilnError err = { 0 };
    size_t n = 0;

    if (words == NULL) {
        kiln_error_nomem(&err, args->n_words * sizeof(*words));
        kiln_screen_error(args->command, &err);
        return KILN_E_NOMEM;
    }
    for (size_t k = 0; k < SEARCHES; k++)
        if (asked[k])
            words[n++] = searches[k].choose;
    memcpy(words + n, own, args->n_words * sizeof(*words));
    args->words = words;
    KilnStatus status = kiln_command_compose(args, registry, true, ret);
    args->words = own;
    free(words);
    return status;
}

/* ---- The curve as text ------------------------------------------------------------------- */

enum { ROWS = 12, NARROWEST = 20, LABEL = 10 };

typedef struct Curve {
    double *lr, *loss;
    size_t n, found;
    bool any_found;
} Curve;

static void curve_release(Curve *curve)
{
    free(curve->lr);
    free(curve->loss);
}

/* "LR,LOSS" in each line of the state of lr_finder. */
static bool curve_read(const json_t *state, Curve *ret)
{
    const char *text = json_string_value(json_object_get(state, "curve"));
    const json_int_t steps = json_integer_value(json_object_get(state, "steps"));
    const json_int_t found = json_integer_value(json_object_get(state, "found"));

    *ret = (Curve) { .any_found = found >= 0, .found = found >= 0 ? (size_t)found : 0 };
    if (text == NULL || steps < 2)
        return false;
    ret->lr = calloc((size_t)steps, sizeof(double));
    ret->loss = calloc((size_t)steps, sizeof(double));
    if (ret->lr == NULL || ret->loss == NULL)
        return false;
    for (; ret->n < (size_t)steps; ret->n++) {
        char *end;

        ret->lr[ret->n] = strtod(text, &end);
        if (*end != ',')
            break;
        ret->loss[ret->n] = strtod(end + 1, &end);
        text = end + (*end == '\n');
    }
    return ret->n >= 2;
}

/* Steps stand side by side, as many to a column as needed; the last of them is drawn, but the
 * one that was found before all others. */
static void plot(char *cells, int columns, const Curve *curve, double low, double high)
{
    for (size_t pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < curve->n; i++) {
            const bool found = curve->any_found && i == curve->found;
            const int x = (int)((double)i / (double)(curve->n - 1) * (columns - 1) + 0.5);

            if (!isfinite(curve->loss[i]) || found != (pass == 1))
                continue;
            const int y = (int)((high - curve->loss[i]) / (high - low) * (ROWS - 1) + 0.5);
            cells[y * columns + x] = found ? 'O' : '*';
        }
}

static void put_curve(KilnPage *page, const Curve *curve)
{
    int columns = page->width - LABEL - 2 > NARROWEST ? page->width - LABEL - 2 : NARROWEST;
    double low = (double)INFINITY, high = -(double)INFINITY;
    char *cells, from[24], to[24];

    columns = columns < (int)curve->n ? columns : (int)curve->n;
    for (size_t i = 0; i < curve->n; i++)
        if (isfinite(curve->loss[i])) {
            low = fmin(low, curve->loss[i]);
            high = fmax(high, curve->loss[i]);
        }
    cells = malloc((size_t)columns * ROWS);
    if (cells == NULL || !(high > low)) {
        free(cells);
        return;
    }
    memset(cells, ' ', (size_t)columns * ROWS);
    plot(cells, columns, curve, low, high);
    for (int row = 0; row < ROWS; row++) {
        const double value = high - (high - low) * row / (ROWS - 1);
        int length = columns;

        while (length > 0 && cells[row * columns + length - 1] == ' ')
            length--;
        if (row == 0 || row == ROWS - 1)
            kiln_text_printf(&page->text, "%*.4g |", LABEL, value);
        else
            kiln_text_printf(&page->text, "%*s |", LABEL, row == ROWS / 2 ? "loss" : "");
        kiln_text_append_n(&page->text, cells + row * columns, (size_t)length);
        kiln_text_char(&page->text, '\n');
    }
    free(cells);
    snprintf(from, sizeof(from), "%.3g", curve->lr[0]);
    snprintf(to, sizeof(to), "%.3g", curve->lr[curve->n - 1]);
    const int gap = columns - (int)strlen(from) - (int)strlen(to);
    kiln_text_printf(&page->text, "%*s  %s%*s%s\n", LABEL, "lr", from, gap > 1 ? gap : 1, "", to);
}

/* ---- Results ------------------------------------------------------------------------------- */

static const json_t *part_of(json_t *const results[SEARCHES], size_t k, const char *part)
{
    return json_object_get(json_object_get(results[k], part), searches[k].path);
}

/* KEY=VALUE that was found; false: there is none. */
static bool found(const json_t *option, KilnText *text)
{
    const char *key = json_string_value(json_object_get(option, "key"));
    const char *value = json_string_value(json_object_get(option, "value"));

    if (key == NULL || value == NULL)
        return false;
    kiln_text_printf(text, " %s=%s", key, value);
    return true;
}

/* A word of a shell's line. */
static void put_word(KilnText *line, const char *word)
{
    const bool plain = strpbrk(word, " \t\n'\"\\$`*?[]{}()<>|&;!#~") == NULL;

    kiln_text_char(line, ' ');
    if (plain) {
        kiln_text_append(line, word);
        return;
    }
    kiln_text_char(line, '\'');
    for (; *word != '\0'; word++)
        kiln_text_append_n(line, *word == '\'' ? "'\\''" : word, *word == '\'' ? 4 : 1);
    kiln_text_char(line, '\'');
}

/* The command that trains with it: options of the search are of no use there. */
static void put_command(KilnPage *page, const KilnArgs *args, json_t *const results[SEARCHES])
{
    KilnText line = { 0 };
    bool any = false;

    kiln_text_append(&line, "train");
    for (size_t i = 0; i < args->n_words; i++) {
        /* The picture is in that folder. */
        bool search = strncmp(args->words[i], "kiln.run.dir=", 13) == 0;

        for (size_t k = 0; k < SEARCHES; k++)
            search = search ||
                     strncmp(args->words[i], searches[k].path, strlen(searches[k].path)) == 0;
        if (!search)
            put_word(&line, args->words[i]);
    }
    for (size_t k = 0; k < SEARCHES; k++)
        any = found(part_of(results, k, "options"), &line) || any;
    if (any && !line.failed) {
        kiln_page_heading(page, "to train with it");
        kiln_page_line(page, 2, line.data);
    }
    kiln_text_release(&line);
}

static int put_results(const KilnArgs *args, json_t *const results[SEARCHES], const char *picture)
{
    KilnPage page = kiln_screen_page();
    Curve curve = { 0 };

    if (curve_read(part_of(results, SEARCHES - 1, "states"), &curve)) {
        kiln_page_heading(&page, "loss over the learning rate");
        put_curve(&page, &curve);
        if (picture != NULL)
            kiln_page_pair(&page, LABEL + 2, "picture", picture);
    }
    curve_release(&curve);
    put_command(&page, args, results);
    return kiln_screen_print(&page);
}

/* ---- The command ----------------------------------------------------------------------------- */

/* The folder of the run, for the picture; NULL where this build draws none. */
static KilnStatus make_folder(const KilnConfig *config, char **ret, KilnError *err)
{
    char *dir = NULL;

    if (kiln_plot_supported(NULL) < 0)
        return KILN_OK;
    KilnStatus status = kiln_config_text(config, "kiln.run.dir", &dir, err);
    if (status >= 0)
        status = kiln_dir_make_parent(dir, err);
    if (status >= 0)
        status = kiln_dir_make(dir, err);
    if (status < 0)
        free(dir);
    else
        *ret = dir;
    return status;
}

static int run(const KilnArgs *args, const bool asked[SEARCHES], const KilnRegistry *registry,
               KilnConfig *config)
{
    KilnConsole console = kiln_screen_console(stdout);
    KilnRunEnv env = { .registry = registry,
                       .console = &console,
                       .stop = kiln_screen_catch_signals().stop };
    json_t *results[SEARCHES] = { NULL };
    char *dir = NULL, *picture = NULL;
    KilnError err = { 0 };
    KilnStatus status = KILN_OK;

    for (size_t k = 0; k < SEARCHES && status >= 0; k++) {
        if (!asked[k])
            continue;
        if (searches[k].draws)
            status = make_folder(config, &dir, &err);
        const KilnTuneAsk ask = { .only = searches[k].path, .dir = dir };
        if (status >= 0)
            status = kiln_tune_run(config, &env, &ask, &results[k], &err);
    }
    if (status >= 0 && dir != NULL)
        picture = kiln_path_join(dir, "lr_finder.png");
    if (status >= 0)
        (void)put_results(args, results, picture);
    else if (status != KILN_E_INTERRUPTED)
        kiln_screen_error(args->command, &err);
    for (size_t k = 0; k < SEARCHES; k++)
        json_decref(results[k]);
    free(picture);
    free(dir);
    return status == KILN_E_INTERRUPTED ? kiln_screen_signal_status()
                                        : kiln_screen_exit_status(status);
}

int kiln_command_tune(KilnArgs *args)
{
    bool asked[SEARCHES] = { false };
    KilnRegistry *registry = NULL;
    KilnConfig *config = NULL;
    int exit_status;

    take_words(args, asked);
    KilnStatus status = kiln_command_registry(args, &registry);
    if (status >= 0)
        status = compose(args, asked, registry, &config);
    exit_status = status >= 0 ? run(args, asked, registry, config)
                              : kiln_screen_exit_status(status);
    kiln_config_free(config);
    kiln_registry_free(registry);
    return exit_status;
}

/* kiln tune: searches a learning rate, a batch size, or both, for the run that the arguments
 * describe. The searches are callbacks: callbacks/lr_finder.c, callbacks/batch_size_finder.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "cli/commands/commands.h"
#include "cli/open_config.h"
#include "cli/screen/screen.h"
#include "kiln/plot.h"
#include "train/analysis/tune.h"

/* In order of dependence: a learning rate is found for a batch size. */
static const struct {
    const char *word, *path, *override;
    bool draws;
} searches[] = {
    { "batch_size", "callbacks.batch_size_finder",
      "++callbacks.batch_size_finder._target_=callback/batch_size_finder", false },
    { "lr", "callbacks.lr_finder", "++callbacks.lr_finder._target_=callback/lr_finder", true },
};
enum { SEARCHES = KILN_COUNT(searches) };

/* Remove the words that name searches from the arguments; without any, all searches are wanted. */
static void take_searches(KilnArgs *args, bool wanted[SEARCHES])
{
    bool any = false;
    size_t n = 0;

    for (size_t i = 0; i < args->n_words; i++) {
        size_t k = 0;

        while (k < SEARCHES && strcmp(args->words[i], searches[k].word) != 0)
            k++;
        if (k < SEARCHES)
            wanted[k] = any = true;
        else
            args->words[n++] = args->words[i];
    }
    args->n_words = n;
    args->words[n] = NULL;
    for (size_t k = 0; k < SEARCHES; k++)
        wanted[k] = wanted[k] || !any;
}

/* ---- Results ------------------------------------------------------------------------------- */

/* Append KEY=VALUE of a search's result; false: it found none. */
static bool put_found(KilnText *text, const json_t *result, const char *path)
{
    const json_t *option = json_object_get(json_object_get(result, "options"), path);
    const char *key = json_string_value(json_object_get(option, "key"));
    const char *value = json_string_value(json_object_get(option, "value"));

    if (key == NULL || value == NULL)
        return false;
    kiln_text_printf(text, " %s=%s", key, value);
    return true;
}

/* Whether a word is only about the search: an option of it, or the folder of its picture. */
static bool is_about_search(const char *word)
{
    word += strspn(word, "+~");
    for (size_t k = 0; k < SEARCHES; k++)
        if (kiln_starts_with(word, searches[k].path))
            return true;
    return kiln_starts_with(word, "kiln.run.dir=");
}

/* The command that trains with what was found. */
static void put_command(KilnPage *page, const KilnArgs *args, json_t *const results[SEARCHES])
{
    KilnText line = { 0 };
    bool any = false;

    kiln_text_append(&line, "train");
    for (size_t i = 0; i < args->n_words; i++)
        if (!is_about_search(args->words[i])) {
            kiln_text_char(&line, ' ');
            kiln_text_shell_word(&line, args->words[i]);
        }
    for (size_t k = 0; k < SEARCHES; k++)
        any = put_found(&line, results[k], searches[k].path) || any;
    if (any && !line.failed) {
        kiln_page_heading(page, "to train with it");
        kiln_page_line(page, 2, line.data);
    }
    kiln_text_release(&line);
}

static void print_results(const KilnArgs *args, json_t *const results[SEARCHES], const char *dir)
{
    KilnPage page = kiln_screen_page();
    char *picture = dir != NULL ? kiln_path_join(dir, "lr_finder.png") : NULL;

    if (picture != NULL && kiln_is_file(picture))
        kiln_page_pair(&page, 12, "picture", "%s", picture);
    put_command(&page, args, results);
    (void)kiln_screen_print(&page);
    free(picture);
}

/* ---- The command ----------------------------------------------------------------------------- */

/* Make the run's folder for the picture; *ret, owned by the caller, stays NULL where this build
 * draws none. */
static KilnStatus make_folder(const KilnConfig *config, char **ret, KilnError *err)
{
    if (kiln_plot_supported(NULL) < 0)
        return KILN_OK;
    KilnStatus status = kiln_config_text(config, "kiln.run.dir", ret, err);
    return status >= 0 ? kiln_dir_make(*ret, err) : status;
}

static KilnStatus tune(KilnArgs *args, const KilnRegistry *registry, KilnConfig *config, void *ctx,
                       KilnError *err)
{
    const bool *wanted = ctx;
    KilnConsole console = kiln_screen_console(stdout);
    KilnRunEnv env = { .registry = registry,
                       .console = &console,
                       .stop = kiln_screen_catch_signals().stop };
    json_t *results[SEARCHES] = { NULL };
    char *dir = NULL;
    KilnStatus status = KILN_OK;

    for (size_t k = 0; k < SEARCHES && status >= 0; k++) {
        if (!wanted[k])
            continue;
        if (searches[k].draws)
            status = make_folder(config, &dir, err);
        const KilnTuneRequest ask = { .only = searches[k].path, .dir = dir };
        if (status >= 0)
            status = kiln_tune_run(config, &env, &ask, &results[k], err);
    }
    if (status >= 0)
        print_results(args, results, dir);
    for (size_t k = 0; k < SEARCHES; k++)
        json_decref(results[k]);
    free(dir);
    return status;
}

int kiln_command_tune(KilnArgs *args)
{
    bool wanted[SEARCHES] = { false };
    KilnError err = { 0 };

    take_searches(args, wanted);
    for (size_t k = SEARCHES; k-- > 0;)
        if (wanted[k] && kiln_args_add(args, searches[k].override, &err) < 0)
            return kiln_screen_result(args->command, err.status, &err);
    return kiln_command_run(args, true, tune, wanted);
}

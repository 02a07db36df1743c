/* kiln sweep report DIR: reads a sweep's folder, prints what it has shown, and writes the report's
 * files to DIR/report. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "base/text.h"
#include "cli/screen/screen.h"
#include "cli/sweep/report_page.h"
#include "cli/sweep/verbs.h"

/* ---- The experiment ------------------------------------------------------------------------- */

/* A name of the group experiment, "best" or "mnist/best". */
static bool is_name(const char *name)
{
    for (const char *p = name; *p != '\0'; p++)
        if (!kiln_is_word(*p) && *p != '.' && *p != '/')
            return false;
    return name[0] != '\0' && name[0] != '/' && name[0] != '.' && strstr(name, "..") == NULL &&
           !kiln_ends_with(name, "/") && !kiln_ends_with(name, ".yaml");
}

/* Write the best config as an experiment of the current project. *ret_path: owned by the caller. */
static KilnStatus write_experiment(const KilnSweepReport *report, const KilnArgs *args,
                                   char **ret_path, KilnError *err)
{
    KilnText path = { 0 };
    char *text = NULL;
    KilnStatus status = KILN_OK;

    kiln_text_printf(&path, "conf/experiment/%s.yaml", args->write);
    if (path.failed)
        status = kiln_error_nomem(err, strlen(args->write));
    else if (kiln_is_file(path.data) && !args->force)
        status = kiln_error_set(err, KILN_E_USAGE,
                                "%s exists; --force replaces it, --write takes another name",
                                path.data);
    if (status >= 0)
        status = kiln_sweep_report_best_config(report, args->write, &text, err);
    if (status >= 0)
        status = kiln_dir_make_parent(path.data, err);
    if (status >= 0)
        status = kiln_file_write(path.data, text, strlen(text), err);
    free(text);
    return kiln_text_finish(&path, status, ret_path, err);
}

/* ---- Files ----------------------------------------------------------------------------------- */

static KilnStatus write_best(const KilnSweepReport *report, KilnError *err)
{
    char *text = NULL, *path = kiln_sweep_report_path(report, "best.yaml");
    KilnStatus status = path != NULL ? kiln_sweep_report_best_config(report, "best", &text, err)
                                     : kiln_error_nomem(err, 1);

    if (status >= 0)
        status = kiln_file_write(path, text, strlen(text), err);
    free(text);
    free(path);
    return status;
}

/* Write all files, and say on the page what each is for. A build that can't draw has all the
 * others. */
static KilnStatus write_files(const KilnSweepReport *report, KilnPage *page, KilnError *err)
{
    enum { TEXT = 38 };
    KilnError why = { 0 };
    KilnStatus status = kiln_sweep_report_write(report, err);

    if (status < 0)
        return status;
    kiln_page_heading(page, "files in %s/report", report->sweep.dir);
    kiln_page_pair(page, TEXT, "report.json, importance.csv", "%s", "this report, for programs");
    status = kiln_sweep_report_draw(report, &why);
    if (status >= 0)
        kiln_page_pair(page, TEXT,
                       report->fanova.single != NULL ? "history, slice, parallel, importance.png"
                                                     : "history, slice, parallel.png",
                       "%s", "pictures of it");
    else if (status == KILN_E_MISSING)
        kiln_page_pair(page, TEXT, "no pictures", "%s", why.text);
    else
        return kiln_error_set(err, status, "%s", why.text);
    status = write_best(report,
                        err); /* last: without the best job's folder all the rest is there */
    if (status >= 0)
        kiln_page_pair(page, TEXT, "best.yaml", "%s", "the best config, for a group experiment/");
    return status;
}

/* ---- The verb -----------------------------------------------------------------------------------
 */

static KilnStatus print_json(const KilnSweepReport *report, KilnError *err)
{
    char *text = NULL;
    KilnStatus status = kiln_sweep_report_json(report, &text, err);

    if (status >= 0 && puts(text) == EOF)
        status = kiln_screen_write_error(err);
    free(text);
    return status;
}

static KilnStatus run(const KilnArgs *args, const KilnSweepReport *report, KilnError *err)
{
    const KilnConsole console = kiln_screen_console(stdout);
    KilnPage page = kiln_screen_page();
    char *experiment = NULL;
    KilnStatus status = KILN_OK;

    if (args->write != NULL)
        status = write_experiment(report, args, &experiment, err);
    if (status >= 0 && args->json) {
        status = print_json(report, err);
    } else if (status >= 0) {
        kiln_sweep_report_put_page(report, &console, &page);
        status = write_files(report, &page, err);
        if (experiment != NULL)
            kiln_page_heading(&page, "wrote %s", experiment);
        if (kiln_screen_print(&page) != 0 && status >= 0)
            status = kiln_error_nomem(err, 0);
    }
    kiln_text_release(&page.text);
    free(experiment);
    return status;
}

static KilnStatus check(const KilnArgs *args, KilnError *err)
{
    if (args->n_words == 0)
        return kiln_error_set(
            err, KILN_E_USAGE,
            "report: needs the folder of a sweep, or `last`, the newest one below "
            "multirun/: kiln sweep report last");
    if (args->n_words > 1)
        return kiln_error_set(err, KILN_E_USAGE, "report: expected one folder, got `%s` too",
                              args->words[1]);
    if (args->force && args->write == NULL)
        return kiln_error_set(err, KILN_E_USAGE,
                              "--force goes with --write: kiln sweep report last --write best "
                              "--force");
    if (args->write != NULL && !is_name(args->write))
        return kiln_error_set(err, KILN_E_USAGE,
                              "--write %s: expected the name of an experiment, of letters, digits, "
                              "_, - and /, without .yaml, such as `best` for "
                              "conf/experiment/best.yaml",
                              args->write);
    return KILN_OK;
}

int kiln_sweep_verb_report(KilnArgs *args)
{
    KilnSweepReport report = { .mode = KILN_MODE_AUTO };
    KilnError err = { 0 };
    char *dir = NULL;
    KilnStatus status = check(args, &err);

    if (status >= 0)
        status = kiln_sweep_find_dir(args->words[0], &dir, &err);
    if (status >= 0)
        status = kiln_sweep_report_open(dir, &report, &err);
    if (status >= 0)
        status = run(args, &report, &err);
    kiln_sweep_report_release(&report);
    free(dir);
    return kiln_screen_result(args->command, status, &err);
}

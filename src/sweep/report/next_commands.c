/* Command lines to run after a sweep: the best config again, and what is left of the sweep. */
#include <string.h>

#include "base/array.h"
#include "base/system/file.h"
#include "sweep/report/sweep_report.h"

KilnStatus kiln_sweep_report_add_command(KilnSweepReport *report, KilnText *line,
                                         const char *purpose, KilnError *err)
{
    const char *text = kiln_text_to_arena(line, &report->arena);

    if (text == NULL || !KILN_ARENA_RESERVE(&report->arena, report->commands,
                                            report->commands_capacity, report->n_commands + 1))
        return kiln_error_nomem(err, 1);
    report->commands[report->n_commands++] = (KilnReportCommand) { .line = text,
                                                                   .purpose = purpose };
    return KILN_OK;
}

/* ---- Words ---------------------------------------------------------------------------------- */

static void put_option(KilnText *text, const char *flag, const char *value)
{
    kiln_text_printf(text, " %s ", flag);
    kiln_text_shell_word(text, value);
}

/* Is it the folder that train finds by itself, conf/ where the sweep was started? */
static bool is_default_dir(const KilnSweepStart *start, const char *dir)
{
    const size_t n = strlen(start->cwd);

    return strncmp(dir, start->cwd, n) == 0 && strcmp(dir + n, "/conf") == 0;
}

static bool has_config(const char *dir, const char *name)
{
    KilnText path = { 0 };

    kiln_text_printf(&path, "%s/%s.yaml", dir, name);
    const bool has = !path.failed && kiln_is_file(path.data);
    kiln_text_release(&path);
    return has;
}

void kiln_sweep_report_put_train(const KilnSweepReport *report, KilnText *text)
{
    const KilnSweepStart *start = &report->sweep.start;
    const char *const *dir = start->config_dirs;

    kiln_text_append(text, "train");
    for (; *dir != NULL; dir++)
        if (!is_default_dir(start, *dir))
            put_option(text,
                       dir == start->config_dirs && has_config(*dir, start->config_name) ? "-cp"
                                                                                         : "-cd",
                       *dir);
    if (strcmp(start->config_name, "config") != 0)
        put_option(text, "-cn", start->config_name);
    for (const char *const *plugin = start->plugins; *plugin != NULL; plugin++)
        put_option(text, "--plugin", *plugin);
}

/* A config without the group in its defaults list gets it by +, as the jobs may have. */
void kiln_sweep_report_put_experiment(const KilnSweepReport *report, const char *name,
                                      KilnText *text)
{
    const KilnConfigNode *own = report->best_own;
    const KilnConfigNode *choices = own != NULL ? kiln_node_find(own, "kiln.runtime.choices")
                                                : NULL;
    const char *const *override = report->sweep.jobs.items[report->ranked[0]].overrides;
    bool listed = choices == NULL || kiln_node_get(choices, "experiment") != NULL;

    for (; *override != NULL; override++)
        listed = listed && !kiln_starts_with(*override, "+experiment=");
    kiln_text_printf(text, "%sexperiment=", listed ? "" : "+");
    kiln_text_shell_word(text, name);
}

/* ---- The commands -----------------------------------------------------------------------------
 */

/* Is a seed in the config that no job varies? Then other seeds show what is luck. */
static bool can_vary_seed(const KilnSweepReport *report)
{
    for (size_t i = 0; i < report->space.count; i++)
        if (report->space.axes[i]->count != 1 && kiln_ends_with(report->space.axes[i]->key, "seed"))
            return false;
    return kiln_node_text(report->best_config, "seed") != NULL;
}

static KilnStatus add_best(KilnSweepReport *report, KilnError *err)
{
    KilnText line = { 0 };

    if (report->best_config == NULL)
        return KILN_OK;
    kiln_text_append(&line, "kiln sweep report ");
    kiln_text_shell_word(&line, report->sweep.dir);
    kiln_text_append(&line, " --write best");
    KilnStatus status = kiln_sweep_report_add_command(
        report, &line, "the best config as an experiment of your project", err);
    if (status >= 0) {
        kiln_sweep_report_put_train(report, &line);
        kiln_text_char(&line, ' ');
        kiln_sweep_report_put_experiment(report, "best", &line);
        status = kiln_sweep_report_add_command(report, &line, "then: train it again", err);
    }
    if (status < 0 || !can_vary_seed(report))
        return status;
    kiln_sweep_report_put_train(report, &line);
    kiln_text_append(&line, " -m ");
    kiln_sweep_report_put_experiment(report, "best", &line);
    kiln_text_append(&line, " seed=1,2,3");
    return kiln_sweep_report_add_command(report, &line, "how much of its value is luck", err);
}

static KilnStatus add_resume(KilnSweepReport *report, const char *flag, const char *purpose,
                             KilnError *err)
{
    KilnText line = { 0 };

    kiln_text_append(&line, "train -m --resume ");
    kiln_text_shell_word(&line, report->sweep.dir);
    kiln_text_append(&line, flag);
    return kiln_sweep_report_add_command(report, &line, purpose, err);
}

KilnStatus kiln_sweep_report_find_commands(KilnSweepReport *report, KilnError *err)
{
    KilnStatus status = add_best(report, err);

    if (status >= 0 && report->waiting > 0 && report->running == 0)
        status = add_resume(report, "", "run the jobs that wait", err);
    if (status >= 0 && report->failed > 0 && report->running == 0)
        status = add_resume(report, " --retry-failed", "run the failed jobs again", err);
    return status;
}

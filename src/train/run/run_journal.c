/* Writes the journal of a run. */
#include "train/run/run_journal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "graph/backend.h"
#include "base/system/file.h"
#include "base/system/journal.h"
#include "base/json.h"
#include "base/text.h"
#include "kiln/tools/clock.h"
#include "registry/plugin/plugin_record.h"
#include "train/run/run_folder.h"

/* Append an event with its time; `fact`, its other members, is consumed. */
static KilnStatus add(KilnTrainer *trainer, const char *event, json_t *fact, KilnError *err)
{
    char time[KILN_TIME_TEXT];
    json_t *line = json_pack("{s:s, s:s}", "event", event, "time", kiln_time_text(time));

    if (line != NULL && (fact == NULL || json_object_update(line, fact) != 0)) {
        json_decref(line);
        line = NULL;
    }
    json_decref(fact);
    return kiln_journal_append(trainer->journal, line, err);
}

static json_t *overrides_of(const KilnTrainer *trainer)
{
    const char *const *words = trainer->env->overrides;
    json_t *list = json_array();

    for (size_t i = 0; words != NULL && words[i] != NULL; i++)
        kiln_json_add(&list, kiln_json_text(words[i]));
    return list;
}

KilnStatus kiln_run_journal_open(KilnTrainer *trainer, KilnError *err)
{
    char *dir = kiln_path_join(trainer->run_dir, ".kiln");
    KilnStatus status = dir != NULL ? kiln_dir_make(dir, err) : kiln_error_nomem(err, 1);

    if (status >= 0)
        status = kiln_journal_open(dir, &trainer->journal, err);
    free(dir);
    return status;
}

/* ---- Plugins -------------------------------------------------------------------------------- */

/* Keep the plugins of the last session. */
static KilnStatus keep_plugins(void *ctx, const json_t *line, KilnError *err)
{
    json_t **last = ctx, *plugins = json_object_get(line, "plugins");

    (void)err;
    if (plugins != NULL) {
        json_decref(*last);
        *last = json_incref(plugins);
    }
    return KILN_OK;
}

static void warn(void *ctx, const char *line)
{
    KilnTrainer *trainer = ctx;

    kiln_output_print(&trainer->output, "warning: %s", line);
}

/* Report plugins that are not those of the session before. */
static void compare_plugins(KilnTrainer *trainer)
{
    json_t *last = NULL;
    size_t skipped;

    if (kiln_journal_replay(trainer->journal, keep_plugins, &last, &skipped, NULL) >= 0)
        kiln_plugins_compare(last, trainer->env->registry, warn, trainer);
    json_decref(last);
}

json_t *kiln_run_journal_plugins(const char *run)
{
    char *dir = kiln_path_join(run, ".kiln");
    json_t *last = NULL;

    if (dir != NULL)
        (void)!kiln_journal_read(dir, keep_plugins, &last, NULL);
    free(dir);
    return last;
}

/* ---- Events --------------------------------------------------------------------------------- */

KilnStatus kiln_run_journal_begin(KilnTrainer *trainer, KilnError *err)
{
    char host[256] = "";

    (void)!gethostname(host, sizeof(host) - 1);
    /* A run that was killed while it wrote its first line has not started. */
    bool resumed = !kiln_journal_is_new(trainer->journal) &&
                   (kiln_run_folder_holds(trainer->run_dir, trainer->resumed_from) ||
                    trainer->env->resume != NULL);
    if (resumed)
        compare_plugins(trainer);
    return add(trainer, resumed ? "resumed" : "started",
               json_pack("{s:s, s:I, s:s, s:i, s:s, s:s?, s:I, s:I, s:o, s:o}", "version",
                         KILN_VERSION, "pid", (json_int_t)getpid(), "host", host, "threads",
                         trainer->threads, "machine", trainer->backend->machine, "from",
                         trainer->resumed_from, "epoch", (json_int_t)trainer->at.epoch, "step",
                         (json_int_t)trainer->at.step, "overrides", overrides_of(trainer),
                         "plugins", kiln_plugins_record(trainer->env->registry)),
               err);
}

/* Append an event of a running run, where a failure is only reported. */
static void note(KilnTrainer *trainer, const char *event, json_t *fact)
{
    KilnError err = { 0 };

    if (trainer->journal == NULL) {
        json_decref(fact);
        return;
    }
    if (add(trainer, event, fact, &err) >= 0)
        return;
    kiln_output_print(&trainer->output, "warning: %s: the journal ends here", err.text);
    kiln_journal_close(trainer->journal);
    trainer->journal = NULL;
}

void kiln_run_journal_epoch(KilnTrainer *trainer)
{
    note(trainer, "epoch",
         json_pack("{s:I, s:I}", "epoch", (json_int_t)trainer->at.epoch, "step",
                   (json_int_t)trainer->at.step));
}

void kiln_run_journal_saved(KilnTrainer *trainer, const char *name)
{
    note(trainer, "checkpoint",
         json_pack("{s:s, s:I, s:I}", "name", name, "epoch", (json_int_t)trainer->at.epoch, "step",
                   (json_int_t)trainer->at.step));
}

void kiln_run_journal_end(KilnTrainer *trainer, const char *status, const char *reason)
{
    note(trainer, "ended",
         json_pack("{s:s, s:s, s:I, s:f}", "status", status, "reason", reason, "step",
                   (json_int_t)trainer->at.step, "wall_s", kiln_clock() - trainer->timing.start));
    if (trainer->journal != NULL)
        (void)!kiln_journal_sync(trainer->journal, NULL);
    kiln_journal_close(trainer->journal);
    trainer->journal = NULL;
}

KilnStatus kiln_run_journal_origin(const char *run, char **ret, KilnError *err)
{
    char *dir = kiln_path_join(run, ".kiln"), *path = kiln_path_join(run, KILN_RUN_JOURNAL);
    json_t *first = NULL;
    KilnStatus status = dir != NULL && path != NULL ? KILN_OK : kiln_error_nomem(err, strlen(run));

    *ret = NULL;
    /* A run that was killed while it wrote its first line has no origin. */
    if (status >= 0 && kiln_is_file(path) && kiln_journal_peek(dir, &first, NULL) >= 0) {
        const char *from = json_string_value(json_object_get(first, "from"));

        if (from != NULL && (*ret = kiln_strdup(from)) == NULL)
            status = kiln_error_nomem(err, strlen(from));
    }
    json_decref(first);
    free(dir);
    free(path);
    return status;
}

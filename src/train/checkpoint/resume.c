/* Resuming: finds the checkpoint, loads it, and warns of differences that change results. */
#include "train/checkpoint/resume.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/backend.h"
#include "base/system/file.h"
#include "base/text.h"
#include "train/run/run_folder.h"
#include "train/run/run_journal.h"

/* ---- Finding the checkpoint ---------------------------------------------------------- */

/* Resolve ckpt_path; for "last" and "best" the folder kiln.run.dir comes before all other runs,
 * unless it is named by the time: then it may be a run that began in the same second. */
static KilnStatus find_configured(const KilnConfig *config, const KilnOptions *options, char **ret,
                                  KilnError *err)
{
    const char *ckpt_path = options->root->ckpt_path;
    char own[4096], *runs = NULL;
    bool dated = false;
    KilnStatus status = kiln_run_folder_is_dated(config, &dated, err);

    if (status < 0)
        return status;
    if (!dated && (strcmp(ckpt_path, "last") == 0 || strcmp(ckpt_path, "best") == 0)) {
        snprintf(own, sizeof(own), "%s/checkpoints/%s", options->run->dir, ckpt_path);
        if (kiln_is_dir(own) && kiln_checkpoint_resolve(own, "", ret, NULL) >= 0)
            return KILN_OK;
    }
    status = kiln_run_folder_parent(config, &runs, err);
    if (status >= 0 && (status = kiln_checkpoint_resolve(ckpt_path, runs, ret, err)) < 0)
        (void)kiln_error_prefix(err, "ckpt_path=");
    free(runs);
    return status;
}

/* Find the last checkpoint of a run folder, or the one that its run was itself resumed from; *ret
 * NULL: neither, the run starts from the beginning. */
static KilnStatus find_in_run(const char *run, char **ret, KilnError *err)
{
    char *last = kiln_path_join(run, "checkpoints/last");
    KilnStatus status = last != NULL ? KILN_OK : kiln_error_nomem(err, strlen(run));

    if (status >= 0 && kiln_is_dir(last))
        status = kiln_checkpoint_resolve(last, "", ret, err);
    else if (status >= 0)
        status = kiln_run_journal_origin(run, ret, err);
    free(last);
    return status;
}

KilnStatus kiln_resume_open(const KilnConfig *config, const KilnRunEnv *env, KilnRanks *ranks,
                            KilnCheckpoint *ret, KilnError *err)
{
    KilnOptions options = { 0 };
    char *path = NULL;
    KilnStatus status = kiln_options_read(config, &options, err);

    if (status >= 0 && ranks->rank > 0)
        path = NULL; /* rank 0 finds it: a run may save meanwhile */
    else if (status >= 0 && options.root->ckpt_path != NULL)
        status = find_configured(config, &options, &path, err);
    else if (status >= 0 && env->resume != NULL)
        status = find_in_run(env->resume, &path, err);
    if (status >= 0)
        status = kiln_ranks_broadcast_text(ranks, &path, err);
    if (status >= 0 && path != NULL)
        status = kiln_checkpoint_open(path, true, ret, err);
    kiln_options_release(&options);
    free(path);
    return status;
}

int kiln_resume_threads(const KilnCheckpoint *checkpoint)
{
    return (int)json_integer_value(json_object_get(checkpoint->state, "threads"));
}

/* ---- Differences ------------------------------------------------------------------------- */

static void warn_of_number(const KilnCheckpoint *checkpoint, KilnTrainer *trainer, const char *name,
                           int64_t now)
{
    const json_t *saved = json_object_get(checkpoint->state, name);

    if (json_is_integer(saved) && json_integer_value(saved) != now)
        kiln_output_print(&trainer->output,
                          "warning: %s was %lld in the checkpoint and is %lld now: results differ "
                          "from the uninterrupted run",
                          name, (long long)json_integer_value(saved), (long long)now);
}

/* The number of threads decides how the sums of a convolution's gradients are split and rounded. */
static void warn_of_threads(const KilnCheckpoint *checkpoint, KilnTrainer *trainer)
{
    const int then = kiln_resume_threads(checkpoint), now = trainer->threads;

    if (then > 0 && then != now)
        kiln_output_print(&trainer->output,
                          "warning: the checkpoint was made with %d thread%s and this run has %d: "
                          "convolutions round differently, so results are not bit-identical; set "
                          "trainer.threads=%d",
                          then, then == 1 ? "" : "s", now, then);
}

/* Metrics of the unfinished epoch mix values from before and after a change of their options. */
static void warn_of_metrics(const KilnCheckpoint *checkpoint, KilnTrainer *trainer)
{
    json_t *saved = json_object_get(checkpoint->state, "metric_options"), *hash;
    json_t *now = kiln_snapshot_metric_options(trainer);
    const char *name;

    json_object_foreach(saved, name, hash)
    {
        if (!json_equal(hash, json_object_get(now, name)))
            kiln_output_print(&trainer->output,
                              "warning: metric %s had different options when the epoch began: its "
                              "value for this epoch mixes both",
                              name);
    }
    json_decref(now);
}

static void warn_of_data(const KilnCheckpoint *checkpoint, KilnTrainer *trainer)
{
    const char *saved = json_string_value(json_object_get(checkpoint->state, "train_index"));
    char now[17];

    snprintf(now, sizeof(now), "%016" PRIx64, trainer->train_index);
    if (saved != NULL && strcmp(saved, now) != 0)
        kiln_output_print(&trainer->output,
                          "warning: the training samples differ from the checkpoint's (their "
                          "number, names or labels): results differ from the uninterrupted run");
}

/* Warn of everything that keeps the resumed run from reproducing the uninterrupted one. */
static void warn_of_differences(const KilnCheckpoint *checkpoint, KilnTrainer *trainer)
{
    const char *dtype = kiln_dtype_name(kiln_params_dtype(trainer->params));
    const char *then = json_string_value(json_object_get(checkpoint->state, "weights"));
    const char *machine = json_string_value(json_object_get(checkpoint->state, "machine"));

    if (then != NULL && strcmp(then, dtype) != 0)
        kiln_output_print(&trainer->output,
                          "warning: weights and optimizer state were %s in the checkpoint and are "
                          "%s now (trainer.precision): they are converted, and results differ from "
                          "the uninterrupted run",
                          then, dtype);
    if (machine != NULL && strcmp(machine, trainer->backend->machine) != 0)
        kiln_output_print(&trainer->output,
                          "warning: the checkpoint was made with %s and this is %s: sums round "
                          "differently, and results differ from the uninterrupted run",
                          machine, trainer->backend->machine);
    warn_of_number(checkpoint, trainer, "world", kiln_trainer_world(trainer));
    warn_of_number(checkpoint, trainer, "seed", trainer->options.root->seed);
    warn_of_threads(checkpoint, trainer);
    warn_of_number(checkpoint, trainer, "batch_size", trainer->data.batch_size);
    warn_of_data(checkpoint, trainer);
    if (checkpoint->at.batch > 0 && !checkpoint->at.epoch_done)
        warn_of_metrics(checkpoint, trainer);
}

KilnStatus kiln_resume_load(const KilnCheckpoint *checkpoint, KilnTrainer *trainer, KilnError *err)
{
    KilnStatus status;

    trainer->train_index = kiln_snapshot_index(&trainer->data.sets[KILN_TRAIN].list[0].dataset);
    if (checkpoint->path == NULL)
        return KILN_OK;
    trainer->resumed_from = kiln_strdup(checkpoint->path);
    status = trainer->resumed_from != NULL ? kiln_checkpoint_load(checkpoint, trainer, err)
                                           : kiln_error_nomem(err, 1);
    if (status >= 0)
        warn_of_differences(checkpoint, trainer);
    return status;
}

void kiln_resume_note_newest(const KilnCheckpoint *checkpoint, KilnTrainer *trainer)
{
    const char *name = checkpoint->path != NULL ? strrchr(checkpoint->path, '/') : NULL;

    if (name == NULL || !kiln_run_folder_holds(trainer->run_dir, checkpoint->path))
        return;
    trainer->newest.position = trainer->at;
    snprintf(trainer->newest.name, sizeof(trainer->newest.name), "%s", name + 1);
}

/* ---- The config ---------------------------------------------------------------------------- */

void kiln_resume_drop_path(char *yaml)
{
    static const char key[] = "ckpt_path:", none[] = "ckpt_path: null";
    char *line = yaml;

    while (line != NULL && strncmp(line, key, strlen(key)) != 0) {
        line = strchr(line, '\n');
        line = line != NULL ? line + 1 : NULL;
    }
    const size_t length = line != NULL ? strcspn(line, "\n") : 0;
    if (length < strlen(none))
        return; /* no shorter value than null exists */
    memcpy(line, none, strlen(none));
    memmove(line + strlen(none), line + length, strlen(line + length) + 1);
}

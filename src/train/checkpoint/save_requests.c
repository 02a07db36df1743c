/* Records requests to save, link and delete checkpoints, and turns them into jobs of the save
 * thread. save_requests.h describes the path of a save. */
#include "train/checkpoint/save_requests.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/call.h"
#include "base/system/file.h"
#include "base/json.h"
#include "base/text.h"
#include "kiln/array.h"
#include "kiln/tools/clock.h"
#include "train/run/run_journal.h"
#include "train/checkpoint/save_hooks.h"
#include "train/checkpoint/save_thread.h"

/* Enough for the names, the JSON and the headers of a checkpoint. Never written, it costs addresses
 * only. */
enum { RESERVE_BYTES = 4 << 20 };

/* ---- Lists --------------------------------------------------------------------------- */

/* Append a zeroed element to a list of KilnSaveRequests; NULL when memory runs out. */
#define APPEND(list, n, capacity) (KILN_RESERVE(list, capacity, (n) + 1) ? &(list)[(n)++] : NULL)

static void copy_name(char to[KILN_CHECKPOINT_NAME], const char *name)
{
    snprintf(to, KILN_CHECKPOINT_NAME, "%s", name);
}

static KilnStatus no_memory(KilnError *err)
{
    return kiln_error_nomem(err, KILN_CHECKPOINT_NAME);
}

/* Check the name of a checkpoint or link. */
static KilnStatus check_name(const KilnTrainer *trainer, const char *name, KilnError *err)
{
    if (trainer->run_dir == NULL)
        return kiln_error_set(err, KILN_E_INTERNAL, "checkpoint %s: this run has no folder", name);
    if (name[0] == '\0' || name[0] == '.' || strchr(name, '/') != NULL ||
        strlen(name) >= KILN_CHECKPOINT_NAME)
        return kiln_error_set(
            err, KILN_E_RANGE,
            "checkpoint \"%s\": expected a name of at most %d characters without / "
            "that does not begin with a dot",
            name, KILN_CHECKPOINT_NAME - 1);
    return KILN_OK;
}

/* ---- Owners --------------------------------------------------------------------------- */

static KilnOwnedCheckpoint *find_owned(const KilnSaveRequests *requests, const KilnInstance *owner,
                                       const char *name)
{
    for (size_t i = 0; i < requests->n_owned; i++)
        if (requests->owned[i].owner == owner && strcmp(requests->owned[i].name, name) == 0)
            return &requests->owned[i];
    return NULL;
}

bool kiln_save_requests_own(KilnSaveRequests *requests, const KilnInstance *owner, const char *name)
{
    if (owner == NULL || find_owned(requests, owner, name) != NULL)
        return true;
    KilnOwnedCheckpoint *owned = APPEND(requests->owned, requests->n_owned,
                                        requests->owned_capacity);
    if (owned == NULL)
        return false;
    owned->owner = owner;
    copy_name(owned->name, name);
    return true;
}

static bool is_owned_or_linked(const KilnSaveRequests *requests, const char *name)
{
    for (size_t i = 0; i < requests->n_owned; i++)
        if (strcmp(requests->owned[i].name, name) == 0)
            return true;
    for (size_t i = 0; i < requests->n_links; i++)
        if (strcmp(requests->links[i].name, name) == 0)
            return true;
    return false;
}

static KilnStatus request_delete(KilnSaveRequests *requests, const char *name, bool owned,
                                 KilnError *err)
{
    KilnDeleteRequest *to_delete = APPEND(requests->to_delete, requests->n_to_delete,
                                          requests->to_delete_capacity);

    if (to_delete == NULL)
        return no_memory(err);
    copy_name(to_delete->name, name);
    to_delete->owned = owned;
    return KILN_OK;
}

KilnStatus kiln_trainer_delete(KilnTrainer *trainer, const KilnInstance *owner, const char *name,
                               KilnError *err)
{
    KilnSaveRequests *requests = &trainer->saves;
    KilnStatus status = check_name(trainer, name, err);
    KilnOwnedCheckpoint *owned = status >= 0 ? find_owned(requests, owner, name) : NULL;

    if (owned == NULL)
        return status;
    *owned = requests->owned[--requests->n_owned];
    return request_delete(requests, name, true, err);
}

/* ---- Links ------------------------------------------------------------------------------ */

/* <run folder>/checkpoints, owned by the caller. */
static char *folder_of(const KilnTrainer *trainer)
{
    return kiln_path_join(trainer->run_dir, "checkpoints");
}

static KilnStatus read_link(KilnSaveRequests *requests, const char *folder, const char *name,
                            KilnError *err)
{
    char *path = kiln_path_join(folder, name), target[KILN_CHECKPOINT_NAME];
    ssize_t length = path != NULL ? readlink(path, target, sizeof(target) - 1) : -1;
    KilnStatus status = path != NULL ? KILN_OK : no_memory(err);

    free(path);
    if (length <= 0)
        return status;
    target[length] = '\0';
    KilnLinkRequest *link = APPEND(requests->links, requests->n_links, requests->links_capacity);
    if (link == NULL)
        return no_memory(err);
    copy_name(link->link, name);
    copy_name(link->name, target);
    return KILN_OK;
}

/* Read the links that exist in checkpoints/, once. */
static KilnStatus read_links(KilnTrainer *trainer, KilnError *err)
{
    char *folder = trainer->saves.links_read ? NULL : folder_of(trainer), **names = NULL;
    KilnStatus status = KILN_OK;
    size_t n = 0;

    if (trainer->saves.links_read)
        return KILN_OK;
    if (folder == NULL)
        return no_memory(err);
    if (kiln_is_dir(folder))
        status = kiln_dir_list(folder, &names, &n, err);
    for (size_t i = 0; i < n && status >= 0; i++)
        status = read_link(&trainer->saves, folder, names[i], err);
    trainer->saves.links_read = status >= 0;
    kiln_names_free(names, n);
    free(folder);
    return status;
}

static KilnLinkRequest *find_link(const KilnSaveRequests *requests, const char *link)
{
    for (size_t i = 0; i < requests->n_links; i++)
        if (strcmp(requests->links[i].link, link) == 0)
            return &requests->links[i];
    return NULL;
}

KilnStatus kiln_trainer_link(KilnTrainer *trainer, const char *link, const char *name,
                             KilnError *err)
{
    KilnSaveRequests *requests = &trainer->saves;

    if (kiln_trainer_rank(trainer) > 0)
        return KILN_OK;
    KilnStatus status = check_name(trainer, link, err);

    if (status >= 0)
        status = check_name(trainer, name, err);
    if (status >= 0)
        status = read_links(trainer, err);
    KilnLinkRequest *old = status >= 0 ? find_link(requests, link) : NULL;
    if (status < 0 || (old != NULL && strcmp(old->name, name) == 0))
        return status;
    if (old != NULL)
        status = request_delete(requests, old->name, false, err);
    else if ((old = APPEND(requests->links, requests->n_links, requests->links_capacity)) == NULL)
        status = no_memory(err);
    if (status < 0)
        return status;
    KilnLinkRequest *to_link = APPEND(requests->to_link, requests->n_to_link,
                                      requests->to_link_capacity);
    if (to_link == NULL)
        return no_memory(err);
    copy_name(old->link, link);
    copy_name(old->name, name);
    *to_link = *old;
    return KILN_OK;
}

bool kiln_trainer_link_target(const KilnTrainer *trainer, const char *link, char *buf, size_t size)
{
    const KilnLinkRequest *known = find_link(&trainer->saves, link);
    char *folder = trainer->run_dir != NULL ? folder_of(trainer) : NULL;
    char *path = known == NULL && folder != NULL ? kiln_path_join(folder, link) : NULL;
    ssize_t length = -1;

    if (size > 0 && known != NULL)
        length = snprintf(buf, size, "%s", known->name);
    else if (size > 0 && path != NULL && (length = readlink(path, buf, size - 1)) >= 0)
        buf[length] = '\0';
    free(folder);
    free(path);
    return length >= 0;
}

/* ---- Pruning ----------------------------------------------------------------------------- */

KilnStatus kiln_trainer_prune(KilnTrainer *trainer, const KilnInstance *owner, KilnError *err)
{
    KilnSaveRequests *requests = &trainer->saves;
    const KilnInstance **to_prune = APPEND(requests->to_prune, requests->n_to_prune,
                                           requests->to_prune_capacity);

    if (to_prune == NULL)
        return no_memory(err);
    *to_prune = owner;
    return KILN_OK;
}

/* Whether the component at this config path has requested a prune. */
static bool prunes(const KilnSaveRequests *requests, const char *path)
{
    for (size_t i = 0; path != NULL && i < requests->n_to_prune; i++)
        if (strcmp(kiln_instance_path(requests->to_prune[i]), path) == 0)
            return true;
    return false;
}

/* Whether a folder is a checkpoint of this run without an owner or link, and everybody who saved
 * it has requested a prune. */
static bool is_prunable(const KilnSaveRequests *requests, const char *folder, const char *name)
{
    json_t *saved_by = NULL;
    bool prunable = name[0] != '.' && !is_owned_or_linked(requests, name) &&
                    find_link(requests, name) == NULL &&
                    kiln_checkpoint_is_own(folder, name, &saved_by);

    for (size_t i = 0; i < json_array_size(saved_by); i++)
        prunable = prunable && prunes(requests, json_string_value(json_array_get(saved_by, i)));
    json_decref(saved_by);
    return prunable;
}

static KilnStatus prune(KilnTrainer *trainer, KilnError *err)
{
    KilnSaveRequests *requests = &trainer->saves;
    char *folder = folder_of(trainer), **names = NULL;
    size_t n = 0;
    KilnStatus status = folder != NULL ? read_links(trainer, err) : no_memory(err);

    if (status >= 0)
        status = kiln_dir_list(folder, &names, &n, err);
    for (size_t i = 0; i < n && status >= 0; i++)
        if (is_prunable(requests, folder, names[i]))
            status = request_delete(requests, names[i], true, err);
    requests->n_to_prune = 0;
    kiln_names_free(names, n);
    free(folder);
    return status;
}

KilnStatus kiln_save_requests_open(KilnTrainer *trainer, KilnError *err)
{
    static const char *const unfinished[] = { KILN_CHECKPOINT_UNFINISHED, KILN_CHECKPOINT_REMOVED };
    char *folder = folder_of(trainer);
    KilnStatus status = folder != NULL ? KILN_OK : no_memory(err);

    for (size_t i = 0; i < KILN_COUNT(unfinished) && status >= 0; i++) {
        char *path = kiln_path_join(folder, unfinished[i]);

        status = path != NULL ? kiln_path_remove(path, err) : no_memory(err);
        free(path);
    }
    free(folder);
    return status;
}

/* ---- Saving ------------------------------------------------------------------------------- */

static KilnSaveRequest *find_pending(const KilnSaveRequests *requests, const char *name)
{
    for (size_t i = 0; i < requests->n_to_save; i++)
        if (strcmp(requests->to_save[i].name, name) == 0)
            return &requests->to_save[i];
    return NULL;
}

KilnStatus kiln_trainer_save(KilnTrainer *trainer, const KilnInstance *owner, const char *name,
                             unsigned flags, KilnError *err)
{
    KilnSaveRequests *requests = &trainer->saves;
    const bool weights_only = (flags & KILN_SAVE_WEIGHTS) != 0;

    if (kiln_trainer_rank(trainer) > 0)
        return KILN_OK;
    KilnStatus status = check_name(trainer, name, err);

    if (status < 0)
        return status;
    KilnSaveRequest *to_save = find_pending(requests, name);
    if (to_save == NULL) {
        if ((to_save = APPEND(requests->to_save, requests->n_to_save,
                              requests->to_save_capacity)) == NULL)
            return no_memory(err);
        copy_name(to_save->name, name);
        to_save->weights_only = weights_only;
    }
    to_save->weights_only = to_save->weights_only && weights_only;
    return kiln_save_requests_own(requests, owner, name) ? KILN_OK : no_memory(err);
}

bool kiln_trainer_would_replace(const KilnTrainer *trainer, const KilnInstance *owner,
                                const char *name)
{
    const KilnSaveRequests *requests = &trainer->saves;

    if (find_pending(requests, name) != NULL) /* the same snapshot: one folder with two owners */
        return false;
    for (size_t i = 0; i < requests->n_owned; i++)
        if (requests->owned[i].owner != owner && strcmp(requests->owned[i].name, name) == 0)
            return true;
    return false;
}

/* ---- The job ------------------------------------------------------------------------------- */

/* The config paths of a checkpoint's owners, in the order of hooks. */
static json_t *saved_by(const KilnTrainer *trainer, const char *name)
{
    json_t *list = json_array();

    for (size_t i = 0; i < trainer->n_callbacks; i++)
        if (find_owned(&trainer->saves, trainer->callbacks[i], name) != NULL)
            kiln_json_add(&list, json_string(kiln_instance_path(trainer->callbacks[i])));
    return list;
}

static KilnStatus add_targets(const KilnTrainer *trainer, KilnSaveJob *job, KilnError *err)
{
    const KilnSaveRequests *requests = &trainer->saves;

    job->targets = calloc(requests->n_to_save + 1, sizeof(*job->targets));
    if (job->targets == NULL)
        return no_memory(err);
    for (; job->n_targets < requests->n_to_save; job->n_targets++) {
        KilnCheckpointTarget *target = &job->targets[job->n_targets];

        target->name = kiln_strdup(requests->to_save[job->n_targets].name);
        target->saved_by = saved_by(trainer, requests->to_save[job->n_targets].name);
        if (target->name == NULL || target->saved_by == NULL) {
            job->n_targets++;
            return no_memory(err);
        }
    }
    return KILN_OK;
}

static KilnStatus add_file(const KilnTrainer *trainer, KilnSaveJob *job, const char *name,
                           KilnError *err)
{
    char **file = APPEND(job->files, job->n_files, job->files_capacity);

    if (file == NULL || (*file = kiln_path_join(trainer->run_dir, name)) == NULL)
        return no_memory(err);
    return KILN_OK;
}

/* Add the files that must be on disk before the checkpoint: the journal and the loggers' files. */
static KilnStatus add_files(const KilnTrainer *trainer, KilnSaveJob *job, KilnError *err)
{
    KilnStatus status = add_file(trainer, job, KILN_RUN_JOURNAL, err);

    for (size_t i = 0; i < trainer->loggers.n; i++) {
        const char *const *files =
            kiln_instance_component(trainer->loggers.list[i])->ops.logger->files;

        for (; files != NULL && *files != NULL && status >= 0; files++)
            status = add_file(trainer, job, *files, err);
    }
    return status;
}

/* Move all link requests to the job, and the delete requests for checkpoints that nobody owns,
 * links or saves again. */
static void move_links_and_deletes(KilnSaveRequests *requests, KilnSaveJob *job)
{
    job->links = requests->to_link;
    job->n_links = requests->n_to_link;
    job->deletes = requests->to_delete;
    for (size_t i = 0; i < requests->n_to_delete; i++)
        if (!is_owned_or_linked(requests, requests->to_delete[i].name) &&
            find_pending(requests, requests->to_delete[i].name) == NULL)
            job->deletes[job->n_deletes++] = requests->to_delete[i];
    requests->to_link = NULL;
    requests->to_delete = NULL;
    requests->to_link_capacity = requests->to_delete_capacity = 0;
    requests->n_to_link = requests->n_to_delete = requests->n_to_save = 0;
}

/* Whether training is over: then nothing is gained by copying the run to write it meanwhile. */
static bool writes_in_place(const KilnTrainer *trainer)
{
    return kiln_loop_is_done(&trainer->schedule, &trainer->at);
}

/* Copy the run to memory; training waits for this. */
static KilnStatus take_snapshot(KilnTrainer *trainer, KilnError *err)
{
    const KilnSaveRequests *requests = &trainer->saves;
    KilnSnapshot *snapshot = kiln_save_thread_snapshot(requests->thread);
    bool weights_only = true;

    for (size_t i = 0; i < requests->n_to_save; i++)
        weights_only = weights_only && requests->to_save[i].weights_only;
    KilnStatus status = kiln_loggers_flush(trainer, err);
    if (trainer->state.failed &&
        status < 0) /* a logger may be what failed; save the weights anyway */
        status = KILN_OK;
    if (status >= 0)
        status = kiln_snapshot_take(snapshot, trainer, weights_only, writes_in_place(trainer), err);
    if (status >= 0)
        status = kiln_save_hooks_call(trainer, snapshot, err);
    if (status >= 0) {
        trainer->newest.position = trainer->at;
        trainer->newest.weights_only = weights_only;
        copy_name(trainer->newest.name, requests->to_save[0].name);
    }
    return status;
}

/* Wait for the save thread, which is started when there is none. */
static KilnStatus ready_thread(KilnTrainer *trainer, KilnError *err)
{
    KilnSaveRequests *requests = &trainer->saves;
    char *folder;
    KilnStatus status;

    if (requests->thread != NULL)
        return kiln_save_thread_wait(requests->thread, err);
    folder = folder_of(trainer);
    status = folder != NULL
                 ? kiln_save_thread_new(folder, trainer->live.page, &requests->thread, err)
                 : no_memory(err);
    free(folder);
    return status;
}

KilnStatus kiln_save_requests_reserve(KilnTrainer *trainer, KilnError *err)
{
    KilnStatus status = KILN_OK;

    if (!trainer->options.trainer->enable_checkpointing || kiln_trainer_rank(trainer) > 0)
        return KILN_OK;
    if (trainer->saves.reserve == NULL && (trainer->saves.reserve = malloc(RESERVE_BYTES)) == NULL)
        return kiln_error_nomem(err, RESERVE_BYTES);
    status = ready_thread(trainer, err);
    return status >= 0 ? kiln_snapshot_reserve(kiln_save_thread_snapshot(trainer->saves.thread),
                                               trainer, err)
                       : status;
}

void kiln_save_requests_use_reserve(KilnSaveRequests *requests)
{
    free(requests->reserve);
    requests->reserve = NULL;
}

/* Drop save requests for checkpoints that nobody owns and no link points to: a later callback may
 * have moved the link. */
static void drop_unowned_saves(KilnSaveRequests *requests)
{
    size_t n = 0;

    for (size_t i = 0; i < requests->n_to_save; i++)
        if (is_owned_or_linked(requests, requests->to_save[i].name))
            requests->to_save[n++] = requests->to_save[i];
    requests->n_to_save = n;
}

/* Wait for the save thread and take a snapshot; measures how long training waits. */
static KilnStatus ready_snapshot(KilnTrainer *trainer, KilnError *err)
{
    const double start = kiln_clock();
    KilnStatus status = ready_thread(trainer, err);

    const double ready = kiln_clock();
    trainer->timing.written_s += ready - start;
    if (status < 0 || trainer->saves.n_to_save == 0)
        return status;
    status = take_snapshot(trainer, err);
    trainer->timing.copied_s += kiln_clock() - ready;
    trainer->timing.copies++;
    return status;
}

KilnStatus kiln_save_requests_commit(KilnTrainer *trainer, KilnError *err)
{
    KilnSaveRequests *requests = &trainer->saves;
    KilnSaveJob job = { 0 };

    if (kiln_trainer_rank(trainer) > 0) /* it may have requests to delete and prune */
        requests->n_to_prune = requests->n_to_delete = 0;
    KilnStatus status = requests->n_to_prune > 0 ? prune(trainer, err) : KILN_OK;

    drop_unowned_saves(requests);
    if (status < 0)
        return status;
    if (requests->n_to_save + requests->n_to_link + requests->n_to_delete == 0)
        return requests->thread != NULL && kiln_save_thread_failed(requests->thread)
                   ? kiln_save_thread_wait(requests->thread, err)
                   : KILN_OK;
    status = ready_snapshot(trainer, err);
    if (status >= 0)
        status = add_targets(trainer, &job, err);
    for (size_t i = 0; i < job.n_targets && status >= 0; i++) {
        kiln_run_journal_saved(trainer, job.targets[i].name);
        kiln_output_detail(&trainer->output, "saving checkpoints/%s", job.targets[i].name);
    }
    if (status >= 0 && job.n_targets > 0)
        status = add_files(trainer, &job, err);
    if (status < 0) {
        kiln_save_job_release(&job);
        requests->n_to_save = requests->n_to_link = requests->n_to_delete = 0;
        return status;
    }
    move_links_and_deletes(requests, &job);
    const bool saves = job.n_targets > 0;
    kiln_save_thread_begin(requests->thread, &job);
    return saves && writes_in_place(trainer) ? kiln_save_thread_wait(requests->thread, err)
                                             : KILN_OK;
}

KilnStatus kiln_save_requests_finish(KilnTrainer *trainer, KilnError *err)
{
    KilnStatus status = kiln_save_requests_commit(trainer, err);

    if (status >= 0 && trainer->saves.thread != NULL)
        status = kiln_save_thread_wait(trainer->saves.thread, err);
    return status;
}

void kiln_save_requests_release(KilnSaveRequests *requests)
{
    kiln_save_thread_free(requests->thread);
    free(requests->reserve);
    free(requests->owned);
    free(requests->links);
    free(requests->to_save);
    free(requests->to_link);
    free(requests->to_delete);
    free(requests->to_prune);
    *requests = (KilnSaveRequests) { 0 };
}

/* Keeping account of checkpoints: who keeps which, where links point, what is asked for. */
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
#include "train/run/run_journal.h"
#include "train/checkpoint/save_thread.h"

/* For the names, the JSON and the headers of a checkpoint. Never touched, it costs addresses only.
 */
enum { SPARE = 4 << 20 };

/* ---- Lists --------------------------------------------------------------------------- */

/* One more element at the end of a list; NULL when memory is out. */
static void *grow(void **list, size_t *n, size_t size)
{
    char *more = realloc(*list, (*n + 1) * size);

    if (more == NULL)
        return NULL;
    *list = more;
    return memset(more + (*n)++ * size, 0, size);
}
#define GROW(list, n) grow((void **)&(list), &(n), sizeof(*(list)))

static void copy_name(char to[KILN_CHECKPOINT_NAME], const char *name)
{
    snprintf(to, KILN_CHECKPOINT_NAME, "%s", name);
}

static KilnStatus no_memory(KilnError *err)
{
    return kiln_error_nomem(err, KILN_CHECKPOINT_NAME);
}

/* Of a checkpoint or a link. */
static KilnStatus check_name(const KilnTrainer *trainer, const char *name, KilnError *err)
{
    if (trainer->run_dir == NULL)
        return kiln_error_set(err, KILN_E_INTERNAL, "checkpoint %s: this run has no folder", name);
    if (name[0] == '\0' || name[0] == '.' || strchr(name, '/') != NULL ||
        strlen(name) >= KILN_CHECKPOINT_NAME)
        return kiln_error_set(err, KILN_E_RANGE,
                              "checkpoint \"%s\": a name of at most %d characters without / that "
                              "does not begin with a dot is needed",
                              name, KILN_CHECKPOINT_NAME - 1);
    return KILN_OK;
}

/* ---- Who keeps what ------------------------------------------------------------------- */

static bool owned(const KilnSaveRequests *saves, const KilnInstance *owner, const char *name)
{
    for (size_t i = 0; i < saves->n_owned; i++)
        if (saves->owned[i].owner == owner && strcmp(saves->owned[i].name, name) == 0)
            return true;
    return false;
}

bool kiln_save_requests_own(KilnSaveRequests *saves, const KilnInstance *owner, const char *name)
{
    if (owner == NULL || owned(saves, owner, name))
        return true;
    KilnOwnedCheckpoint *keep = GROW(saves->owned, saves->n_owned);
    if (keep == NULL)
        return false;
    keep->owner = owner;
    copy_name(keep->name, name);
    return true;
}

static bool is_kept(const KilnSaveRequests *saves, const char *name)
{
    for (size_t i = 0; i < saves->n_owned; i++)
        if (strcmp(saves->owned[i].name, name) == 0)
            return true;
    for (size_t i = 0; i < saves->n_links; i++)
        if (strcmp(saves->links[i].name, name) == 0)
            return true;
    return false;
}

static KilnStatus drop(KilnSaveRequests *saves, const char *name, bool owned, KilnError *err)
{
    KilnDeleteRequest *to_delete = GROW(saves->to_delete, saves->n_to_delete);

    if (to_delete == NULL)
        return no_memory(err);
    copy_name(to_delete->name, name);
    to_delete->owned = owned;
    return KILN_OK;
}

KilnStatus kiln_trainer_remove(KilnTrainer *trainer, const KilnInstance *owner, const char *name,
                               KilnError *err)
{
    KilnSaveRequests *saves = &trainer->saves;
    KilnStatus status = check_name(trainer, name, err);

    for (size_t i = 0; status >= 0 && i < saves->n_owned; i++)
        if (saves->owned[i].owner == owner && strcmp(saves->owned[i].name, name) == 0) {
            saves->owned[i] = saves->owned[--saves->n_owned];
            return drop(saves, name, true, err);
        }
    return status;
}

/* ---- Links ------------------------------------------------------------------------------ */

/* The folder of checkpoints, owned by the caller. */
static char *folder_of(const KilnTrainer *trainer)
{
    return kiln_path_join(trainer->run_dir, "checkpoints");
}

static KilnStatus read_link(KilnSaveRequests *saves, const char *folder, const char *name,
                            KilnError *err)
{
    char *path = kiln_path_join(folder, name), target[KILN_CHECKPOINT_NAME];
    ssize_t length = path != NULL ? readlink(path, target, sizeof(target) - 1) : -1;
    KilnStatus status = path != NULL ? KILN_OK : no_memory(err);

    free(path);
    if (length <= 0)
        return status;
    target[length] = '\0';
    KilnLinkRequest *link = GROW(saves->links, saves->n_links);
    if (link == NULL)
        return no_memory(err);
    copy_name(link->link, name);
    copy_name(link->name, target);
    return KILN_OK;
}

/* The links that are there when the run begins, whoever made them. */
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

static KilnLinkRequest *find_link(const KilnSaveRequests *saves, const char *link)
{
    for (size_t i = 0; i < saves->n_links; i++)
        if (strcmp(saves->links[i].link, link) == 0)
            return &saves->links[i];
    return NULL;
}

KilnStatus kiln_trainer_link(KilnTrainer *trainer, const char *link, const char *name,
                             KilnError *err)
{
    KilnSaveRequests *saves = &trainer->saves;
    KilnStatus status = check_name(trainer, link, err);

    if (status >= 0)
        status = check_name(trainer, name, err);
    if (status >= 0)
        status = read_links(trainer, err);
    KilnLinkRequest *old = status >= 0 ? find_link(saves, link) : NULL;
    if (status < 0 || (old != NULL && strcmp(old->name, name) == 0))
        return status;
    if (old != NULL)
        status = drop(saves, old->name, false, err);
    else if ((old = GROW(saves->links, saves->n_links)) == NULL)
        status = no_memory(err);
    KilnLinkRequest *to_save = status >= 0 ? GROW(saves->to_link, saves->n_to_link) : NULL;
    if (to_save == NULL)
        return status < 0 ? status : no_memory(err);
    copy_name(old->link, link);
    copy_name(old->name, name);
    *to_save = *old;
    return KILN_OK;
}

bool kiln_trainer_link_target(const KilnTrainer *trainer, const char *link, char *buf, size_t size)
{
    const KilnLinkRequest *known = find_link(&trainer->saves, link);
    char *folder = folder_of(trainer);
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

/* ---- Strays ------------------------------------------------------------------------------ */

KilnStatus kiln_trainer_prune(KilnTrainer *trainer, const KilnInstance *owner, KilnError *err)
{
    const KilnInstance **to_prune = GROW(trainer->saves.to_prune, trainer->saves.n_to_prune);

    if (to_prune == NULL)
        return no_memory(err);
    *to_prune = owner;
    return KILN_OK;
}

static bool has_tidied(const KilnSaveRequests *saves, const char *path)
{
    for (size_t i = 0; path != NULL && i < saves->n_to_prune; i++)
        if (strcmp(kiln_instance_path(saves->to_prune[i]), path) == 0)
            return true;
    return false;
}

/* A folder that this run left and that nobody wants: all who saved it have tidied up. */
static bool is_stray(const KilnSaveRequests *saves, const char *folder, const char *name)
{
    json_t *saved_by = NULL;
    bool stray = name[0] != '.' && !is_kept(saves, name) && find_link(saves, name) == NULL &&
                 kiln_checkpoint_is_own(folder, name, &saved_by);

    for (size_t i = 0; i < json_array_size(saved_by); i++)
        stray = stray && has_tidied(saves, json_string_value(json_array_get(saved_by, i)));
    json_decref(saved_by);
    return stray;
}

static KilnStatus drop_strays(KilnTrainer *trainer, KilnError *err)
{
    KilnSaveRequests *saves = &trainer->saves;
    char *folder = folder_of(trainer), **names = NULL;
    size_t n = 0;
    KilnStatus status = folder != NULL ? read_links(trainer, err) : no_memory(err);

    if (status >= 0)
        status = kiln_dir_list(folder, &names, &n, err);
    for (size_t i = 0; i < n && status >= 0; i++)
        if (is_stray(saves, folder, names[i]))
            status = drop(saves, names[i], true, err);
    saves->n_to_prune = 0;
    kiln_names_free(names, n);
    free(folder);
    return status;
}

KilnStatus kiln_save_requests_open(KilnTrainer *trainer, KilnError *err)
{
    static const char *const halves[] = { KILN_CHECKPOINT_UNFINISHED, KILN_CHECKPOINT_REMOVED };
    char *folder = folder_of(trainer);
    KilnStatus status = folder != NULL ? KILN_OK : no_memory(err);

    for (size_t i = 0; i < KILN_COUNT(halves) && status >= 0; i++) {
        char *path = kiln_path_join(folder, halves[i]);

        status = path != NULL ? kiln_path_remove(path, err) : no_memory(err);
        free(path);
    }
    free(folder);
    return status;
}

/* ---- Asking ------------------------------------------------------------------------------- */

static KilnSaveRequest *find_asked(const KilnSaveRequests *saves, const char *name)
{
    for (size_t i = 0; i < saves->n_to_save; i++)
        if (strcmp(saves->to_save[i].name, name) == 0)
            return &saves->to_save[i];
    return NULL;
}

KilnStatus kiln_trainer_save(KilnTrainer *trainer, const KilnInstance *owner, const char *name,
                             unsigned flags, KilnError *err)
{
    KilnSaveRequests *saves = &trainer->saves;
    const bool weights_only = (flags & KILN_SAVE_WEIGHTS) != 0;
    KilnStatus status = check_name(trainer, name, err);

    if (status < 0)
        return status;
    KilnSaveRequest *to_save = find_asked(saves, name);
    if (to_save == NULL) {
        if ((to_save = GROW(saves->to_save, saves->n_to_save)) == NULL)
            return no_memory(err);
        copy_name(to_save->name, name);
        to_save->weights_only = weights_only;
    }
    to_save->weights_only = to_save->weights_only && weights_only;
    return kiln_save_requests_own(saves, owner, name) ? KILN_OK : no_memory(err);
}

bool kiln_trainer_would_replace(const KilnTrainer *trainer, const KilnInstance *owner,
                                const char *name)
{
    const KilnSaveRequests *saves = &trainer->saves;

    if (find_asked(saves, name) != NULL) /* of this very moment: one folder with two owners */
        return false;
    for (size_t i = 0; i < saves->n_owned; i++)
        if (saves->owned[i].owner != owner && strcmp(saves->owned[i].name, name) == 0)
            return true;
    return false;
}

/* ---- The job ------------------------------------------------------------------------------- */

/* The paths of those who keep a checkpoint, in the order of hooks. */
static json_t *saved_by(const KilnTrainer *trainer, const char *name)
{
    json_t *list = json_array();

    for (size_t i = 0; i < trainer->n_callbacks; i++)
        if (owned(&trainer->saves, trainer->callbacks[i], name))
            kiln_json_add(&list, json_string(kiln_instance_path(trainer->callbacks[i])));
    return list;
}

static KilnStatus add_folders(const KilnTrainer *trainer, KilnSaveJob *job, KilnError *err)
{
    const KilnSaveRequests *saves = &trainer->saves;

    job->saves = calloc(saves->n_to_save + 1, sizeof(*job->saves));
    if (job->saves == NULL)
        return no_memory(err);
    for (; job->n_saves < saves->n_to_save; job->n_saves++) {
        KilnSave *save = &job->saves[job->n_saves];

        save->name = kiln_strdup(saves->to_save[job->n_saves].name);
        save->saved_by = saved_by(trainer, saves->to_save[job->n_saves].name);
        if (save->name == NULL || save->saved_by == NULL) {
            job->n_saves++;
            return no_memory(err);
        }
    }
    return KILN_OK;
}

static KilnStatus add_file(const KilnTrainer *trainer, KilnSaveJob *job, const char *name,
                           KilnError *err)
{
    char **file = GROW(job->files, job->n_files);

    if (file == NULL || (*file = kiln_path_join(trainer->run_dir, name)) == NULL)
        return no_memory(err);
    return KILN_OK;
}

/* The files of loggers that the checkpoint counts on, and the journal. */
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

/* Links as they are, and of what was dropped that which nobody keeps. */
static void add_rest(KilnSaveRequests *saves, KilnSaveJob *job)
{
    job->links = saves->to_link;
    job->n_links = saves->n_to_link;
    job->removals = saves->to_delete;
    for (size_t i = 0; i < saves->n_to_delete; i++)
        if (!is_kept(saves, saves->to_delete[i].name) &&
            find_asked(saves, saves->to_delete[i].name) == NULL)
            job->removals[job->n_removals++] = saves->to_delete[i];
    saves->to_link = NULL;
    saves->to_delete = NULL;
    saves->n_to_link = saves->n_to_delete = saves->n_to_save = 0;
}

/* The files of components go straight into the folder that is being made. */
static KilnStatus call_savers(KilnTrainer *trainer, const KilnSnapshot *snapshot, KilnError *err)
{
    char *folder = folder_of(trainer);
    char *fresh = folder != NULL ? kiln_path_join(folder, KILN_CHECKPOINT_UNFINISHED) : NULL;
    KilnStatus status = fresh != NULL ? kiln_path_remove(fresh, err) : no_memory(err);

    if (status >= 0)
        status = kiln_dir_make(fresh, err);
    for (size_t i = 0; i < trainer->hooks.n_all && status >= 0; i++) {
        KilnInstance *who = trainer->hooks.all[i].instance;
        const KilnCallbackOps *ops = trainer->hooks.all[i].ops;

        if (ops->on_save_checkpoint == NULL || (snapshot->weights_only && who != trainer->module))
            continue;
        status = KILN_CALLED(who, "on_save_checkpoint",
                             ops->on_save_checkpoint(who, trainer, fresh, err), err);
        if (status < 0)
            (void)kiln_error_prefix(err, "%s: ", kiln_instance_path(who));
    }
    free(fresh);
    free(folder);
    return status;
}

/* Training stands still for this. */
static KilnStatus take_snapshot(KilnTrainer *trainer, KilnError *err)
{
    const KilnSaveRequests *saves = &trainer->saves;
    KilnSnapshot *snapshot = kiln_writer_snapshot(saves->writer);
    bool weights_only = true;

    for (size_t i = 0; i < saves->n_to_save; i++)
        weights_only = weights_only && saves->to_save[i].weights_only;
    KilnStatus status = kiln_loggers_flush(trainer, err);
    if (trainer->state.failed && status < 0) /* it may be what failed; the parameters matter more */
        status = KILN_OK;
    if (status >= 0)
        status = kiln_snapshot_take(snapshot, trainer, weights_only, err);
    if (status >= 0)
        status = call_savers(trainer, snapshot, err);
    if (status >= 0 && !weights_only) {
        trainer->newest.position = trainer->at;
        copy_name(trainer->newest.name, saves->to_save[0].name);
    }
    return status;
}

static KilnStatus ready_writer(KilnTrainer *trainer, KilnError *err)
{
    KilnSaveRequests *saves = &trainer->saves;
    char *folder;
    KilnStatus status;

    if (saves->writer != NULL)
        return kiln_writer_wait(saves->writer, err);
    folder = folder_of(trainer);
    status = folder != NULL ? kiln_writer_new(folder, trainer->live.page, &saves->writer, err)
                            : no_memory(err);
    free(folder);
    return status;
}

KilnStatus kiln_save_requests_reserve(KilnTrainer *trainer, KilnError *err)
{
    KilnStatus status = KILN_OK;

    if (!trainer->options.trainer->enable_checkpointing)
        return KILN_OK;
    if (trainer->saves.reserve == NULL && (trainer->saves.reserve = malloc(SPARE)) == NULL)
        return kiln_error_nomem(err, SPARE);
    status = ready_writer(trainer, err);
    return status >= 0
               ? kiln_snapshot_reserve(kiln_writer_snapshot(trainer->saves.writer), trainer, err)
               : status;
}

void kiln_save_requests_use_reserve(KilnSaveRequests *saves)
{
    free(saves->reserve);
    saves->reserve = NULL;
}

/* One callback's newest may be the newest of another that came behind it, and had its link. */
static void leave_unwanted(KilnSaveRequests *saves)
{
    size_t n = 0;

    for (size_t i = 0; i < saves->n_to_save; i++)
        if (is_kept(saves, saves->to_save[i].name))
            saves->to_save[n++] = saves->to_save[i];
    saves->n_to_save = n;
}

/* What the writer begins from, and how long training stood still for it. */
static KilnStatus ready_snapshot(KilnTrainer *trainer, KilnError *err)
{
    const double start = kiln_clock();
    KilnStatus status = ready_writer(trainer, err);

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
    KilnSaveRequests *saves = &trainer->saves;
    KilnSaveJob job = { 0 };
    KilnStatus status = saves->n_to_prune > 0 ? drop_strays(trainer, err) : KILN_OK;

    leave_unwanted(saves);
    if (status < 0)
        return status;
    if (saves->n_to_save + saves->n_to_link + saves->n_to_delete == 0)
        return saves->writer != NULL && kiln_writer_failed(saves->writer)
                   ? kiln_writer_wait(saves->writer, err)
                   : KILN_OK;
    status = ready_snapshot(trainer, err);
    if (status >= 0)
        status = add_folders(trainer, &job, err);
    for (size_t i = 0; i < job.n_saves && status >= 0; i++) {
        kiln_run_journal_saved(trainer, job.saves[i].name);
        kiln_output_detail(&trainer->output, "saving checkpoints/%s", job.saves[i].name);
    }
    if (status >= 0 && job.n_saves > 0)
        status = add_files(trainer, &job, err);
    if (status < 0) {
        kiln_save_job_release(&job);
        saves->n_to_save = saves->n_to_link = saves->n_to_delete = 0;
        return status;
    }
    add_rest(saves, &job);
    kiln_writer_begin(saves->writer, &job);
    return KILN_OK;
}

KilnStatus kiln_save_requests_finish(KilnTrainer *trainer, KilnError *err)
{
    KilnStatus status = kiln_save_requests_commit(trainer, err);

    if (status >= 0 && trainer->saves.writer != NULL)
        status = kiln_writer_wait(trainer->saves.writer, err);
    return status;
}

void kiln_save_requests_release(KilnSaveRequests *saves)
{
    kiln_writer_free(saves->writer);
    free(saves->reserve);
    free(saves->owned);
    free(saves->links);
    free(saves->to_save);
    free(saves->to_link);
    free(saves->to_delete);
    free(saves->to_prune);
    *saves = (KilnSaveRequests) { 0 };
}

/* Writes a snapshot as a checkpoint folder and publishes it by rename. */
#define _GNU_SOURCE /* renameat2 */
#include "train/checkpoint/checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/system/file.h"
#include "base/system/sync.h"
#include "base/json.h"
#include "base/text.h"
#include "kiln/array.h"
#include "tensor/safetensors.h"

/* ---- Hashes ------------------------------------------------------------------------ */

static KilnStatus hash_fd(int fd, const char *path, uint64_t *ret_hash, int64_t *ret_size,
                          KilnError *err)
{
    enum { PART = 1 << 16 };
    XXH3_state_t *hash = XXH3_createState();
    char *part = malloc(PART);
    int64_t size = 0;
    ssize_t got = -1;

    if (hash == NULL || part == NULL) {
        XXH3_freeState(hash);
        free(part);
        return kiln_error_nomem(err, PART);
    }
    XXH3_64bits_reset(hash);
    do {
        got = read(fd, part, PART);
        if (got > 0) {
            XXH3_64bits_update(hash, part, (size_t)got);
            size += got;
        }
    } while (got > 0 || (got < 0 && errno == EINTR));
    KilnStatus status = got < 0 ? kiln_error_errno(err, path) : KILN_OK;
    if (status >= 0) {
        *ret_hash = XXH3_64bits_digest(hash);
        *ret_size = size;
    }
    XXH3_freeState(hash);
    free(part);
    return status;
}

KilnStatus kiln_file_hash(const char *path, uint64_t *ret_hash, int64_t *ret_size, KilnError *err)
{
    int fd = -1;
    KilnStatus status = kiln_file_open_regular(path, &fd, err);

    if (status < 0)
        return status;
    status = hash_fd(fd, path, ret_hash, ret_size, err);
    close(fd);
    return status;
}

/* ---- state.json ------------------------------------------------------------------------- */

/* Size and checksum of a file of the folder. */
static KilnStatus file_json(const char *folder, const char *name, json_t *files, KilnError *err)
{
    char *path = kiln_path_join(folder, name), hex[17];
    uint64_t hash = 0;
    int64_t size = 0;

    if (path == NULL)
        return kiln_error_nomem(err, strlen(folder));
    KilnStatus status = kiln_file_hash(path, &hash, &size, err);
    free(path);
    if (status < 0)
        return status;
    snprintf(hex, sizeof(hex), "%016" PRIx64, hash);
    json_t *file = json_pack("{s:I, s:s}", "size", (json_int_t)size, "xxh3", hex);
    if (file == NULL || json_object_set_new(files, name, file) != 0)
        return kiln_error_nomem(err, sizeof(hex));
    return KILN_OK;
}

/* Append `name`, or with `folder` "FOLDER/NAME". */
static bool append_name(char ***names, size_t *capacity, size_t *n, const char *folder,
                        const char *name)
{
    if (!KILN_RESERVE(*names, *capacity, *n + 1))
        return false;
    char *whole = folder != NULL ? kiln_path_join(folder, name) : kiln_strdup(name);
    (*names)[*n] = whole;
    *n += whole != NULL;
    return whole != NULL;
}

/* Append what is in the folder `from`, whose name is `as` (NULL: the checkpoint itself). */
static KilnStatus append_files(const char *from, const char *as, char ***names, size_t *capacity,
                               size_t *n, KilnError *err)
{
    char **here = NULL;
    size_t count = 0;
    KilnStatus status = kiln_dir_list(from, &here, &count, err);

    for (size_t i = 0; i < count && status >= 0; i++) {
        const bool fitted = as == NULL && strcmp(here[i], KILN_CHECKPOINT_FITTED) == 0;
        char *path = kiln_path_join(from, here[i]);

        if (path != NULL && fitted && kiln_is_dir(path))
            status = append_files(path, here[i], names, capacity, n, err);
        else if (path == NULL || !append_name(names, capacity, n, as, here[i]))
            status = kiln_error_nomem(err, strlen(from));
        free(path);
    }
    kiln_names_free(here, count);
    return status;
}

KilnStatus kiln_checkpoint_files(const char *folder, char ***ret, size_t *ret_n, KilnError *err)
{
    char **names = NULL;
    size_t capacity = 0, n = 0;
    KilnStatus status = append_files(folder, NULL, &names, &capacity, &n, err);

    if (status < 0) {
        kiln_names_free(names, n);
        return status;
    }
    *ret = names;
    *ret_n = n;
    return KILN_OK;
}

/* All files of the folder, those that components wrote among them. */
static KilnStatus files_json(const char *folder, json_t *files, KilnError *err)
{
    char **names = NULL;
    size_t n = 0;
    KilnStatus status = files != NULL ? kiln_checkpoint_files(folder, &names, &n, err)
                                      : kiln_error_nomem(err, 1);

    for (size_t i = 0; i < n && status >= 0; i++)
        status = file_json(folder, names[i], files, err);
    kiln_names_free(names, n);
    return status;
}

/* Write and flush a new file; the folder is flushed when it is complete. */
static KilnStatus write_text(const char *path, const char *text, KilnError *err)
{
    FILE *file = kiln_file_open(path, "w");
    bool ok = file != NULL && fputs(text, file) != EOF && fflush(file) == 0 &&
              fsync(fileno(file)) == 0;
    KilnStatus status = ok ? KILN_OK : kiln_error_errno(err, path);

    if (file != NULL && fclose(file) != 0 && ok)
        status = kiln_error_errno(err, path);
    return status;
}

/* The text of `state` with its own checksum as the last member; NULL when memory runs out. */
static char *dump_with_checksum(const json_t *state)
{
    char *text = kiln_json_dump(state, JSON_INDENT(1) | JSON_REAL_PRECISION(17));
    size_t length = text != NULL ? strlen(text) : 0;
    KilnText whole = { 0 };

    if (length < 2)
        return NULL;
    length -= 2; /* without the final "\n}" */
    kiln_text_append_n(&whole, text, length);
    kiln_text_printf(&whole, KILN_CHECKPOINT_CHECKSUM "%016" PRIx64 "\"\n}\n",
                     (uint64_t)XXH3_64bits(text, length));
    free(text);
    return kiln_text_take(&whole);
}

/* Add the checksum of each tensor by name, so that damage can be located. */
static void add_hashes(json_t **all, const KilnStView *views, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const size_t bytes = (size_t)kiln_shape_count(&views[i].shape) *
                             kiln_dtype_size(views[i].dtype);

        kiln_json_put(all, views[i].name,
                      json_sprintf("%016" PRIx64, (uint64_t)XXH3_64bits(views[i].data, bytes)));
    }
}

static json_t *tensors_json(const KilnSnapshot *snapshot)
{
    json_t *all = json_object();

    add_hashes(&all, snapshot->model, snapshot->n_model);
    add_hashes(&all, snapshot->trainer, snapshot->n_trainer);
    return all;
}

/* Write state.json: the run's state, and the folder's name, owners and files. */
static KilnStatus write_state(const KilnSnapshot *snapshot, const KilnCheckpointTarget *target,
                              const char *folder, KilnError *err)
{
    json_t *files = json_object(), *state = NULL;
    char *path = kiln_path_join(folder, KILN_CHECKPOINT_STATE), *text = NULL;
    KilnStatus status = files_json(folder, files, err);

    if (status >= 0)
        state = json_pack("{s:s, s:O, s:O, s:o}", "name", target->name, "saved_by",
                          target->saved_by, "files", files, "tensors", tensors_json(snapshot));
    if (state != NULL && json_object_update(state, snapshot->state) == 0)
        text = dump_with_checksum(state);
    if (status >= 0 && (text == NULL || path == NULL))
        status = kiln_error_nomem(err, 1);
    if (status >= 0)
        status = write_text(path, text, err);
    json_decref(state);
    json_decref(files);
    free(text);
    free(path);
    return status;
}

/* ---- The folder ----------------------------------------------------------------------------- */

static KilnStatus write_tensors(const char *folder, const char *name, const KilnStView *views,
                                size_t n, const KilnStText *mark, KilnError *err)
{
    char *path = kiln_path_join(folder, name);
    KilnStatus status = path != NULL
                            ? kiln_safetensors_write(path, views, n, mark, mark != NULL, err)
                            : kiln_error_nomem(err, 1);

    free(path);
    return status;
}

static KilnStatus write_config(const KilnSnapshot *snapshot, const char *folder, KilnError *err)
{
    char *path = kiln_path_join(folder, KILN_CHECKPOINT_CONFIG);
    KilnStatus status = path != NULL ? write_text(path, snapshot->config, err)
                                     : kiln_error_nomem(err, 1);

    free(path);
    return status;
}

static KilnStatus write_files(const KilnSnapshot *snapshot, const KilnCheckpointTarget *target,
                              const char *folder, KilnError *err)
{
    const KilnStText mark = { KILN_CHECKPOINT_MARK, KILN_VERSION };
    KilnStatus status = kiln_tree_sync(folder, err); /* what components have written */

    if (status >= 0)
        status = write_tensors(folder, KILN_CHECKPOINT_MODEL, snapshot->model, snapshot->n_model,
                               &mark, err);
    if (status >= 0 && (!snapshot->weights_only || snapshot->n_trainer > 0))
        status = write_tensors(folder, KILN_CHECKPOINT_TRAINER, snapshot->trainer,
                               snapshot->n_trainer, NULL, err);
    if (status >= 0 && snapshot->adapters != NULL)
        status = kiln_adapters_write(snapshot->adapters, snapshot->model, folder, err);
    if (status >= 0)
        status = write_config(snapshot, folder, err);
    if (status >= 0)
        status = write_state(snapshot, target, folder, err);
    return status >= 0 ? kiln_path_sync(folder, err) : status;
}

/* Rename `unfinished` to `path`. A folder of that name is exchanged with it atomically, so that one
 * of them is always there. */
static KilnStatus publish(const char *unfinished, const char *path, KilnError *err)
{
    if (rename(unfinished, path) == 0)
        return KILN_OK;
    if (errno != EEXIST && errno != ENOTEMPTY)
        return kiln_error_errno(err, path);
    if (renameat2(AT_FDCWD, unfinished, AT_FDCWD, path, RENAME_EXCHANGE) == 0)
        return kiln_path_remove(unfinished, err);
    /* This file system has no RENAME_EXCHANGE. */
    KilnStatus status = kiln_path_remove(path, err);
    if (status >= 0 && rename(unfinished, path) != 0)
        status = kiln_error_errno(err, path);
    return status;
}

/* Write the same snapshot under another name: link the files of the checkpoint `written`. */
static KilnStatus write_clone(const KilnSnapshot *snapshot, const KilnCheckpointTarget *target,
                              const char *written, const char *folder, KilnError *err)
{
    KilnStatus status = kiln_checkpoint_clone(written, folder, false, err);

    if (status >= 0)
        status = write_state(snapshot, target, folder, err);
    return status >= 0 ? kiln_path_sync(folder, err) : status;
}

KilnStatus kiln_checkpoint_write(const KilnSnapshot *snapshot, const KilnCheckpointTarget *target,
                                 const char *folder, const char *written, KilnError *err)
{
    char *unfinished = kiln_path_join(folder, KILN_CHECKPOINT_UNFINISHED);
    char *path = kiln_path_join(folder, target->name);
    char *other = written != NULL ? kiln_path_join(folder, written) : NULL;
    KilnStatus status = unfinished != NULL && path != NULL && (written == NULL || other != NULL)
                            ? KILN_OK
                            : kiln_error_nomem(err, strlen(folder));

    if (status >= 0)
        status = other != NULL ? write_clone(snapshot, target, other, unfinished, err)
                               : write_files(snapshot, target, unfinished, err);
    if (status >= 0)
        status = publish(unfinished, path, err);
    if (status >= 0)
        status = kiln_path_sync(folder, err);
    if (status < 0 && unfinished != NULL) {
        (void)!kiln_path_remove(unfinished, NULL);
        (void)kiln_error_prefix(err, "checkpoint %s was not saved: ", target->name);
    }
    free(unfinished);
    free(path);
    free(other);
    return status;
}

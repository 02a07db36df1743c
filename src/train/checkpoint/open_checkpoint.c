/* Opens a checkpoint folder: verifies its files and reads state.json. */
#include "train/checkpoint/checkpoint.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/system/file.h"
#include "base/text.h"
#include "train/run/run_folder.h"

enum {
    MAX_STATE_BYTES = 64 << 20,
    FIRST_CHECKSUM_FORMAT = 3 /* the first whose state.json has its own checksum */
};

/* ---- Verifying files ---------------------------------------------------------------- */

/* <checkpoint>/<name>, owned by the caller. */
static KilnStatus file_of(const KilnCheckpoint *checkpoint, const char *name, char **ret,
                          KilnError *err)
{
    *ret = kiln_path_join(checkpoint->path, name);
    return *ret != NULL ? KILN_OK : kiln_error_nomem(err, strlen(name));
}

KilnStatus kiln_checkpoint_tensors(const KilnCheckpoint *checkpoint, const char *name,
                                   KilnSafetensors **ret, char **ret_path, KilnError *err)
{
    KilnStatus status = file_of(checkpoint, name, ret_path, err);

    return status < 0 ? status : kiln_safetensors_open(*ret_path, ret, err);
}

static KilnStatus check_file(const KilnCheckpoint *checkpoint, const char *name, KilnError *err)
{
    const json_t *file = json_object_get(json_object_get(checkpoint->state, "files"), name);
    const char *want = json_string_value(json_object_get(file, "xxh3"));
    json_int_t want_size = json_integer_value(json_object_get(file, "size"));
    uint64_t hash = 0;
    int64_t size = 0;
    char *path = NULL, hex[17];

    if (want == NULL)
        return kiln_error_set(err, KILN_E_FORMAT, "%s/%s: has no checksum for %s", checkpoint->path,
                              KILN_CHECKPOINT_STATE, name);
    KilnStatus status = file_of(checkpoint, name, &path, err);
    if (status >= 0 && !kiln_is_file(path))
        status = kiln_error_set(err, KILN_E_IO, "%s: is missing; use another checkpoint", path);
    if (status >= 0)
        status = kiln_file_hash(path, &hash, &size, err);
    if (status >= 0) {
        snprintf(hex, sizeof(hex), "%016" PRIx64, hash);
        if (size != want_size)
            status = kiln_error_set(err, KILN_E_FORMAT,
                                    "%s: is %s: %lld bytes, but %lld were saved; use another "
                                    "checkpoint",
                                    path, size < want_size ? "truncated" : "too long",
                                    (long long)size, (long long)want_size);
        else if (strcmp(hex, want) != 0)
            status = kiln_error_set(err, KILN_E_FORMAT,
                                    "%s: is damaged: its checksum is %s, but %s was saved; use "
                                    "another checkpoint",
                                    path, hex, want);
    }
    free(path);
    return status;
}

/* Whether the weights were written by another program. */
static bool foreign_weights(const KilnCheckpoint *checkpoint)
{
    KilnSafetensors *file = NULL;
    char *path = NULL;
    bool foreign = kiln_checkpoint_tensors(checkpoint, KILN_CHECKPOINT_MODEL, &file, &path, NULL) >=
                       0 &&
                   kiln_safetensors_metadata(file, KILN_CHECKPOINT_MARK) == NULL;

    kiln_safetensors_close(file);
    free(path);
    return foreign;
}

/* Whether a file must be verified; without `resume` only what test and prediction read. */
static bool is_needed(const KilnCheckpoint *checkpoint, const char *name, bool resume)
{
    if (resume)
        return true;
    if (strcmp(name, KILN_CHECKPOINT_MODEL) == 0)
        return !foreign_weights(checkpoint);
    return strcmp(name, KILN_CHECKPOINT_TRAINER) != 0 && strcmp(name, KILN_CHECKPOINT_CONFIG) != 0;
}

/* Whether state.json may list a file of that name: none outside the folder. */
static bool is_inside(const char *name)
{
    static const char fitted[] = KILN_CHECKPOINT_FITTED "/";

    if (kiln_starts_with(name, fitted))
        name += strlen(fitted);
    return strchr(name, '/') == NULL && strcmp(name, "..") != 0;
}

/* Note the folder of what the datamodule fitted, if a file of it is listed. */
static KilnStatus find_fitted(KilnCheckpoint *checkpoint, KilnError *err)
{
    json_t *files = json_object_get(checkpoint->state, "files"), *file;
    const char *name;

    json_object_foreach(files, name, file)
    {
        if (strchr(name, '/') != NULL)
            return file_of(checkpoint, KILN_CHECKPOINT_FITTED, &checkpoint->fitted, err);
    }
    return KILN_OK;
}

static KilnStatus check_files(const KilnCheckpoint *checkpoint, bool resume, KilnError *err)
{
    json_t *files = json_object_get(checkpoint->state, "files"), *file;
    KilnStatus status = KILN_OK;
    const char *name;

    if (!json_is_object(files) || json_object_get(files, KILN_CHECKPOINT_MODEL) == NULL ||
        (resume && json_object_get(files, KILN_CHECKPOINT_TRAINER) == NULL))
        return kiln_error_set(err, KILN_E_FORMAT, "%s/%s: is damaged: it lists no %s",
                              checkpoint->path, KILN_CHECKPOINT_STATE,
                              resume ? KILN_CHECKPOINT_TRAINER : KILN_CHECKPOINT_MODEL);
    json_object_foreach(files, name, file)
    {
        if (!is_inside(name))
            return kiln_error_set(err, KILN_E_FORMAT, "%s/%s: lists \"%s\" outside its folder",
                                  checkpoint->path, KILN_CHECKPOINT_STATE, name);
        if (status >= 0 && is_needed(checkpoint, name, resume))
            status = check_file(checkpoint, name, err);
    }
    return status;
}

/* Verify the checksum at the end of state.json; older formats had none. */
static KilnStatus check_own_checksum(const json_t *state, const char *text, const char *path,
                                     KilnError *err)
{
    const char *want = json_string_value(json_object_get(state, "xxh3")), *end = NULL;
    char hex[17] = "";

    for (const char *at = text; (at = strstr(at, KILN_CHECKPOINT_CHECKSUM)) != NULL; at++)
        end = at;
    if (end != NULL)
        snprintf(hex, sizeof(hex), "%016" PRIx64,
                 (uint64_t)XXH3_64bits(text, (size_t)(end - text)));
    if (want == NULL &&
        json_integer_value(json_object_get(state, "format")) < FIRST_CHECKSUM_FORMAT)
        return KILN_OK;
    if (want == NULL || strcmp(hex, want) != 0)
        return kiln_error_set(err, KILN_E_FORMAT,
                              "%s: is damaged: its checksum is %s, but %s was saved; use another "
                              "checkpoint",
                              path, hex[0] != '\0' ? hex : "missing", want != NULL ? want : "one");
    return KILN_OK;
}

static KilnStatus check_format(const json_t *state, const char *path, KilnError *err)
{
    const json_int_t format = json_integer_value(json_object_get(state, "format"));
    const char *version = json_string_value(json_object_get(state, "version"));

    if (format >= 1 && format <= KILN_CHECKPOINT_FORMAT)
        return KILN_OK;
    return kiln_error_set(err, KILN_E_FORMAT,
                          "%s: has format %lld%s%s; this is kiln %s, which reads formats 1 to %d: "
                          "use a newer kiln, or %s alone with any program that reads safetensors",
                          path, (long long)format, version != NULL ? ", of kiln " : "",
                          version != NULL ? version : "", KILN_VERSION, (int)KILN_CHECKPOINT_FORMAT,
                          KILN_CHECKPOINT_MODEL);
}

static KilnStatus read_state(KilnCheckpoint *checkpoint, KilnError *err)
{
    char *path = NULL, *text = NULL;
    size_t size = 0;
    json_error_t why;
    KilnStatus status = file_of(checkpoint, KILN_CHECKPOINT_STATE, &path, err);

    if (status >= 0)
        status = kiln_file_read(path, MAX_STATE_BYTES, &text, &size, err);
    if (status >= 0) {
        checkpoint->state = json_loadb(text, size, 0, &why);
        if (!json_is_object(checkpoint->state))
            status = kiln_error_set(err, KILN_E_FORMAT,
                                    "%s: is truncated or damaged: %s in line %d; use another "
                                    "checkpoint",
                                    path, checkpoint->state == NULL ? why.text : "no object",
                                    why.line);
    }
    if (status >= 0)
        status = check_format(checkpoint->state, path, err);
    if (status >= 0)
        status = check_own_checksum(checkpoint->state, text, path, err);
    free(text);
    free(path);
    return status;
}

/* ---- Reading state.json ------------------------------------------------------------- */

/* Derive what format 1 lacks from the epoch and its batches: each batch was one optimizer step, and
 * an epoch's validation was part of the epoch. */
static void complete_position(const json_t *state, KilnPosition *at)
{
    const int64_t in_epoch = at->batch * json_integer_value(json_object_get(state, "batch_size"));
    const int64_t all = json_integer_value(json_object_get(state, "train_samples"));
    const bool whole = at->epoch_done || in_epoch > all;

    at->batches = at->step;
    at->samples = at->epoch * all + (whole ? all : in_epoch);
    at->epoch_begun = at->batch > 0;
    at->last_val_batch = at->epoch_done ? at->batches : -1;
    at->last_end_batch = at->last_val_batch;
}

static bool read_count(const json_t *position, const char *name, int64_t min, int64_t *ret)
{
    const json_t *value = json_object_get(position, name);

    *ret = json_integer_value(value);
    return json_is_integer(value) && *ret >= min;
}

static bool read_position(KilnCheckpoint *checkpoint)
{
    const json_t *state = checkpoint->state;
    KilnPosition *at = &checkpoint->at;
    bool good = read_count(state, "epoch", 0, &at->epoch) &&
                read_count(state, "step", 0, &at->step) &&
                read_count(state, "batch", 0, &at->batch);

    at->epoch_done = json_is_true(json_object_get(state, "epoch_done"));
    if (json_integer_value(json_object_get(state, "format")) < 2) {
        complete_position(state, at);
        return good;
    }
    at->epoch_begun = json_is_true(json_object_get(state, "epoch_begun"));
    at->should_stop = json_is_true(json_object_get(state, "should_stop"));
    /* Older ones lack it: there, a run that stopped has ended. */
    if (!read_count(state, "last_end_batch", -1, &at->last_end_batch))
        at->last_end_batch = json_integer_value(json_object_get(state, "batches"));
    return good && read_count(state, "batches", 0, &at->batches) &&
           read_count(state, "samples", 0, &at->samples) &&
           read_count(state, "in_group", 0, &at->in_group) &&
           read_count(state, "last_val_batch", -1, &at->last_val_batch);
}

KilnStatus kiln_checkpoint_open(const char *path, bool resume, KilnCheckpoint *ret, KilnError *err)
{
    KilnCheckpoint checkpoint = { .path = kiln_strdup(path) };
    KilnStatus status = checkpoint.path != NULL ? read_state(&checkpoint, err)
                                                : kiln_error_nomem(err, 1);

    if (status >= 0 && (!kiln_data_spec_read(json_object_get(checkpoint.state, "data"),
                                             &checkpoint.arena, &checkpoint.spec) ||
                        !read_position(&checkpoint)))
        status = kiln_error_set(err, KILN_E_FORMAT,
                                "%s/%s: is damaged: epoch, step, batch or data are invalid; use "
                                "another checkpoint",
                                path, KILN_CHECKPOINT_STATE);
    if (status >= 0 && resume && json_is_true(json_object_get(checkpoint.state, "weights_only")))
        status = kiln_error_set(err, KILN_E_FORMAT,
                                "%s: has only weights (it was saved with save_weights_only): it "
                                "can be tested and used to predict, but not resumed; use another "
                                "checkpoint",
                                path);
    if (status >= 0)
        status = check_files(&checkpoint, resume, err);
    if (status >= 0)
        status = find_fitted(&checkpoint, err);
    if (status < 0) {
        kiln_checkpoint_close(&checkpoint);
        return status;
    }
    *ret = checkpoint;
    return KILN_OK;
}

/* Prefix the error with the first tensor of the file whose checksum is wrong. */
static void name_tensor(const KilnCheckpoint *checkpoint, const char *name, KilnError *err)
{
    const json_t *tensors = json_object_get(checkpoint->state, "tensors");
    KilnSafetensors *file = NULL;
    char *path = NULL, hex[17];
    KilnError none = { 0 };

    if (kiln_checkpoint_tensors(checkpoint, name, &file, &path, &none) < 0) {
        free(path);
        return; /* the header is damaged */
    }
    for (size_t i = 0; i < kiln_safetensors_count(file); i++) {
        const KilnStEntry *entry = kiln_safetensors_at(file, i);
        const char *want = json_string_value(json_object_get(tensors, entry->name));
        uint64_t hash = 0;

        if (want == NULL || !kiln_safetensors_hash(file, entry, &hash))
            continue;
        snprintf(hex, sizeof(hex), "%016" PRIx64, hash);
        if (strcmp(hex, want) != 0) {
            (void)kiln_error_prefix(err, "tensor %s: ", entry->name);
            break;
        }
    }
    kiln_safetensors_close(file);
    free(path);
}

KilnStatus kiln_checkpoint_verify(const char *path, KilnError *err)
{
    KilnCheckpoint checkpoint = { .path = kiln_strdup(path) };
    KilnStatus status = checkpoint.path != NULL ? read_state(&checkpoint, err)
                                                : kiln_error_nomem(err, 1);
    json_t *files = json_object_get(checkpoint.state, "files"), *file;
    const char *name;

    json_object_foreach(files, name, file)
    {
        if (status < 0 || !is_inside(name))
            continue;
        status = check_file(&checkpoint, name, err);
        if (status == KILN_E_FORMAT && kiln_ends_with(name, ".safetensors"))
            name_tensor(&checkpoint, name, err);
    }
    if (status >= 0 && !json_is_object(files))
        status = kiln_error_set(err, KILN_E_FORMAT, "%s/%s: is damaged: it lists no files", path,
                                KILN_CHECKPOINT_STATE);
    kiln_checkpoint_close(&checkpoint);
    return status;
}

KilnStatus kiln_checkpoint_open_configured(const KilnConfig *config, KilnCheckpoint *ret,
                                           KilnError *err)
{
    KilnOptions options = { 0 };
    char *path = NULL, *runs = NULL;
    KilnStatus status = kiln_options_read(config, &options, err);

    if (status >= 0 && options.root->ckpt_path == NULL)
        status = kiln_error_set(err, KILN_E_MISSING,
                                "ckpt_path is missing: expected a checkpoint folder, a run folder, "
                                "last or best");
    if (status >= 0)
        status = kiln_run_folder_parent(config, &runs, err);
    if (status >= 0 &&
        (status = kiln_checkpoint_resolve(options.root->ckpt_path, runs, &path, err)) < 0)
        (void)kiln_error_prefix(err, "ckpt_path=");
    if (status >= 0)
        status = kiln_checkpoint_open(path, false, ret, err);
    free(runs);
    free(path);
    kiln_options_release(&options);
    return status;
}

void kiln_checkpoint_close(KilnCheckpoint *checkpoint)
{
    json_decref(checkpoint->state);
    kiln_arena_release(&checkpoint->arena);
    free(checkpoint->path);
    free(checkpoint->fitted);
    *checkpoint = (KilnCheckpoint) { 0 };
}

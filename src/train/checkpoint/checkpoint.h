/* Checkpoint folders: written whole or not at all, checked before a byte of them
 * is used. */
#ifndef KILN_TRAIN_CHECKPOINT_CHECKPOINT_H
#define KILN_TRAIN_CHECKPOINT_CHECKPOINT_H

#include <jansson.h>

#include "train/checkpoint/snapshot.h"

#define KILN_CHECKPOINT_MODEL "model.safetensors"
#define KILN_CHECKPOINT_TRAINER "trainer.safetensors"
#define KILN_CHECKPOINT_CONFIG "config.yaml"
#define KILN_CHECKPOINT_STATE "state.json"
/* In front of the names of the weights that training goes on from, in the trainer's
 * file, when the model's holds an average of them. */
#define KILN_CHECKPOINT_WEIGHTS "weights."
/* In front of the names of gradients of a group of batches that was not whole. */
#define KILN_CHECKPOINT_GRADIENTS "gradients."
/* Format 1 knew of the position only epoch, step, batch and epoch_done; format 2 had neither the
 * checksum of state.json itself, nor the folder's name and who saved it. Both are still read. */
enum { KILN_CHECKPOINT_FORMAT = 3 };
/* What stands in front of the checksum of state.json, which is over all bytes before this. */
#define KILN_CHECKPOINT_SEAL ",\n \"xxh3\": \""
/* A checkpoint that is being written, beside the others. */
#define KILN_CHECKPOINT_UNFINISHED ".saving"
/* One that is being removed: nobody ever sees a half of it under its name. */
#define KILN_CHECKPOINT_REMOVED ".removed"
/* Stands in the metadata of the weights that kiln wrote. Others (saved by
 * PyTorch, say) may take their place in a checkpoint to be tested or to
 * predict; the checksum is not about them. */
#define KILN_CHECKPOINT_MARK "kiln"

/* Size and XXH3 (64 bits) of a file's bytes. */
KILN_NODISCARD KilnStatus kiln_file_hash(const char *path, uint64_t *ret_hash, int64_t *ret_size,
                                         KilnError *err);

/* "model/resnet", the network of this run for messages, as far as its task has
 * an option `model`; else NULL. Owned by the caller. */
char *kiln_trainer_model(const KilnTrainer *trainer);

/* ---- Saving (write_checkpoint.c) ------------------------------------------------ */

/* Write the folder folder/<save->name>: under another name, KILN_CHECKPOINT_UNFINISHED, where files
 * of components may be already; flushed to disk, and then put in its place at once. On failure
 * nothing that was there is changed. `twin` (NULL: none): another folder of this snapshot, which
 * shares its files. */
KILN_NODISCARD KilnStatus kiln_checkpoint_write(const KilnSnapshot *snapshot, const KilnSave *save,
                                                const char *folder, const char *twin,
                                                KilnError *err);
/* The files of checkpoint `from` in the new folder `to`: hard links, or copies where the file
 * system has none. `state`: state.json, too. (This and the next in
 * claim_checkpoint.c.) */
KILN_NODISCARD KilnStatus kiln_checkpoint_bring(const char *from, const char *to, bool state,
                                                KilnError *err);

/* Whether folder/<name> is a checkpoint that a run saved under this very name; then *ret_saved_by
 * (may be NULL) is the list of the callbacks' paths that kept it, owned by the caller. */
bool kiln_checkpoint_is_own(const char *folder, const char *name, json_t **ret_saved_by);

/* ---- Opening (open_checkpoint.c) ------------------------------------------------- */

typedef struct KilnCheckpoint {
    char *path; /* absolute */
    json_t *state;
    KilnDataSpec spec; /* what the data looked like; points into `state` */
    const char **class_names;
    KilnPosition at;
} KilnCheckpoint;

/* Open a checkpoint folder and check that its files are whole. `resume`: the
 * optimizer's state is needed, too. Released with kiln_checkpoint_close. */
KILN_NODISCARD KilnStatus kiln_checkpoint_open(const char *path, bool resume, KilnCheckpoint *ret,
                                               KilnError *err);
/* Check all that there are checksums of, and name the file, or the tensor, that is damaged. */
KILN_NODISCARD KilnStatus kiln_checkpoint_verify(const char *path, KilnError *err);
/* The one that the config's ckpt_path names, which must name one. */
KILN_NODISCARD KilnStatus kiln_checkpoint_open_configured(const KilnConfig *config,
                                                          KilnCheckpoint *ret, KilnError *err);
void kiln_checkpoint_close(KilnCheckpoint *checkpoint);
/* The tensors in its file `name`. File and path are the caller's to close and free, also after an
 * error. */
KILN_NODISCARD KilnStatus kiln_checkpoint_tensors(const KilnCheckpoint *checkpoint,
                                                  const char *name, KilnSafetensors **ret,
                                                  char **ret_path, KilnError *err);

/* ---- Loading (load_checkpoint.c) ------------------------------------------------- */

/* Parameters and buffers alone. Evaluation and prediction print a line when that rounds. */
KILN_NODISCARD KilnStatus kiln_checkpoint_load_weights(const KilnCheckpoint *checkpoint,
                                                       KilnTrainer *trainer, KilnError *err);
/* Everything but the callbacks' state: weights, optimizer, position, metrics. */
KILN_NODISCARD KilnStatus kiln_checkpoint_load(const KilnCheckpoint *checkpoint,
                                               KilnTrainer *trainer, KilnError *err);
/* After setup: what the module keeps besides its parameters, numbers, tensors and files. */
KILN_NODISCARD KilnStatus kiln_checkpoint_load_module(const KilnCheckpoint *checkpoint,
                                                      KilnTrainer *trainer, KilnError *err);
/* After setup: the weights to go on from, where the model's file holds an average
 * of them, which the shadow then gets; and the state of the callbacks, by their place
 * in the config. */
KILN_NODISCARD KilnStatus kiln_checkpoint_load_callbacks(const KilnCheckpoint *checkpoint,
                                                         KilnTrainer *trainer, KilnError *err);

#endif

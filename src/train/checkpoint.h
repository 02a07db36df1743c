/* Checkpoint folders: written whole or not at all, checked before a byte of them
 * is used. */
#ifndef KILN_TRAIN_CHECKPOINT_H
#define KILN_TRAIN_CHECKPOINT_H

#include <jansson.h>

#include "train/trainer.h"

#define KILN_CHECKPOINT_MODEL "model.safetensors"
#define KILN_CHECKPOINT_TRAINER "trainer.safetensors"
#define KILN_CHECKPOINT_CONFIG "config.yaml"
#define KILN_CHECKPOINT_STATE "state.json"
/* In front of the names of the weights that training goes on from, in the trainer's
 * file, when the model's holds an average of them. */
#define KILN_CHECKPOINT_WEIGHTS "weights."
/* In front of the names of gradients of a group of batches that was not whole. */
#define KILN_CHECKPOINT_GRADIENTS "gradients."
/* Format 1 knew of the position only epoch, step, batch and epoch_done; it is still read. */
enum { KILN_CHECKPOINT_FORMAT = 2 };
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

/* ---- Saving (checkpoint_save.c) ------------------------------------------------- */

/* Save `trainer` as the folder `path`: written beside it under another name,
 * flushed to disk, and then put in its place at once. On failure nothing that
 * was there is changed. */
KILN_NODISCARD KilnStatus kiln_checkpoint_save(KilnTrainer *trainer, const char *path,
                                               KilnError *err);

/* ---- Loading (checkpoint_load.c) ------------------------------------------------- */

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
/* The one that the config's ckpt_path names, which must name one. */
KILN_NODISCARD KilnStatus kiln_checkpoint_open_configured(const KilnConfig *config,
                                                          KilnCheckpoint *ret, KilnError *err);
void kiln_checkpoint_close(KilnCheckpoint *checkpoint);
/* Parameters and buffers alone. Evaluation and prediction print a line when that rounds. */
KILN_NODISCARD KilnStatus kiln_checkpoint_load_weights(const KilnCheckpoint *checkpoint,
                                                       KilnTrainer *trainer, KilnError *err);
/* Everything but the callbacks' state: weights, optimizer, position, metrics. */
KILN_NODISCARD KilnStatus kiln_checkpoint_load(const KilnCheckpoint *checkpoint,
                                               KilnTrainer *trainer, KilnError *err);
/* After setup: the weights to go on from, where the model's file holds an average
 * of them, which the shadow then gets; and the state of the callbacks, by their place
 * in the config. */
KILN_NODISCARD KilnStatus kiln_checkpoint_load_callbacks(const KilnCheckpoint *checkpoint,
                                                         KilnTrainer *trainer, KilnError *err);

#endif

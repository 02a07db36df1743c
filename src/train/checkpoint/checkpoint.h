/* Checkpoint folders: how they are written (whole or not at all), opened, verified and loaded.
 * docs/checkpoints.md describes the format; save_requests.h the path of a save. */
#ifndef KILN_TRAIN_CHECKPOINT_CHECKPOINT_H
#define KILN_TRAIN_CHECKPOINT_CHECKPOINT_H

#include <jansson.h>

#include "base/arena.h"
#include "train/checkpoint/snapshot.h"

#define KILN_CHECKPOINT_MODEL "model.safetensors"
#define KILN_CHECKPOINT_TRAINER "trainer.safetensors"
#define KILN_CHECKPOINT_CONFIG "config.yaml"
#define KILN_CHECKPOINT_STATE "state.json"
/* The folder with what the datamodule fitted to the training data (save_preprocessing); it has
 * files only. state.json lists them as "preprocessing/NAME". */
#define KILN_CHECKPOINT_FITTED "preprocessing"
/* Tensor name prefix in the trainer's file: the training weights, when the model's file holds their
 * average (EMA, SWA). */
#define KILN_CHECKPOINT_WEIGHTS "weights."
/* The same for gradients of an unfinished group of accumulated batches. */
#define KILN_CHECKPOINT_GRADIENTS "gradients."
/* And for the lists of their rows, where an optimizer updates those alone. */
#define KILN_CHECKPOINT_SPARSE_ROWS "sparse_rows."
/* Format 1 had of the position only epoch, step, batch and epoch_done. Format 2 lacked the checksum
 * of state.json, the folder's name and saved_by. Both can still be read. */
enum { KILN_CHECKPOINT_FORMAT = 3 };
/* The text before the checksum of state.json, which covers all bytes before this text. */
#define KILN_CHECKPOINT_CHECKSUM ",\n \"xxh3\": \""
/* The folder in which a checkpoint is written before it is renamed. */
#define KILN_CHECKPOINT_UNFINISHED ".saving"
/* The name that a checkpoint gets before it is deleted, so that no half of it is ever visible. */
#define KILN_CHECKPOINT_REMOVED ".removed"
/* Metadata key of weights that kiln wrote. Weights of other programs (PyTorch) may replace them in
 * a checkpoint for test and prediction; the checksum then does not apply. */
#define KILN_CHECKPOINT_MARK "kiln"

/* Size and XXH3 (64 bits) of a file's bytes. */
KILN_NODISCARD KilnStatus kiln_file_hash(const char *path, uint64_t *ret_hash, int64_t *ret_size,
                                         KilnError *err);

/* "model/resnet": the run's network, for messages; NULL when the task has no option `model`. Owned
 * by the caller. */
char *kiln_trainer_model(const KilnTrainer *trainer);

/* ---- Finding runs (find_checkpoint.c) --------------------------------------------- */

#define KILN_RUN_CONFIG ".kiln/config.yaml" /* a run writes it last, before it trains */

/* Called with a run folder: one with checkpoints/ or KILN_RUN_CONFIG. */
typedef void KilnRunVisit(void *ctx, const char *run);
/* Visit `dir`, if it is a run folder, or those below it, as deep as runs are. */
void kiln_runs_visit(const char *dir, KilnRunVisit *visit, void *ctx);
/* The run folder in or below `dir` whose file or folder `below` ("checkpoints/last") is the newest;
 * owned by the caller, NULL: none has it. *ret_runs (may be NULL) is the number of run folders. */
char *kiln_run_newest(const char *dir, const char *below, size_t *ret_runs);

/* ---- Writing (write_checkpoint.c) ------------------------------------------------ */

/* Write a snapshot as folder/<target->name>: fill folder/.saving, which may already hold files of
 * components, flush it to disk, and publish it by rename. A failure leaves an existing checkpoint
 * of that name as it was. `written` (NULL: none): the name of a checkpoint already written from
 * this snapshot, whose files are hard-linked. */
KILN_NODISCARD KilnStatus kiln_checkpoint_write(const KilnSnapshot *snapshot,
                                                const KilnCheckpointTarget *target,
                                                const char *folder, const char *written,
                                                KilnError *err);

/* The files of a checkpoint folder in byte order, as state.json names them. Freed with
 * kiln_names_free. */
KILN_NODISCARD KilnStatus kiln_checkpoint_files(const char *folder, char ***ret, size_t *ret_n,
                                                KilnError *err);

/* ---- Claiming (claim_checkpoint.c) ----------------------------------------------- */

/* Create folder `to` with the files of checkpoint `from`: as hard links, or copies where the file
 * system has none. `state`: with state.json. */
KILN_NODISCARD KilnStatus kiln_checkpoint_clone(const char *from, const char *to, bool state,
                                                KilnError *err);
/* Whether folder/<name> is a checkpoint that a run saved under this name, not one that a user
 * copied there. Then *ret_saved_by (may be NULL) lists its owners' config paths; owned by the
 * caller. */
bool kiln_checkpoint_is_own(const char *folder, const char *name, json_t **ret_saved_by);

/* ---- Averaging (average_checkpoints.c) ------------------------------------------- */

/* Write the checkpoint folder/<name>, weights only: each weight and statistic is the mean of those
 * in `n` checkpoints, summed in f64 in their order; whole numbers, config, preprocessing and
 * position are those of the last. KILN_E_SHAPE: they are of different models; names the first
 * tensor that differs. */
KILN_NODISCARD KilnStatus kiln_checkpoint_average(const char *const *paths, size_t n,
                                                  const char *folder, const char *name,
                                                  KilnError *err);

/* ---- The data spec in state.json (data_spec_json.c) ------------------------------ */

/* NULL when memory is out. */
json_t *kiln_data_spec_json(const KilnDataSpec *spec);
/* The spec of that JSON, in the arena; its texts are those of the JSON. False if it is invalid or
 * memory is out. */
bool kiln_data_spec_read(const json_t *saved, KilnArena *arena, KilnDataSpec *ret);

/* ---- Opening (open_checkpoint.c) ------------------------------------------------- */

typedef struct KilnCheckpoint {
    char *path; /* absolute */
    json_t *state;
    KilnDataSpec spec; /* of the data it was trained on; points into `state` and `arena` */
    KilnArena arena;
    KilnPosition at;
    char *fitted; /* the folder KILN_CHECKPOINT_FITTED in `path`; NULL: it has none */
} KilnCheckpoint;

/* Open a checkpoint folder and verify the checksums of the files that will be read. `resume`: the
 * optimizer's state too. Release with kiln_checkpoint_close. */
KILN_NODISCARD KilnStatus kiln_checkpoint_open(const char *path, bool resume, KilnCheckpoint *ret,
                                               KilnError *err);
/* Verify all checksums; the error names the damaged file or tensor. */
KILN_NODISCARD KilnStatus kiln_checkpoint_verify(const char *path, KilnError *err);
/* Open the checkpoint that ckpt_path names; KILN_E_MISSING when it is not set. */
KILN_NODISCARD KilnStatus kiln_checkpoint_open_configured(const KilnConfig *config,
                                                          KilnCheckpoint *ret, KilnError *err);
void kiln_checkpoint_close(KilnCheckpoint *checkpoint);
/* Open its safetensors file `name`. The caller closes *ret and frees *ret_path, also after an
 * error. */
KILN_NODISCARD KilnStatus kiln_checkpoint_tensors(const KilnCheckpoint *checkpoint,
                                                  const char *name, KilnSafetensors **ret,
                                                  char **ret_path, KilnError *err);

/* ---- Loading (load_checkpoint.c) ------------------------------------------------- */

/* Load parameters and buffers only. Evaluation and prediction warn when values are rounded. */
KILN_NODISCARD KilnStatus kiln_checkpoint_load_weights(const KilnCheckpoint *checkpoint,
                                                       KilnTrainer *trainer, KilnError *err);
/* Load everything but the callbacks' state: weights, optimizers, position, metrics. */
KILN_NODISCARD KilnStatus kiln_checkpoint_load(const KilnCheckpoint *checkpoint,
                                               KilnTrainer *trainer, KilnError *err);
/* After setup: load the module's own state: numbers, tensors and files besides its parameters. */
KILN_NODISCARD KilnStatus kiln_checkpoint_load_module(const KilnCheckpoint *checkpoint,
                                                      KilnTrainer *trainer, KilnError *err);
/* After setup: load the state of callbacks and module by config path. When the model's file holds
 * averaged weights, load those too, and the training weights. */
KILN_NODISCARD KilnStatus kiln_checkpoint_load_callbacks(const KilnCheckpoint *checkpoint,
                                                         KilnTrainer *trainer, KilnError *err);

#endif

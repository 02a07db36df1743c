/* The option lora: adapters of linear layers that train in place of the network, and their files,
 * which have peft's names: adapter_model.safetensors and adapter_config.json. nn/lora.h records
 * them. */
#ifndef KILN_TRAIN_LORA_ADAPTERS_H
#define KILN_TRAIN_LORA_ADAPTERS_H

#include "base/arena.h"
#include "nn/lora.h"
#include "tensor/safetensors.h"
#include "train/run/run_options.h"

#define KILN_ADAPTER_MODEL "adapter_model.safetensors"
#define KILN_ADAPTER_CONFIG "adapter_config.json"

/* Rows of a parameter that are a tensor of adapter_model.safetensors. */
typedef struct KilnAdapterTensor {
    const char *name;
    size_t param; /* its number in the store */
    int64_t row, rows;
} KilnAdapterTensor;

/* The adapters of a run. */
typedef struct KilnAdapters {
    KilnAdapterTensor *tensors; /* of the file */
    size_t n_tensors;
    char *config;  /* adapter_config.json */
    char *source;  /* the folder that the option weights names; NULL: none */
    bool is_saved; /* the checkpoint that is loaded has them */
    size_t layers;
    int64_t r;
    KilnArena arena;
} KilnAdapters;

/* ---- Setting up (set_up.c) ------------------------------------------------------------------- */

/* After the module has declared its parameters: declare adapters as the options say and fix the
 * other parameters. *ret NULL: the options ask for none. `checkpoint` is the one that will be
 * loaded; NULL: none. Owned by the caller. */
KILN_NODISCARD KilnStatus kiln_adapters_set_up(const KilnLoraOptions *options,
                                               const char *checkpoint, KilnParams *params,
                                               KilnAdapters **ret, KilnError *err);
/* After steps were recorded: refuse adapters of weights that a model uses in its own way. */
KILN_NODISCARD KilnStatus kiln_adapters_check_used(const KilnParams *params, KilnError *err);
/* Accepts NULL. */
void kiln_adapters_free(KilnAdapters *adapters);

/* ---- Files (adapter_files.c) ----------------------------------------------------------------- */

/* What adapter_config.json says. */
typedef struct KilnAdapterConfig {
    int64_t r;
    double alpha, dropout;
} KilnAdapterConfig;

KILN_NODISCARD KilnStatus kiln_adapter_config_read(const char *folder, KilnAdapterConfig *ret,
                                                   KilnError *err);
/* List the tensors of the file, and write adapters->config. Layers have the names of another
 * program where they have one (kiln_param_foreign), else kiln's. */
KILN_NODISCARD KilnStatus kiln_adapters_describe(KilnAdapters *adapters, const KilnParams *params,
                                                 KilnAdapterConfig config, KilnError *err);
/* Write both files to a folder; `views` are the tensors of all parameters in order. */
KILN_NODISCARD KilnStatus kiln_adapters_write(const KilnAdapters *adapters, const KilnStView *views,
                                              const char *folder, KilnError *err);

/* ---- Loading (load_adapters.c) --------------------------------------------------------------- */

/* Rows of a linear layer's weight whose adapter a file has under its own name. */
typedef struct KilnAdapterPart {
    const KilnStEntry *a, *b;
    int64_t row, rows;
} KilnAdapterPart;

enum { KILN_ADAPTER_PARTS = 8 };

/* Find the parts of a weight's adapter; 0: the file has none. */
size_t kiln_adapter_find(const KilnSafetensors *file, const KilnParam *weight,
                         KilnAdapterPart ret[KILN_ADAPTER_PARTS]);
/* The file's tensor of a whole parameter; NULL: none. */
const KilnStEntry *kiln_adapter_find_whole(const KilnSafetensors *file, const KilnParam *param);
/* Load the values in the folder adapters->source. KILN_E_FORMAT when they don't fit. */
KILN_NODISCARD KilnStatus kiln_adapters_load(const KilnAdapters *adapters, KilnParams *params,
                                             KilnError *err);

/* ---- Merging (merge_adapters.c)
 * ----------------------------------------------------------------------- */

/* Write the model of a checkpoint with adapters to the file `output`, with each weight W replaced
 * by W + scale * B A and without the adapters. *ret_layers: how many there were. */
KILN_NODISCARD KilnStatus kiln_adapters_merge(const char *checkpoint, const char *output,
                                              size_t *ret_layers, KilnError *err);

#endif

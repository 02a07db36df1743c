/* The safetensors file format: named tensors behind a JSON header. Reading
 * checks everything before a byte of data is used, so a truncated or hostile
 * file is an error that names the file and what is wrong, never a crash. */
#ifndef KILN_TENSOR_SAFETENSORS_H
#define KILN_TENSOR_SAFETENSORS_H

#include "kiln/files/safetensors.h"

/* The format's name of a type: "F32", "BF16", ... */
const char *kiln_safetensors_name(KilnDType dtype);

/* ---- Reading -------------------------------------------------------------- */

/* An open file whose header has been checked; data is read on demand. */
typedef struct KilnSafetensors KilnSafetensors;

/* One tensor of an open file. */
typedef struct KilnStEntry {
    const char *name;  /* borrowed from the file */
    const char *dtype; /* the file's name of the type: "F32", "BF16", ... */
    KilnShape shape;
    uint64_t begin, end; /* bytes within the data */
} KilnStEntry;

/* Open and check `path`. KILN_E_IO when it can't be read, KILN_E_FORMAT when it
 * is damaged, truncated or another kind of file. Owned by the caller. */
KILN_NODISCARD KilnStatus kiln_safetensors_open(const char *path, KilnSafetensors **ret,
                                                KilnError *err);
/* Accepts NULL. */
void kiln_safetensors_close(KilnSafetensors *file);
size_t kiln_safetensors_count(const KilnSafetensors *file);
/* In the order of the data. */
const KilnStEntry *kiln_safetensors_at(const KilnSafetensors *file, size_t i);
/* NULL when there is none of that name. */
const KilnStEntry *kiln_safetensors_find(const KilnSafetensors *file, const char *name);
/* A text of `__metadata__`; NULL when absent. */
const char *kiln_safetensors_metadata(const KilnSafetensors *file, const char *key);
/* The element type that an entry is read as without loss of kind: F16, BF16,
 * F32 and F64 as KILN_F32, I64, I32, U8 as themselves; false when kiln has no
 * type for it. */
bool kiln_safetensors_dtype(const KilnStEntry *entry, KilnDType *ret);
/* Read all elements as `dtype` into `data`, which has room for the entry's
 * shape. F16, BF16, F32 and F64 are converted to f32 or bf16 (rounding to nearest
 * even); F64 can also be read as KILN_F64. Anything else needs the file's own type,
 * else KILN_E_TYPE. */
KILN_NODISCARD KilnStatus kiln_safetensors_read(const KilnSafetensors *file,
                                                const KilnStEntry *entry, KilnDType dtype,
                                                void *data, KilnError *err);

/* XXH3 (64 bits) of an entry's bytes as they lie in the file; false when they can't be read. */
bool kiln_safetensors_hash(const KilnSafetensors *file, const KilnStEntry *entry,
                           uint64_t *ret_hash);

#endif

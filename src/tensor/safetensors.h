/* The safetensors file format: a JSON header, then the named tensors' data. Reading checks the
 * whole header before any data, so a truncated or hostile file is an error that names the file and
 * the problem, never a crash. */
#ifndef KILN_TENSOR_SAFETENSORS_H
#define KILN_TENSOR_SAFETENSORS_H

#include "kiln/files/safetensors.h"

/* The format's name of a type: "F32", "BF16", ... */
const char *kiln_safetensors_name(KilnDType dtype);

/* ---- Reading -------------------------------------------------------------- */

/* An open file with a checked header; data is read on demand. */
typedef struct KilnSafetensors KilnSafetensors;

/* One tensor of an open file. */
typedef struct KilnStEntry {
    const char *name;  /* borrowed from the file */
    const char *dtype; /* the format's name of the type: "F32", "BF16", ... */
    KilnShape shape;
    uint64_t begin, end; /* byte offsets within the data */
} KilnStEntry;

/* Opens and checks `path`. KILN_E_IO if it cannot be read, KILN_E_FORMAT if it is damaged,
 * truncated or another kind of file. Owned by the caller. */
KILN_NODISCARD KilnStatus kiln_safetensors_open(const char *path, KilnSafetensors **ret,
                                                KilnError *err);
/* Accepts NULL. */
void kiln_safetensors_close(KilnSafetensors *file);
size_t kiln_safetensors_count(const KilnSafetensors *file);
/* In the order of the data. */
const KilnStEntry *kiln_safetensors_at(const KilnSafetensors *file, size_t i);
/* NULL if there is no such name. */
const KilnStEntry *kiln_safetensors_find(const KilnSafetensors *file, const char *name);
/* A value of `__metadata__`; NULL if absent. */
const char *kiln_safetensors_metadata(const KilnSafetensors *file, const char *key);
/* The element type to read an entry as: KILN_F32 for F16, BF16, F32 and F64; I64, I32, U8
 * unchanged; false if kiln has no matching type. */
bool kiln_safetensors_dtype(const KilnStEntry *entry, KilnDType *ret);
/* Reads all elements as `dtype` into `data`, which has room for the entry's shape. F16, BF16, F32
 * and F64 convert to f32, bf16 (rounding to nearest even) or f64. Anything else needs the file's
 * own type, else KILN_E_TYPE. */
KILN_NODISCARD KilnStatus kiln_safetensors_read(const KilnSafetensors *file,
                                                const KilnStEntry *entry, KilnDType dtype,
                                                void *data, KilnError *err);

/* XXH3 (64 bits) of an entry's stored bytes; false if they cannot be read. */
bool kiln_safetensors_hash(const KilnSafetensors *file, const KilnStEntry *entry,
                           uint64_t *ret_hash);

#endif

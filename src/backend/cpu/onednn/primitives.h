/* Kernels made of oneDNN primitives: how a call prepares, runs and releases them. */
#ifndef KILN_BACKEND_CPU_ONEDNN_PRIMITIVES_H
#define KILN_BACKEND_CPU_ONEDNN_PRIMITIVES_H

#include "backend/cpu/onednn/layouts.h"

/* The buffer of a call that a primitive's argument uses. */
typedef enum KilnBufferKind {
    KILN_BUFFER_INPUT,
    KILN_BUFFER_OUTPUT,
    KILN_BUFFER_WORKSPACE
} KilnBufferKind;

typedef struct KilnPrimitiveArg {
    int id; /* DNNL_ARG_... */
    KilnMd md;
    KilnBufferKind buffer;
    size_t at; /* number of the input or output; offset in the workspace */
} KilnPrimitiveArg;

/* Adds the primitive of `pd`, with its arguments, to the call's list; scratch memory is added
 * automatically. Primitives run in order. The caller keeps pd. */
KILN_NODISCARD KilnStatus kiln_primitives_add(KilnCall *call, dnnl_primitive_desc_t pd,
                                              const KilnPrimitiveArg *args, int n, KilnError *err);
/* Reserves part of the call's workspace; returns its offset. */
size_t kiln_primitives_reserve(KilnCall *call, size_t bytes);
/* The kernel's run and release. */
void kiln_primitives_run(KilnCall *call);
void kiln_primitives_release(KilnCall *call);

#endif

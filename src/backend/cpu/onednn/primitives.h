/* Kernels that are oneDNN primitives: what a call prepares, runs and releases. */
#ifndef KILN_BACKEND_CPU_ONEDNN_PRIMITIVES_H
#define KILN_BACKEND_CPU_ONEDNN_PRIMITIVES_H

#include "backend/cpu/onednn/layouts.h"

/* Which bytes of a call an argument of a primitive is. */
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

/* Add the primitive of `pd` to the call's steps, with its arguments; scratch
 * memory is added by itself. Steps run in order. pd stays the caller's. */
KILN_NODISCARD KilnStatus kiln_primitives_add(KilnCall *call, dnnl_primitive_desc_t pd,
                                              const KilnPrimitiveArg *args, int n, KilnError *err);
/* Room in the call's workspace; returns its offset. */
size_t kiln_primitives_reserve(KilnCall *call, size_t bytes);
/* The kernel's run and release. */
void kiln_primitives_run(KilnCall *call);
void kiln_primitives_release(KilnCall *call);

#endif

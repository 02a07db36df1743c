/* Kernels that are oneDNN primitives: what a call prepares, runs and releases. */
#ifndef KILN_BACKEND_CPU_ONEDNN_PRIMITIVES_H
#define KILN_BACKEND_CPU_ONEDNN_PRIMITIVES_H

#include "backend/cpu/onednn/layouts.h"

/* Which bytes of a call an argument of a primitive is. */
typedef enum KilnPrimitiveArgument {
    KILN_AT_INPUT,
    KILN_AT_OUTPUT,
    KILN_AT_WORKSPACE
} KilnPrimitiveArgument;

typedef struct KilnStepArg {
    int id; /* DNNL_ARG_... */
    KilnMd md;
    KilnPrimitiveArgument place;
    size_t at; /* number of the input or output; offset in the workspace */
} KilnStepArg;

/* Add the primitive of `pd` to the call's steps, with its arguments; scratch
 * memory is added by itself. Steps run in order. pd stays the caller's. */
KILN_NODISCARD KilnStatus kiln_steps_add(KilnCall *call, dnnl_primitive_desc_t pd,
                                         const KilnStepArg *args, int n, KilnError *err);
/* Room in the call's workspace; returns its offset. */
size_t kiln_steps_room(KilnCall *call, size_t bytes);
/* The kernel's run and release. */
void kiln_steps_run(KilnCall *call);
void kiln_steps_release(KilnCall *call);

#endif

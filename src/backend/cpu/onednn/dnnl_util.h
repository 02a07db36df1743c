/* oneDNN behind a small interface: memory descriptors, and primitive descriptors
 * of what the kernels need. Differences between oneDNN 2 and 3 end here. */
#ifndef KILN_BACKEND_CPU_ONEDNN_DNNL_UTIL_H
#define KILN_BACKEND_CPU_ONEDNN_DNNL_UTIL_H

#include <dnnl.h>

#include "backend/cpu/level.h"
#include "kiln/tensor.h"

/* An engine with its interned descriptors; layout i is entry i - 1. */
typedef struct KilnDnnl {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_attr_t attr; /* scratch comes from the caller */
    struct KilnMdEntry *entries;
    size_t count, capacity;
    int threads;
} KilnDnnl;

/* Is there memory for a primitive? oneDNN's generator of code crashes when there is none, so
 * whoever makes one asks first. */
bool kiln_dnnl_has_room(void);

/* Let oneDNN use no more of the processor than `level` has, in the whole process and for good:
 * an error when it has been used with more before. */
KILN_NODISCARD KilnStatus kiln_dnnl_cap(KilnCpuLevel level, KilnError *err);

/* ---- Memory descriptors ------------------------------------------------------- */

/* A descriptor to look at, and the storage of one. */
#if DNNL_VERSION_MAJOR >= 3
typedef const_dnnl_memory_desc_t KilnMd;
#else
typedef const dnnl_memory_desc_t *KilnMd;
#endif
typedef dnnl_memory_desc_t KilnMdStore;

/* What a descriptor says apart from the order in memory. */
typedef struct KilnMdFacts {
    int rank;
    dnnl_dims_t dims;
    dnnl_data_type_t type;
} KilnMdFacts;

dnnl_status_t kiln_md_init(KilnMdStore *ret, const KilnMdFacts *facts, dnnl_format_tag_t tag);
dnnl_status_t kiln_md_copy(KilnMdStore *ret, KilnMd md);
void kiln_md_release(KilnMdStore *md);
KilnMd kiln_md_get(const KilnMdStore *md);
KilnMdFacts kiln_md_facts(KilnMd md);

/* ---- Primitive descriptors: owned by the caller, dnnl_primitive_desc_destroy -- */

typedef struct KilnConvMd {
    KilnMd src, weights, bias, dst; /* bias may be NULL; gradients lie as what they belong to */
    const int64_t *stride, *padding, *dilation; /* of height, of width; borrowed */
    bool winograd;                              /* let oneDNN consider it */
    KilnMd
        forward_weights; /* for a weight's gradient: the weight's type, when not the gradient's */
} KilnConvMd;

dnnl_status_t kiln_pd_conv(KilnDnnl *dnnl, const KilnConvMd *conv, dnnl_primitive_desc_t *ret);
dnnl_status_t kiln_pd_conv_data(KilnDnnl *dnnl, const KilnConvMd *conv, dnnl_primitive_desc_t *ret);
dnnl_status_t kiln_pd_conv_weights(KilnDnnl *dnnl, const KilnConvMd *conv,
                                   dnnl_primitive_desc_t *ret);

dnnl_status_t kiln_pd_reorder(KilnDnnl *dnnl, KilnMd from, KilnMd to, dnnl_primitive_desc_t *ret);

/* Fill err for a oneDNN status; `what` names what it was asked to make. */
KilnStatus kiln_dnnl_error(KilnError *err, dnnl_status_t status, const char *what);

#endif

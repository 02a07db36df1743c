/* A small interface to oneDNN: memory descriptors, and primitive descriptors for the kernels. Hides
 * the differences between oneDNN 2 and 3. */
#ifndef KILN_BACKEND_CPU_ONEDNN_DNNL_UTIL_H
#define KILN_BACKEND_CPU_ONEDNN_DNNL_UTIL_H

#include <dnnl.h>

#include "backend/cpu/level.h"
#include "graph/map.h"
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

/* Whether there is memory for a primitive. oneDNN's code generator crashes without, so check before
 * making one. */
bool kiln_dnnl_has_room(void);

/* Limits oneDNN to the features of `level`, permanently and for the whole process: an error if it
 * has already used more. */
KILN_NODISCARD KilnStatus kiln_dnnl_cap(KilnCpuLevel level, KilnError *err);

/* ---- Memory descriptors ------------------------------------------------------- */

/* A borrowed descriptor, and storage for one. */
#if DNNL_VERSION_MAJOR >= 3
typedef const_dnnl_memory_desc_t KilnMd;
#else
typedef const dnnl_memory_desc_t *KilnMd;
#endif
typedef dnnl_memory_desc_t KilnMdStore;

/* A descriptor without its order in memory. */
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
    KilnMd src, weights, bias, dst;             /* bias may be NULL; gradients as their tensors */
    const int64_t *stride, *padding, *dilation; /* of height, of width; borrowed */
    bool sum;                                   /* forward: add to what dst holds */
    const KilnMapStep *activation;              /* forward: then take this; or NULL */
    KilnMd forward_weights; /* for a weight's gradient: the weight's type, if different */
} KilnConvMd;

dnnl_status_t kiln_pd_conv(KilnDnnl *dnnl, const KilnConvMd *conv, dnnl_primitive_desc_t *ret);
dnnl_status_t kiln_pd_conv_data(KilnDnnl *dnnl, const KilnConvMd *conv, dnnl_primitive_desc_t *ret);
dnnl_status_t kiln_pd_conv_weights(KilnDnnl *dnnl, const KilnConvMd *conv,
                                   dnnl_primitive_desc_t *ret);

/* Divides the work between the engine's threads. */
dnnl_status_t kiln_pd_reorder(KilnDnnl *dnnl, KilnMd from, KilnMd to, dnnl_primitive_desc_t *ret);

/* Sets err from a oneDNN status; `what` names the object that oneDNN failed to make. */
KilnStatus kiln_dnnl_error(KilnError *err, dnnl_status_t status, const char *what);

#endif

/* Layouts of the CPU backend: numbers for oneDNN memory descriptors. */
#ifndef KILN_BACKEND_CPU_ONEDNN_LAYOUTS_H
#define KILN_BACKEND_CPU_ONEDNN_LAYOUTS_H

#include "backend/cpu/onednn/dnnl_util.h"
#include "graph/backend.h"

/* How a shape maps to oneDNN's dimensions, and which order is plain. */
typedef enum KilnMdRole {
    KILN_MD_IMAGE,  /* [N, H, W, C], or [..., C] as rows of one pixel */
    KILN_MD_WEIGHT, /* [O, I, kh, kw], or [groups, O/groups, I/groups, kh, kw] */
    KILN_MD_VECTOR  /* [C] */
} KilnMdRole;

typedef enum KilnMdFormat {
    KILN_MD_ANY,   /* oneDNN chooses */
    KILN_MD_PLAIN, /* row-major in the tensor's shape */
    KILN_MD_C16,   /* images: channels in blocks of 16, as nChw16c */
    KILN_MD_C8
} KilnMdFormat;

KILN_NODISCARD KilnStatus kiln_dnnl_init(KilnDnnl *dnnl, int threads, KilnError *err);
void kiln_dnnl_release(KilnDnnl *dnnl);
/* A descriptor with the engine's lifetime. */
KILN_NODISCARD KilnStatus kiln_md_make(KilnDnnl *dnnl, KilnMdRole role, KilnDType dtype,
                                       const KilnShape *shape, KilnMdFormat format, KilnMd *ret,
                                       KilnError *err);
/* The same in the layout of a call's argument. */
KILN_NODISCARD KilnStatus kiln_md_of(KilnDnnl *dnnl, KilnMdRole role, const KilnArg *arg,
                                     KilnMd *ret, KilnError *err);
/* The descriptor of the same elements in plain order. */
KILN_NODISCARD KilnStatus kiln_md_plain(KilnDnnl *dnnl, KilnMdRole role, KilnMd md, KilnMd *ret,
                                        KilnError *err);
/* The same with another type. */
KILN_NODISCARD KilnStatus kiln_md_plain_as(KilnDnnl *dnnl, KilnMdRole role, KilnDType dtype,
                                           KilnMd md, KilnMd *ret, KilnError *err);
/* The number of the layout that a descriptor describes. */
KILN_NODISCARD KilnStatus kiln_layout_of(KilnDnnl *dnnl, KilnMdRole role, KilnMd md,
                                         KilnLayout *ret, KilnError *err);
/* The descriptor and role of a layout that is not plain. */
KilnMd kiln_layout_md(const KilnDnnl *dnnl, KilnLayout layout, KilnMdRole *ret_role);
/* The fixed format of an image of this shape in this layout; KILN_MD_ANY: none. */
KilnMdFormat kiln_layout_format(KilnDnnl *dnnl, KilnLayout layout, const KilnShape *shape);
/* Channels per block if images of `shape` are stored as [N, C/block, H, W, block], else 0. */
int64_t kiln_layout_block(KilnDnnl *dnnl, KilnLayout layout, const KilnShape *shape);
/* The same of a call's image if the block divides its channels, so that nothing is padded; else 0.
 */
int64_t kiln_layout_whole_block(KilnDnnl *dnnl, const KilnArg *image);
/* Gives a call's image blocks of that many channels, 16 or 8; 0: plain order. */
KILN_NODISCARD KilnStatus kiln_layout_set_block(KilnDnnl *dnnl, KilnArg *image, int64_t block,
                                                KilnError *err);
/* The layout of an image in a format. */
KILN_NODISCARD KilnStatus kiln_layout_image(KilnDnnl *dnnl, KilnDType dtype, const KilnShape *shape,
                                            KilnMdFormat format, KilnLayout *ret, KilnError *err);
/* The layout of a matrix [n, k] of floats in panels of 8, 16 or 32 rows, [n/rows][k][rows], the
 * last one padded with zeros. */
KILN_NODISCARD KilnStatus kiln_layout_panels(KilnDnnl *dnnl, const KilnShape *shape, int64_t rows,
                                             KilnLayout *ret, KilnError *err);
size_t kiln_md_bytes(KilnMd md);
bool kiln_md_equal(KilnMd a, KilnMd b);
/* Sets the layout of a call's output, and its size in bytes. */
void kiln_output_layout(const KilnDnnl *dnnl, KilnArg *output, KilnLayout layout);

#endif

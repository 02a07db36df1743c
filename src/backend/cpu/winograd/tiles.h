/* What Winograd's kernels share: when they fit, how images lie in memory, and their tiles. */
#ifndef KILN_BACKEND_CPU_WINOGRAD_TILES_H
#define KILN_BACKEND_CPU_WINOGRAD_TILES_H

#include "backend/cpu/cpu.h"
#include "backend/cpu/isa/gemm.h"
#include "backend/cpu/isa/images/winograd.h"
#include "graph/ops/images/conv.h"

/* The tiles of 4 x 4 pixels that cover all images. */
typedef struct KilnWinogradTiles {
    int64_t down, across, count; /* of an image; of all images */
} KilnWinogradTiles;

/* Whether a convolution between two images with this weight, or one of its gradients, is of the
 * kind for these kernels, and large enough to be faster. `pixels` is the image that tiles cover. */
bool kiln_winograd_fits(const KilnCall *call, const KilnArg *weight, const KilnArg *pixels);
KilnWinogradTiles kiln_winograd_tiles(const KilnArg *pixels);
/* The first pixel of tile number `i`. */
KilnWinogradPlace kiln_winograd_place(const KilnWinogradTiles *tiles, int64_t i);

/* Gives an image an order that the loops read: its own if they do, else the backend's. */
KILN_NODISCARD KilnStatus kiln_winograd_layout(const KilnCall *call, KilnArg *image,
                                               KilnError *err);
/* The image as its layout has it. */
KilnWinogradImages kiln_winograd_images(const KilnCall *call, const KilnArg *image);

#endif

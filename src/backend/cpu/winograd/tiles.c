#include "backend/cpu/winograd/tiles.h"

enum {
    MIN_CHANNELS = 16, /* fewer do not pay for the transforms of pixels */
    MIN_TILES = 8,     /* fewer do not pay for that of the weight */
    MAX_CHANNELS = 4096
};

bool kiln_winograd_fits(const KilnCall *call, const KilnArg *weight, const KilnArg *pixels)
{
    const KilnConvAttrs *attrs = call->attrs;
    const int64_t *dim = weight->shape.dim;
    const int width = kiln_cpu(call)->loops->winograd->width;

    if (call->backend->convolution != KILN_CONVOLUTION_AUTO || attrs->groups != 1 || dim[2] != 3 ||
        dim[3] != 3)
        return false;
    for (int i = 0; i < 2; i++)
        if (attrs->stride[i] != 1 || attrs->dilation[i] != 1 || attrs->padding[i] > 2 ||
            dim[i] % width != 0 || dim[i] < MIN_CHANNELS || dim[i] > MAX_CHANNELS)
            return false;
    return call->inputs[0].dtype == KILN_F32 && call->inputs[1].dtype == KILN_F32 &&
           call->outputs[0].dtype == KILN_F32 && kiln_winograd_tiles(pixels).count >= MIN_TILES;
}

KilnWinogradTiles kiln_winograd_tiles(const KilnArg *pixels)
{
    const int64_t *dim = pixels->shape.dim;
    KilnWinogradTiles tiles = { .down = (dim[1] + KILN_F4_TILE - 1) / KILN_F4_TILE,
                                .across = (dim[2] + KILN_F4_TILE - 1) / KILN_F4_TILE };

    tiles.count = dim[0] * tiles.down * tiles.across;
    return tiles;
}

KilnWinogradPlace kiln_winograd_place(const KilnWinogradTiles *tiles, int64_t i)
{
    const int64_t within = i % (tiles->down * tiles->across);

    return (KilnWinogradPlace) { .image = i / (tiles->down * tiles->across),
                                 .y = within / tiles->across * KILN_F4_TILE,
                                 .x = within % tiles->across * KILN_F4_TILE };
}

static bool is_read(const KilnCall *call, const KilnArg *image)
{
    const KilnCpuBackend *cpu = kiln_cpu(call);
    const int64_t block = kiln_layout_whole_block(&kiln_cpu(call)->dnnl, image);

    return image->layout == KILN_PLAIN || (block > 0 && block % cpu->loops->winograd->width == 0);
}

KilnStatus kiln_winograd_layout(const KilnCall *call, KilnArg *image, KilnError *err)
{
    KilnCpuBackend *cpu = kiln_cpu(call);
    const int64_t block = cpu->blocked == KILN_MD_C16 ? 16 : cpu->blocked == KILN_MD_C8 ? 8 : 0;

    if (image->layout != KILN_PLAIN && is_read(call, image))
        return KILN_OK;
    return kiln_layout_set_block(
        &cpu->dnnl, image,
        !image->fixed && block > 0 && image->shape.dim[3] % block == 0 ? block : 0, err);
}

KilnWinogradImages kiln_winograd_images(const KilnCall *call, const KilnArg *image)
{
    const int64_t *dim = image->shape.dim;
    const int64_t block = kiln_layout_whole_block(&kiln_cpu(call)->dnnl, image);

    return (KilnWinogradImages) { .data = image->data,
                                  .height = dim[1],
                                  .width = dim[2],
                                  .channels = dim[3],
                                  .block = block > 0 ? block : dim[3] };
}

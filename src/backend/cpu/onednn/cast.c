/* Conversion between types. bf16 is in plain order; an f32 image in blocks of channels is rounded
 * and reordered in one step, by the loops where they know the layout, since oneDNN has no fast code
 * for that below AVX-512. */
#include "backend/cpu/cpu.h"

#include <string.h>

#include "backend/cpu/onednn/primitives.h"
#include "backend/ref/ref.h"

/* ---- Loops ---------------------------------------------------------------------- */

typedef struct Pair {
    const KilnLoops *loops;
    const KilnArg *from, *to;
} Pair;

static void convert_part(void *context, int64_t begin, int64_t end)
{
    const Pair *pair = context;
    const KilnArg *from = pair->from, *to = pair->to;
    const size_t size = kiln_dtype_size(to->dtype);

    if (from->dtype == to->dtype)
        memcpy((char *)to->data + (size_t)begin * size,
               (const char *)from->data + (size_t)begin * size, (size_t)(end - begin) * size);
    else if (from->dtype == KILN_F32 && to->dtype == KILN_BF16)
        pair->loops->to_bf16((uint16_t *)to->data + begin, (const float *)from->data + begin,
                             end - begin);
    else if (from->dtype == KILN_BF16 && to->dtype == KILN_F32)
        pair->loops->from_bf16((float *)to->data + begin, (const uint16_t *)from->data + begin,
                               end - begin);
    else
        for (int64_t i = begin; i < end; i++)
            kiln_ref_set(to, i, kiln_ref_get(from, i));
}

static void convert(KilnCall *call, const KilnArg *from, const KilnArg *to)
{
    Pair pair = { kiln_cpu(call)->loops, from, to };

    kiln_parallel(call->backend->threads, kiln_cpu_count(to), 16384, 64, convert_part, &pair);
}

/* ---- Images in blocks of channels --------------------------------------------------- */

typedef struct Blocks {
    const KilnLoops *loops;
    const KilnArg *from, *to;
    bool input;                            /* the input is in blocks, else the output */
    int64_t rows, pixels, channels, block; /* rows, and their pixels, of an image */
} Blocks;

/* Converts rows of pixels. */
static void convert_rows(void *context, int64_t begin, int64_t end)
{
    const Blocks *b = context;
    const int64_t padded = (b->channels + b->block - 1) / b->block * b->block;
    const int64_t width = b->pixels / b->rows;

    for (int64_t i = begin; i < end; i++) {
        const int64_t image = i / b->rows * b->pixels, first = i % b->rows * width;
        const int64_t plain = image * b->channels, blocked = image * padded;

        if (b->input)
            b->loops->blocks_to_bf16((uint16_t *)b->to->data + plain,
                                     (const float *)b->from->data + blocked, first, first + width,
                                     b->pixels, b->channels, b->block);
        else
            b->loops->blocks_from_bf16((float *)b->to->data + blocked,
                                       (const uint16_t *)b->from->data + plain, first,
                                       first + width, b->pixels, b->channels, b->block);
    }
}

static void convert_blocks(KilnCall *call, bool input, int64_t block)
{
    const int64_t *dim = call->inputs[0].shape.dim;
    Blocks blocks = { .loops = kiln_cpu(call)->loops,
                      .from = &call->inputs[0],
                      .to = &call->outputs[0],
                      .input = input,
                      .rows = dim[1],
                      .pixels = dim[1] * dim[2],
                      .channels = dim[3],
                      .block = block };

    kiln_parallel(call->backend->threads, dim[0] * dim[1], 16384 / (dim[2] * dim[3]) + 1, 1,
                  convert_rows, &blocks);
}

/* Channels in a block of the input, if the loops round it; else 0. */
static int64_t input_block(const KilnCall *call)
{
    const KilnArg *from = &call->inputs[0], *to = &call->outputs[0];

    if (from->dtype != KILN_F32 || to->dtype != KILN_BF16 || to->layout != KILN_PLAIN ||
        kiln_cpu_count(to) == 0)
        return 0;
    return kiln_layout_block(&kiln_cpu(call)->dnnl, from->layout, &from->shape);
}

static int64_t output_block(const KilnCall *call)
{
    const KilnArg *to = &call->outputs[0];

    return kiln_layout_block(&kiln_cpu(call)->dnnl, to->layout, &to->shape);
}

/* Gives an f32 image for a convolution the layout that the convolution prefers, where whole blocks
 * fit. */
static KilnStatus choose_blocks(KilnCall *call, KilnError *err)
{
    const KilnCpuBackend *cpu = kiln_cpu(call);
    const KilnArg *from = &call->inputs[0];
    KilnArg *to = &call->outputs[0];
    const int64_t block = cpu->blocked == KILN_MD_C16 ? 16 : cpu->blocked == KILN_MD_C8 ? 8 : 0;
    KilnLayout layout = KILN_PLAIN;

    if (((const KilnCastAttrs *)call->attrs)->image == 0 || from->dtype != KILN_BF16 ||
        from->layout != KILN_PLAIN || to->fixed || block == 0 || to->shape.rank != 4 ||
        to->shape.dim[3] % block != 0 || kiln_cpu_count(to) == 0)
        return KILN_OK;
    KilnStatus status = kiln_layout_image(&kiln_cpu(call)->dnnl, KILN_F32, &to->shape, cpu->blocked,
                                          &layout, err);
    if (status == KILN_OK)
        kiln_output_layout(&cpu->dnnl, to, layout);
    return status;
}

/* ---- Kernels -------------------------------------------------------------------- */

static KilnStatus cast_prepare(KilnCall *call, KilnError *err)
{
    KilnDnnl *dnnl = &kiln_cpu(call)->dnnl;
    const KilnArg *from = &call->inputs[0], *to = &call->outputs[0];
    KilnMdRole role = KILN_MD_IMAGE;
    KilnMd target = NULL;
    dnnl_primitive_desc_t pd = NULL;

    if (from->layout == KILN_PLAIN)
        return choose_blocks(call, err);
    if (input_block(call) > 0)
        return KILN_OK;
    if (to->dtype != KILN_F32 && to->dtype != KILN_BF16) {
        call->inputs[0].layout = KILN_PLAIN;
        return KILN_OK;
    }
    KilnMd source = kiln_layout_md(dnnl, from->layout, &role);
    KilnStatus status = kiln_md_of(dnnl, role, to, &target, err);
    if (status < 0)
        return status;

    dnnl_status_t made = kiln_pd_reorder(dnnl, source, target, &pd);
    const KilnPrimitiveArg args[] = {
        { DNNL_ARG_FROM, source, KILN_BUFFER_INPUT, 0 },
        { DNNL_ARG_TO, target, KILN_BUFFER_OUTPUT, 0 },
    };

    if (made != dnnl_success) {
        call->inputs[0].layout = KILN_PLAIN;
        return KILN_OK;
    }
    status = kiln_primitives_add(call, pd, args, (int)KILN_COUNT(args), err);
    dnnl_primitive_desc_destroy(pd);
    return status;
}

static void cast_run(KilnCall *call)
{
    const int64_t input = input_block(call), output = output_block(call);

    if (call->priv != NULL)
        kiln_primitives_run(call);
    else if (input > 0 || output > 0)
        convert_blocks(call, input > 0, input > 0 ? input : output);
    else
        convert(call, &call->inputs[0], &call->outputs[0]);
}

static void store_run(KilnCall *call)
{
    convert(call, &call->inputs[1], &call->inputs[0]);
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_cast,
      .prepare = cast_prepare,
      .run = cast_run,
      .release = kiln_primitives_release },
    { .op = &kiln_op_store, .run = store_run },
};

const KilnCpuTable kiln_cpu_cast = { kernels, KILN_COUNT(kernels) };

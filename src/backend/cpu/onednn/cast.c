/* Conversion between types. bf16 is in plain order; an f32 in a oneDNN layout is rounded and
 * reordered in one step. */
#include "backend/cpu/cpu.h"

#include <string.h>

#include "backend/cpu/onednn/primitives.h"
#include "tensor/bf16.h"

/* ---- Loops ---------------------------------------------------------------------- */

/* One element of a type without vector loops. */
static double element(const KilnArg *arg, int64_t i)
{
    switch (arg->dtype) {
    case KILN_F32:
        return (double)((const float *)arg->data)[i];
    case KILN_F64:
        return ((const double *)arg->data)[i];
    case KILN_I32:
        return ((const int32_t *)arg->data)[i];
    case KILN_I64:
        return (double)((const int64_t *)arg->data)[i];
    case KILN_U8:
        return ((const uint8_t *)arg->data)[i];
    case KILN_BF16:
        return (double)kiln_bf16_to(((const uint16_t *)arg->data)[i]);
    }
    return 0.0;
}

static void set_element(const KilnArg *arg, int64_t i, double value)
{
    switch (arg->dtype) {
    case KILN_F32:
        ((float *)arg->data)[i] = (float)value;
        break;
    case KILN_F64:
        ((double *)arg->data)[i] = value;
        break;
    case KILN_I32:
        ((int32_t *)arg->data)[i] = (int32_t)value;
        break;
    case KILN_I64:
        ((int64_t *)arg->data)[i] = (int64_t)value;
        break;
    case KILN_U8:
        ((uint8_t *)arg->data)[i] = (uint8_t)value;
        break;
    case KILN_BF16:
        ((uint16_t *)arg->data)[i] = kiln_bf16_of((float)value);
        break;
    }
}

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
            set_element(to, i, element(from, i));
}

static void convert(KilnCall *call, const KilnArg *from, const KilnArg *to)
{
    Pair pair = { kiln_cpu(call)->loops, from, to };

    kiln_parallel(call->backend->threads, kiln_cpu_count(to), 16384, 64, convert_part, &pair);
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
        return KILN_OK;
    if (to->dtype != KILN_F32 && to->dtype != KILN_BF16) {
        call->inputs[0].layout = KILN_PLAIN;
        return KILN_OK;
    }
    KilnMd source = kiln_layout_md(dnnl, from->layout, &role);
    KilnStatus status = kiln_md_of(dnnl, role, to, &target, err);
    if (status < 0)
        return status;

    int before = kiln_threads_set(dnnl->threads);
    dnnl_status_t made = kiln_pd_reorder(dnnl, source, target, &pd);
    const KilnPrimitiveArg args[] = {
        { DNNL_ARG_FROM, source, KILN_BUFFER_INPUT, 0 },
        { DNNL_ARG_TO, target, KILN_BUFFER_OUTPUT, 0 },
    };
    kiln_threads_set(before);
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
    if (call->priv != NULL)
        kiln_primitives_run(call);
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

/* Everything that differs between oneDNN 2 and 3: memory descriptors as values or handles, and
 * making primitive descriptors. */
#include "backend/cpu/onednn/dnnl_util.h"

#include <string.h>

#include "backend/cpu/parallel.h"
#include "base/system/machine.h"

#define V3 (DNNL_VERSION_MAJOR >= 3)

enum { ROOM = 16 << 20 }; /* bytes; a kernel's code takes 256 KiB, and a primitive has several */

bool kiln_dnnl_has_room(void)
{
    return kiln_addresses_left(ROOM);
}

KilnStatus kiln_dnnl_cap(KilnCpuLevel level, KilnError *err)
{
    /* oneDNN has no code below SSE4.1, for base too; the highest level is unlimited. */
    static const dnnl_cpu_isa_t most[KILN_CPU_AMX] = {
        [KILN_CPU_BASE] = dnnl_cpu_isa_sse41,
        [KILN_CPU_AVX2] = dnnl_cpu_isa_avx2,
        [KILN_CPU_AVX512] = dnnl_cpu_isa_avx512_core,
        [KILN_CPU_AVX512_BF16] = dnnl_cpu_isa_avx512_core_bf16,
    };

    if (level >= KILN_CPU_TOP || dnnl_set_max_cpu_isa(most[level]) == dnnl_success)
        return KILN_OK;
    /* It can only be set before oneDNN is used; the bits show whether it was. */
    if (((unsigned)dnnl_get_effective_cpu_isa() & ~(unsigned)most[level]) == 0)
        return KILN_OK;
    return kiln_error_set(err, KILN_E_RANGE,
                          "environment variable KILN_ISA=%s: oneDNN already runs with more in this "
                          "process; set the variable before the process starts",
                          kiln_cpu_level_name(level));
}

/* ---- Memory descriptors ------------------------------------------------------ */

dnnl_status_t kiln_md_init(KilnMdStore *ret, const KilnMdFacts *facts, dnnl_format_tag_t tag)
{
#if V3
    return dnnl_memory_desc_create_with_tag(ret, facts->rank, facts->dims, facts->type, tag);
#else
    return dnnl_memory_desc_init_by_tag(ret, facts->rank, facts->dims, facts->type, tag);
#endif
}

dnnl_status_t kiln_md_copy(KilnMdStore *ret, KilnMd md)
{
#if V3
    return dnnl_memory_desc_clone(ret, md);
#else
    *ret = *md;
    return dnnl_success;
#endif
}

void kiln_md_release(KilnMdStore *md)
{
#if V3
    dnnl_memory_desc_destroy(*md);
#else
    (void)md;
#endif
}

KilnMd kiln_md_get(const KilnMdStore *md)
{
#if V3
    return *md;
#else
    return md;
#endif
}

KilnMdFacts kiln_md_facts(KilnMd md)
{
    KilnMdFacts facts = { 0 };
#if V3
    dnnl_dims_t *dims = NULL;

    dnnl_memory_desc_query(md, dnnl_query_ndims_s32, &facts.rank);
    dnnl_memory_desc_query(md, dnnl_query_data_type, &facts.type);
    dnnl_memory_desc_query(md, dnnl_query_dims, &dims);
    memcpy(facts.dims, *dims, sizeof(facts.dims));
#else
    facts.rank = md->ndims;
    facts.type = md->data_type;
    memcpy(facts.dims, md->dims, sizeof(facts.dims));
#endif
    return facts;
}

/* ---- Primitive descriptors --------------------------------------------------- */

#if !V3
/* Version 2 first fills an operation descriptor; `described` is its status. */
static dnnl_status_t pd_create(KilnDnnl *dnnl, dnnl_status_t described, const void *desc,
                               const_dnnl_primitive_attr_t attr, const_dnnl_primitive_desc_t hint,
                               dnnl_primitive_desc_t *ret)
{
    if (described != dnnl_success)
        return described;
    return dnnl_primitive_desc_create(ret, desc, attr, dnnl->engine, hint);
}
#endif

/* oneDNN counts dilation as the gaps between the kernel's elements. */
typedef struct Gaps {
    dnnl_dims_t dim;
} Gaps;

static Gaps conv_gaps(const KilnConvMd *conv)
{
    return (Gaps) { .dim = { conv->dilation[0] - 1, conv->dilation[1] - 1 } };
}

static dnnl_alg_kind_t eltwise_of(const KilnMapStep *step)
{
    switch ((KilnMapCode)step->code) {
    case KILN_MAP_RELU:
    case KILN_MAP_LEAKY_RELU:
        return dnnl_eltwise_relu;
    case KILN_MAP_ELU:
        return dnnl_eltwise_elu;
    case KILN_MAP_CLAMP:
        return dnnl_eltwise_clip;
    case KILN_MAP_TANH:
        return dnnl_eltwise_tanh;
    case KILN_MAP_GELU:
        return dnnl_eltwise_gelu_erf;
    case KILN_MAP_GELU_TANH:
        return dnnl_eltwise_gelu_tanh;
    case KILN_MAP_SILU:
        return dnnl_eltwise_swish;
    case KILN_MAP_HARD_SWISH:
        return dnnl_eltwise_hardswish;
    default:
        return dnnl_alg_kind_undef;
    }
}

static dnnl_status_t append_activation(const KilnMapStep *step, dnnl_post_ops_t ops)
{
    const dnnl_alg_kind_t kind = eltwise_of(step);
    const bool hard = kind == dnnl_eltwise_hardswish; /* x min(max(alpha x + beta, 0), 1) */
    const float alpha = kind == dnnl_eltwise_swish ? 1.0f : hard ? 1.0f / 6.0f : (float)step->p;
    const float beta = hard ? 0.5f : (float)step->q;

#if V3
    return dnnl_post_ops_append_eltwise(ops, kind, alpha, beta);
#else
    return dnnl_post_ops_append_eltwise(ops, 1.0f, kind, alpha, beta);
#endif
}

static dnnl_status_t add_post_ops(const KilnConvMd *conv, dnnl_primitive_attr_t attr)
{
    dnnl_post_ops_t ops = NULL;
    dnnl_status_t status = dnnl_post_ops_create(&ops);

#if V3
    if (status == dnnl_success && conv->sum)
        status = dnnl_post_ops_append_sum(ops, 1.0f, 0, dnnl_data_type_undef);
#else
    if (status == dnnl_success && conv->sum)
        status = dnnl_post_ops_append_sum(ops, 1.0f);
#endif
    if (status == dnnl_success && conv->activation != NULL)
        status = append_activation(conv->activation, ops);
    if (status == dnnl_success)
        status = dnnl_primitive_attr_set_post_ops(attr, ops);
    dnnl_post_ops_destroy(ops);
    return status;
}

/* oneDNN's brgemm convolutions before 3.13 reserve too little for the input they copy if a stride
 * is larger than the kernel, and overwrite it (uxlfoundation/oneDNN, pull request 5494). */
static bool is_wrong(const KilnConvMd *conv, const_dnnl_primitive_desc_t pd)
{
    const KilnMdFacts weights = kiln_md_facts(conv->weights);
    const char *name = NULL;

    if (conv->stride[0] <= weights.dims[weights.rank - 2] &&
        conv->stride[1] <= weights.dims[weights.rank - 1])
        return false;
    return dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, (void *)&name) ==
               dnnl_success &&
           strncmp(name, "brg", 3) == 0 && strstr(name, "1x1") == NULL;
}

#if V3
/* The first implementation that is right. */
static dnnl_status_t pd_forward(KilnDnnl *dnnl, const KilnConvMd *conv,
                                const_dnnl_primitive_attr_t attr, dnnl_primitive_desc_t *ret)
{
    const Gaps gaps = conv_gaps(conv);
    dnnl_primitive_desc_t pd = NULL;
    dnnl_status_t status = dnnl_convolution_forward_primitive_desc_create(
        &pd, dnnl->engine, dnnl_forward_training, dnnl_convolution_direct, conv->src, conv->weights,
        conv->bias, conv->dst, conv->stride, gaps.dim, conv->padding, conv->padding, attr);

    while (status == dnnl_success && is_wrong(conv, pd))
        status = dnnl_primitive_desc_next_impl(pd);
    if (status == dnnl_success)
        *ret = pd;
    else
        dnnl_primitive_desc_destroy(pd);
    return status == dnnl_last_impl_reached ? dnnl_unimplemented : status;
}
#else
/* The first implementation that is right. */
static dnnl_status_t pd_forward(KilnDnnl *dnnl, const KilnConvMd *conv,
                                const_dnnl_primitive_attr_t attr, dnnl_primitive_desc_t *ret)
{
    const Gaps gaps = conv_gaps(conv);
    dnnl_convolution_desc_t desc;
    dnnl_primitive_desc_iterator_t each = NULL;
    dnnl_primitive_desc_t pd = NULL;
    dnnl_status_t status = dnnl_dilated_convolution_forward_desc_init(
        &desc, dnnl_forward_training, dnnl_convolution_direct, conv->src, conv->weights, conv->bias,
        conv->dst, conv->stride, gaps.dim, conv->padding, conv->padding);

    if (status == dnnl_success)
        status = dnnl_primitive_desc_iterator_create(&each, &desc, attr, dnnl->engine, NULL);
    if (status != dnnl_success)
        return status;
    for (;;) {
        pd = dnnl_primitive_desc_iterator_fetch(each);
        if (pd == NULL || !is_wrong(conv, pd))
            break;
        dnnl_primitive_desc_destroy(pd);
        pd = NULL;
        if (dnnl_primitive_desc_iterator_next(each) != dnnl_success)
            break;
    }
    dnnl_primitive_desc_iterator_destroy(each);
    *ret = pd;
    return pd != NULL ? dnnl_success : dnnl_unimplemented;
}
#endif

dnnl_status_t kiln_pd_conv(KilnDnnl *dnnl, const KilnConvMd *conv, dnnl_primitive_desc_t *ret)
{
    dnnl_primitive_attr_t attr = NULL;

    if (!kiln_dnnl_has_room())
        return dnnl_out_of_memory;
    if (!conv->sum && conv->activation == NULL)
        return pd_forward(dnnl, conv, dnnl->attr, ret);
    dnnl_status_t status = dnnl_primitive_attr_clone(&attr, dnnl->attr);
    if (status != dnnl_success)
        return status;
    status = add_post_ops(conv, attr);
    if (status == dnnl_success)
        status = pd_forward(dnnl, conv, attr, ret);
    dnnl_primitive_attr_destroy(attr);
    return status;
}

dnnl_status_t kiln_pd_conv_data(KilnDnnl *dnnl, const KilnConvMd *conv, dnnl_primitive_desc_t *ret)
{
    const Gaps gaps = conv_gaps(conv);
    dnnl_primitive_desc_t hint = NULL;
    dnnl_status_t status = kiln_pd_conv(dnnl, conv, &hint);

    if (status != dnnl_success)
        return status;
#if V3
    status = dnnl_convolution_backward_data_primitive_desc_create(
        ret, dnnl->engine, dnnl_convolution_direct, conv->src, conv->weights, conv->dst,
        conv->stride, gaps.dim, conv->padding, conv->padding, hint, dnnl->attr);
#else
    dnnl_convolution_desc_t desc;

    status = pd_create(dnnl,
                       dnnl_dilated_convolution_backward_data_desc_init(
                           &desc, dnnl_convolution_direct, conv->src, conv->weights, conv->dst,
                           conv->stride, gaps.dim, conv->padding, conv->padding),
                       &desc, dnnl->attr, hint, ret);
#endif
    dnnl_primitive_desc_destroy(hint);
    return status;
}

dnnl_status_t kiln_pd_conv_weights(KilnDnnl *dnnl, const KilnConvMd *conv,
                                   dnnl_primitive_desc_t *ret)
{
    const Gaps gaps = conv_gaps(conv);
    dnnl_primitive_desc_t hint = NULL;
    KilnConvMd forward = *conv;

    if (conv->forward_weights != NULL)
        forward.weights = conv->forward_weights;
    dnnl_status_t status = kiln_pd_conv(dnnl, &forward, &hint);

    if (status != dnnl_success)
        return status;
#if V3
    status = dnnl_convolution_backward_weights_primitive_desc_create(
        ret, dnnl->engine, dnnl_convolution_direct, conv->src, conv->weights, NULL, conv->dst,
        conv->stride, gaps.dim, conv->padding, conv->padding, hint, dnnl->attr);
#else
    dnnl_convolution_desc_t desc;

    status = pd_create(dnnl,
                       dnnl_dilated_convolution_backward_weights_desc_init(
                           &desc, dnnl_convolution_direct, conv->src, conv->weights, NULL,
                           conv->dst, conv->stride, gaps.dim, conv->padding, conv->padding),
                       &desc, dnnl->attr, hint, ret);
#endif
    dnnl_primitive_desc_destroy(hint);
    return status;
}

dnnl_status_t kiln_pd_reorder(KilnDnnl *dnnl, KilnMd from, KilnMd to, dnnl_primitive_desc_t *ret)
{
    const int before = kiln_threads_set(dnnl->threads);
    dnnl_status_t status = dnnl_out_of_memory;

    if (kiln_dnnl_has_room())
        status = dnnl_reorder_primitive_desc_create(ret, from, dnnl->engine, to, dnnl->engine,
                                                    dnnl->attr);
    kiln_threads_set(before);
    return status;
}

KilnStatus kiln_dnnl_error(KilnError *err, dnnl_status_t status, const char *what)
{
    if (status == dnnl_out_of_memory)
        return kiln_error_set(err, KILN_E_NOMEM, "oneDNN ran out of memory making %s", what);
    return kiln_error_set(err, KILN_E_INTERNAL, "oneDNN %d.%d cannot make %s: %s",
                          DNNL_VERSION_MAJOR, DNNL_VERSION_MINOR, what,
                          status == dnnl_unimplemented       ? "not implemented"
                          : status == dnnl_invalid_arguments ? "invalid arguments"
                                                             : "internal failure");
}

#include "tests/fuzz/graphs/execute.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/bf16.h"

unsigned long executed_ops[1024];

/* ---- Backends ------------------------------------------------------------------------------- */

enum { MOST_THREADS = 4 };

static KilnBackend *cpu[2][2][MOST_THREADS], *reference[2];
static KilnGraph *shapes_graph;

static void require(KilnStatus status, const KilnError *err)
{
    if (status == KILN_OK)
        return;
    fprintf(stderr, "fuzz_graphs: %s\n", err->text);
    exit(2);
}

static KilnBackend *backend_of(const Spec *spec, const Way *way)
{
    const bool f64 = spec->precision == KILN_PRECISION_64;
    KilnBackend **backend =
        way->reference ? &reference[f64]
                       : &cpu[f64][way->convolution == KILN_CONVOLUTION_AUTO][way->threads];
    KilnError err = { 0 };

    if (*backend != NULL)
        return *backend;
    if (way->reference)
        require((f64 ? kiln_backend_ref_f64_new : kiln_backend_ref_new)(backend, &err), &err);
    else
        require(
            (f64 ? kiln_backend_cpu_f64_new : kiln_backend_cpu_new)(way->threads, backend, &err),
            &err);
    kiln_backend_set_convolution(*backend, way->convolution);
    return *backend;
}

KilnGraph *execute_shapes_graph(void)
{
    const Spec spec = { .precision = KILN_PRECISION_32 };
    const Way way = { .reference = true };
    KilnError err = { 0 };

    if (shapes_graph == NULL)
        require(kiln_graph_new(backend_of(&spec, &way), &shapes_graph, &err), &err);
    return shapes_graph;
}

void execute_finish(void)
{
    kiln_graph_free(shapes_graph);
    for (int f64 = 0; f64 < 2; f64++) {
        kiln_backend_free(reference[f64]);
        for (int i = 0; i < 2 * MOST_THREADS; i++)
            kiln_backend_free(cpu[f64][i / MOST_THREADS][i % MOST_THREADS]);
    }
}

/* ---- Memory --------------------------------------------------------------------------------- */

static void *block_new(Memory *memory, size_t bytes)
{
    void **blocks = realloc(memory->blocks, (memory->n_blocks + 1) * sizeof(*blocks));
    void *block = aligned_alloc(64, (bytes + 127) / 64 * 64);

    if (blocks == NULL || block == NULL) {
        fprintf(stderr, "fuzz_graphs: out of memory\n");
        exit(2);
    }
    memset(block, 0, bytes);
    memory->blocks = blocks;
    blocks[memory->n_blocks++] = block;
    return block;
}

static void memory_release(Memory *memory)
{
    for (size_t i = 0; i < memory->n_blocks; i++)
        free(memory->blocks[i]);
    free(memory->blocks);
}

static void set_element(void *data, KilnDType dtype, int64_t i, double value)
{
    switch (dtype) {
    case KILN_F32:
        ((float *)data)[i] = (float)value;
        break;
    case KILN_F64:
        ((double *)data)[i] = value;
        break;
    case KILN_BF16:
        ((uint16_t *)data)[i] = kiln_bf16_of((float)value);
        break;
    case KILN_I32:
        ((int32_t *)data)[i] = (int32_t)value;
        break;
    case KILN_I64:
        ((int64_t *)data)[i] = (int64_t)value;
        break;
    case KILN_U8:
        ((uint8_t *)data)[i] = (uint8_t)value;
        break;
    }
}

static double element(const void *data, KilnDType dtype, int64_t i)
{
    switch (dtype) {
    case KILN_F32:
        return (double)((const float *)data)[i];
    case KILN_F64:
        return ((const double *)data)[i];
    case KILN_BF16:
        return (double)kiln_bf16_to(((const uint16_t *)data)[i]);
    case KILN_I32:
        return ((const int32_t *)data)[i];
    case KILN_I64:
        return (double)((const int64_t *)data)[i];
    case KILN_U8:
        return ((const uint8_t *)data)[i];
    }
    return NAN;
}

double execute_noise_scale(uint64_t noise)
{
    return noise % 3 == 0 ? 8.0 : 1.0;
}

/* Relative errors as large as the distance of two numbers of the precision, or a few of them. */
static double noise_size(const KilnGraph *graph, const Memory *memory)
{
    const double scale = execute_noise_scale(memory->noise);

    if (graph->float_type == KILN_F64)
        return scale * 0x1p-52;
    return scale * (graph->precision == KILN_PRECISION_32 ? 0x1p-23 : 0x1p-7);
}

static void noise_init(KilnRng *rng, const Memory *memory, int item, int output)
{
    kiln_rng_init(rng, memory->noise, KILN_RNG_USER, (uint32_t)output, (uint64_t)item);
}

/* Numbers around `middle` that differ from it by the noise. */
static KilnTensor *noise_around(KilnGraph *graph, Memory *memory, double middle, KilnShape shape,
                                KilnRng *rng)
{
    const int64_t n = kiln_shape_count(&shape);
    const KilnDType dtype = graph->float_type;
    void *values = block_new(memory, (size_t)n * kiln_dtype_size(dtype));

    for (int64_t k = 0; k < n; k++)
        set_element(values, dtype, k,
                    middle + noise_size(graph, memory) * (double)kiln_rng_range(rng, -1.0f, 1.0f));
    return kiln_graph_input(graph, dtype, shape, values);
}

/* Multiplies one result by factors near 1. */
static KilnTensor *add_noise(KilnGraph *graph, Memory *memory, int i, int output, KilnTensor *x)
{
    KilnRng rng;

    noise_init(&rng, memory, i, 1 + output);
    return kiln_mul(x, noise_around(graph, memory, 1.0, *kiln_tensor_shape(x), &rng));
}

/* Where kernels cancel, small elements have errors as large as those of the largest. */
static KilnTensor *add_cancelled(KilnGraph *graph, Memory *memory, int i, int output, KilnTensor *x)
{
    const KilnShape shape = *kiln_tensor_shape(x);
    const KilnShape flat = KILN_SHAPE(kiln_shape_count(&shape));
    KilnTensor *all = kiln_abs(kiln_reshape(kiln_detach(x), flat));
    KilnTensor *largest = kiln_max_axes(all, (const int[]) { 0 }, 1, false);
    KilnRng rng;

    noise_init(&rng, memory, i, 1000 + output);
    return kiln_add(x, kiln_mul(largest, noise_around(graph, memory, 0.0, shape, &rng)));
}

/* Noise in what an update wrote: a later item may order or compare it. */
static void add_noise_to_updated(KilnGraph *graph, Memory *memory, int i, const KilnNode *node)
{
    for (int k = 0; k < node->n_inputs; k++) {
        KilnTensor *variable = node->inputs[k];

        if ((node->op->updates >> k & 1) != 0 && variable != NULL &&
            kiln_tensor_dtype(variable) == graph->float_type)
            kiln_store(variable, add_noise(graph, memory, i, SPEC_OUTPUTS + variable->id,
                                           kiln_detach(variable)));
    }
}

/* Noise in what item i wrote and returns; its nodes begin at `first`. */
static void add_noise_after(KilnGraph *graph, Memory *memory, const Spec *spec, int i, size_t first,
                            KilnTensor **out)
{
    const size_t end = graph->n_nodes;
    const bool cancels = spec->items[i].row->cancels && !spec_has_infinite_leaf(spec);

    for (size_t n = first; n < end; n++)
        add_noise_to_updated(graph, memory, i, graph->nodes[n]);
    for (int k = 0; k < SPEC_OUTPUTS; k++) {
        if (out[k] == NULL || kiln_tensor_dtype(out[k]) != graph->float_type)
            continue;
        out[k] = add_noise(graph, memory, i, k, out[k]);
        if (cancels)
            out[k] = add_cancelled(graph, memory, i, k, out[k]);
    }
}

/* ---- Leaves --------------------------------------------------------------------------------- */

static KilnDType leaf_dtype(const KilnGraph *graph, const Leaf *leaf, bool bf16)
{
    switch (leaf->kind) {
    case LEAF_INDEX:
        return KILN_I32;
    case LEAF_MASK:
        return KILN_U8;
    case LEAF_COUNTER:
    case LEAF_ENDS:
        return KILN_I64;
    case LEAF_INPUT:
        return graph->float_type;
    case LEAF_PARAM:
    case LEAF_VARIABLE:
        break;
    }
    return bf16 ? KILN_BF16 : graph->float_type;
}

/* Equal integers get equal noise: ties must stay. */
static double leaf_noise(const Memory *memory, const Leaf *leaf, double value, KilnRng *rng)
{
    KilnRng of_value;

    if (leaf->values != VALUES_INTEGERS)
        return (double)kiln_rng_range(rng, -1.0f, 1.0f);
    kiln_rng_init(&of_value, memory->noise, KILN_RNG_USER, 100, (uint64_t)(int64_t)value);
    return (double)kiln_rng_range(&of_value, -1.0f, 1.0f);
}

/* A value with noise. Products of bf16 take denormal numbers as 0 (AVX-512's vdpbf16ps), which
 * infinities turn into NaN: so do half of the runs. */
static double noisy_value(const KilnGraph *graph, const Memory *memory, const Leaf *leaf,
                          double value, KilnRng *rng)
{
    const double factor = 1.0 + noise_size(graph, memory) * leaf_noise(memory, leaf, value, rng);
    const bool in_bf16 = graph->precision == KILN_BF16_MIXED || graph->precision == KILN_BF16_TRUE;

    if (in_bf16 && memory->noise % 2 == 1 && fabs(value) < FLT_MIN)
        return copysign(0.0, value);
    return value * factor;
}

static void leaf_fill(const KilnGraph *graph, Memory *memory, const Spec *spec, int i)
{
    const Leaf *leaf = &spec->items[i].leaf;
    const KilnDType dtype = leaf_dtype(graph, leaf, memory->bf16);
    const int64_t n = kiln_shape_count(&leaf->shape);
    const size_t size = kiln_dtype_size(dtype), offset = leaf->unaligned ? size : 0;
    double *values = block_new(memory, (size_t)n * sizeof(double));
    KilnRng rng;

    memory->bytes[i] = (size_t)n * size;
    memory->data[i] = (char *)block_new(memory, memory->bytes[i] + offset) + offset;
    leaf_values(leaf, values);
    noise_init(&rng, memory, i, 0);
    for (int64_t k = 0; k < n; k++) {
        if (dtype == KILN_BF16)
            values[k] = (double)kiln_bf16_to(kiln_bf16_of((float)values[k]));
        if (memory->noise != 0 && leaf_is_float(leaf))
            values[k] = noisy_value(graph, memory, leaf, values[k], &rng);
        set_element(memory->data[i], dtype, k, values[k]);
    }
    if (leaf->kind != LEAF_PARAM)
        return;
    memory->grad[i] = (char *)block_new(memory, memory->bytes[i] + offset) + offset;
    for (int64_t k = 0; k < n && spec->accumulates; k++)
        set_element(memory->grad[i], dtype, k, 0.125 * (double)(k % 7));
}

static KilnTensor *leaf_tensor(KilnGraph *graph, Memory *memory, const Spec *spec, int i)
{
    const Leaf *leaf = &spec->items[i].leaf;
    const KilnDType dtype = leaf_dtype(graph, leaf, memory != NULL && memory->bf16);
    void *data = memory != NULL ? memory->data[i] : NULL;

    if (leaf->kind == LEAF_PARAM)
        return kiln_graph_variable(graph, dtype, leaf->shape, data, true,
                                   memory != NULL ? memory->grad[i] : NULL);
    if (leaf->kind == LEAF_VARIABLE || leaf->kind == LEAF_COUNTER)
        return kiln_graph_variable(graph, dtype, leaf->shape, data, false, NULL);
    return kiln_graph_input(graph, dtype, leaf->shape, data);
}

/* ---- Recording ------------------------------------------------------------------------------ */

void execute_item(KilnGraph *graph, const Spec *spec, int i, Memory *memory, KilnTensor **values)
{
    const Item *item = &spec->items[i];
    KilnTensor *in[SPEC_INPUTS] = { NULL }, **out = &values[i * SPEC_OUTPUTS];

    if (i == spec->block[0] && spec->block[1] > i)
        kiln_graph_recompute_begin(graph);
    if (i == spec->block[1] && i > spec->block[0])
        kiln_graph_recompute_end(graph);
    if (item->row == NULL) {
        out[0] = leaf_tensor(graph, memory, spec, i);
        return;
    }
    for (int k = 0; k < SPEC_INPUTS; k++) {
        in[k] = item->in[k] >= 0 ? values[item->in[k]] : NULL;
        if (in[k] != NULL && (item->row->constant >> k & 1) != 0)
            in[k] = kiln_detach(in[k]);
    }
    const size_t before = graph->n_nodes;

    item->row->build(in, item, out);
    if (memory != NULL && memory->noise != 0)
        add_noise_after(graph, memory, spec, i, before, out);
}

/* The sum of all outputs that are floats, weighted; NULL: none depends on a parameter. */
static KilnTensor *loss_of(KilnGraph *graph, const Spec *spec, Memory *memory,
                           KilnTensor *const *values)
{
    KilnTensor *loss = NULL;

    for (int o = 0; o < spec->n_outputs; o++) {
        KilnTensor *y = values[spec->outputs[o]];
        if (kiln_tensor_dtype(y) != graph->float_type || !y->wants_grad)
            continue;
        const KilnShape shape = *kiln_tensor_shape(y);
        const int64_t n = kiln_shape_count(&shape);
        void *weights = block_new(memory, (size_t)n * kiln_dtype_size(graph->float_type));
        KilnRng rng;

        kiln_rng_init(&rng, spec->seed, KILN_RNG_USER, 2, (uint64_t)o);
        for (int64_t k = 0; k < n; k++)
            set_element(weights, graph->float_type, k, (double)kiln_rng_normal(&rng));
        KilnTensor *term =
            kiln_sum(kiln_mul(y, kiln_graph_input(graph, graph->float_type, shape, weights)));
        loss = loss == NULL ? term : kiln_add(loss, term);
    }
    return loss;
}

static void record(KilnGraph *graph, const Spec *spec, Memory *memory, KilnTensor **values)
{
    memset(values, 0, SPEC_ITEMS * SPEC_OUTPUTS * sizeof(KilnTensor *));
    kiln_graph_begin(graph);
    for (int i = 0; i < spec->n; i++)
        execute_item(graph, spec, i, memory, values);
    if (spec->block[1] > spec->block[0] && spec->block[1] >= spec->n)
        kiln_graph_recompute_end(graph);
    KilnTensor *loss = spec->backward ? loss_of(graph, spec, memory, values) : NULL;
    graph->accumulates = spec->accumulates;
    if (loss != NULL)
        kiln_graph_backward(graph, loss);
}

static void count_ops(const KilnGraph *graph)
{
    for (size_t i = 0; i < graph->n_nodes; i++)
        for (size_t k = 0; k < kiln_ops_count; k++)
            executed_ops[k] += graph->nodes[i]->op == kiln_ops[k];
}

/* ---- Results -------------------------------------------------------------------------------- */

static void add_field(Outcome *outcome, const char *kind, int i, const void *data, KilnDType dtype,
                      int64_t n)
{
    Field *field = &outcome->fields[outcome->n++];

    snprintf(field->name, sizeof(field->name), "%s %d", kind, i);
    field->is_float = spec_is_float(dtype);
    field->n = n;
    field->values = malloc((size_t)n * sizeof(double));
    for (int64_t k = 0; k < n && field->values != NULL; k++)
        field->values[k] = element(data, dtype, k);
}

static KilnDType stored_dtype(const KilnTensor *tensor)
{
    return tensor->stored_bf16 ? KILN_BF16 : kiln_tensor_dtype(tensor);
}

static void collect(const KilnGraph *graph, const Spec *spec, const Memory *memory,
                    KilnTensor *const *values, Outcome *ret)
{
    for (int o = 0; o < spec->n_outputs; o++) {
        const KilnTensor *y = values[spec->outputs[o]];

        add_field(ret, "output", spec->outputs[o] / SPEC_OUTPUTS, kiln_tensor_data(y),
                  stored_dtype(y), kiln_shape_count(kiln_tensor_shape(y)));
    }
    for (int i = 0; i < spec->n; i++) {
        const Leaf *leaf = &spec->items[i].leaf;
        const KilnDType dtype = leaf_dtype(graph, leaf, memory->bf16);
        const int64_t n = kiln_shape_count(&leaf->shape);

        if (spec->items[i].row != NULL)
            continue;
        if (leaf->kind == LEAF_VARIABLE || leaf->kind == LEAF_COUNTER)
            add_field(ret, "variable", i, memory->data[i], dtype, n);
        if (leaf->kind == LEAF_PARAM && spec->backward)
            add_field(ret, "gradient of", i, memory->grad[i], dtype, n);
    }
}

/* The range of everything that was computed. */
static void survey(const KilnGraph *graph, Outcome *ret)
{
    ret->smallest = INFINITY;
    for (size_t i = 0; i < graph->n_tensors; i++) {
        const KilnTensor *tensor = graph->tensors[i];
        const void *data = kiln_tensor_data(tensor);

        if (data == NULL || !spec_is_float(kiln_tensor_dtype(tensor)))
            continue;
        for (int64_t k = 0; k < kiln_shape_count(kiln_tensor_shape(tensor)); k++) {
            const double value = fabs(element(data, stored_dtype(tensor), k));

            if (!isfinite(value))
                ret->not_finite = true;
            else if (value != 0.0) {
                ret->largest = fmax(ret->largest, value);
                ret->smallest = fmin(ret->smallest, value);
            }
        }
    }
}

static void run(KilnGraph *graph, const Spec *spec, const Way *way, KilnTensor *const *values,
                Outcome *ret)
{
    KilnTensor *outputs[SPEC_ITEMS * SPEC_OUTPUTS];
    size_t n = 0;

    for (int o = 0; o < spec->n_outputs; o++)
        outputs[n++] = values[spec->outputs[o]];
    for (size_t i = 0; i < graph->n_nodes && way->survey; i++)
        for (int k = 0; k < graph->nodes[i]->n_outputs && n < KILN_COUNT(outputs); k++)
            outputs[n++] = graph->nodes[i]->outputs[k];
    ret->failed = kiln_graph_run(graph, outputs, n, &ret->error) < 0;
    if (!ret->failed && way->survey)
        survey(graph, ret);
}

/* One run of what is recorded, over fresh leaves. */
static void run_once(KilnGraph *graph, const Spec *spec, const Way *way, Outcome *ret)
{
    Memory memory = { .noise = way->noise, .bf16 = graph->precision == KILN_BF16_TRUE };
    KilnTensor *values[SPEC_ITEMS * SPEC_OUTPUTS];

    memset(ret, 0, sizeof(*ret));
    for (int i = 0; i < spec->n; i++)
        if (spec->items[i].row == NULL)
            leaf_fill(graph, &memory, spec, i);
    record(graph, spec, &memory, values);
    if (!way->reference)
        count_ops(graph);
    run(graph, spec, way, values, ret);
    if (!ret->failed)
        collect(graph, spec, &memory, values, ret);
    memory_release(&memory);
}

void execute(const Spec *spec, const Way *way, Outcome *ret, Outcome *ret_again)
{
    KilnGraph *graph = NULL;
    KilnError err = { 0 };

    require(kiln_graph_new(backend_of(spec, way), &graph, &err), &err);
    graph->passes_off = way->passes_off;
    kiln_graph_set_precision(graph, way->survey && spec->precision != KILN_PRECISION_64
                                        ? KILN_PRECISION_32
                                        : spec->precision);
    run_once(graph, spec, way, ret);
    if (ret_again != NULL)
        run_once(graph, spec, way, ret_again);
    kiln_graph_free(graph);
}

void outcome_release(Outcome *outcome)
{
    for (int i = 0; i < outcome->n; i++)
        free(outcome->fields[i].values);
    outcome->n = 0;
}

/* Maps on the CPU backend: each code on extreme values against the reference, types, epilogues
 * by pieces; and fused maps compute the same. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "backend/cpu/elementwise/map.h"
#include "graph/plan/plan.h"
#include "tensor/bf16.h"
#include "tests/support/cmocka.h"
#include "tests/support/cpu_variants.h"

/* ---- Codes on extreme values ------------------------------------------------------- */

static const float extreme_values[] = {
    NAN,    INFINITY, -INFINITY, 0.0f,   -0.0f, 1.0f,   -1.0f, 0.5f,   -0.5f,   2.0f, -2.5f,
    1e-40f, -1e-40f,  1e-6f,     -1e-6f, 88.0f, -88.0f, 1e10f, -1e10f, FLT_MIN, 3.0f, 20.5f,
};
enum { EXTREMES = KILN_COUNT(extreme_values), COMBINATIONS = EXTREMES * EXTREMES * EXTREMES };

static const char *code_name(int code)
{
#define NAME(name, reads) #name,
    static const char *const names[] = { KILN_MAP_CODES(NAME) };
#undef NAME

    return names[code];
}

static void run_map(KilnBackend *backend, const KilnMap *map, const float *const *x, int64_t n,
                    float *y)
{
    KilnGraph *graph = NULL;
    KilnTensor *inputs[3], *output;
    KilnError err;

    assert_int_equal(kiln_graph_new(backend, &graph, &err), KILN_OK);
    kiln_graph_begin(graph);
    for (int i = 0; i < map->n_inputs; i++)
        inputs[i] = kiln_graph_input(graph, KILN_F32, KILN_SHAPE(n), x[i]);
    output = kiln_graph_record(graph, &kiln_op_map, inputs, map->n_inputs, map);
    if (kiln_graph_run(graph, &output, 1, &err) < 0)
        fail_msg("%s", err.text);
    memcpy(y, kiln_tensor_data(output), (size_t)n * sizeof(*y));
    kiln_graph_free(graph);
}

/* The reference computes in double: what is below the smallest normal float, or beyond the
 * largest, may be rounded away. */
static bool agree(float got, float want)
{
    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got);
    if (isinf(want) || isinf(got))
        return got == want;
    return fabsf(got - want) <= 1e-6f * fabsf(want) + FLT_MIN;
}

static void check_code(KilnBackend *cpu, KilnBackend *ref, int code)
{
    static float x[3][COMBINATIONS], got[COMBINATIONS], want[COMBINATIONS];
    const float *inputs[] = { x[0], x[1], x[2] };
    const KilnMap map = {
        .n_inputs = 3,
        .n_steps = 1,
        .n_results = 1,
        .results = { 3 },
        .steps = { { .code = code, .a = 0, .b = 1, .c = 2, .p = 0.75, .q = 1.5 } },
    };

    for (int i = 0; i < COMBINATIONS; i++) {
        x[0][i] = extreme_values[i % EXTREMES];
        x[1][i] = extreme_values[i / EXTREMES % EXTREMES];
        x[2][i] = extreme_values[i / EXTREMES / EXTREMES];
    }
    run_map(cpu, &map, inputs, COMBINATIONS, got);
    run_map(ref, &map, inputs, COMBINATIONS, want);
    for (int i = 0; i < COMBINATIONS; i++)
        if (!agree(got[i], want[i]))
            fail_msg("%s(%g, %g, %g) is %.9g, the reference says %.9g", code_name(code),
                     (double)x[0][i], (double)x[1][i], (double)x[2][i], (double)got[i],
                     (double)want[i]);
}

static void test_extremes(void **unused)
{
    KilnBackend *ref = ref_new();

    (void)unused;
    for (size_t w = 0; w < cpu_variants_count; w++) {
        KilnBackend *cpu = cpu_variant_new(&cpu_variants[w]);

        for (int code = 0; code < KILN_MAP_CODE_COUNT; code++)
            check_code(cpu, ref, code);
        kiln_backend_free(cpu);
    }
    kiln_backend_free(ref);
}

/* GELU is as exact near 0 as elsewhere; its gradient has a zero. */
static void check_gelu(KilnBackend *cpu, KilnBackend *ref, int code)
{
    enum { VALUES = 28001 };
    static float ones[VALUES], x[VALUES], got[VALUES], want[VALUES];
    const float *inputs[] = { code == KILN_MAP_GELU ? x : ones, x };
    const KilnMap map = { .n_inputs = 2,
                          .n_steps = 1,
                          .n_results = 1,
                          .results = { 2 },
                          .steps = { { .code = code, .a = 0, .b = 1 } } };

    for (int i = 0; i < VALUES; i++) {
        ones[i] = 1.0f;
        x[i] = (float)(i - VALUES / 2) / 1000.0f;
    }
    run_map(cpu, &map, inputs, VALUES, got);
    run_map(ref, &map, inputs, VALUES, want);
    for (int i = 0; i < VALUES; i++) {
        const float zero = code == KILN_MAP_GELU ? FLT_MIN : 3e-7f;

        if (!(fabsf(got[i] - want[i]) <= 7e-6f * fabsf(want[i]) + zero))
            fail_msg("%s of %g is %.9g, want %.9g", code_name(code), (double)x[i], (double)got[i],
                     (double)want[i]);
    }
}

static void test_gelu(void **unused)
{
    KilnBackend *ref = ref_new();

    (void)unused;
    for (size_t w = 0; w < cpu_variants_count; w++) {
        KilnBackend *cpu = cpu_variant_new(&cpu_variants[w]);

        check_gelu(cpu, ref, KILN_MAP_GELU);
        check_gelu(cpu, ref, KILN_MAP_GELU_GRAD);
        kiln_backend_free(cpu);
    }
    kiln_backend_free(ref);
}

/* ---- Epilogues ------------------------------------------------------------------------ */

enum { ROWS = 37, COLUMNS = 100, COUNT = ROWS * COLUMNS };

/* relu(y + bias) to output 0, and that times a bf16 operand to output 1. */
static const KilnMap epilogue = {
    .n_inputs = 3,
    .n_steps = 3,
    .n_results = 2,
    .results = { 4, 5 },
    .steps = { { .code = KILN_MAP_ADD, .a = 0, .b = 1 },
               { .code = KILN_MAP_RELU, .a = 3 },
               { .code = KILN_MAP_MUL, .a = 4, .b = 2 } },
};

typedef struct Pieces {
    KilnCall call;
    float y[COUNT], bias[COLUMNS];
    uint16_t operand[COUNT], second[COUNT];
} Pieces;

static KilnArg arg_of(KilnDType dtype, KilnShape shape, void *data)
{
    return (KilnArg) { .dtype = dtype,
                       .shape = shape,
                       .bytes = (size_t)kiln_shape_count(&shape) * kiln_dtype_size(dtype),
                       .data = data };
}

/* As a product would call it: output 0 holds what the operation gave. */
static void pieces_init(Pieces *p, KilnBackend *backend)
{
    const KilnShape whole = KILN_SHAPE(ROWS, COLUMNS);
    KilnError err;

    p->call = (KilnCall) { .backend = backend,
                           .op = &kiln_op_matmul,
                           .epilogue = &epilogue,
                           .n_inputs = 4,
                           .n_outputs = 2 };
    p->call.inputs[2] = arg_of(KILN_F32, KILN_SHAPE(COLUMNS), p->bias);
    p->call.inputs[3] = arg_of(KILN_BF16, whole, p->operand);
    p->call.outputs[0] = arg_of(KILN_F32, whole, p->y);
    p->call.outputs[1] = arg_of(KILN_BF16, whole, p->second);
    for (int i = 0; i < COUNT; i++) {
        p->y[i] = (float)(i % 17) - 8.0f;
        p->operand[i] = kiln_bf16_of((float)(i % 5));
    }
    for (int i = 0; i < COLUMNS; i++)
        p->bias[i] = 0.25f * (float)i - 3.0f;
    if (kiln_cpu_epilogue_prepare(&p->call, &err) < 0)
        fail_msg("%s", err.text);
}

static void check_pieces(Pieces *p, int64_t piece)
{
    for (int64_t begin = 0; begin < COUNT; begin += piece)
        kiln_cpu_epilogue(&p->call, p->y + begin, begin,
                          COUNT - begin < piece ? COUNT - begin : piece);
    for (int i = 0; i < COUNT; i++) {
        float sum = (float)(i % 17) - 8.0f + p->bias[i % COLUMNS];
        float want = sum < 0.0f ? 0.0f : sum;

        if (p->y[i] != want || p->second[i] != kiln_bf16_of(want * (float)(i % 5)))
            fail_msg("pieces of %d: element %d is %g and %g, want %g", (int)piece, i,
                     (double)p->y[i], (double)kiln_bf16_to(p->second[i]), (double)want);
    }
}

static void test_epilogue(void **unused)
{
    static const int64_t sizes[] = { 1, 16, 33, COLUMNS, 64, 1024, 1500, COUNT };
    KilnBackend *backend = cpu_new(1, KILN_CONVOLUTION_DIRECT);
    static Pieces p;

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(sizes); i++) {
        pieces_init(&p, backend);
        check_pieces(&p, sizes[i]);
        kiln_cpu_epilogue_release(&p.call);
    }
    kiln_backend_free(backend);
}

/* ---- Fusion ------------------------------------------------------------------------------ */

enum { SIZE = 5003 };

typedef struct Fused {
    float y[2][SIZE];
    size_t calls;
} Fused;

typedef size_t Build(KilnTensor *x, KilnTensor *row, KilnTensor **outputs);

/* Six steps, with a row and a constant. */
static size_t chain(KilnTensor *x, KilnTensor *row, KilnTensor **outputs)
{
    KilnTensor *two = kiln_graph_full(kiln_tensor_graph(x), KILN_SCALAR, 2.0);
    KilnTensor *y = kiln_mul(kiln_add(x, row), two);

    y = kiln_mul(kiln_sub(kiln_tanh(y), two), kiln_exp(kiln_neg(kiln_abs(x))));
    outputs[0] = kiln_broadcast_to(y, *kiln_tensor_shape(y));
    return 1;
}

/* An intermediate value is an output too. */
static size_t two_results(KilnTensor *x, KilnTensor *row, KilnTensor **outputs)
{
    outputs[0] = kiln_sigmoid(kiln_mul(x, row));
    outputs[1] = kiln_sqrt(outputs[0]);
    return 2;
}

/* More steps than a map has: some maps. */
static size_t long_chain(KilnTensor *x, KilnTensor *row, KilnTensor **outputs)
{
    outputs[0] = x;
    for (int i = 0; i < 40; i++)
        outputs[0] = kiln_add(kiln_scale(outputs[0], 0.9), row);
    return 1;
}

/* A sum in the middle needs the first part, which then stays what it is. */
static size_t parted(KilnTensor *x, KilnTensor *row, KilnTensor **outputs)
{
    KilnTensor *y = kiln_exp(kiln_add(x, row));

    outputs[0] = kiln_scale(kiln_div(y, kiln_sum(y)), 3.0);
    return 1;
}

/* One map gives the square, which overwrites the input, and the input itself. */
static size_t copy(KilnTensor *x, KilnTensor *row, KilnTensor **outputs)
{
    KilnTensor *y = kiln_detach(kiln_flip(x, 1));

    outputs[0] = kiln_mul(y, kiln_div(row, kiln_sum(kiln_square(y))));
    return 1;
}

static void run_fused(Build *build, bool off, Fused *ret)
{
    static float x[SIZE], row[1] = { 0.3f };
    KilnBackend *backend = cpu_new(2, KILN_CONVOLUTION_DIRECT);
    KilnTensor *outputs[2];
    KilnGraph *graph = NULL;
    KilnError err;

    for (int i = 0; i < SIZE; i++)
        x[i] = (float)(i % 101) / 25.0f - 2.0f;
    assert_int_equal(kiln_graph_new(backend, &graph, &err), KILN_OK);
    graph->passes_off = off ? ~0u : 0;
    kiln_graph_begin(graph);
    const size_t n = build(kiln_graph_input(graph, KILN_F32, KILN_SHAPE(1, SIZE), x),
                           kiln_graph_input(graph, KILN_F32, KILN_SHAPE(1), row), outputs);
    if (kiln_graph_run(graph, outputs, n, &err) < 0)
        fail_msg("%s", err.text);
    for (size_t i = 0; i < n; i++)
        memcpy(ret->y[i], kiln_tensor_data(outputs[i]), sizeof(ret->y[i]));
    ret->calls = graph->plans->n_calls;
    kiln_graph_free(graph);
    kiln_backend_free(backend);
}

static void test_fusion(void **unused)
{
    static const struct {
        const char *name;
        Build *build;
        size_t calls;
    } cases[] = {
        { "chain", chain, 1 },
        { "two results", two_results, 1 },
        { "long chain", long_chain, 4 },
        { "parted", parted, 3 },
        { "copy", copy, 5 },
    };
    static Fused on, off;

    (void)unused;
    for (size_t c = 0; c < KILN_COUNT(cases); c++) {
        memset(&on, 0, sizeof(on));
        memset(&off, 0, sizeof(off));
        run_fused(cases[c].build, false, &on);
        run_fused(cases[c].build, true, &off);
        if (on.calls != cases[c].calls)
            fail_msg("%s: %zu calls, want %zu", cases[c].name, on.calls, cases[c].calls);
        if (memcmp(on.y, off.y, sizeof(on.y)) != 0)
            fail_msg("%s: not the same values as without the pass", cases[c].name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_extremes),
        cmocka_unit_test(test_gelu),
        cmocka_unit_test(test_epilogue),
        cmocka_unit_test(test_fusion),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

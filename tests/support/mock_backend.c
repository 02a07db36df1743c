#include "tests/support/mock_backend.h"

#include <string.h>

#include "backend/host_memory.h"
#include "graph/graph.h"

static int64_t mock_count(const KilnArg *arg)
{
    return kiln_shape_count(&arg->shape);
}

/* The place of element i, whatever the argument's layout. */
static float *mock_at(const KilnArg *arg, int64_t i)
{
    return (float *)arg->data + (arg->layout == MOCK_REVERSED ? mock_count(arg) - 1 - i : i);
}

static void mock_log(const KilnCall *call, const KilnOp *op)
{
    Mock *mock = (Mock *)call->backend;

    if (mock->n < MOCK_LOG)
        mock->log[mock->n++] = op;
}

static void mock_add(KilnCall *call)
{
    mock_log(call, call->op);
    for (int64_t i = 0; i < mock_count(&call->outputs[0]); i++)
        *mock_at(&call->outputs[0], i) = *mock_at(&call->inputs[0], i) +
                                         *mock_at(&call->inputs[1], i);
}

/* Uses its workspace, so that sharing it with anything alive would show. */
static void mock_mul(KilnCall *call)
{
    float *scratch = call->workspace;

    mock_log(call, call->op);
    memset(call->workspace, 0x7f, call->workspace_size);
    for (int64_t i = 0; i < mock_count(&call->outputs[0]); i++) {
        scratch[0] = *mock_at(&call->inputs[0], i) * *mock_at(&call->inputs[1], i);
        *mock_at(&call->outputs[0], i) = scratch[0];
    }
}

static KilnStatus mock_mul_prepare(KilnCall *call, KilnError *err)
{
    Mock *mock = (Mock *)call->backend;

    if (mock->fail_prepare)
        return kiln_error_set(err, KILN_E_INTERNAL, "the mock refuses");
    for (int i = 0; i < call->n_inputs; i++)
        call->inputs[i].layout = KILN_PLAIN;
    call->workspace_size = MOCK_WORKSPACE;
    mock->prepared++;
    return KILN_OK;
}

static void mock_mul_release(KilnCall *call)
{
    ((Mock *)call->backend)->released++;
}

static void mock_scale(KilnCall *call)
{
    const KilnNumberAttrs *attrs = call->attrs;

    mock_log(call, call->op);
    for (int64_t i = 0; i < mock_count(&call->outputs[0]); i++)
        *mock_at(&call->outputs[0], i) = *mock_at(&call->inputs[0], i) * (float)attrs->p;
}

/* Takes what comes and gives the same. */
static KilnStatus mock_scale_prepare(KilnCall *call, KilnError *err)
{
    (void)err;
    if (!call->outputs[0].fixed)
        call->outputs[0].layout = call->inputs[0].layout;
    else
        call->inputs[0].layout = KILN_PLAIN;
    return KILN_OK;
}

/* Wants everything reversed. */
static KilnStatus mock_relu_prepare(KilnCall *call, KilnError *err)
{
    (void)err;
    call->inputs[0].layout = MOCK_REVERSED;
    if (!call->outputs[0].fixed)
        call->outputs[0].layout = MOCK_REVERSED;
    return KILN_OK;
}

static void mock_relu(KilnCall *call)
{
    mock_log(call, call->op);
    for (int64_t i = 0; i < mock_count(&call->outputs[0]); i++) {
        float x = *mock_at(&call->inputs[0], i);

        *mock_at(&call->outputs[0], i) = x > 0 ? x : 0;
    }
}

static void mock_fill(KilnCall *call)
{
    const KilnFillAttrs *attrs = call->attrs;

    mock_log(call, call->op);
    for (int64_t i = 0; i < mock_count(&call->outputs[0]); i++)
        *mock_at(&call->outputs[0], i) = (float)attrs->value;
}

static void mock_reshape(KilnCall *call)
{
    mock_log(call, call->op); /* an alias: must never be called */
}

static void mock_broadcast(KilnCall *call)
{
    mock_log(call, call->op);
    for (int64_t i = 0; i < mock_count(&call->outputs[0]); i++)
        *mock_at(&call->outputs[0], i) = *mock_at(&call->inputs[0], 0);
}

static void mock_sum(KilnCall *call)
{
    float sum = 0;

    mock_log(call, call->op);
    for (int64_t i = 0; i < mock_count(&call->inputs[0]); i++)
        sum += *mock_at(&call->inputs[0], i);
    *mock_at(&call->outputs[0], 0) = sum;
}

static float mock_step(const KilnMapStep *step, const float *reg)
{
    const float a = reg[step->a], b = reg[step->b], p = (float)step->p;

    switch (step->code) {
    case KILN_MAP_NUMBER:
        return p;
    case KILN_MAP_ADD:
        return a + b;
    case KILN_MAP_MUL:
        return a * b;
    case KILN_MAP_SCALE:
        return a * p;
    case KILN_MAP_SHIFT:
        return a + p;
    case KILN_MAP_RELU:
        return a > 0 ? a : 0;
    default:
        fail_msg("the mock has no code %d", step->code);
        return 0;
    }
}

static void mock_map(KilnCall *call)
{
    const KilnMap *map = call->attrs;

    mock_log(call, call->op);
    for (int64_t i = 0; i < mock_count(&call->outputs[0]); i++) {
        float reg[KILN_MAX_INPUTS + KILN_MAP_STEPS];

        for (int k = 0; k < map->n_inputs; k++)
            reg[k] = *mock_at(&call->inputs[k], mock_count(&call->inputs[k]) > 1 ? i : 0);
        for (int k = 0; k < map->n_steps; k++)
            reg[map->n_inputs + k] = mock_step(&map->steps[k], reg);
        for (int k = 0; k < map->n_results; k++)
            *mock_at(&call->outputs[k], i) = reg[map->results[k]];
    }
}

static void mock_ema_update(KilnCall *call)
{
    const KilnScaleAttrs *attrs = call->attrs;
    const float m = (float)attrs->factor;

    mock_log(call, call->op);
    for (int64_t i = 0; i < mock_count(&call->inputs[0]); i++) {
        float *to = mock_at(&call->inputs[0], i);

        *to = (1 - m) * *to + m * *mock_at(&call->inputs[1], i);
    }
}

static void mock_reorder(KilnCall *call)
{
    mock_log(call, NULL);
    for (int64_t i = 0; i < mock_count(&call->outputs[0]); i++)
        *mock_at(&call->outputs[0], i) = *mock_at(&call->inputs[0], i);
}

static const KilnKernel *mock_kernel(const KilnBackend *backend, const KilnOp *op)
{
    static const KilnKernel kernels[] = {
        { .op = &kiln_op_add, .run = mock_add, .in_place = 1 },
        { .op = &kiln_op_mul,
          .run = mock_mul,
          .prepare = mock_mul_prepare,
          .release = mock_mul_release },
        { .op = &kiln_op_scale, .run = mock_scale, .prepare = mock_scale_prepare, .in_place = 1 },
        { .op = &kiln_op_relu, .run = mock_relu, .prepare = mock_relu_prepare, .in_place = 1 },
        { .op = &kiln_op_fill, .run = mock_fill },
        { .op = &kiln_op_reshape, .run = mock_reshape, .alias = true },
        { .op = &kiln_op_broadcast, .run = mock_broadcast },
        { .op = &kiln_op_sum, .run = mock_sum },
        { .op = &kiln_op_map, .run = mock_map, .in_place = 1 },
        { .op = &kiln_op_ema_update, .run = mock_ema_update },
    };

    (void)backend;
    for (size_t i = 0; i < KILN_COUNT(kernels); i++) {
        if (kernels[i].op == op)
            return &kernels[i];
    }
    return NULL;
}

static size_t mock_layout_bytes(const KilnBackend *backend, KilnLayout layout, KilnDType dtype,
                                const KilnShape *shape)
{
    (void)backend;
    (void)layout;
    return (size_t)kiln_shape_count(shape) * kiln_dtype_size(dtype);
}

static const KilnKernel mock_reorder_kernel = { .run = mock_reorder };

const KilnBackendOps mock_ops = { .name = "mock",
                                  .memory = &kiln_host_memory,
                                  .kernel = mock_kernel,
                                  .layout_bytes = mock_layout_bytes,
                                  .reorder = &mock_reorder_kernel };

int mock_runs(const Mock *mock, const KilnOp *op)
{
    int n = 0;

    for (size_t i = 0; i < mock->n; i++)
        n += mock->log[i] == op ? 1 : 0;
    return n;
}

/* Fuses elementwise operations into the kernel that produces their input: activations and residuals
 * after a product or a convolution, and their gradients after the product that computes the
 * gradient of their result. The kernel runs them on each piece of its output while it is in cache.
 */
#include "graph/passes/passes.h"

#include <string.h>

#include "graph/op.h"

enum {
    /* How many nodes early something may be computed: longer, and holding its result in memory
     * costs more than the fusion saves. */
    REACH = 16,
    FIRST_STEP = 2 * KILN_MAX_INPUTS /* registers of steps, until the inputs are counted */
};

/* What has been fused to a producer so far. */
typedef struct Chain {
    KilnRewrite *rewrite;
    KilnNode *producer;
    bool gives_f32; /* the kernel can produce f32 where its own result is bf16 */
    KilnTensor *inputs[KILN_MAX_INPUTS]; /* of the map: the producer's result, then others */
    KilnTensor *made[KILN_MAP_STEPS];    /* result of each step */
    KilnNode *joined[KILN_MAP_STEPS];
    KilnMap map; /* n_inputs, n_steps, steps; step i is register FIRST_STEP + i */
} Chain;

/* The register of a tensor that the map reads or computes; -1: none. */
static int register_of(const Chain *chain, const KilnTensor *tensor)
{
    for (int i = 0; i < chain->map.n_inputs; i++)
        if (chain->inputs[i] == tensor)
            return i;
    for (int i = 0; i < chain->map.n_steps; i++)
        if (chain->made[i] == tensor)
            return FIRST_STEP + i;
    return -1;
}

static bool is_float(const Chain *chain, const KilnTensor *tensor)
{
    return tensor->dtype == chain->rewrite->graph->float_type || tensor->dtype == KILN_BF16;
}

/* Whether the value is already available at the producer, before `node`. */
static bool known_before(const Chain *chain, const KilnTensor *tensor, const KilnNode *node)
{
    const KilnNode *made = chain->rewrite->made[tensor->id];

    if (made != NULL)
        return made->index < chain->producer->index;
    return !kiln_rewrite_written(chain->rewrite, tensor, (size_t)chain->producer->index,
                                 (size_t)node->index);
}

/* Whether the producer can give a result of this type: its own, or f32 sums that would have been
 * rounded to bf16. */
static bool gives(const Chain *chain, KilnDType type)
{
    const KilnDType own = chain->producer->outputs[0]->dtype;

    return type == own || (chain->gives_f32 && own == KILN_BF16 && type == KILN_F32);
}

/* Whether a result can be written at the producer's position: its destination must not change
 * before the nodes in between have run. */
static bool can_move(const Chain *chain, const KilnNode *node)
{
    if (!kiln_tensor_has_dest(node->outputs[0]))
        return true;
    for (int i = chain->producer->index + 1; i < node->index; i++)
        if (chain->rewrite->nodes[i] != NULL && chain->rewrite->nodes[i]->op->updates != 0)
            return false;
    return true;
}

static bool can_join(const Chain *chain, const KilnNode *node, KilnMapStep *ret)
{
    const KilnTensor *y = chain->producer->outputs[0];
    bool reads_it = false;

    memset(ret, 0, sizeof(*ret));
    if (node->op->map == NULL || node->n_outputs != 1 || node->op->updates != 0 ||
        node->segment != chain->producer->segment ||
        !kiln_shape_equal(&node->outputs[0]->shape, &y->shape) ||
        !gives(chain, node->outputs[0]->dtype) || !can_move(chain, node) ||
        !node->op->map(node, ret))
        return false;
    for (int i = 0; i < node->n_inputs; i++) {
        const KilnTensor *input = node->inputs[i];

        if (input == NULL || !is_float(chain, input))
            return false;
        int reg = register_of(chain, input);
        reads_it |= reg == 0 || reg >= FIRST_STEP;
        /* A variable in a register may be updated before this node reads it again. */
        if (reg != 0 && reg < FIRST_STEP && !known_before(chain, input, node))
            return false;
    }
    return reads_it;
}

/* Appends the node's step; false when the map or the producer is full. */
static bool append(Chain *chain, KilnNode *node, KilnMapStep step)
{
    int32_t *const operands[] = { &step.a, &step.b, &step.c };
    const int reads = kiln_map_reads((KilnMapCode)step.code);

    if (chain->map.n_steps == KILN_MAP_STEPS)
        return false;
    for (int i = 0; i < reads; i++) {
        KilnTensor *input = node->inputs[*operands[i]];
        int reg = register_of(chain, input);

        if (reg < 0) {
            if (chain->producer->n_inputs + chain->map.n_inputs - 1 == KILN_MAX_INPUTS)
                return false;
            reg = chain->map.n_inputs++;
            chain->inputs[reg] = input;
        }
        *operands[i] = reg;
    }
    chain->made[chain->map.n_steps] = node->outputs[0];
    chain->joined[chain->map.n_steps] = node;
    chain->map.steps[chain->map.n_steps++] = step;
    return true;
}

/* Whether a node outside the chain reads the value. */
static bool is_read(const Chain *chain, const KilnTensor *tensor)
{
    int reads = chain->rewrite->reads[tensor->id];

    for (int i = 0; i < chain->map.n_steps; i++)
        for (int k = 0; k < chain->joined[i]->n_inputs; k++)
            reads -= chain->joined[i]->inputs[k] == tensor;
    return reads > 0 || kiln_rewrite_visible(chain->rewrite, tensor);
}

/* The values that the map must return, with their registers; false when there are too many. */
static bool find_results(Chain *chain, KilnTensor **ret)
{
    const int own = chain->producer->n_outputs;

    chain->map.n_results = 0;
    for (int i = -1; i < chain->map.n_steps; i++) {
        KilnTensor *made = i < 0 ? chain->inputs[0] : chain->made[i];

        if (!is_read(chain, made))
            continue;
        if (chain->map.n_results == KILN_MAP_RESULTS ||
            own - 1 + chain->map.n_results == KILN_MAX_OUTPUTS)
            return false;
        ret[chain->map.n_results] = made;
        chain->map.results[chain->map.n_results++] = i < 0 ? 0 : FIRST_STEP + i;
    }
    return chain->map.n_results > 0;
}

/* Fuses the nodes that follow the producer, as far as they fit. */
static void grow(Chain *chain)
{
    const KilnRewrite *rewrite = chain->rewrite;
    const size_t first = (size_t)chain->producer->index + 1;

    for (size_t i = first; i < rewrite->n_nodes && i < first + REACH; i++) {
        KilnNode *node = rewrite->nodes[i];
        const Chain before = *chain;
        KilnTensor *results[KILN_MAP_RESULTS];
        KilnMapStep step;

        if (node == NULL || !can_join(chain, node, &step))
            continue;
        if (!append(chain, node, step) || !find_results(chain, results))
            *chain = before;
    }
}

/* Registers of steps follow those of the inputs. */
static int32_t settled(const Chain *chain, int32_t reg)
{
    return reg >= FIRST_STEP ? reg - FIRST_STEP + chain->map.n_inputs : reg;
}

static void settle_registers(Chain *chain)
{
    for (int i = 0; i < chain->map.n_steps; i++) {
        KilnMapStep *step = &chain->map.steps[i];

        step->a = settled(chain, step->a);
        step->b = settled(chain, step->b);
        step->c = settled(chain, step->c);
    }
    for (int i = 0; i < chain->map.n_results; i++)
        chain->map.results[i] = settled(chain, chain->map.results[i]);
}

/* Attaches the map to the producer and removes the fused nodes. */
static KilnStatus join(Chain *chain, KilnError *err)
{
    KilnNode *producer = chain->producer;
    KilnTensor *results[KILN_MAP_RESULTS] = { NULL };
    KilnMap *map = kiln_arena_alloc(chain->rewrite->arena, sizeof(*map));

    if (map == NULL)
        return kiln_error_nomem(err, sizeof(*map));
    if (!find_results(chain, results)) /* the result is never read */
        return KILN_OK;
    settle_registers(chain);
    *map = chain->map;
    for (int i = 1; i < map->n_inputs; i++)
        producer->inputs[producer->n_inputs++] = chain->inputs[i];
    producer->outputs[0] = results[0];
    for (int i = 1; i < map->n_results; i++)
        producer->outputs[producer->n_outputs++] = results[i];
    producer->epilogue = map;
    for (int i = 0; i < map->n_steps; i++) {
        chain->rewrite->made[chain->made[i]->id] = producer;
        chain->rewrite->nodes[chain->joined[i]->index] = NULL;
    }
    return KILN_OK;
}

KilnStatus kiln_pass_fuse_epilogue(KilnRewrite *rewrite, KilnError *err)
{
    const KilnBackend *backend = rewrite->graph->backend;

    for (size_t i = 0; i < rewrite->n_nodes; i++) {
        KilnNode *node = rewrite->nodes[i];
        const KilnKernel *kernel = node != NULL ? backend->ops->kernel(backend, node->op) : NULL;

        if (kernel == NULL || !kernel->epilogue || node->epilogue != NULL || node->n_outputs < 1)
            continue;
        Chain chain = { .rewrite = rewrite,
                        .producer = node,
                        .gives_f32 = kernel->epilogue_gives_f32,
                        .inputs = { node->outputs[0] } };
        chain.map.n_inputs = 1;
        grow(&chain);
        if (chain.map.n_steps > 0 && join(&chain, err) < 0)
            return err->status;
    }
    return KILN_OK;
}

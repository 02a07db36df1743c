/* Runs maps: loads a tile of elements, passes it through all steps while it is in the first-level
 * cache, and stores it. The loops of the steps are in isa/map.c. */
#include "backend/cpu/elementwise/map.h"

#include <stdlib.h>
#include <string.h>

#include "backend/cpu/elementwise/map_bind.h"

/* ---- Running ---------------------------------------------------------------------------- */

typedef float Slot[KILN_MAP_TILE];

/* Position of element `begin` in an input: its index over the axes, and its offset. */
static int64_t locate(const KilnBoundMap *bound, const KilnBoundInput *input, int64_t begin,
                      int64_t *index)
{
    int64_t at = 0;

    for (int axis = bound->rank - 1; axis >= 0; axis--) {
        index[axis] = begin % bound->dim[axis];
        begin /= bound->dim[axis];
        at += index[axis] * input->stride[axis];
    }
    return at;
}

/* Advances to the start of the next row. */
static int64_t next_row(const KilnBoundMap *bound, const KilnBoundInput *input, int64_t at,
                        int64_t *index)
{
    const int inner = bound->rank - 1;

    at -= index[inner] * input->stride[inner];
    index[inner] = 0;
    for (int axis = inner - 1; axis >= 0; axis--) {
        at += input->stride[axis];
        if (++index[axis] < bound->dim[axis])
            break;
        at -= input->stride[axis] * bound->dim[axis];
        index[axis] = 0;
    }
    return at;
}

/* Loads n elements from element `begin` on, by strides. */
static void walk(const KilnBoundMap *bound, const KilnBoundInput *input, const void *data, float *y,
                 int64_t begin, int64_t n)
{
    const size_t size = kiln_dtype_size(input->dtype);
    const int inner = bound->rank - 1;
    const int64_t row = inner >= 0 ? bound->dim[inner] : 1;
    const int64_t stride = inner >= 0 ? input->stride[inner] : 0;
    int64_t index[KILN_MAX_RANK] = { 0 };
    int64_t at = locate(bound, input, begin, index);
    int64_t run = inner >= 0 && row - index[inner] < n ? row - index[inner] : n;

    for (;;) {
        bound->loops->load(y, (const unsigned char *)data + (size_t)at * size, input->dtype, stride,
                           run);
        n -= run;
        if (n == 0)
            return;
        y += run;
        run = row < n ? row : n;
        at = next_row(bound, input, at, index);
    }
}

/* n elements from `begin` on, in place, if they are contiguous; else NULL. */
static const float *row_part(const KilnBoundMap *bound, const KilnBoundInput *input,
                             const void *data, int64_t begin, int64_t n)
{
    const int inner = bound->rank - 1;
    int64_t index[KILN_MAX_RANK] = { 0 };

    if (input->dtype != KILN_F32 || inner < 0 || input->stride[inner] != 1)
        return NULL;
    const int64_t at = locate(bound, input, begin, index);
    return index[inner] + n <= bound->dim[inner] ? (const float *)data + at : NULL;
}

/* Steps run over whole groups, so pads past n with numbers. */
static void fill_group(float *tile, int64_t n)
{
    while (n % KILN_MAP_GROUP != 0)
        tile[n++] = 0.0f;
}

/* Elements begin ... begin + n - 1 of an input, in place or loaded. `expanded`: the slots of
 * periodic inputs hold two tiles of them. */
static const float *input_tile(const KilnBoundMap *bound, const KilnBoundInput *input,
                               const void *data, Slot *slots, bool expanded, int64_t begin,
                               int64_t n)
{
    const unsigned char *same = (const unsigned char *)data +
                                (size_t)begin * kiln_dtype_size(input->dtype);
    const bool whole = n % KILN_MAP_GROUP == 0;
    const float *there = NULL;
    float *tile = slots[input->slot];

    if (expanded && input->access == KILN_ACCESS_PERIODIC)
        return tile + begin % input->period;
    if (whole && input->access == KILN_ACCESS_SAME && input->dtype == KILN_F32)
        there = (const float *)(const void *)same;
    else if (whole && input->access != KILN_ACCESS_SAME)
        there = row_part(bound, input, data, begin, n);
    if (there != NULL)
        return there;
    if (input->access == KILN_ACCESS_SAME)
        bound->loops->load(tile, same, input->dtype, 1, n);
    else
        walk(bound, input, data, tile, begin, n);
    fill_group(tile, n);
    return tile;
}

static void *output_at(const KilnArg *arg, int64_t begin)
{
    return (unsigned char *)arg->data + (size_t)begin * kiln_dtype_size(arg->dtype);
}

static void store(const KilnBoundMap *bound, const KilnArg *arg, const float *tile, int64_t begin,
                  int64_t n)
{
    void *to = output_at(arg, begin);

    if (arg->dtype == KILN_BF16)
        bound->loops->to_bf16(to, tile, n);
    else if (to != tile)
        memcpy(to, tile, (size_t)n * sizeof(float));
}

static void run_tile(const KilnBoundMap *bound, const KilnCall *call, const float *given,
                     Slot *slots, bool expanded, int64_t begin, int64_t n)
{
    const int64_t groups = (n + KILN_MAP_GROUP - 1) / KILN_MAP_GROUP * KILN_MAP_GROUP;
    const float *reg[KILN_BOUND_REGISTERS];

    for (int i = 0; i < bound->n_inputs; i++) {
        const KilnBoundInput *input = &bound->inputs[i];

        reg[i] = input->arg >= 0 ? input_tile(bound, input, call->inputs[input->arg].data, slots,
                                              expanded, begin, n)
                                 : input_tile(bound, input, given, slots, expanded, 0, n);
    }
    for (int i = 0; i < bound->n_steps; i++) {
        const KilnBoundStep *step = &bound->steps[i];
        float *y = slots[step->slot];

        if (step->direct >= 0 && groups == n)
            y = output_at(&call->outputs[bound->results[step->direct].arg], begin);
        step->loop(y, reg[step->a], reg[step->b], reg[step->c], step->p, step->q, groups);
        reg[bound->n_inputs + i] = y;
    }
    /* The first result last: it may overwrite an input, which another result may be a copy of. */
    for (int r = bound->n_results; r-- > 0;)
        store(bound, &call->outputs[bound->results[r].arg], reg[bound->results[r].reg], begin, n);
}

/* Loads two tiles of a periodic input, so that a whole tile can start anywhere in its period. */
static void expand(const KilnBoundMap *bound, const KilnBoundInput *input, const KilnCall *call,
                   float *tiles)
{
    const int64_t period = input->period, size = 2 * KILN_MAP_TILE;

    walk(bound, input, call->inputs[input->arg].data, tiles, 0, period);
    for (int64_t done = period; done < size; done += period)
        memcpy(tiles + done, tiles,
               (size_t)(size - done < period ? size - done : period) * sizeof(float));
}

/* Runs elements begin ... begin + n - 1; `given`: the tile of an epilogue's register 0. */
static void run_range(const KilnBoundMap *bound, const KilnCall *call, const float *given,
                      int64_t begin, int64_t n)
{
    _Alignas(64) Slot slots[KILN_BOUND_SLOTS];
    const bool expanded = n > KILN_MAP_TILE;

    for (int i = 0; i < bound->n_inputs && expanded; i++)
        if (bound->inputs[i].access == KILN_ACCESS_PERIODIC)
            expand(bound, &bound->inputs[i], call, slots[bound->inputs[i].slot]);
    for (int64_t done = 0; done < n; done += KILN_MAP_TILE)
        run_tile(bound, call, given != NULL ? given + done : NULL, slots, expanded, begin + done,
                 n - done < KILN_MAP_TILE ? n - done : KILN_MAP_TILE);
}

/* ---- Layouts ------------------------------------------------------------------------------ */

static bool same_count(const KilnArg *arg, const KilnArg *y)
{
    return kiln_shape_count(&arg->shape) == kiln_shape_count(&y->shape);
}

/* Whether zeros give zeros, so that padding stays zero. */
static bool keeps_zero(const KilnCall *call, const KilnMap *map)
{
    const KilnMapLoops *loops = kiln_cpu(call)->loops->map;
    _Alignas(64) float reg[KILN_BOUND_REGISTERS][KILN_MAP_GROUP] = { { 0.0f } };

    for (int i = 0; i < map->n_steps; i++) {
        const KilnMapStep *step = &map->steps[i];

        loops->step[step->code](reg[map->n_inputs + i], reg[step->a], reg[step->b], reg[step->c],
                                (float)step->p, (float)step->q, KILN_MAP_GROUP);
    }
    for (int i = 0; i < map->n_results; i++)
        if (reg[map->results[i]][0] != 0.0f)
            return false;
    return true;
}

/* Whether the map supports outputs in this layout, with inputs of their shape in the same layout
 * and others plain. */
static bool layout_fits(const KilnCall *call, const KilnMap *map, int first_input, int first_output,
                        KilnLayout layout)
{
    const KilnArg *y = &call->outputs[0];
    const KilnBackendOps *ops = call->backend->ops;
    bool repeats = false;

    if (layout == KILN_PLAIN)
        return true;
    for (int i = first_output; i < call->n_outputs; i++)
        if (call->outputs[i].fixed || call->outputs[i].dtype != y->dtype)
            return false;
    for (int i = first_input; i < call->n_inputs; i++) {
        const KilnArg *x = &call->inputs[i];

        if (same_count(x, y) && (x->dtype != y->dtype || !kiln_shape_equal(&x->shape, &y->shape)))
            return false;
        repeats |= !same_count(x, y);
    }

    const bool padded = ops->layout_bytes(call->backend, layout, y->dtype, &y->shape) !=
                        ops->layout_bytes(call->backend, KILN_PLAIN, y->dtype, &y->shape);

    if (padded)
        return !repeats && keeps_zero(call, map);
    return !repeats || kiln_layout_block(&kiln_cpu(call)->dnnl, layout, &y->shape) > 0;
}

/* Gives output 0's layout to all outputs, and to inputs of its shape, from the given arguments on.
 */
static void spread_layout(KilnCall *call, int first_input, int first_output)
{
    const KilnArg *y = &call->outputs[0];

    for (int i = first_input; i < call->n_inputs; i++)
        call->inputs[i].layout = same_count(&call->inputs[i], y) ? y->layout : KILN_PLAIN;
    for (int i = first_output; i < call->n_outputs; i++)
        kiln_output_layout(&kiln_cpu(call)->dnnl, &call->outputs[i], y->layout);
}

/* ---- Elementwise kernels ------------------------------------------------------------------- */

static void map_of_call(const KilnCall *call, KilnMap *ret)
{
    const KilnNode node = { .op = call->op,
                            .n_inputs = call->n_inputs,
                            .attrs = (void *)call->attrs };

    kiln_map_of_node(&node, ret);
}

KilnStatus kiln_cpu_map_prepare(KilnCall *call, KilnError *err)
{
    KilnArg *y = &call->outputs[0];
    KilnLayout layout = KILN_PLAIN;
    KilnMap map;

    map_of_call(call, &map);
    for (int i = 0; i < call->n_inputs && layout == KILN_PLAIN && !y->fixed; i++)
        if (same_count(&call->inputs[i], y))
            layout = call->inputs[i].layout;
    if (!layout_fits(call, &map, 0, 1, layout))
        layout = KILN_PLAIN;
    kiln_output_layout(&kiln_cpu(call)->dnnl, y, layout);
    spread_layout(call, 0, 1);
    call->priv = kiln_map_bind(call, &map, false);
    return call->priv != NULL ? KILN_OK : kiln_error_nomem(err, sizeof(KilnBoundMap));
}

static void run_part(void *context, int64_t begin, int64_t end)
{
    const KilnCall *call = context;

    run_range(call->priv, call, NULL, begin, end - begin);
}

void kiln_cpu_map_run(KilnCall *call)
{
    const KilnBoundMap *bound = call->priv;
    /* Below this, a thread costs more than it gains. */
    const int64_t work = 16384, grain = work / (bound->n_steps + 1);

    kiln_parallel(call->backend->threads, bound->count, grain, KILN_MAP_TILE, run_part, call);
}

void kiln_cpu_map_release(KilnCall *call)
{
    free(call->priv);
    call->priv = NULL;
}

/* ---- Epilogues ---------------------------------------------------------------------- */

bool kiln_cpu_epilogue_fits(const KilnCall *call, KilnLayout layout)
{
    return call->epilogue == NULL ||
           layout_fits(call, call->epilogue, call->op->n_inputs, call->op->n_outputs, layout);
}

KilnStatus kiln_cpu_epilogue_prepare(KilnCall *call, KilnError *err)
{
    if (call->epilogue == NULL)
        return KILN_OK;
    if (!kiln_cpu_epilogue_fits(call, call->outputs[0].layout))
        return kiln_error_set(err, KILN_E_INTERNAL, "the epilogue needs another layout");
    spread_layout(call, call->op->n_inputs, call->op->n_outputs);
    call->epilogue_priv = kiln_map_bind(call, call->epilogue, true);
    return call->epilogue_priv != NULL ? KILN_OK : kiln_error_nomem(err, sizeof(KilnBoundMap));
}

void kiln_cpu_epilogue(const KilnCall *call, const float *tile, int64_t begin, int64_t n)
{
    if (call->epilogue != NULL)
        run_range(call->epilogue_priv, call, tile, begin, n);
}

void kiln_cpu_epilogue_release(KilnCall *call)
{
    free(call->epilogue_priv);
    call->epilogue_priv = NULL;
}

/* The map machine: a tile of elements is loaded, goes through all steps while it
 * is in the first level of cache, and is stored. */
#include "backend/cpu/map.h"

#include <stdlib.h>
#include <string.h>

#include "backend/cpu/cpu.h"

enum {
    TILE = KILN_MAP_TILE,
    REGISTERS = KILN_MAX_INPUTS + KILN_MAP_STEPS,
    SLOTS = 2 * KILN_MAX_INPUTS + KILN_MAP_STEPS, /* an expanded input takes two */
    NO_SLOT = -1
};

/* How an input comes into a tile. */
typedef enum Access {
    ACCESS_SAME,     /* lies in the outputs' order: read where it is, if f32 */
    ACCESS_PERIODIC, /* repeats after at most a tile: two tiles of it are made once */
    ACCESS_WALK      /* by strides */
} Access;

typedef struct Input {
    int arg; /* of the call; -1: the tile that an epilogue is given */
    KilnDType dtype;
    Access access;
    int64_t stride[KILN_MAX_RANK]; /* in elements, over the map's axes; 0: repeated */
    int64_t period;                /* elements after which it repeats */
    int slot;
} Input;

typedef struct Step {
    KilnMapLoop loop;
    int a, b, c, slot;
    float p, q;
    int direct; /* result that it may write where it belongs; -1: none */
} Step;

typedef struct Result {
    int reg, arg;
    KilnDType dtype;
} Result;

/* A map bound to the arguments of a call. */
typedef struct Bound {
    const KilnMapLoops *loops;
    int rank; /* axes of the outputs as they lie in memory, joined where all inputs allow */
    int64_t dim[KILN_MAX_RANK];
    int64_t count; /* elements in memory, padding included */
    int n_inputs, n_steps, n_results;
    Input inputs[KILN_MAX_INPUTS];
    Step steps[KILN_MAP_STEPS];
    Result results[KILN_MAP_RESULTS];
} Bound;

/* ---- Axes ---------------------------------------------------------------------------- */

/* Outputs of `shape` in a blocked layout lie as [N, C/block, H, W, block]. */
static int64_t block_of(const KilnCall *call, KilnLayout layout, const KilnShape *shape)
{
    if (layout == KILN_PLAIN || shape->rank != 4)
        return 0;
    switch (kiln_layout_format(&kiln_cpu(call)->dnnl, layout, shape)) {
    case KILN_MD_C16:
        return 16;
    case KILN_MD_C8:
        return 8;
    case KILN_MD_ANY:
    case KILN_MD_PLAIN:
        break;
    }
    return 0;
}

/* Strides of a plain operand over the axes of `shape`: 0 where it is repeated. */
static void plain_strides(const KilnShape *operand, const KilnShape *shape, int64_t *stride)
{
    int64_t size = 1;

    for (int axis = shape->rank - 1, own = operand->rank - 1; axis >= 0; axis--, own--) {
        const int64_t dim = own >= 0 ? operand->dim[own] : 1;

        stride[axis] = dim == 1 ? 0 : size;
        size *= dim;
    }
}

/* From strides over [N, H, W, C] to those over [N, C/block, H, W, block]. */
static void block_strides(int64_t *stride, int64_t block)
{
    const int64_t n = stride[0], h = stride[1], w = stride[2], c = stride[3];
    const int64_t blocked[] = { n, c * block, h, w, c };

    memcpy(stride, blocked, sizeof(blocked));
}

/* Set the map's axes, and the inputs' strides over them. An input of the outputs'
 * own shape and layout lies as they do. */
static void set_axes(Bound *bound, const KilnCall *call, const KilnShape *shape, KilnLayout layout)
{
    const int64_t block = block_of(call, layout, shape);
    int64_t size = 1;

    bound->rank = shape->rank;
    memcpy(bound->dim, shape->dim, (size_t)shape->rank * sizeof(shape->dim[0]));
    if (block > 0) {
        const int64_t dims[] = { shape->dim[0], (shape->dim[3] + block - 1) / block, shape->dim[1],
                                 shape->dim[2], block };

        bound->rank = 5;
        memcpy(bound->dim, dims, sizeof(dims));
    }
    for (int i = 0; i < bound->n_inputs; i++) {
        Input *input = &bound->inputs[i];
        const KilnArg *arg = input->arg >= 0 ? &call->inputs[input->arg] : NULL;

        if (arg == NULL || kiln_shape_count(&arg->shape) == kiln_shape_count(shape))
            continue;
        plain_strides(&arg->shape, shape, input->stride);
        if (block > 0)
            block_strides(input->stride, block);
        input->access = ACCESS_WALK;
    }
    for (int axis = bound->rank - 1; axis >= 0; axis--) {
        for (int i = 0; i < bound->n_inputs; i++)
            if (bound->inputs[i].access == ACCESS_SAME)
                bound->inputs[i].stride[axis] = size;
        size *= bound->dim[axis];
    }
}

/* Whether axis `inner` continues axis `outer` in every input. */
static bool can_join(const Bound *bound, int outer, int inner)
{
    for (int i = 0; i < bound->n_inputs; i++) {
        const int64_t *stride = bound->inputs[i].stride;

        if (stride[outer] != stride[inner] * bound->dim[inner])
            return false;
    }
    return true;
}

static void copy_axis(Bound *bound, int to, int from)
{
    bound->dim[to] = bound->dim[from];
    for (int i = 0; i < bound->n_inputs; i++)
        bound->inputs[i].stride[to] = bound->inputs[i].stride[from];
}

/* Leave out axes of one, and join those that lie on in every input. */
static void join_axes(Bound *bound)
{
    int n = 0;

    for (int axis = 0; axis < bound->rank; axis++) {
        if (bound->dim[axis] == 1)
            continue;
        if (n > 0 && can_join(bound, n - 1, axis)) {
            const int64_t outer = bound->dim[n - 1];

            copy_axis(bound, n - 1, axis);
            bound->dim[n - 1] *= outer;
        } else {
            copy_axis(bound, n++, axis);
        }
    }
    bound->rank = n;
}

/* How each input repeats: it depends on the axes from the first that moves it. */
static void find_periods(Bound *bound)
{
    for (int i = 0; i < bound->n_inputs; i++) {
        Input *input = &bound->inputs[i];
        int first = 0;

        while (first < bound->rank && input->stride[first] == 0)
            first++;
        input->period = 1;
        for (int axis = first; axis < bound->rank; axis++)
            input->period *= bound->dim[axis];
        if (input->access == ACCESS_WALK && input->period <= TILE)
            input->access = ACCESS_PERIODIC;
    }
}

/* ---- Slots ---------------------------------------------------------------------------- */

/* Index of the last step that reads the register; n_steps: it is a result. */
static int last_read(const KilnMap *map, int reg)
{
    int last = -1;

    for (int i = 0; i < map->n_steps; i++)
        if (kiln_map_step_reads(&map->steps[i], reg))
            last = i;
    for (int i = 0; i < map->n_results; i++)
        if (map->results[i] == reg)
            last = map->n_steps;
    return last;
}

static int take_slot(bool *used, int n)
{
    for (int slot = 0; slot + n <= SLOTS; slot++) {
        if (used[slot] || (n == 2 && used[slot + 1]))
            continue;
        used[slot] = used[slot + n - 1] = true;
        return slot;
    }
    return NO_SLOT; /* not reached: there are as many as registers */
}

/* Tiles for the registers, used again when a register is read no more. */
static void assign_slots(Bound *bound, const KilnMap *map)
{
    bool used[SLOTS] = { false };
    int slot_of[REGISTERS];

    for (int i = 0; i < bound->n_inputs; i++)
        slot_of[i] = bound->inputs[i].slot =
            take_slot(used, bound->inputs[i].access == ACCESS_PERIODIC ? 2 : 1);
    for (int i = 0; i < bound->n_steps; i++) {
        for (int reg = 0; reg < bound->n_inputs + i; reg++)
            if (last_read(map, reg) == i &&
                (reg >= bound->n_inputs || bound->inputs[reg].access != ACCESS_PERIODIC))
                used[slot_of[reg]] = false;
        slot_of[bound->n_inputs + i] = bound->steps[i].slot = take_slot(used, 1);
    }
}

/* ---- Binding --------------------------------------------------------------------------- */

/* Whether a later step reads an input. */
static bool inputs_read_after(const KilnMap *map, int step)
{
    for (int reg = 0; reg < map->n_inputs; reg++)
        if (last_read(map, reg) > step)
            return true;
    return false;
}

/* A step may write its result where it belongs if no later one reads what lies
 * there: output 0 may lie over any input. */
static int direct_result(const Bound *bound, const KilnMap *map, int step)
{
    for (int r = 0; r < map->n_results; r++)
        if (map->results[r] == map->n_inputs + step && bound->results[r].dtype == KILN_F32 &&
            (r > 0 || !inputs_read_after(map, step)))
            return r;
    return -1;
}

static void bind_steps(Bound *bound, const KilnMap *map)
{
    for (int i = 0; i < map->n_steps; i++) {
        const KilnMapStep *step = &map->steps[i];

        bound->steps[i] = (Step) {
            .loop = bound->loops->step[step->code],
            .a = step->a,
            .b = step->b,
            .c = step->c,
            .p = (float)step->p,
            .q = (float)step->q,
            .direct = direct_result(bound, map, i),
        };
    }
}

/* An epilogue's register 0 is the tile that it is given; its other inputs and results
 * are the arguments after the operation's own. */
static Bound *bind(const KilnCall *call, const KilnMap *map, bool epilogue)
{
    const int n_inputs = epilogue ? call->op->n_inputs : 1;
    const int n_outputs = epilogue ? call->op->n_outputs : 1;
    const KilnArg *y = &call->outputs[0];
    Bound *bound = calloc(1, sizeof(*bound));

    if (bound == NULL)
        return NULL;
    bound->loops = kiln_cpu(call)->loops->map;
    bound->count = (int64_t)(y->bytes / kiln_dtype_size(y->dtype));
    bound->n_inputs = map->n_inputs;
    bound->n_steps = map->n_steps;
    bound->n_results = map->n_results;
    for (int i = 0; i < map->n_inputs; i++) {
        const int arg = i > 0 ? n_inputs + i - 1 : epilogue ? -1 : 0;

        bound->inputs[i] = (Input) { .arg = arg,
                                     .dtype = arg >= 0 ? call->inputs[arg].dtype : KILN_F32 };
    }
    for (int i = 0; i < map->n_results; i++) {
        const int arg = i > 0 ? n_outputs + i - 1 : 0;

        bound->results[i] = (Result) { map->results[i], arg, call->outputs[arg].dtype };
    }
    bind_steps(bound, map);
    set_axes(bound, call, &y->shape, y->layout);
    join_axes(bound);
    find_periods(bound);
    assign_slots(bound, map);
    return bound;
}

/* ---- Running ---------------------------------------------------------------------------- */

typedef float Slot[TILE];

/* Where element `begin` lies in an input: its index over the axes, and its place. */
static int64_t locate(const Bound *bound, const Input *input, int64_t begin, int64_t *index)
{
    int64_t at = 0;

    for (int axis = bound->rank - 1; axis >= 0; axis--) {
        index[axis] = begin % bound->dim[axis];
        begin /= bound->dim[axis];
        at += index[axis] * input->stride[axis];
    }
    return at;
}

/* Go on to the start of the next row. */
static int64_t next_row(const Bound *bound, const Input *input, int64_t at, int64_t *index)
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

/* n elements from element `begin` on, by strides. */
static void walk(const Bound *bound, const Input *input, const void *data, float *y, int64_t begin,
                 int64_t n)
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

/* n elements from `begin` on where they lie, if they lie together; else NULL. */
static const float *row_part(const Bound *bound, const Input *input, const void *data,
                             int64_t begin, int64_t n)
{
    const int inner = bound->rank - 1;
    int64_t index[KILN_MAX_RANK] = { 0 };

    if (input->dtype != KILN_F32 || inner < 0 || input->stride[inner] != 1)
        return NULL;
    const int64_t at = locate(bound, input, begin, index);
    return index[inner] + n <= bound->dim[inner] ? (const float *)data + at : NULL;
}

/* The steps run over whole groups: what is beyond n must be numbers, not leftovers. */
static void fill_group(float *tile, int64_t n)
{
    while (n % KILN_MAP_GROUP != 0)
        tile[n++] = 0.0f;
}

/* Elements begin ... begin + n - 1 of an input: where they lie, or loaded. `expanded`:
 * the slots of periodic inputs hold two tiles of them. */
static const float *input_tile(const Bound *bound, const Input *input, const void *data,
                               Slot *slots, bool expanded, int64_t begin, int64_t n)
{
    const unsigned char *same = (const unsigned char *)data +
                                (size_t)begin * kiln_dtype_size(input->dtype);
    const bool whole = n % KILN_MAP_GROUP == 0;
    const float *there = NULL;
    float *tile = slots[input->slot];

    if (expanded && input->access == ACCESS_PERIODIC)
        return tile + begin % input->period;
    if (whole && input->access == ACCESS_SAME && input->dtype == KILN_F32)
        there = (const float *)(const void *)same;
    else if (whole && input->access != ACCESS_SAME)
        there = row_part(bound, input, data, begin, n);
    if (there != NULL)
        return there;
    if (input->access == ACCESS_SAME)
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

static void store(const Bound *bound, const KilnArg *arg, const float *tile, int64_t begin,
                  int64_t n)
{
    void *to = output_at(arg, begin);

    if (arg->dtype == KILN_BF16)
        bound->loops->to_bf16(to, tile, n);
    else if (to != tile)
        memcpy(to, tile, (size_t)n * sizeof(float));
}

static void run_tile(const Bound *bound, const KilnCall *call, const float *given, Slot *slots,
                     bool expanded, int64_t begin, int64_t n)
{
    const int64_t groups = (n + KILN_MAP_GROUP - 1) / KILN_MAP_GROUP * KILN_MAP_GROUP;
    const float *reg[REGISTERS];

    for (int i = 0; i < bound->n_inputs; i++) {
        const Input *input = &bound->inputs[i];

        reg[i] = input->arg >= 0 ? input_tile(bound, input, call->inputs[input->arg].data, slots,
                                              expanded, begin, n)
                                 : input_tile(bound, input, given, slots, expanded, 0, n);
    }
    for (int i = 0; i < bound->n_steps; i++) {
        const Step *step = &bound->steps[i];
        float *y = slots[step->slot];

        if (step->direct >= 0 && groups == n)
            y = output_at(&call->outputs[bound->results[step->direct].arg], begin);
        step->loop(y, reg[step->a], reg[step->b], reg[step->c], step->p, step->q, groups);
        reg[bound->n_inputs + i] = y;
    }
    for (int r = 0; r < bound->n_results; r++)
        store(bound, &call->outputs[bound->results[r].arg], reg[bound->results[r].reg], begin, n);
}

/* Two tiles of a periodic input, from any element of its period on a whole tile. */
static void expand(const Bound *bound, const Input *input, const KilnCall *call, float *tiles)
{
    const int64_t period = input->period, size = 2 * TILE;

    walk(bound, input, call->inputs[input->arg].data, tiles, 0, period);
    for (int64_t done = period; done < size; done += period)
        memcpy(tiles + done, tiles,
               (size_t)(size - done < period ? size - done : period) * sizeof(float));
}

/* Elements begin ... begin + n - 1; `given`: the tile of an epilogue's register 0. */
static void run_range(const Bound *bound, const KilnCall *call, const float *given, int64_t begin,
                      int64_t n)
{
    _Alignas(64) Slot slots[SLOTS];
    const bool expanded = n > TILE;

    for (int i = 0; i < bound->n_inputs && expanded; i++)
        if (bound->inputs[i].access == ACCESS_PERIODIC)
            expand(bound, &bound->inputs[i], call, slots[bound->inputs[i].slot]);
    for (int64_t done = 0; done < n; done += TILE)
        run_tile(bound, call, given != NULL ? given + done : NULL, slots, expanded, begin + done,
                 n - done < TILE ? n - done : TILE);
}

/* ---- Layouts ------------------------------------------------------------------------------ */

static bool same_count(const KilnArg *arg, const KilnArg *y)
{
    return kiln_shape_count(&arg->shape) == kiln_shape_count(&y->shape);
}

/* Whether zeros give zeros, so that padding stays what it must be. */
static bool keeps_zero(const KilnCall *call, const KilnMap *map)
{
    const KilnMapLoops *loops = kiln_cpu(call)->loops->map;
    _Alignas(64) float reg[REGISTERS][KILN_MAP_GROUP] = { { 0.0f } };

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

/* Whether the map can run over outputs in this layout, with inputs of the outputs' shape
 * in the same one and others plain. */
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
    return !repeats || block_of(call, layout, &y->shape) > 0;
}

/* Arguments from the first on: inputs of output 0's shape and all outputs take
 * output 0's layout. */
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
    call->priv = bind(call, &map, false);
    return call->priv != NULL ? KILN_OK : kiln_error_nomem(err, sizeof(Bound));
}

static void run_part(void *context, int64_t begin, int64_t end)
{
    const KilnCall *call = context;

    run_range(call->priv, call, NULL, begin, end - begin);
}

void kiln_cpu_map_run(KilnCall *call)
{
    const Bound *bound = call->priv;
    /* Below this a thread costs more than it brings. */
    const int64_t work = 16384, grain = work / (bound->n_steps + 1);

    kiln_parallel(call->backend->threads, bound->count, grain, TILE, run_part, call);
}

void kiln_cpu_map_release(KilnCall *call)
{
    free(call->priv);
    call->priv = NULL;
}

/* ---- Epilogues --------------------------------------------------------------------------------
 */

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
        return kiln_error_set(err, KILN_E_INTERNAL,
                              "what was fused to the end needs another order in memory");
    spread_layout(call, call->op->n_inputs, call->op->n_outputs);
    call->epilogue_priv = bind(call, call->epilogue, true);
    return call->epilogue_priv != NULL ? KILN_OK : kiln_error_nomem(err, sizeof(Bound));
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

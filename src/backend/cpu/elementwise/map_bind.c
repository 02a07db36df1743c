/* Binds a map to a call: the axes to walk over, the slots for values, and the source and
 * destination of each. */
#include "backend/cpu/elementwise/map_bind.h"

#include <stdlib.h>
#include <string.h>

/* ---- Axes ---------------------------------------------------------------------------- */

/* Strides of a plain input over the axes of `shape`: 0 where it repeats. */
static void plain_strides(const KilnShape *input, const KilnShape *shape, int64_t *stride)
{
    int64_t size = 1;

    for (int axis = shape->rank - 1, own = input->rank - 1; axis >= 0; axis--, own--) {
        const int64_t dim = own >= 0 ? input->dim[own] : 1;

        stride[axis] = dim == 1 ? 0 : size;
        size *= dim;
    }
}

/* Converts strides over [N, H, W, C] to those over [N, C/block, H, W, block]. */
static void block_strides(int64_t *stride, int64_t block)
{
    const int64_t n = stride[0], h = stride[1], w = stride[2], c = stride[3];
    const int64_t blocked[] = { n, c * block, h, w, c };

    memcpy(stride, blocked, sizeof(blocked));
}

/* Sets the map's axes, and the inputs' strides over them. An input with the outputs' shape and
 * layout is contiguous with them. */
static void set_axes(KilnBoundMap *bound, const KilnCall *call, const KilnShape *shape,
                     KilnLayout layout)
{
    const int64_t block = kiln_layout_block(&kiln_cpu(call)->dnnl, layout, shape);
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
        KilnBoundInput *input = &bound->inputs[i];
        const KilnArg *arg = input->arg >= 0 ? &call->inputs[input->arg] : NULL;

        if (arg == NULL || kiln_shape_count(&arg->shape) == kiln_shape_count(shape))
            continue;
        plain_strides(&arg->shape, shape, input->stride);
        if (block > 0)
            block_strides(input->stride, block);
        input->access = KILN_ACCESS_WALK;
    }
    for (int axis = bound->rank - 1; axis >= 0; axis--) {
        for (int i = 0; i < bound->n_inputs; i++)
            if (bound->inputs[i].access == KILN_ACCESS_SAME)
                bound->inputs[i].stride[axis] = size;
        size *= bound->dim[axis];
    }
}

/* Whether axis `inner` continues axis `outer` in every input. */
static bool can_join(const KilnBoundMap *bound, int outer, int inner)
{
    for (int i = 0; i < bound->n_inputs; i++) {
        const int64_t *stride = bound->inputs[i].stride;

        if (stride[outer] != stride[inner] * bound->dim[inner])
            return false;
    }
    return true;
}

static void copy_axis(KilnBoundMap *bound, int to, int from)
{
    bound->dim[to] = bound->dim[from];
    for (int i = 0; i < bound->n_inputs; i++)
        bound->inputs[i].stride[to] = bound->inputs[i].stride[from];
}

/* Drops axes of one, and merges those that are contiguous in every input. */
static void join_axes(KilnBoundMap *bound)
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

/* Finds how each input repeats: its period starts at the first axis that moves it. */
static void find_periods(KilnBoundMap *bound)
{
    for (int i = 0; i < bound->n_inputs; i++) {
        KilnBoundInput *input = &bound->inputs[i];
        int first = 0;

        while (first < bound->rank && input->stride[first] == 0)
            first++;
        input->period = 1;
        for (int axis = first; axis < bound->rank; axis++)
            input->period *= bound->dim[axis];
        if (input->access == KILN_ACCESS_WALK && input->period <= KILN_MAP_TILE)
            input->access = KILN_ACCESS_PERIODIC;
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
    for (int slot = 0; slot + n <= KILN_BOUND_SLOTS; slot++) {
        if (used[slot] || (n == 2 && used[slot + 1]))
            continue;
        used[slot] = used[slot + n - 1] = true;
        return slot;
    }
    return KILN_BOUND_NO_SLOT; /* unreachable: there are as many slots as registers */
}

/* Assigns tiles to registers, reusing those that are no longer read. */
static void assign_slots(KilnBoundMap *bound, const KilnMap *map)
{
    bool used[KILN_BOUND_SLOTS] = { false };
    int slot_of[KILN_BOUND_REGISTERS];

    for (int i = 0; i < bound->n_inputs; i++)
        slot_of[i] = bound->inputs[i].slot =
            take_slot(used, bound->inputs[i].access == KILN_ACCESS_PERIODIC ? 2 : 1);
    for (int i = 0; i < bound->n_steps; i++) {
        for (int reg = 0; reg < bound->n_inputs + i; reg++)
            if (last_read(map, reg) == i &&
                (reg >= bound->n_inputs || bound->inputs[reg].access != KILN_ACCESS_PERIODIC))
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

/* A step may write its result to the destination if no later step reads what is there, as output 0
 * may overwrite any input. */
static int direct_result(const KilnBoundMap *bound, const KilnMap *map, int step)
{
    for (int r = 0; r < map->n_results; r++)
        if (map->results[r] == map->n_inputs + step && bound->results[r].dtype == KILN_F32 &&
            (r > 0 || !inputs_read_after(map, step)))
            return r;
    return -1;
}

static void bind_steps(KilnBoundMap *bound, const KilnMap *map)
{
    for (int i = 0; i < map->n_steps; i++) {
        const KilnMapStep *step = &map->steps[i];

        bound->steps[i] = (KilnBoundStep) {
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

KilnBoundMap *kiln_map_bind(const KilnCall *call, const KilnMap *map, bool epilogue)
{
    const int n_inputs = epilogue ? call->op->n_inputs : 1;
    const int n_outputs = epilogue ? call->op->n_outputs : 1;
    const KilnArg *y = &call->outputs[0];
    KilnBoundMap *bound = calloc(1, sizeof(*bound));

    if (bound == NULL)
        return NULL;
    bound->loops = kiln_cpu(call)->loops->map;
    bound->count = (int64_t)(y->bytes / kiln_dtype_size(y->dtype));
    bound->n_inputs = map->n_inputs;
    bound->n_steps = map->n_steps;
    bound->n_results = map->n_results;
    for (int i = 0; i < map->n_inputs; i++) {
        const int arg = i > 0 ? n_inputs + i - 1 : epilogue ? -1 : 0;

        bound->inputs[i] =
            (KilnBoundInput) { .arg = arg, .dtype = arg >= 0 ? call->inputs[arg].dtype : KILN_F32 };
    }
    for (int i = 0; i < map->n_results; i++) {
        const int arg = i > 0 ? n_outputs + i - 1 : 0;

        bound->results[i] = (KilnBoundResult) { map->results[i], arg, call->outputs[arg].dtype };
    }
    bind_steps(bound, map);
    set_axes(bound, call, &y->shape, y->layout);
    join_axes(bound);
    find_periods(bound);
    assign_slots(bound, map);
    return bound;
}

/* Fuses elementwise nodes into maps (graph/map.h). A group runs at the position of its last node,
 * so a node joins only if nothing in between needs its result or writes its inputs. Values needed
 * outside become further results; nothing is computed twice. */
#include "graph/passes/passes.h"

#include <string.h>

#include "graph/map.h"

enum { MAX_MEMBERS = KILN_MAP_STEPS, NO_GROUP = -1 };

/* Nodes that become one map, by index in order. */
typedef struct Group {
    int members[MAX_MEMBERS];
    int n;
} Group;

typedef struct Fusion {
    KilnRewrite *rewrite;
    int *group_of; /* per node */
    Group *groups;
    int n_groups;
    int *readers; /* nodes that read tensor t, in order: readers[first[t]] to readers[first[t + 1]]
                   */
    size_t *first;
} Fusion;

/* ---- Maps of groups ------------------------------------------------------------------ */

/* A map under construction: which tensor is in which register. */
typedef struct Draft {
    KilnMap map;
    KilnTensor *inputs[KILN_MAX_INPUTS];
    KilnTensor *outputs[KILN_MAP_RESULTS];
    struct {
        const KilnTensor *tensor;
        int reg; /* inputs by number, steps by KILN_MAX_INPUTS + number, until the final counts are
                    known */
    } made[MAX_MEMBERS * KILN_MAP_RESULTS];
    int n_made;
    bool full; /* does not fit into a map */
} Draft;

/* Whether all elements are one number, known at planning time. */
static bool number_of(const KilnRewrite *rewrite, const KilnTensor *tensor, double *ret)
{
    const KilnNode *node = rewrite->made[tensor->id];
    double factor = 1.0;

    while (node != NULL && (node->op == &kiln_op_broadcast || node->op == &kiln_op_scale)) {
        if (node->op == &kiln_op_scale)
            factor *= ((const KilnNumberAttrs *)node->attrs)->p;
        node = rewrite->made[node->inputs[0]->id];
    }
    if (node == NULL || node->op != &kiln_op_fill)
        return false;
    *ret = factor * ((const KilnFillAttrs *)node->attrs)->value;
    return true;
}

static int draft_step(Draft *draft, const KilnMapStep *step)
{
    if (draft->map.n_steps == KILN_MAP_STEPS) {
        draft->full = true;
        return 0;
    }
    draft->map.steps[draft->map.n_steps] = *step;
    return KILN_MAX_INPUTS + draft->map.n_steps++;
}

static int draft_input(Draft *draft, KilnTensor *tensor)
{
    for (int i = 0; i < draft->map.n_inputs; i++)
        if (draft->inputs[i] == tensor)
            return i;
    if (draft->map.n_inputs == KILN_MAX_INPUTS) {
        draft->full = true;
        return 0;
    }
    draft->inputs[draft->map.n_inputs] = tensor;
    return draft->map.n_inputs++;
}

/* The register that holds a member's input; a constant becomes a step. */
static int input_register(Draft *draft, const KilnRewrite *rewrite, KilnTensor *tensor)
{
    double number = 0.0;

    if (number_of(rewrite, tensor, &number))
        return draft_step(draft, &(KilnMapStep) { .code = KILN_MAP_NUMBER, .p = number });
    for (int i = draft->n_made - 1; i >= 0; i--)
        if (draft->made[i].tensor == tensor)
            return draft->made[i].reg;
    return draft_input(draft, tensor);
}

static void draft_made(Draft *draft, const KilnTensor *tensor, int reg)
{
    if (draft->n_made == MAX_MEMBERS * KILN_MAP_RESULTS) {
        draft->full = true;
        return;
    }
    draft->made[draft->n_made].tensor = tensor;
    draft->made[draft->n_made++].reg = reg;
}

/* x + number and x * number, which fold the number into the step. */
static bool takes_number(const KilnRewrite *rewrite, const KilnNode *node, KilnMapStep *step,
                         int *index)
{
    for (int i = 0; i < 2 && node->n_inputs == 2; i++) {
        double number = 0.0;

        if (!number_of(rewrite, node->inputs[i], &number) || (step->code == KILN_MAP_SUB && i == 0))
            continue;
        if (step->code == KILN_MAP_ADD || step->code == KILN_MAP_SUB) {
            step->p = step->code == KILN_MAP_SUB ? -number : number;
            step->code = KILN_MAP_SHIFT;
        } else if (step->code == KILN_MAP_MUL) {
            step->p = number;
            step->code = KILN_MAP_SCALE;
        } else {
            continue;
        }
        *index = 1 - i;
        return true;
    }
    return false;
}

static void draft_single(Draft *draft, const KilnRewrite *rewrite, const KilnNode *node,
                         KilnMapStep step)
{
    int index = 0;

    if (takes_number(rewrite, node, &step, &index)) {
        step.a = input_register(draft, rewrite, node->inputs[index]);
        step.b = 0;
    } else {
        const int reads = kiln_map_reads((KilnMapCode)step.code);

        step.a = reads > 0 ? input_register(draft, rewrite, node->inputs[step.a]) : 0;
        step.b = reads > 1 ? input_register(draft, rewrite, node->inputs[step.b]) : 0;
        step.c = reads > 2 ? input_register(draft, rewrite, node->inputs[step.c]) : 0;
    }
    /* Broadcasts and conversions copy nothing: the result is the same register. */
    draft_made(draft, node->outputs[0],
               step.code == KILN_MAP_COPY ? step.a : draft_step(draft, &step));
}

static void draft_node(Draft *draft, const KilnRewrite *rewrite, const KilnNode *node)
{
    KilnMap map;
    int reg[KILN_MAX_INPUTS + KILN_MAP_STEPS];

    kiln_map_of_node(node, &map);
    if (node->op != &kiln_op_map) {
        draft_single(draft, rewrite, node, map.steps[0]);
        return;
    }
    for (int i = 0; i < map.n_inputs; i++)
        reg[i] = input_register(draft, rewrite, node->inputs[i]);
    for (int i = 0; i < map.n_steps; i++) {
        KilnMapStep step = map.steps[i];

        step.a = reg[step.a];
        step.b = reg[step.b];
        step.c = reg[step.c];
        reg[map.n_inputs + i] = draft_step(draft, &step);
    }
    for (int i = 0; i < map.n_results; i++)
        draft_made(draft, node->outputs[i], reg[map.results[i]]);
}

/* ---- Groups ------------------------------------------------------------------------------ */

static bool in_group(const Group *group, int node)
{
    for (int i = 0; i < group->n; i++)
        if (group->members[i] == node)
            return true;
    return false;
}

/* Lists the readers of each tensor: the searches below would otherwise scan the whole step. */
static KilnStatus list_readers(Fusion *fusion, KilnError *err)
{
    const KilnRewrite *rewrite = fusion->rewrite;
    size_t n = 0;

    for (size_t i = 0; i < rewrite->n_tensors; i++)
        n += (size_t)rewrite->reads[i];
    fusion->readers = kiln_arena_alloc(rewrite->arena, (n + 1) * sizeof(int));
    fusion->first = kiln_arena_alloc(rewrite->arena, (rewrite->n_tensors + 1) * sizeof(size_t));
    if (fusion->readers == NULL || fusion->first == NULL)
        return kiln_error_nomem(err, n * sizeof(int));
    /* Filled backwards from the end of each list, which so becomes its start. */
    n = 0;
    for (size_t i = 0; i < rewrite->n_tensors; i++) {
        n += (size_t)rewrite->reads[i];
        fusion->first[i] = n;
    }
    fusion->first[rewrite->n_tensors] = n;
    for (size_t i = rewrite->n_nodes; i-- > 0;)
        for (int k = 0; k < rewrite->nodes[i]->n_inputs; k++)
            if (rewrite->nodes[i]->inputs[k] != NULL)
                fusion->readers[--fusion->first[rewrite->nodes[i]->inputs[k]->id]] = (int)i;
    return KILN_OK;
}

/* Whether a node outside the group reads the tensor, up to the node `to` (excluded). */
static bool read_outside(const Fusion *fusion, const Group *group, const KilnTensor *tensor,
                         int from, int to)
{
    for (size_t i = fusion->first[tensor->id]; i < fusion->first[tensor->id + 1]; i++)
        if (fusion->readers[i] > from && fusion->readers[i] < to &&
            !in_group(group, fusion->readers[i]))
            return true;
    return false;
}

/* Whether a node in between reads the bytes of the tensor's destination as a leaf. */
static bool dest_is_read(const KilnRewrite *rewrite, const KilnTensor *tensor, int from, int to)
{
    KilnTensor bytes = *tensor;

    bytes.at = tensor->dest;
    for (int i = from + 1; i < to && kiln_tensor_has_dest(tensor); i++) {
        const KilnNode *node = rewrite->nodes[i];

        for (int k = 0; k < node->n_inputs; k++)
            if (node->inputs[k] != NULL && rewrite->made[node->inputs[k]->id] == NULL &&
                kiln_overlaps(&bytes, node->inputs[k]))
                return true;
    }
    return false;
}

/* Whether a member of the group can run later, at node `at`. */
static bool can_wait(const Fusion *fusion, const Group *group, int member, int at)
{
    const KilnRewrite *rewrite = fusion->rewrite;
    const KilnNode *node = rewrite->nodes[member];

    for (int i = 0; i < node->n_inputs; i++)
        if (kiln_rewrite_written(rewrite, node->inputs[i], (size_t)member, (size_t)at))
            return false;
    for (int i = 0; i < node->n_outputs; i++)
        if (read_outside(fusion, group, node->outputs[i], member, at) ||
            dest_is_read(rewrite, node->outputs[i], member, at))
            return false;
    return true;
}

/* Drafts the group's map, still without results. */
static void draft_group(const KilnRewrite *rewrite, const Group *group, Draft *ret)
{
    memset(ret, 0, sizeof(*ret));
    for (int i = 0; i < group->n; i++)
        draft_node(ret, rewrite, rewrite->nodes[group->members[i]]);
}

/* Collects the values needed outside the group, the last member's first. */
static void draft_results(const Fusion *fusion, const Group *group, Draft *draft)
{
    const KilnRewrite *rewrite = fusion->rewrite;
    const int end = (int)rewrite->n_nodes;

    for (int i = draft->n_made - 1; i >= 0; i--) {
        const KilnTensor *tensor = draft->made[i].tensor;

        if (!kiln_rewrite_visible(rewrite, tensor) &&
            !read_outside(fusion, group, tensor, rewrite->made[tensor->id]->index, end))
            continue;
        if (draft->map.n_results == KILN_MAP_RESULTS) {
            draft->full = true;
            return;
        }
        draft->outputs[draft->map.n_results] = (KilnTensor *)tensor;
        draft->map.results[draft->map.n_results++] = draft->made[i].reg;
    }
}

/* Merges both groups in order; false if they are too many nodes. */
static bool join(const Group *a, const Group *b, Group *ret)
{
    int i = 0, k = 0;

    ret->n = 0;
    if (a->n + b->n > MAX_MEMBERS)
        return false;
    while (i < a->n || k < b->n) {
        if (k == b->n || (i < a->n && a->members[i] < b->members[k]))
            ret->members[ret->n++] = a->members[i++];
        else
            ret->members[ret->n++] = b->members[k++];
    }
    return true;
}

/* Whether the group, including its last member, fits one map. */
static bool is_map(const Fusion *fusion, const Group *group)
{
    const int last = group->members[group->n - 1];
    Draft draft;

    for (int i = 0; i + 1 < group->n; i++)
        if (!can_wait(fusion, group, group->members[i], last))
            return false;
    draft_group(fusion->rewrite, group, &draft);
    draft_results(fusion, group, &draft);
    return !draft.full && draft.map.n_inputs > 0;
}

/* Constants stay out of groups: their readers fold them in. */
static bool is_elementwise(const KilnRewrite *rewrite, const KilnNode *node)
{
    KilnMap map;
    double number;

    return node->epilogue == NULL && kiln_map_of_node(node, &map) &&
           !number_of(rewrite, node->outputs[0], &number);
}

/* The group of the input's producer, if its values have the node's shape. */
static int group_of_input(const Fusion *fusion, const KilnNode *node, int i)
{
    const KilnNode *made = fusion->rewrite->made[node->inputs[i]->id];

    if (made == NULL || !kiln_shape_equal(&node->inputs[i]->shape, &node->outputs[0]->shape))
        return NO_GROUP;
    return fusion->group_of[made->index];
}

/* Puts the node into a group with its inputs' producers, as many as fit. One group may fit only
 * after another has joined, so retry until none does. */
static void group_node(Fusion *fusion, int index)
{
    const KilnNode *node = fusion->rewrite->nodes[index];
    const int own = fusion->n_groups++;
    Group *group = &fusion->groups[own];
    bool grown = true;

    *group = (Group) { .members = { index }, .n = 1 };
    fusion->group_of[index] = own;
    while (grown) {
        grown = false;
        for (int i = 0; i < node->n_inputs; i++) {
            const int other = group_of_input(fusion, node, i);
            Group both;

            if (other == NO_GROUP || other == own || !join(group, &fusion->groups[other], &both) ||
                !is_map(fusion, &both))
                continue;
            *group = both;
            for (int k = 0; k < both.n; k++)
                fusion->group_of[both.members[k]] = own;
            fusion->groups[other].n = 0;
            grown = true;
        }
    }
}

/* ---- Groups to nodes -------------------------------------------------------------------- */

/* Output 0 may overwrite input 0, so that should be an input of its size that is not read
 * afterwards. */
static int best_first(const Fusion *fusion, const Group *group, const Draft *draft)
{
    const KilnRewrite *rewrite = fusion->rewrite;
    const int last = group->members[group->n - 1], end = (int)rewrite->n_nodes;
    const KilnTensor *y = draft->outputs[0];

    for (int i = 0; i < draft->map.n_inputs; i++) {
        const KilnTensor *x = draft->inputs[i];

        if (rewrite->made[x->id] != NULL && x->dtype == y->dtype &&
            kiln_shape_equal(&x->shape, &y->shape) && !kiln_rewrite_visible(rewrite, x) &&
            !read_outside(fusion, group, x, last, end))
            return i;
    }
    return 0;
}

/* Converts a draft register to a map register, with inputs 0 and `first` exchanged. */
static int32_t final_register(const Draft *draft, int first, int reg)
{
    if (reg >= KILN_MAX_INPUTS)
        return draft->map.n_inputs + reg - KILN_MAX_INPUTS;
    return reg == 0 ? first : reg == first ? 0 : reg;
}

static void finish(Draft *draft, int first)
{
    KilnMap *map = &draft->map;
    KilnTensor *input = draft->inputs[0];

    for (int i = 0; i < map->n_steps; i++) {
        KilnMapStep *step = &map->steps[i];
        const int reads = kiln_map_reads((KilnMapCode)step->code);

        step->a = reads > 0 ? final_register(draft, first, step->a) : 0;
        step->b = reads > 1 ? final_register(draft, first, step->b) : 0;
        step->c = reads > 2 ? final_register(draft, first, step->c) : 0;
    }
    for (int i = 0; i < map->n_results; i++)
        map->results[i] = final_register(draft, first, map->results[i]);
    draft->inputs[0] = draft->inputs[first];
    draft->inputs[first] = input;
}

static bool reads_number(const KilnRewrite *rewrite, const KilnNode *node)
{
    double number = 0.0;

    for (int i = 0; i < node->n_inputs; i++)
        if (number_of(rewrite, node->inputs[i], &number))
            return true;
    return false;
}

static KilnStatus emit_group(const Fusion *fusion, const Group *group, KilnError *err)
{
    KilnRewrite *rewrite = fusion->rewrite;
    const int last = group->members[group->n - 1];
    Draft draft;

    if (group->n == 1 && !reads_number(rewrite, rewrite->nodes[last]))
        return KILN_OK;
    draft_group(rewrite, group, &draft);
    draft_results(fusion, group, &draft);
    if (draft.full || draft.map.n_inputs == 0 || draft.map.n_results == 0)
        return KILN_OK; /* a single node stays as it is */
    finish(&draft, best_first(fusion, group, &draft));

    KilnNode *node = kiln_rewrite_node(rewrite, &kiln_op_map, draft.inputs, draft.map.n_inputs,
                                       draft.outputs, draft.map.n_results, &draft.map,
                                       rewrite->nodes[last]->layer);

    if (node == NULL)
        return kiln_error_nomem(err, sizeof(*node) + sizeof(KilnMap));
    node->index = last;
    rewrite->nodes[last] = node;
    return KILN_OK;
}

KilnStatus kiln_pass_fuse_elementwise(KilnRewrite *rewrite, KilnError *err)
{
    const size_t n = rewrite->n_nodes;
    Fusion fusion = { .rewrite = rewrite };

    fusion.group_of = kiln_arena_alloc(rewrite->arena, (n + 1) * sizeof(int));
    fusion.groups = kiln_arena_alloc(rewrite->arena, (n + 1) * sizeof(Group));
    if (fusion.group_of == NULL || fusion.groups == NULL)
        return kiln_error_nomem(err, (n + 1) * sizeof(Group));
    if (list_readers(&fusion, err) < 0)
        return err->status;
    for (size_t i = 0; i < n; i++) {
        fusion.group_of[i] = NO_GROUP;
        if (is_elementwise(rewrite, rewrite->nodes[i]))
            group_node(&fusion, (int)i);
    }
    for (int i = 0; i < fusion.n_groups; i++)
        if (fusion.groups[i].n > 0 && emit_group(&fusion, &fusion.groups[i], err) < 0)
            return err->status;
    for (int i = 0; i < fusion.n_groups; i++)
        for (int k = 0; k + 1 < fusion.groups[i].n; k++)
            rewrite->nodes[fusion.groups[i].members[k]] = NULL;
    kiln_rewrite_index(rewrite);
    return kiln_pass_dead_code(rewrite, err); /* constants that were folded in */
}

/* Replaces a node that repeats an earlier one, with the same attributes and inputs, by the earlier
 * one. Operations have no state except the variables they read, so this is exact. */
#include "graph/passes/passes.h"

#include <string.h>

#include "graph/op.h"

typedef struct Table {
    KilnNode **slots; /* NULL: free */
    size_t mask;
    KilnTensor **instead; /* per tensor: the one to read instead; NULL: itself */
} Table;

static uint64_t node_hash(const KilnNode *node)
{
    const void *seen[KILN_MAX_INPUTS + 1] = { node->op };

    for (int i = 0; i < node->n_inputs; i++)
        seen[i + 1] = node->inputs[i];
    uint64_t hash = XXH3_64bits(seen, (size_t)(node->n_inputs + 1) * sizeof(void *));
    return node->op->attrs_size > 0 ? XXH3_64bits_withSeed(node->attrs, node->op->attrs_size, hash)
                                    : hash;
}

static bool same_work(const KilnNode *a, const KilnNode *b)
{
    if (a->op != b->op || a->n_inputs != b->n_inputs || a->n_outputs != b->n_outputs ||
        a->segment != b->segment)
        return false;
    return memcmp(a->inputs, b->inputs, (size_t)a->n_inputs * sizeof(KilnTensor *)) == 0 &&
           (a->op->attrs_size == 0 || memcmp(a->attrs, b->attrs, a->op->attrs_size) == 0);
}

/* Whether every variable that both nodes read is unchanged between them. */
static bool same_values(const KilnRewrite *rewrite, const KilnNode *first, const KilnNode *second)
{
    for (int i = 0; i < second->n_inputs; i++)
        if (second->inputs[i] != NULL &&
            kiln_rewrite_written(rewrite, second->inputs[i], (size_t)first->index,
                                 (size_t)second->index))
            return false;
    return true;
}

/* Whether a node must stay: it writes a variable, or its result must exist in memory. */
static bool must_stay(const KilnRewrite *rewrite, const KilnNode *node)
{
    if (node->op->updates != 0 || node->epilogue != NULL)
        return true;
    for (int i = 0; i < node->n_outputs; i++)
        if (kiln_rewrite_visible(rewrite, node->outputs[i]))
            return true;
    return false;
}

/* The earlier node that computes the same; NULL: none, and this node is added to the table. It
 * replaces an entry whose variables have changed since. */
static KilnNode *find(const KilnRewrite *rewrite, Table *table, KilnNode *node)
{
    size_t at = node_hash(node) & table->mask;

    while (table->slots[at] != NULL && !same_work(table->slots[at], node))
        at = (at + 1) & table->mask;
    if (table->slots[at] != NULL && same_values(rewrite, table->slots[at], node))
        return table->slots[at];
    table->slots[at] = node;
    return NULL;
}

KilnStatus kiln_pass_common_subexpressions(KilnRewrite *rewrite, KilnError *err)
{
    size_t slots = 16;

    while (slots < 2 * rewrite->n_nodes)
        slots *= 2;
    Table table = {
        .slots = kiln_arena_alloc(rewrite->arena, slots * sizeof(KilnNode *)),
        .mask = slots - 1,
        .instead = kiln_arena_alloc(rewrite->arena,
                                    (rewrite->n_tensors + 1) * sizeof(KilnTensor *)),
    };

    if (table.slots == NULL || table.instead == NULL)
        return kiln_error_nomem(err, slots * sizeof(KilnNode *));
    for (size_t i = 0; i < rewrite->n_nodes; i++) {
        KilnNode *node = rewrite->nodes[i];

        for (int k = 0; k < node->n_inputs; k++)
            if (node->inputs[k] != NULL && table.instead[node->inputs[k]->id] != NULL)
                node->inputs[k] = table.instead[node->inputs[k]->id];
        if (node->op->updates != 0 || node->epilogue != NULL)
            continue;
        KilnNode *first = find(rewrite, &table, node);
        if (first == NULL || must_stay(rewrite, node))
            continue;
        for (int k = 0; k < node->n_outputs; k++)
            table.instead[node->outputs[k]->id] = first->outputs[k];
        rewrite->nodes[i] = NULL;
    }
    return KILN_OK;
}

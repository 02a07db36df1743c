/* Greedy and prefix beam search over the probabilities of CTC (kiln/tools/ctc_decode.h). */
#include "kiln/tools/ctc_decode.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kiln/array.h"
#include "kiln/metric.h"

static double decode_greedily(KilnCtcProbs probs, int32_t *ids, int64_t *ret_n)
{
    double score = 0.0;
    int64_t last = 0;

    *ret_n = 0;
    for (int64_t t = 0; t < probs.steps; t++) {
        const float *row = probs.log_probs + t * probs.classes;
        const int64_t best = kiln_row_argmax(row, probs.classes);

        if (best != 0 && best != last)
            ids[(*ret_n)++] = (int32_t)best;
        last = best;
        score += (double)row[best];
    }
    return score;
}

/* A sequence: its last class after another sequence. Node 0 is the empty one. Each sequence has one
 * node at most. */
typedef struct Node {
    int32_t parent, id, first_child, sibling; /* 0: no child, no sibling */
} Node;

/* A sequence with the log-probabilities of the paths that lead to it so far, and end with a blank,
 * or with its last class. */
typedef struct Beam {
    int32_t node;
    int32_t parent, id; /* node -1: it has none yet */
    double blank, character, total;
} Beam;

typedef struct Search {
    Node *nodes;
    size_t n_nodes, capacity;
    Beam *beams, *next; /* the best at this step and at the next one, the best first */
    int64_t n, n_next, most;
    bool *taken; /* [classes] there is a beam already that continues a beam by that class */
} Search;

static double log_add(double a, double b)
{
    const double most = a > b ? a : b;

    return most == -INFINITY ? most : most + log1p(exp((a > b ? b : a) - most));
}

/* Put a beam where it belongs among the next ones, after those that are as good. */
static void offer(Search *search, Beam beam)
{
    int64_t at;

    beam.total = log_add(beam.blank, beam.character);
    if (!(beam.total > -INFINITY) ||
        (search->n_next == search->most && search->next[search->n_next - 1].total >= beam.total))
        return;
    if (search->n_next < search->most)
        search->n_next++;
    for (at = search->n_next - 1; at > 0 && search->next[at - 1].total < beam.total; at--)
        search->next[at] = search->next[at - 1];
    search->next[at] = beam;
}

/* The log-probability that a beam's sequence is followed by class `id`: after the same class only
 * if a blank is between them. */
static double continued(const Search *search, const Beam *from, int32_t id, const float *row)
{
    return (search->nodes[from->node].id == id ? from->blank : from->total) + (double)row[id];
}

/* Offer a beam's sequence, at a further step. */
static void offer_same(Search *search, const Beam *beam, const float *row)
{
    const Node *node = &search->nodes[beam->node];
    Beam next = { .node = beam->node,
                  .blank = beam->total + (double)row[0],
                  .character = beam->character + (double)row[node->id] };

    for (int64_t i = 0; beam->node != 0 && i < search->n; i++)
        if (search->beams[i].node == node->parent)
            next.character = log_add(next.character,
                                     continued(search, &search->beams[i], node->id, row));
    offer(search, next);
}

/* Offer its continuations by each class, except those that are beams themselves. */
static void offer_longer(Search *search, const Beam *beam, const float *row, int64_t classes)
{
    memset(search->taken, 0, (size_t)classes * sizeof(*search->taken));
    for (int64_t i = 0; i < search->n; i++) {
        const int32_t node = search->beams[i].node;

        if (node != 0 && search->nodes[node].parent == beam->node)
            search->taken[search->nodes[node].id] = true;
    }
    for (int32_t id = 1; id < classes; id++)
        if (!search->taken[id])
            offer(search, (Beam) { .node = -1,
                                   .parent = beam->node,
                                   .id = id,
                                   .blank = -INFINITY,
                                   .character = continued(search, beam, id, row) });
}

/* Find or make the node of a beam that has none; false: memory is out. */
static bool give_node(Search *search, Beam *beam)
{
    int32_t child = search->nodes[beam->parent].first_child;

    while (child != 0 && search->nodes[child].id != beam->id)
        child = search->nodes[child].sibling;
    if (child == 0) {
        if (!KILN_RESERVE(search->nodes, search->capacity, search->n_nodes + 1))
            return false;
        child = (int32_t)search->n_nodes++;
        search->nodes[child] = (Node) { .parent = beam->parent,
                                        .id = beam->id,
                                        .sibling = search->nodes[beam->parent].first_child };
        search->nodes[beam->parent].first_child = child;
    }
    beam->node = child;
    return true;
}

static bool take_step(Search *search, const float *row, int64_t classes)
{
    Beam *const before = search->beams;

    search->n_next = 0;
    for (int64_t i = 0; i < search->n; i++) {
        offer_same(search, &before[i], row);
        offer_longer(search, &before[i], row, classes);
    }
    search->beams = search->next;
    search->next = before;
    search->n = search->n_next;
    for (int64_t i = 0; i < search->n; i++)
        if (search->beams[i].node < 0 && !give_node(search, &search->beams[i]))
            return false;
    return true;
}

static bool begin(Search *search, int64_t beams, int64_t classes)
{
    *search = (Search) { .beams = calloc((size_t)beams, sizeof(Beam)),
                         .next = calloc((size_t)beams, sizeof(Beam)),
                         .taken = calloc((size_t)classes, sizeof(bool)),
                         .n = 1,
                         .most = beams };
    if (search->beams == NULL || search->next == NULL || search->taken == NULL ||
        !KILN_RESERVE(search->nodes, search->capacity, 1))
        return false;
    search->nodes[search->n_nodes++] = (Node) { .parent = -1 };
    search->beams[0] = (Beam) { .character = -INFINITY };
    return true;
}

/* The classes of the best beam. */
static double read_best(const Search *search, int32_t *ids, int64_t *ret_n)
{
    *ret_n = 0;
    if (search->n == 0)
        return -INFINITY;
    for (int32_t at = search->beams[0].node; at > 0; at = search->nodes[at].parent)
        (*ret_n)++;
    int64_t end = *ret_n;
    for (int32_t at = search->beams[0].node; at > 0; at = search->nodes[at].parent)
        ids[--end] = search->nodes[at].id;
    return search->beams[0].total;
}

KilnStatus kiln_ctc_decode(KilnCtcProbs probs, int64_t beams, int32_t *ids, int64_t *ret_n,
                           double *ret_score, KilnError *err)
{
    Search search;

    if (beams == 1) {
        *ret_score = decode_greedily(probs, ids, ret_n);
        return KILN_OK;
    }
    bool good = begin(&search, beams, probs.classes);
    for (int64_t t = 0; t < probs.steps && good; t++)
        good = take_step(&search, probs.log_probs + t * probs.classes, probs.classes);
    if (good)
        *ret_score = read_best(&search, ids, ret_n);
    free(search.nodes);
    free(search.beams);
    free(search.next);
    free(search.taken);
    return good ? KILN_OK : kiln_error_nomem(err, (size_t)beams * sizeof(Beam));
}

/* Activation checkpointing (Chen et al. 2016): blocks of the forward pass whose activations are not
 * stored for the gradients but computed again. */
#ifndef KILN_GRAPH_RECOMPUTE_H
#define KILN_GRAPH_RECOMPUTE_H

#include "graph/graph.h"

/* The blocks of a recorded forward pass, and their second recording. */
typedef struct KilnRecompute {
    KilnGraph *graph;
    size_t n_nodes, n_tensors; /* of the forward pass */
    KilnNode **again;          /* per node: its second recording, NULL: none yet */
    KilnTensor **copies;       /* per tensor: its copy in the second recording; NULL: none */
} KilnRecompute;

/* Where a pattern of a layer path ends in `path`; 0 if it does not match. `*` matches any
 * characters within one part: "layers.*" matches all of "layers.0" and the first 8 characters of
 * "layers.0.norm". */
size_t kiln_layer_match(const char *pattern, const char *path);
/* Finds the blocks that patterns name, after the forward pass is recorded. */
KILN_NODISCARD KilnStatus kiln_recompute_init(KilnRecompute *ret, KilnGraph *graph, KilnError *err);
/* The node whose inputs and outputs the gradients of node i may read: the node itself, or within a
 * block its second recording, which the block's last node starts. */
KilnNode *kiln_recompute_node(KilnRecompute *recompute, int i);

#endif

/* What the layers share: their path, and recording under it. */
#ifndef KILN_NN_LAYER_H
#define KILN_NN_LAYER_H

#include "kiln/nn.h"

enum { KILN_LAYER_PATH = sizeof(((KilnScope *)0)->path) };

/* Copy the scope's path into a layer. */
void kiln_layer_path(char path[KILN_LAYER_PATH], const KilnScope *scope);
/* Name `path` as the layer of what is recorded now; returns the name that was
 * set before, for kiln_graph_layer when the layer is done. */
const char *kiln_layer_enter(KilnTensor *x, const char *path);

/* A layer's parameter in the step of x; NULL when the layer has none. */
KilnTensor *kiln_layer_param(KilnParam *param, KilnTensor *x);

#endif

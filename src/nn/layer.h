/* Shared by the layers: their path, and recording under it. */
#ifndef KILN_NN_LAYER_H
#define KILN_NN_LAYER_H

#include "kiln/nn.h"

enum { KILN_LAYER_PATH = sizeof(((KilnScope *)0)->path) };

/* Copies the scope's path into a layer. */
void kiln_layer_path(char path[KILN_LAYER_PATH], const KilnScope *scope);
/* Makes `path` the layer of what is recorded next; returns the previous one, to restore with
 * kiln_graph_layer. */
const char *kiln_layer_enter(KilnTensor *x, const char *path);

/* A layer's parameter in the step of x; NULL if the layer has none. */
KilnTensor *kiln_layer_param(KilnParam *param, KilnTensor *x);

#endif

/* The layers of the network, read from a recorded step. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "graph/op.h"
#include "train/trainer.h"

/* Trained values declared directly below `path`. */
static int64_t parameters_of(const KilnParams *params, const char *path)
{
    size_t length = strlen(path);
    int64_t sum = 0;

    for (size_t i = 0; i < kiln_params_count(params); i++) {
        const KilnParam *param = kiln_params_at(params, i);
        const char *name = kiln_param_name(param);

        if (kiln_param_trained(param) && strncmp(name, path, length) == 0 &&
            name[length] == '.' && strchr(name + length + 1, '.') == NULL)
            sum += kiln_shape_count(kiln_param_shape(param));
    }
    return sum;
}

/* The layer of that path, made when it is new; NULL when memory is out. */
static KilnLayerInfo *layer_at(KilnTrainer *trainer, const char *path)
{
    for (size_t i = 0; i < trainer->n_layers; i++)
        if (strcmp(trainer->layers[i].path, path) == 0)
            return &trainer->layers[i];
    KilnLayerInfo *more =
        realloc(trainer->layers, (trainer->n_layers + 1) * sizeof(*trainer->layers));
    if (more == NULL)
        return NULL;
    trainer->layers = more;
    char *copy = kiln_strdup(path);
    if (copy == NULL)
        return NULL;
    more[trainer->n_layers] =
        (KilnLayerInfo){ .path = copy, .parameters = parameters_of(trainer->params, path) };
    return &more[trainer->n_layers++];
}

KilnStatus kiln_trainer_read_layers(KilnTrainer *trainer, KilnError *err)
{
    const KilnGraph *graph = trainer->graph;
    size_t n = graph->backward ? graph->n_forward : graph->n_nodes;

    for (size_t i = 0; i < n; i++) {
        const KilnNode *node = graph->nodes[i];

        if (node->layer == NULL || node->layer[0] == '\0' || node->n_outputs == 0)
            continue;
        KilnLayerInfo *layer = layer_at(trainer, node->layer);
        if (layer == NULL)
            return kiln_error_nomem(err, (trainer->n_layers + 1) * sizeof(*layer));
        layer->op = node->op->name;
        layer->output = node->outputs[0]->shape;
    }
    return KILN_OK;
}

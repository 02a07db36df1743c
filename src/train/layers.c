/* The layers of the network with their parameters, from a recorded step. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "graph/layers.h"
#include "train/trainer.h"

/* Count the parameters declared directly below the layer's path. */
static void count_parameters(const KilnParams *params, KilnLayerInfo *layer)
{
    const char *path = layer->path;
    size_t length = strlen(path);

    for (size_t i = 0; i < kiln_params_count(params); i++) {
        const KilnParam *param = kiln_params_at(params, i);
        const char *name = kiln_param_name(param);

        if (kiln_param_trained(param) && strncmp(name, path, length) == 0 && name[length] == '.' &&
            strchr(name + length + 1, '.') == NULL) {
            const int64_t count = kiln_shape_count(kiln_param_shape(param));

            layer->parameters += count;
            layer->trained += param->frozen ? 0 : count;
        }
    }
}

KilnStatus kiln_trainer_read_layers(KilnTrainer *trainer, KilnError *err)
{
    size_t n = kiln_graph_layers(trainer->graph, NULL, 0);
    KilnLayerRow *rows = calloc(n + 1, sizeof(*rows));
    KilnStatus status = KILN_OK;

    trainer->layers = calloc(n + 1, sizeof(*trainer->layers));
    if (rows == NULL || trainer->layers == NULL)
        status = kiln_error_nomem(err, (n + 1) * sizeof(*rows));
    else
        (void)kiln_graph_layers(trainer->graph, rows, n);
    for (size_t i = 0; status >= 0 && i < n; i++) {
        char *path = kiln_strdup(rows[i].path);

        if (path == NULL) {
            status = kiln_error_nomem(err, strlen(rows[i].path));
            break;
        }
        trainer->layers[trainer->n_layers++] = (KilnLayerInfo) {
            .path = path,
            .op = rows[i].op,
            .output = rows[i].output,
            .flops = rows[i].flops,
            .flops_backward = rows[i].flops_backward,
        };
        count_parameters(trainer->params, &trainer->layers[trainer->n_layers - 1]);
    }
    free(rows);
    return status;
}

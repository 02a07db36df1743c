/* Lists the network's layers with their parameters, from a recorded step. */
#include "train/analysis/model_layers.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "graph/layers.h"
#include "graph/recompute.h"
#include "train/trainer.h"

/* Whether a parameter is declared directly below the layer's path, or is of its adapter. */
static bool is_of(const KilnParam *param, const char *path, size_t length)
{
    if (strncmp(param->name, path, length) != 0 || param->name[length] != '.')
        return false;
    const char *rest = strchr(param->name + length + 1, '.');
    return rest == NULL || (param->is_adapter && strcmp(rest, ".weight") == 0);
}

static void count_parameters(const KilnParams *params, KilnLayerInfo *layer)
{
    const char *path = layer->path;
    size_t length = strlen(path);

    for (size_t i = 0; i < kiln_params_count(params); i++) {
        const KilnParam *param = kiln_params_at(params, i);

        if ((kiln_param_trained(param) || param->fixed) && is_of(param, path, length)) {
            const int64_t count = kiln_shape_count(kiln_param_shape(param));

            layer->parameters += count;
            layer->trained += param->fixed || param->frozen ? 0 : count;
        }
    }
}

/* Refuse a pattern of trainer.recompute that matches no layer. */
static KilnStatus check_recompute(const KilnTrainer *trainer, KilnError *err)
{
    const KilnTrainerOptions *options = trainer->options.trainer;

    for (size_t i = 0; i < options->recompute_count; i++) {
        bool fits = false;

        for (size_t k = 0; k < trainer->n_layers && !fits; k++)
            fits = kiln_layer_match(options->recompute[i], trainer->layers[k].path) > 0;
        if (!fits)
            return kiln_error_set(err, KILN_E_KEY,
                                  "trainer.recompute: \"%s\" matches no layer; the first is %s, "
                                  "and train --plan shows all",
                                  options->recompute[i],
                                  trainer->n_layers > 0 ? trainer->layers[0].path : "not there");
    }
    return KILN_OK;
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
    return status >= 0 ? check_recompute(trainer, err) : status;
}

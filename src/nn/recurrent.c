/* LSTM and GRU layers, stacked and bidirectional. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "nn/layer.h"

static int64_t directions_of(const KilnRecurrentSpec *spec)
{
    return spec->bidirectional ? 2 : 1;
}

/* ---- Parameters ---------------------------------------------------------------- */

static KilnStatus check_spec(const KilnRecurrentSpec *spec, const char *name, KilnError *err)
{
    if (spec->in < 1 || spec->hidden < 1 || spec->layers < 1)
        return kiln_error_set(err, KILN_E_RANGE,
                              "%s: inputs, hidden size and layers must be at least 1, got %" PRId64
                              ", %" PRId64 " and %" PRId64,
                              name, spec->in, spec->hidden, spec->layers);
    if (spec->layers * directions_of(spec) > KILN_RECURRENT_MAX)
        return kiln_error_set(err, KILN_E_RANGE,
                              "%s: at most %d layers times directions are possible, got %" PRId64,
                              name, KILN_RECURRENT_MAX, spec->layers * directions_of(spec));
    return KILN_OK;
}

/* One parameter of layer `part`, with PyTorch's name: weight_ih_l0_reverse. */
static KilnStatus part_new(const KilnRecurrentLayer *layer, const KilnScope *own, const char *what,
                           int64_t part, KilnShape shape, KilnParam **ret, KilnError *err)
{
    const int64_t directions = directions_of(&layer->spec);
    const KilnInit init = { .kind = KILN_INIT_UNIFORM,
                            .a = 1.0 / sqrt((double)layer->spec.hidden) };
    char name[64];

    snprintf(name, sizeof(name), "%s_l%" PRId64 "%s", what, part / directions,
             part % directions != 0 ? "_reverse" : "");
    return kiln_param_new(own, name, shape, init, ret, err);
}

static KilnStatus declare(KilnRecurrentLayer *layer, const KilnScope *own, int64_t part,
                          KilnError *err)
{
    const KilnRecurrentSpec *spec = &layer->spec;
    const int64_t gates = (layer->gru ? 3 : 4) * spec->hidden, directions = directions_of(spec);
    const int64_t in = part < directions ? spec->in : spec->hidden * directions;
    const KilnShape bias = KILN_SHAPE(gates);
    KilnStatus status = part_new(layer, own, "weight_ih", part, KILN_SHAPE(gates, in),
                                 &layer->part[part].weight_ih, err);

    if (status == KILN_OK)
        status = part_new(layer, own, "weight_hh", part, KILN_SHAPE(gates, spec->hidden),
                          &layer->part[part].weight_hh, err);
    if (status == KILN_OK && !spec->no_bias)
        status = part_new(layer, own, "bias_ih", part, bias, &layer->part[part].bias_ih, err);
    if (status == KILN_OK && !spec->no_bias)
        status = part_new(layer, own, "bias_hh", part, bias, &layer->part[part].bias_hh, err);
    return status;
}

static KilnStatus layer_init(KilnRecurrentLayer *layer, const KilnScope *scope, const char *name,
                             KilnRecurrentSpec spec, bool gru, KilnError *err)
{
    KilnScope own = kiln_scope(scope, "%s", name);

    *layer = (KilnRecurrentLayer) { .spec = spec, .gru = gru };
    if (layer->spec.layers == 0)
        layer->spec.layers = 1;
    kiln_layer_path(layer->path, &own);
    KilnStatus status = check_spec(&layer->spec, layer->path, err);
    for (int64_t part = 0; status == KILN_OK && part < layer->spec.layers * directions_of(&spec);
         part++)
        status = declare(layer, &own, part, err);
    return status;
}

KilnStatus kiln_nn_lstm_init(KilnRecurrentLayer *layer, const KilnScope *scope, const char *name,
                             KilnRecurrentSpec spec, KilnError *err)
{
    return layer_init(layer, scope, name, spec, false, err);
}

KilnStatus kiln_nn_gru_init(KilnRecurrentLayer *layer, const KilnScope *scope, const char *name,
                            KilnRecurrentSpec spec, KilnError *err)
{
    return layer_init(layer, scope, name, spec, true, err);
}

/* ---- Running --------------------------------------------------------------------- */

static KilnTensor *tensor_of(KilnParam *param, KilnGraph *graph)
{
    return param != NULL ? kiln_param_tensor(param, graph) : NULL;
}

static KilnTensor *row_of(KilnTensor *states, int64_t part)
{
    return states != NULL ? kiln_select(states, 0, part) : NULL;
}

/* One layer and direction. The LSTM's two biases are only ever added, so they are summed first. */
static KilnRecurrentOut run_part(const KilnRecurrentLayer *layer, KilnTensor *x, int64_t part,
                                 const KilnRecurrentStart *start)
{
    KilnGraph *graph = kiln_tensor_graph(x);
    KilnTensor *weight_hh = kiln_param_tensor(layer->part[part].weight_hh, graph);
    KilnTensor *bias_ih = tensor_of(layer->part[part].bias_ih, graph);
    KilnTensor *bias_hh = tensor_of(layer->part[part].bias_hh, graph);
    const KilnRecurrent recurrent = {
        .batch_first = layer->spec.batch_first,
        .reverse = part % directions_of(&layer->spec) != 0,
        .h0 = row_of(start->h0, part),
        .c0 = row_of(start->c0, part),
        .lengths = start->lengths,
    };

    if (!layer->gru && bias_ih != NULL)
        bias_ih = kiln_add(bias_ih, bias_hh);
    KilnTensor *p = kiln_linear(x, kiln_param_tensor(layer->part[part].weight_ih, graph), bias_ih);

    return layer->gru ? kiln_gru(p, weight_hh, bias_hh, recurrent)
                      : kiln_lstm(p, weight_hh, recurrent);
}

static KilnRecurrentOut run_layers(const KilnRecurrentLayer *layer, KilnTensor *x,
                                   const KilnRecurrentStart *start)
{
    const int directions = (int)directions_of(&layer->spec);
    const int parts = (int)layer->spec.layers * directions;
    KilnTensor *h[KILN_RECURRENT_MAX], *c[KILN_RECURRENT_MAX], *y[2];

    for (int part = 0; part < parts; part++) {
        KilnRecurrentOut out = run_part(layer, x, part, start);

        h[part] = out.h;
        c[part] = out.c;
        y[part % directions] = out.y;
        if (part % directions != directions - 1)
            continue;
        x = directions == 2 ? kiln_concat(y, 2, 2) : y[0];
        if (part < parts - 1)
            x = kiln_nn_dropout(x, layer->spec.dropout, start->drop);
    }
    return (KilnRecurrentOut) {
        .y = x,
        .h = kiln_stack(h, parts, 0),
        .c = layer->gru ? NULL : kiln_stack(c, parts, 0),
    };
}

KilnRecurrentOut kiln_nn_recurrent(const KilnRecurrentLayer *layer, KilnTensor *x,
                                   KilnRecurrentStart start)
{
    const char *before = kiln_layer_enter(x, layer->path);
    KilnRecurrentOut out = run_layers(layer, x, &start);

    kiln_graph_layer(kiln_tensor_graph(x), before);
    return out;
}

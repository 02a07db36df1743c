/* Grad-CAM: the feature maps of a layer, weighted by the mean gradient of each. */
#include <fnmatch.h>
#include <string.h>

#include "graph/op.h"
#include "train/explain/explaining.h"

typedef struct Map {
    const char *layer; /* a pattern; NULL: the last map */
    KilnTensor *map, *gradient;
} Map;

static bool is_convolution(const KilnOp *op)
{
    return op == &kiln_op_conv2d || op == &kiln_op_conv_transpose2d;
}

/* Whether the node's result has the places of its input: an image's height and width, in whatever
 * resolution. */
static bool keeps_places(const KilnNode *node)
{
    const KilnShape *x = &node->inputs[0]->shape, *y = &node->outputs[0]->shape;

    return node->op->map != NULL || node->op == &kiln_op_batch_norm ||
           node->op == &kiln_op_batch_norm_eval || node->op == &kiln_op_max_pool2d ||
           node->op == &kiln_op_avg_pool2d || node->op == &kiln_op_concat ||
           (node->op == &kiln_op_layer_norm && x->rank == y->rank);
}

/* Whether a node's result is a feature map [batch, height, width, channels]: a convolution's, or
 * made of such maps place by place. `is_map` has an entry for each node before it. */
static bool gives_map(const KilnNode *node, const bool *is_map)
{
    const KilnShape *shape = &node->outputs[0]->shape;

    if (node->n_outputs < 1 || shape->rank != 4 || shape->dim[1] * shape->dim[2] < 2)
        return false;
    if (is_convolution(node->op))
        return true;
    for (int i = 0; i < node->n_inputs && keeps_places(node); i++)
        if (node->inputs[i] != NULL && node->inputs[i]->node != NULL &&
            is_map[node->inputs[i]->node->index])
            return true;
    return false;
}

static KilnStatus find_map(KilnGraph *graph, Map *map, KilnError *err)
{
    bool *is_map = kiln_arena_alloc(&graph->arena, graph->n_forward * sizeof(*is_map));
    const KilnOp *attends = NULL;

    if (is_map == NULL)
        return kiln_error_nomem(err, graph->n_forward);
    for (size_t i = 0; i < graph->n_forward; i++) {
        const KilnNode *node = graph->nodes[i];

        if (node->op == &kiln_op_attention || node->op == &kiln_op_attention_packed)
            attends = node->op;
        is_map[i] = gives_map(node, is_map);
        if (!is_map[i] || node->outputs[0]->grad == NULL ||
            (map->layer != NULL &&
             (node->layer == NULL || fnmatch(map->layer, node->layer, 0) != 0)))
            continue;
        map->map = node->outputs[0];
        attends = NULL;
    }
    if (map->map != NULL && (attends == NULL || map->layer != NULL))
        return KILN_OK;
    if (map->layer != NULL)
        return kiln_error_set(err, KILN_E_KEY,
                              "layer %s: no layer of that name has feature maps of an image "
                              "(`kiln graph` lists the layers of a model)",
                              map->layer);
    return kiln_error_set(
        err, KILN_E_MISSING,
        attends != NULL ? "Grad-CAM needs feature maps near the score, but this model attends "
                          "over patches after its last convolution; integrated_gradients and "
                          "occlusion explain it"
                        : "Grad-CAM needs the feature maps of convolutions, which this model "
                          "lacks; integrated_gradients and occlusion explain it");
}

static KilnStatus read_map(void *ctx, KilnGraph *graph, KilnTensor **reads, size_t *n,
                           KilnError *err)
{
    Map *map = ctx;
    KilnStatus status = find_map(graph, map, err);

    if (status < 0)
        return status;
    map->gradient = kiln_step_as_f32(map->map->grad);
    map->map = kiln_step_as_f32(map->map);
    reads[(*n)++] = map->map;
    reads[(*n)++] = map->gradient;
    return KILN_OK;
}

/* The image that the model reads; n_features: none. */
static size_t find_image(const KilnVariants *variants)
{
    size_t f = 0;

    while (f < variants->spec->n_features &&
           (variants->spec->features[f].content != KILN_IMAGE || variants->points[f] == NULL))
        f++;
    return f;
}

static void weigh(const Map *map, float *ret)
{
    const KilnShape *shape = kiln_tensor_shape(map->map);
    const float *values = kiln_tensor_data(map->map), *gradient = kiln_tensor_data(map->gradient);
    const int64_t places = shape->dim[1] * shape->dim[2], channels = shape->dim[3];

    for (int64_t c = 0; c < channels; c++) {
        double mean = 0.0;

        for (int64_t i = 0; i < places; i++)
            mean += (double)gradient[i * channels + c];
        mean /= (double)places;
        for (int64_t i = 0; i < places; i++)
            ret[i] += (float)(mean * (double)values[i * channels + c]);
    }
    for (int64_t i = 0; i < places; i++)
        ret[i] = ret[i] > 0.0f ? ret[i] : 0.0f;
}

KilnStatus kiln_explain_grad_cam(KilnExplaining *self, KilnError *err)
{
    KilnVariants *variants = self->variants;
    Map map = { .layer = self->spec->layer };
    const size_t image = find_image(variants);

    if (image == variants->spec->n_features)
        return kiln_error_set(err, KILN_E_MISSING,
                              "Grad-CAM explains images, and this model reads "
                              "none");
    kiln_variants_scale(variants, 0, 1.0);
    KilnStatus status = kiln_variants_differentiate(variants, 1, self->result.target, read_map,
                                                    &map, err);
    if (status < 0)
        return status;
    const KilnShape *shape = kiln_tensor_shape(map.map);
    float *values = kiln_explaining_add(self, image, KILN_SHAPE(shape->dim[1], shape->dim[2], 1));
    if (values == NULL)
        return kiln_error_nomem(err, kiln_arena_bytes(&self->arena));
    weigh(&map, values);
    return KILN_OK;
}

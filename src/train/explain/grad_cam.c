/* Grad-CAM: the feature maps of a layer, weighted by the mean gradient of each. */
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "graph/op.h"
#include "train/explain/explaining.h"

typedef struct Map {
    const char *layer; /* a pattern; NULL: the last map */
    const KilnVariants *variants;
    size_t feature;          /* the image's number */
    const KilnTensor *image; /* of the recorded step */
    bool *between; /* of each node: its result depends on the image, and the score on it */
    KilnTensor *map, *gradient;
} Map;

enum { LAYER_NAME = 128 };

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

/* Whether the tensor depends on the image, and the score on it. */
static bool is_between(const Map *map, const KilnTensor *tensor)
{
    return tensor != NULL && tensor->grad != NULL &&
           (tensor == map->image || (tensor->node != NULL && map->between[tensor->node->index]));
}

/* Find the nodes between the image and the score, and for each the last of them that reads its
 * result; ret[n_forward] is the image's. */
static void find_readers(const KilnGraph *graph, Map *map, size_t *ret)
{
    for (size_t i = 0; i < graph->n_forward; i++) {
        const KilnNode *node = graph->nodes[i];

        for (int k = 0; k < node->n_inputs && node->n_outputs > 0; k++) {
            const KilnTensor *input = node->inputs[k];

            if (node->outputs[0]->grad == NULL || !is_between(map, input))
                continue;
            map->between[i] = true;
            ret[input == map->image ? graph->n_forward : (size_t)input->node->index] = i;
        }
    }
}

/* The first `parts` parts of a layer's name, or all of it. */
static size_t prefix(const char *layer, int parts, char *ret, size_t size)
{
    size_t n = 0;

    for (int i = 0; i < parts && layer[n] != '\0'; i++)
        n += (i > 0) + strcspn(layer + n + (i > 0), ".");
    snprintf(ret, size, "%.*s", (int)n, layer);
    return n;
}

/* Whether the pattern is of the layer or of one that it is part of: layer4 of layer4.1.bn2. */
static bool matches(const char *pattern, const char *layer)
{
    char name[LAYER_NAME];
    size_t n = 0;

    for (int parts = 1; layer != NULL && layer[n] != '\0'; parts++) {
        n = prefix(layer, parts, name, sizeof(name));
        if (fnmatch(pattern, name, 0) == 0)
            return true;
    }
    return false;
}

/* "layer X: no such ...", with the names that there are. */
static KilnStatus no_layer(const KilnGraph *graph, const char *pattern, const bool *is_map,
                           KilnError *err)
{
    enum { MOST = 24 };
    char names[MOST][LAYER_NAME];
    const char *list[MOST] = { NULL };
    KilnText text = { 0 };
    size_t n = 0;

    for (size_t i = 0; i < graph->n_forward && n < MOST; i++) {
        const char *layer = graph->nodes[i]->layer;

        if (!is_map[i] || layer == NULL || layer[0] == '\0')
            continue;
        prefix(layer, 2, names[n], sizeof(names[n]));
        if (n > 0 && strcmp(names[n], names[n - 1]) == 0)
            continue;
        kiln_text_printf(&text, "%s%s", n > 0 ? ", " : "", names[n]);
        list[n] = names[n];
        n++;
    }
    const char *nearest = kiln_nearest(pattern, list, n);
    kiln_error_set(
        err, KILN_E_KEY,
        "layer %s: no layer of that name has feature maps of the image; %s%s%s have: %s%s", pattern,
        nearest != NULL ? "did you mean " : "", nearest != NULL ? nearest : "",
        nearest != NULL ? "? These" : "these", text.data != NULL ? text.data : "none",
        n == MOST ? ", ..." : "");
    kiln_text_release(&text);
    return KILN_E_KEY;
}

/* The last map of the layer; without a layer the last one that all paths from the image to the
 * score pass through: of a residual block the sum, not a convolution inside of it. */
static KilnStatus find_map(KilnGraph *graph, Map *map, KilnError *err)
{
    const size_t n = graph->n_forward;
    bool *is_map = kiln_arena_alloc(&graph->arena, n * sizeof(*is_map)), any = false;
    size_t *last_reader = kiln_arena_alloc(&graph->arena, (n + 1) * sizeof(*last_reader));
    bool attends = false;

    map->between = kiln_arena_alloc(&graph->arena, n * sizeof(*map->between));
    if (is_map == NULL || map->between == NULL || last_reader == NULL)
        return kiln_error_nomem(err, n * sizeof(*last_reader));
    find_readers(graph, map, last_reader);
    size_t furthest = last_reader[n]; /* that reads what was computed before the node */
    for (size_t i = 0; i < n; i++) {
        const KilnNode *node = graph->nodes[i];
        const bool on_all_paths = furthest <= i;

        attends |= node->op == &kiln_op_attention || node->op == &kiln_op_attention_packed;
        is_map[i] = gives_map(node, is_map);
        furthest = last_reader[i] > furthest ? last_reader[i] : furthest;
        if (!is_map[i] || !map->between[i])
            continue;
        any = true;
        if (map->layer != NULL ? !matches(map->layer, node->layer) : !on_all_paths)
            continue;
        map->map = node->outputs[0];
        attends = false;
    }
    if (map->map != NULL && (!attends || map->layer != NULL))
        return KILN_OK;
    if (map->layer != NULL && any)
        return no_layer(graph, map->layer, is_map, err);
    return kiln_error_set(
        err, KILN_E_MISSING,
        attends ? "Grad-CAM needs feature maps near the score, but this model attends over patches "
                  "after its last convolution; integrated_gradients and occlusion explain it"
                : "Grad-CAM needs the feature maps of convolutions, which this model lacks; "
                  "integrated_gradients and occlusion explain it");
}

static KilnStatus read_map(void *ctx, KilnGraph *graph, KilnTensor **reads, size_t *n,
                           KilnError *err)
{
    Map *map = ctx;

    map->image = map->variants->points[map->feature];
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
    const size_t image = find_image(variants);
    Map map = { .layer = self->spec->layer, .variants = variants, .feature = image };

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

/* Targets and the loss of boxes for detectors that predict a box for each place of an image. */
#include "kiln/images/detection.h"

#include <math.h>
#include <string.h>

/* ---- Targets --------------------------------------------------------------------------------- */

typedef struct Attrs {
    int64_t classes;
    double radius; /* in strides */
} Attrs;

enum { BOXES, PLACES, INPUTS };
enum { CLASSES, SIDES, CENTERNESS, WEIGHT, OUTPUTS };

static KilnStatus infer(const void *attributes, const KilnOpArg *inputs, KilnOpArg *outputs,
                        KilnError *err)
{
    const Attrs *attrs = attributes;
    const KilnShape *boxes = &inputs[BOXES].shape, *places = &inputs[PLACES].shape;
    char left[KILN_SHAPE_TEXT], right[KILN_SHAPE_TEXT];

    if (boxes->rank != 3 || boxes->dim[2] != KILN_BOX_COLUMNS || places->rank != 2 ||
        places->dim[1] != 3)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "needs boxes [batch, n, %d] and places [n, 3], got %s and %s",
                              (int)KILN_BOX_COLUMNS, kiln_shape_text(boxes, left, sizeof(left)),
                              kiln_shape_text(places, right, sizeof(right)));
    const int64_t b = boxes->dim[0], n = places->dim[0];
    outputs[CLASSES].shape = KILN_SHAPE(b, n, attrs->classes);
    outputs[SIDES].shape = KILN_SHAPE(b, n, 4);
    outputs[CENTERNESS].shape = outputs[WEIGHT].shape = KILN_SHAPE(b, n);
    for (int i = 0; i < OUTPUTS; i++)
        outputs[i].dtype = inputs[BOXES].dtype;
    return KILN_OK;
}

/* A call's data, of floats or doubles. */
typedef struct Work {
    const KilnOpCall *call;
    float finest, coarsest; /* stride */
} Work;

/* Distances of a place to the left, top, right and bottom of a box. */
static void sides_of(const float *place, const float *box, float ret[4])
{
    ret[0] = place[0] - box[0];
    ret[1] = place[1] - box[1];
    ret[2] = box[2] - place[0];
    ret[3] = box[3] - place[1];
}

static bool has_box(const Work *work, const float *place, const float *box)
{
    const Attrs *attrs = work->call->attrs;
    const float stride = place[2];
    float sides[4], least, most;

    if (box[KILN_BOX_CLASS] < 0.0f || box[KILN_BOX_CLASS] >= (float)attrs->classes ||
        box[KILN_BOX_CROWD] > 0.0f)
        return false;
    const float off_x = fabsf(place[0] - (box[0] + box[2]) / 2.0f);
    const float off_y = fabsf(place[1] - (box[1] + box[3]) / 2.0f);
    sides_of(place, box, sides);
    least = fminf(fminf(sides[0], sides[1]), fminf(sides[2], sides[3]));
    most = fmaxf(fmaxf(sides[0], sides[1]), fmaxf(sides[2], sides[3]));
    return fmaxf(off_x, off_y) < (float)attrs->radius * stride && least > 0.0f &&
           most > (stride > work->finest ? 4.0f * stride : 0.0f) &&
           most < (stride < work->coarsest ? 8.0f * stride : INFINITY);
}

/* The number of the place's box; -1: it has none. */
static int64_t box_of(const Work *work, const float *place, const float *boxes, int64_t n)
{
    float smallest = INFINITY;
    int64_t ret = -1;

    for (int64_t i = 0; i < n; i++) {
        const float *box = boxes + i * KILN_BOX_COLUMNS;
        const float area = (box[2] - box[0]) * (box[3] - box[1]);

        if (area < smallest && has_box(work, place, box)) {
            smallest = area;
            ret = i;
        }
    }
    return ret;
}

/* Write the outputs of place number `i` of the batch. */
static void fill_place(const Work *work, int64_t i, const float *place, const float *box)
{
    const KilnOpCall *call = work->call;
    const Attrs *attrs = call->attrs;
    float *classes = (float *)call->outputs[CLASSES].data + i * attrs->classes;
    float *to = (float *)call->outputs[SIDES].data + i * 4;
    float *centerness = (float *)call->outputs[CENTERNESS].data + i;
    float sides[4];

    memset(classes, 0, (size_t)attrs->classes * sizeof(*classes));
    ((float *)call->outputs[WEIGHT].data)[i] = box != NULL ? 1.0f : 0.0f;
    *centerness = 0.0f;
    if (box == NULL) {
        const float half = place[2] / 2.0f;

        memcpy(to,
               (float[4]) { place[0] - half, place[1] - half, place[0] + half, place[1] + half },
               4 * sizeof(*to));
        return;
    }
    classes[(int64_t)box[KILN_BOX_CLASS]] = 1.0f;
    memcpy(to, box + KILN_BOX_SAMPLE, 4 * sizeof(*to));
    sides_of(place, box, sides);
    *centerness = sqrtf(fminf(sides[0], sides[2]) / fmaxf(sides[0], sides[2]) *
                        (fminf(sides[1], sides[3]) / fmaxf(sides[1], sides[3])));
}

static void fill_images(void *context, int64_t begin, int64_t end)
{
    const Work *work = context;
    const KilnOpCall *call = work->call;
    const int64_t n_boxes = call->inputs[BOXES].shape.dim[1];
    const int64_t n = call->inputs[PLACES].shape.dim[0];
    const float *places = call->inputs[PLACES].data;

    for (int64_t image = begin; image < end; image++) {
        const float *boxes = (const float *)call->inputs[BOXES].data +
                             image * n_boxes * KILN_BOX_COLUMNS;
        int64_t used = 0;

        while (used < n_boxes && boxes[used * KILN_BOX_COLUMNS + KILN_BOX_CLASS] >= 0.0f)
            used++;
        for (int64_t i = 0; i < n; i++) {
            const float *place = places + i * 3;
            const int64_t box = box_of(work, place, boxes, used);

            fill_place(work, image * n + i, place,
                       box >= 0 ? boxes + box * KILN_BOX_COLUMNS : NULL);
        }
    }
}

static void run(const KilnOpCall *call)
{
    const float *places = call->inputs[PLACES].data;
    Work work = { .call = call, .finest = INFINITY };

    for (int64_t i = 0; i < call->inputs[PLACES].shape.dim[0]; i++) {
        work.finest = fminf(work.finest, places[i * 3 + 2]);
        work.coarsest = fmaxf(work.coarsest, places[i * 3 + 2]);
    }
    kiln_op_parallel(call, call->inputs[BOXES].shape.dim[0], 1, fill_images, &work);
}

static const KilnCustomOp targets_op = {
    .size = sizeof(KilnCustomOp),
    .name = "fcos_targets",
    .n_inputs = INPUTS,
    .n_outputs = OUTPUTS,
    .attrs_size = sizeof(Attrs),
    .infer = infer,
    .cpu = run,
};

KilnBoxTargets kiln_fcos_targets(KilnTensor *boxes, KilnTensor *places, int64_t classes,
                                 double radius)
{
    KilnTensor *const inputs[INPUTS] = { [BOXES] = boxes, [PLACES] = places };
    const Attrs attrs = { .classes = classes, .radius = radius };
    KilnTensor *ret[OUTPUTS];

    kiln_custom_op(kiln_tensor_graph(boxes), &targets_op, inputs, &attrs, ret);
    return (KilnBoxTargets) { .classes = ret[CLASSES],
                              .boxes = ret[SIDES],
                              .centerness = ret[CENTERNESS],
                              .weight = ret[WEIGHT] };
}

/* ---- The loss -------------------------------------------------------------------------------- */

static KilnTensor *side(KilnTensor *boxes, int64_t i)
{
    return kiln_select(boxes, -1, i);
}

static KilnTensor *area_of(KilnTensor *left, KilnTensor *top, KilnTensor *right, KilnTensor *bottom)
{
    return kiln_mul(kiln_sub(right, left), kiln_sub(bottom, top));
}

KilnTensor *kiln_giou_loss(KilnTensor *a, KilnTensor *b)
{
    const double eps = 1e-7;
    KilnTensor *inner[4], *outer[4], *sides_a[4], *sides_b[4];

    for (int i = 0; i < 4; i++) {
        sides_a[i] = side(a, i);
        sides_b[i] = side(b, i);
        inner[i] = i < 2 ? kiln_maximum(sides_a[i], sides_b[i])
                         : kiln_minimum(sides_a[i], sides_b[i]);
        outer[i] = i < 2 ? kiln_minimum(sides_a[i], sides_b[i])
                         : kiln_maximum(sides_a[i], sides_b[i]);
    }
    KilnTensor *common = kiln_mul(kiln_relu(kiln_sub(inner[2], inner[0])),
                                  kiln_relu(kiln_sub(inner[3], inner[1])));
    KilnTensor *both = kiln_sub(kiln_add(area_of(sides_a[0], sides_a[1], sides_a[2], sides_a[3]),
                                         area_of(sides_b[0], sides_b[1], sides_b[2], sides_b[3])),
                                common);
    KilnTensor *hull = area_of(outer[0], outer[1], outer[2], outer[3]);
    KilnTensor *iou = kiln_div(common, kiln_shift(both, eps));
    KilnTensor *empty = kiln_div(kiln_sub(hull, both), kiln_shift(hull, eps));

    return kiln_shift(kiln_sub(empty, iou), 1.0);
}

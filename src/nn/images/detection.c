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

/* A call's inputs as floats, which is what they are made from. */
typedef struct Work {
    const KilnOpCall *call;
    const float *boxes, *places;
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

static void put(const KilnOpArg *arg, int64_t i, double value)
{
    if (arg->dtype == KILN_F64)
        ((double *)arg->data)[i] = value;
    else
        ((float *)arg->data)[i] = (float)value;
}

static double ratio(float a, float b)
{
    return (double)fminf(a, b) / (double)fmaxf(a, b);
}

/* Write the outputs of place number `i` of the batch. */
static void fill_place(const Work *work, int64_t i, const float *place, const float *box)
{
    static const int axes[4] = { 0, 1, 0, 1 };
    const KilnOpArg *outputs = work->call->outputs;
    const int64_t n_classes = outputs[CLASSES].shape.dim[2];
    const size_t row = (size_t)n_classes * kiln_dtype_size(outputs[CLASSES].dtype);
    float sides[4];

    memset((char *)outputs[CLASSES].data + (size_t)i * row, 0, row);
    put(&outputs[WEIGHT], i, box != NULL ? 1.0 : 0.0);
    if (box == NULL) {
        for (int side = 0; side < 4; side++)
            put(&outputs[SIDES], i * 4 + side,
                (double)(place[axes[side]] + (side < 2 ? -0.5f : 0.5f) * place[2]));
        put(&outputs[CENTERNESS], i, 0.0);
        return;
    }
    put(&outputs[CLASSES], i * n_classes + (int64_t)box[KILN_BOX_CLASS], 1.0);
    for (int side = 0; side < 4; side++)
        put(&outputs[SIDES], i * 4 + side, (double)box[KILN_BOX_SAMPLE + side]);
    sides_of(place, box, sides);
    put(&outputs[CENTERNESS], i, sqrt(ratio(sides[0], sides[2]) * ratio(sides[1], sides[3])));
}

static void fill_images(void *context, int64_t begin, int64_t end)
{
    const Work *work = context;
    const int64_t n_boxes = work->call->inputs[BOXES].shape.dim[1];
    const int64_t n = work->call->inputs[PLACES].shape.dim[0];

    for (int64_t image = begin; image < end; image++) {
        const float *boxes = work->boxes + image * n_boxes * KILN_BOX_COLUMNS;
        int64_t used = 0;

        while (used < n_boxes && boxes[used * KILN_BOX_COLUMNS + KILN_BOX_CLASS] >= 0.0f)
            used++;
        for (int64_t i = 0; i < n; i++) {
            const float *place = work->places + i * 3;
            const int64_t box = box_of(work, place, boxes, used);

            fill_place(work, image * n + i, place,
                       box >= 0 ? boxes + box * KILN_BOX_COLUMNS : NULL);
        }
    }
}

static void run(const KilnOpCall *call, const float *boxes, const float *places)
{
    Work work = { .call = call, .boxes = boxes, .places = places, .finest = INFINITY };

    for (int64_t i = 0; i < call->inputs[PLACES].shape.dim[0]; i++) {
        work.finest = fminf(work.finest, places[i * 3 + 2]);
        work.coarsest = fmaxf(work.coarsest, places[i * 3 + 2]);
    }
    kiln_op_parallel(call, call->inputs[BOXES].shape.dim[0], 1, fill_images, &work);
}

static void run_f32(const KilnOpCall *call)
{
    run(call, call->inputs[BOXES].data, call->inputs[PLACES].data);
}

static float *copy_floats(float *to, const KilnOpArg *from)
{
    const int64_t n = kiln_shape_count(&from->shape);

    for (int64_t i = 0; i < n; i++)
        to[i] = (float)((const double *)from->data)[i];
    return to + n;
}

static void run_f64(const KilnOpCall *call)
{
    float *boxes = call->workspace, *places = copy_floats(boxes, &call->inputs[BOXES]);

    (void)copy_floats(places, &call->inputs[PLACES]);
    run(call, boxes, places);
}

/* For the floats of doubles. */
static size_t workspace(const void *attributes, const KilnOpArg *inputs, const KilnOpArg *outputs)
{
    const int64_t n = kiln_shape_count(&inputs[BOXES].shape) +
                      kiln_shape_count(&inputs[PLACES].shape);

    (void)attributes;
    (void)outputs;
    return inputs[BOXES].dtype == KILN_F64 ? (size_t)n * sizeof(float) : 0;
}

static const KilnCustomOp targets_op = {
    .size = sizeof(KilnCustomOp),
    .name = "fcos_targets",
    .n_inputs = INPUTS,
    .n_outputs = OUTPUTS,
    .attrs_size = sizeof(Attrs),
    .infer = infer,
    .workspace = workspace,
    .cpu = run_f32,
    .cpu_f64 = run_f64,
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

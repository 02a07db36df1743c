/* Non-maximum suppression: each box that is left, in the order of scores, is kept and suppresses
 * those after it that it overlaps. A tile of boxes decides among itself first; then threads split
 * the boxes after it. */
#include "backend/cpu/cpu.h"

enum { TILE = 64 };

/* Boxes in the order of scores, one array for each side. */
typedef struct Boxes {
    float *side[4], *area;
    int32_t *group; /* all 0: one group */
    uint8_t *suppressed;
    int64_t n, first, end; /* first to end: the tile */
    float threshold;
} Boxes;

static Boxes sorted_boxes(const KilnCall *call)
{
    const float *from = call->inputs[0].data;
    const int32_t *order = call->inputs[1].data;
    const int32_t *groups = call->inputs[2].absent ? NULL : call->inputs[2].data;
    const int64_t n = kiln_cpu_count(&call->inputs[1]);
    float *at = call->workspace;
    int32_t *group = (int32_t *)(void *)(at + 5 * n);
    Boxes boxes = {
        .area = at + 4 * n,
        .group = group,
        .suppressed = (uint8_t *)(group + n),
        .n = n,
    };

    for (int i = 0; i < 4; i++) {
        boxes.side[i] = at + i * n;
        for (int64_t k = 0; k < n; k++)
            boxes.side[i][k] = from[4 * (int64_t)order[k] + i];
    }
    for (int64_t k = 0; k < n; k++) {
        boxes.area[k] = (boxes.side[2][k] - boxes.side[0][k]) *
                        (boxes.side[3][k] - boxes.side[1][k]);
        boxes.group[k] = groups != NULL ? groups[order[k]] : 0;
        boxes.suppressed[k] = 0;
    }
    return boxes;
}

static float larger(float a, float b)
{
    return a > b ? a : b;
}

static float smaller(float a, float b)
{
    return a < b ? a : b;
}

/* Suppresses boxes [begin, end) of k's group that overlap box k. */
static void suppress(const Boxes *boxes, int64_t k, int64_t begin, int64_t end)
{
    const float *x1 = boxes->side[0], *y1 = boxes->side[1], *x2 = boxes->side[2],
                *y2 = boxes->side[3], *area = boxes->area;
    const int32_t *group = boxes->group;
    const float threshold = boxes->threshold;
    uint8_t *restrict suppressed = boxes->suppressed;

    for (int64_t i = begin; i < end; i++) {
        const float width = smaller(x2[k], x2[i]) - larger(x1[k], x1[i]);
        const float height = smaller(y2[k], y2[i]) - larger(y1[k], y1[i]);
        const float both = larger(width, 0.0f) * larger(height, 0.0f);
        const float iou = both / (area[k] + area[i] - both);

        suppressed[i] |= (uint8_t)((iou > threshold) & (group[i] == group[k]));
    }
}

/* By the boxes of the tile that are kept. */
static void suppress_part(void *context, int64_t begin, int64_t end)
{
    const Boxes *boxes = context;

    for (int64_t k = boxes->first; k < boxes->end; k++)
        if (boxes->suppressed[k] == 0)
            suppress(boxes, k, boxes->end + begin, boxes->end + end);
}

static void nms_run(KilnCall *call)
{
    const KilnNmsAttrs *attrs = call->attrs;
    const int32_t *order = call->inputs[1].data;
    int32_t *index = call->outputs[0].data;
    Boxes boxes = sorted_boxes(call);
    int64_t count = 0;

    boxes.threshold = (float)attrs->threshold;
    for (; boxes.first < boxes.n; boxes.first = boxes.end) {
        int64_t kept = 0;

        boxes.end = boxes.first + TILE < boxes.n ? boxes.first + TILE : boxes.n;
        for (int64_t k = boxes.first; k < boxes.end; k++) {
            if (boxes.suppressed[k] != 0)
                continue;
            if (count < attrs->limit)
                index[count] = order[k];
            count++;
            kept++;
            suppress(&boxes, k, k + 1, boxes.end);
        }
        kiln_parallel(call->backend->threads, boxes.n - boxes.end, 16384 / (kept + 1) + 64, 64,
                      suppress_part, &boxes);
    }
    for (int64_t i = count; i < attrs->limit; i++)
        index[i] = -1;
    *(int32_t *)call->outputs[1].data = (int32_t)count;
}

static KilnStatus nms_prepare(KilnCall *call, KilnError *err)
{
    (void)err;
    for (int i = 0; i < 3; i++)
        call->inputs[i].layout = KILN_PLAIN;
    call->workspace_size = (size_t)kiln_cpu_count(&call->inputs[1]) *
                           (5 * sizeof(float) + sizeof(int32_t) + 1);
    return KILN_OK;
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_nms, .prepare = nms_prepare, .run = nms_run },
};

const KilnCpuTable kiln_cpu_boxes = { kernels, KILN_COUNT(kernels) };

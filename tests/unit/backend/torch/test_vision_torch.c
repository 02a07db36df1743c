/* Samples between pixels, boxes, volumes, results whose size is data, einsum and weights divided by
 * a norm on both backends against values and gradients recorded from PyTorch
 * (tests/record/vision.py). */
#include "tests/support/torch_groups.h"

#include "tests/data/ops/vision.h"

#define GRID(name, ...)                                                                            \
    RETURNS(name, kiln_grid_sample(x[0], x[1], (KilnGridSample) { __VA_ARGS__ }))
GRID(grid_bilinear_zeros, 0)
GRID(grid_bilinear_zeros_corners, .align_corners = true)
GRID(grid_bilinear_border, .padding = KILN_GRID_BORDER)
GRID(grid_bilinear_border_corners, .padding = KILN_GRID_BORDER, .align_corners = true)
GRID(grid_bilinear_reflection, .padding = KILN_GRID_REFLECTION)
GRID(grid_bilinear_reflection_corners, .padding = KILN_GRID_REFLECTION, .align_corners = true)
GRID(grid_nearest_zeros, .nearest = true)
GRID(grid_nearest_zeros_corners, .nearest = true, .align_corners = true)
GRID(grid_nearest_border, .nearest = true, .padding = KILN_GRID_BORDER)
GRID(grid_nearest_border_corners, .nearest = true, .padding = KILN_GRID_BORDER,
     .align_corners = true)
GRID(grid_nearest_reflection, .nearest = true, .padding = KILN_GRID_REFLECTION)
GRID(grid_nearest_reflection_corners, .nearest = true, .padding = KILN_GRID_REFLECTION,
     .align_corners = true)
RETURNS(roi_align, kiln_roi_align(x[0], x[1],
                                  (KilnRoiAlign) { .size = { 3, 2 },
                                                   .spatial_scale = 0.75,
                                                   .sampling_ratio = 2,
                                                   .aligned = true }))
RETURNS(roi_align_adaptive, kiln_roi_align(x[0], x[1], (KilnRoiAlign) { .size = { 3, 2 } }))
RETURNS(box_iou, kiln_box_iou(x[0], x[1]))
RETURNS(nms, kiln_to_float(kiln_nms(x[0], x[1], 0.3, 40).index))
RETURNS(batched_nms, kiln_to_float(kiln_batched_nms(x[0], x[1], x[2], 0.3, 40).index))
RETURNS(masked_select, kiln_masked_select(x[0], x[1], 24).values)
RETURNS(nonzero, kiln_to_float(kiln_nonzero(x[0], 24).index))
RETURNS(unique_values, kiln_to_float(kiln_unique(x[0]).values))
RETURNS(unique_inverse, kiln_to_float(kiln_unique(x[0]).inverse))
RETURNS(unique_counts, kiln_to_float(kiln_unique(x[0]).counts))
RETURNS(einsum_product, kiln_einsum("ij,jk->ik", x, 2))
RETURNS(einsum_batch, kiln_einsum("bhid, bhjd -> bhij", x, 2))
RETURNS(einsum_implied, kiln_einsum("kj,ji", x, 2))
RETURNS(einsum_outer, kiln_einsum("i,jk->kij", x, 2))
RETURNS(einsum_sums, kiln_einsum("ijk,jl->l", x, 2))
RETURNS(einsum_elements, kiln_einsum("ij,ij->ij", x, 2))
RETURNS(einsum_diagonal, kiln_einsum("iij->ji", x, 1))
RETURNS(einsum_trace, kiln_einsum("ii", x, 1))
RETURNS(einsum_bilinear, kiln_einsum("bn,anm,bm->ba", x, 3))
RETURNS(weight_norm, kiln_weight_norm(x[0], x[1], 0))
RETURNS(spectral_norm, kiln_spectral_norm(x[0], x[1], x[2], 1, 1e-12))
RETURNS(conv3d, kiln_conv3d(x[0], x[1], x[2],
                            (KilnConv3d) { .stride = { 2, 1, 1 },
                                           .padding = { 1, 1, 0 },
                                           .dilation = { 1, 2, 1 },
                                           .groups = 2 }))
RETURNS(conv_transpose3d,
        kiln_conv_transpose3d(x[0], x[1], x[2],
                              (KilnConv3d) { .stride = { 2, 1, 3 }, .padding = { 1, 0, 1 } },
                              (const int64_t[]) { 1, 0, 2 }))

#define GRID_GROUP(name) GROUP(name, F("x", 2, 4, 5, 3), F("grid", 2, 3, 4, 2))
static const Group groups[] = {
    GRID_GROUP(grid_bilinear_zeros),
    GRID_GROUP(grid_bilinear_zeros_corners),
    GRID_GROUP(grid_bilinear_border),
    GRID_GROUP(grid_bilinear_border_corners),
    GRID_GROUP(grid_bilinear_reflection),
    GRID_GROUP(grid_bilinear_reflection_corners),
    GRID_GROUP(grid_nearest_zeros),
    GRID_GROUP(grid_nearest_zeros_corners),
    GRID_GROUP(grid_nearest_border),
    GRID_GROUP(grid_nearest_border_corners),
    GRID_GROUP(grid_nearest_reflection),
    GRID_GROUP(grid_nearest_reflection_corners),
    GROUP(roi_align, F("x", 2, 6, 7, 3), F("boxes", 3, 5)),
    GROUP(roi_align_adaptive, F("x", 2, 6, 7, 3), F("boxes", 3, 5)),
    GROUP(box_iou, F("a", 9, 4), F("b", 4, 4)),
    GROUP(nms, F("boxes", 40, 4), F("scores", 40)),
    GROUP(batched_nms, F("boxes", 40, 4), F("scores", 40), I("groups", 40)),
    GROUP(masked_select, F("x", 4, 6), U("mask", 4, 6)),
    GROUP(nonzero, U("mask", 4, 6)),
    GROUP(unique_values, I("x", 3, 7)),
    GROUP(unique_inverse, I("x", 3, 7)),
    GROUP(unique_counts, I("x", 3, 7)),
    GROUP(einsum_product, F("a", 3, 4), F("b", 4, 5)),
    GROUP(einsum_batch, F("a", 2, 3, 4, 5), F("b", 2, 3, 6, 5)),
    GROUP(einsum_implied, F("a", 3, 4), F("b", 4, 2)),
    GROUP(einsum_outer, F("a", 3), F("b", 4, 2)),
    GROUP(einsum_sums, F("a", 2, 3, 4), F("b", 3, 5)),
    GROUP(einsum_elements, F("a", 3, 4), F("b", 3, 4)),
    GROUP(einsum_diagonal, F("a", 3, 3, 2)),
    GROUP(einsum_trace, F("a", 4, 4)),
    GROUP(einsum_bilinear, F("a", 2, 3), F("b", 5, 3, 4), F("c", 2, 4)),
    GROUP(weight_norm, F("v", 4, 3, 2), F("g", 4, 1, 1)),
    GROUP(spectral_norm, F("weight", 4, 3, 2), F("u", 4), F("v", 6)),
    GROUP(conv3d, F("x", 2, 4, 5, 3, 2), F("weight", 4, 1, 2, 3, 2), F("bias", 4)),
    GROUP(conv_transpose3d, F("x", 1, 3, 2, 4, 3), F("weight", 3, 2, 3, 2, 2), F("bias", 2)),
};

int main(void)
{
    return test_recording((Recording) { groups, KILN_COUNT(groups), records, KILN_COUNT(records) });
}

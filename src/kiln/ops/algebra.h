/* Sums of products by an equation, and weights divided by a norm. Part of kiln/ops.h. */
#ifndef KILN_OPS_ALGEBRA_H
#define KILN_OPS_ALGEBRA_H

#include "kiln/tensor.h"

/* Einstein summation as torch.einsum: letters name the axes of n >= 1 operands and of the result,
 * "bij,bjk->bik"; letters that the result lacks are summed; a letter twice in one operand is its
 * diagonal. Without "->" the result has the letters that are there once, in the order of the
 * alphabet. No ellipsis; sizes of one letter agree. Computed from left to right as matrix
 * products, of at most 6 axes. */
KILN_API KilnTensor *kiln_einsum(const char *equation, KilnTensor *const *operands, int n);

/* v g / |v| with norms over all axes but one; g has v's rank and size 1 on the others
 * (torch.nn.utils.weight_norm; Salimans and Kingma 2016). */
KILN_API KilnTensor *kiln_weight_norm(KilnTensor *v, KilnTensor *g, int axis);
/* The weight, as a matrix [first axis, rest], divided by its largest singular value as the vectors
 * u [rows] and v [columns] estimate it (Miyato et al. 2018). In training, `iterations` steps of the
 * power iteration update these variables first; PyTorch does one, with eps 1e-12
 * (torch.nn.utils.parametrizations.spectral_norm). In evaluation: 0. */
KILN_API KilnTensor *kiln_spectral_norm(KilnTensor *weight, KilnTensor *u, KilnTensor *v,
                                        int iterations, double eps);

#endif

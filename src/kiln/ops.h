/* Operations on tensors. Each records one node and returns its output; nothing
 * is computed until kiln_graph_run. Shapes are checked at once: an operation
 * whose inputs do not fit returns a poisoned tensor, remembers the first error
 * with layer and shapes, and whatever uses it is poisoned too, so that a step
 * reads like its formula; kiln_graph_check or kiln_graph_run reports it.
 *
 * Images are [N, H, W, C]. Convolution weights are PyTorch's [O, I, kh, kw],
 * linear weights [out, in]. Float means f32 (f64 on the reference backend). */
#ifndef KILN_OPS_H
#define KILN_OPS_H

#include "kiln/ops/algebra.h"
#include "kiln/ops/image.h"
#include "kiln/ops/select.h"
#include "kiln/ops/sequence.h"
#include "kiln/ops/updates.h"
#include "kiln/tensor.h"

/* ---- Elementwise ------------------------------------------------------------
 * Operands broadcast as in NumPy and PyTorch: axes are matched from the last, and
 * sizes must be equal or one of them 1. Names, values and gradients are those of
 * PyTorch's function of the same name; what differs is said. */

KILN_API KilnTensor *kiln_add(KilnTensor *a, KilnTensor *b);
KILN_API KilnTensor *kiln_sub(KilnTensor *a, KilnTensor *b);
KILN_API KilnTensor *kiln_mul(KilnTensor *a, KilnTensor *b);
KILN_API KilnTensor *kiln_div(KilnTensor *a, KilnTensor *b);
/* x * factor, x + number, -x. */
KILN_API KilnTensor *kiln_scale(KilnTensor *x, double factor);
KILN_API KilnTensor *kiln_shift(KilnTensor *x, double number);
KILN_API KilnTensor *kiln_neg(KilnTensor *x);
/* The smaller, larger of two; NaN if one is. Equals share the gradient. */
KILN_API KilnTensor *kiln_minimum(KilnTensor *a, KilnTensor *b);
KILN_API KilnTensor *kiln_maximum(KilnTensor *a, KilnTensor *b);
/* min(max(x, least), most); infinite bounds are none. On a bound the slope is 0
 * (PyTorch's since 2.15). */
KILN_API KilnTensor *kiln_clamp(KilnTensor *x, double least, double most);

/* 1.0 where the comparison holds, else 0.0; slope 0. */
KILN_API KilnTensor *kiln_eq(KilnTensor *a, KilnTensor *b);
KILN_API KilnTensor *kiln_ne(KilnTensor *a, KilnTensor *b);
KILN_API KilnTensor *kiln_lt(KilnTensor *a, KilnTensor *b);
KILN_API KilnTensor *kiln_le(KilnTensor *a, KilnTensor *b);
KILN_API KilnTensor *kiln_gt(KilnTensor *a, KilnTensor *b);
KILN_API KilnTensor *kiln_ge(KilnTensor *a, KilnTensor *b);
/* a where the condition (float or u8) is not zero, else b. */
KILN_API KilnTensor *kiln_where(KilnTensor *condition, KilnTensor *a, KilnTensor *b);
/* value where the mask (float or u8) is not zero, else x. */
KILN_API KilnTensor *kiln_masked_fill(KilnTensor *x, KilnTensor *mask, double value);

KILN_API KilnTensor *kiln_exp(KilnTensor *x);
KILN_API KilnTensor *kiln_log(KilnTensor *x);
/* log(1 + x), exact for small x. */
KILN_API KilnTensor *kiln_log1p(KilnTensor *x);
KILN_API KilnTensor *kiln_sqrt(KilnTensor *x);
KILN_API KilnTensor *kiln_rsqrt(KilnTensor *x);
KILN_API KilnTensor *kiln_reciprocal(KilnTensor *x);
KILN_API KilnTensor *kiln_square(KilnTensor *x);
/* x to a number; x to a tensor. */
KILN_API KilnTensor *kiln_pow(KilnTensor *x, double exponent);
KILN_API KilnTensor *kiln_power(KilnTensor *x, KilnTensor *exponent);
/* Slope 0 at 0. */
KILN_API KilnTensor *kiln_abs(KilnTensor *x);
/* -1, 0 or 1; of NaN 0. Slope 0. */
KILN_API KilnTensor *kiln_sign(KilnTensor *x);
/* The largest integer that is not above x; the nearest one, halves to the even one. Slope 0. */
KILN_API KilnTensor *kiln_floor(KilnTensor *x);
KILN_API KilnTensor *kiln_round(KilnTensor *x);
KILN_API KilnTensor *kiln_erf(KilnTensor *x);
KILN_API KilnTensor *kiln_sin(KilnTensor *x);
KILN_API KilnTensor *kiln_cos(KilnTensor *x);
/* The angle of the point (x, y), in (-pi, pi]. */
KILN_API KilnTensor *kiln_atan2(KilnTensor *y, KilnTensor *x);

/* i32 or u8 as floats. No gradient. */
KILN_API KilnTensor *kiln_to_float(KilnTensor *x);
/* The values of a float tensor, as a constant: no gradient passes (PyTorch's detach). */
KILN_API KilnTensor *kiln_detach(KilnTensor *x);
/* x repeated to a shape to which it broadcasts (PyTorch's expand). */
KILN_API KilnTensor *kiln_broadcast_to(KilnTensor *x, KilnShape shape);
/* 1.0 where the i32 tensors agree, else 0.0; same shape. No gradient. */
KILN_API KilnTensor *kiln_equal(KilnTensor *a, KilnTensor *b);

/* ---- Activations ------------------------------------------------------------ */

/* max(x, 0); slope 0 at 0. */
KILN_API KilnTensor *kiln_relu(KilnTensor *x);
/* x where positive, else slope * x (PyTorch: 0.01). */
KILN_API KilnTensor *kiln_leaky_relu(KilnTensor *x, double slope);
/* x where positive, else alpha * (exp(x) - 1) (PyTorch: 1); Clevert et al. 2016. */
KILN_API KilnTensor *kiln_elu(KilnTensor *x, double alpha);
typedef enum KilnGelu {
    KILN_GELU_ERF, /* x * Phi(x) */
    KILN_GELU_TANH /* its approximation through tanh, as GPT-2's */
} KilnGelu;
/* Hendrycks and Gimpel 2016. */
KILN_API KilnTensor *kiln_gelu(KilnTensor *x, KilnGelu form);
/* x * sigmoid(x). */
KILN_API KilnTensor *kiln_silu(KilnTensor *x);
/* x * kiln_hard_sigmoid(x) (Howard et al. 2019). */
KILN_API KilnTensor *kiln_hard_swish(KilnTensor *x);
/* min(max(x / 6 + 1 / 2, 0), 1). */
KILN_API KilnTensor *kiln_hard_sigmoid(KilnTensor *x);
/* log(1 + exp(beta x)) / beta, and x where beta x > threshold (PyTorch: 1 and 20). */
KILN_API KilnTensor *kiln_softplus(KilnTensor *x, double beta, double threshold);
KILN_API KilnTensor *kiln_sigmoid(KilnTensor *x);
KILN_API KilnTensor *kiln_tanh(KilnTensor *x);

/* ---- Shape, dropout --------------------------------------------------------- */

/* The same elements in another shape; one size may be -1. No copy. */
KILN_API KilnTensor *kiln_reshape(KilnTensor *x, KilnShape shape);
/* Axis i of the result is axis order[i] of x; order has rank(x) entries. */
KILN_API KilnTensor *kiln_permute(KilnTensor *x, const int *order);
/* [N, H, W, C] -> [N, C*H*W] in PyTorch's order; other ranks [N, ...] -> [N, rest]. */
KILN_API KilnTensor *kiln_flatten(KilnTensor *x);
/* Zero each element with probability p and scale the rest by 1/(1-p).
 * `key` is i32 [2], changed by the caller every step (kiln_step_dropout_key);
 * `stream` tells the layers of one step apart. */
KILN_API KilnTensor *kiln_dropout(KilnTensor *x, double p, KilnTensor *key, int64_t stream);
/* The same with a probability that is data, a float scalar (kiln_graph_scalar), so that it may
 * change from step to step. Below 0, or 1 and above: all NaN. It has no gradient. */
KILN_API KilnTensor *kiln_dropout_rate(KilnTensor *x, KilnTensor *rate, KilnTensor *key,
                                       int64_t stream);

/* x in another type, as PyTorch's Tensor.to: to bf16 rounded to nearest, ties to
 * even; to an integer towards zero. A gradient passes between floats,
 * unrounded. */
KILN_API KilnTensor *kiln_cast(KilnTensor *x, KilnDType dtype);

/* ---- Reductions ----------------------------------------------------------- */

/* Sum, and mean, of all elements: a scalar. */
KILN_API KilnTensor *kiln_sum(KilnTensor *x);
KILN_API KilnTensor *kiln_mean(KilnTensor *x);
/* Over n axes, each named once, negative ones from the end; n = 0: over all. With
 * `keep` they stay as axes of size 1, else they are gone. */
KILN_API KilnTensor *kiln_sum_axes(KilnTensor *x, const int *axes, int n, bool keep);
KILN_API KilnTensor *kiln_mean_axes(KilnTensor *x, const int *axes, int n, bool keep);
/* PyTorch's amax and amin: NaN if one is; equals share the gradient evenly. */
KILN_API KilnTensor *kiln_max_axes(KilnTensor *x, const int *axes, int n, bool keep);
KILN_API KilnTensor *kiln_min_axes(KilnTensor *x, const int *axes, int n, bool keep);
/* Product; where factors are zero, the gradient is still the product of the others. */
KILN_API KilnTensor *kiln_prod_axes(KilnTensor *x, const int *axes, int n, bool keep);
/* log of the sum of exp, without overflow. */
KILN_API KilnTensor *kiln_logsumexp(KilnTensor *x, const int *axes, int n, bool keep);
/* Variance, and its root: squares over the count less `correction` (PyTorch: 1). */
KILN_API KilnTensor *kiln_var(KilnTensor *x, const int *axes, int n, double correction, bool keep);
KILN_API KilnTensor *kiln_std(KilnTensor *x, const int *axes, int n, double correction, bool keep);
/* Sum over all axes but the last: [..., C] -> [C]. */
KILN_API KilnTensor *kiln_sum_rows(KilnTensor *x);
/* Index of the largest element along one axis, first of equals, NaN above all: i32. */
KILN_API KilnTensor *kiln_argmax_axis(KilnTensor *x, int axis, bool keep);
/* The same along the last axis: [..., C] -> i32 [...]. */
KILN_API KilnTensor *kiln_argmax(KilnTensor *x);

/* ---- Matrix products and convolutions ------------------------------------- */

/* op(a) · op(b) of matrices [..., m, k] and [..., k, n] -> [..., m, n]; op
 * transposes the last two axes when the flag is set. The axes before them
 * broadcast as PyTorch's matmul's do. */
KILN_API KilnTensor *kiln_matmul(KilnTensor *a, KilnTensor *b, bool transpose_a, bool transpose_b);
/* x · weightᵀ + bias: [..., in], [out, in], [out] or NULL -> [..., out]. */
KILN_API KilnTensor *kiln_linear(KilnTensor *x, KilnTensor *weight, KilnTensor *bias);

/* One number for height and width; where the two differ, the pair {height, width}
 * instead: one that is not all 0 is taken. 0 reads as the default. */
typedef struct KilnConv {
    int64_t stride;   /* default 1 */
    int64_t padding;  /* zeros on every side */
    int64_t dilation; /* from one element of the kernel to the next; default 1 */
    int64_t groups;   /* of channels that do not see each other; default 1 */
    int64_t stride_hw[2], padding_hw[2], dilation_hw[2];
} KilnConv;

/* Cross-correlation as PyTorch's conv2d: [N,H,W,I], [O,I/groups,kh,kw], [O] or NULL
 * -> [N, (H + 2p - d(kh-1) - 1)/s + 1, (W + 2p - d(kw-1) - 1)/s + 1, O]. With as many
 * groups as channels it is depthwise. */
KILN_API KilnTensor *kiln_conv2d(KilnTensor *x, KilnTensor *weight, KilnTensor *bias,
                                 KilnConv conv);
/* The same along one axis, as PyTorch's conv1d but for the order: [N,L,I],
 * [O,I/groups,k], [O] or NULL -> [N, (L + 2p - d(k-1) - 1)/s + 1, O]. Pairs are ignored. */
KILN_API KilnTensor *kiln_conv1d(KilnTensor *x, KilnTensor *weight, KilnTensor *bias,
                                 KilnConv conv);

typedef struct KilnConvTranspose {
    KilnConv conv;          /* the convolution that this is the transpose of */
    int64_t output_padding; /* rows and columns more at the end; less than the stride */
    int64_t output_padding_hw[2];
} KilnConvTranspose;

/* PyTorch's conv_transpose2d, the gradient of conv2d with respect to its input:
 * [N,H,W,I], [I,O/groups,kh,kw], [O] or NULL -> [N, (H-1)s - 2p + d(kh-1) + 1 + output
 * padding, and so for W, O]. */
KILN_API KilnTensor *kiln_conv_transpose2d(KilnTensor *x, KilnTensor *weight, KilnTensor *bias,
                                           KilnConvTranspose conv);
/* The same along one axis: [N,L,I], [I,O/groups,k], [O] or NULL -> [N, ..., O]. Pairs are
 * ignored. */
KILN_API KilnTensor *kiln_conv_transpose1d(KilnTensor *x, KilnTensor *weight, KilnTensor *bias,
                                           KilnConvTranspose conv);

/* Depth, height, width. Zeroed: stride, dilation and groups 1, no padding. */
typedef struct KilnConv3d {
    int64_t stride[3], padding[3], dilation[3];
    int64_t groups;
} KilnConv3d;

/* PyTorch's conv3d but for the order, as a sum of two-dimensional convolutions: [N,D,H,W,I],
 * [O,I/groups,kd,kh,kw], [O] or NULL -> [N,D',H',W',O]. */
KILN_API KilnTensor *kiln_conv3d(KilnTensor *x, KilnTensor *weight, KilnTensor *bias,
                                 KilnConv3d conv);
/* Its transpose: weight [I,O/groups,kd,kh,kw]; output_padding NULL: 0. */
KILN_API KilnTensor *kiln_conv_transpose3d(KilnTensor *x, KilnTensor *weight, KilnTensor *bias,
                                           KilnConv3d conv, const int64_t output_padding[3]);

/* Pairs {height, width} as in KilnConv. */
typedef struct KilnPool {
    int64_t kernel;
    int64_t stride;  /* 0: the kernel's size */
    int64_t padding; /* at most half of the kernel */
    int64_t kernel_hw[2], stride_hw[2], padding_hw[2];
    bool exclude_padding; /* averages over the elements of the image alone; PyTorch's
                             count_include_pad=False */
    bool ceil_mode;       /* a last window that reaches beyond the padding counts, too, if it begins
                             in the image or in the padding before it: as PyTorch's ceil_mode */
} KilnPool;

/* Largest element of each window (padding counts as -inf), as PyTorch's: [N,H,W,C] ->
 * [N, (H + 2p - kh)/s + 1, (W + 2p - kw)/s + 1, C]. NaN where a window has one. The first of
 * equals gets the gradient. */
KILN_API KilnTensor *kiln_max_pool2d(KilnTensor *x, KilnPool pool);
/* Mean of each window, as PyTorch's: the padding counts as zeros, what lies beyond it
 * (ceil_mode) does not count. */
KILN_API KilnTensor *kiln_avg_pool2d(KilnTensor *x, KilnPool pool);
/* Mean of windows that share the image among height×width places, as PyTorch's:
 * [N,H,W,C] -> [N,height,width,C]. With 1×1 it is the mean over the whole image. */
KILN_API KilnTensor *kiln_adaptive_avg_pool2d(KilnTensor *x, int64_t height, int64_t width);
/* The same along one axis: [N,L,C] -> [N,...,C]. Pairs are ignored. */
KILN_API KilnTensor *kiln_max_pool1d(KilnTensor *x, KilnPool pool);
KILN_API KilnTensor *kiln_avg_pool1d(KilnTensor *x, KilnPool pool);
KILN_API KilnTensor *kiln_adaptive_avg_pool1d(KilnTensor *x, int64_t length);

/* ---- Normalization -------------------------------------------------------- */

typedef struct KilnBatchNorm {
    double eps;      /* PyTorch: 1e-5 */
    double momentum; /* PyTorch: 0.1 */
    bool training;   /* batch statistics and update of the running ones, or running ones only */
} KilnBatchNorm;

/* Batch normalization over all axes but the last (Ioffe and Szegedy 2015).
 * x [..., C]; weight, bias, running_mean, running_var [C]. In training the
 * running statistics are updated as PyTorch does (unbiased variance). */
KILN_API KilnTensor *kiln_batch_norm(KilnTensor *x, KilnTensor *weight, KilnTensor *bias,
                                     KilnTensor *running_mean, KilnTensor *running_var,
                                     KilnBatchNorm norm);

/* Layer normalization (Ba et al. 2016) over the last `axes` axes, as PyTorch's; weight and
 * bias have the shape of those axes, or are NULL. eps: PyTorch's default is 1e-5. */
KILN_API KilnTensor *kiln_layer_norm(KilnTensor *x, KilnTensor *weight, KilnTensor *bias, int axes,
                                     double eps);
/* x / sqrt(mean(x²) + eps) * weight over the last `axes` axes (Zhang and Sennrich 2019), as
 * PyTorch's; weight may be NULL. eps: PyTorch's default for f32 is 2^-23. */
KILN_API KilnTensor *kiln_rms_norm(KilnTensor *x, KilnTensor *weight, int axes, double eps);
/* Group normalization (Wu and He 2018), as PyTorch's but for the order: x [N, ..., C] in
 * `groups` of consecutive channels; weight and bias [C], or NULL. eps: as above. */
KILN_API KilnTensor *kiln_group_norm(KilnTensor *x, KilnTensor *weight, KilnTensor *bias,
                                     int64_t groups, double eps);

/* ---- Attention ------------------------------------------------------------- */

/* What attention may look at, and how. All zero: everything, scaled as usual. */
typedef struct KilnAttention {
    bool causal;         /* query i sees keys 0 ... i, as PyTorch's is_causal */
    bool heads_first;    /* tensors are [B, H, T, D], PyTorch's order; else [B, T, H, D] */
    double scale;        /* of q·k; 0: 1/sqrt(D) */
    KilnTensor *mask;    /* NULL, or broadcast to [B, H, Tq, Tk]: u8 (1: may be looked at), or a
                          * float that is added to the scaled products; where that wants a
                          * gradient, backward keeps a Tq × Tk matrix for each head */
    KilnTensor *padding; /* NULL, or u8 [B, Tk]: 1 for keys that are there, 0 for padding */
    double dropout;      /* of probabilities; needs `key` when not 0 */
    KilnTensor *key;     /* i32 [2], as kiln_dropout's */
    int64_t stream;      /* as kiln_dropout's */
} KilnAttention;

/* softmax(scale·q·kᵀ + mask)·v for each head: torch.nn.functional.scaled_dot_product_attention.
 * Blocked with a running softmax (Dao et al. 2022), so that no Tq × Tk matrix is kept. q [B, Tq,
 * H, D]; k and v [B, Tk, G, D] where G divides H (each head of k and v serves H/G of q,
 * as enable_gqa); result as q. A query that may look at nothing gives 0. */
KILN_API KilnTensor *kiln_attention(KilnTensor *q, KilnTensor *k, KilnTensor *v,
                                    KilnAttention attention);
/* The same of [B, T, 3, H, D], which one linear layer makes: q, k and v at index
 * 0, 1, 2 of axis 2. -> [B, T, H, D]. Without copies in either direction. */
KILN_API KilnTensor *kiln_attention_packed(KilnTensor *qkv, KilnAttention attention);
/* The same for sequences of several documents, as FlashAttention's of variable length: row i of
 * sequence b is at positions[b][i] of its document, and query i sees keys from row i -
 * positions[b][i] on, where the document begins. i32 [B, Tq], or [1, Tq] for all sequences; NULL:
 * every sequence is one document. With `causal` no row sees another document, and blocks of keys
 * that none of a block of queries sees cost nothing. No Tq × Tk mask is needed. */
KILN_API KilnTensor *kiln_attention_within(KilnTensor *q, KilnTensor *k, KilnTensor *v,
                                           KilnTensor *positions, KilnAttention attention);
KILN_API KilnTensor *kiln_attention_packed_within(KilnTensor *qkv, KilnTensor *positions,
                                                  KilnAttention attention);

typedef struct KilnRotary {
    double base;   /* 0: 10000 */
    int64_t first; /* position of row 0, for decoding step by step */
    bool
        interleaved; /* pairs are elements 2i and 2i+1 (Su et al.); else i and i + D/2 (GPT-NeoX) */
    bool heads_first; /* [B, H, T, D]; else [B, T, H, D] */
} KilnRotary;

/* Rotary positions (Su et al. 2021): pair i of row t is turned by the angle
 * (first + t)·base^(-2i/D). x [B, T, H, D], D even -> the same shape. */
KILN_API KilnTensor *kiln_rotary(KilnTensor *x, KilnRotary rotary);

/* The same from a position that is data, so that one plan serves every step of decoding:
 * row 0 of sequence b is at position[b] + rotary.first; i32 [B], or [1] for all. */
KILN_API KilnTensor *kiln_rotary_at(KilnTensor *x, KilnTensor *position, KilnRotary rotary);

/* Keys or values of earlier steps of decoding: writes x to the rows from position[b] (i32
 * [B], or [1] for all) of sequence b of the variable `cache`; both are [B, ..., rows, ...]
 * with the rows along `axis`. What is recorded later reads the new rows. Where rows do
 * not fit, the last one becomes NaN, so that it shows. */
KILN_API void kiln_cache_write(KilnTensor *cache, KilnTensor *x, KilnTensor *position, int axis);
/* The mask for attention over such a cache of `keys` rows: query i of sequence b, at
 * position[b] + i, sees the keys up to its own -> u8 [B or 1, 1, queries, keys]. */
KILN_API KilnTensor *kiln_cache_mask(KilnTensor *position, int64_t queries, int64_t keys);

/* ---- Recurrent layers ------------------------------------------------------- */

typedef struct KilnRecurrent {
    bool batch_first;    /* sequences are [B, T, ...]; else [T, B, ...] */
    bool reverse;        /* from the last step (of each sequence) to the first */
    KilnTensor *h0;      /* [B, H]; NULL: 0 */
    KilnTensor *c0;      /* [B, H], LSTM only; NULL: 0 */
    KilnTensor *lengths; /* NULL, or i32 [B], steps of each sequence, 0 to T: as PyTorch's packed
                          * sequences; y is 0 after the end */
} KilnRecurrent;

typedef struct KilnRecurrentOut {
    KilnTensor *y; /* hidden state of every step, [T, B, H] or [B, T, H] */
    KilnTensor *h; /* [B, H] after the last step of each sequence */
    KilnTensor *c; /* [B, H], cells; NULL of a GRU */
} KilnRecurrentOut;

/* One layer and direction of torch.nn.LSTM (Hochreiter and Schmidhuber 1997,
 * with forget gates) after the product with the input: p = x·weight_ihᵀ +
 * bias_ih + bias_hh [T, B, 4H], a kiln_linear over all steps at once; weight_hh
 * [4H, H]. Gates lie in PyTorch's order i, f, g, o. */
KILN_API KilnRecurrentOut kiln_lstm(KilnTensor *p, KilnTensor *weight_hh, KilnRecurrent recurrent);
/* The same of torch.nn.GRU (Cho et al. 2014): p = x·weight_ihᵀ + bias_ih [T, B,
 * 3H], weight_hh [3H, H], bias_hh [3H] or NULL; gates r, z, n. */
KILN_API KilnRecurrentOut kiln_gru(KilnTensor *p, KilnTensor *weight_hh, KilnTensor *bias_hh,
                                   KilnRecurrent recurrent);
/* ---- Moving, cutting, joining ---------------------------------------------- */

/* Negative axes count from the end. These take every element type; gradients are
 * those of floats. Names and meanings are PyTorch's. */

/* The two axes change places (torch.transpose). */
KILN_API KilnTensor *kiln_transpose(KilnTensor *x, int axis_a, int axis_b);
/* Without an axis of size 1; with one more before `axis`. No copy. */
KILN_API KilnTensor *kiln_squeeze(KilnTensor *x, int axis);
KILN_API KilnTensor *kiln_unsqueeze(KilnTensor *x, int axis);
/* x[start:stop:step] on one axis, as Python: negative positions count from the
 * end, those past an end are cut off; KILN_END is the end. step >= 1. */
#define KILN_END INT64_MAX
KILN_API KilnTensor *kiln_slice(KilnTensor *x, int axis, int64_t start, int64_t stop, int64_t step);
/* `length` places from `start` on one axis (torch.narrow). */
KILN_API KilnTensor *kiln_narrow(KilnTensor *x, int axis, int64_t start, int64_t length);
/* One place on an axis, which goes away (torch.select). */
KILN_API KilnTensor *kiln_select(KilnTensor *x, int axis, int64_t index);
/* Fill ret[n] with n >= 1 pieces of the given sizes along an axis; the sizes add up to
 * the axis (torch.split). */
KILN_API void kiln_split(KilnTensor *x, int axis, const int64_t *sizes, int n, KilnTensor **ret);
/* n >= 1 tensors one after the other along an axis they have (torch.cat), or along
 * a new one (torch.stack). */
KILN_API KilnTensor *kiln_concat(KilnTensor *const *tensors, int n, int axis);
KILN_API KilnTensor *kiln_stack(KilnTensor *const *tensors, int n, int axis);
/* before[i] and after[i] more places on axis i, filled with `value`; both have
 * rank(x) entries of at least 0 (torch.nn.functional.pad, mode constant). */
KILN_API KilnTensor *kiln_pad(KilnTensor *x, const int64_t *before, const int64_t *after,
                              double value);
/* The same filled from x itself, of any type: mirrored at the edges without repeating them
 * (mode reflect; each of before and after less than the axis), or the edges repeated (mode
 * replicate). */
KILN_API KilnTensor *kiln_pad_reflect(KilnTensor *x, const int64_t *before, const int64_t *after);
KILN_API KilnTensor *kiln_pad_replicate(KilnTensor *x, const int64_t *before, const int64_t *after);
/* Backwards along an axis; moved on by `shift`, what falls off comes in again. */
KILN_API KilnTensor *kiln_flip(KilnTensor *x, int axis);
KILN_API KilnTensor *kiln_roll(KilnTensor *x, int axis, int64_t shift);
/* Of the last two axes, float only: `value` above (triu: below) the diagonal, which
 * lies `diagonal` columns right of the main one; the rest stays (torch.tril, triu
 * with value 0; the causal mask of scores is kiln_tril(x, 0, -INFINITY)). */
KILN_API KilnTensor *kiln_tril(KilnTensor *x, int64_t diagonal, double value);
KILN_API KilnTensor *kiln_triu(KilnTensor *x, int64_t diagonal, double value);

/* ---- Picking by index ------------------------------------------------------- */

/* Indices are i32. One that is out of range reads NaN (0 of integers) and gets no
 * gradient, so that it shows and does no harm. */

/* y[i][j] = x[index[i][j]][j] for axis 0, and so on (torch.gather): index has x's
 * rank and, off the axis, at most its sizes. Any element type. */
KILN_API KilnTensor *kiln_gather(KilnTensor *x, int axis, KilnTensor *index);
/* x with src added at the places that kiln_gather with this index would read
 * (torch.scatter_add); src has index's shape. Terms of one place are added in the
 * order of the axis. Where an index is out of range the first place of its line
 * becomes NaN. */
KILN_API KilnTensor *kiln_scatter_add(KilnTensor *x, int axis, KilnTensor *index, KilnTensor *src);
/* Whole slices of an axis: the axis is replaced by index's axes (torch.index_select
 * when index has one). Any element type. */
KILN_API KilnTensor *kiln_index_select(KilnTensor *x, int axis, KilnTensor *index);
/* 1.0 at the index, else 0.0, on a new last axis: [...] -> float [..., classes]; all
 * zero where it is out of range. */
KILN_API KilnTensor *kiln_one_hot(KilnTensor *index, int64_t classes);
/* start, start + step, ...: [n], i32 or the graph's float type. */
KILN_API KilnTensor *kiln_arange(KilnGraph *graph, KilnDType dtype, double start, double step,
                                 int64_t n);
/* Running sum along an axis (torch.cumsum). */
KILN_API KilnTensor *kiln_cumsum(KilnTensor *x, int axis);

/* Rows of weight [V, D]: index of any shape -> [..., D]. The row `padding_idx` gets no
 * gradient; -1: there is none (torch.nn.functional.embedding). */
KILN_API KilnTensor *kiln_embedding(KilnTensor *weight, KilnTensor *index, int64_t padding_idx);

typedef enum KilnBagMode { KILN_BAG_SUM, KILN_BAG_MEAN, KILN_BAG_MAX } KilnBagMode;

/* One vector per bag of indices: their rows' sum, mean or largest elements. index [B, L]
 * with offsets NULL, or index [n] and offsets i32 [B], where bag b is index[offsets[b]] up to
 * the next bag's start. padding_idx is left out of the bags; an empty bag gives zeros
 * (torch.nn.functional.embedding_bag). -> [B, D]. */
KILN_API KilnTensor *kiln_embedding_bag(KilnTensor *weight, KilnTensor *index, KilnTensor *offsets,
                                        KilnBagMode mode, int64_t padding_idx);
/* The sums with a factor for each row: `factors` has index's shape (per_sample_weights of
 * torch.nn.functional.embedding_bag, mode sum). The factor of a row that is left out gets the
 * gradient 0. */
KILN_API KilnTensor *kiln_embedding_bag_weighted(KilnTensor *weight, KilnTensor *index,
                                                 KilnTensor *offsets, KilnTensor *factors,
                                                 int64_t padding_idx);

/* ---- Probabilities and losses --------------------------------------------- */

/* Softmax, and its logarithm, along an axis. */
KILN_API KilnTensor *kiln_softmax(KilnTensor *x, int axis);
KILN_API KilnTensor *kiln_log_softmax(KilnTensor *x, int axis);

/* What becomes of the single losses: their mean, their sum, or themselves. */
typedef enum KilnReduction {
    KILN_REDUCTION_MEAN,
    KILN_REDUCTION_SUM,
    KILN_REDUCTION_NONE
} KilnReduction;

/* Zeroed: torch.nn.functional.cross_entropy's defaults. */
typedef struct KilnCrossEntropy {
    KilnTensor *weight;     /* float [C], of the classes; NULL: all 1 */
    double label_smoothing; /* 0 to 1; kiln_nll: 0 */
    bool ignore;            /* rows of label ignore_index don't count; false: -100 is ignored */
    int64_t ignore_index;
    KilnReduction reduction; /* mean: over the weights of the rows that count */
} KilnCrossEntropy;

/* -log softmax(logits)[label], computed together. logits [..., C], labels i32 [...] (PyTorch
 * has the classes second, here they are last). A label that is none of the classes gives
 * NaN. -> scalar, or [...] for KILN_REDUCTION_NONE. */
KILN_API KilnTensor *kiln_cross_entropy(KilnTensor *logits, KilnTensor *labels,
                                        KilnCrossEntropy options);
/* The same for targets that are probabilities, [..., C]; the mean is over the rows, and
 * nothing is ignored. The targets have no gradient: kiln_detach those that want one. */
KILN_API KilnTensor *kiln_cross_entropy_soft(KilnTensor *logits, KilnTensor *targets,
                                             KilnCrossEntropy options);
/* -log_probs[label] (torch.nn.functional.nll_loss), shapes as kiln_cross_entropy. */
KILN_API KilnTensor *kiln_nll(KilnTensor *log_probs, KilnTensor *labels, KilnCrossEntropy options);

typedef struct KilnCtc {
    int64_t blank;      /* class of the blank */
    bool zero_infinity; /* an impossible alignment costs 0, not infinity */
    KilnReduction
        reduction; /* mean: each loss over its target's length (at least 1), then over N */
} KilnCtc;

/* Connectionist temporal classification (Graves et al. 2006; torch.nn.functional.ctc_loss):
 * log_probs [T, N, C] as kiln_log_softmax gives, targets i32 [N, S], input_lengths and
 * target_lengths i32 [N]. The gradient is the derivative by log_probs itself; PyTorch's
 * gives the same after log_softmax only. Lengths or labels out of range: NaN.
 * -> scalar, or [N]. */
KILN_API KilnTensor *kiln_ctc(KilnTensor *log_probs, KilnTensor *targets, KilnTensor *input_lengths,
                              KilnTensor *target_lengths, KilnCtc options);

/* The rest of the losses are torch.nn.functional's of the same name. Input and target
 * have one shape (PyTorch would broadcast), and so has the loss before it is reduced. */

/* (input - target)^2, and |input - target|. */
KILN_API KilnTensor *kiln_mse(KilnTensor *input, KilnTensor *target, KilnReduction reduction);
KILN_API KilnTensor *kiln_l1(KilnTensor *input, KilnTensor *target, KilnReduction reduction);
/* Half the square where |input - target| <= delta, and straight beyond it (Huber 1964);
 * smooth_l1 is that over beta, or l1 when beta is 0. */
KILN_API KilnTensor *kiln_huber(KilnTensor *input, KilnTensor *target, double delta,
                                KilnReduction reduction);
KILN_API KilnTensor *kiln_smooth_l1(KilnTensor *input, KilnTensor *target, double beta,
                                    KilnReduction reduction);
/* Binary cross entropy of sigmoid(input), computed from input. weight (of the losses) and
 * pos_weight (of the targets that are 1) broadcast to it; NULL: 1. */
KILN_API KilnTensor *kiln_bce_with_logits(KilnTensor *input, KilnTensor *target, KilnTensor *weight,
                                          KilnTensor *pos_weight, KilnReduction reduction);
/* target * (log(target) - input), where input is log-probabilities, and the target too
 * when log_target is set. PyTorch's batchmean is the sum over the first axis' size. */
KILN_API KilnTensor *kiln_kl_div(KilnTensor *input, KilnTensor *target, bool log_target,
                                 KilnReduction reduction);
/* Binary cross entropy times (1 - p_t)^gamma, and alpha for ones, 1 - alpha for zeros when
 * alpha >= 0 (Lin et al. 2017; torchvision.ops.sigmoid_focal_loss: 0.25, 2). */
KILN_API KilnTensor *kiln_sigmoid_focal(KilnTensor *input, KilnTensor *target, double alpha,
                                        double gamma, KilnReduction reduction);
/* The same over classes: cross entropy times (1 - p_label)^gamma. Labels, weight and ignored
 * labels as kiln_cross_entropy; the mean is over the rows that count, not their weights.
 * gamma 0 or at least 1. */
KILN_API KilnTensor *kiln_focal(KilnTensor *logits, KilnTensor *labels, double gamma,
                                KilnCrossEntropy options);
/* a·b / (max(|a|, eps) max(|b|, eps)) along an axis, which goes away (PyTorch: eps 1e-8). */
KILN_API KilnTensor *kiln_cosine_similarity(KilnTensor *a, KilnTensor *b, int axis, double eps);
/* 1 - cosine of a and b [..., D] where target [...] is 1, max(0, cosine - margin) where it
 * is -1. */
KILN_API KilnTensor *kiln_cosine_embedding(KilnTensor *a, KilnTensor *b, KilnTensor *target,
                                           double margin, KilnReduction reduction);
/* Soft dice: 1 - (2 sum(p t) + smooth) / (sum(p^2) + sum(t^2) + smooth), with sums over
 * all axes but the first and last: [N, ..., C] -> [N, C] -> reduced (Milletari et al. 2016,
 * V-Net, with `smooth` against empty masks, often 1). */
KILN_API KilnTensor *kiln_dice(KilnTensor *probabilities, KilnTensor *target, double smooth,
                               KilnReduction reduction);

#endif

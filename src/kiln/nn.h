/* Parameters and layers. Names, shapes, layouts and initial distributions are
 * PyTorch's, so that a state dict moves between both without conversion. */
#ifndef KILN_NN_H
#define KILN_NN_H

#include "kiln/ops.h"
#include "kiln/rng.h"

/* ---- Parameters ----------------------------------------------------------- */

/* All parameters and buffers of a run. Parameters, and their gradients, lie in
 * one flat buffer each, with named views: of f32, or of bf16 (kiln_params_set_dtype). */
typedef struct KilnParams KilnParams;
/* One named view; belongs to its KilnParams. */
typedef struct KilnParam KilnParam;

/* How initial values are drawn: torch.nn.init's functions of the same names. Those
 * that look at the shape take the last axes of a weight [out, in, ...] as PyTorch:
 * fan_in = in · rest, fan_out = out · rest. */
typedef enum KilnInitKind {
    KILN_INIT_CONSTANT,        /* a */
    KILN_INIT_UNIFORM,         /* [-a, a) */
    KILN_INIT_NORMAL,          /* mean 0, standard deviation a */
    KILN_INIT_TRUNC_NORMAL,    /* as NORMAL, drawn again outside of [-b, b] */
    KILN_INIT_XAVIER_UNIFORM,  /* Glorot and Bengio 2010; gain a */
    KILN_INIT_XAVIER_NORMAL,   /* the same */
    KILN_INIT_KAIMING_UNIFORM, /* He et al. 2015; over fan_in, with gain a */
    KILN_INIT_KAIMING_NORMAL,  /* the same */
    KILN_INIT_ORTHOGONAL,      /* Saxe et al. 2014; rows, or columns if fewer, times gain a */
} KilnInitKind;

typedef struct KilnInit {
    KilnInitKind kind;
    double a;
    double b;     /* TRUNC_NORMAL */
    bool fan_out; /* KAIMING: over fan_out */
} KilnInit;

/* torch.nn.init.calculate_gain: "linear", "sigmoid", "tanh", "relu", "leaky_relu"
 * (with `slope`), "selu"; 0 for another name. */
KILN_API double kiln_init_gain(const char *nonlinearity, double slope);

/* A place in the tree of names ("layer1.0") where parameters are declared. */
typedef struct KilnScope {
    KilnParams *params;
    char path[128]; /* "" at the root */
} KilnScope;

/* A scope below `parent`; the formatted name is one or more dotted parts. */
KILN_API KilnScope kiln_scope(const KilnScope *parent, const char *format, ...) KILN_PRINTF(2, 3);
/* Declare a trained parameter of floats; its place exists after kiln_params_seal,
 * its value is drawn from the run's seed and the full name alone. */
KILN_API KILN_NODISCARD KilnStatus kiln_param_new(const KilnScope *scope, const char *name,
                                                  KilnShape shape, KilnInit init, KilnParam **ret,
                                                  KilnError *err);
/* Draw the initial value differently from the layer that declared it (the
 * last batch normalization of a residual branch starts at 0, say). Call it
 * before the store is sealed. */
KILN_API void kiln_param_set_init(KilnParam *param, KilnInit init);
/* The parameter belongs to the layer that makes the logits: its first axis is the classes of the
 * data. The option `weights` initializes it as usual where the file has another number of classes.
 * Before the store is sealed. */
KILN_API void kiln_param_set_head(KilnParam *param);
/* What a tensor in the weights file of another program holds of a parameter. */
typedef struct KilnForeignTensor {
    int64_t row, rows; /* rows [row, row + rows) of axis 0; rows 0: nothing, it is no surprise */
    bool transposed;   /* the file has the two axes of a matrix the other way round */
} KilnForeignTensor;
/* The option `weights` also reads the parameter from tensors of other names, where the file has
 * none of its own. Those of a parameter in several parts are named by ascending rows; a tensor
 * whose rows an earlier one has filled is ignored. KILN_E_NOMEM. */
KILN_API KILN_NODISCARD KilnStatus kiln_param_foreign(KilnParam *param, KilnForeignTensor part,
                                                      KilnError *err, const char *format, ...)
    KILN_PRINTF(4, 5);
/* Declare saved state that is not trained (f32 or i64), filled with `value`. */
KILN_API KILN_NODISCARD KilnStatus kiln_register_buffer(const KilnScope *scope, const char *name,
                                                        KilnDType dtype, KilnShape shape,
                                                        double value, KilnParam **ret,
                                                        KilnError *err);
/* The parameter or buffer as a leaf of the graph's current step (made once a step). */
KILN_API KilnTensor *kiln_param_tensor(KilnParam *param, KilnGraph *graph);
KILN_API const char *kiln_param_name(const KilnParam *param); /* full name */
KILN_API const KilnShape *kiln_param_shape(const KilnParam *param);
/* Of its bytes: f32, or bf16 or f64 in a store that keeps floats so; i64. In a step a parameter
 * of bf16 counts as f32 (kiln_graph_variable). */
KILN_API KilnDType kiln_param_dtype(const KilnParam *param);
KILN_API bool kiln_param_trained(const KilnParam *param); /* false: a buffer */
/* Copy the values of a parameter or buffer to `ret`, or new ones from `data`, in plain order.
 * `dtype` is the type of that copy: kiln_param_dtype, or KILN_F32 for any floats, which are rounded
 * to it or to a store's bf16; an f64 that rounds to the value written stays. After
 * kiln_params_seal, and outside of steps. */
KILN_API void kiln_param_read(const KilnParam *param, KilnDType dtype, void *ret);
KILN_API void kiln_param_write(KilnParam *param, KilnDType dtype, const void *data);
/* The same for the gradient of a trained parameter, which the last step with one has written. */
KILN_API void kiln_param_read_gradient(const KilnParam *param, KilnDType dtype, void *ret);

/* An empty store; owned by the caller. */
KILN_API KILN_NODISCARD KilnStatus kiln_params_new(uint64_t seed, KilnParams **ret, KilnError *err);
KILN_API void kiln_params_free(KilnParams *params);
KILN_API KilnScope kiln_params_root(KilnParams *params);
/* In which type parameters, their gradients and buffers of floats are kept: f32, where
 * this is not called, bf16, which halves them, or f64; before the store is sealed. Initial
 * values are those of f32, rounded. */
KILN_API void kiln_params_set_dtype(KilnParams *params, KilnDType dtype);
KILN_API KilnDType kiln_params_dtype(const KilnParams *params);
/* Allocate the flat buffers in the memory of `backend`, which must outlive the store, and draw the
 * initial values. No declaration after this. */
KILN_API KILN_NODISCARD KilnStatus kiln_params_seal(KilnParams *params, KilnBackend *backend,
                                                    KilnError *err);
/* Parameters and buffers together, in order of declaration. */
KILN_API size_t kiln_params_count(const KilnParams *params);
KILN_API KilnParam *kiln_params_at(const KilnParams *params, size_t i);
/* NULL when there is none of that name. */
KILN_API KilnParam *kiln_params_find(const KilnParams *params, const char *name);
/* Trained values in all: elements of the flat buffer. */
KILN_API int64_t kiln_params_size(const KilnParams *params);
/* Whether it is a parameter that the run leaves as it is, because adapters train in its place
 * (option lora); kiln_param_trained is then false. */
KILN_API bool kiln_param_fixed(const KilnParam *param);
/* Whether updates leave it as it is in this epoch: its factor on the learning rate is 0, such as
 * callback finetuning sets. */
KILN_API bool kiln_param_frozen(const KilnParam *param);
/* Elements of the largest parameter or buffer: enough room to read any. */
KILN_API int64_t kiln_params_largest(const KilnParams *params);
/* All trained values as one variable leaf [kiln_params_size] of the current step, without a
 * gradient of its own. Operations recorded before it read and write the same bytes through the
 * parameters' own leaves; execution follows the recorded order. */
KILN_API KilnTensor *kiln_params_flat_values(KilnParams *params, KilnGraph *graph);
/* Offset of a trained parameter in the flat buffers, in elements. */
KILN_API int64_t kiln_param_offset(const KilnParam *param);

/* ---- Layers: declare with _init, use in a step by the plain name ----------- */

typedef struct KilnLinear {
    KilnParam *weight, *bias; /* bias NULL: none */
    char path[128];
} KilnLinear;

/* torch.nn.Linear(in, out, bias): weight and bias ~ U(±1/sqrt(in)). */
KILN_API KILN_NODISCARD KilnStatus kiln_nn_linear_init(KilnLinear *layer, const KilnScope *scope,
                                                       const char *name, int64_t in, int64_t out,
                                                       bool bias, KilnError *err);
KILN_API KilnTensor *kiln_nn_linear(const KilnLinear *layer, KilnTensor *x);
/* x [..., in] times rows [row, row + rows) of the weight [out, in] of a linear or attention layer,
 * plus those of its bias [out] (NULL: none), plus what the weight's adapter adds (option lora):
 * what a layer that computes with a part of its weight calls instead of kiln_linear. */
KILN_API KilnTensor *kiln_nn_linear_rows(KilnParam *weight, KilnParam *bias, int64_t row,
                                         int64_t rows, KilnTensor *x);

typedef struct KilnConv2d {
    KilnParam *weight, *bias;
    KilnConv conv;
    char path[128];
} KilnConv2d;

typedef struct KilnConv2dSpec {
    int64_t in, out, kernel;
    int64_t kernel_hw[2]; /* instead of `kernel`, when not all 0 */
    KilnConv conv;
    bool bias;
    bool kaiming_fan_out; /* N(0, sqrt(2/(out*kh*kw))), torchvision's ResNet; else torch.nn.Conv2d's
                             default */
} KilnConv2dSpec;

/* torch.nn.Conv2d. */
KILN_API KILN_NODISCARD KilnStatus kiln_nn_conv2d_init(KilnConv2d *layer, const KilnScope *scope,
                                                       const char *name, KilnConv2dSpec spec,
                                                       KilnError *err);
KILN_API KilnTensor *kiln_nn_conv2d(const KilnConv2d *layer, KilnTensor *x);

typedef struct KilnConv1d {
    KilnParam *weight, *bias;
    KilnConv conv;
    char path[128];
} KilnConv1d;

typedef struct KilnConv1dSpec {
    int64_t in, out, kernel;
    KilnConv conv;
    bool bias;
} KilnConv1dSpec;

/* torch.nn.Conv1d, on [N, L, C]. */
KILN_API KILN_NODISCARD KilnStatus kiln_nn_conv1d_init(KilnConv1d *layer, const KilnScope *scope,
                                                       const char *name, KilnConv1dSpec spec,
                                                       KilnError *err);
KILN_API KilnTensor *kiln_nn_conv1d(const KilnConv1d *layer, KilnTensor *x);

typedef struct KilnConvTranspose2d {
    KilnParam *weight, *bias;
    KilnConvTranspose conv;
    char path[128];
} KilnConvTranspose2d;

typedef struct KilnConvTranspose2dSpec {
    int64_t in, out, kernel;
    int64_t kernel_hw[2]; /* instead of `kernel`, when not all 0 */
    KilnConvTranspose conv;
    bool bias;
} KilnConvTranspose2dSpec;

/* torch.nn.ConvTranspose2d: weight [in, out/groups, kh, kw]. */
KILN_API KILN_NODISCARD KilnStatus kiln_nn_conv_transpose2d_init(KilnConvTranspose2d *layer,
                                                                 const KilnScope *scope,
                                                                 const char *name,
                                                                 KilnConvTranspose2dSpec spec,
                                                                 KilnError *err);
KILN_API KilnTensor *kiln_nn_conv_transpose2d(const KilnConvTranspose2d *layer, KilnTensor *x);

typedef struct KilnBatchNorm2d {
    KilnParam *weight, *bias, *running_mean, *running_var, *num_batches_tracked;
    char path[128];
} KilnBatchNorm2d;

/* torch.nn.BatchNorm2d(features). */
KILN_API KILN_NODISCARD KilnStatus kiln_nn_batch_norm2d_init(KilnBatchNorm2d *layer,
                                                             const KilnScope *scope,
                                                             const char *name, int64_t features,
                                                             KilnError *err);
KILN_API KilnTensor *kiln_nn_batch_norm2d(const KilnBatchNorm2d *layer, KilnTensor *x,
                                          bool training);
/* Other numbers than PyTorch's defaults, eps 1e-5 and momentum 0.1. After the layer's init. */
KILN_API void kiln_nn_batch_norm2d_set(KilnBatchNorm2d *layer, double eps, double momentum);

/* The same for [N, C] and [N, L, C], torch.nn.BatchNorm1d. */
typedef KilnBatchNorm2d KilnBatchNorm1d;
KILN_API KILN_NODISCARD KilnStatus kiln_nn_batch_norm1d_init(KilnBatchNorm1d *layer,
                                                             const KilnScope *scope,
                                                             const char *name, int64_t features,
                                                             KilnError *err);
KILN_API KilnTensor *kiln_nn_batch_norm1d(const KilnBatchNorm1d *layer, KilnTensor *x,
                                          bool training);

typedef struct KilnLayerNorm {
    KilnParam *weight, *bias; /* bias NULL: none */
    int axes;
    double eps;
    char path[128];
} KilnLayerNorm;

/* torch.nn.LayerNorm(shape, bias=bias) over the last axes: weight 1, bias 0, eps 1e-5. */
KILN_API KILN_NODISCARD KilnStatus kiln_nn_layer_norm_init(KilnLayerNorm *layer,
                                                           const KilnScope *scope, const char *name,
                                                           KilnShape shape, bool bias,
                                                           KilnError *err);
KILN_API KilnTensor *kiln_nn_layer_norm(const KilnLayerNorm *layer, KilnTensor *x);

typedef struct KilnRmsNorm {
    KilnParam *weight;
    int axes;
    double eps;
    char path[128];
} KilnRmsNorm;

/* torch.nn.RMSNorm(shape) over the last axes: weight 1, eps 2^-23. */
KILN_API KILN_NODISCARD KilnStatus kiln_nn_rms_norm_init(KilnRmsNorm *layer, const KilnScope *scope,
                                                         const char *name, KilnShape shape,
                                                         KilnError *err);
KILN_API KilnTensor *kiln_nn_rms_norm(const KilnRmsNorm *layer, KilnTensor *x);

typedef struct KilnGroupNorm {
    KilnParam *weight, *bias;
    int64_t groups;
    double eps;
    char path[128];
} KilnGroupNorm;

/* torch.nn.GroupNorm(groups, channels), on [N, ..., C]: weight 1, bias 0, eps 1e-5. */
KILN_API KILN_NODISCARD KilnStatus kiln_nn_group_norm_init(KilnGroupNorm *layer,
                                                           const KilnScope *scope, const char *name,
                                                           int64_t groups, int64_t channels,
                                                           KilnError *err);
KILN_API KilnTensor *kiln_nn_group_norm(const KilnGroupNorm *layer, KilnTensor *x);

typedef struct KilnEmbedding {
    KilnParam *weight;
    int64_t padding_idx;
    char path[128];
} KilnEmbedding;

/* torch.nn.Embedding(rows, width, padding_idx): weight ~ N(0, 1), the row of padding_idx
 * zero; -1: none. When nothing else uses the weight, its gradient costs what the rows
 * of this step and the one before cost, and not the whole weight. */
KILN_API KILN_NODISCARD KilnStatus kiln_nn_embedding_init(KilnEmbedding *layer,
                                                          const KilnScope *scope, const char *name,
                                                          int64_t rows, int64_t width,
                                                          int64_t padding_idx, KilnError *err);
KILN_API KilnTensor *kiln_nn_embedding(const KilnEmbedding *layer, KilnTensor *index);
/* The same weight over bags: torch.nn.EmbeddingBag, see kiln_embedding_bag. */
KILN_API KilnTensor *kiln_nn_embedding_bag(const KilnEmbedding *layer, KilnTensor *index,
                                           KilnTensor *offsets, KilnBagMode mode);
/* The sums with a factor for each index (per_sample_weights of torch.nn.EmbeddingBag, mode
 * sum); `factors` has index's shape, see kiln_embedding_bag_weighted. */
KILN_API KilnTensor *kiln_nn_embedding_bag_weighted(const KilnEmbedding *layer, KilnTensor *index,
                                                    KilnTensor *offsets, KilnTensor *factors);

/* Where the layers of a step in training take their dropout from. A NULL pointer to
 * it: not training, nothing is dropped. Each use counts `stream` up; start it where no
 * other use of the key is (kiln_step_stream(step) << 32). */
typedef struct KilnDropoutState {
    KilnTensor *key; /* i32 [2], kiln_step_dropout_key */
    int64_t stream;
} KilnDropoutState;

/* kiln_dropout with the next stream; x itself when p is 0 or `drop` is NULL. */
KILN_API KilnTensor *kiln_nn_dropout(KilnTensor *x, double p, KilnDropoutState *drop);
/* Stochastic depth (Huang et al. 2016), torchvision.ops.stochastic_depth with mode "row": the
 * branch of a residual block, x [N, ...], is 0 for each sample with probability p, and divided by
 * 1 - p for the others. The next stream; x itself when p is 0 or `drop` is NULL. */
KILN_API KilnTensor *kiln_nn_stochastic_depth(KilnTensor *x, double p, KilnDropoutState *drop);

/* ---- Residual blocks --------------------------------------------------------- */

enum { KILN_RESIDUAL_MAX = 3 }; /* convolutions, the shortcut's aside */

typedef struct KilnResidualSpec {
    int64_t in;     /* channels of the input */
    int64_t width;  /* channels of the 3×3 convolutions */
    int64_t stride; /* 0 reads as 1 */
    bool bottleneck; /* 1×1, 3×3 with the stride, 1×1 to 4·width channels; else two 3×3, the first
                        with the stride */
    bool zero_init; /* the last bn's weight starts at 0: the block passes its input through */
} KilnResidualSpec;

typedef struct KilnResidualBlock {
    KilnConv2d conv[KILN_RESIDUAL_MAX], down_conv;
    KilnBatchNorm2d bn[KILN_RESIDUAL_MAX], down_bn;
    int convs;       /* 2, or 3 of a bottleneck */
    int64_t out;     /* channels of the result */
    bool downsample; /* the shortcut is a 1×1 convolution with the stride */
    char path[128];
} KilnResidualBlock;

/* torchvision.models.resnet's BasicBlock and Bottleneck (He et al. 2016): conv1, bn1, conv2, ...
 * and, where the shapes differ, downsample.0 and .1; convolutions as kaiming_fan_out. */
KILN_API KILN_NODISCARD KilnStatus kiln_nn_residual_block_init(KilnResidualBlock *block,
                                                               const KilnScope *scope,
                                                               const char *name,
                                                               KilnResidualSpec spec,
                                                               KilnError *err);
/* relu(branch(x) + shortcut(x)): [N, H, W, in] -> [N, ceil(H / stride), ceil(W / stride), out]. */
KILN_API KilnTensor *kiln_nn_residual_block(const KilnResidualBlock *block, KilnTensor *x,
                                            bool training);

/* ---- Recurrent layers ------------------------------------------------------ */

enum { KILN_RECURRENT_MAX = 16 }; /* layers times directions */

typedef struct KilnRecurrentSpec {
    int64_t in, hidden;
    int64_t layers; /* 0 reads as 1 */
    bool no_bias, batch_first, bidirectional;
    double dropout; /* between layers, in training */
} KilnRecurrentSpec;

typedef struct KilnRecurrentLayer {
    KilnRecurrentSpec spec;
    /* Of layer l and direction d at index l * directions + d; biases NULL: none. */
    struct {
        KilnParam *weight_ih, *weight_hh, *bias_ih, *bias_hh;
    } part[KILN_RECURRENT_MAX];
    bool gru;
    char path[128];
} KilnRecurrentLayer;

/* What a run of a recurrent layer starts from; all NULL: zeros, whole sequences. */
typedef struct KilnRecurrentStart {
    KilnTensor *h0, *c0; /* [layers * directions, B, hidden]; c0 of an LSTM only */
    KilnTensor *lengths; /* i32 [B], 0 to T steps of each sequence */
    KilnDropoutState *drop;
} KilnRecurrentStart;

/* torch.nn.LSTM and torch.nn.GRU: parameters weight_ih_l0, weight_hh_l0, bias_ih_l0,
 * bias_hh_l0, those of the other direction with _reverse, all ~ U(±1/sqrt(hidden)). */
KILN_API KILN_NODISCARD KilnStatus kiln_nn_lstm_init(KilnRecurrentLayer *layer,
                                                     const KilnScope *scope, const char *name,
                                                     KilnRecurrentSpec spec, KilnError *err);
KILN_API KILN_NODISCARD KilnStatus kiln_nn_gru_init(KilnRecurrentLayer *layer,
                                                    const KilnScope *scope, const char *name,
                                                    KilnRecurrentSpec spec, KilnError *err);
/* x [T, B, in] (batch_first: [B, T, in]) -> y [T, B, directions * hidden] (or [B, T, ...]), and
 * h and of an LSTM c [layers * directions, B, hidden] after the last step, as
 * PyTorch returns them. With lengths it is a packed sequence: y is 0 after the end. */
KILN_API KilnRecurrentOut kiln_nn_recurrent(const KilnRecurrentLayer *layer, KilnTensor *x,
                                            KilnRecurrentStart start);

/* ---- Attention and transformers -------------------------------------------- */

/* Everything is batch first: [B, T, width] (PyTorch's batch_first=True). */

typedef struct KilnMultiHeadAttention {
    KilnParam *in_proj_weight, *in_proj_bias; /* [3 width, width]: q, k, v */
    KilnLinear out_proj;
    int64_t width, heads;
    double dropout;
    char path[128];
} KilnMultiHeadAttention;

/* What a call of attention may look at; all zero: everything. */
typedef struct KilnAttentionMasks {
    bool causal;
    KilnTensor *mask;    /* as KilnAttention's: u8 (1: may be looked at) or added; note that
                          * PyTorch's boolean masks of these layers are the other way round */
    KilnTensor *padding; /* u8 [B, Tk]: 1 for keys that are there; the opposite of PyTorch's
                          * key_padding_mask */
} KilnAttentionMasks;

/* torch.nn.MultiheadAttention(width, heads, dropout, bias=True, batch_first=True):
 * in_proj_weight ~ Xavier uniform, biases 0. */
KILN_API KILN_NODISCARD KilnStatus kiln_nn_multi_head_attention_init(
    KilnMultiHeadAttention *layer, const KilnScope *scope, const char *name, int64_t width,
    int64_t heads, double dropout, KilnError *err);
/* Queries x [B, Tq, width] look at memory [B, Tk, width]; memory NULL: at themselves. */
KILN_API KilnTensor *kiln_nn_multi_head_attention(const KilnMultiHeadAttention *layer,
                                                  KilnTensor *x, KilnTensor *memory,
                                                  KilnAttentionMasks masks, KilnDropoutState *drop);

/* Attention to a memory of another width. */
typedef struct KilnCrossAttention {
    KilnParam *q_proj_weight, *k_proj_weight, *v_proj_weight; /* [width, width], [width, memory] */
    KilnParam *in_proj_bias;                                  /* [3 width]: q, k, v */
    KilnLinear out_proj;
    int64_t width, heads;
    double dropout;
    char path[128];
} KilnCrossAttention;

/* torch.nn.MultiheadAttention(width, heads, dropout, kdim=memory_width, vdim=memory_width,
 * batch_first=True): the weights ~ Xavier uniform, biases 0. */
KILN_API KILN_NODISCARD KilnStatus kiln_nn_cross_attention_init(KilnCrossAttention *layer,
                                                                const KilnScope *scope,
                                                                const char *name, int64_t width,
                                                                int64_t heads, int64_t memory_width,
                                                                double dropout, KilnError *err);
/* Queries x [B, Tq, width] look at memory [B, Tk, memory_width] -> [B, Tq, width]. */
KILN_API KilnTensor *kiln_nn_cross_attention(const KilnCrossAttention *layer, KilnTensor *x,
                                             KilnTensor *memory, KilnAttentionMasks masks,
                                             KilnDropoutState *drop);

typedef struct KilnTransformerSpec {
    int64_t width, heads;
    int64_t feedforward; /* 0: 2048, PyTorch's default */
    double dropout;      /* PyTorch's default is 0.1 */
    bool gelu;           /* activation: gelu (erf) instead of relu */
    bool norm_first;     /* norm before each part (Xiong et al. 2020) instead of after the sum */
} KilnTransformerSpec;

/* An encoder layer has no multihead_attn and no norm3. */
typedef struct KilnTransformerLayer {
    KilnTransformerSpec spec;
    KilnMultiHeadAttention self_attn, multihead_attn;
    KilnLinear linear1, linear2;
    KilnLayerNorm norm1, norm2, norm3;
    bool decoder;
    char path[128];
} KilnTransformerLayer;

/* torch.nn.TransformerEncoderLayer and TransformerDecoderLayer (Vaswani et al. 2017). */
KILN_API KILN_NODISCARD KilnStatus
kiln_nn_transformer_encoder_layer_init(KilnTransformerLayer *layer, const KilnScope *scope,
                                       const char *name, KilnTransformerSpec spec, KilnError *err);
KILN_API KILN_NODISCARD KilnStatus
kiln_nn_transformer_decoder_layer_init(KilnTransformerLayer *layer, const KilnScope *scope,
                                       const char *name, KilnTransformerSpec spec, KilnError *err);
/* x [B, T, width] -> the same shape. `memory` and `memory_masks` (what is seen of it) are a
 * decoder's. */
KILN_API KilnTensor *kiln_nn_transformer_layer(const KilnTransformerLayer *layer, KilnTensor *x,
                                               KilnTensor *memory, KilnAttentionMasks masks,
                                               KilnAttentionMasks memory_masks,
                                               KilnDropoutState *drop);

enum { KILN_TRANSFORMER_MAX = 48 };

/* torch.nn.TransformerEncoder or TransformerDecoder: layers.0, layers.1 ... and, when
 * asked for, norm. */
typedef struct KilnTransformer {
    KilnTransformerLayer layers[KILN_TRANSFORMER_MAX];
    int64_t count;
    KilnLayerNorm norm;
    bool has_norm;
} KilnTransformer;

KILN_API KILN_NODISCARD KilnStatus kiln_nn_transformer_encoder_init(
    KilnTransformer *stack, const KilnScope *scope, const char *name, KilnTransformerSpec spec,
    int64_t layers, bool norm, KilnError *err);
KILN_API KILN_NODISCARD KilnStatus kiln_nn_transformer_decoder_init(
    KilnTransformer *stack, const KilnScope *scope, const char *name, KilnTransformerSpec spec,
    int64_t layers, bool norm, KilnError *err);
KILN_API KilnTensor *kiln_nn_transformer(const KilnTransformer *stack, KilnTensor *x,
                                         KilnTensor *memory, KilnAttentionMasks masks,
                                         KilnAttentionMasks memory_masks, KilnDropoutState *drop);

/* A decoder whose memory has another width than its own, such as an image encoder's. `layers` lack
 * multihead_attn; cross[i] is that of layers[i]. */
typedef struct KilnCrossDecoder {
    KilnTransformer stack;
    KilnCrossAttention cross[KILN_TRANSFORMER_MAX];
} KilnCrossDecoder;

/* torch.nn.TransformerDecoder with MultiheadAttention(..., kdim=memory_width, vdim=memory_width) as
 * each layer's multihead_attn. */
KILN_API KILN_NODISCARD KilnStatus kiln_nn_cross_decoder_init(
    KilnCrossDecoder *decoder, const KilnScope *scope, const char *name, KilnTransformerSpec spec,
    int64_t memory_width, int64_t layers, bool norm, KilnError *err);
/* x [B, T, width], memory [B, Tm, memory_width] -> [B, T, width]. */
KILN_API KilnTensor *kiln_nn_cross_decoder(const KilnCrossDecoder *decoder, KilnTensor *x,
                                           KilnTensor *memory, KilnAttentionMasks masks,
                                           KilnAttentionMasks memory_masks, KilnDropoutState *drop);

#endif

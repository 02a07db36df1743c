/* The steps of maps (graph/map.h) as vector loops. Compiled once per level; KILN_ISA names it. */
#include "backend/cpu/isa/map.h"

#include <stddef.h>
#include <string.h>

#include "backend/cpu/isa/libmvec.h"
#include "tensor/bf16.h"

/* ---- Steps --------------------------------------------------------------------- */

#define PARAMETERS                                                                                 \
    float *y, const float *xa, const float *xb, const float *xc, float p, float q, int64_t n
#define BODY(READ, ...)                                                                            \
    {                                                                                              \
        (void)xa, (void)xb, (void)xc, (void)p, (void)q;                                            \
        _Pragma("omp simd") for (int64_t i = 0; i < n / KILN_MAP_GROUP * KILN_MAP_GROUP; i++)      \
        {                                                                                          \
            READ y[i] = __VA_ARGS__;                                                               \
        }                                                                                          \
    }
#define STEP0(NAME, ...) static void step_##NAME(PARAMETERS) BODY(, __VA_ARGS__)
#define STEP1(NAME, ...)                                                                           \
    static void step_##NAME(PARAMETERS) BODY(const float a = xa[i];, __VA_ARGS__)
#define STEP2(NAME, ...)                                                                           \
    static void step_##NAME(PARAMETERS)                                                            \
        BODY(const float a = xa[i]; const float b = xb[i];, __VA_ARGS__)
#define STEP3(NAME, ...)                                                                           \
    static void step_##NAME(PARAMETERS)                                                            \
        BODY(const float a = xa[i]; const float b = xb[i]; const float c = xc[i];, __VA_ARGS__)

STEP0(NUMBER, p)
STEP1(COPY, a)
STEP2(ADD, a + b)
STEP2(SUB, a - b)
STEP2(MUL, a *b)
STEP2(DIV, a / b)
STEP1(SCALE, a *p)
STEP1(SHIFT, a + p)
/* The sum is NaN if either is. */
STEP2(MINIMUM, a != a || b != b ? a + b : a < b ? a : b)
STEP2(MAXIMUM, a != a || b != b ? a + b : a > b ? a : b)
STEP1(CLAMP, (a < p ? p : a) > q ? q : (a < p ? p : a))
STEP2(EQ, a == b ? 1.0f : 0.0f)
STEP2(NE, a != b ? 1.0f : 0.0f)
STEP2(LT, a < b ? 1.0f : 0.0f)
STEP2(LE, a <= b ? 1.0f : 0.0f)
STEP3(WHERE, a != 0.0f ? b : c)
STEP1(EXP, expf(a))
STEP1(LOG, logf(a))
STEP1(LOG1P, log1pf(a))
STEP1(SQRT, sqrtf(a))
STEP1(RSQRT, 1.0f / sqrtf(a))
STEP1(RECIPROCAL, 1.0f / a)
STEP1(SQUARE, a *a)
STEP1(POW, powf(a, p))
STEP2(POWER, powf(a, b))
STEP1(ABS, fabsf(a))
STEP1(SIGN, a > 0.0f ? 1.0f : a < 0.0f ? -1.0f : 0.0f)
STEP1(FLOOR, floorf(a))
STEP1(ROUND, rintf(a))
STEP1(ERF, erff(a))
STEP1(SIN, sinf(a))
STEP1(COS, cosf(a))
STEP2(ATAN2, atan2f(a, b))
STEP1(SIGMOID, 1.0f / (1.0f + expf(-a)))
STEP1(TANH, tanhf(a))
STEP1(RELU, a < 0.0f ? 0.0f : a)
STEP1(LEAKY_RELU, a > 0.0f ? a : a * p)

/* ---- Longer activations --------------------------------------------------------- */

static const float density = 0.39894228040143268f;    /* 1 / sqrt(2 pi) */
static const float gelu_scale = 0.79788456080286536f; /* sqrt(2 / pi) */
static const float gelu_cube = 0.044715f;

static inline float logistic(float x)
{
    return 1.0f / (1.0f + expf(-x));
}

#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define MULTIPLY_ADD(a, b, c) __builtin_fmaf(a, b, c)
#else
#define MULTIPLY_ADD(a, b, c) ((a) * (b) + (c))
#endif

/* exp(-x^2/2) within 2 units in the last place; 0 below the smallest normal number. As vec_exp, but
 * with what rounding x^2 loses, and for powers of two up to 1. */
static inline __attribute__((always_inline)) float bell(float x)
{
    const float lowest = -87.33654f, magic = 12582912.0f; /* 1.5·2^23 */
    const float square = x * x, lost = MULTIPLY_ADD(x, x, -square);
    const float y = -0.5f * square < lowest ? lowest : -0.5f * square;
    const float shifted = MULTIPLY_ADD(y, 1.44269504f, magic), n = shifted - magic;
    float r = MULTIPLY_ADD(n, -0.693359375f, y), p = 1.0f / 5040, scale;
    uint32_t bits;

    r = MULTIPLY_ADD(n, 2.12194440e-4f, r);
    r = MULTIPLY_ADD(lost, -0.5f, r);
    p = MULTIPLY_ADD(p, r, 1.0f / 720);
    p = MULTIPLY_ADD(p, r, 1.0f / 120);
    p = MULTIPLY_ADD(p, r, 1.0f / 24);
    p = MULTIPLY_ADD(p, r, 1.0f / 6);
    p = MULTIPLY_ADD(p, r, 0.5f);
    p = MULTIPLY_ADD(p, r * r, r + 1.0f);
    memcpy(&bits, &shifted, sizeof(bits));
    bits = (bits - 0x4B400000u + 127u) << 23; /* the bits of `magic` are 0x4B400000 */
    memcpy(&scale, &bits, sizeof(scale));
    return -0.5f * square < lowest ? 0.0f : p * scale;
}

/* Phi(x), given bell(x). Phi(-|x|) is the bell times a function that changes slowly: a polynomial
 * in u = 3 / (3 + |x|), fitted for the least relative error (5e-8, before rounding). So Phi is
 * exact where it is small, too. */
static inline __attribute__((always_inline)) float normal_below(float x, float bell)
{
    const float u = 3.0f / (3.0f + fabsf(x));
    float p = -0.022764017805457115f;

    p = MULTIPLY_ADD(p, u, 0.1295948177576065f);
    p = MULTIPLY_ADD(p, u, -0.2712782919406891f);
    p = MULTIPLY_ADD(p, u, 0.21895505487918854f);
    p = MULTIPLY_ADD(p, u, -0.05337176099419594f);
    p = MULTIPLY_ADD(p, u, 0.11991626769304276f);
    p = MULTIPLY_ADD(p, u, 0.11241795122623444f);
    p = MULTIPLY_ADD(p, u, 0.13357512652873993f);
    p = MULTIPLY_ADD(p, u, 0.13295488059520721f);
    const float below = bell * (p * u);
    return x > 0.0f ? 1.0f - below : below;
}

static inline __attribute__((always_inline)) float gelu_grad(float x)
{
    const float height = bell(x);

    return normal_below(x, height) + x * density * height;
}

/* (1 + tanh(u)) / 2 is the logistic function of 2 u, without cancellation. */
static inline float gelu_tanh_below(float x)
{
    return logistic(2.0f * gelu_scale * (x + gelu_cube * x * x * x));
}

static inline float gelu_tanh_grad(float x)
{
    const float below = gelu_tanh_below(x);
    const float slope = gelu_scale * (1.0f + 3.0f * gelu_cube * x * x);

    return below + 2.0f * x * below * (1.0f - below) * slope;
}

static inline float silu_grad(float x)
{
    const float s = logistic(x);

    return s * (1.0f + x * (1.0f - s));
}

/* PyTorch's, also on the bounds. */
static inline float hard_sigmoid(float x)
{
    return x <= -3.0f ? 0.0f : x >= 3.0f ? 1.0f : x * (1.0f / 6.0f) + 0.5f;
}

static inline float hard_swish_grad(float x)
{
    return x <= -3.0f ? 0.0f : x < 3.0f ? x * (1.0f / 3.0f) + 0.5f : 1.0f;
}

/* No branches around the calls, so that they vectorize. */
static inline float softplus(float x, float beta, float threshold)
{
    const float z = x * beta;
    const float soft = log1pf(expf(z > threshold ? threshold : z)) / beta;

    return z > threshold ? x : soft;
}

static inline float softplus_grad(float dy, float x, float beta, float threshold)
{
    return dy * logistic(x * beta > threshold ? INFINITY : x * beta);
}

static inline float elu(float x, float alpha)
{
    return (x > 0.0f ? x : 0.0f) + alpha * expm1f(x > 0.0f ? 0.0f : x);
}

static inline float elu_grad(float dy, float x, float alpha)
{
    return dy * ((x > 0.0f ? 1.0f : alpha) * expf(x > 0.0f ? 0.0f : x));
}

STEP1(ELU, elu(a, p))
STEP1(GELU, a *normal_below(a, bell(a)))
STEP1(GELU_TANH, a *gelu_tanh_below(a))
STEP1(SILU, a / (1.0f + expf(-a)))
STEP1(HARD_SWISH, a *hard_sigmoid(a))
STEP1(HARD_SIGMOID, hard_sigmoid(a))
STEP1(SOFTPLUS, softplus(a, p, q))
STEP2(RELU_GRAD, b <= 0.0f ? 0.0f : a)
STEP2(LEAKY_RELU_GRAD, b > 0.0f ? a : a * p)
STEP2(ELU_GRAD, elu_grad(a, b, p))
STEP2(GELU_GRAD, a *gelu_grad(b))
STEP2(GELU_TANH_GRAD, a *gelu_tanh_grad(b))
STEP2(SILU_GRAD, a *silu_grad(b))
STEP2(HARD_SWISH_GRAD, a *hard_swish_grad(b))
STEP2(HARD_SIGMOID_GRAD, b > -3.0f && b < 3.0f ? a * (1.0f / 6.0f) : 0.0f)
STEP2(SOFTPLUS_GRAD, softplus_grad(a, b, p, q))
STEP2(SIGMOID_GRAD, a *b *(1.0f - b))
STEP2(TANH_GRAD, a *(1.0f - b * b))
STEP2(CLAMP_GRAD, b > p && b < q ? a : 0.0f)
STEP3(LARGER_GRAD, b < c ? 0.0f : b == c ? 0.5f * a : a)

/* ---- Loads and stores -------------------------------------------------------------- */

#define LOAD(TYPE, CONVERT)                                                                        \
    do {                                                                                           \
        const TYPE *from = x;                                                                      \
        if (stride == 0) {                                                                         \
            const float value = CONVERT(*from);                                                    \
            _Pragma("omp simd") for (int64_t i = 0; i < n; i++) y[i] = value;                      \
        } else if (stride == 1) {                                                                  \
            _Pragma("omp simd") for (int64_t i = 0; i < n; i++) y[i] = CONVERT(from[i]);           \
        } else {                                                                                   \
            for (int64_t i = 0; i < n; i++)                                                        \
                y[i] = CONVERT(from[i * stride]);                                                  \
        }                                                                                          \
    } while (0)

static void load(float *y, const void *x, KilnDType dtype, int64_t stride, int64_t n)
{
    switch (dtype) {
    case KILN_F32:
        LOAD(float, );
        break;
    case KILN_BF16:
        LOAD(uint16_t, kiln_bf16_to);
        break;
    case KILN_U8:
        LOAD(uint8_t, (float));
        break;
    case KILN_I32:
        LOAD(int32_t, (float));
        break;
    case KILN_I64:
        LOAD(int64_t, (float));
        break;
    case KILN_F64:
        LOAD(double, (float));
        break;
    }
}

/* kiln_bf16_of without a branch. */
static void to_bf16(uint16_t *y, const float *x, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits;

        memcpy(&bits, &x[i], sizeof(bits));

        const uint32_t nan = bits >> 16 | 0x0040u;
        const uint32_t rounded = (bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16;

        y[i] = (uint16_t)((bits & 0x7FFFFFFFu) > 0x7F800000u ? nan : rounded);
    }
}

#define ENTRY(name, reads) [KILN_MAP_##name] = step_##name,

const KilnMapLoops KILN_LOOPS(map_loops) = {
    .step = { KILN_MAP_CODES(ENTRY) },
    .load = load,
    .to_bf16 = to_bf16,
};

/* Initial values. A parameter's random stream is keyed by the run's seed and its full name, so it
 * does not depend on the other parameters or their order. */
#include "nn/params.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/min.h"
#include "base/system/threads.h"

static void fill_constant(float *data, int64_t n, float value)
{
    for (int64_t i = 0; i < n; i++)
        data[i] = value;
}

/* ---- Drawn in several threads ------------------------------------------------------------ */

typedef void Fill(float *data, int64_t n, float scale, KilnRng *rng);

/* Values that take one word of the stream each: a piece of them can be drawn by itself. */
typedef struct Drawing {
    const KilnRng *rng; /* at its start */
    float *data;
    int64_t n;
    float scale;
    int threads; /* at most */
    Fill *fill;
    atomic_llong next; /* piece */
} Drawing;

/* Values of a piece, four to a block of the generator. */
enum { DRAWN_PIECE = 1 << 16 };

static void *draw_pieces(void *arg)
{
    Drawing *drawing = arg;

    for (;;) {
        const int64_t piece = atomic_fetch_add(&drawing->next, 1), begin = piece * DRAWN_PIECE;
        KilnRng rng = *drawing->rng;

        if (begin >= drawing->n)
            return NULL;
        rng.counter[0] += (uint32_t)(begin / 4);
        drawing->fill(drawing->data + begin, kiln_min_i64(DRAWN_PIECE, drawing->n - begin),
                      drawing->scale, &rng);
    }
}

static void draw_all(Drawing *drawing, float scale, Fill *fill)
{
    const int64_t pieces = (drawing->n + DRAWN_PIECE - 1) / DRAWN_PIECE;

    drawing->scale = scale;
    drawing->fill = fill;
    kiln_run_in_threads(pieces > 4 ? (size_t)kiln_min_i64(drawing->threads, pieces) : 1,
                        draw_pieces, drawing, 0);
}

/* Box-Muller turns two uniform numbers into two normal ones. A network has millions, so both are
 * used, in single precision. */
static void normal_values(float *data, int64_t n, float deviation, KilnRng *rng)
{
    const float two_pi = 6.28318530717958647692f;

    for (int64_t i = 0; i < n; i += 2) {
        float radius = deviation * sqrtf(-2.0f * logf(1.0f - kiln_rng_uniform(rng)));
        float angle = two_pi * kiln_rng_uniform(rng);

        data[i] = radius * cosf(angle);
        if (i + 1 < n)
            data[i + 1] = radius * sinf(angle);
    }
}

/* kiln_rng_range, a block of the generator at a time. */
static void uniform_values(float *data, int64_t n, float bound, KilnRng *rng)
{
    for (int64_t i = 0; i < n; i += 4) {
        uint32_t words[4];

        kiln_philox(rng->key, rng->counter, words);
        rng->counter[0]++;
        for (int64_t j = 0; j < kiln_min_i64(4, n - i); j++)
            data[i + j] = -bound + 2.0f * bound * ((float)(words[j] >> 8) * 0x1p-24f);
    }
}

/* ---- Drawn one after the other ------------------------------------------------------------ */

/* By rejection: from the normal distribution if most of it is within the bound, else from a uniform
 * one. */
static void fill_trunc_normal(float *data, int64_t n, double deviation, double bound, KilnRng *rng)
{
    for (int64_t i = 0; i < n; i++) {
        double x, keep;

        do {
            if (bound >= deviation) {
                x = deviation * (double)kiln_rng_normal(rng);
                keep = fabs(x) <= bound ? 1.0 : -1.0;
            } else {
                x = (double)kiln_rng_range(rng, -1.0f, 1.0f) * bound;
                keep = exp(-0.5 * (x / deviation) * (x / deviation));
            }
        } while (!((double)kiln_rng_uniform(rng) <= keep));
        data[i] = (float)x;
    }
}

/* ---- Initializers that depend on the shape -------------------------------------- */

/* Fan-in and fan-out: elements that contribute to one output, and outputs that one input reaches.
 */
static void fans(const KilnShape *shape, double *in, double *out)
{
    double rest = 1.0;

    for (int axis = 2; axis < shape->rank; axis++)
        rest *= (double)shape->dim[axis];
    *out = shape->rank > 0 ? (double)shape->dim[0] * rest : 1.0;
    *in = shape->rank > 1 ? (double)shape->dim[1] * rest : *out;
}

static double scaled_deviation(const KilnParam *param)
{
    double in, out;

    fans(&param->shape, &in, &out);
    if (param->init.kind == KILN_INIT_XAVIER_UNIFORM || param->init.kind == KILN_INIT_XAVIER_NORMAL)
        return param->init.a * sqrt(2.0 / (in + out));
    return param->init.a / sqrt(param->init.fan_out ? out : in);
}

static double dot(const float *a, const float *b, int64_t n, int64_t step)
{
    double sum = 0.0;

    for (int64_t i = 0; i < n; i++)
        sum += (double)a[i * step] * (double)b[i * step];
    return sum;
}

/* Gram-Schmidt on normal vectors equals the QR decomposition with a positive diagonal, as in
 * PyTorch. Applied twice, since once leaves rounding errors. */
static void fill_orthogonal(const KilnParam *param, Drawing *drawing)
{
    float *data = drawing->data;
    const int64_t rows = param->shape.rank > 0 ? param->shape.dim[0] : 1;
    const int64_t columns = param->count / rows;
    const bool by_rows = rows <= columns;
    const int64_t vectors = by_rows ? rows : columns, length = by_rows ? columns : rows;
    const int64_t apart = by_rows ? columns : 1, step = by_rows ? 1 : columns;

    draw_all(drawing, 1.0f, normal_values);
    for (int64_t v = 0; v < vectors; v++) {
        float *x = data + v * apart;

        for (int64_t k = 0; k < 2 * v; k++) {
            const float *before = data + k % v * apart;
            const double share = dot(x, before, length, step);

            for (int64_t i = 0; i < length; i++)
                x[i * step] -= (float)(share * (double)before[i * step]);
        }
        const double norm = sqrt(dot(x, x, length, step));
        for (int64_t i = 0; i < length; i++)
            x[i * step] = (float)((double)x[i * step] / norm);
    }
    for (int64_t i = 0; i < param->count; i++)
        data[i] *= (float)param->init.a;
}

/* ---- Entry points --------------------------------------------------------------- */

double kiln_init_gain(const char *nonlinearity, double slope)
{
    static const struct {
        const char *name;
        double gain;
    } gains[] = {
        { "linear", 1.0 },     { "sigmoid", 1.0 },
        { "tanh", 5.0 / 3.0 }, { "relu", 1.41421356237309504880 },
        { "selu", 0.75 },
    };

    if (strcmp(nonlinearity, "leaky_relu") == 0)
        return sqrt(2.0 / (1.0 + slope * slope));
    for (size_t i = 0; i < KILN_COUNT(gains); i++)
        if (strcmp(nonlinearity, gains[i].name) == 0)
            return gains[i].gain;
    return 0.0;
}

void kiln_param_draw(const KilnParam *param, uint64_t seed, int threads, float *data)
{
    const float uniform = 1.73205080756887729353f; /* bound divided by deviation */
    float a = (float)param->init.a;
    KilnRng rng;
    Drawing drawing = { .rng = &rng, .data = data, .n = param->count, .threads = threads };

    kiln_rng_init(&rng, seed, KILN_RNG_INIT, 0, param->hash);
    switch (param->init.kind) {
    case KILN_INIT_CONSTANT:
        fill_constant(data, param->count, a);
        break;
    case KILN_INIT_UNIFORM:
        draw_all(&drawing, a, uniform_values);
        break;
    case KILN_INIT_NORMAL:
        draw_all(&drawing, a, normal_values);
        break;
    case KILN_INIT_TRUNC_NORMAL:
        fill_trunc_normal(data, param->count, param->init.a, param->init.b, &rng);
        break;
    case KILN_INIT_XAVIER_UNIFORM:
    case KILN_INIT_KAIMING_UNIFORM:
        draw_all(&drawing, uniform * (float)scaled_deviation(param), uniform_values);
        break;
    case KILN_INIT_XAVIER_NORMAL:
    case KILN_INIT_KAIMING_NORMAL:
        draw_all(&drawing, (float)scaled_deviation(param), normal_values);
        break;
    case KILN_INIT_ORTHOGONAL:
        fill_orthogonal(param, &drawing);
        break;
    }
    for (int64_t i = 0; i < param->zero_count; i++)
        data[param->zero_first + i] = 0.0f;
}

/* Vector loops of the optimizers. Compiled once per level; KILN_ISA names it. The arrays of a call
 * never overlap, which `omp simd` states. The sum of squared gradients is free: memory is the
 * limit.
 *
 * Formula: nn/optimizers/NAME.c. Caller: backend/cpu/kernels/optimizers.c. */
#include "backend/cpu/isa/optimizers.h"

#include <math.h>
#include <stddef.h>

/* ---- sgd ---------------------------------------------------------------------- */

static float sgd_plain(const KilnOptimizerBuffers *buffers, const KilnSgdLoop *sgd)
{
    float *param = buffers->param;
    const float *grad = buffers->grad;
    const float scale = buffers->scale, lr = sgd->lr, decay = sgd->decay;
    float total = 0.0f;

#pragma omp simd reduction(+ : total)
    for (int64_t i = 0; i < buffers->n; i++) {
        total += grad[i] * grad[i];
        param[i] -= lr * (scale * grad[i] + decay * param[i]);
    }
    return total;
}

/* Plain momentum, the common case: a third of the arithmetic, for networks that fit the cache. */
static float sgd_momentum(const KilnOptimizerBuffers *buffers, const KilnSgdLoop *sgd)
{
    float *param = buffers->param, *buffer = buffers->slots[0];
    const float *grad = buffers->grad;
    const float lr = sgd->lr, past = sgd->momentum;
    float total = 0.0f;

#pragma omp simd reduction(+ : total)
    for (int64_t i = 0; i < buffers->n; i++) {
        float b = past * buffer[i] + grad[i];

        total += grad[i] * grad[i];
        buffer[i] = b;
        param[i] -= lr * b;
    }
    return total;
}

static float sgd(const KilnOptimizerBuffers *buffers, const KilnSgdLoop *sgd)
{
    float *param = buffers->param, *buffer = buffers->slots[0];
    const float *grad = buffers->grad;
    const float scale = buffers->scale, lr = sgd->lr, decay = sgd->decay;
    const float past = sgd->momentum, take = sgd->first ? 1.0f : sgd->take;
    const float ahead = sgd->nesterov ? sgd->momentum : 1.0f, now = sgd->nesterov ? 1.0f : 0.0f;
    float total = 0.0f;

    if (buffer == NULL)
        return sgd_plain(buffers, sgd);
    if (sgd->first) /* the buffer's old content, possibly NaN, must not count */
        for (int64_t i = 0; i < buffers->n; i++)
            buffer[i] = 0.0f;
    if (decay == 0.0f && scale == 1.0f && take == 1.0f && !sgd->nesterov)
        return sgd_momentum(buffers, sgd);
#pragma omp simd reduction(+ : total)
    for (int64_t i = 0; i < buffers->n; i++) {
        float g = scale * grad[i] + decay * param[i];
        float b = past * buffer[i] + take * g;

        total += grad[i] * grad[i];
        buffer[i] = b;
        param[i] -= lr * (now * g + ahead * b);
    }
    return total;
}

/* ---- adam ----------------------------------------------------------------------- */

static float adam_plain(const KilnOptimizerBuffers *buffers, const KilnAdamLoop *adam)
{
    float *param = buffers->param, *average = buffers->slots[0], *square = buffers->slots[1];
    const float *grad = buffers->grad;
    const KilnAdamLoop a = *adam;
    const float scale = buffers->scale;
    float total = 0.0f;

#pragma omp simd reduction(+ : total)
    for (int64_t i = 0; i < buffers->n; i++) {
        float p = param[i] * a.shrink;
        float g = scale * grad[i] + a.decay * p;
        float m = a.keep1 * average[i] + a.take1 * g;
        float v = a.keep2 * square[i] + a.take2 * g * g;

        total += grad[i] * grad[i];
        average[i] = m;
        square[i] = v;
        param[i] = p - a.step * m / (sqrtf(v) * a.root + a.eps);
    }
    return total;
}

static float adam(const KilnOptimizerBuffers *buffers, const KilnAdamLoop *adam)
{
    float *param = buffers->param, *average = buffers->slots[0], *square = buffers->slots[1];
    float *largest = buffers->slots[2];
    const float *grad = buffers->grad;
    const KilnAdamLoop a = *adam;
    const float scale = buffers->scale;
    float total = 0.0f;

    if (largest == NULL)
        return adam_plain(buffers, adam);
#pragma omp simd reduction(+ : total)
    for (int64_t i = 0; i < buffers->n; i++) {
        float p = param[i] * a.shrink;
        float g = scale * grad[i] + a.decay * p;
        float m = a.keep1 * average[i] + a.take1 * g;
        float v = a.keep2 * square[i] + a.take2 * g * g;
        float most = largest[i] > v ? largest[i] : v;

        total += grad[i] * grad[i];
        average[i] = m;
        square[i] = v;
        largest[i] = most;
        param[i] = p - a.step * m / (sqrtf(most) * a.root + a.eps);
    }
    return total;
}

/* ---- rmsprop ------------------------------------------------------------------------ */

/* The denominator of an element's step; inlined with `mean` NULL or not. */
static inline float rms(float *square, float *mean, int64_t i, float g, const KilnRmspropLoop *r)
{
    float v = r->keep * square[i] + r->take * g * g;

    square[i] = v;
    if (mean != NULL) {
        float m = mean[i] + r->take * (g - mean[i]);

        mean[i] = m;
        v -= m * m;
        v = v < 0.0f ? 0.0f : v;
    }
    return sqrtf(v) + r->eps;
}

static inline __attribute__((always_inline)) float rmsprop_loop(const KilnOptimizerBuffers *buffers,
                                                                const KilnRmspropLoop *rmsprop,
                                                                float *buffer, float *mean)
{
    float *param = buffers->param, *square = buffers->slots[0];
    const float *grad = buffers->grad;
    const KilnRmspropLoop r = *rmsprop;
    const float scale = buffers->scale;
    float total = 0.0f;

#pragma omp simd reduction(+ : total)
    for (int64_t i = 0; i < buffers->n; i++) {
        float g = scale * grad[i] + r.decay * param[i];
        float step = g / rms(square, mean, i, g, &r);

        total += grad[i] * grad[i];
        if (buffer != NULL) {
            step = r.momentum * buffer[i] + step;
            buffer[i] = step;
        }
        param[i] -= r.lr * step;
    }
    return total;
}

static float rmsprop(const KilnOptimizerBuffers *buffers, const KilnRmspropLoop *rmsprop)
{
    if (buffers->slots[1] == NULL && buffers->slots[2] == NULL)
        return rmsprop_loop(buffers, rmsprop, NULL, NULL);
    if (buffers->slots[2] == NULL)
        return rmsprop_loop(buffers, rmsprop, buffers->slots[1], NULL);
    if (buffers->slots[1] == NULL)
        return rmsprop_loop(buffers, rmsprop, NULL, buffers->slots[2]);
    return rmsprop_loop(buffers, rmsprop, buffers->slots[1], buffers->slots[2]);
}

/* ---- adagrad, lion, adan ---------------------------------------------------------------- */

static float adagrad(const KilnOptimizerBuffers *buffers, const KilnAdagradLoop *adagrad)
{
    float *param = buffers->param, *sum = buffers->slots[0];
    const float *grad = buffers->grad;
    const KilnAdagradLoop a = *adagrad;
    const float scale = buffers->scale;
    float total = 0.0f;

    if (a.first)
        for (int64_t i = 0; i < buffers->n; i++)
            sum[i] = a.start;
#pragma omp simd reduction(+ : total)
    for (int64_t i = 0; i < buffers->n; i++) {
        float g = scale * grad[i] + a.decay * param[i];
        float s = sum[i] + g * g;

        total += grad[i] * grad[i];
        sum[i] = s;
        param[i] -= a.lr * g / (sqrtf(s) + a.eps);
    }
    return total;
}

static float lion(const KilnOptimizerBuffers *buffers, const KilnLionLoop *lion)
{
    float *param = buffers->param, *average = buffers->slots[0];
    const float *grad = buffers->grad;
    const KilnLionLoop l = *lion;
    const float scale = buffers->scale;
    float total = 0.0f;

#pragma omp simd reduction(+ : total)
    for (int64_t i = 0; i < buffers->n; i++) {
        float g = scale * grad[i], m = average[i];
        float blend = l.keep1 * m + l.take1 * g;
        float above = blend > 0.0f ? 1.0f : 0.0f, below = blend < 0.0f ? 1.0f : 0.0f;
        float sign = above - below + 0.0f * blend; /* not finite becomes NaN */

        total += grad[i] * grad[i];
        average[i] = l.keep2 * m + l.take2 * g;
        param[i] = param[i] * l.shrink - l.lr * sign;
    }
    return total;
}

static float adan(const KilnOptimizerBuffers *buffers, const KilnAdanLoop *adan)
{
    float *param = buffers->param, *average = buffers->slots[0], *square = buffers->slots[1];
    float *drift = buffers->slots[2], *before = buffers->slots[3];
    const float *grad = buffers->grad;
    const KilnAdanLoop a = *adan;
    const float scale = buffers->scale;
    float total = 0.0f;

    if (a.first)
        for (int64_t i = 0; i < buffers->n; i++)
            before[i] = scale * grad[i];
#pragma omp simd reduction(+ : total)
    for (int64_t i = 0; i < buffers->n; i++) {
        float g = scale * grad[i], diff = g - before[i], ahead = g + a.keep2 * diff;
        float m = a.keep1 * average[i] + a.take1 * g;
        float v = a.keep3 * square[i] + a.take3 * ahead * ahead;
        float d = a.keep2 * drift[i] + a.take2 * diff;

        total += grad[i] * grad[i];
        average[i] = m;
        square[i] = v;
        drift[i] = d;
        before[i] = g;
        param[i] =
            (param[i] * a.shrink - (a.step * m + a.step_diff * d) / (sqrtf(v) * a.root + a.eps)) *
            a.divide;
    }
    return total;
}

/* ---- lamb ---------------------------------------------------------------------------------- */

enum { LANES = 16 };

static inline float lamb_direction(const KilnLambLoop *l, float p, float m, float v)
{
    return m * l->correct / (sqrtf(v) * l->root + l->eps) + l->decay * p;
}

static double add_lanes(const double *lanes)
{
    double total = 0.0;

    for (int lane = 0; lane < LANES; lane++)
        total += lanes[lane];
    return total;
}

static void lamb_moments(const KilnOptimizerBuffers *buffers, const KilnLambLoop *lamb,
                         double *ret_param, double *ret_direction)
{
    float *average = buffers->slots[0], *square = buffers->slots[1];
    const float *param = buffers->param, *grad = buffers->grad;
    const KilnLambLoop l = *lamb;
    const float scale = buffers->scale;
    double params[LANES] = { 0 }, directions[LANES] = { 0 };

    for (int64_t from = 0; from < buffers->n; from += LANES) {
        const int64_t n = buffers->n - from < LANES ? buffers->n - from : LANES;

#pragma omp simd
        for (int64_t lane = 0; lane < n; lane++) {
            const int64_t i = from + lane;
            float g = scale * grad[i];
            float m = l.keep1 * average[i] + l.take1 * g;
            float v = l.keep2 * square[i] + l.take2 * g * g;
            float u = lamb_direction(&l, param[i], m, v);

            average[i] = m;
            square[i] = v;
            params[lane] += (double)param[i] * (double)param[i];
            directions[lane] += (double)u * (double)u;
        }
    }
    *ret_param = add_lanes(params);
    *ret_direction = add_lanes(directions);
}

static void lamb_step(const KilnOptimizerBuffers *buffers, const KilnLambLoop *lamb)
{
    float *param = buffers->param;
    const float *average = buffers->slots[0], *square = buffers->slots[1];
    const KilnLambLoop l = *lamb;

#pragma omp simd
    for (int64_t i = 0; i < buffers->n; i++)
        param[i] -= l.lr * lamb_direction(&l, param[i], average[i], square[i]);
}

/* ---- Norms, averages, limits -------------------------------------------------------- */

static double square_sum(const float *x, int64_t n)
{
    double lanes[LANES] = { 0 }, total = 0.0;
    int64_t i = 0;

    for (; i + LANES <= n; i += LANES)
#pragma omp simd
        for (int lane = 0; lane < LANES; lane++)
            lanes[lane] += (double)x[i + lane] * (double)x[i + lane];
    for (; i < n; i++)
        total += (double)x[i] * (double)x[i];
    return total + add_lanes(lanes);
}

static void lerp(float *variable, const float *value, float weight, int64_t n)
{
    if (weight == 1.0f) { /* an exact copy */
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            variable[i] = value[i];
        return;
    }
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        variable[i] += weight * (value[i] - variable[i]);
}

static void clamp(float *variable, float limit, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        float x = variable[i];

        x = x > limit ? limit : x;
        variable[i] = x < -limit ? -limit : x;
    }
}

const KilnOptimizerLoops KILN_LOOPS(optimizer_loops) = {
    .sgd = sgd,
    .adam = adam,
    .rmsprop = rmsprop,
    .adagrad = adagrad,
    .lion = lion,
    .adan = adan,
    .lamb_moments = lamb_moments,
    .lamb_step = lamb_step,
    .square_sum = square_sum,
    .lerp = lerp,
    .clamp = clamp,
};

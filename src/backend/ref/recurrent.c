/* Reference of LSTM and GRU, one sequence after the other. */
#include <math.h>

#include "backend/ref/ref.h"

static double sigmoid(double x)
{
    return 1.0 / (1.0 + exp(-x));
}

/* Sizes, and the layout of a sequence. */
typedef struct Sequence {
    const KilnArg *lengths;
    int64_t steps, batch, hidden;
    bool reverse, batch_first;
} Sequence;

static Sequence sequence_of(const KilnCall *call, const KilnArg *y, const KilnArg *lengths)
{
    const KilnRecurrentAttrs *attrs = call->attrs;
    const int steps = attrs->batch_first != 0 ? 1 : 0;

    return (Sequence) {
        .lengths = lengths,
        .steps = y->shape.dim[steps],
        .batch = y->shape.dim[1 - steps],
        .hidden = y->shape.dim[2],
        .reverse = attrs->reverse != 0,
        .batch_first = attrs->batch_first != 0,
    };
}

/* Steps of sequence b. */
static int64_t length_of(const Sequence *s, int64_t b)
{
    int64_t length = s->lengths->absent ? s->steps : (int64_t)kiln_ref_get(s->lengths, b);

    return length < 0 ? 0 : length > s->steps ? s->steps : length;
}

/* Row of sequence b at its n-th step, in order of computation. */
static int64_t row_of(const Sequence *s, int64_t b, int64_t n)
{
    const int64_t t = s->reverse ? length_of(s, b) - 1 - n : n;

    return s->batch_first ? b * s->steps + t : t * s->batch + b;
}

static int64_t row_at(const Sequence *s, int64_t b, int64_t t)
{
    return s->batch_first ? b * s->steps + t : t * s->batch + b;
}

static double state(const KilnArg *arg, int64_t i)
{
    return arg->absent ? 0.0 : kiln_ref_get(arg, i);
}

/* Weight row `g` times the hidden state before step n. */
static double recurrent(const KilnCall *call, const Sequence *s, const KilnArg *h0,
                        const KilnArg *y, int64_t b, int64_t n, int64_t g)
{
    const KilnArg *weight = &call->inputs[1];
    double sum = 0.0;

    for (int64_t j = 0; j < s->hidden; j++)
        sum += kiln_ref_get(weight, g * s->hidden + j) *
               (n == 0 ? state(h0, b * s->hidden + j)
                       : kiln_ref_get(y, row_of(s, b, n - 1) * s->hidden + j));
    return sum;
}

static void zero(KilnArg *arg)
{
    for (int64_t i = 0; i < kiln_ref_count(arg); i++)
        kiln_ref_set(arg, i, 0.0);
}

/* Steps past the sequence's length give 0. */
static void zero_rest(const Sequence *s, KilnArg *arg, int64_t b)
{
    const int64_t columns = kiln_ref_columns(arg);

    for (int64_t t = length_of(s, b); t < s->steps; t++)
        for (int64_t j = 0; j < columns; j++)
            kiln_ref_set(arg, row_at(s, b, t) * columns + j, 0.0);
}

/* ---- LSTM ---------------------------------------------------------------------- */

static void lstm_step(KilnCall *call, const Sequence *s, int64_t b, int64_t n)
{
    KilnArg *gates = &call->outputs[0], *y = &call->outputs[1], *cells = &call->outputs[4];
    const KilnArg *h0 = &call->inputs[2], *c0 = &call->inputs[3];
    const int64_t H = s->hidden, row = row_of(s, b, n);

    for (int64_t g = 0; g < 4 * H; g++) {
        const double x = kiln_ref_get(&call->inputs[0], row * 4 * H + g) +
                         recurrent(call, s, h0, y, b, n, g);

        kiln_ref_set(gates, row * 4 * H + g, g / H == 2 ? tanh(x) : sigmoid(x));
    }
    for (int64_t j = 0; j < H; j++) {
        const double i = kiln_ref_get(gates, row * 4 * H + j);
        const double f = kiln_ref_get(gates, row * 4 * H + H + j);
        const double g = kiln_ref_get(gates, row * 4 * H + 2 * H + j);
        const double o = kiln_ref_get(gates, row * 4 * H + 3 * H + j);
        const double before = n == 0 ? state(c0, b * H + j)
                                     : kiln_ref_get(cells, row_of(s, b, n - 1) * H + j);
        const double c = f * before + i * g;

        kiln_ref_set(cells, row * H + j, c);
        kiln_ref_set(y, row * H + j, o * tanh(c));
    }
}

static void lstm_run(KilnCall *call)
{
    KilnArg *y = &call->outputs[1], *cells = &call->outputs[4];
    const Sequence s = sequence_of(call, y, &call->inputs[4]);

    for (int64_t b = 0; b < s.batch; b++) {
        const int64_t length = length_of(&s, b);

        for (int64_t n = 0; n < length; n++)
            lstm_step(call, &s, b, n);
        zero_rest(&s, &call->outputs[0], b);
        zero_rest(&s, y, b);
        zero_rest(&s, cells, b);
        for (int64_t j = 0; j < s.hidden; j++) {
            const int64_t i = b * s.hidden + j;
            const int64_t last = length > 0 ? row_of(&s, b, length - 1) * s.hidden + j : 0;

            kiln_ref_set(&call->outputs[2], i,
                         length > 0 ? kiln_ref_get(y, last) : state(&call->inputs[2], i));
            kiln_ref_set(&call->outputs[3], i,
                         length > 0 ? kiln_ref_get(cells, last) : state(&call->inputs[3], i));
        }
    }
}

/* Gradients of the weight, and of the hidden state before step n, from those of the hidden state's
 * contribution to the gates: `share`, [rows, gates]. */
static void backward_product(const Sequence *s, const KilnArg *weight, const KilnArg *h0,
                             const KilnArg *y, const double *share, KilnArg *dweight, KilnArg *dh,
                             int64_t b, int64_t n)
{
    const int64_t H = s->hidden;

    for (int64_t g = 0; g < weight->shape.dim[0]; g++) {
        for (int64_t j = 0; j < H; j++) {
            const double before = n == 0 ? state(h0, b * H + j)
                                         : kiln_ref_get(y, row_of(s, b, n - 1) * H + j);
            const int64_t w = g * H + j;

            kiln_ref_set(dweight, w, kiln_ref_get(dweight, w) + share[g] * before);
            kiln_ref_set(dh, b * H + j,
                         kiln_ref_get(dh, b * H + j) + share[g] * kiln_ref_get(weight, w));
        }
    }
}

/* dh and dc are the gradients of the state after step n, and become those of the state before it.
 */
static void lstm_grad_step(KilnCall *call, const Sequence *s, double *share, int64_t b, int64_t n)
{
    const KilnArg *gates = &call->inputs[0], *dy = &call->inputs[1], *cells = &call->inputs[9];
    KilnArg *dp = &call->outputs[0], *dh = &call->outputs[2], *dc = &call->outputs[3];
    const int64_t H = s->hidden, row = row_of(s, b, n);

    for (int64_t j = 0; j < H; j++) {
        const int64_t at = row * 4 * H + j;
        const double i = kiln_ref_get(gates, at), f = kiln_ref_get(gates, at + H);
        const double g = kiln_ref_get(gates, at + 2 * H), o = kiln_ref_get(gates, at + 3 * H);
        const double before = n == 0 ? state(&call->inputs[6], b * H + j)
                                     : kiln_ref_get(cells, row_of(s, b, n - 1) * H + j);
        const double root = tanh(kiln_ref_get(cells, row * H + j));
        const double h = kiln_ref_get(dh, b * H + j) + state(dy, row * H + j);
        const double c = kiln_ref_get(dc, b * H + j) + h * o * (1.0 - root * root);

        share[j] = c * g * i * (1.0 - i);
        share[H + j] = c * before * f * (1.0 - f);
        share[2 * H + j] = c * i * (1.0 - g * g);
        share[3 * H + j] = h * root * o * (1.0 - o);
        kiln_ref_set(dc, b * H + j, c * f);
        kiln_ref_set(dh, b * H + j, 0.0);
    }
    for (int64_t g = 0; g < 4 * H; g++)
        kiln_ref_set(dp, row * 4 * H + g, share[g]);
    backward_product(s, &call->inputs[4], &call->inputs[5], &call->inputs[8], share,
                     &call->outputs[1], dh, b, n);
}

static void lstm_grad_run(KilnCall *call)
{
    const Sequence s = sequence_of(call, &call->inputs[8], &call->inputs[7]);

    zero(&call->outputs[1]);
    for (int64_t b = 0; b < s.batch; b++) {
        for (int64_t i = b * s.hidden; i < (b + 1) * s.hidden; i++) {
            kiln_ref_set(&call->outputs[2], i, state(&call->inputs[2], i));
            kiln_ref_set(&call->outputs[3], i, state(&call->inputs[3], i));
        }
        zero_rest(&s, &call->outputs[0], b);
        for (int64_t n = length_of(&s, b); n-- > 0;)
            lstm_grad_step(call, &s, call->workspace, b, n);
    }
}

/* ---- GRU ----------------------------------------------------------------------- */

static void gru_step(KilnCall *call, const Sequence *s, int64_t b, int64_t n)
{
    KilnArg *gates = &call->outputs[0], *y = &call->outputs[1], *hidden = &call->outputs[3];
    const KilnArg *p = &call->inputs[0], *h0 = &call->inputs[2], *bias = &call->inputs[4];
    const int64_t H = s->hidden, row = row_of(s, b, n), at = row * 3 * H;

    for (int64_t j = 0; j < H; j++) {
        const double r =
            sigmoid(kiln_ref_get(p, at + j) + state(bias, j) + recurrent(call, s, h0, y, b, n, j));
        const double z = sigmoid(kiln_ref_get(p, at + H + j) + state(bias, H + j) +
                                 recurrent(call, s, h0, y, b, n, H + j));
        const double share = state(bias, 2 * H + j) + recurrent(call, s, h0, y, b, n, 2 * H + j);
        const double g = tanh(kiln_ref_get(p, at + 2 * H + j) + r * share);
        const double before = n == 0 ? state(h0, b * H + j)
                                     : kiln_ref_get(y, row_of(s, b, n - 1) * H + j);

        kiln_ref_set(gates, at + j, r);
        kiln_ref_set(gates, at + H + j, z);
        kiln_ref_set(gates, at + 2 * H + j, g);
        kiln_ref_set(hidden, row * H + j, share);
        kiln_ref_set(y, row * H + j, (1.0 - z) * g + z * before);
    }
}

static void gru_run(KilnCall *call)
{
    KilnArg *y = &call->outputs[1];
    const Sequence s = sequence_of(call, y, &call->inputs[3]);

    for (int64_t b = 0; b < s.batch; b++) {
        const int64_t length = length_of(&s, b);

        for (int64_t n = 0; n < length; n++)
            gru_step(call, &s, b, n);
        zero_rest(&s, &call->outputs[0], b);
        zero_rest(&s, y, b);
        zero_rest(&s, &call->outputs[3], b);
        for (int64_t j = 0; j < s.hidden; j++) {
            const int64_t i = b * s.hidden + j;

            kiln_ref_set(&call->outputs[2], i,
                         length > 0 ? kiln_ref_get(y, row_of(&s, b, length - 1) * s.hidden + j)
                                    : state(&call->inputs[2], i));
        }
    }
}

static void gru_grad_step(KilnCall *call, const Sequence *s, double *share, int64_t b, int64_t n)
{
    const KilnArg *gates = &call->inputs[0], *dy = &call->inputs[1], *h0 = &call->inputs[4];
    const KilnArg *y = &call->inputs[6], *hidden = &call->inputs[7];
    KilnArg *dp = &call->outputs[0], *dh = &call->outputs[2], *dbias = &call->outputs[3];
    const int64_t H = s->hidden, row = row_of(s, b, n);

    for (int64_t j = 0; j < H; j++) {
        const int64_t at = row * 3 * H + j;
        const double r = kiln_ref_get(gates, at), z = kiln_ref_get(gates, at + H);
        const double g = kiln_ref_get(gates, at + 2 * H);
        const double before = n == 0 ? state(h0, b * H + j)
                                     : kiln_ref_get(y, row_of(s, b, n - 1) * H + j);
        const double h = kiln_ref_get(dh, b * H + j) + state(dy, row * H + j);
        const double dg = h * (1.0 - z) * (1.0 - g * g);

        share[j] = dg * kiln_ref_get(hidden, row * H + j) * r * (1.0 - r);
        share[H + j] = h * (before - g) * z * (1.0 - z);
        share[2 * H + j] = dg * r;
        kiln_ref_set(dp, at, share[j]);
        kiln_ref_set(dp, at + H, share[H + j]);
        kiln_ref_set(dp, at + 2 * H, dg);
        kiln_ref_set(dh, b * H + j, h * z);
    }
    for (int64_t g = 0; g < 3 * H; g++)
        kiln_ref_set(dbias, g, kiln_ref_get(dbias, g) + share[g]);
    backward_product(s, &call->inputs[3], h0, y, share, &call->outputs[1], dh, b, n);
}

static void gru_grad_run(KilnCall *call)
{
    const Sequence s = sequence_of(call, &call->inputs[6], &call->inputs[5]);

    zero(&call->outputs[1]);
    zero(&call->outputs[3]);
    for (int64_t b = 0; b < s.batch; b++) {
        for (int64_t i = b * s.hidden; i < (b + 1) * s.hidden; i++)
            kiln_ref_set(&call->outputs[2], i, state(&call->inputs[2], i));
        zero_rest(&s, &call->outputs[0], b);
        for (int64_t n = length_of(&s, b); n-- > 0;)
            gru_grad_step(call, &s, call->workspace, b, n);
    }
}

/* ---- Kernels ------------------------------------------------------------------- */

static KilnStatus grad_prepare(KilnCall *call, KilnError *err)
{
    (void)err;
    call->workspace_size = (size_t)kiln_ref_columns(&call->inputs[0]) * sizeof(double);
    return KILN_OK;
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_lstm, .run = lstm_run },
    { .op = &kiln_op_lstm_grad, .prepare = grad_prepare, .run = lstm_grad_run },
    { .op = &kiln_op_gru, .run = gru_run },
    { .op = &kiln_op_gru_grad, .prepare = grad_prepare, .run = gru_grad_run },
};

const KilnRefTable kiln_ref_recurrent = { kernels, KILN_COUNT(kernels) };

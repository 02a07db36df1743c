/* Linear-chain conditional random fields: the forward-backward algorithm, and Viterbi's. Scores are
 * logarithms, in double. A step of the recursion takes the exponentials of one row, multiplies them
 * with a table of exp(transitions), and takes logarithms of the sums: a product instead of K^2
 * exponentials. Sums that are too small for that are computed term by term. Threads split the
 * sequences. */
#include "backend/cpu/cpu.h"

#include <math.h>
#include <string.h>

/* Where a sum of products of exponentials is exact to the last bits, and where the factor of such
 * products is. */
static const double least_sum = 1e-200, most_sum = 1e200, most_exponent = 300.0;

/* Sequences are summed up in groups, and the groups in their order, so that no sum depends on the
 * number of threads: at most this many, and in all at most this many doubles. */
enum { MOST_GROUPS = 64, GROUP_DOUBLES = 1 << 22 };

typedef struct Crf {
    KilnCall *call;
    const KilnLossLoops *loops;
    const float *emissions;   /* [batch, steps, n] */
    const int32_t *tags;      /* [batch, steps]; NULL: none */
    const int32_t *lengths;   /* [batch] */
    const float *start, *end; /* [n] */
    const float *transitions; /* [n, n] */
    int64_t batch, steps, n;  /* n: tags */
    int64_t width;            /* of rows: n, in whole vectors */
    double top;               /* the largest finite transition */
    double *table, *reverse;  /* [n, width]: exp(transitions - top), and of their transpose */
    double *sums;             /* [groups, 2 + n, width]: gradients of start, end, transitions */
    int64_t groups;
    double *scratch;      /* of all threads */
    int64_t scratch_size; /* of one */
} Crf;

/* The call's inputs: emissions from `at` on, and then tags, if any. */
static Crf crf_of(KilnCall *call, int at, bool tags)
{
    const KilnArg *emissions = &call->inputs[at], *next = emissions + 1;
    const int64_t *x = emissions->shape.dim;
    Crf crf = { .call = call,
                .loops = kiln_cpu(call)->loops->losses,
                .emissions = emissions->data,
                .batch = x[0],
                .steps = x[1],
                .n = x[2],
                .width = (x[2] + KILN_CRF_VECTOR - 1) / KILN_CRF_VECTOR * KILN_CRF_VECTOR };

    if (tags)
        crf.tags = next++->data;
    crf.lengths = next[0].data;
    crf.start = next[1].data;
    crf.end = next[2].data;
    crf.transitions = next[3].data;
    return crf;
}

/* Sequences of one group are `groups` apart. */
static int64_t groups_of(int64_t batch, int64_t n)
{
    const int64_t fit = GROUP_DOUBLES / (n * n) + 1, most = fit < MOST_GROUPS ? fit : MOST_GROUPS;

    return batch < most ? batch : most;
}

/* Doubles of a row that is needed `rows` times. */
static size_t doubles(const Crf *crf, int64_t rows)
{
    return (size_t)(rows * crf->width) * sizeof(double);
}

static int64_t threads_of(const Crf *crf, int64_t items)
{
    const int64_t threads = crf->call->backend->threads;

    return threads < items ? threads : items;
}

static void plain_inputs(KilnCall *call)
{
    for (int i = 0; i < call->n_inputs; i++)
        call->inputs[i].layout = KILN_PLAIN;
}

/* Items that are worth a thread of their own, when all are `items`. */
static int64_t grain_of(const Crf *crf, int64_t items)
{
    const int64_t work = crf->batch * crf->steps * crf->n * (crf->n + 16) / items;

    return 32768 / (work + 1) + 1;
}

/* ---- Scores ------------------------------------------------------------------------------ */

static double transition(const Crf *crf, int64_t from, int64_t to)
{
    return (double)crf->transitions[from * crf->n + to];
}

/* Padding is 1, so that its logarithms are of ordinary numbers. */
static void fill_tables(Crf *crf)
{
    const int64_t n = crf->n, width = crf->width;

    crf->top = -INFINITY;
    for (int64_t i = 0; i < n * n; i++) {
        const double x = (double)crf->transitions[i];

        crf->top = x > crf->top && x < INFINITY ? x : crf->top;
    }
    if (isinf(crf->top))
        crf->top = 0.0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < width; j++) {
            crf->table[i * width + j] = j < n ? exp(transition(crf, i, j) - crf->top) : 1.0;
            if (crf->reverse != NULL)
                crf->reverse[i * width + j] = j < n ? exp(transition(crf, j, i) - crf->top) : 1.0;
        }
}

/* One sequence. */
typedef struct Chain {
    const Crf *crf;
    const float *emissions; /* [length, n] */
    const int32_t *tags;    /* [length] */
    int64_t length;
    bool valid; /* length and tags are in range */
} Chain;

static Chain chain_of(const Crf *crf, int64_t b)
{
    Chain chain = { .crf = crf,
                    .emissions = crf->emissions + b * crf->steps * crf->n,
                    .length = crf->lengths[b] };

    chain.valid = chain.length >= 1 && chain.length <= crf->steps;
    if (crf->tags != NULL)
        chain.tags = crf->tags + b * crf->steps;
    for (int64_t t = 0; t < chain.length && chain.valid && crf->tags != NULL; t++)
        chain.valid = chain.tags[t] >= 0 && chain.tags[t] < crf->n;
    return chain;
}

/* y = x + the emissions of step t. */
static void add_emissions(const Chain *chain, double *y, const double *x, int64_t t)
{
    const float *emissions = chain->emissions + t * chain->crf->n;

    for (int64_t i = 0; i < chain->crf->n; i++)
        y[i] = x[i] + (double)emissions[i];
}

static void add_scores(const Chain *chain, double *y, const double *x, const float *scores)
{
    for (int64_t i = 0; i < chain->crf->n; i++)
        y[i] = (x != NULL ? x[i] : 0.0) + (double)scores[i];
}

/* NaN if any is. */
static double largest(const double *x, int64_t n)
{
    double top = -INFINITY;

    for (int64_t i = 0; i < n; i++)
        top = x[i] > top || isnan(x[i]) ? x[i] : top;
    return top;
}

static double log_sum_exp(const double *x, int64_t n)
{
    const double top = largest(x, n);
    double sum = 0.0;

    if (isinf(top) || isnan(top))
        return top;
    for (int64_t i = 0; i < n; i++)
        sum += exp(x[i] - top);
    return top + log(sum);
}

/* Rows of scratch. */
typedef struct Rows {
    double *weights, *sums, *terms, *other, *row[2];
    double *alpha; /* [steps, width]; for the gradient only */
} Rows;

enum { SCRATCH_ROWS = 6 };

static Rows rows_of(const Crf *crf)
{
    double *at = crf->scratch + kiln_thread() * crf->scratch_size;
    const int64_t width = crf->width;

    return (Rows) { .weights = at,
                    .sums = at + width,
                    .terms = at + 2 * width,
                    .other = at + 3 * width,
                    .row = { at + 4 * width, at + 5 * width },
                    .alpha = at + SCRATCH_ROWS * width };
}

/* y[j] = log of the sum over i of exp(x[i] + transition(i, j)), or of transition(j, i) if
 * `reverse`. Returns the largest x; the exponentials below it stay in rows->weights. */
static double log_step(const Crf *crf, const Rows *rows, double *y, const double *x, bool reverse)
{
    const double *table = reverse ? crf->reverse : crf->table;
    const double top = largest(x, crf->n);

    crf->loops->crf_exp(rows->weights, x, top, crf->width);
    crf->loops->crf_mix(rows->sums, rows->weights, table, crf->n, crf->width);
    crf->loops->crf_log(y, rows->sums, top + crf->top, crf->width);
    for (int64_t j = 0; j < crf->n; j++) {
        if (rows->sums[j] >= least_sum && rows->sums[j] <= most_sum)
            continue;
        for (int64_t i = 0; i < crf->n; i++)
            rows->terms[i] = x[i] + (reverse ? transition(crf, j, i) : transition(crf, i, j));
        y[j] = log_sum_exp(rows->terms, crf->n);
    }
    return top;
}

/* Row t: log of the sum over all beginnings of a sequence that end with each tag. Returns the last
 * row; all rows are in rows->alpha if `keep`. */
static const double *forward(const Chain *chain, const Rows *rows, bool keep)
{
    const Crf *crf = chain->crf;
    const double *last = NULL;

    for (int64_t t = 0; t < chain->length; t++) {
        double *next = keep ? rows->alpha + t * crf->width : rows->row[t % 2];

        if (t == 0)
            add_scores(chain, next, NULL, crf->start);
        else
            log_step(crf, rows, next, last, false);
        add_emissions(chain, next, next, t);
        last = next;
    }
    return last;
}

/* log of the sum over all sequences. */
static double total(const Chain *chain, const Rows *rows, const double *last)
{
    add_scores(chain, rows->terms, last, chain->crf->end);
    return log_sum_exp(rows->terms, chain->crf->n);
}

static double score(const Chain *chain)
{
    const Crf *crf = chain->crf;
    double sum = (double)crf->start[chain->tags[0]] +
                 (double)crf->end[chain->tags[chain->length - 1]];

    for (int64_t t = 0; t < chain->length; t++) {
        sum += (double)chain->emissions[t * crf->n + chain->tags[t]];
        if (t > 0)
            sum += transition(crf, chain->tags[t - 1], chain->tags[t]);
    }
    return sum;
}

/* ---- Loss ---------------------------------------------------------------------------------- */

static void place_loss(Crf *crf)
{
    crf->table = crf->call->workspace;
    crf->scratch = crf->table + crf->n * crf->width;
    crf->scratch_size = SCRATCH_ROWS * crf->width;
}

static KilnStatus loss_prepare(KilnCall *call, KilnError *err)
{
    const Crf crf = crf_of(call, 0, true);

    (void)err;
    plain_inputs(call);
    call->workspace_size = doubles(&crf, crf.n + threads_of(&crf, crf.batch) * SCRATCH_ROWS);
    return KILN_OK;
}

static void loss_part(void *context, int64_t begin, int64_t end)
{
    const Crf *crf = context;
    const Rows rows = rows_of(crf);
    float *loss = crf->call->outputs[0].data;

    for (int64_t b = begin; b < end; b++) {
        const Chain chain = chain_of(crf, b);

        loss[b] = chain.valid
                      ? (float)(total(&chain, &rows, forward(&chain, &rows, false)) - score(&chain))
                      : NAN;
    }
}

static void loss_run(KilnCall *call)
{
    Crf crf = crf_of(call, 0, true);

    place_loss(&crf);
    fill_tables(&crf);
    kiln_parallel(call->backend->threads, crf.batch, grain_of(&crf, crf.batch), 1, loss_part, &crf);
}

/* ---- Gradient -------------------------------------------------------------------------------- */

static void place_grad(Crf *crf)
{
    const int64_t square = crf->n * crf->width;

    crf->groups = groups_of(crf->batch, crf->n);
    crf->table = crf->call->workspace;
    crf->reverse = crf->table + square;
    crf->sums = crf->reverse + square;
    crf->scratch = crf->sums + crf->groups * (2 * crf->width + square);
    crf->scratch_size = (SCRATCH_ROWS + crf->steps) * crf->width;
}

static KilnStatus grad_prepare(KilnCall *call, KilnError *err)
{
    const Crf crf = crf_of(call, 1, true);
    const int64_t groups = groups_of(crf.batch, crf.n);

    (void)err;
    plain_inputs(call);
    call->workspace_size = doubles(&crf, 2 * crf.n + groups * (2 + crf.n) +
                                             threads_of(&crf, groups) * (SCRATCH_ROWS + crf.steps));
    return KILN_OK;
}

/* Adds dloss * probability of each pair of tags at t - 1 and t, of which `after` has all that comes
 * after the transition, and rows->weights its exponentials below `top`. */
static void add_pairs(const Chain *chain, const Rows *rows, double *pairs, const double *after,
                      double top, int64_t t, double all, double dloss)
{
    const Crf *crf = chain->crf;
    const double *before = rows->alpha + (t - 1) * crf->width;
    const double before_top = largest(before, crf->n);
    const double exponent = before_top + crf->top + top - all;

    if (fabs(exponent) <= most_exponent) {
        crf->loops->crf_exp(rows->other, before, before_top, crf->width);
        crf->loops->crf_pairs(pairs, rows->other, crf->table, rows->weights, dloss * exp(exponent),
                              crf->n, crf->width);
        return;
    }
    for (int64_t i = 0; i < crf->n; i++)
        for (int64_t j = 0; j < crf->n; j++)
            pairs[i * crf->width + j] += dloss *
                                         exp(before[i] + transition(crf, i, j) + after[j] - all);
}

/* Slopes of step t: dloss times the probability of each tag, minus 1 for the given one. */
static void write_slopes(const Chain *chain, const Rows *rows, const double *beta, int64_t t,
                         double all, double dloss, float *dx)
{
    const Crf *crf = chain->crf;
    const double *alpha = rows->alpha + t * crf->width;

    for (int64_t i = 0; i < crf->n; i++)
        rows->terms[i] = alpha[i] + beta[i];
    crf->loops->crf_exp(rows->other, rows->terms, all, crf->width);
    rows->other[chain->tags[t]] -= 1.0;
    for (int64_t i = 0; i < crf->n; i++) {
        rows->other[i] *= dloss;
        dx[i] = (float)rows->other[i];
    }
}

static void add_row(double *y, const double *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] += x[i];
}

/* sums: of start, end and transitions. */
static void chain_grad(const Chain *chain, const Rows *rows, double *sums, double dloss, float *dx)
{
    const Crf *crf = chain->crf;
    double *start = sums, *end = start + crf->width, *pairs = end + crf->width;
    const double all = total(chain, rows, forward(chain, rows, true));

    for (int64_t t = chain->length - 1; t >= 0; t--) {
        double *beta = rows->row[t % 2], *after = rows->row[(t + 1) % 2];

        if (t + 1 == chain->length) {
            add_scores(chain, beta, NULL, crf->end);
        } else {
            add_emissions(chain, after, after, t + 1);

            const double top = log_step(crf, rows, beta, after, true);

            add_pairs(chain, rows, pairs, after, top, t + 1, all, dloss);
            pairs[chain->tags[t] * crf->width + chain->tags[t + 1]] -= dloss;
        }
        write_slopes(chain, rows, beta, t, all, dloss, dx + t * crf->n);
        if (t + 1 == chain->length)
            add_row(end, rows->other, crf->n);
    }
    add_row(start, rows->other, crf->n);
}

static void grad_part(void *context, int64_t begin, int64_t end)
{
    const Crf *crf = context;
    const Rows rows = rows_of(crf);
    const int64_t size = (2 + crf->n) * crf->width;
    const float *dloss = crf->call->inputs[0].data;

    memset(crf->sums + begin * size, 0, (size_t)((end - begin) * size) * sizeof(double));
    for (int64_t group = begin; group < end; group++)
        for (int64_t b = group; b < crf->batch; b += crf->groups) {
            const Chain chain = chain_of(crf, b);
            const int64_t row = crf->steps * crf->n, used = chain.valid ? chain.length * crf->n : 0;
            float *dx = (float *)crf->call->outputs[0].data + b * row;

            memset(dx + used, 0, (size_t)(row - used) * sizeof(*dx));
            if (chain.valid)
                chain_grad(&chain, &rows, crf->sums + group * size, (double)dloss[b], dx);
        }
}

/* Rows of start, end and transitions: the sums of all groups. */
static void sum_part(void *context, int64_t begin, int64_t end)
{
    const Crf *crf = context;
    const int64_t size = (2 + crf->n) * crf->width;

    for (int64_t row = begin; row < end; row++) {
        float *y = row < 2 ? crf->call->outputs[1 + row].data
                           : (float *)crf->call->outputs[3].data + (row - 2) * crf->n;

        for (int64_t i = 0; i < crf->n; i++) {
            double sum = 0.0;

            for (int64_t group = 0; group < crf->groups; group++)
                sum += crf->sums[group * size + row * crf->width + i];
            y[i] = (float)sum;
        }
    }
}

static void grad_run(KilnCall *call)
{
    Crf crf = crf_of(call, 1, true);

    place_grad(&crf);
    fill_tables(&crf);
    kiln_parallel(call->backend->threads, crf.groups, grain_of(&crf, crf.groups), 1, grad_part,
                  &crf);
    kiln_parallel(call->backend->threads, 2 + crf.n, 16384 / (crf.groups * crf.n) + 1, 1, sum_part,
                  &crf);
}

/* ---- Decoding ----------------------------------------------------------------------------------
 */

/* The row before the row of each step, as i32; rows->terms and rows->other are the two rows. */
static KilnStatus decode_prepare(KilnCall *call, KilnError *err)
{
    const Crf crf = crf_of(call, 0, false);

    (void)err;
    plain_inputs(call);
    call->workspace_size =
        doubles(&crf, crf.n + threads_of(&crf, crf.batch) * (SCRATCH_ROWS + (crf.steps + 1) / 2));
    return KILN_OK;
}

static void decode_chain(const Chain *chain, const Rows *rows, int32_t *tags)
{
    const Crf *crf = chain->crf;
    int32_t *from = (int32_t *)(void *)rows->alpha; /* [steps, width]: the best tag before each */
    const double *last = NULL;
    int64_t tag = 0;

    for (int64_t t = 0; t < chain->length; t++) {
        double *next = rows->row[t % 2];

        if (t == 0)
            add_scores(chain, next, NULL, crf->start);
        else
            crf->loops->crf_best(next, rows->other, last, crf->table, crf->n, crf->width);
        for (int64_t i = 0; i < crf->n && t > 0; i++)
            from[t * crf->width + i] = (int32_t)rows->other[i];
        add_emissions(chain, next, next, t);
        last = next;
    }
    add_scores(chain, rows->terms, last, crf->end);
    for (int64_t i = 1; i < crf->n; i++)
        tag = rows->terms[i] > rows->terms[tag] ? i : tag;
    for (int64_t t = chain->length - 1; t >= 0; t--) {
        tags[t] = (int32_t)tag;
        tag = t > 0 ? from[t * crf->width + tag] : 0;
    }
}

static void decode_part(void *context, int64_t begin, int64_t end)
{
    const Crf *crf = context;
    const Rows rows = rows_of(crf);

    for (int64_t b = begin; b < end; b++) {
        const Chain chain = chain_of(crf, b);
        const int64_t used = chain.valid ? chain.length : 0;
        int32_t *tags = (int32_t *)crf->call->outputs[0].data + b * crf->steps;

        memset(tags + used, 0, (size_t)(crf->steps - used) * sizeof(*tags));
        if (chain.valid)
            decode_chain(&chain, &rows, tags);
    }
}

static void decode_run(KilnCall *call)
{
    Crf crf = crf_of(call, 0, false);

    crf.table = call->workspace;
    crf.scratch = crf.table + crf.n * crf.width;
    crf.scratch_size = (SCRATCH_ROWS + (crf.steps + 1) / 2) * crf.width;
    for (int64_t i = 0; i < crf.n; i++)
        for (int64_t j = 0; j < crf.width; j++)
            crf.table[i * crf.width + j] = j < crf.n ? transition(&crf, i, j) : 0.0;
    kiln_parallel(call->backend->threads, crf.batch, grain_of(&crf, crf.batch), 1, decode_part,
                  &crf);
}

static const KilnKernel kernels[] = {
    { .op = &kiln_op_crf_loss, .prepare = loss_prepare, .run = loss_run },
    { .op = &kiln_op_crf_loss_grad, .prepare = grad_prepare, .run = grad_run },
    { .op = &kiln_op_crf_decode, .prepare = decode_prepare, .run = decode_run },
};

const KilnCpuTable kiln_cpu_crf = { kernels, KILN_COUNT(kernels) };

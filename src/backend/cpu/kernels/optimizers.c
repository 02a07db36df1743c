/* Kernels of the optimizers: one pass over the flat parameters, segment by segment, each with its
 * own learning rate and weight decay.
 *
 * Formula: nn/optimizers/NAME.c. Vector loops: backend/cpu/isa/optimizers.c. Reference:
 * backend/ref/optimizers.c. Other in-place updates: backend/cpu/kernels/updates.c. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/kernels/update_tiles.h"
#include "base/min.h"

#include <math.h>

static const KilnOptimizerLoops *loops_of(const KilnCall *call)
{
    return kiln_cpu(call)->loops->optimizers;
}

/* ---- Segments ------------------------------------------------------------------- */

/* The rates of a segment: lr includes the segment's factor. */
typedef struct Rates {
    double lr, decay;
} Rates;

static int64_t segment_count(const KilnCall *call)
{
    const KilnArg *ends = &call->inputs[KILN_FLAT_SEGMENT_ENDS];

    return ends->absent ? 1 : kiln_cpu_count(ends);
}

static int64_t segment_end(const KilnCall *call, int64_t segment)
{
    const KilnArg *ends = &call->inputs[KILN_FLAT_SEGMENT_ENDS];

    return ends->absent ? kiln_cpu_count(&call->inputs[KILN_FLAT_PARAM])
                        : ((const int64_t *)ends->data)[segment];
}

/* The segment that contains element `at`. */
static int64_t segment_at(const KilnCall *call, int64_t at)
{
    int64_t low = 0, high = segment_count(call) - 1;

    while (low < high) {
        int64_t middle = (low + high) / 2;

        if (segment_end(call, middle) > at)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Whether the update is of rows of an embedding, in place of segments. */
static bool has_rows(const KilnCall *call)
{
    const KilnArg *rows = &call->inputs[KILN_FLAT_ROWS];

    return !rows->absent && rows->dtype == KILN_I32;
}

static double hyper_of(const KilnCall *call, int i)
{
    return (double)kiln_variable_at(call, KILN_FLAT_HYPER, 0)[i];
}

/* False: the segment is not updated. */
static bool rates_of(const KilnCall *call, int64_t segment, Rates *ret)
{
    const float *rates = kiln_variable_at(call, KILN_FLAT_RATES, 2 * segment);

    *ret = (Rates) { .lr = hyper_of(call, 0) };
    if (rates == NULL)
        return true;
    ret->lr *= (double)rates[0];
    ret->decay = (double)rates[1];
    return rates[0] != 0.0f;
}

static KilnOptimizerBuffers buffers_of(const KilnCall *call, KilnUpdateSpan s,
                                       KilnUpdateTiles *tiles)
{
    const float *scale = kiln_variable_at(call, KILN_FLAT_SCALE, 0);
    KilnOptimizerBuffers buffers = {
        .param = kiln_variable_f32(call, KILN_FLAT_PARAM, s, tiles),
        .grad = kiln_variable_f32(call, KILN_FLAT_GRAD, s, tiles),
        .n = s.n,
        .scale = scale != NULL ? *scale : 1.0f,
    };

    for (int i = KILN_FLAT_SLOTS; i < call->n_inputs; i++)
        buffers.slots[i - KILN_FLAT_SLOTS] = kiln_variable_f32(call, i, s, tiles);
    return buffers;
}

/* ---- Pieces ---------------------------------------------------------------------------- */

/* Most elements whose squares f32 can add accurately. */
enum { F32_PIECE = 1 << 13 };

/* Updates the buffers with their segment's rates; returns the sum of squared gradients, in f32. */
typedef float Update(const KilnCall *call, const KilnOptimizerBuffers *buffers, const Rates *rates);

/* Elements of one segment and one part, with the sums over them. */
typedef struct Piece {
    int64_t begin, end;
    Rates rates; /* for LAMB, after the sums: lr includes the trust ratio */
    double param, direction;
    double square; /* of the gradient */
} Piece;

typedef struct Pieces {
    const KilnCall *call;
    Update *update;
    Piece *all;
    int64_t count;
} Pieces;

static bool measures_norms(const KilnCall *call)
{
    return !call->inputs[KILN_FLAT_NORMS].absent;
}

/* End of the part that contains element `at`; *part is its number or a lower one. */
static int64_t part_end(const KilnCall *call, int64_t at, int64_t *part)
{
    const int64_t *parts = call->inputs[KILN_FLAT_PART_ENDS].data;

    if (!measures_norms(call))
        return INT64_MAX;
    while (parts[*part] <= at)
        ++*part;
    return parts[*part];
}

static KilnStatus pieces_prepare(KilnCall *call, int64_t size)
{
    const int64_t parts = measures_norms(call) ? kiln_cpu_count(&call->inputs[KILN_FLAT_NORMS]) : 0;
    const int64_t most = kiln_cpu_count(&call->inputs[KILN_FLAT_PARAM]) / size +
                         segment_count(call) + parts;

    call->workspace_size = (size_t)most * sizeof(Piece);
    return KILN_OK;
}

static KilnStatus flat_prepare(KilnCall *call, KilnError *err)
{
    (void)err;
    return measures_norms(call) ? pieces_prepare(call, F32_PIECE) : KILN_OK;
}

static KilnStatus lamb_prepare(KilnCall *call, KilnError *err)
{
    (void)err;
    return pieces_prepare(call, KILN_UPDATE_PIECE);
}

/* Splits segments and parts into pieces; segments that are not updated have none. */
static Pieces pieces_of(const KilnCall *call, int64_t size)
{
    Pieces pieces = { .call = call, .all = call->workspace };
    int64_t begin = 0, part = 0;

    for (int64_t segment = 0; segment < segment_count(call); segment++) {
        const int64_t end = segment_end(call, segment);
        Rates rates;

        for (bool updated = rates_of(call, segment, &rates); updated && begin < end;) {
            int64_t stop = part_end(call, begin, &part);

            stop = stop < end ? stop : end;
            if (stop - begin > size)
                stop = begin + size;
            pieces.all[pieces.count++] = (Piece) { .begin = begin, .end = stop, .rates = rates };
            begin = stop;
        }
        begin = end;
    }
    return pieces;
}

/* The norms of the parts, from the sums of their pieces. */
static void store_norms(const Pieces *pieces)
{
    float *norms = kiln_variable_at(pieces->call, KILN_FLAT_NORMS, 0);
    int64_t part = 0;

    for (int64_t i = 0; norms != NULL && i < pieces->count;) {
        const int64_t end = part_end(pieces->call, pieces->all[i].begin, &part);
        double sum = 0.0;

        for (; i < pieces->count && pieces->all[i].begin < end; i++)
            sum += pieces->all[i].square;
        norms[part] = (float)sqrt(sum);
    }
}

/* ---- One pass over the parameters ----------------------------------------------- */

typedef struct FlatUpdate {
    const KilnCall *call;
    Update *update;
} FlatUpdate;

/* Updates elements [begin, end) of one segment. */
static void update_segment(const FlatUpdate *flat, int64_t begin, int64_t end, const Rates *rates)
{
    KilnUpdateTiles tiles;

    for (KILN_EACH_UPDATE_SPAN(s, flat->call, begin, end)) {
        const KilnOptimizerBuffers buffers = buffers_of(flat->call, s, &tiles);

        flat->update(flat->call, &buffers, rates);
        kiln_variables_store(flat->call, s, &tiles);
    }
}

static void flat_part(void *context, int64_t begin, int64_t end)
{
    const FlatUpdate *flat = context;

    for (int64_t segment = segment_at(flat->call, begin); begin < end; segment++) {
        int64_t stop = segment_end(flat->call, segment) < end ? segment_end(flat->call, segment)
                                                              : end;
        Rates rates;

        if (rates_of(flat->call, segment, &rates))
            update_segment(flat, begin, stop, &rates);
        begin = stop;
    }
}

/* The first piece that begins at or after `at`. */
static int64_t piece_at(const Pieces *pieces, int64_t at)
{
    int64_t low = 0, high = pieces->count;

    while (low < high) {
        const int64_t middle = (low + high) / 2;

        if (pieces->all[middle].begin < at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The pieces that begin in [begin, end). */
static void measured_part(void *context, int64_t begin, int64_t end)
{
    const Pieces *pieces = context;
    const KilnCall *call = pieces->call;
    KilnUpdateTiles tiles;

    for (int64_t i = piece_at(pieces, begin); i < pieces->count; i++) {
        Piece *piece = &pieces->all[i];

        if (piece->begin >= end)
            break;
        for (KILN_EACH_UPDATE_SPAN(s, call, piece->begin, piece->end)) {
            const KilnOptimizerBuffers buffers = buffers_of(call, s, &tiles);
            const float square = pieces->update(call, &buffers, &piece->rates);
            const bool in_range = square > 1e-25f && square < 1e35f;

            piece->square += in_range ? (double)square
                                      : loops_of(call)->square_sum(buffers.grad, buffers.n);
            kiln_variables_store(call, s, &tiles);
        }
    }
}

/* ---- Rows of an embedding -------------------------------------------------------- */

typedef struct RowUpdate {
    FlatUpdate flat;
    Rates rates;
    int64_t width;
    const int32_t *rows; /* NULL: all, one after the other */
} RowUpdate;

static void rows_part(void *context, int64_t begin, int64_t end)
{
    const RowUpdate *u = context;

    if (u->rows == NULL) {
        update_segment(&u->flat, begin * u->width, end * u->width, &u->rates);
        return;
    }
    for (int64_t i = begin; i < end; i++)
        update_segment(&u->flat, u->rows[i] * u->width, (u->rows[i] + 1) * u->width, &u->rates);
}

static void run_row_update(const KilnCall *call, Update *update, int64_t grain)
{
    const int32_t *list = call->inputs[KILN_FLAT_ROWS].data;
    const KilnArg *param = &call->inputs[KILN_FLAT_PARAM];
    const int64_t rows = param->shape.dim[0];
    const bool all = list[0] == KILN_SPARSE_ROWS_ALL;
    RowUpdate u = {
        .flat = { .call = call, .update = update },
        .width = kiln_cpu_count(param) / rows,
        .rows = all ? NULL : list + 1,
    };

    /* Scattered rows take their time to load, however narrow they are. */
    const int64_t scattered = kiln_min_i64(grain / u.width + 1, 128);
    if (rates_of(call, 0, &u.rates))
        kiln_parallel(call->backend->threads, all ? rows : list[0],
                      all ? grain / u.width + 1 : scattered, 1, rows_part, &u);
}

/* ---- Any update in one pass ------------------------------------------------------- */

static void run_flat_update(const KilnCall *call, Update *update)
{
    /* Below this, a thread costs more than it gains. */
    const int64_t grain = 16384;
    FlatUpdate flat = { .call = call, .update = update };

    const int64_t n = kiln_cpu_count(&call->inputs[KILN_FLAT_PARAM]);
    if (has_rows(call)) {
        run_row_update(call, update, grain);
    } else if (measures_norms(call)) {
        Pieces pieces = pieces_of(call, F32_PIECE);

        pieces.update = update;
        kiln_parallel(call->backend->threads, n, grain, 64, measured_part, &pieces);
        store_norms(&pieces);
    } else {
        kiln_parallel(call->backend->threads, n, grain, 64, flat_part, &flat);
    }
}

/* ---- sgd, adam, rmsprop, adagrad ----------------------------------------------------- */

static float sgd(const KilnCall *call, const KilnOptimizerBuffers *buffers, const Rates *rates)
{
    const KilnSgd *attrs = call->attrs;
    const KilnSgdLoop loop = {
        .lr = (float)rates->lr,
        .momentum = (float)attrs->momentum,
        .take = (float)(1.0 - attrs->dampening),
        .decay = (float)rates->decay,
        .first = hyper_of(call, 1) != 0.0,
        .nesterov = attrs->nesterov,
    };

    return loops_of(call)->sgd(buffers, &loop);
}

static void sgd_update_run(KilnCall *call)
{
    run_flat_update(call, sgd);
}

static float adam(const KilnCall *call, const KilnOptimizerBuffers *buffers, const Rates *rates)
{
    const KilnAdam *attrs = call->attrs;
    const KilnAdamLoop loop = {
        .keep1 = (float)attrs->beta1,
        .take1 = (float)(1.0 - attrs->beta1),
        .keep2 = (float)attrs->beta2,
        .take2 = (float)(1.0 - attrs->beta2),
        .eps = (float)attrs->eps,
        .step = (float)(rates->lr / hyper_of(call, 1)),
        .root = (float)(1.0 / sqrt(hyper_of(call, 2))),
        .decay = attrs->decoupled ? 0.0f : (float)rates->decay,
        .shrink = attrs->decoupled ? (float)(1.0 - rates->lr * rates->decay) : 1.0f,
    };

    return loops_of(call)->adam(buffers, &loop);
}

static void adam_update_run(KilnCall *call)
{
    run_flat_update(call, adam);
}

static float rmsprop(const KilnCall *call, const KilnOptimizerBuffers *buffers, const Rates *rates)
{
    const KilnRmsprop *attrs = call->attrs;
    const KilnRmspropLoop loop = {
        .lr = (float)rates->lr,
        .keep = (float)attrs->alpha,
        .take = (float)(1.0 - attrs->alpha),
        .eps = (float)attrs->eps,
        .momentum = (float)attrs->momentum,
        .decay = (float)rates->decay,
    };

    return loops_of(call)->rmsprop(buffers, &loop);
}

static void rmsprop_update_run(KilnCall *call)
{
    run_flat_update(call, rmsprop);
}

/* The sums of rows that were never used before are 0; afterwards they are not below the start. */
static void start_sums(float *sums, int64_t n, float start)
{
    for (int64_t i = 0; i < n; i++)
        sums[i] = sums[i] < start ? start : sums[i];
}

static float adagrad(const KilnCall *call, const KilnOptimizerBuffers *buffers, const Rates *rates)
{
    const KilnAdagrad *attrs = call->attrs;
    const KilnAdagradLoop loop = {
        .lr = (float)rates->lr,
        .eps = (float)attrs->eps,
        .decay = (float)rates->decay,
        .start = (float)attrs->initial_accumulator_value,
        .first = hyper_of(call, 1) != 0.0,
    };

    if (has_rows(call))
        start_sums(buffers->slots[0], buffers->n, loop.start);
    return loops_of(call)->adagrad(buffers, &loop);
}

static void adagrad_update_run(KilnCall *call)
{
    run_flat_update(call, adagrad);
}

/* ---- lion, adan ------------------------------------------------------------------------ */

static float lion(const KilnCall *call, const KilnOptimizerBuffers *buffers, const Rates *rates)
{
    const KilnLion *attrs = call->attrs;
    const KilnLionLoop loop = {
        .lr = (float)rates->lr,
        .keep1 = (float)attrs->beta1,
        .take1 = (float)(1.0 - attrs->beta1),
        .keep2 = (float)attrs->beta2,
        .take2 = (float)(1.0 - attrs->beta2),
        .shrink = (float)(1.0 - rates->lr * rates->decay),
    };

    return loops_of(call)->lion(buffers, &loop);
}

static void lion_update_run(KilnCall *call)
{
    run_flat_update(call, lion);
}

static float adan(const KilnCall *call, const KilnOptimizerBuffers *buffers, const Rates *rates)
{
    const KilnAdan *attrs = call->attrs;
    const double decay = rates->lr * rates->decay;
    const KilnAdanLoop loop = {
        .keep1 = (float)attrs->beta1,
        .take1 = (float)(1.0 - attrs->beta1),
        .keep2 = (float)attrs->beta2,
        .take2 = (float)(1.0 - attrs->beta2),
        .keep3 = (float)attrs->beta3,
        .take3 = (float)(1.0 - attrs->beta3),
        .eps = (float)attrs->eps,
        .step = (float)(rates->lr / hyper_of(call, 1)),
        .step_diff = (float)(rates->lr * attrs->beta2 / hyper_of(call, 2)),
        .root = (float)(1.0 / sqrt(hyper_of(call, 3))),
        .shrink = attrs->no_prox ? (float)(1.0 - decay) : 1.0f,
        .divide = attrs->no_prox ? 1.0f : (float)(1.0 / (1.0 + decay)),
        .first = hyper_of(call, 4) != 0.0,
    };

    return loops_of(call)->adan(buffers, &loop);
}

static void adan_update_run(KilnCall *call)
{
    run_flat_update(call, adan);
}

/* ---- lamb ------------------------------------------------------------------------------ */

/* A segment's trust ratio needs all of its pieces, so there are two passes over the pieces. */

static KilnLambLoop lamb_loop(const KilnCall *call, const Rates *rates)
{
    const KilnLamb *attrs = call->attrs;

    return (KilnLambLoop) {
        .keep1 = (float)attrs->beta1,
        .take1 = (float)(1.0 - attrs->beta1),
        .keep2 = (float)attrs->beta2,
        .take2 = (float)(1.0 - attrs->beta2),
        .eps = (float)attrs->eps,
        .correct = (float)(1.0 / hyper_of(call, 1)),
        .root = (float)(1.0 / sqrt(hyper_of(call, 2))),
        .decay = (float)rates->decay,
        .lr = (float)rates->lr,
    };
}

static void lamb_moments_part(void *context, int64_t begin, int64_t end)
{
    const Pieces *pieces = context;
    KilnUpdateTiles tiles;

    for (int64_t i = begin; i < end; i++) {
        Piece *piece = &pieces->all[i];
        const KilnLambLoop loop = lamb_loop(pieces->call, &piece->rates);

        for (KILN_EACH_UPDATE_SPAN(s, pieces->call, piece->begin, piece->end)) {
            const KilnOptimizerBuffers buffers = buffers_of(pieces->call, s, &tiles);
            double param, direction;

            if (measures_norms(pieces->call))
                piece->square += loops_of(pieces->call)->square_sum(buffers.grad, buffers.n);
            loops_of(pieces->call)->lamb_moments(&buffers, &loop, &param, &direction);
            kiln_variables_store(pieces->call, s, &tiles);
            piece->param += param;
            piece->direction += direction;
        }
    }
}

static void lamb_step_part(void *context, int64_t begin, int64_t end)
{
    const Pieces *pieces = context;
    KilnUpdateTiles tiles;

    for (int64_t i = begin; i < end; i++) {
        const Piece *piece = &pieces->all[i];
        const KilnLambLoop loop = lamb_loop(pieces->call, &piece->rates);

        for (KILN_EACH_UPDATE_SPAN(s, pieces->call, piece->begin, piece->end)) {
            const KilnOptimizerBuffers buffers = buffers_of(pieces->call, s, &tiles);

            loops_of(pieces->call)->lamb_step(&buffers, &loop);
            kiln_variables_store(pieces->call, s, &tiles);
        }
    }
}

/* Multiplies the learning rate of each segment's pieces by its trust ratio. */
static void lamb_trust(const Pieces *pieces, bool always)
{
    int64_t first = 0, next;

    for (; first < pieces->count; first = next) {
        const int64_t segment = segment_at(pieces->call, pieces->all[first].begin);
        double param = 0.0, direction = 0.0;

        for (next = first;
             next < pieces->count && pieces->all[next].begin < segment_end(pieces->call, segment);
             next++) {
            param += pieces->all[next].param;
            direction += pieces->all[next].direction;
        }
        if (pieces->all[first].rates.decay == 0.0 && !always)
            continue;
        if (param > 0.0 && direction > 0.0)
            for (int64_t i = first; i < next; i++)
                pieces->all[i].rates.lr *= sqrt(param) / sqrt(direction);
    }
}

static void lamb_update_run(KilnCall *call)
{
    const KilnLamb *attrs = call->attrs;
    Pieces pieces = pieces_of(call, KILN_UPDATE_PIECE);

    kiln_parallel(call->backend->threads, pieces.count, 1, 1, lamb_moments_part, &pieces);
    lamb_trust(&pieces, attrs->always_adapt);
    kiln_parallel(call->backend->threads, pieces.count, 1, 1, lamb_step_part, &pieces);
    store_norms(&pieces);
}

/* As large as the parameters, and each f32 or bf16. */
#define FLAT_INPUTS                                                                                \
    (1u << KILN_FLAT_PARAM | 1u << KILN_FLAT_GRAD |                                                \
     ((1u << KILN_MAX_SLOTS) - 1u) << KILN_FLAT_SLOTS)
#define BF16 .bf16_inputs = FLAT_INPUTS, .mixed_floats = true
#define FLAT .prepare = flat_prepare, BF16

static const KilnKernel kernels[] = {
    { .op = &kiln_op_sgd_update, .run = sgd_update_run, FLAT },
    { .op = &kiln_op_adam_update, .run = adam_update_run, FLAT },
    { .op = &kiln_op_rmsprop_update, .run = rmsprop_update_run, FLAT },
    { .op = &kiln_op_adagrad_update, .run = adagrad_update_run, FLAT },
    { .op = &kiln_op_lamb_update, .prepare = lamb_prepare, .run = lamb_update_run, BF16 },
    { .op = &kiln_op_lion_update, .run = lion_update_run, FLAT },
    { .op = &kiln_op_adan_update, .run = adan_update_run, FLAT },
};

const KilnCpuTable kiln_cpu_optimizers = { kernels, KILN_COUNT(kernels) };

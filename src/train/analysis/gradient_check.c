/* Checks gradients of training steps: one direction for each parameter, not each element as
 * graph/gradcheck.h does, so that a whole network takes seconds. */
#include "train/analysis/gradient_check.h"

#include <math.h>
#include <stdlib.h>

#include "base/call.h"
#include "kiln/tools/clock.h"
#include "train/step/manual.h"
#include "train/trainer.h"

enum { MOST_PARAMS = 16 /* at equal distances */, WIDTHS = 4 /* of differences, at most */ };
static const double close_enough = 1e-4; /* no other width is tried */

typedef struct Check {
    KilnTrainer *trainer;
    KilnBatch batch;
    KilnDType dtype;                       /* of the parameters */
    double *values, *gradient, *direction; /* of one parameter */
    void *moved;                           /* the same values in `dtype` */
    double loss;                           /* at the initial weights */
    double end;                            /* no parameter is begun after this time */
} Check;

/* Record the step, and run it with gradients or without. *ret is NaN for a batch that the module
 * leaves out. */
static KilnStatus evaluate(Check *check, bool gradients, double *ret, KilnError *err)
{
    KilnTrainer *trainer = check->trainer;
    const KilnModuleOps *ops = kiln_instance_component(trainer->module)->ops.module;
    KilnRecording at = { .step = &trainer->step };

    *ret = (double)NAN;
    kiln_step_begin(&trainer->step, KILN_PHASE_FIT, true, &check->batch,
                    (uint64_t)trainer->options.root->seed, 0);
    kiln_call_enter(trainer->module, "training_step");
    KilnTensor *loss = ops->training_step(trainer->module, &trainer->step);
    kiln_call_leave();
    if (loss == NULL)
        return KILN_OK;
    if (gradients)
        kiln_fit_record_gradients(trainer, &at, loss, false);
    KilnStatus status = kiln_step_run(&trainer->step, loss, err);
    if (status >= 0)
        *ret = kiln_tensor_scalar(loss);
    return status;
}

/* ---- One parameter --------------------------------------------------------------------------- */

static double at(const void *values, KilnDType dtype, int64_t i)
{
    return dtype == KILN_F64 ? ((const double *)values)[i] : (double)((const float *)values)[i];
}

/* Move the parameter by `step` along the direction. */
static void move(const Check *check, KilnParam *param, int64_t n, double step)
{
    for (int64_t i = 0; i < n; i++) {
        const double value = check->values[i] + step * check->direction[i];

        if (check->dtype == KILN_F64)
            ((double *)check->moved)[i] = value;
        else
            ((float *)check->moved)[i] = (float)value;
    }
    kiln_param_write(param, check->dtype, check->moved);
}

static KilnStatus difference(Check *check, KilnParam *param, int64_t n, double step, double *ret,
                             KilnError *err)
{
    double above = 0.0, below = 0.0;

    move(check, param, n, step);
    KilnStatus status = evaluate(check, false, &above, err);
    move(check, param, n, -step);
    if (status >= 0)
        status = evaluate(check, false, &below, err);
    move(check, param, n, 0.0);
    *ret = (above - below) / (2.0 * step);
    return status;
}

/* Whether element `i` is in a row of zeroes without a gradient: that of a padding token, which
 * networks read and never change. `width`: elements of a row; 0: the parameter has no rows. */
static bool is_padding(const Check *check, int64_t i, int64_t width)
{
    if (width == 0)
        return false;
    for (int64_t k = i / width * width; k < (i / width + 1) * width; k++)
        if (check->gradient[k] != 0.0 || check->values[k] != 0.0)
            return false;
    return true;
}

/* Read the values, choose a direction, and take the gradient along it. In f64 the direction is
 * random. In f32 it is the gradient's, along which the loss changes most, so that digits are left;
 * where the gradient is 0 it is random. */
static double prepare(Check *check, KilnParam *param, int64_t n, uint64_t number, double *ret_norm)
{
    const KilnShape *shape = kiln_param_shape(param);
    const int64_t width = shape->rank == 2 ? shape->dim[1] : 0;
    double along = 0.0, norm = 0.0;
    KilnRng rng;

    kiln_param_read_gradient(param, check->dtype, check->moved);
    for (int64_t i = 0; i < n; i++)
        check->gradient[i] = at(check->moved, check->dtype, i);
    kiln_param_read(param, check->dtype, check->moved);
    kiln_rng_init(&rng, 1, KILN_RNG_USER, 0, number);
    for (int64_t i = 0; i < n; i++)
        check->values[i] = at(check->moved, check->dtype, i);
    for (int64_t i = 0; i < n; i++) {
        const double sign = kiln_rng_u32(&rng) % 2 == 0 ? 1.0 : -1.0;
        const bool steepest = check->dtype != KILN_F64 && check->gradient[i] != 0.0;

        check->direction[i] = is_padding(check, i, width) ? 0.0
                              : steepest                  ? copysign(1.0, check->gradient[i])
                                                          : sign;
        along += check->gradient[i] * check->direction[i];
        norm += check->gradient[i] * check->gradient[i];
    }
    *ret_norm = sqrt(norm);
    return along;
}

/* Of several widths the best counts: a wide one meets kinks, such as ReLU's, a narrow one loses
 * digits. */
static KilnStatus check_param(Check *check, KilnParam *param, uint64_t number,
                              KilnGradientCheck *worst, KilnError *err)
{
    static const double widths[2][WIDTHS] = { { 1e-6, 1e-8, 1e-9, 1e-10 },
                                              { 1e-3, 3e-4, 1e-4, 3e-5 } };
    const int64_t n = kiln_shape_count(kiln_param_shape(param));
    const double least = (check->dtype == KILN_F64 ? 1e-6 : 1e-2) * fmax(1.0, fabs(check->loss));
    KilnGradientCheck best = { .error = INFINITY, .param = kiln_param_name(param) };
    double norm, loss;
    KilnStatus status = evaluate(check, true, &loss, err);

    if (status < 0)
        return status;
    best.gradient = prepare(check, param, n, number, &norm);
    for (int i = 0; i < WIDTHS && status >= 0 && best.error > close_enough; i++) {
        double numeric;

        status = difference(check, param, n, widths[check->dtype != KILN_F64][i], &numeric, err);
        const double scale = fmax(fmax(fabs(best.gradient), fabs(numeric)), fmax(norm, least));
        const double error = fabs(best.gradient - numeric) / scale;
        if (error < best.error) {
            best.error = error;
            best.difference = numeric;
        }
    }
    if (worst->checked++ == 0 || !(best.error <= worst->error)) {
        best.checked = worst->checked;
        *worst = best;
    }
    return status;
}

/* ---- All of them -------------------------------------------------------------------------------
 */

static KilnStatus check_params(Check *check, KilnGradientCheck *ret, KilnError *err)
{
    const KilnParams *params = check->trainer->params;
    const size_t n = kiln_params_count(params), stride = 1 + n / MOST_PARAMS;
    KilnStatus status = evaluate(check, true, &check->loss, err);

    for (size_t i = 0; i < n && status >= 0 && !isnan(check->loss) && kiln_clock() < check->end;
         i += stride) {
        KilnParam *param = kiln_params_at(params, i);

        if (kiln_param_trained(param) && !kiln_param_frozen(param))
            status = check_param(check, param, i, ret, err);
    }
    ret->loss = check->loss;
    return status;
}

static KilnStatus next_batch(Check *check, KilnError *err)
{
    KilnLoader *loader = NULL;
    KilnStatus status = kiln_trainer_loader(check->trainer, KILN_TRAIN, 0, &loader, err);

    if (status >= 0 && loader == NULL)
        status = kiln_error_set(err, KILN_E_MISSING, "there are no training samples");
    if (status >= 0)
        status = kiln_loader_start(loader, 0, 0, err);
    return status >= 0 ? kiln_loader_next(loader, &check->batch, err) : status;
}

KilnStatus kiln_trainer_check_gradients(KilnTrainer *trainer, double seconds,
                                        KilnGradientCheck *ret, KilnError *err)
{
    const size_t largest = (size_t)kiln_params_largest(trainer->params) + 1;
    Check check = { .trainer = trainer,
                    .dtype = kiln_params_dtype(trainer->params),
                    .end = kiln_clock() + seconds };
    double *room = calloc(4 * largest, sizeof(*room));

    *ret = (KilnGradientCheck) { 0 };
    if (kiln_trainer_is_manual(trainer)) {
        free(room);
        return KILN_OK;
    }
    if (room == NULL)
        return kiln_error_nomem(err, 4 * largest * sizeof(*room));
    check.values = room;
    check.gradient = room + largest;
    check.direction = room + 2 * largest;
    check.moved = room + 3 * largest;
    KilnStatus status = next_batch(&check, err);
    if (status >= 0)
        status = check_params(&check, ret, err);
    free(room);
    return status;
}

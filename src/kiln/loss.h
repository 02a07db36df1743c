/* Losses: what a task minimizes, as a component that users choose (task.loss=focal). */
#ifndef KILN_LOSS_H
#define KILN_LOSS_H

#include "kiln/module.h"

struct KilnLossOps {
    /* Optional. Refuse data that the options do not fit, such as class weights for another number
     * of classes. */
    KilnStatus (*setup)(KilnInstance *self, const KilnDataSpec *data, KilnError *err);
    /* Record the loss of `output` f32 [batch, ..., classes] for `target`: classes i32 [batch, ...],
     * or shares of classes f32 [batch, ..., classes] if a batch transform mixed them; of numbers
     * f32 [batch, width] for numbers of that shape (task regression). Returns a scalar, the mean.
     * What only regularizes (label smoothing) is left out if the step does not train, so that runs
     * can be compared. */
    KilnTensor *(*loss)(KilnInstance *self, KilnStep *step, KilnTensor *output, KilnTensor *target);
};

/* Set up and record a child loss, for modules. */
KILN_API KILN_NODISCARD KilnStatus kiln_loss_setup(KilnInstance *loss, const KilnDataSpec *data,
                                                   KilnError *err);
/* If the loss returns anything but a float scalar, a poisoned tensor. */
KILN_API KilnTensor *kiln_loss(KilnInstance *loss, KilnStep *step, KilnTensor *output,
                               KilnTensor *target);

/* ---- For losses over classes ------------------------------------------------------ */

/* Whether targets are shares of classes instead of classes. */
KILN_API bool kiln_target_is_soft(const KilnTensor *target);

/* The options `class_weights` and `balanced` of losses: members, rows, and the check in setup,
 * which copies the weights to *ret (f32 [classes], freed by the caller; NULL: no weights). */
#define KILN_CLASS_WEIGHTS_OPTIONS                                                                 \
    double *class_weights;                                                                         \
    size_t class_weights_count;                                                                    \
    bool balanced
#define KILN_CLASS_WEIGHTS_FIELD(T)                                                                \
    KILN_FIELD_F64_LIST(T, class_weights, "[]", 0.0, 1e9,                                          \
                        "factor of each class, in the order of the classes; empty: all 1"),        \
        KILN_FIELD_BOOL(T, balanced, "false",                                                      \
                        "class_weights are such that all classes count alike: training samples "   \
                        "/ (classes * samples of the class)")
/* KilnComponent.check of such options: not both are set. */
#define KILN_CLASS_WEIGHTS_CHECK(opts, ret_option, err)                                            \
    (*(ret_option) = "balanced",                                                                   \
     !(opts)->balanced || (opts)->class_weights_count == 0                                         \
         ? KILN_OK                                                                                 \
         : kiln_error_set(err, KILN_E_RANGE, "class_weights are given, too; set one of them"))
KILN_API KILN_NODISCARD KilnStatus kiln_class_weights(const double *class_weights, size_t count,
                                                      const KilnDataSpec *data, float **ret,
                                                      KilnError *err);
/* Of `balanced`: the weights from the training samples, f32 [classes], 0 for a class without
 * samples (sklearn's compute_class_weight("balanced")). To be called while a step is recorded, and
 * freed by the caller. NULL, after which the step fails: the counts are not known, or memory is
 * out. */
KILN_API float *kiln_balanced_weights(KilnStep *step, int64_t n_classes);

#endif

/* The names of the hooks of callbacks that get the trainer alone. */
#ifndef KILN_REGISTRY_TRAINER_HOOKS_H
#define KILN_REGISTRY_TRAINER_HOOKS_H

#include <stddef.h>

#include "kiln/trainer.h"

/* In the order of KilnCallbackOps. */
#define KILN_TRAINER_HOOKS(X)                                                                      \
    X(setup)                                                                                       \
    X(on_fit_start)                                                                                \
    X(on_sanity_check_start)                                                                       \
    X(on_sanity_check_end)                                                                         \
    X(on_train_start)                                                                              \
    X(on_train_epoch_start)                                                                        \
    X(on_train_batch_start)                                                                        \
    X(on_train_batch_end)                                                                          \
    X(on_train_epoch_end)                                                                          \
    X(on_validation_start)                                                                         \
    X(on_validation_epoch_start)                                                                   \
    X(on_validation_batch_start)                                                                   \
    X(on_validation_batch_end)                                                                     \
    X(on_validation_epoch_end)                                                                     \
    X(on_validation_end)                                                                           \
    X(on_train_end)                                                                                \
    X(on_fit_end)                                                                                  \
    X(on_test_start)                                                                               \
    X(on_test_epoch_start)                                                                         \
    X(on_test_batch_start)                                                                         \
    X(on_test_batch_end)                                                                           \
    X(on_test_epoch_end)                                                                           \
    X(on_test_end)                                                                                 \
    X(on_predict_start)                                                                            \
    X(on_predict_epoch_start)                                                                      \
    X(on_predict_batch_start)                                                                      \
    X(on_predict_batch_end)                                                                        \
    X(on_predict_epoch_end)                                                                        \
    X(on_predict_end)                                                                              \
    X(teardown)

#define KILN_ONE_HOOK_(hook) +1
_Static_assert((0 KILN_TRAINER_HOOKS(KILN_ONE_HOOK_)) ==
                   offsetof(KilnCallbackOps, on_before_zero_grad) / sizeof(KilnHook *),
               "the first members of KilnCallbackOps, each listed once");
#undef KILN_ONE_HOOK_

#endif

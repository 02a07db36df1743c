/* Sets up and runs a model with one input and the output "logits", as a task does. */
#ifndef KILN_TESTS_SUPPORT_BUILT_MODEL_H
#define KILN_TESTS_SUPPORT_BUILT_MODEL_H

#include "tests/support/components/built_component.h"

/* For samples of that content and shape, f32, or i32 of tokens. */
KilnStatus setup_model(KilnInstance *model, const KilnScope *scope, unsigned content, KilnShape in,
                       int64_t classes, KilnError *err);
/* The logits [batch, classes] of x [batch, in...]; of a model that gives a map [pixels, classes].
 */
KilnTensor *run_model(KilnInstance *model, KilnStep *step, KilnTensor *x);

#endif

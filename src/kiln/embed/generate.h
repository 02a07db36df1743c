/* Generating text from a checkpoint, as `kiln generate` does. */
#ifndef KILN_KILN_EMBED_GENERATE_H
#define KILN_KILN_EMBED_GENERATE_H

#include "kiln/embed/predict.h"
#include "kiln/tools/generate.h"

/* Generate from `n` prompts with the predictor's weights, in batches of at most
 * datamodule.batch_size; otherwise as kiln_trainer_generate. Any number of threads may call it at
 * once. */
KILN_API KILN_NODISCARD KilnStatus kiln_generate(KilnPredictor *predictor,
                                                 const char *const *prompts, size_t n,
                                                 const KilnGenerateOptions *options,
                                                 KilnGenerated **ret, KilnError *err);

#endif

/* The interface for components: everything that a component or a plugin needs. What only some need
 * is in headers of its own: kiln/plot.h, kiln/tune.h, kiln/usage.h, kiln/files/. Programs that
 * embed kiln include kiln_embed.h. */
#ifndef KILN_H
#define KILN_H

#include "kiln/array.h"
#include "kiln/base.h"
#include "kiln/component.h"
#include "kiln/custom_op.h"
#include "kiln/data.h"
#include "kiln/image.h"
#include "kiln/loading.h"
#include "kiln/logger.h"
#include "kiln/loss.h"
#include "kiln/manual.h"
#include "kiln/metric.h"
#include "kiln/model.h"
#include "kiln/module.h"
#include "kiln/nn.h"
#include "kiln/ops.h"
#include "kiln/plugin.h"
#include "kiln/raw.h"
#include "kiln/rng.h"
#include "kiln/search/history.h"
#include "kiln/state.h"
#include "kiln/strategy.h"
#include "kiln/sweep.h"
#include "kiln/tensor.h"
#include "kiln/tokenizer.h"
#include "kiln/tools/clock.h"
#include "kiln/tools/text.h"
#include "kiln/tools/token_pipeline.h"
#include "kiln/trainer.h"

#endif

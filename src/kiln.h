/* The public interface of kiln: everything that a component, a plugin or an
 * embedding program sees. Including this one header is enough. */
#ifndef KILN_H
#define KILN_H

#include "kiln/array.h"
#include "kiln/base.h"
#include "kiln/component.h"
#include "kiln/config.h"
#include "kiln/custom_op.h"
#include "kiln/data.h"
#include "kiln/files/cache.h"
#include "kiln/files/events.h"
#include "kiln/files/flight.h"
#include "kiln/files/idx.h"
#include "kiln/files/safetensors.h"
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
#include "kiln/plot.h"
#include "kiln/rng.h"
#include "kiln/run.h"
#include "kiln/state.h"
#include "kiln/sweep.h"
#include "kiln/tensor.h"
#include "kiln/trainer.h"
#include "kiln/tune.h"
#include "kiln/usage.h"

#endif

/* The interface for programs that embed kiln: that for components (kiln.h), and composing,
 * building, training, evaluating and predicting. */
#ifndef KILN_EMBED_H
#define KILN_EMBED_H

#include "kiln.h"
#include "kiln/embed/config.h"
#include "kiln/embed/explanation.h"
#include "kiln/embed/fit.h"
#include "kiln/embed/flat.h"
#include "kiln/embed/generate.h"
#include "kiln/embed/predict.h"
#include "kiln/embed/registry.h"
#include "kiln/embed/run.h"

#endif

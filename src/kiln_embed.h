/* The interface for programs that embed kiln: that for components (kiln.h), and composing,
 * building, training, evaluating and predicting. */
#ifndef KILN_EMBED_H
#define KILN_EMBED_H

#include "kiln.h"
#include "kiln/config.h"
#include "kiln/registry.h"
#include "kiln/run.h"

#endif

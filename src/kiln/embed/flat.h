/* All flat functions, for languages that call C by name: see kiln/flat/config.h. */
#ifndef KILN_KILN_EMBED_FLAT_H
#define KILN_KILN_EMBED_FLAT_H

#include "kiln/flat/component.h"
#include "kiln/flat/config.h"
#include "kiln/flat/data.h"
#include "kiln/flat/predict.h"
#include "kiln/flat/run.h"
#include "kiln/flat/sweep.h"

#endif

/* A datamodule and a task for tests with a varying feature: sequences of points, which the task
 * scales. */
#ifndef KILN_TESTS_SUPPORT_LINES_DATA_H
#define KILN_TESTS_SUPPORT_LINES_DATA_H

#include "kiln_embed.h"

enum { LINES_LONGEST = 64, LINES_WIDTH = 2 };

/* Takes raw samples with an array "line" f32 [time, LINES_WIDTH]. */
extern const KilnComponent lines_component;
/* Predicts "scaled", [time, LINES_WIDTH]: each point times the weights. */
extern const KilnComponent scale_component;

#endif

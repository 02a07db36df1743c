/* How a run ends, and what is known of its parameters when it does. */
#ifndef KILN_TRAIN_LOOP_RUN_STATE_H
#define KILN_TRAIN_LOOP_RUN_STATE_H

#include "kiln/base.h"

/* The first two do not exclude each other: saving an interrupted run may fail. A request by a
 * callback to stop is at.should_stop (position.h), which a checkpoint keeps. */
typedef struct KilnRunState {
    bool interrupted;    /* the caller stopped the run: the loops return early, with success */
    bool failed;         /* the run ends with an error: it still saves what it can */
    bool params_invalid; /* an update failed: the parameters are not those of a whole step */
    bool paused;         /* at.should_stop ends this session only: a checkpoint does not keep it */
    char stop_reason[512];
} KilnRunState;

#endif

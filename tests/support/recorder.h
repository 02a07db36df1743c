/* A callback that records the hooks of a run, stops it or fills the disk at a given step. */
#ifndef KILN_TESTS_SUPPORT_RECORDER_H
#define KILN_TESTS_SUPPORT_RECORDER_H

#include "kiln_embed.h"

typedef struct Recorder {
    char hooks[8192];      /* "fit_start train_start ..." */
    volatile int stop;     /* the run's stop flag */
    int64_t stop_at;       /* set `stop` after this step; 0: never */
    int64_t stop_at_batch; /* or after this many batches; 0: never */
    int64_t batch_ms;      /* sleep at the end of each training batch */
    int64_t disk_full_at;  /* files cannot grow from this step on; 0: never */
    char printed[1 << 16]; /* on the console */
} Recorder;
extern Recorder recorder;

extern const KilnComponent recorder_component;

#endif

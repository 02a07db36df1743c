/* What a sweep's jobs do (KilnSweepRequest.body), and how their speed is measured. */
#ifndef KILN_CLI_SWEEP_JOB_BODY_H
#define KILN_CLI_SWEEP_JOB_BODY_H

#include "cli/args.h"
#include "kiln/embed/config.h"
#include "sweep/sweep.h"

typedef struct KilnJobBody {
    const KilnArgs *args;
    const KilnRegistry *registry;
    const char
        *dir;    /* of the sweep, whose outputs are checked (cli/untrusted.h); NULL: a new one */
    bool remote; /* signals come from a batch system */
} KilnJobBody;

/* `ctx` is a KilnJobBody. */
int kiln_job_body(void *ctx, const KilnSweepTask *task);
/* KilnSweepRequest.measure; `ctx` is the same. */
KilnStatus kiln_job_measure(void *ctx, const KilnSpeedTask *task, double *ret, KilnError *err);

#endif

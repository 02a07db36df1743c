/* One step while it is recorded and run: inputs from the batch, logged values
 * and outputs. Knows nothing of epochs, optimizers or hooks. */
#ifndef KILN_TRAIN_LOOP_MODULE_STEP_H
#define KILN_TRAIN_LOOP_MODULE_STEP_H

#include "graph/graph.h"
#include "train/loader/loader.h"
#include "train/metrics/metrics.h"

enum { KILN_STEP_LOGS = 64, KILN_STEP_METRICS = 32, KILN_STEP_READS = 16 };

struct KilnStep {
    KilnGraph *graph;
    KilnMetrics *metrics;
    const KilnDataSpec *spec;       /* what a sample is */
    const KilnDataSpec *train_spec; /* what it is in batches of training; NULL: the same */
    KilnPhase phase;
    bool training;
    const char *set; /* of the evaluation: behind the names of what is logged; "": nothing */
    KilnBatch batch; /* data NULL: recorded for its shapes alone */
    KilnTensor *inputs[KILN_MAX_FEATURES], *lengths;
    int32_t key_words[2];
    KilnTensor *key;
    int64_t stream;
    struct {
        int declared; /* number in the metrics */
        KilnTensor *value;
    } logs[KILN_STEP_LOGS];
    size_t n_logs;
    struct {
        const char *name;
        KilnTensor *value;
    } outputs[KILN_STEP_OUTPUTS];
    size_t n_outputs;
    struct {
        size_t state; /* number in the metrics */
        KilnTensor *scores, *truth;
    } counted[KILN_STEP_METRICS];
    size_t n_counted;
    KilnTensor *const *reads; /* more that is read when it has run; borrowed */
    size_t n_reads;
    bool ran; /* the outputs have values */
};

enum { KILN_STEP_NAME = 256 };
/* The name under which a step logs `name`: with the set behind it, in buf, if that has one. */
const char *kiln_step_name(const KilnStep *step, const char *name, char buf[KILN_STEP_NAME]);

/* Start recording a step over `batch`; `seed` and `number` make its dropout key. */
void kiln_step_begin(KilnStep *step, KilnPhase phase, bool training, const KilnBatch *batch,
                     uint64_t seed, int64_t number);
/* Execute what was recorded: `loss` (NULL: none), logged values, outputs. */
KILN_NODISCARD KilnStatus kiln_step_run(KilnStep *step, KilnTensor *loss, KilnError *err);
/* The plan that executing would follow; leaves need no data. */
KILN_NODISCARD KilnStatus kiln_step_plan(KilnStep *step, KilnTensor *loss, KilnPlan **ret,
                                         KilnError *err);
/* Count the rows that metrics get (step_metrics.c). */
KILN_NODISCARD KilnStatus kiln_step_count_rows(KilnStep *step, KilnError *err);
/* Hand the logged values and rows to the metrics. */
KILN_NODISCARD KilnStatus kiln_step_count(KilnStep *step, int64_t epoch, int64_t global_step,
                                          KilnError *err);

#endif

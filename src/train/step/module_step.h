/* One step of a module while it is recorded and run: its inputs from the batch, the values that it
 * logs, its outputs and its metrics' inputs. Independent of epochs, optimizers and hooks. */
#ifndef KILN_TRAIN_STEP_MODULE_STEP_H
#define KILN_TRAIN_STEP_MODULE_STEP_H

#include "graph/graph.h"
#include "kiln/nn.h"
#include "train/loader/class_counts.h"
#include "train/loader/loader.h"
#include "train/metrics/metrics.h"
#include "train/step/decode.h"

enum {
    KILN_STEP_LOGS = 64,
    KILN_STEP_METRICS = 32,
    KILN_STEP_EXTRA_READS = 16,
    KILN_STEP_KEPT = 8
};

/* What an explanation changes about a step's inputs, and learns of them (train/explain/). */
typedef struct KilnProbe {
    bool gradients; /* the score is differentiated by the points */
    float *const
        *factors;        /* of features with ids [batch, ...] (graph/lookup_factors.h), else NULL */
    KilnTensor **points; /* set for each feature that is read: its tensor, or its factors */
    struct KilnLookupFactors **lookups; /* set likewise for features with ids */
} KilnProbe;

struct KilnStep {
    KilnGraph *graph;
    KilnParams *params; /* whose adapters get dropout; NULL: none */
    KilnMetrics *metrics;
    const KilnDataSpec *spec;       /* of samples */
    const KilnDataSpec *train_spec; /* of samples in training batches; NULL: the same */
    KilnClassCounts *class_counts;  /* borrowed */
    /* For kiln_step_progress; borrowed. NULL: a step of no run, which is its first. */
    const struct KilnLoopSchedule *schedule;
    const struct KilnPosition *at;
    KilnProgress progress;
    KilnPhase phase;
    bool training;
    const char *set; /* name of the evaluated set, which ends the names of its values; "": none */
    KilnBatch batch; /* features NULL: the step is recorded for its shapes only */
    /* Of each feature, and its lengths; in the graph's arena. NULL: not used yet. */
    KilnTensor **inputs, **lengths;
    int32_t dropout_seed[2];
    KilnTensor *dropout_key; /* NULL: not used yet */
    int64_t stream;          /* random streams that layers have taken */
    struct {
        int name; /* number of its name in the metrics */
        KilnTensor *value;
    } logs[KILN_STEP_LOGS];
    size_t n_logs;
    struct {
        const char *name;
        KilnTensor *value;
    } outputs[KILN_STEP_OUTPUTS];
    size_t n_outputs;
    struct {
        size_t state; /* number of the metric's state in the metrics */
        KilnTensor *scores, *targets;
    } metric_inputs[KILN_STEP_METRICS];
    size_t n_metric_inputs;
    struct {
        const char *name;
        KilnTensor *value;
    } kept[KILN_STEP_KEPT]; /* for the module's finish_step */
    size_t n_kept;
    KilnTensor *const *extra_reads; /* other tensors that are read after it has run; borrowed */
    size_t n_extra_reads;
    bool has_run;       /* the outputs have values */
    KilnDecode *decode; /* of steps that continue earlier ones; borrowed. NULL: this one doesn't */
    KilnTensor *position;        /* kiln_step_position; NULL: not used yet */
    struct KilnResults *results; /* of the module's finish_step; NULL: none yet */
    const KilnProbe *probe;      /* of an explanation; NULL: none */
};

enum { KILN_STEP_NAME = 256 };
/* Values that leave the step are f32: those of a step in f64 are rounded. */
KilnTensor *kiln_step_as_f32(KilnTensor *value);
/* The name under which a step logs `name`: followed by the name of the set, in buf, if it has
 * one. */
const char *kiln_step_name(const KilnStep *step, const char *name, char buf[KILN_STEP_NAME]);

/* Start recording a step over `batch`; its dropout key is drawn from `seed` and `number`. */
void kiln_step_begin(KilnStep *step, KilnPhase phase, bool training, const KilnBatch *batch,
                     uint64_t seed, int64_t number);
/* Execute the recorded step: `loss` (NULL: none), logged values, outputs, metrics' inputs. */
KILN_NODISCARD KilnStatus kiln_step_run(KilnStep *step, KilnTensor *loss, KilnError *err);
/* Its two halves: the plan of the recorded step, for which leaves need no data; and running it. */
KILN_NODISCARD KilnStatus kiln_step_plan(KilnStep *step, KilnTensor *loss, KilnPlan **ret,
                                         KilnError *err);
KILN_NODISCARD KilnStatus kiln_step_execute(KilnStep *step, KilnTensor *loss, KilnPlan *plan,
                                            KilnError *err);
/* Pass the logged values, and the rows of metrics, to the metrics. */
KILN_NODISCARD KilnStatus kiln_step_update_metrics(KilnStep *step, int64_t epoch,
                                                   int64_t global_step, KilnError *err);
/* Of these, the rows of metrics (step_metrics.c). */
KILN_NODISCARD KilnStatus kiln_step_update_metric_states(KilnStep *step, KilnError *err);

#endif

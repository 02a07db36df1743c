/* What a logger is told, and what it must do so that the files of a run that was
 * killed and resumed equal those of one that was not. */
#ifndef KILN_LOGGER_H
#define KILN_LOGGER_H

#include "kiln/component.h"
#include "kiln/state.h"

/* A metric as it was logged last. */
typedef struct KilnMetric {
    const char *name;
    double value;
    unsigned flags;      /* KilnLogFlags */
    int64_t epoch, step; /* when */
} KilnMetric;

/* A moment of a run, with the values that were logged at it. Every row has all of these, so
 * that the x axis is the reader's choice. */
typedef struct KilnLogRow {
    const char *phase; /* "fit" with its validations' means, "validate" and "test" */
    int64_t epoch;     /* from 0 */
    int64_t step;      /* optimizer steps done */
    int64_t batch;     /* batches done in this epoch of this phase */
    int64_t samples;   /* samples trained on since the start of the run */
    double wall_time;  /* seconds since 1970; measured, thus another in every run */
    const KilnMetric *metrics;
    size_t n;
} KilnLogRow;

/* A value of the config that is not its component's default. */
typedef struct KilnHparam {
    const char *name;  /* "optimizer.lr"; "model" for the component itself */
    const char *value; /* as YAML writes it */
    enum { KILN_HPARAM_TEXT, KILN_HPARAM_NUMBER, KILN_HPARAM_BOOL } kind;
    double number; /* of a number; 0 or 1 of a bool */
} KilnHparam;

typedef struct KilnLogRun {
    const char *dir;        /* the run folder, absolute */
    bool resumed;           /* it goes on from a checkpoint... */
    int64_t step;           /* ...of this step; 0 for a new run */
    const KilnState *state; /* what state_dict gave for that checkpoint; NULL: nothing */
    const char *config;     /* resolved, YAML */
    const KilnHparam *hparams;
    size_t n_hparams;
    const char *const *metrics; /* names that the steps of this run will log, without endings */
    size_t n_metrics;
} KilnLogRun;

/* Counts of values between edges: bin i holds edges[i] <= x < edges[i + 1], the last one its
 * upper edge too. */
typedef struct KilnHistogram {
    const double *edges;   /* n_bins + 1 */
    const int64_t *counts; /* n_bins */
    size_t n_bins;
    int64_t count; /* finite values; others are not in it */
    double min, max, sum, sum_squares;
} KilnHistogram;

/* 8-bit pixels in rows, height × width × channels (1 or 3). */
typedef struct KilnPixels {
    int64_t height, width, channels;
    const uint8_t *data;
} KilnPixels;

/* All optional but open and log_metrics. Whatever fails stops the run with its error. Rows
 * come in order; several in a row may be of the same moment (all but wall_time and metrics
 * are equal). */
struct KilnLoggerOps {
    /* The run folder exists. `run` lives until close. When the run goes on from a checkpoint, what
     * was written behind that checkpoint must go: the loop logs it again. */
    KilnStatus (*open)(KilnInstance *self, const KilnLogRun *run, KilnError *err);
    KilnStatus (*log_metrics)(KilnInstance *self, const KilnLogRow *row, KilnError *err);
    /* `at` has no metrics. */
    KilnStatus (*log_histogram)(KilnInstance *self, const KilnLogRow *at, const char *name,
                                const KilnHistogram *histogram, KilnError *err);
    KilnStatus (*log_image)(KilnInstance *self, const KilnLogRow *at, const char *name,
                            const KilnPixels *pixels, KilnError *err);
    KilnStatus (*log_text)(KilnInstance *self, const KilnLogRow *at, const char *name,
                           const char *text, KilnError *err);
    /* Everything so far must have been handed to the system after this; called before each
     * checkpoint. What the checkpoint counts on is then brought to disk by the names in `files`. */
    KilnStatus (*flush)(KilnInstance *self, KilnError *err);
    /* Where in its files it is, for the checkpoint: no measured value, nor anything whose
     * length depends on one, for checkpoints of equal runs are equal. Called behind flush. */
    void (*state_dict)(KilnInstance *self, KilnState *state);
    /* The end: `status` as in summary.json (finished, stopped, interrupted, failed), `metrics`
     * the last value of each. */
    KilnStatus (*close)(KilnInstance *self, const char *status, const KilnMetric *metrics, size_t n,
                        KilnError *err);
    /* Names of its files below the run folder ("metrics.csv"), NULL-terminated; NULL: none. */
    const char *const *files;
};

#endif

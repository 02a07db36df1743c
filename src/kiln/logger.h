/* Loggers: what they receive, and what they must do so that a killed and resumed run leaves the
 * same files as an uninterrupted one. */
#ifndef KILN_LOGGER_H
#define KILN_LOGGER_H

#include "kiln/component.h"
#include "kiln/state.h"

/* The last logged value of a metric. */
typedef struct KilnMetric {
    const char *name;
    double value;
    unsigned flags;      /* KilnLogFlags */
    int64_t epoch, step; /* of the value */
} KilnMetric;

/* A row: the values that were logged at one position of a run. Every row has all of these columns,
 * so readers can choose the x axis. */
typedef struct KilnLogRow {
    const char *phase; /* "fit" with its validations' means, "validate" and "test" */
    int64_t epoch;     /* from 0 */
    int64_t step;      /* optimizer steps done */
    int64_t batch;     /* batches done in this epoch of this phase */
    int64_t samples;   /* samples trained on since the start of the run */
    double wall_time;  /* seconds since 1970; measured, so different in every run */
    const KilnMetric *metrics;
    size_t n;
} KilnLogRow;

/* A hyperparameter: a config value that differs from its component's default. */
typedef struct KilnHparam {
    const char *name;  /* "optimizer.lr"; "model" for the component itself */
    const char *value; /* as YAML writes it */
    enum { KILN_HPARAM_TEXT, KILN_HPARAM_NUMBER, KILN_HPARAM_BOOL } kind;
    double number; /* of a number; 0 or 1 of a bool */
} KilnHparam;

typedef struct KilnLogRun {
    const char *dir;        /* the run folder, absolute */
    bool resumed;           /* the run continues from a checkpoint */
    int64_t step;           /* of that checkpoint; 0 for a new run */
    const KilnState *state; /* the result of state_dict for that checkpoint; NULL: none */
    const char *config;     /* resolved, YAML */
    const KilnHparam *hparams;
    size_t n_hparams;
    const char *const *metrics; /* names that the steps of this run will log, without endings */
    size_t n_metrics;
} KilnLogRun;

/* Counts of values: bin i counts edges[i] <= x < edges[i + 1], the last bin also its upper edge. */
typedef struct KilnHistogram {
    const double *edges;   /* n_bins + 1 */
    const int64_t *counts; /* n_bins */
    size_t n_bins;
    int64_t count; /* finite values; others are not counted */
    double min, max, sum, sum_squares;
} KilnHistogram;

/* 8-bit pixels in rows, height × width × channels (1 or 3). */
typedef struct KilnPixels {
    int64_t height, width, channels;
    const uint8_t *data;
} KilnPixels;

/* All functions are optional except open and log_metrics. A failure stops the run with its error.
 * Rows arrive in order; consecutive rows may have the same position (equal except for wall_time and
 * metrics). */
struct KilnLoggerOps {
    /* The run folder exists. `run` lives until close. If the run continues from a checkpoint,
     * remove everything written after that checkpoint: the loop logs it again. */
    KilnStatus (*open)(KilnInstance *self, const KilnLogRun *run, KilnError *err);
    KilnStatus (*log_metrics)(KilnInstance *self, const KilnLogRow *row, KilnError *err);
    /* `at` has no metrics. */
    KilnStatus (*log_histogram)(KilnInstance *self, const KilnLogRow *at, const char *name,
                                const KilnHistogram *histogram, KilnError *err);
    KilnStatus (*log_image)(KilnInstance *self, const KilnLogRow *at, const char *name,
                            const KilnPixels *pixels, KilnError *err);
    KilnStatus (*log_text)(KilnInstance *self, const KilnLogRow *at, const char *name,
                           const char *text, KilnError *err);
    /* Write everything buffered to the files; called before each checkpoint. kiln then syncs
     * `files` to disk. */
    KilnStatus (*flush)(KilnInstance *self, KilnError *err);
    /* Save the position in the files to a checkpoint, after flush. It must not depend on measured
     * values or their lengths, since equal runs have equal checkpoints. */
    void (*state_dict)(KilnInstance *self, KilnState *state);
    /* The end: `status` as in summary.json (finished, stopped, interrupted, failed), `metrics`
     * the last value of each. */
    KilnStatus (*close)(KilnInstance *self, const char *status, const KilnMetric *metrics, size_t n,
                        KilnError *err);
    /* Its files in the run folder ("metrics.csv"), NULL-terminated; NULL: none. */
    const char *const *files;
};

#endif

/* The options of a sweep: tables of `kiln.sweep`, `kiln.sweeper` and `kiln.launcher`. */
#include "kiln/sweep.h"

const KilnField kiln_sweep_fields[] = {
    KILN_FIELD_PATH(KilnSweepOptions, dir, "multirun/${now:%Y-%m-%d}/${now:%H-%M-%S}",
                    "the folder of a sweep"),
    KILN_FIELD_I64(KilnSweepOptions, max_jobs, "10000", 1, 1e7,
                   "the most jobs that a sweep may have"),
    KILN_FIELD_DURATION(KilnSweepOptions, timeout, "0", 0.0, 1e9,
                        "no job starts after this time; a resume counts from 0; 0: no limit"),
    KILN_FIELD_I64(KilnSweepOptions, max_steps, "0", 0, 1e15,
                   "no job starts once all jobs together have made so many optimizer steps; 0: no "
                   "limit"),
    KILN_FIELD_I64(KilnSweepOptions, patience, "0", 0, 1e7,
                   "no job starts once so many jobs in succession have ended without a better "
                   "value; 0: no limit"),
    KILN_FIELD_I64(KilnSweepOptions, repeats, "1", 1, 1000,
                   "runs of each job, with seeds that follow the job's; its value is their mean"),
    KILN_FIELD_I64(KilnSweepOptions, confirm, "0", 0, 1000,
                   "at the end the best job gets so many runs; another one that is then better, "
                   "too"),
    KILN_FIELD_BOOL(KilnSweepOptions, optuna, "false",
                    "write optuna.log in the folder of a sweep, which Optuna reads and "
                    "optuna-dashboard shows while the sweep runs"),
    KILN_FIELD_END,
};

const KilnField kiln_rank_fields[] = {
    KILN_FIELD_STR(KilnRankOptions, _target_, "sweeper/grid", "which combinations become jobs"),
    KILN_FIELD_STR_OPT(KilnRankOptions, metric, "null",
                       "jobs are ranked by this metric; null: what model_checkpoint monitors, else "
                       "val/loss"),
    KILN_FIELD_MODE(KilnRankOptions),
    KILN_FIELD_STR_LIST(KilnRankOptions, forbid, "[]",
                        "combinations that do not run: \"model=resnet batch_size>128\""),
    KILN_FIELD_STR_LIST_OPT(KilnRankOptions, metrics, "null",
                            "several objectives, at most 8: a job is better than another if it is "
                            "better in one metric and worse in none; null: only `metric`"),
    KILN_FIELD_ENUM_LIST_OPT(KilnRankOptions, modes, "null", kiln_modes,
                             "min, max or auto for each of `metrics`; null: as they declare"),
    KILN_FIELD_END,
};

const KilnField kiln_needs_fields[] = {
    KILN_FIELD_I64(KilnJobNeeds, cpus, "0", 0, 1e6,
                   "processors that a job of a sweep uses; 0: its share of all"),
    KILN_FIELD_SIZE(KilnJobNeeds, memory, "0", 0, 1e15,
                    "memory that it uses; 0: not known, jobs that have ended tell"),
    KILN_FIELD_END,
};

const KilnField kiln_own_fields[] = {
    KILN_FIELD_COMPONENT(KilnOwnOptions, launcher, KILN_KIND_LAUNCHER, "{_target_: launcher/local}",
                         "how the jobs of a sweep are run"),
    KILN_FIELD_COMPONENT_OPT(KilnOwnOptions, pruner, KILN_KIND_PRUNER, "null",
                             "stops jobs of a sweep early; null: all jobs run to their end"),
    KILN_FIELD_END,
};

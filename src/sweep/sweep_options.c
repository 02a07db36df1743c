/* The options of a sweep: tables of `kiln.sweep`, `kiln.sweeper` and `kiln.launcher`. */
#include "kiln/sweep.h"

const KilnField kiln_sweep_fields[] = {
    KILN_FIELD_PATH(KilnSweepOptions, dir, "multirun/${now:%Y-%m-%d}/${now:%H-%M-%S}",
                    "the folder of a sweep"),
    KILN_FIELD_I64(KilnSweepOptions, max_jobs, "10000", 1, 1e7,
                   "the most jobs that a sweep may have"),
    KILN_FIELD_END,
};

const KilnField kiln_rank_fields[] = {
    KILN_FIELD_STR(KilnRankOptions, _target_, "sweeper/grid", "which combinations become jobs"),
    KILN_FIELD_STR_OPT(KilnRankOptions, metric, "null",
                       "jobs are ranked by this metric; null: what model_checkpoint monitors, else "
                       "val/loss"),
    KILN_FIELD_MODE(KilnRankOptions),
    KILN_FIELD_END,
};

const KilnField kiln_own_fields[] = {
    KILN_FIELD_COMPONENT(KilnOwnOptions, launcher, KILN_KIND_LAUNCHER, "{_target_: launcher/local}",
                         "how the jobs of a sweep are run"),
    KILN_FIELD_END,
};

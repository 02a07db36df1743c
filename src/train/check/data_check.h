/* Checks of a datamodule's data, for `kiln check-data` and `train --plan`: what its samples have,
 * and what it says itself (KilnDataModuleOps.check). */
#ifndef KILN_TRAIN_CHECK_DATA_CHECK_H
#define KILN_TRAIN_CHECK_DATA_CHECK_H

#include <jansson.h>

#include "base/arena.h"
#include "kiln/embed/config.h"
#include "kiln/data.h"

typedef struct KilnDataCheck {
    const KilnConfig *config; /* to build the datamodule a second time */
    const KilnRegistry *registry;
    KilnInstance *datamodule; /* after setup in KILN_STAGE_FIT */
    const KilnDataSpec *spec;
    const KilnMemoryData *data; /* KilnDataContext.data */
    uint64_t seed;
    const KilnPoll *poll;
    int64_t limit; /* samples of each set that are read, at equal distances */
    bool brief;    /* leave out what takes long: the datamodule's own checks, a second setup */
} KilnDataCheck;

/* What was found. A zeroed one is ready. */
typedef struct KilnDataReport {
    KilnDataFinding *list;
    size_t n, capacity;
    int64_t levels[KILN_CHECK_ERROR + 1]; /* how many of each level */
    int64_t samples, looked;              /* of all sets */
    KilnArena arena;                      /* of the texts */
} KilnDataReport;

/* Run all checks. A failure means that they could not be run; mistakes of the data are findings. */
KILN_NODISCARD KilnStatus kiln_data_check(const KilnDataCheck *check, KilnDataReport *ret,
                                          KilnError *err);
/* Add a finding; its text as printf. `advice` may be NULL. */
void kiln_data_report_add(KilnDataReport *report, KilnCheckLevel level, const char *check,
                          int64_t count, const char *advice, const char *format, ...)
    KILN_PRINTF(6, 7);
/* "passed", "note", "warning", "error". */
const char *kiln_check_level_name(KilnCheckLevel level);
/* The report for `--json`; owned by the caller. NULL: memory is out. */
json_t *kiln_data_report_json(const KilnDataReport *report);
void kiln_data_report_release(KilnDataReport *report);

#endif

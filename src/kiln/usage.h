/* What this process and the machine use at this moment, as far as the kernel tells. */
#ifndef KILN_USAGE_H
#define KILN_USAGE_H

#include "kiln/base.h"

/* Counters run since the process or the machine began; the difference of two looks, over
 * `time`, is a rate. What is not known is -1. */
typedef struct KilnUsage {
    double time;           /* of the look, seconds on a clock that never jumps */
    double process_s;      /* seconds of processors that this process used, all threads */
    double busy_s, all_s;  /* seconds that the machine's processors worked, and that there were */
    double processors;     /* how many this process may use: affinity and control groups */
    int64_t resident;      /* bytes of memory that this process holds */
    int64_t available;     /* bytes that can still be had */
    int64_t limit;         /* of those and all in use: a control group's, or the machine's */
    int64_t read, written; /* bytes that this process moved from and to disks */
} KilnUsage;

KILN_API KilnUsage kiln_usage_now(void);
/* The same from the files below `root` (processors of this process are not asked). */
KILN_API KilnUsage kiln_usage_read(const char *root);

#endif

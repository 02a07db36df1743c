/* Current use of processors, memory and disks by this process and the machine, from the kernel. */
#ifndef KILN_USAGE_H
#define KILN_USAGE_H

#include "kiln/base.h"

/* Counters since the start of the process or the machine; their difference between two readings,
 * over `time`, is a rate. -1: unknown. */
typedef struct KilnUsage {
    double time;           /* of the reading, seconds on a monotonic clock */
    double process_s;      /* seconds of processors that this process used, all threads */
    double busy_s, all_s;  /* seconds that the machine's processors were busy, and in total */
    double processors;     /* how many this process may use: affinity and control groups */
    int64_t resident;      /* bytes of memory that this process holds */
    int64_t available;     /* free bytes */
    int64_t limit;         /* total bytes: the control group's, or the machine's */
    int64_t read, written; /* bytes that this process moved from and to disks */
} KilnUsage;

KILN_API KilnUsage kiln_usage_now(void);
/* Physical cores that this process may use, limited by affinity and by the time that control groups
 * allow, rounded up; at least 1. */
KILN_API size_t kiln_processors(void);
/* The same from files in `root` instead of /, without `processors`. */
KILN_API KilnUsage kiln_usage_read(const char *root);

#endif

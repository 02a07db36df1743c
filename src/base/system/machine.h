/* What of the machine this process may use: processors and memory, as far as
 * affinity and control groups leave them. Linux; elsewhere everything is unknown. */
#ifndef KILN_BASE_SYSTEM_MACHINE_H
#define KILN_BASE_SYSTEM_MACHINE_H

#include "kiln/base.h"

typedef struct KilnProcessors {
    int online;   /* logical processors of the machine; 0: unknown */
    int allowed;  /* of those, which the process may run on */
    int cores;    /* physical cores among the allowed ones: siblings of a core count once */
    double quota; /* processors' worth of time that control groups give; INFINITY: no limit */
    int asked;    /* OMP_NUM_THREADS; 0: not set */
    int threads;  /* how many should compute, at least 1 */
} KilnProcessors;

/* From the numbers of the processors that the process may run on, and the files
 * below `root`. `omp_num_threads` is that variable's text or NULL. */
KilnProcessors kiln_processors_read(const char *root, const int *allowed, size_t n,
                                    const char *omp_num_threads);
/* Of this process. */
KilnProcessors kiln_processors_here(void);
/* Why there are fewer threads than the machine has cores: "OMP_NUM_THREADS says so";
 * "" when nothing limits. Returns buf. */
const char *kiln_processors_why(const KilnProcessors *processors, char *buf, size_t size);

typedef struct KilnMemory {
    int64_t available; /* bytes that can still be had without swapping */
    bool group;        /* a control group is what limits them, not the machine */
    bool process;      /* a limit on the addresses of the process is (ulimit -v) */
    int64_t limit;     /* of that group or process, or the machine's memory */
} KilnMemory;

/* False when nothing is known. `root` as above. */
bool kiln_memory_read(const char *root, KilnMemory *ret);
/* Bytes of memory that this process holds now; 0 when unknown. */
int64_t kiln_memory_resident(const char *root);

#endif

/* The processors and memory that this process may use, limited by affinity and control groups; the
 * processor's caches. Linux; elsewhere everything is unknown. */
#ifndef KILN_BASE_SYSTEM_MACHINE_H
#define KILN_BASE_SYSTEM_MACHINE_H

#include "kiln/base.h"

typedef struct KilnProcessors {
    int online;      /* logical processors of the machine; 0: unknown */
    int allowed;     /* of those, on which the process may run */
    int cores;       /* physical cores of the allowed processors */
    double quota;    /* processor time that control groups allow; INFINITY: no limit */
    int omp_threads; /* OMP_NUM_THREADS; 0: not set */
    int threads;     /* the number of compute threads to use, at least 1 */
} KilnProcessors;

/* From the numbers of the allowed processors and the files in `root`. `omp_num_threads` is that
 * variable's text or NULL. */
KilnProcessors kiln_processors_read(const char *root, const int *allowed, size_t n,
                                    const char *omp_num_threads);
/* Of this process. */
KilnProcessors kiln_processors_here(void);
/* Why there are fewer threads than cores, as text for the user; "" if nothing limits them. Returns
 * buf. */
const char *kiln_processors_why(const KilnProcessors *processors, char *buf, size_t size);

/* Processors in a list such as "0-3,8"; 0 when it is none. */
int kiln_processor_list_count(const char *text);

enum { KILN_CACHE_LEVELS = 4 };
/* Data caches of the first processor; [0] is level 1. */
typedef struct KilnCaches {
    int64_t bytes[KILN_CACHE_LEVELS]; /* 0: no such cache, or unknown */
    int shared[KILN_CACHE_LEVELS];    /* processors that share it; 0: unknown */
} KilnCaches;

/* `root` as above. */
KilnCaches kiln_caches_read(const char *root);
/* What the processor is called, "" if unknown. Returns buf. */
const char *kiln_processor_model(const char *root, char *buf, size_t size);

typedef struct KilnMemory {
    int64_t available; /* free bytes, without swapping */
    bool group;        /* a control group limits them, not the machine */
    bool process;      /* the limit of the process's address space does (ulimit -v) */
    int64_t limit;     /* of that group or process, or the machine's memory */
} KilnMemory;

/* False if nothing is known. `root` as above. */
bool kiln_memory_read(const char *root, KilnMemory *ret);
/* Whether the process may map that many bytes more, which a limit (RLIMIT_AS) may forbid; for
 * libraries that crash or try for ever where they get none. */
bool kiln_addresses_left(size_t bytes);
/* Prepare a mapped file for reads at random places: where it is larger than the memory available,
 * the system should read single pages, since what it reads around them pushes others out. */
void kiln_memory_expect_random(void *map, size_t size);
/* Bytes of memory that this process holds now; 0 when unknown. */
int64_t kiln_memory_resident(const char *root);

#endif

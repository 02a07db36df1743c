/* Data that jobs share: the first job that needs it sets it up, and leaves a process behind, from
 * which the next ones are forked. Their memory has it already, and they take it in place of setting
 * up their own (registry/shared_data.h).
 *
 *   launcher ---fork---> job 0 ---fork---> its data process ---fork---> job 1, job 2, ...
 *
 * Each job is a child of the launcher, which adopts orphans: a process forks one that forks the job
 * and ends. */
#ifndef KILN_SWEEP_JOBS_DATA_PROCESS_H
#define KILN_SWEEP_JOBS_DATA_PROCESS_H

#include <sys/types.h>

#include "sweep/sweep_state.h"

/* The most data that is kept, if half of the memory that is free at first holds it; what was used
 * longest ago makes room. */
enum { KILN_MAX_DATA_PROCESSES = 8 };

typedef struct KilnDataProcess {
    uint64_t key;  /* KilnJob.data */
    int fd;        /* socket to it; -1: the data can't be shared */
    pid_t pid;     /* 0: a job sets up the data */
    int64_t bytes; /* of memory that it holds */
    uint64_t used; /* larger: later */
} KilnDataProcess;

typedef struct KilnDataProcesses {
    const KilnSweep *sweep;
    pid_t launcher;
    bool adopts;  /* orphans become children of the launcher */
    bool adopted; /* they did so before */
    KilnDataProcess list[KILN_MAX_DATA_PROCESSES];
    size_t n;
    uint64_t uses;
    int64_t room; /* bytes of memory for all of them; < 0: no limit */
    int offer;    /* the socket's other end, of the job that is forked next; -1: it sets up data for
                   * itself alone */
    uint64_t key; /* of the data of that job */
    int report;   /* in its process: its report */
} KilnDataProcesses;

void kiln_data_processes_init(KilnDataProcesses *processes, const KilnSweep *sweep);
/* Ends them all. */
void kiln_data_processes_release(KilnDataProcesses *processes);

/* KilnLaunch's functions of the same names. */
bool kiln_data_loading(KilnDataProcesses *processes, size_t number);
KilnStatus kiln_data_fork_loaded(KilnDataProcesses *processes, size_t number, const int ends[2],
                                 int64_t *ret_pid, KilnError *err);
int64_t kiln_data_shared(KilnDataProcesses *processes, size_t number);
int64_t kiln_data_held(const KilnDataProcesses *processes);
/* In the launcher, after it forked a job itself; and in that job's process. */
void kiln_data_forked(KilnDataProcesses *processes);
void kiln_data_enter_job(KilnDataProcesses *processes, int report);

#endif

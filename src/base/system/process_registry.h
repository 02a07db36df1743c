/* The registry of this user's running processes and their run folders on this machine: a symbolic
 * link for each in $XDG_RUNTIME_DIR/kiln, or in /tmp if that is not a folder. Linux. */
#ifndef KILN_BASE_SYSTEM_PROCESS_REGISTRY_H
#define KILN_BASE_SYSTEM_PROCESS_REGISTRY_H

#include "kiln/base.h"

/* The start time of process `pid` in ticks since boot, which distinguishes reused pids; 0: no such
 * process. */
uint64_t kiln_process_start(int64_t pid);

/* Register this process with its folder `dir` (absolute). False on failure. */
bool kiln_process_registry_add(const char *dir);
/* Remove this process. Entries of killed processes are removed by the next
 * kiln_process_registry_list. */
void kiln_process_registry_remove(void);

/* The folders of running processes, in order of pid; owned by the caller (kiln_names_free). */
KILN_NODISCARD KilnStatus kiln_process_registry_list(char ***ret, size_t *ret_count,
                                                     KilnError *err);

#endif

/* Which processes of this user run on this machine, and in which folder: a symbolic link for each,
 * in $XDG_RUNTIME_DIR/kiln, or in /tmp where that is no folder. Linux. */
#ifndef KILN_BASE_SYSTEM_PROCESS_REGISTRY_H
#define KILN_BASE_SYSTEM_PROCESS_REGISTRY_H

#include "kiln/base.h"

/* When process `pid` began, in ticks since boot, which tells a pid that is used again; 0 when
 * there is no such process. */
uint64_t kiln_process_start(int64_t pid);

/* Say that this process runs in `dir` (absolute). False when that can't be said. */
bool kiln_process_registry_add(const char *dir);
/* Take it back. What a killed process said is removed by whoever looks next. */
void kiln_process_registry_remove(void);

/* The folders in which processes run that are there, in order of pid; owned by the caller
 * (kiln_names_free). Links of processes that are gone are removed. */
KILN_NODISCARD KilnStatus kiln_process_registry_list(char ***ret, size_t *ret_count,
                                                     KilnError *err);

#endif

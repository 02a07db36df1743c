/* Linux control groups of this process, versions 1 and 2: where the limits stand
 * that a container or a batch system has set. */
#ifndef KILN_BASE_SYSTEM_CGROUP_H
#define KILN_BASE_SYSTEM_CGROUP_H

#include "base/text.h"

/* A group's folder. The mount's own folder is the first `top` bytes of it. */
typedef struct KilnCgroup {
    char dir[4096];
    size_t top;
} KilnCgroup;

/* The whole of a file of the kernel's, below `root`; false when it can't be read.
 * These files have no size to ask for. */
bool kiln_kernel_file(const char *root, const char *path, KilnText *ret);

/* Copy the next word (up to white space) and return what is behind it; NULL, and buf
 * empty, when there is none or it is too long. */
const char *kiln_kernel_word(const char *text, char *buf, size_t size);
/* The next word as a number, not negative; -1 when it is none. */
int64_t kiln_kernel_number(const char *text);

/* The group of this process in version 1's hierarchy of `controller` ("cpu",
 * "memory"), or in version 2's one hierarchy (NULL). False: there is none. `root`
 * stands in front of /proc and /sys; "" outside of tests. */
bool kiln_cgroup_find(const char *root, const char *controller, KilnCgroup *ret);
/* A file of the group. */
bool kiln_cgroup_read(const KilnCgroup *group, const char *file, KilnText *ret);
/* Go to the group above, whose limits hold too; false at the top. */
bool kiln_cgroup_up(KilnCgroup *group);

#endif

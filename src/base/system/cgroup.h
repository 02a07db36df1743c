/* Linux control groups of this process, versions 1 and 2: the limits of a container or a batch
 * system. */
#ifndef KILN_BASE_SYSTEM_CGROUP_H
#define KILN_BASE_SYSTEM_CGROUP_H

#include "base/text.h"

/* A group's folder. Its first `top` bytes are the mount point. */
typedef struct KilnCgroup {
    char dir[4096];
    size_t top;
} KilnCgroup;

/* Read a whole file of the kernel in `root`, which reports no size; false on failure. */
bool kiln_kernel_file(const char *root, const char *path, KilnText *ret);

/* Copy the next word (up to white space) and return the text after it; NULL, with an empty buf, if
 * there is none or it is too long. */
const char *kiln_kernel_word(const char *text, char *buf, size_t size);
/* The next word as a non-negative number; -1 if it is not one. */
int64_t kiln_kernel_number(const char *text);

/* The group of this process in version 1's hierarchy of `controller` ("cpu",
 * "memory"), or in version 2's one hierarchy (NULL). False: there is none. `root`
 * is a prefix for /proc and /sys; "" except in tests. */
bool kiln_cgroup_find(const char *root, const char *controller, KilnCgroup *ret);
/* Read a file of the group. */
bool kiln_cgroup_read(const KilnCgroup *group, const char *file, KilnText *ret);
/* Move to the parent group, whose limits also apply; false at the top. */
bool kiln_cgroup_up(KilnCgroup *group);

#endif

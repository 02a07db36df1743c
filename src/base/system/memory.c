/* How much memory can still be had, from the machine and from control groups. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "base/system/cgroup.h"
#include "base/system/machine.h"

/* The number after `name` at the start of a line; -1: none. */
static int64_t number_of(const char *text, const char *name)
{
    size_t length = strlen(name);

    for (const char *line = text; line != NULL && *line != '\0';) {
        const char *end = strchr(line, '\n');

        if (strncmp(line, name, length) == 0)
            return kiln_kernel_number(line + length);
        line = end != NULL ? end + 1 : NULL;
    }
    return -1;
}

static int64_t read_number(const KilnCgroup *group, const char *file, KilnText *text)
{
    return kiln_cgroup_read(group, file, text) ? kiln_kernel_number(text->data) : -1;
}

/* A group's limit, and how much is left: pages of files that nobody has used for
 * a while count as used, but the kernel gives them up first. */
static void take_group(const KilnCgroup *group, bool second, KilnText *text, KilnMemory *least)
{
    int64_t limit = read_number(group, second ? "memory.max" : "memory.limit_in_bytes", text);
    int64_t used = read_number(group, second ? "memory.current" : "memory.usage_in_bytes", text);
    int64_t idle = kiln_cgroup_read(group, "memory.stat", text)
                       ? number_of(text->data, second ? "inactive_file " : "total_inactive_file ")
                       : -1;

    if (limit < 0 || used < 0)
        return;
    if (idle > 0)
        used = idle < used ? used - idle : 0;
    int64_t left = used < limit ? limit - used : 0;
    if (left < least->available)
        *least = (KilnMemory) { .available = left, .group = true, .limit = limit };
}

/* A limit on addresses counts those that are reserved, too. */
static void take_addresses(const char *root, KilnText *text, KilnMemory *least)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
        limit.rlim_cur > INT64_MAX)
        return;
    const int64_t most = (int64_t)limit.rlim_cur;
    const int64_t kib = kiln_kernel_file(root, "/proc/self/status", text)
                            ? number_of(text->data, "VmSize:")
                            : 0;
    const int64_t left = kib > 0 ? most - 1024 * kib : most;
    if (left < least->available)
        *least = (KilnMemory) { .available = left > 0 ? left : 0, .process = true, .limit = most };
}

bool kiln_memory_read(const char *root, KilnMemory *ret)
{
    static const char *const controllers[] = { "memory", NULL };
    KilnMemory least = { .available = INT64_MAX };
    KilnText text = { 0 };
    KilnCgroup group;

    if (kiln_kernel_file(root, "/proc/meminfo", &text)) {
        int64_t available = number_of(text.data, "MemAvailable:");
        int64_t total = number_of(text.data, "MemTotal:");

        if (available < 0) /* kernels before 3.14 */
            available = number_of(text.data, "MemFree:");
        if (available >= 0)
            least = (KilnMemory) { .available = available * 1024, .limit = total * 1024 };
    }
    for (size_t i = 0; i < KILN_COUNT(controllers); i++) {
        if (!kiln_cgroup_find(root, controllers[i], &group))
            continue;
        do {
            take_group(&group, controllers[i] == NULL, &text, &least);
        } while (kiln_cgroup_up(&group));
    }
    take_addresses(root, &text, &least);
    kiln_text_release(&text);
    if (least.available == INT64_MAX)
        return false;
    *ret = least;
    return true;
}

int64_t kiln_memory_resident(const char *root)
{
    KilnText text = { 0 };
    int64_t kib = kiln_kernel_file(root, "/proc/self/status", &text)
                      ? number_of(text.data, "VmRSS:")
                      : -1;

    kiln_text_release(&text);
    return kib > 0 ? kib * 1024 : 0;
}

void kiln_memory_expect_random(void *map, size_t size)
{
    KilnMemory memory;

    if (kiln_memory_read("", &memory) && (int64_t)size > memory.available)
        (void)posix_madvise(map, size, POSIX_MADV_RANDOM);
}

bool kiln_addresses_left(size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return at != MAP_FAILED && munmap(at, bytes) == 0;
}

/* The table of mappings that a signal handler looks into. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "base/system/mapping.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>

enum { MOST = 16 };

/* A signal handler has no other way to reach them. An entry is taken by its state, and found by
 * its start, which is there last. */
static struct {
    atomic_bool taken;
    _Atomic(char *) start;
    size_t size;
    atomic_bool lost;
} mappings[MOST];

static void remember(char *start, size_t size)
{
    for (int i = 0; i < MOST; i++)
        if (!atomic_exchange(&mappings[i].taken, true)) {
            mappings[i].size = size;
            atomic_store(&mappings[i].lost, false);
            atomic_store(&mappings[i].start, start);
            return;
        }
}

void *kiln_mapping_open(int fd, size_t size)
{
    errno = posix_fallocate(fd, 0, (off_t)size);
    if (errno != 0)
        return NULL;
    void *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        return NULL;
    remember(map, size);
    return map;
}

void kiln_mapping_close(void *map, size_t size)
{
    if (map == NULL)
        return;
    for (int i = 0; i < MOST; i++)
        if (atomic_load(&mappings[i].start) == map) {
            atomic_store(&mappings[i].start, NULL);
            atomic_store(&mappings[i].taken, false);
        }
    (void)munmap(map, size);
}

bool kiln_mapping_rescue(const void *address)
{
    for (int i = 0; i < MOST; i++) {
        char *start = atomic_load(&mappings[i].start);

        if (start == NULL || (const char *)address < start ||
            (const char *)address >= start + mappings[i].size)
            continue;
        atomic_store(&mappings[i].lost, true);
        return mmap(start, mappings[i].size, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == start;
    }
    return false;
}

bool kiln_mapping_lost(const void *map)
{
    for (int i = 0; i < MOST; i++)
        if (map != NULL && atomic_load(&mappings[i].start) == map)
            return atomic_load(&mappings[i].lost);
    return false;
}

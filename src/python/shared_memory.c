/* A memory file that can grow and never shrinks, so that no reader meets its end. */
#define _GNU_SOURCE /* memfd_create, seals */
#include "python/shared_memory.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ALIGNMENT = 64, FIRST_SIZE = 1 << 16 };

KilnStatus kiln_shared_memory_open(KilnSharedMemory *memory, KilnError *err)
{
    *memory = (KilnSharedMemory) { .fd = memfd_create("kiln", MFD_CLOEXEC | MFD_ALLOW_SEALING) };
    if (memory->fd < 0 || fcntl(memory->fd, F_ADD_SEALS, F_SEAL_SHRINK) != 0)
        return kiln_error_errno(err, "memory for Python");
    return KILN_OK;
}

void kiln_shared_memory_close(KilnSharedMemory *memory)
{
    if (memory->data != NULL)
        munmap(memory->data, memory->mapped);
    if (memory->fd > 0)
        close(memory->fd);
    *memory = (KilnSharedMemory) { .fd = -1 };
}

/* Map the first `size` bytes of the file, which may have grown. */
static bool map(KilnSharedMemory *memory, size_t size)
{
    struct stat info;

    if (size <= memory->mapped)
        return true;
    if (fstat(memory->fd, &info) != 0 || (size_t)info.st_size < size)
        return false;
    void *data = mmap(NULL, (size_t)info.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, memory->fd,
                      0);
    if (data == MAP_FAILED)
        return false;
    if (memory->data != NULL)
        munmap(memory->data, memory->mapped);
    memory->data = data;
    memory->mapped = (size_t)info.st_size;
    return true;
}

bool kiln_shared_memory_put(KilnSharedMemory *memory, const void *data, size_t size, size_t *ret_at)
{
    const size_t at = memory->used, end = (at + size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    size_t room = memory->mapped > 0 ? memory->mapped : FIRST_SIZE;

    while (room < end)
        room *= 2;
    if (!map(memory, end) && (ftruncate(memory->fd, (off_t)room) != 0 || !map(memory, end)))
        return false;
    if (size > 0)
        memcpy((char *)memory->data + at, data, size);
    memory->used = end;
    *ret_at = at;
    return true;
}

void kiln_shared_memory_clear(KilnSharedMemory *memory)
{
    memory->used = 0;
}

const void *kiln_shared_memory_at(KilnSharedMemory *memory, size_t at, size_t size)
{
    if (size > SIZE_MAX - at || !map(memory, at + size))
        return NULL;
    return memory->data != NULL ? (const char *)memory->data + at : "";
}

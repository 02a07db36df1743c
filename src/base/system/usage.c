/* What a process uses, from the files of /proc and of control groups. */
#include "kiln/usage.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/cgroup.h"
#include "base/system/machine.h"
#include "kiln/tools/clock.h"

/* User and system time: fields 14 and 15, after the program's name in parentheses. */
static double process_seconds(const char *root, KilnText *text)
{
    uint64_t user = 0, system = 0;

    if (!kiln_kernel_file(root, "/proc/self/stat", text))
        return -1.0;
    const char *rest = strrchr(text->data, ')');
    if (rest == NULL ||
        sscanf(rest + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNu64 " %" SCNu64, &user,
               &system) != 2)
        return -1.0;
    return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

/* The first line of /proc/stat: user nice system idle iowait irq softirq steal. */
static void machine_seconds(const char *root, KilnText *text, KilnUsage *ret)
{
    const double tick = 1.0 / (double)sysconf(_SC_CLK_TCK);
    uint64_t of[8] = { 0 };

    if (!kiln_kernel_file(root, "/proc/stat", text) ||
        sscanf(text->data,
               "cpu %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
               " %" SCNu64 " %" SCNu64,
               &of[0], &of[1], &of[2], &of[3], &of[4], &of[5], &of[6], &of[7]) < 4)
        return;
    ret->all_s = 0.0;
    for (size_t i = 0; i < KILN_COUNT(of); i++)
        ret->all_s += tick * (double)of[i];
    ret->busy_s = ret->all_s - tick * (double)(of[3] + of[4]);
}

/* The number after `name`; -1: none. */
static int64_t io_bytes(const KilnText *text, const char *name)
{
    const char *at = text->data != NULL ? strstr(text->data, name) : NULL;

    return at != NULL ? kiln_kernel_number(at + strlen(name)) : -1;
}

KilnUsage kiln_usage_read(const char *root)
{
    KilnUsage usage = {
        .time = kiln_clock(),
        .busy_s = -1.0,
        .all_s = -1.0,
        .processors = -1.0,
        .available = -1,
        .limit = -1,
        .read = -1,
        .written = -1,
    };
    const int64_t resident = kiln_memory_resident(root);
    KilnMemory memory;
    KilnText text = { 0 };

    usage.process_s = process_seconds(root, &text);
    machine_seconds(root, &text, &usage);
    usage.resident = resident > 0 ? resident : -1;
    if (kiln_memory_read(root, &memory)) {
        usage.available = memory.available;
        usage.limit = memory.limit;
    }
    if (kiln_kernel_file(root, "/proc/self/io", &text)) {
        usage.read = io_bytes(&text, "\nread_bytes:");
        usage.written = io_bytes(&text, "\nwrite_bytes:");
    }
    kiln_text_release(&text);
    return usage;
}

size_t kiln_processors(void)
{
    const KilnProcessors here = kiln_processors_here();
    const double n = ceil(fmin((double)here.cores, here.quota));

    return n > 1.0 ? (size_t)n : 1;
}

KilnUsage kiln_usage_now(void)
{
    const KilnProcessors processors = kiln_processors_here();
    KilnUsage usage = kiln_usage_read("");

    if (processors.allowed > 0)
        usage.processors = fmin((double)processors.allowed, processors.quota);
    return usage;
}

/* How many threads should compute: physical cores that the process may use. */
#define _GNU_SOURCE /* sched_getaffinity, CPU_ALLOC */
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/cgroup.h"
#include "base/system/machine.h"
#include "base/parse.h"

/* More processors than any machine has: a bound for what is read. */
enum { MOST_PROCESSORS = 1 << 16 };

/* ---- Cores --------------------------------------------------------------------------- */

/* The number at *text, which then points after it; -1: none. */
static int take_number(const char **text)
{
    size_t length = strspn(*text, "0123456789");
    char digits[16];
    int64_t value;

    if (length == 0 || length >= sizeof(digits))
        return -1;
    memcpy(digits, *text, length);
    digits[length] = '\0';
    *text += length;
    if (kiln_parse_i64(digits, &value, NULL) < 0 || value > MOST_PROCESSORS)
        return -1;
    return (int)value;
}

int kiln_processor_list_count(const char *text)
{
    int count = 0;

    for (;;) {
        int first = take_number(&text), last = first;

        if (first < 0)
            return 0;
        if (*text == '-') {
            text++;
            last = take_number(&text);
        }
        if (last < first || last >= MOST_PROCESSORS)
            return 0;
        count += last - first + 1;
        if (*text != ',')
            return count;
        text++;
    }
}

/* The first processor of the core that this one belongs to: a core's name. */
static int core_of(const char *root, int processor, KilnText *text)
{
    static const char *const files[] = { "core_cpus_list", "thread_siblings_list" };
    char path[128];

    for (size_t i = 0; i < KILN_COUNT(files); i++) {
        snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/topology/%s", processor,
                 files[i]);
        if (kiln_kernel_file(root, path, text)) {
            const char *at = text->data;
            int first = take_number(&at);

            if (first >= 0)
                return first;
        }
    }
    return processor;
}

static int count_cores(const char *root, const int *allowed, size_t n)
{
    unsigned char *seen = calloc(MOST_PROCESSORS + 1, 1);
    KilnText text = { 0 };
    int count = 0;

    for (size_t i = 0; seen != NULL && i < n; i++) {
        int core = core_of(root, allowed[i], &text);

        count += core <= MOST_PROCESSORS && seen[core] == 0;
        if (core <= MOST_PROCESSORS)
            seen[core] = 1;
    }
    kiln_text_release(&text);
    free(seen);
    return count > 0 ? count : (int)n;
}

/* ---- Time of processors ----------------------------------------------------------------- */

/* Version 2: "150000 100000" or "max 100000" in cpu.max; version 1 the same in two files. */
static double quota_of(const KilnCgroup *group, bool second, KilnText *text)
{
    char word[32];
    int64_t quota = -1, period = -1;

    if (second && kiln_cgroup_read(group, "cpu.max", text)) {
        const char *rest = kiln_kernel_word(text->data, word, sizeof(word));

        quota = kiln_kernel_number(text->data);
        period = rest != NULL ? kiln_kernel_number(rest) : -1;
    } else if (!second && kiln_cgroup_read(group, "cpu.cfs_quota_us", text)) {
        quota = kiln_kernel_number(text->data);
        if (kiln_cgroup_read(group, "cpu.cfs_period_us", text))
            period = kiln_kernel_number(text->data);
    }
    return quota > 0 && period > 0 ? (double)quota / (double)period : (double)INFINITY;
}

static double least_quota(const char *root)
{
    static const char *const controllers[] = { "cpu", NULL };
    double least = (double)INFINITY;
    KilnText text = { 0 };
    KilnCgroup group;

    for (size_t i = 0; i < KILN_COUNT(controllers); i++) {
        if (!kiln_cgroup_find(root, controllers[i], &group))
            continue;
        do {
            least = fmin(least, quota_of(&group, controllers[i] == NULL, &text));
        } while (kiln_cgroup_up(&group));
    }
    kiln_text_release(&text);
    return least;
}

/* ---- Together ------------------------------------------------------------------------------ */

/* OMP_NUM_THREADS may be a list, one number for each level of nesting. */
static int parse_omp_threads(const char *text)
{
    while (text != NULL && *text == ' ')
        text++;
    int omp_threads = text != NULL ? take_number(&text) : 0;
    return omp_threads > 0 ? omp_threads : 0;
}

KilnProcessors kiln_processors_read(const char *root, const int *allowed, size_t n,
                                    const char *omp_num_threads)
{
    KilnText text = { 0 };
    KilnProcessors ret = {
        .allowed = (int)n,
        .cores = count_cores(root, allowed, n),
        .quota = least_quota(root),
        .omp_threads = parse_omp_threads(omp_num_threads),
    };

    if (kiln_kernel_file(root, "/sys/devices/system/cpu/online", &text))
        ret.online = kiln_processor_list_count(text.data);
    kiln_text_release(&text);
    ret.threads = ret.cores;
    if (ret.quota < (double)ret.threads)
        ret.threads = (int)ceil(ret.quota);
    if (ret.omp_threads > 0)
        ret.threads = ret.omp_threads;
    if (ret.threads < 1)
        ret.threads = 1;
    return ret;
}

KilnProcessors kiln_processors_here(void)
{
    int *allowed = calloc(MOST_PROCESSORS, sizeof(*allowed));
    cpu_set_t *set = CPU_ALLOC(MOST_PROCESSORS);
    size_t bytes = CPU_ALLOC_SIZE(MOST_PROCESSORS), n = 0;

    if (allowed != NULL && set != NULL && sched_getaffinity(0, bytes, set) == 0)
        for (int i = 0; i < MOST_PROCESSORS; i++)
            if (CPU_ISSET_S((size_t)i, bytes, set))
                allowed[n++] = i;
    KilnProcessors ret = kiln_processors_read("", allowed, n, getenv("OMP_NUM_THREADS"));
    CPU_FREE(set);
    free(allowed);
    return ret;
}

const char *kiln_processors_why(const KilnProcessors *processors, char *buf, size_t size)
{
    buf[0] = '\0';
    if (processors->omp_threads > 0)
        snprintf(buf, size, "set by OMP_NUM_THREADS");
    else if (processors->quota < (double)processors->cores)
        snprintf(buf, size, "the control group gives the time of %.3g processors, of %d cores",
                 processors->quota, processors->cores);
    else if (processors->allowed < processors->online)
        snprintf(buf, size, "the process may run on %d of %d processors", processors->allowed,
                 processors->online);
    return buf;
}

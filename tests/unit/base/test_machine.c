/* Processors and memory available to a process, from copies of /proc and /sys. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/file.h"
#include "base/system/machine.h"

/* ---- Trees --------------------------------------------------------------------------- */

typedef struct Tree {
    char root[64];
} Tree;

static void tree_file(const Tree *tree, const char *path, const char *text)
{
    char whole[512];
    KilnError err = { 0 };

    snprintf(whole, sizeof(whole), "%s%s", tree->root, path);
    if (kiln_dir_make_parent(whole, &err) < 0 || kiln_file_write_plain(whole, text, &err) < 0)
        fail_msg("%s", err.text);
}

static int set_up(void **state)
{
    Tree *tree = calloc(1, sizeof(*tree));

    snprintf(tree->root, sizeof(tree->root), "/tmp/kiln-machine-XXXXXX");
    if (mkdtemp(tree->root) == NULL)
        return -1;
    *state = tree;
    return 0;
}

static int tear_down(void **state)
{
    Tree *tree = *state;
    KilnStatus status = kiln_path_remove(tree->root, NULL);

    free(tree);
    return status < 0 ? -1 : 0;
}

/* `n` processors; `siblings` of them to a core, numbered as Intel does: 0 and n/2
 * are one core. */
static void tree_processors(const Tree *tree, int n, int siblings)
{
    char path[128], text[64];

    snprintf(text, sizeof(text), "0-%d\n", n - 1);
    tree_file(tree, "/sys/devices/system/cpu/online", text);
    for (int i = 0; i < n; i++) {
        int cores = n / siblings, core = i % cores;

        snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list",
                 i);
        if (siblings == 1)
            snprintf(text, sizeof(text), "%d\n", core);
        else
            snprintf(text, sizeof(text), "%d,%d\n", core, core + cores);
        tree_file(tree, path, text);
    }
}

/* Control groups of version 2, of version 1, and both, as distributions mount them. */
static void tree_second(const Tree *tree, const char *own)
{
    char line[256];

    snprintf(line, sizeof(line), "0::%s\n", own);
    tree_file(tree, "/proc/self/cgroup", line);
    tree_file(tree, "/proc/self/mountinfo",
              "22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n"
              "31 22 0:28 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n");
}

static void tree_first(const Tree *tree, const char *mounted, const char *own)
{
    char text[1024];

    snprintf(text, sizeof(text), "5:memory:%s\n4:cpu,cpuacct:%s\n0::/\n", own, own);
    tree_file(tree, "/proc/self/cgroup", text);
    snprintf(text, sizeof(text),
             "22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n"
             "32 31 0:29 %s /sys/fs/cgroup/cpu,cpuacct rw master:1 - cgroup cgroup rw,cpu,cpuacct\n"
             "35 31 0:32 %s /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
             "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
             mounted, mounted);
    tree_file(tree, "/proc/self/mountinfo", text);
}

static const int all[16] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };

static KilnProcessors read_all(const Tree *tree, size_t n)
{
    return kiln_processors_read(tree->root, all, n, NULL);
}

/* ---- Processors -------------------------------------------------------------------------- */

static void test_siblings_count_once(void **state)
{
    const Tree *tree = *state;
    const int half[] = { 0, 1, 8, 9 }; /* two cores, both threads of each */
    const int firsts[] = { 0, 1, 2, 3, 4, 5, 6, 7 };

    tree_processors(tree, 16, 2);
    assert_int_equal(read_all(tree, 16).cores, 8);
    assert_int_equal(read_all(tree, 16).threads, 8);
    assert_int_equal(read_all(tree, 16).online, 16);
    assert_int_equal(kiln_processors_read(tree->root, half, 4, NULL).threads, 2);
    assert_int_equal(kiln_processors_read(tree->root, firsts, 8, NULL).threads, 8);
    /* Newer kernels have another name for the list, which goes first. */
    tree_file(tree, "/sys/devices/system/cpu/cpu1/topology/core_cpus_list", "0-1\n");
    assert_int_equal(read_all(tree, 16).threads, 8); /* 1 is with 0, 9 is alone with its own list */
    tree_file(tree, "/sys/devices/system/cpu/cpu9/topology/core_cpus_list", "0-1\n");
    assert_int_equal(read_all(tree, 16).threads, 7);
}

static void test_affinity_limits(void **state)
{
    const Tree *tree = *state;
    char why[128];

    tree_processors(tree, 16, 1);
    KilnProcessors some = read_all(tree, 5);
    assert_int_equal(some.threads, 5);
    assert_string_equal(kiln_processors_why(&some, why, sizeof(why)),
                        "the process may run on 5 of 16 processors");
    KilnProcessors whole = read_all(tree, 16);
    assert_string_equal(kiln_processors_why(&whole, why, sizeof(why)), "");
}

/* Nothing known of cores: every processor counts; nothing known at all: one thread. */
static void test_no_topology(void **state)
{
    const Tree *tree = *state;

    assert_int_equal(read_all(tree, 3).threads, 3);
    assert_int_equal(read_all(tree, 0).threads, 1);
    assert_true(isinf(read_all(tree, 3).quota));
}

static void test_quota_of_version_2(void **state)
{
    const Tree *tree = *state;
    static const struct {
        const char *max;
        int threads;
    } cases[] = { { "max 100000\n", 8 },    { "400000 100000\n", 4 },
                  { "150000 100000\n", 2 }, { "50000 100000\n", 1 },
                  { "1000 100000\n", 1 },   { "1600000 100000\n", 8 },
                  { "200000 50000\n", 4 },  { "", 8 },
                  { "nonsense\n", 8 },      { "400000\n", 8 },
                  { "400000 0\n", 8 },      { "-1 100000\n", 8 },
                  { "250000 1000000\n", 1 } };
    char why[128];

    tree_processors(tree, 8, 1);
    tree_second(tree, "/user.slice/job");
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        tree_file(tree, "/sys/fs/cgroup/user.slice/job/cpu.max", cases[i].max);
        if (read_all(tree, 8).threads != cases[i].threads)
            fail_msg("cpu.max '%s': %d threads, want %d", cases[i].max, read_all(tree, 8).threads,
                     cases[i].threads);
    }
    tree_file(tree, "/sys/fs/cgroup/user.slice/job/cpu.max", "max 100000\n");
    tree_file(tree, "/sys/fs/cgroup/user.slice/cpu.max", "250000 100000\n"); /* the one above */
    KilnProcessors limited = read_all(tree, 8);
    assert_int_equal(limited.threads, 3);
    assert_string_equal(kiln_processors_why(&limited, why, sizeof(why)),
                        "the control group gives the time of 2.5 processors, of 8 cores");
}

/* In a container the group is the mount's root, whatever path the kernel reports. */
static void test_quota_of_version_1(void **state)
{
    const Tree *tree = *state;
    static const char *const quota = "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us";

    tree_processors(tree, 8, 1);
    tree_first(tree, "/docker/abc", "/docker/abc");
    tree_file(tree, "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
    tree_file(tree, quota, "-1\n");
    assert_int_equal(read_all(tree, 8).threads, 8);
    tree_file(tree, quota, "300000\n");
    assert_int_equal(read_all(tree, 8).threads, 3);
    tree_first(tree, "/", "/batch/7");
    tree_file(tree, quota, "-1\n");
    tree_file(tree, "/sys/fs/cgroup/cpu,cpuacct/batch/7/cpu.cfs_period_us", "100000\n");
    tree_file(tree, "/sys/fs/cgroup/cpu,cpuacct/batch/7/cpu.cfs_quota_us", "110000\n");
    assert_int_equal(read_all(tree, 8).threads, 2);
}

static void test_omp_num_threads(void **state)
{
    const Tree *tree = *state;
    static const struct {
        const char *text;
        int threads;
    } cases[] = { { "3", 3 }, { " 2,4", 2 }, { "12", 12 }, { "0", 8 },
                  { "", 8 },  { "x", 8 },    { NULL, 8 },  { "99999999999", 8 } };
    char why[128];

    tree_processors(tree, 8, 1);
    for (size_t i = 0; i < KILN_COUNT(cases); i++)
        assert_int_equal(kiln_processors_read(tree->root, all, 8, cases[i].text).threads,
                         cases[i].threads);
    KilnProcessors asked = kiln_processors_read(tree->root, all, 8, "3");
    assert_string_equal(kiln_processors_why(&asked, why, sizeof(why)), "set by OMP_NUM_THREADS");
}

/* ---- Memory ------------------------------------------------------------------------- */

static const char meminfo[] = "MemTotal:       16000000 kB\nMemFree:         1000000 kB\n"
                              "MemAvailable:    8000000 kB\n";

static void test_memory_of_the_machine(void **state)
{
    const Tree *tree = *state;
    KilnMemory memory = { .available = 7 };

    assert_false(kiln_memory_read(tree->root, &memory));
    assert_int_equal(memory.available, 7);
    tree_file(tree, "/proc/meminfo", meminfo);
    assert_true(kiln_memory_read(tree->root, &memory));
    assert_int_equal(memory.available, INT64_C(8000000) * 1024);
    assert_int_equal(memory.limit, INT64_C(16000000) * 1024);
    assert_false(memory.group);
    tree_file(tree, "/proc/self/status", "Name:\tx\nVmPeak:\t  9 kB\nVmRSS:\t  1234 kB\n");
    assert_int_equal(kiln_memory_resident(tree->root), 1234 * 1024);
}

static void test_memory_of_version_2(void **state)
{
    const Tree *tree = *state;
    KilnMemory memory;

    tree_file(tree, "/proc/meminfo", meminfo);
    tree_second(tree, "/job");
    tree_file(tree, "/sys/fs/cgroup/job/memory.max", "max\n");
    tree_file(tree, "/sys/fs/cgroup/job/memory.current", "500\n");
    assert_true(kiln_memory_read(tree->root, &memory));
    assert_false(memory.group);
    tree_file(tree, "/sys/fs/cgroup/job/memory.max", "1000000\n");
    tree_file(tree, "/sys/fs/cgroup/job/memory.current", "600000\n");
    tree_file(tree, "/sys/fs/cgroup/job/memory.stat",
              "anon 9\ninactive_file_x 7\ninactive_file 100000\n");
    assert_true(kiln_memory_read(tree->root, &memory));
    assert_true(memory.group);
    assert_int_equal(memory.available, 500000);
    assert_int_equal(memory.limit, 1000000);
    /* More is used than a limit that was lowered since. */
    tree_file(tree, "/sys/fs/cgroup/job/memory.max", "1000\n");
    assert_true(kiln_memory_read(tree->root, &memory));
    assert_int_equal(memory.available, 0);
}

/* No limit is the largest number in version 1. The tightest group above counts. */
static void test_memory_of_version_1(void **state)
{
    const Tree *tree = *state;
    KilnMemory memory;

    tree_file(tree, "/proc/meminfo", meminfo);
    tree_first(tree, "/", "/batch/7");
    tree_file(tree, "/sys/fs/cgroup/memory/batch/7/memory.limit_in_bytes", "9223372036854771712\n");
    tree_file(tree, "/sys/fs/cgroup/memory/batch/7/memory.usage_in_bytes", "4096\n");
    assert_true(kiln_memory_read(tree->root, &memory));
    assert_false(memory.group);
    tree_file(tree, "/sys/fs/cgroup/memory/batch/memory.limit_in_bytes", "3000000\n");
    tree_file(tree, "/sys/fs/cgroup/memory/batch/memory.usage_in_bytes", "2000000\n");
    tree_file(tree, "/sys/fs/cgroup/memory/batch/memory.stat",
              "inactive_file 5\ntotal_inactive_file 250000\n");
    assert_true(kiln_memory_read(tree->root, &memory));
    assert_true(memory.group);
    assert_int_equal(memory.available, 1250000);
}

/* Whatever this machine says must make sense. */
static void test_here(void **state)
{
    KilnProcessors here = kiln_processors_here();
    KilnMemory memory;

    (void)state;
    assert_true(here.threads >= 1);
    assert_true(here.omp_threads > 0 || here.threads <= here.allowed);
    assert_true(here.cores <= here.allowed);
    assert_true(kiln_memory_read("", &memory));
    assert_true(memory.available > 0 && memory.available <= memory.limit);
    assert_true(kiln_memory_resident("") > 1 << 20);
}

/* ---- Caches and model ------------------------------------------------------------------ */

static void tree_cache(const Tree *tree, int i, const char *level, const char *type,
                       const char *size)
{
    const char *const files[] = { "level", "type", "size", "shared_cpu_list" };
    const char *const texts[] = { level, type, size, "0-3,8\n" };
    char path[128];

    for (size_t f = 0; f < KILN_COUNT(files); f++) {
        snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu0/cache/index%d/%s", i, files[f]);
        tree_file(tree, path, texts[f]);
    }
}

static void test_caches(void **state)
{
    const Tree *tree = *state;
    KilnCaches caches = kiln_caches_read(tree->root);

    assert_int_equal(caches.bytes[0], 0);
    tree_cache(tree, 0, "1\n", "Data\n", "48K\n");
    tree_cache(tree, 1, "1\n", "Instruction\n", "64K\n");
    tree_cache(tree, 2, "2\n", "Unified\n", "2M\n");
    tree_cache(tree, 3, "9\n", "Unified\n", "1K\n");
    tree_cache(tree, 4, "3\n", "Unified\n", "x\n");
    caches = kiln_caches_read(tree->root);
    assert_int_equal(caches.bytes[0], 48 << 10);
    assert_int_equal(caches.bytes[1], 2 << 20);
    assert_int_equal(caches.shared[1], 5);
    assert_int_equal(caches.bytes[2], 0);
}

static void test_models(void **state)
{
    const Tree *tree = *state;
    char model[64];

    assert_string_equal(kiln_processor_model(tree->root, model, sizeof(model)), "");
    tree_file(tree, "/proc/cpuinfo",
              "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n");
    assert_string_equal(kiln_processor_model(tree->root, model, sizeof(model)),
                        "implementer 0x41, part 0xd0c");
    tree_file(tree, "/proc/cpuinfo", "processor\t: 0\nmodel\t\t: 1\nmodel name\t: One (R) 2: 3\n");
    assert_string_equal(kiln_processor_model(tree->root, model, sizeof(model)), "One (R) 2: 3");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_siblings_count_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_affinity_limits, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_no_topology, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_quota_of_version_2, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_quota_of_version_1, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_omp_num_threads, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_memory_of_the_machine, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_memory_of_version_2, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_memory_of_version_1, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_caches, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_models, set_up, tear_down),
        cmocka_unit_test(test_here),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The cache on disk: entries, damage, several processes at once, a full disk. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "tests/support/data/data_fixture.h"

enum { COUNT = 40, BYTES = 3000 };

static KilnCacheSpec spec_of(const char *name)
{
    return (KilnCacheSpec) {
        .folder = fixture_path("cache"), .name = name, .key = 7, .count = COUNT, .bytes = BYTES
    };
}

static KilnCache *open_or_fail(const KilnCacheSpec *spec)
{
    KilnCache *cache = NULL;
    KilnError err = { 0 };

    if (kiln_cache_open(spec, &cache, &err) < 0)
        fail_msg("%s", err.text);
    return cache;
}

/* The file of a spec, to be written to. */
static int open_raw(const KilnCacheSpec *spec)
{
    char path[700];

    snprintf(path, sizeof(path), "%s/%s-%016llx.cache", spec->folder, spec->name,
             (unsigned long long)spec->key);
    int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    return fd;
}

static void make_entry(int64_t i, unsigned char ret[BYTES])
{
    for (int k = 0; k < BYTES; k++)
        ret[k] = (unsigned char)(31 * i + k * k);
}

static void put_all(KilnCache *cache, uint64_t source)
{
    unsigned char entry[BYTES];

    for (int64_t i = 0; i < COUNT; i++) {
        make_entry(i, entry);
        kiln_cache_put(cache, i, source, entry);
    }
}

/* How many entries there are, all of them right. */
static int64_t count_right(KilnCache *cache, uint64_t source)
{
    unsigned char want[BYTES], got[BYTES];
    int64_t n = 0;

    for (int64_t i = 0; i < COUNT; i++) {
        make_entry(i, want);
        if (!kiln_cache_get(cache, i, source, got))
            continue;
        assert_memory_equal(want, got, BYTES);
        n++;
    }
    return n;
}

static void keep_line(void *ctx, const char *message)
{
    snprintf(ctx, 4400, "%s", message);
}

static void test_entries(void **unused)
{
    KilnCacheSpec spec = spec_of("entries");
    KilnCache *cache = open_or_fail(&spec);

    (void)unused;
    assert_int_equal(count_right(cache, 0), 0);
    put_all(cache, 5);
    assert_int_equal(count_right(cache, 5), COUNT);
    assert_int_equal(count_right(cache, 6), 0); /* of another source */
    kiln_cache_close(cache);
    cache = open_or_fail(&spec); /* in a later run */
    assert_int_equal(count_right(cache, 5), COUNT);
    KilnCacheCounts counts = kiln_cache_counts(cache);
    assert_int_equal(counts.hits, COUNT);
    assert_int_equal(counts.damaged, 0);
    assert_false(counts.replaced);
    kiln_cache_close(cache);
    spec.key = 8; /* another file */
    cache = open_or_fail(&spec);
    assert_int_equal(count_right(cache, 5), 0);
    kiln_cache_close(cache);
}

/* A flipped bit anywhere in an entry is found, and the entry can be made again. */
static void test_damaged_entries(void **unused)
{
    KilnCacheSpec spec = spec_of("damaged");
    KilnCache *cache = open_or_fail(&spec);
    char line[4400] = "";
    const long stride = (BYTES + 16 + 63) / 64 * 64;

    (void)unused;
    put_all(cache, 5);
    int fd = open_raw(&spec);
    for (int i = 0; i < 10; i++) { /* in the bytes, and in the sum */
        off_t at = 4096 + i * stride + (i % 2 == 0 ? 16 + 300 * i : 8);
        unsigned char byte;

        assert_int_equal(pread(fd, &byte, 1, at), 1);
        byte ^= 4;
        assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    }
    close(fd);
    assert_int_equal(count_right(cache, 5), COUNT - 10);
    assert_int_equal(kiln_cache_counts(cache).damaged, 10);
    kiln_cache_report(cache, "here", keep_line, line);
    assert_non_null(strstr(line, "10 entries were damaged, and were rebuilt"));
    line[0] = '\0';
    kiln_cache_report(cache, "here", keep_line, line);
    assert_string_equal(line, ""); /* said once */
    put_all(cache, 5);
    assert_int_equal(count_right(cache, 5), COUNT);
    kiln_cache_close(cache);
}

/* A file that is cut off, or whose header is wrong, is replaced. */
static void test_damaged_files(void **unused)
{
    (void)unused;
    for (int damage = 0; damage < 3; damage++) {
        KilnCacheSpec spec = spec_of("file");
        KilnCache *cache = open_or_fail(&spec);

        put_all(cache, 5);
        kiln_cache_close(cache);
        if (damage < 2) {
            int fd = open_raw(&spec);

            assert_int_equal(damage == 0 ? ftruncate(fd, 5000) : (int)pwrite(fd, "x", 1, 20) - 1,
                             0);
            close(fd);
        } else {
            spec.count = COUNT + 1; /* the folder has one file more now */
        }
        cache = open_or_fail(&spec);
        assert_true(kiln_cache_counts(cache).replaced);
        assert_int_equal(count_right(cache, 5), 0);
        put_all(cache, 5);
        assert_int_equal(count_right(cache, 5), COUNT);
        kiln_cache_close(cache);
    }
}

/* Cut short while it is open, also within an entry: what is left is served, the rest can be made
 * again, and the process lives. */
static void test_cut_in_use(void **unused)
{
    const off_t stride = (BYTES + 16 + 63) / 64 * 64;
    const off_t sizes[] = { 4096 + 10 * stride + 100, 4096 + 7 * stride, 0 };
    const int64_t left[] = { 10, 7, 0 };

    (void)unused;
    for (size_t s = 0; s < KILN_COUNT(sizes); s++) {
        KilnCacheSpec spec = spec_of("cut");
        KilnCache *cache = open_or_fail(&spec);
        char line[4400] = "";

        put_all(cache, 5);
        int fd = open_raw(&spec);
        assert_int_equal(ftruncate(fd, sizes[s]), 0);
        close(fd);
        assert_int_equal(count_right(cache, 5), left[s]);
        assert_true(kiln_cache_counts(cache).cut);
        kiln_cache_report(cache, "here", keep_line, line);
        assert_non_null(strstr(line, "cut short while it was in use"));
        put_all(cache, 5);
        assert_int_equal(count_right(cache, 5), COUNT);
        kiln_cache_close(cache);
    }
}

/* A full file system of memory can't give pages to holes of a file. */
static void test_full_tmpfs(void **unused)
{
    char folder[600];
    KilnCacheSpec spec = spec_of("tmpfs");
    char line[4400] = "";

    (void)unused;
    snprintf(folder, sizeof(folder), "%s", fixture_path("small"));
    if (mkdir(folder, 0777) != 0 || mount("none", folder, "tmpfs", 0, "size=64k") != 0) {
        print_message("a tmpfs can't be mounted here: %s\n", strerror(errno));
        skip();
    }
    spec.folder = folder;
    KilnCache *cache = open_or_fail(&spec);
    put_all(cache, 5);
    const int64_t n = count_right(cache, 5);
    const KilnCacheCounts counts = kiln_cache_counts(cache);
    kiln_cache_report(cache, "here", keep_line, line);
    kiln_cache_close(cache);
    assert_int_equal(umount(folder), 0);
    assert_true(n > 0 && n < COUNT);
    assert_int_equal(counts.write_error, ENOSPC);
    assert_non_null(strstr(line, "No space left on device; what is not in it is made each time"));
}

/* Eight processes open, fill and read one cache; some are killed on the way. */
static void test_several_processes(void **unused)
{
    enum { PROCESSES = 8 };
    pid_t pids[PROCESSES];

    (void)unused;
    for (int round = 0; round < 5; round++) {
        KilnCacheSpec spec = spec_of("shared");

        spec.key = (uint64_t)(100 + round);
        for (int p = 0; p < PROCESSES; p++) {
            pids[p] = fork();
            assert_true(pids[p] >= 0);
            if (pids[p] > 0)
                continue;
            KilnCache *cache = NULL;
            if (kiln_cache_open(&spec, &cache, NULL) < 0)
                _exit(2);
            for (int turn = 0; turn < 20; turn++)
                put_all(cache, 5);
            int64_t n = count_right(cache, 5);
            _exit(n == COUNT && kiln_cache_counts(cache).damaged == 0 ? 0 : 3);
        }
        kill(pids[0], SIGKILL);
        for (int p = 0; p < PROCESSES; p++) {
            int status;

            assert_int_equal(waitpid(pids[p], &status, 0), pids[p]);
            if (p > 0 && status != 0)
                fail_msg("process %d ended with %#x", p, (unsigned)status);
        }
        KilnCache *cache = open_or_fail(&spec);
        assert_int_equal(count_right(cache, 5), COUNT);
        kiln_cache_close(cache);
    }
}

/* Without room the entries that are there go on to serve. */
static void test_full_disk(void **unused)
{
    KilnCacheSpec spec = spec_of("full");
    KilnCache *cache = open_or_fail(&spec);
    struct rlimit before, limit;
    char line[4400] = "";

    (void)unused;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    limit.rlim_cur = 60000;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    put_all(cache, 5);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(kiln_cache_counts(cache).write_error, EFBIG);
    int64_t n = count_right(cache, 5);
    assert_true(n > 0 && n < COUNT);
    assert_int_equal(kiln_cache_counts(cache).damaged, 0);
    kiln_cache_report(cache, "here", keep_line, line);
    assert_non_null(strstr(line, "File too large; what is not in it is made each time"));
    kiln_cache_close(cache);
}

static void test_no_folder(void **unused)
{
    KilnCacheSpec spec = spec_of("none");
    KilnCache *cache = NULL;
    KilnError err = { 0 };

    (void)unused;
    fixture_put("a-file", "", 0);
    spec.folder = fixture_path("a-file");
    assert_int_equal(kiln_cache_open(&spec, &cache, &err), KILN_E_IO);
    assert_non_null(strstr(err.text, "a-file"));
}

static void test_identity(void **unused)
{
    uint64_t a, b, again;

    (void)unused;
    fixture_put("x/one", "abc", 3);
    assert_true(kiln_file_identity(fixture_path("x/one"), &a));
    assert_true(kiln_file_identity(fixture_path("x/one"), &again));
    assert_true(a == again);
    nanosleep(&(struct timespec) { .tv_nsec = 20000000 },
              NULL); /* the clock of files goes in steps */
    fixture_put("x/one", "abd", 3);
    assert_true(kiln_file_identity(fixture_path("x/one"), &b));
    assert_true(a != b);
    assert_false(kiln_file_identity(fixture_path("x/none"), &a));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cut_in_use),    cmocka_unit_test(test_full_tmpfs),
        cmocka_unit_test(test_entries),       cmocka_unit_test(test_damaged_entries),
        cmocka_unit_test(test_damaged_files), cmocka_unit_test(test_several_processes),
        cmocka_unit_test(test_full_disk),     cmocka_unit_test(test_no_folder),
        cmocka_unit_test(test_identity),
    };

    return cmocka_run_group_tests(tests, fixture_begin, fixture_end);
}

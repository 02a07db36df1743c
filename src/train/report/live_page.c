/* The live page: a seqlock in a shared mapping. The only writer makes the sequence number odd,
 * writes, and makes it even again; a reader that sees the same even number before and after has a
 * consistent copy. Readers use pread, not a mapping: a truncated file must not kill them. */
#include "train/report/live_page.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/system/file.h"
#include "base/system/mapping.h"
#include "base/system/process_registry.h"

static const char magic[8] = "kilnlive";

enum { VERSION = 1, MAX_READS = 1000 };

typedef struct Page {
    char magic[8];
    uint32_t version, size;    /* of this struct */
    _Atomic uint32_t sequence; /* odd while the page is being written */
    _Atomic int32_t saving;
    KilnLiveRun run;
    KilnLivePosition at;
    KilnLiveRates rates;
} Page;

struct KilnLivePage {
    Page *page;
    char *path;
};

static char *path_of(const char *dir)
{
    return kiln_path_join(dir, ".kiln/live");
}

/* ---- Writing ---------------------------------------------------------------------------- */

static Page *map(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);

    if (fd < 0)
        return NULL;
    Page *page = kiln_mapping_open(fd, sizeof(*page));
    const int failure = errno;
    close(fd);
    errno = failure;
    return page;
}

KilnStatus kiln_live_page_open(const char *dir, const KilnLiveRun *run, KilnLivePage **ret,
                               KilnError *err)
{
    KilnLivePage *self = calloc(1, sizeof(*self));

    if (self == NULL)
        return kiln_error_nomem(err, sizeof(*self));
    self->path = path_of(dir);
    if (self->path != NULL)
        (void)unlink(self->path); /* a killed run may have left it */
    self->page = self->path != NULL ? map(self->path) : NULL;
    if (self->page == NULL) {
        KilnStatus status = self->path != NULL ? kiln_error_errno(err, self->path)
                                               : kiln_error_nomem(err, strlen(dir));

        free(self->path);
        free(self);
        return status;
    }
    Page *page = self->page;
    atomic_store(&page->sequence, 1u);
    page->run = *run;
    page->run.pid = (int64_t)getpid();
    page->run.pid_start = kiln_process_start(page->run.pid);
    page->rates.loss = (double)NAN;
    page->rates.left_s = -1.0;
    page->version = VERSION;
    page->size = sizeof(*page);
    memcpy(page->magic, magic, sizeof(magic));
    atomic_store(&page->sequence, 2u);
    *ret = self;
    return KILN_OK;
}

static uint32_t begin(Page *page)
{
    const uint32_t sequence = atomic_load_explicit(&page->sequence, memory_order_relaxed);

    atomic_store_explicit(&page->sequence, sequence + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    return sequence + 2;
}

static void end(Page *page, uint32_t sequence)
{
    atomic_store_explicit(&page->sequence, sequence, memory_order_release);
}

void kiln_live_page_write_position(KilnLivePage *self, const KilnLivePosition *at)
{
    if (self == NULL)
        return;
    uint32_t sequence = begin(self->page);
    self->page->at = *at;
    end(self->page, sequence);
}

void kiln_live_page_write_rates(KilnLivePage *self, const KilnLiveRates *rates)
{
    if (self == NULL)
        return;
    uint32_t sequence = begin(self->page);
    self->page->rates = *rates;
    end(self->page, sequence);
}

void kiln_live_page_saving(KilnLivePage *self, bool saving)
{
    if (self != NULL)
        atomic_fetch_add(&self->page->saving, saving ? 1 : -1);
}

bool kiln_live_page_lost(const KilnLivePage *self)
{
    return self != NULL && kiln_mapping_lost(self->page);
}

void kiln_live_page_close(KilnLivePage *self)
{
    if (self == NULL)
        return;
    (void)unlink(self->path);
    kiln_mapping_close(self->page, sizeof(*self->page));
    free(self->path);
    free(self);
}

/* ---- Reading ------------------------------------------------------------------------------ */

static bool read_sequence(int fd, uint32_t *ret)
{
    return pread(fd, ret, sizeof(*ret), (off_t)offsetof(Page, sequence)) == (ssize_t)sizeof(*ret);
}

/* Read a consistent copy; false when there is none after many tries. */
static bool copy(int fd, Page *ret)
{
    for (int i = 0; i < MAX_READS; i++) {
        uint32_t before, after;

        if (!read_sequence(fd, &before) ||
            pread(fd, ret, sizeof(*ret), 0) != (ssize_t)sizeof(*ret) || !read_sequence(fd, &after))
            return false;
        if (before == after && before % 2 == 0)
            return true;
    }
    return false;
}

/* Check everything: anybody who may write to the file may have written the page. */
static bool is_valid(const Page *page)
{
    const KilnLiveRates *rates = &page->rates;
    bool valid = memcmp(page->magic, magic, sizeof(magic)) == 0 && page->version == VERSION &&
                 page->size == sizeof(*page) && page->run.pid > 0 && page->at.phase >= 0 &&
                 page->at.phase <= KILN_LIVE_ENDING && rates->n_metrics >= 0 &&
                 rates->n_metrics <= KILN_LIVE_METRICS &&
                 memchr(page->run.label, '\0', sizeof(page->run.label)) != NULL;

    for (int i = 0; valid && i < rates->n_metrics; i++)
        valid = memchr(rates->metrics[i].name, '\0', KILN_LIVE_NAME) != NULL;
    return valid;
}

KilnStatus kiln_live_page_read(const char *dir, KilnLiveSnapshot *ret, KilnError *err)
{
    char *path = path_of(dir);
    struct stat info;
    Page page;
    KilnStatus status = KILN_OK;

    if (path == NULL)
        return kiln_error_nomem(err, strlen(dir));
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        status = kiln_error_errno(err, path);
    else if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || !copy(fd, &page) ||
             !is_valid(&page))
        status = kiln_error_set(err, KILN_E_FORMAT, "%s: is not the live page of a run", path);
    if (fd >= 0)
        close(fd);
    free(path);
    if (status >= 0)
        *ret = (KilnLiveSnapshot) { page.run, page.at, page.rates, atomic_load(&page.saving) };
    return status;
}

bool kiln_live_alive(const KilnLiveSnapshot *live)
{
    return live->run.pid_start != 0 && kiln_process_start(live->run.pid) == live->run.pid_start;
}

const char *kiln_live_phase_name(int32_t phase)
{
    static const char *const names[] = {
        [KILN_LIVE_STARTING] = "starting", [KILN_LIVE_FIT] = "fit",
        [KILN_LIVE_SANITY] = "sanity",     [KILN_LIVE_VALIDATE] = "validate",
        [KILN_LIVE_TEST] = "test",         [KILN_LIVE_PREDICT] = "predict",
        [KILN_LIVE_ENDING] = "ending",
    };

    return phase >= 0 && (size_t)phase < KILN_COUNT(names) ? names[phase] : "?";
}

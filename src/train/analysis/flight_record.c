/* Flight records (kiln/files/flight.h): a file with a header, names, and a ring of slots of equal
 * size, one per batch. */
#include "kiln/files/flight.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/system/file.h"

enum { REASON = 1024, MAX_BATCHES = 1 << 20, MAX_NAMES = 1 << 20 };

/* In the byte order and layout of the machine. */
typedef struct Head {
    char magic[8];
    uint64_t seed;
    int64_t n_batches, most_samples, n_names, names_bytes; /* names with their final zeros */
    int64_t begun;                                         /* batches begun so far */
    char reason[REASON];
} Head;

static const char magic[8] = "kilnfl1";

/* Precedes the samples (i64) and norms (f32) of a slot. */
typedef struct SlotHead {
    int64_t epoch, batch, step, batches, n_samples;
    double loss, rate;
    int64_t ended, stepped;
} SlotHead;

struct KilnFlight {
    void *map; /* the whole file */
    size_t size;
    Head *head;
    const char **names;
    char *slots;
    size_t slot_bytes;
    bool mapped; /* else `map` is a copy on the heap */
};

/* ---- Layout ------------------------------------------------------------------------------ */

static size_t round_up(size_t bytes)
{
    return (bytes + 7) / 8 * 8;
}

static size_t slot_size(const Head *head)
{
    return sizeof(SlotHead) + (size_t)head->most_samples * sizeof(int64_t) +
           round_up((size_t)head->n_names * sizeof(float));
}

static size_t file_size(const Head *head)
{
    return sizeof(Head) + round_up((size_t)head->names_bytes) +
           (size_t)head->n_batches * slot_size(head);
}

/* Whether the numbers of an untrusted file are plausible. */
static bool is_valid(const Head *head)
{
    const int64_t max_bytes = INT64_C(1) << 40;

    return memcmp(head->magic, magic, sizeof(magic)) == 0 && head->n_batches >= 1 &&
           head->n_batches <= MAX_BATCHES && head->most_samples >= 0 &&
           head->most_samples <= max_bytes / head->n_batches / 8 && head->n_names >= 0 &&
           head->n_names <= MAX_NAMES && head->names_bytes >= head->n_names &&
           head->names_bytes <= max_bytes && head->begun >= 0;
}

/* Find the parts of a mapped or read file. */
static KilnStatus bind(KilnFlight *flight, const char *path, KilnError *err)
{
    char *names = (char *)flight->map + sizeof(Head);

    flight->head = flight->map;
    flight->slot_bytes = slot_size(flight->head);
    flight->slots = names + round_up((size_t)flight->head->names_bytes);
    flight->names = calloc((size_t)flight->head->n_names + 1, sizeof(*flight->names));
    if (flight->names == NULL)
        return kiln_error_nomem(err, (size_t)flight->head->n_names * sizeof(*flight->names));
    const char *end = names + flight->head->names_bytes;
    for (int64_t i = 0; i < flight->head->n_names; i++) {
        const size_t left = (size_t)(end - names);
        const size_t length = strnlen(names, left);

        if (length == left)
            return kiln_error_set(err, KILN_E_FORMAT, "%s: is damaged: its names do not end", path);
        flight->names[i] = names;
        names += length + 1;
    }
    return KILN_OK;
}

/* ---- Creating and opening ------------------------------------------------------------------ */

static Head head_of(const KilnFlightForm *form)
{
    Head head = {
        .seed = form->seed,
        .n_batches = form->n_batches,
        .most_samples = form->most_samples,
        .n_names = (int64_t)form->n_names,
    };

    memcpy(head.magic, magic, sizeof(magic));
    for (size_t i = 0; i < form->n_names; i++)
        head.names_bytes += (int64_t)strlen(form->names[i]) + 1;
    return head;
}

/* Create and map the file. Its blocks are allocated now, so that a full disk is an error here and
 * not a signal in the middle of a step. */
static KilnStatus map_new(const char *path, const Head *head, void **ret, KilnError *err)
{
    const size_t size = file_size(head);
    int fd = kiln_fd_open(path, O_RDWR | O_CREAT | O_TRUNC);
    void *map = MAP_FAILED;

    if (fd < 0)
        return kiln_error_errno(err, path);
    errno = posix_fallocate(fd, 0, (off_t)size);
    if (errno == 0)
        map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    KilnStatus status = map != MAP_FAILED ? KILN_OK : kiln_error_errno(err, path);
    close(fd);
    if (status >= 0)
        *ret = map;
    return status;
}

KilnStatus kiln_flight_create(const char *path, const KilnFlightForm *form, KilnFlight **ret,
                              KilnError *err)
{
    const Head head = head_of(form);
    KilnFlight *flight = calloc(1, sizeof(*flight));

    if (flight == NULL)
        return kiln_error_nomem(err, sizeof(*flight));
    if (!is_valid(&head)) {
        free(flight);
        return kiln_error_set(err, KILN_E_RANGE,
                              "%s: a flight record of %lld batches of %lld samples "
                              "is too large",
                              path, (long long)form->n_batches, (long long)form->most_samples);
    }
    KilnStatus status = map_new(path, &head, &flight->map, err);
    if (status >= 0) {
        char *names = (char *)flight->map + sizeof(head);

        flight->mapped = true;
        flight->size = file_size(&head);
        memcpy(flight->map, &head, sizeof(head));
        for (size_t i = 0; i < form->n_names; i++) {
            const size_t bytes = strlen(form->names[i]) + 1;

            memcpy(names, form->names[i], bytes);
            names += bytes;
        }
        status = bind(flight, path, err);
    }
    if (status < 0) {
        kiln_flight_close(flight);
        return status;
    }
    *ret = flight;
    return KILN_OK;
}

KilnStatus kiln_flight_open(const char *path, KilnFlight **ret, KilnError *err)
{
    const size_t max_bytes = (size_t)1 << 34;
    KilnFlight *flight = calloc(1, sizeof(*flight));
    char *text = NULL;

    if (flight == NULL)
        return kiln_error_nomem(err, sizeof(*flight));
    KilnStatus status = kiln_file_read(path, max_bytes, &text, &flight->size, err);
    flight->map = text;
    if (status >= 0 && (flight->size < sizeof(Head) || !is_valid(flight->map) ||
                        flight->size != file_size(flight->map)))
        status = kiln_error_set(err, KILN_E_FORMAT,
                                "%s: is not a flight record of this version, or is damaged; the "
                                "callback flight_recorder writes them",
                                path);
    if (status >= 0) {
        ((Head *)flight->map)->reason[REASON - 1] = '\0';
        status = bind(flight, path, err);
    }
    if (status < 0) {
        kiln_flight_close(flight);
        return status;
    }
    *ret = flight;
    return KILN_OK;
}

void kiln_flight_close(KilnFlight *flight)
{
    if (flight == NULL)
        return;
    if (flight->mapped)
        munmap(flight->map, flight->size);
    else
        free(flight->map);
    free(flight->names);
    free(flight);
}

/* ---- Batches --------------------------------------------------------------------------------- */

static SlotHead *slot_of(const KilnFlight *flight, int64_t number)
{
    return (SlotHead *)(void *)(flight->slots +
                                (size_t)(number % flight->head->n_batches) * flight->slot_bytes);
}

static int64_t *samples_of(const SlotHead *slot)
{
    return (int64_t *)(slot + 1);
}

static float *norms_of(const KilnFlight *flight, const SlotHead *slot)
{
    return (void *)(samples_of(slot) + flight->head->most_samples);
}

/* `begun` grows when the slot is complete: a process that is killed before leaves earlier batches
 * intact. */
void kiln_flight_begin(KilnFlight *flight, const KilnFlightBatch *batch)
{
    Head *head = flight->head;
    SlotHead *slot = slot_of(flight, head->begun);
    const int64_t n = batch->n_samples < head->most_samples ? batch->n_samples : head->most_samples;

    slot->ended = slot->stepped = 0;
    slot->epoch = batch->epoch;
    slot->batch = batch->batch;
    slot->step = batch->step;
    slot->batches = batch->batches;
    slot->n_samples = batch->n_samples;
    if (n > 0)
        memcpy(samples_of(slot), batch->samples, (size_t)n * sizeof(*batch->samples));
    __atomic_store_n(&head->begun, head->begun + 1, __ATOMIC_RELEASE);
}

void kiln_flight_end(KilnFlight *flight, const KilnFlightBatch *batch)
{
    const Head *head = flight->head;

    if (head->begun == 0)
        return;
    SlotHead *slot = slot_of(flight, head->begun - 1);
    slot->loss = batch->loss;
    slot->rate = batch->rate;
    slot->stepped = batch->stepped && batch->norms != NULL;
    if (slot->stepped)
        memcpy(norms_of(flight, slot), batch->norms, (size_t)head->n_names * sizeof(float));
    __atomic_store_n(&slot->ended, 1, __ATOMIC_RELEASE);
}

void kiln_flight_set_reason(KilnFlight *flight, const char *reason)
{
    char *to = flight->head->reason;
    const size_t length = strnlen(reason, REASON - 1);

    memcpy(to, reason, length);
    to[length] = '\0';
}

const char *kiln_flight_reason(const KilnFlight *flight)
{
    return flight->head->reason;
}

KilnFlightForm kiln_flight_form(const KilnFlight *flight)
{
    return (KilnFlightForm) {
        .seed = flight->head->seed,
        .n_batches = flight->head->n_batches,
        .most_samples = flight->head->most_samples,
        .names = flight->names,
        .n_names = (size_t)flight->head->n_names,
    };
}

size_t kiln_flight_count(const KilnFlight *flight)
{
    const Head *head = flight->head;

    return (size_t)(head->begun < head->n_batches ? head->begun : head->n_batches);
}

KilnFlightBatch kiln_flight_at(const KilnFlight *flight, size_t i)
{
    const int64_t first = flight->head->begun - (int64_t)kiln_flight_count(flight);
    const SlotHead *slot = slot_of(flight, first + (int64_t)i);
    const bool ended = slot->ended != 0;

    return (KilnFlightBatch) {
        .epoch = slot->epoch,
        .batch = slot->batch,
        .step = slot->step,
        .batches = slot->batches,
        .n_samples = slot->n_samples,
        .samples = samples_of(slot),
        .ended = ended,
        .loss = ended ? slot->loss : (double)NAN,
        .rate = ended ? slot->rate : (double)NAN,
        .stepped = ended && slot->stepped != 0,
        .norms = ended && slot->stepped != 0 ? norms_of(flight, slot) : NULL,
    };
}

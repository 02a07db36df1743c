/* Event files: records with lengths and checksums around messages (TFRecord). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "events/encode.h"

struct KilnEvents {
    char *path;
    FILE *file;
    int64_t offset;
    uint32_t crc[256]; /* of each byte */
};

/* ---- Checksums --------------------------------------------------------------------------- */

/* CRC-32C (Castagnoli), reflected. */
static void fill_table(uint32_t table[256])
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;

        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0);
        table[byte] = crc;
    }
}

/* Turned and shifted, as the format wants it, so that the checksum of data that holds
 * checksums is still a good one. */
static uint32_t masked_crc(const uint32_t table[256], const uint8_t *data, size_t size)
{
    uint32_t crc = ~0u;

    for (size_t i = 0; i < size; i++)
        crc = table[(crc ^ data[i]) & 0xff] ^ (crc >> 8);
    crc = ~crc;
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

static void put_little(uint8_t *to, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        to[i] = (uint8_t)(value >> (8 * i));
}

/* ---- Records ------------------------------------------------------------------------------- */

/* Length, its checksum, the message, its checksum. Takes the message. */
static KilnStatus put_record(KilnEvents *events, KilnEventBytes *message, KilnError *err)
{
    uint8_t head[12], tail[4];

    put_little(head, message->size, 8);
    put_little(head + 8, masked_crc(events->crc, head, 8), 4);
    put_little(tail, masked_crc(events->crc, message->data, message->size), 4);
    errno = EIO;
    bool ok = fwrite(head, 1, sizeof(head), events->file) == sizeof(head) &&
              fwrite(message->data, 1, message->size, events->file) == message->size &&
              fwrite(tail, 1, sizeof(tail), events->file) == sizeof(tail);
    events->offset += (int64_t)(sizeof(head) + message->size + sizeof(tail));
    free(message->data);
    return ok ? KILN_OK : kiln_error_errno(err, events->path);
}

static KilnStatus put_version(KilnEvents *events, KilnError *err)
{
    KilnEventBytes message = { 0 };
    KilnStatus status = kiln_event_encode_version((double)time(NULL), &message, err);

    return status >= 0 ? put_record(events, &message, err) : status;
}

KilnStatus kiln_events_open(const char *path, int64_t offset, KilnEvents **ret, KilnError *err)
{
    struct stat found;
    bool go_on = offset > 0 && stat(path, &found) == 0 && found.st_size >= offset;
    KilnStatus status = kiln_events_supported(err);

    if (status < 0)
        return status;
    KilnEvents *events = calloc(1, sizeof(*events));
    if (events == NULL)
        return kiln_error_nomem(err, sizeof(*events));
    fill_table(events->crc);
    events->path = kiln_strdup(path);
    events->file = kiln_file_open(path, go_on ? "r+" : "w");
    if (events->file == NULL || events->path == NULL) {
        status = kiln_error_errno(err, path);
    } else if (go_on) {
        events->offset = offset;
        if (ftruncate(fileno(events->file), offset) != 0 || fseek(events->file, 0, SEEK_END) != 0)
            status = kiln_error_errno(err, path);
    } else {
        status = put_version(events, err);
    }
    if (status >= 0)
        *ret = events;
    else
        kiln_events_close(events);
    return status;
}

KilnStatus kiln_events_add(KilnEvents *events, const KilnEvent *event, KilnError *err)
{
    KilnEventBytes message = { 0 };
    KilnStatus status = kiln_event_encode(event, &message, err);

    return status >= 0 ? put_record(events, &message, err) : status;
}

KilnStatus kiln_events_flush(KilnEvents *events, KilnError *err)
{
    if (fflush(events->file) != 0)
        return kiln_error_errno(err, events->path);
    return KILN_OK;
}

int64_t kiln_events_offset(const KilnEvents *events)
{
    return events->offset;
}

void kiln_events_close(KilnEvents *events)
{
    if (events == NULL)
        return;
    if (events->file != NULL)
        fclose(events->file);
    free(events->path);
    free(events);
}

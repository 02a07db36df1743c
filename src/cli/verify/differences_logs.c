/* Compares what loggers wrote, without wall-clock times. */
#define _GNU_SOURCE /* memmem */
#include "cli/verify/differences.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/system/file.h"

static const size_t largest = (size_t)1 << 30;

/* A logger's file, read record by record. */
typedef struct Log {
    char *data; /* owned */
    size_t size, at;
} Log;

/* A record without its wall-clock time; zero after the last one. */
typedef struct Record {
    const char *data;
    size_t size;
    char *owned; /* NULL: `data` is part of the file */
} Record;

typedef KilnStatus NextRecord(Log *log, const char *file, Record *ret, KilnError *err);

/* The next line, NUL-terminated; NULL after the last one. */
static char *next_line(Log *log)
{
    char *line = log->data + log->at, *end = strchr(line, '\n');

    if (*line == '\0')
        return NULL;
    if (end != NULL)
        *end = '\0';
    log->at = end != NULL ? (size_t)(end + 1 - log->data) : log->size;
    return line;
}

/* metrics.csv: a line without the sixth column, the wall-clock time. */
static KilnStatus next_row(Log *log, const char *file, Record *ret, KilnError *err)
{
    enum { WALL_TIME = 5 };
    char *line = next_line(log), *from = line;

    (void)file;
    (void)err;
    for (int column = 0; column < WALL_TIME && from != NULL; column++)
        from = strchr(from, ',') != NULL ? strchr(from, ',') + 1 : NULL;
    if (from != NULL)
        memmove(from, from + strcspn(from, ","), strlen(from + strcspn(from, ",")) + 1);
    *ret = (Record) { .data = line, .size = line != NULL ? strlen(line) : 0 };
    return KILN_OK;
}

/* metrics.jsonl: an object without its time, as text that is equal for equal objects. Objects of
 * measurements are skipped. */
static KilnStatus next_object(Log *log, const char *file, Record *ret, KilnError *err)
{
    char *line, *text = NULL;

    (void)file;
    (void)err;
    while (text == NULL && (line = next_line(log)) != NULL) {
        json_t *object = json_loads(line, 0, NULL);

        if (json_object_get(object, "measured") == NULL) {
            (void)json_object_del(object, "wall_time");
            text = object != NULL ? kiln_json_dump(object, JSON_COMPACT | JSON_REAL_PRECISION(17))
                                  : kiln_strdup(line);
        }
        json_decref(object);
    }
    *ret = (Record) { .data = text, .size = text != NULL ? strlen(text) : 0, .owned = text };
    return KILN_OK;
}

/* TensorBoard: an event after its wall-clock time, which comes first (Event.wall_time, field 1, a
 * double). A record is: size, its checksum, data, their checksum (TFRecord). Events of the HPARAMS
 * page hold times, and are skipped. */
static KilnStatus next_event(Log *log, const char *file, Record *ret, KilnError *err)
{
    enum { HEAD = 12, FOOT = 4, TIME = 9, TIME_TAG = 0x09 };
    static const char hparams[] = "_hparams_/";

    *ret = (Record) { 0 };
    while (ret->size == 0 && log->at < log->size) {
        const char *record = log->data + log->at;
        const size_t room = log->size - log->at;
        uint64_t size = 0;

        for (int i = 0; i < 8 && room >= HEAD; i++)
            size |= (uint64_t)(uint8_t)record[i] << (8 * i);
        if (room < HEAD + FOOT || size < TIME || size > room - HEAD - FOOT ||
            record[HEAD] != TIME_TAG)
            return kiln_error_set(err, KILN_E_FORMAT, "%s: is damaged at byte %zu", file, log->at);
        log->at += HEAD + (size_t)size + FOOT;
        if (memmem(record + HEAD, (size_t)size, hparams, strlen(hparams)) == NULL)
            *ret = (Record) { .data = record + HEAD + TIME, .size = (size_t)size - TIME };
    }
    return KILN_OK;
}

/* ---- Comparing ------------------------------------------------------------------------------ */

static void add_difference(KilnDifferences *found, const char *file, long number, bool is_text,
                           const Record records[2])
{
    enum { SHOWN = 160 /* bytes of a line in a message */ };
    const Record *a = &records[0], *b = &records[1];

    if (a->data == NULL || b->data == NULL)
        kiln_differences_add(found, "%s: %s %ld: only in the %s", file, is_text ? "line" : "event",
                             number, found->sides[a->data == NULL]);
    else if (is_text)
        kiln_differences_add(found, "%s: line %ld: %.*s and %.*s", file, number, (int)SHOWN,
                             a->data, (int)SHOWN, b->data);
    else
        kiln_differences_add(found, "%s: event %ld: differs", file, number);
}

static KilnStatus compare_records(Log logs[2], const char *file, NextRecord *next,
                                  KilnDifferences *found, KilnError *err)
{
    KilnStatus status = KILN_OK;
    bool more = true;

    for (long number = 1; more && status >= 0; number++) {
        Record records[2] = { { 0 } };

        for (int i = 0; i < 2 && status >= 0; i++)
            status = next(&logs[i], file, &records[i], err);
        more = records[0].data != NULL || records[1].data != NULL;
        if (status >= 0 && more &&
            (records[0].data == NULL || records[1].data == NULL ||
             records[0].size != records[1].size ||
             memcmp(records[0].data, records[1].data, records[0].size) != 0))
            add_difference(found, file, number, next != next_event, records);
        free(records[0].owned);
        free(records[1].owned);
    }
    return status;
}

static KilnStatus compare_log(const char *const dirs[2], const char *file, NextRecord *next,
                              KilnDifferences *found, KilnError *err)
{
    char *paths[2] = { kiln_path_join(dirs[0], file), kiln_path_join(dirs[1], file) };
    Log logs[2] = { { 0 } };
    KilnStatus status = KILN_OK;

    for (int i = 0; i < 2 && status >= 0; i++) {
        if (paths[i] == NULL)
            status = kiln_error_nomem(err, 1);
        else if (kiln_is_file(paths[i]))
            status = kiln_file_read(paths[i], largest, &logs[i].data, &logs[i].size, err);
    }
    if (status >= 0 && (logs[0].data == NULL) != (logs[1].data == NULL))
        kiln_differences_add(found, "%s: only in the %s", file, found->sides[logs[0].data == NULL]);
    else if (status >= 0 && logs[0].data != NULL)
        status = compare_records(logs, file, next, found, err);
    for (int i = 0; i < 2; i++) {
        free(paths[i]);
        free(logs[i].data);
    }
    return status;
}

KilnStatus kiln_differences_logs(const char *a, const char *b, KilnDifferences *found,
                                 KilnError *err)
{
    const char *const dirs[2] = { a, b };
    KilnStatus status = compare_log(dirs, "metrics.csv", next_row, found, err);

    if (status >= 0)
        status = compare_log(dirs, "metrics.jsonl", next_object, found, err);
    if (status >= 0)
        status = compare_log(dirs, "tensorboard/events.out.tfevents.0.kiln", next_event, found,
                             err);
    return status;
}

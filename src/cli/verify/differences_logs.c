/* Comparing what loggers wrote, without the time of day. */
#define _GNU_SOURCE /* memmem */
#include "base/json.h"
#include "cli/verify/differences.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "base/text.h"

static const size_t largest = (size_t)1 << 30;

enum { SHOWN = 160 /* bytes of a line in a message */ };

typedef struct Text {
    char *data; /* owned */
    size_t size, at;
} Text;

/* The next line, its end cut off; NULL behind the last one. */
static char *next_line(Text *text)
{
    char *line = text->data + text->at, *end = strchr(line, '\n');

    if (*line == '\0')
        return NULL;
    if (end != NULL)
        *end = '\0';
    text->at = end != NULL ? (size_t)(end + 1 - text->data) : text->size;
    return line;
}

static void note(KilnDifferences *found, const char *file, long number, const char *a,
                 const char *b)
{
    if (a == NULL || b == NULL)
        kiln_differences_add(found, "%s: line %ld: only in the %s run: %.*s", file, number,
                             b == NULL ? "undisturbed" : "resumed", (int)SHOWN, a != NULL ? a : b);
    else
        kiln_differences_add(found, "%s: line %ld: %.*s and %.*s", file, number, (int)SHOWN, a,
                             (int)SHOWN, b);
}

/* ---- metrics.csv --------------------------------------------------------------------------- */

/* The cell of a measured column goes: the one before the sixth comma, in the header too. */
static void cut_wall_time(char *line)
{
    enum { WALL_TIME = 5 };
    char *from = line;

    for (int column = 0; column < WALL_TIME && from != NULL; column++)
        from = strchr(from, ',') != NULL ? strchr(from, ',') + 1 : NULL;
    if (from != NULL)
        memmove(from, from + strcspn(from, ","), strlen(from + strcspn(from, ",")) + 1);
}

static KilnStatus compare_rows(Text texts[2], const char *file, KilnDifferences *found,
                               KilnError *err)
{
    (void)err;
    for (long number = 1;; number++) {
        char *lines[2] = { next_line(&texts[0]), next_line(&texts[1]) };

        if (lines[0] == NULL && lines[1] == NULL)
            return KILN_OK;
        for (int i = 0; i < 2; i++)
            if (lines[i] != NULL)
                cut_wall_time(lines[i]);
        if (lines[0] == NULL || lines[1] == NULL || strcmp(lines[0], lines[1]) != 0)
            note(found, file, number, lines[0], lines[1]);
    }
}

/* ---- metrics.jsonl ------------------------------------------------------------------------- */

/* The next line with values that are no measurements, without its time, as text that is equal
 * for equal objects; NULL behind the last one. Owned by the caller. */
static char *next_object(Text *text)
{
    char *line, *plain = NULL;

    while (plain == NULL && (line = next_line(text)) != NULL) {
        json_t *object = json_loads(line, 0, NULL);

        if (json_object_get(object, "measured") == NULL) {
            (void)json_object_del(object, "wall_time");
            plain = object != NULL ? kiln_json_dump(object, JSON_COMPACT | JSON_REAL_PRECISION(17))
                                   : kiln_strdup(line);
        }
        json_decref(object);
    }
    return plain;
}

static KilnStatus compare_objects(Text texts[2], const char *file, KilnDifferences *found,
                                  KilnError *err)
{
    bool more = true;

    (void)err;
    for (long number = 1; more; number++) {
        char *lines[2] = { next_object(&texts[0]), next_object(&texts[1]) };

        more = lines[0] != NULL || lines[1] != NULL;
        if (more && (lines[0] == NULL || lines[1] == NULL || strcmp(lines[0], lines[1]) != 0))
            note(found, file, number, lines[0], lines[1]);
        free(lines[0]);
        free(lines[1]);
    }
    return KILN_OK;
}

/* ---- TensorBoard's events ------------------------------------------------------------------ */

typedef struct Event {
    const char *data;
    size_t size;
} Event;

/* The next event behind its wall time, which comes first (Event.wall_time, field 1, a double);
 * of size 0 behind the last one. Records are: size, its sum, data, their sum (TFRecord). What
 * is for the HPARAMS page holds times of its own, and is passed by. */
static KilnStatus next_event(Text *text, const char *file, Event *ret, KilnError *err)
{
    enum { HEAD = 12, FOOT = 4, TIME = 9, TIME_TAG = 0x09 };
    static const char hparams[] = "_hparams_/";

    *ret = (Event) { 0 };
    while (ret->size == 0 && text->at < text->size) {
        const char *record = text->data + text->at;
        const size_t room = text->size - text->at;
        uint64_t size = 0;

        for (int i = 0; i < 8 && room >= HEAD; i++)
            size |= (uint64_t)(uint8_t)record[i] << (8 * i);
        if (room < HEAD + FOOT || size < TIME || size > room - HEAD - FOOT ||
            record[HEAD] != TIME_TAG)
            return kiln_error_set(err, KILN_E_FORMAT, "%s: is damaged at byte %zu", file, text->at);
        text->at += HEAD + (size_t)size + FOOT;
        if (memmem(record + HEAD, (size_t)size, hparams, strlen(hparams)) == NULL)
            *ret = (Event) { record + HEAD + TIME, (size_t)size - TIME };
    }
    return KILN_OK;
}

static KilnStatus compare_events(Text texts[2], const char *file, KilnDifferences *found,
                                 KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (long number = 1; status >= 0; number++) {
        Event events[2];

        status = next_event(&texts[0], file, &events[0], err);
        if (status >= 0)
            status = next_event(&texts[1], file, &events[1], err);
        if (status < 0 || (events[0].size == 0 && events[1].size == 0))
            break;
        if (events[0].size == 0 || events[1].size == 0)
            kiln_differences_add(found, "%s: event %ld: only in the %s run", file, number,
                                 events[1].size == 0 ? "undisturbed" : "resumed");
        else if (events[0].size != events[1].size ||
                 memcmp(events[0].data, events[1].data, events[0].size) != 0)
            kiln_differences_add(found, "%s: event %ld: differs", file, number);
    }
    return status;
}

/* ---- All of them ---------------------------------------------------------------------------- */

typedef KilnStatus Compare(Text texts[2], const char *file, KilnDifferences *found, KilnError *err);

static KilnStatus compare_file(const char *const dirs[2], const char *file, Compare *compare,
                               KilnDifferences *found, KilnError *err)
{
    char *paths[2] = { kiln_path_join(dirs[0], file), kiln_path_join(dirs[1], file) };
    Text texts[2] = { { 0 } };
    bool there[2] = { false, false };
    KilnStatus status = KILN_OK;

    for (int i = 0; i < 2 && status >= 0; i++) {
        if (paths[i] == NULL)
            status = kiln_error_nomem(err, 1);
        else if ((there[i] = kiln_is_file(paths[i])))
            status = kiln_file_read(paths[i], largest, &texts[i].data, &texts[i].size, err);
    }
    if (status >= 0 && there[0] != there[1])
        kiln_differences_add(found, "%s: only in the %s run", file,
                             there[0] ? "undisturbed" : "resumed");
    else if (status >= 0 && there[0])
        status = compare(texts, file, found, err);
    for (int i = 0; i < 2; i++) {
        free(paths[i]);
        free(texts[i].data);
    }
    return status;
}

KilnStatus kiln_differences_logs(const char *a, const char *b, KilnDifferences *found,
                                 KilnError *err)
{
    const char *const dirs[2] = { a, b };
    KilnStatus status = compare_file(dirs, "metrics.csv", compare_rows, found, err);

    if (status >= 0)
        status = compare_file(dirs, "metrics.jsonl", compare_objects, found, err);
    if (status >= 0)
        status = compare_file(dirs, "tensorboard/events.out.tfevents.0.kiln", compare_events, found,
                              err);
    return status;
}

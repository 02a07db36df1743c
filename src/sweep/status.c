/* How far a sweep is, from its journal, read without owning it. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "base/system/journal.h"
#include "sweep/sweep.h"

enum { LARGEST = 1 << 28 };

typedef struct Counting {
    bool *ended; /* by job */
    size_t room, jobs;
} Counting;

static bool make_room(Counting *counting, size_t job)
{
    if (job < counting->room)
        return true;
    const size_t room = job * 2 + 64;
    bool *ended = realloc(counting->ended, room * sizeof(*ended));
    if (ended == NULL)
        return false;
    memset(ended + counting->room, 0, (room - counting->room) * sizeof(*ended));
    counting->ended = ended;
    counting->room = room;
    return true;
}

static bool count_record(Counting *counting, const json_t *record)
{
    const char *event = json_string_value(json_object_get(record, "event"));
    const json_int_t job = json_integer_value(json_object_get(record, "job"));

    if (event == NULL || job < 0 || job > 1 << 24)
        return true;
    if (!make_room(counting, (size_t)job))
        return false;
    if (strcmp(event, "submitted") == 0 && (size_t)job >= counting->jobs)
        counting->jobs = (size_t)job + 1;
    else if (strcmp(event, "started") == 0)
        counting->ended[job] = false;
    else if (strcmp(event, "ended") == 0)
        counting->ended[job] = true;
    return true;
}

KilnStatus kiln_sweep_status(const char *dir, size_t *ret_jobs, size_t *ret_ended, KilnError *err)
{
    char *path = kiln_path_join(dir, KILN_JOURNAL_FILE), *text = NULL;
    Counting counting = { 0 };
    size_t size = 0;
    KilnStatus status = path == NULL ? kiln_error_nomem(err, strlen(dir))
                                     : kiln_file_read(path, LARGEST, &text, &size, err);

    for (const char *line = text; status >= 0 && *line != '\0';) {
        const size_t length = strcspn(line, "\n");
        json_t *record = json_loadb(line, length, 0, NULL); /* the last one may be torn */

        if (!count_record(&counting, record))
            status = kiln_error_nomem(err, counting.room);
        json_decref(record);
        line += length + (line[length] == '\n');
    }
    if (status >= 0) {
        *ret_jobs = counting.jobs;
        *ret_ended = 0;
        for (size_t i = 0; i < counting.jobs && i < counting.room; i++)
            *ret_ended += counting.ended[i];
    }
    free(counting.ended);
    free(text);
    free(path);
    return status;
}

/* Counts the jobs of a sweep in its journal, which another process may own. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "base/system/journal.h"
#include "kiln/array.h"
#include "sweep/sweep.h"

enum { MAX_JOURNAL = 1 << 28 };

typedef struct Counting {
    bool *ended; /* by job */
    size_t capacity, jobs;
} Counting;

static bool count_record(Counting *counting, const json_t *record)
{
    const char *event = json_string_value(json_object_get(record, "event"));
    const json_int_t job = json_integer_value(json_object_get(record, "job"));

    if (event == NULL || job < 0 || job > 1 << 24)
        return true;
    if (!KILN_RESERVE(counting->ended, counting->capacity, (size_t)job + 1))
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
                                     : kiln_file_read(path, MAX_JOURNAL, &text, &size, err);

    for (const char *line = text; status >= 0 && *line != '\0';) {
        const size_t length = strcspn(line, "\n");
        json_t *record = json_loadb(line, length, 0, NULL); /* the last one may be torn */

        if (!count_record(&counting, record))
            status = kiln_error_nomem(err, counting.capacity);
        json_decref(record);
        line += length + (line[length] == '\n');
    }
    if (status >= 0) {
        *ret_jobs = counting.jobs;
        *ret_ended = 0;
        for (size_t i = 0; i < counting.jobs && i < counting.capacity; i++)
            *ret_ended += counting.ended[i];
    }
    free(counting.ended);
    free(text);
    free(path);
    return status;
}

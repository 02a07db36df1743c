/* The record of submissions: a line before jobs are submitted, one after it, and one when a job has
 * ended. A launcher that was killed in between finds the array by its script. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/parse.h"
#include "base/system/file.h"
#include "base/text.h"
#include "kiln/array.h"
#include "kiln/slurm/slurm.h"

enum { MAX_RECORD = 1 << 28, MAX_NUMBER = 1 << 30 };

/* ---- In memory -------------------------------------------------------------------------- */

static bool set_submission(KilnSlurmRecord *record, int64_t job, int64_t submission)
{
    const size_t n = (size_t)job + 1;

    if (!KILN_RESERVE(record->submission, record->jobs_capacity, n))
        return false;
    if (n > record->n_jobs)
        record->n_jobs = n;
    record->submission[job] = submission;
    return true;
}

static bool set_array(KilnSlurmRecord *record, int64_t submission, int64_t array)
{
    const size_t n = (size_t)submission;

    if (!KILN_RESERVE(record->array, record->arrays_capacity, n + 1))
        return false;
    if (n > record->n_submissions)
        record->n_submissions = n;
    record->array[n] = array;
    return true;
}

int64_t kiln_slurm_record_find(const KilnSlurmRecord *record, size_t job)
{
    return job < record->n_jobs ? record->submission[job] : 0;
}

/* ---- Reading ---------------------------------------------------------------------------- */

/* The next number of a line, less than `end`; false: there is none. */
static bool take_number(char **line, int64_t end, int64_t *ret)
{
    char *word = *line + strspn(*line, " ");
    const size_t n = strcspn(word, " ");
    const bool more = word[n] != '\0';

    if (n == 0)
        return false;
    word[n] = '\0';
    *line = word + n + more;
    return kiln_parse_i64(word, ret, NULL) >= 0 && *ret >= 0 && *ret < end;
}

/* "token 1795949799000"; "submit 3 0 1 2": jobs 0, 1 and 2 are in submission 3; "array 3 1234";
 * "end 1". Other lines, such as one that is not complete, are skipped. */
static bool read_line(KilnSlurmRecord *record, char *line)
{
    const size_t n = strcspn(line, " ");
    const bool words = line[n] == ' ';
    char *rest = line + n + words;
    int64_t number = 0, value;
    bool ok = true;

    line[n] = '\0';
    if (strcmp(line, "token") == 0) {
        (void)take_number(&rest, INT64_MAX, &record->token);
        return true;
    }
    if (!take_number(&rest, MAX_NUMBER, &number))
        return true;
    if (strcmp(line, "submit") == 0 && number > 0) {
        ok = set_array(record, number, 0);
        while (ok && take_number(&rest, MAX_NUMBER, &value))
            ok = set_submission(record, value, number);
    } else if (strcmp(line, "array") == 0 && number > 0) {
        ok = !take_number(&rest, INT64_MAX, &value) || set_array(record, number, value);
    } else if (strcmp(line, "end") == 0) {
        ok = set_submission(record, number, 0);
    }
    return ok;
}

static KilnStatus read_record(KilnSlurmRecord *record, const char *path, KilnError *err)
{
    char *text = NULL, *end;
    size_t size = 0;
    bool ok = true;

    if (!kiln_is_file(path))
        return KILN_OK;
    KilnStatus status = kiln_file_read(path, MAX_RECORD, &text, &size, err);
    for (char *line = text; status >= 0 && ok && (end = strchr(line, '\n')) != NULL;
         line = end + 1) {
        *end = '\0';
        ok = read_line(record, line);
    }
    free(text);
    return ok ? status : kiln_error_nomem(err, record->n_jobs);
}

/* ---- Opening ---------------------------------------------------------------------------- */

/* Append a line; the newline before it ends one that a killed launcher left incomplete. */
static KilnStatus append(const KilnSlurmRecord *record, KilnText *line, KilnError *err)
{
    KilnText whole = { .failed = line->failed };
    KilnStatus status = KILN_OK;

    if (line->data != NULL)
        kiln_text_printf(&whole, "\n%s\n", line->data);
    if (whole.failed)
        status = kiln_error_nomem(err, line->length);
    else if (!kiln_fd_write(record->fd, whole.data, whole.length) || fdatasync(record->fd) != 0)
        status = kiln_error_errno(err, record->dir);
    kiln_text_release(&whole);
    kiln_text_release(line);
    return status;
}

/* Scripts of two sweeps in the same folder, of which the first was removed, have different names.
 */
static KilnStatus write_token(KilnSlurmRecord *record, KilnError *err)
{
    struct timespec now = { 0 };
    KilnText line = { 0 };

    clock_gettime(CLOCK_REALTIME, &now);
    record->token = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
    kiln_text_printf(&line, "token %lld", (long long)record->token);
    return append(record, &line, err);
}

KilnStatus kiln_slurm_record_open(const char *sweep, KilnSlurmRecord *ret, KilnError *err)
{
    KilnSlurmRecord record = { .fd = -1, .dir = kiln_path_join(sweep, ".kiln/slurm") };
    char *path = record.dir != NULL ? kiln_path_join(record.dir, "submitted") : NULL;
    KilnStatus status = path != NULL ? kiln_dir_make(record.dir, err)
                                     : kiln_error_nomem(err, strlen(sweep));

    if (status >= 0)
        status = read_record(&record, path, err);
    if (status >= 0 && (record.fd = kiln_fd_open(path, O_WRONLY | O_CREAT | O_APPEND)) < 0)
        status = kiln_error_errno(err, path);
    if (status >= 0 && record.token == 0)
        status = write_token(&record, err);
    free(path);
    if (status < 0)
        kiln_slurm_record_close(&record);
    else
        *ret = record;
    return status;
}

void kiln_slurm_record_close(KilnSlurmRecord *record)
{
    if (record->dir != NULL && record->fd >= 0)
        close(record->fd);
    free(record->dir);
    free(record->submission);
    free(record->array);
    *record = (KilnSlurmRecord) { .fd = -1 };
}

/* ---- Writing ---------------------------------------------------------------------------- */

KilnStatus kiln_slurm_record_begin(KilnSlurmRecord *record, const size_t *jobs, size_t n,
                                   int64_t *ret, KilnError *err)
{
    const int64_t submission = (int64_t)record->n_submissions + 1;
    bool ok = set_array(record, submission, 0);
    KilnText line = { 0 };

    kiln_text_printf(&line, "submit %lld", (long long)submission);
    for (size_t i = 0; i < n && ok; i++) {
        ok = set_submission(record, (int64_t)jobs[i], submission);
        kiln_text_printf(&line, " %zu", jobs[i]);
    }
    line.failed = line.failed || !ok;
    KilnStatus status = append(record, &line, err);
    if (status >= 0)
        *ret = submission;
    return status;
}

KilnStatus kiln_slurm_record_array(KilnSlurmRecord *record, int64_t submission, int64_t array,
                                   KilnError *err)
{
    KilnText line = { 0 };

    record->array[submission] = array;
    kiln_text_printf(&line, "array %lld %lld", (long long)submission, (long long)array);
    return append(record, &line, err);
}

KilnStatus kiln_slurm_record_end(KilnSlurmRecord *record, size_t job, KilnError *err)
{
    KilnText line = { 0 };

    if (kiln_slurm_record_find(record, job) == 0)
        return KILN_OK;
    record->submission[job] = 0;
    kiln_text_printf(&line, "end %zu", job);
    return append(record, &line, err);
}

char *kiln_slurm_record_script(const KilnSlurmRecord *record, int64_t submission)
{
    KilnText path = { 0 };

    kiln_text_printf(&path, "%s/%lld-%lld.sh", record->dir, (long long)submission,
                     (long long)record->token);
    return kiln_text_take(&path);
}

KilnStatus kiln_slurm_record_write(const char *script, const KilnText *text, KilnError *err)
{
    if (text->failed)
        return kiln_error_nomem(err, text->length);
    return kiln_file_write(script, text->data, text->length, err);
}

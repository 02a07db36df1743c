/* Slurm's queue, as squeue prints it. */
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "kiln/array.h"
#include "kiln/slurm/slurm.h"

static const double longest_squeue_s = 60.0;

/* The next field of a line, which is cut off there; NULL: there is none. */
static char *take_field(char **line)
{
    char *field = *line, *bar = strchr(field, '|');

    if (bar == NULL)
        return NULL;
    *bar = '\0';
    *line = bar + 1;
    return field;
}

/* Slurm could not start the script, and does not try again. The words of versions differ. */
static bool is_held(const char *reason)
{
    return strcmp(reason, "launch failed requeued held") == 0 ||
           strcmp(reason, "launch_failed_requeued_held") == 0;
}

/* "12|3|RUNNING|None|/path/script.sh"; jobs without an array have no index and are skipped. */
static bool read_entry(char *line, KilnSlurmEntry *ret)
{
    const char *array = take_field(&line);
    const char *index = array != NULL ? take_field(&line) : NULL;

    ret->state = index != NULL ? take_field(&line) : NULL;
    const char *reason = ret->state != NULL ? take_field(&line) : NULL;
    ret->held = reason != NULL && is_held(reason);
    ret->script = line;
    return reason != NULL && kiln_parse_i64(array, &ret->array, NULL) >= 0 &&
           kiln_parse_i64(index, &ret->index, NULL) >= 0;
}

static int compare(const void *a, const void *b)
{
    const KilnSlurmEntry *x = a, *y = b;

    if (x->array != y->array)
        return x->array < y->array ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

static KilnStatus read_entries(KilnSlurmQueue *queue, KilnError *err)
{
    for (char *line = queue->text, *end; *line != '\0'; line = end) {
        KilnSlurmEntry entry;

        end = line + strcspn(line, "\n");
        if (*end == '\n')
            *end++ = '\0';
        if (!read_entry(line, &entry))
            continue;
        if (!KILN_RESERVE(queue->entries, queue->capacity, queue->count + 1))
            return kiln_error_nomem(err, queue->count);
        queue->entries[queue->count++] = entry;
    }
    if (queue->count > 0)
        qsort(queue->entries, queue->count, sizeof(*queue->entries), compare);
    return KILN_OK;
}

KilnStatus kiln_slurm_queue_read(KilnSlurmQueue *queue, KilnError *err)
{
    static const char *const line[] = { "squeue",  "--noheader",   "--me",
                                        "--array", "--states=all", "--format=%F|%K|%T|%r|%o" };
    KilnSlurmQueue next = { .text = NULL };
    KilnProgramEnd end = { .status = 0 };
    KilnArgv words = { .items = NULL };

    for (size_t i = 0; i < KILN_COUNT(line); i++)
        kiln_argv_add(&words, "%s", line[i]);
    KilnStatus status = kiln_program_run(&words, longest_squeue_s, &end, err);
    if (status >= 0 && end.status != 0)
        status = kiln_error_set(err, KILN_E_IO, "squeue failed (exit status %d): %.500s",
                                end.status, end.errors.data != NULL ? end.errors.data : "");
    if (status >= 0 && (next.text = kiln_text_take(&end.output)) == NULL)
        status = kiln_error_nomem(err, end.output.length);
    if (status >= 0)
        status = read_entries(&next, err);
    kiln_slurm_queue_release(status >= 0 ? queue : &next);
    if (status >= 0)
        *queue = next;
    kiln_program_release(&end);
    kiln_argv_release(&words);
    return status;
}

void kiln_slurm_queue_release(KilnSlurmQueue *queue)
{
    free(queue->text);
    free(queue->entries);
    *queue = (KilnSlurmQueue) { .text = NULL };
}

const KilnSlurmEntry *kiln_slurm_queue_find(const KilnSlurmQueue *queue, int64_t array,
                                            int64_t index)
{
    const KilnSlurmEntry key = { .array = array, .index = index };

    return queue->count > 0 ? bsearch(&key, queue->entries, queue->count, sizeof(key), compare)
                            : NULL;
}

int64_t kiln_slurm_queue_array(const KilnSlurmQueue *queue, const char *script)
{
    for (size_t i = 0; i < queue->count; i++)
        if (strcmp(queue->entries[i].script, script) == 0)
            return queue->entries[i].array;
    return 0;
}

KilnSlurmPhase kiln_slurm_phase(const KilnSlurmEntry *entry)
{
    static const struct {
        const char *state;
        KilnSlurmPhase phase;
    } phases[] = {
        { "CONFIGURING", KILN_SLURM_RUNS }, { "RUNNING", KILN_SLURM_RUNS },
        { "RESIZING", KILN_SLURM_RUNS },    { "SIGNALING", KILN_SLURM_RUNS },
        { "STOPPED", KILN_SLURM_RUNS },     { "SUSPENDED", KILN_SLURM_RUNS },
        { "COMPLETING", KILN_SLURM_ENDS },  { "STAGE_OUT", KILN_SLURM_ENDS },
        { "BOOT_FAIL", KILN_SLURM_GONE },   { "CANCELLED", KILN_SLURM_GONE },
        { "COMPLETED", KILN_SLURM_GONE },   { "DEADLINE", KILN_SLURM_GONE },
        { "FAILED", KILN_SLURM_GONE },      { "LAUNCH_FAILED", KILN_SLURM_GONE },
        { "NODE_FAIL", KILN_SLURM_GONE },   { "OUT_OF_MEMORY", KILN_SLURM_GONE },
        { "PREEMPTED", KILN_SLURM_GONE },   { "RECONFIG_FAIL", KILN_SLURM_GONE },
        { "REVOKED", KILN_SLURM_GONE },     { "TIMEOUT", KILN_SLURM_GONE },
    };

    if (entry == NULL)
        return KILN_SLURM_GONE;
    for (size_t i = 0; i < KILN_COUNT(phases); i++)
        if (strcmp(phases[i].state, entry->state) == 0)
            return phases[i].phase;
    return KILN_SLURM_WAITS; /* PENDING, REQUEUED, REQUEUE_HOLD and the like */
}

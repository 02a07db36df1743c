/* Submits jobs that were taken, in arrays. */
#include <stdlib.h>
#include <string.h>

#include "kiln/tools/clock.h"
#include "kiln/slurm/slurm_tasks.h"

static const double first_retry_s = 3.0, retry_s = 30.0;
enum { MAX_TRIES = 20 /* while no task is in the queue */ };

static size_t block_of(size_t job)
{
    return job / KILN_SLURM_BLOCK;
}

static int by_number(const void *a, const void *b)
{
    const size_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* The jobs of one block that are to be submitted; the list is allocated, NULL when memory is out.
 */
static size_t *next_batch(const KilnSlurm *slurm, size_t *ret_count)
{
    size_t *jobs = calloc(slurm->n + 1, sizeof(*jobs)), n = 0;

    for (size_t i = 0; jobs != NULL && i < slurm->n; i++) {
        const KilnSlurmTask *task = &slurm->tasks[i];

        if (task->array == 0 && (n == 0 || block_of(task->job) == block_of(jobs[0])))
            jobs[n++] = task->job;
    }
    if (n > 0)
        qsort(jobs, n, sizeof(*jobs), by_number);
    *ret_count = n;
    return jobs;
}

size_t kiln_slurm_in_queue(const KilnSlurm *slurm)
{
    size_t n = 0;

    for (size_t i = 0; i < slurm->n; i++)
        n += slurm->tasks[i].array != 0;
    return n;
}

/* Write the script of a batch, and describe it in `ret`. */
static KilnStatus prepare(KilnSlurm *slurm, int64_t submission, KilnSlurmBatch *batch,
                          char **ret_script, KilnError *err)
{
    KilnText text = { 0 };
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < batch->count && status >= 0; i++)
        status = slurm->launch->command(slurm->launch->ctx, batch->jobs[i], &batch->command, err);
    if (status < 0)
        return status;
    *ret_script = kiln_slurm_record_script(&slurm->record, submission);
    batch->script = *ret_script;
    batch->dir = slurm->record.dir;
    if (*ret_script == NULL)
        return kiln_error_nomem(err, 1);
    kiln_slurm_script(slurm->options, batch, &text);
    status = kiln_slurm_record_write(*ret_script, &text, err);
    kiln_text_release(&text);
    return status;
}

static void set_array(KilnSlurm *slurm, const KilnSlurmBatch *batch, int64_t array)
{
    for (size_t i = 0; i < batch->count; i++)
        for (size_t k = 0; k < slurm->n; k++)
            if (slurm->tasks[k].job == batch->jobs[i]) {
                slurm->tasks[k].array = array;
                slurm->tasks[k].missing = 0;
                slurm->tasks[k].begun = false;
            }
}

static void print_submitted(const KilnSlurm *slurm, const KilnSlurmBatch *batch, int64_t array)
{
    char line[96];

    snprintf(line, sizeof(line), "%zu job%s submitted as Slurm job %lld", batch->count,
             batch->count == 1 ? "" : "s", (long long)array);
    slurm->launch->print(slurm->launch->ctx, line);
}

static KilnStatus submit_batch(KilnSlurm *slurm, const size_t *jobs, size_t n, KilnError *err)
{
    const KilnSlurmOptions *options = slurm->options;
    const int64_t room = options->array_parallelism - (int64_t)kiln_slurm_in_queue(slurm);
    KilnSlurmBatch batch = { .jobs = jobs, .count = n, .at_once = room > 0 ? room : 1 };
    int64_t submission = 0, array = 0;
    char *script = NULL;
    KilnStatus status = kiln_slurm_record_begin(&slurm->record, jobs, n, &submission, err);

    if (status >= 0)
        status = prepare(slurm, submission, &batch, &script, err);
    if (status >= 0)
        status = kiln_slurm_submit(options, &batch, &array, err);
    if (status >= 0)
        status = kiln_slurm_record_array(&slurm->record, submission, array, err);
    if (status >= 0) {
        set_array(slurm, &batch, array);
        print_submitted(slurm, &batch, array);
        slurm->any_submitted = true;
    }
    free(script);
    return status;
}

KilnStatus kiln_slurm_find_array(KilnSlurm *slurm, int64_t submission, int64_t *ret, KilnError *err)
{
    *ret = slurm->record.array[submission];
    if (*ret != 0)
        return KILN_OK;
    char *script = kiln_slurm_record_script(&slurm->record, submission);

    if (script == NULL)
        return kiln_error_nomem(err, 1);
    *ret = kiln_slurm_queue_array(&slurm->queue, script);
    free(script);
    return *ret != 0 ? kiln_slurm_record_array(&slurm->record, submission, *ret, err) : KILN_OK;
}

/* Tasks of which sbatch failed may be in the queue, if its answer was lost. */
static KilnStatus find_all_submitted(KilnSlurm *slurm, KilnError *err)
{
    KilnStatus status = kiln_slurm_queue_read(&slurm->queue, err);

    for (size_t i = 0; i < slurm->n && status >= 0; i++) {
        const int64_t submission = kiln_slurm_record_find(&slurm->record, slurm->tasks[i].job);

        if (slurm->tasks[i].array == 0 && submission > 0 && slurm->record.array[submission] == 0)
            status = kiln_slurm_find_array(slurm, submission, &slurm->tasks[i].array, err);
    }
    return status;
}

/* The first jobs were refused twice, and the controller answers: it is no use to try again. */
static bool is_final(KilnSlurm *slurm)
{
    return !slurm->any_submitted && slurm->tries > 1 && find_all_submitted(slurm, NULL) >= 0 &&
           kiln_slurm_in_queue(slurm) == 0;
}

/* A failure of sbatch may pass: a limit of jobs, a controller that is busy or down. */
static KilnStatus try_later(KilnSlurm *slurm, const KilnError *why, KilnError *err)
{
    const bool idle = kiln_slurm_in_queue(slurm) == 0;

    slurm->tries++;
    slurm->idle_tries = idle ? slurm->idle_tries + 1 : 0;
    if (why->status != KILN_E_IO || (idle && (slurm->idle_tries > MAX_TRIES || is_final(slurm))))
        return kiln_error_set(err, why->status, "%s", why->text);
    slurm->launch->print(slurm->launch->ctx, why->text);
    slurm->retry = kiln_clock() + (slurm->tries > 1 ? retry_s : first_retry_s);
    return KILN_OK;
}

KilnStatus kiln_slurm_submit_tasks(KilnSlurm *slurm, KilnError *err)
{
    KilnError why = { 0 };
    KilnStatus status = KILN_OK;
    size_t n = 1;

    if (kiln_clock() < slurm->retry)
        return KILN_OK;
    if (slurm->tries > 0)
        status = find_all_submitted(slurm, &why);
    while (status >= 0 && n > 0) {
        size_t *jobs = next_batch(slurm, &n);

        if (jobs == NULL)
            return kiln_error_nomem(err, slurm->n);
        if (n > 0)
            status = submit_batch(slurm, jobs, n, &why);
        free(jobs);
    }
    if (status < 0)
        return try_later(slurm, &why, err);
    slurm->tries = slurm->idle_tries = 0;
    return KILN_OK;
}

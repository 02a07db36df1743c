/* The script of a job array, and the sbatch line that submits it. Options are given by the line, so
 * that no value needs quotes in the script. */
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "base/text.h"
#include "kiln/sweep.h"
#include "kiln/slurm/slurm.h"

static const double longest_sbatch_s = 300.0;

const char *kiln_slurm_limit(const KilnSlurmOptions *options, char *buf)
{
    enum { SIZE = 64 };

    if (options->timeout_min != NULL)
        snprintf(buf, SIZE, "time limit of %lld min", (long long)*options->timeout_min);
    else
        snprintf(buf, SIZE, "time limit");
    return buf;
}

/* ---- The script ------------------------------------------------------------------------- */

static bool has_ranks(const KilnSlurmOptions *options)
{
    return options->nodes * options->tasks_per_node > 1;
}

/* srun and its arguments, up to the command. A step does not take the number of processors from its
 * job. */
static void append_srun(const KilnSlurmOptions *options, KilnText *ret)
{
    kiln_text_append(ret, "srun");
    if (options->cpus_per_task != NULL)
        kiln_text_printf(ret, " --cpus-per-task=%lld", (long long)*options->cpus_per_task);
    for (size_t i = 0; i < options->srun_args_count; i++) {
        kiln_text_char(ret, ' ');
        kiln_text_shell_word(ret, options->srun_args[i]);
    }
    if (has_ranks(options))
        kiln_text_append(ret, " sh -c 'export RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS "
                              "LOCAL_RANK=$SLURM_LOCALID; exec \"$@\"' sh");
}

void kiln_slurm_script(const KilnSlurmOptions *options, const KilnSlurmBatch *batch, KilnText *ret)
{
    const size_t base = batch->jobs[0] - batch->jobs[0] % KILN_SLURM_BLOCK;
    char limit[64];

    kiln_text_append(ret, "#!/bin/bash\n"
                          "# Jobs of a sweep of kiln, one for each task of the array.\n"
                          "task=${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}\n");
    kiln_text_printf(ret, "export %s=\"Slurm job $task on node $SLURMD_NODENAME\"\n",
                     KILN_ENV_JOB_WHERE);
    kiln_text_printf(ret, "export %s='%s'\n", KILN_ENV_JOB_LIMIT, kiln_slurm_limit(options, limit));
    kiln_text_printf(ret, "export %s=%lld\n", KILN_ENV_JOB_REQUEUE,
                     (long long)options->max_num_timeout);
    for (size_t i = 0; i < options->setup_count; i++)
        kiln_text_printf(ret, "%s\n", options->setup[i]);
    append_srun(options, ret);
    for (const char *const *word = batch->command; *word != NULL; word++) {
        kiln_text_char(ret, ' ');
        kiln_text_shell_word(ret, *word);
    }
    if (base > 0)
        kiln_text_printf(ret, " \"$((SLURM_ARRAY_TASK_ID + %zu))\"\n", base);
    else
        kiln_text_append(ret, " \"$SLURM_ARRAY_TASK_ID\"\n");
    kiln_text_printf(ret,
                     "status=$?\n"
                     "# The job has saved near its time limit, and resumes from there.\n"
                     "if [ \"$status\" -eq %d ]; then scontrol requeue \"$task\"; fi\n"
                     "exit \"$status\"\n",
                     KILN_JOB_EXIT_REQUEUE);
}

/* ---- sbatch's line ---------------------------------------------------------------------- */

/* "0-3,5": the indexes of the jobs. */
static void append_indexes(const KilnSlurmBatch *batch, KilnText *ret)
{
    for (size_t i = 0; i < batch->count;) {
        size_t last = i;

        while (last + 1 < batch->count && batch->jobs[last + 1] == batch->jobs[last] + 1)
            last++;
        kiln_text_printf(ret, "%s%zu", i > 0 ? "," : "", batch->jobs[i] % KILN_SLURM_BLOCK);
        if (last > i)
            kiln_text_printf(ret, "-%zu", batch->jobs[last] % KILN_SLURM_BLOCK);
        i = last + 1;
    }
}

static void add_text(KilnArgv *words, const char *name, const char *value)
{
    if (value != NULL)
        kiln_argv_add(words, "--%s=%s", name, value);
}

static void add_number(KilnArgv *words, const char *name, const int64_t *value)
{
    if (value != NULL)
        kiln_argv_add(words, "--%s=%lld", name, (long long)*value);
}

static void add_memory(KilnArgv *words, const double *gb)
{
    enum { MB = 1024 };

    if (gb != NULL)
        kiln_argv_add(words, "--mem=%lldM", (long long)(*gb * MB + 0.5));
}

/* As submitit does: gpu_bind=closest is --gpu-bind=closest, exclusive=true is --exclusive. */
static void add_more(KilnArgv *words, const KilnSlurmOptions *options)
{
    for (size_t i = 0; i < options->additional_parameters_count; i++) {
        const KilnPairStr *pair = &options->additional_parameters[i];
        KilnText name = { 0 };

        for (const char *c = pair->key; *c != '\0'; c++)
            kiln_text_char(&name, *c == '_' ? '-' : *c);
        if (name.failed || name.data == NULL)
            words->failed = true;
        else if (strcmp(pair->value, "true") == 0 || strcmp(pair->value, "True") == 0)
            kiln_argv_add(words, "--%s", name.data);
        else
            kiln_argv_add(words, "--%s=%s", name.data, pair->value);
        kiln_text_release(&name);
    }
}

/* Slurm replaces %A and %a. */
static void add_output(KilnArgv *words, const char *dir)
{
    KilnText text = { 0 };

    for (; *dir != '\0'; dir++)
        kiln_text_append_n(&text, *dir == '%' ? "%%" : dir, *dir == '%' ? 2 : 1);
    if (text.failed || text.data == NULL)
        words->failed = true;
    else
        kiln_argv_add(words, "--output=%s/%%A_%%a.out", text.data);
    kiln_text_release(&text);
}

void kiln_slurm_line(const KilnSlurmOptions *options, const KilnSlurmBatch *batch, KilnArgv *ret)
{
    KilnText indexes = { 0 };

    append_indexes(batch, &indexes);
    kiln_argv_add(ret, "sbatch");
    kiln_argv_add(ret, "--parsable");
    add_text(ret, "job-name", options->name);
    kiln_argv_add(ret, "--array=%s%%%lld", indexes.data != NULL ? indexes.data : "",
                  (long long)batch->at_once);
    add_output(ret, batch->dir);
    kiln_argv_add(ret, "--open-mode=append");
    kiln_argv_add(ret, "--requeue");
    if (options->signal_delay_s > 0)
        kiln_argv_add(ret, "--signal=USR1@%lld", (long long)options->signal_delay_s);
    add_number(ret, "nodes", &options->nodes);
    add_number(ret, "ntasks-per-node", &options->tasks_per_node);
    add_number(ret, "time", options->timeout_min);
    add_number(ret, "cpus-per-task", options->cpus_per_task);
    add_number(ret, "gpus-per-node", options->gpus_per_node);
    add_memory(ret, options->mem_gb);
    add_text(ret, "partition", options->partition);
    add_text(ret, "qos", options->qos);
    add_text(ret, "account", options->account);
    add_text(ret, "constraint", options->constraint);
    add_text(ret, "exclude", options->exclude);
    add_text(ret, "gres", options->gres);
    add_text(ret, "comment", options->comment);
    add_more(ret, options);
    kiln_argv_add(ret, "%s", batch->script);
    ret->failed = ret->failed || indexes.failed;
    kiln_text_release(&indexes);
}

/* The message of sbatch, without its last newline. */
static KilnStatus refused(const KilnProgramEnd *end, KilnError *err)
{
    const char *text = end->errors.length > 0 ? end->errors.data : end->output.data;
    size_t n = text != NULL ? strlen(text) : 0;

    while (n > 0 && text[n - 1] == '\n')
        n--;
    return kiln_error_set(err, KILN_E_IO, "sbatch refused the jobs (exit status %d)%s%.*s",
                          end->status, n > 0 ? ": " : "", (int)n, n > 0 ? text : "");
}

KilnStatus kiln_slurm_submit(const KilnSlurmOptions *options, const KilnSlurmBatch *batch,
                             int64_t *ret_array, KilnError *err)
{
    KilnArgv words = { .items = NULL };
    KilnProgramEnd end = { .status = 0 };

    kiln_slurm_line(options, batch, &words);
    KilnStatus status = kiln_program_run(&words, longest_sbatch_s, &end, err);
    if (status >= 0 && (end.status != 0 || end.output.data == NULL)) {
        status = refused(&end, err);
    } else if (status >= 0) {
        end.output.data[strcspn(end.output.data, ";\n")] = '\0'; /* "12;cluster" */
        if (kiln_parse_i64(end.output.data, ret_array, NULL) < 0)
            status = kiln_error_set(err, KILN_E_FORMAT, "sbatch gave no number of a job: %.200s",
                                    end.output.data);
    }
    kiln_program_release(&end);
    kiln_argv_release(&words);
    return status;
}

/* Freezes a sweep's jobs: composes and checks every config before the first job starts. Jobs run
 * from the files that job_files.c then writes. */
#define _GNU_SOURCE /* sched_getaffinity */
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "base/parse.h"
#include "config/provenance/error_list.h"
#include "config/provenance/origins_file.h"
#include "config/yaml/output.h"
#include "config/composed.h"
#include "config/tree/tree.h"
#include "config/yaml/yaml_writer.h"
#include "registry/outputs.h"
#include "sweep/sweep_state.h"

enum { LONGEST_NAME = 255 };

/* ---- Threads ------------------------------------------------------------------------------ */

static size_t processors(void)
{
    cpu_set_t set;

    return sched_getaffinity(0, sizeof(set), &set) == 0 ? (size_t)CPU_COUNT(&set) : 1;
}

static KilnStatus warn_of_threads(const char *threads, size_t n_jobs, KilnJobErrors *job_errors,
                                  size_t number)
{
    KilnErrors *errors = NULL;
    KilnError err = { 0 };
    int64_t n = 0;

    if (kiln_parse_i64(threads, &n, NULL) < 0 || n_jobs < 2 || n < 1 ||
        (size_t)n * n_jobs <= processors())
        return KILN_OK;
    KilnStatus status = kiln_errors_new(&errors);
    if (status < 0)
        return status;
    kiln_error_set(&err, KILN_OK,
                   "%zu jobs at a time with trainer.threads=%s use more threads than the %zu "
                   "processors here; leave trainer.threads at 0 to divide the processors",
                   n_jobs, threads, processors());
    kiln_errors_warn(errors, &err);
    kiln_job_errors_add(job_errors, errors, KILN_OK, number);
    kiln_errors_free(errors);
    return KILN_OK;
}

/* trainer.threads=0 means all processors; jobs that run at the same time divide them. */
static KilnStatus share_threads(const KilnSweep *sweep, KilnConfig *config, size_t number,
                                KilnJobErrors *job_errors, KilnError *err)
{
    const KilnLauncherOps *ops = kiln_instance_component(sweep->launcher)->ops.launcher;
    KilnConfigNode *trainer = kiln_node_get(kiln_config_root(config), "trainer");
    KilnEntry *entry = trainer != NULL ? kiln_node_entry(trainer, "threads") : NULL;
    const KilnConfigNode *threads = NULL;
    size_t n_jobs = ops->n_jobs(sweep->launcher), share = processors() / n_jobs;
    KilnArena *arena = kiln_config_arena(config);

    if (entry == NULL)
        return KILN_OK;
    KilnStatus status = kiln_config_resolve(config, entry->value, &threads, err);
    if (status < 0)
        return status;
    if (threads->kind != KILN_NODE_SCALAR || strcmp(threads->text, "0") != 0)
        return threads->kind == KILN_NODE_SCALAR
                   ? warn_of_threads(threads->text, n_jobs, job_errors, number)
                   : KILN_OK;
    KilnMaker maker = { .arena = arena, .layer = KILN_LAYER_ARGUMENT };
    maker.origin.source = kiln_arena_printf(arena, "%zu processors shared by %zu jobs at a time",
                                            processors(), n_jobs);
    const char *text = kiln_arena_printf(arena, "%zu", share > 0 ? share : 1);
    KilnConfigNode *node = text != NULL ? kiln_node_scalar(&maker, KILN_SCALAR_INT, text) : NULL;
    if (node == NULL || maker.origin.source == NULL)
        return kiln_error_nomem(err, sizeof(*node));
    kiln_node_replace(entry, trainer, node);
    return KILN_OK;
}

/* ---- One job ------------------------------------------------------------------------ */

/* Check that the folder is below the sweep's, and is no file of the sweep itself. */
static KilnStatus check_dir(const char *dir, KilnError *err)
{
    const char *wrong = NULL;

    if (dir[0] == '\0' || dir[0] == '/' || dir[0] == '.')
        wrong = "is not below the sweep's folder";
    for (const char *p = dir; wrong == NULL && *p != '\0';) {
        size_t length = strcspn(p, "/");

        if (length == 2 && p[0] == '.' && p[1] == '.')
            wrong = "is outside of the sweep's folder";
        else if (length > LONGEST_NAME)
            wrong = "has a name of more than 255 bytes; leave some keys out of it "
                    "(kiln.job.config.override_dirname.exclude_keys)";
        p += length + (p[length] == '/');
    }
    if (wrong == NULL && (strcmp(dir, KILN_JOURNAL_FILE) == 0 || kiln_starts_with(dir, "results.")))
        wrong = "is a file of the sweep itself";
    return wrong == NULL
               ? KILN_OK
               : kiln_error_set(err, KILN_E_TYPE, "kiln.sweep.subdir: '%.300s' %s", dir, wrong);
}

static KilnStatus set_dir(KilnSweep *sweep, const KilnConfig *config, size_t number, KilnError *err)
{
    KilnJob *job = &sweep->jobs.items[number];
    char *dir = NULL;
    KilnStatus status = kiln_config_text(config, "kiln.sweep.subdir", &dir, err);

    if (status >= 0)
        status = check_dir(dir, err);
    if (status >= 0) {
        job->dir = kiln_arena_strdup(&sweep->jobs.arena, dir);
        status = job->dir != NULL ? KILN_OK : kiln_error_nomem(err, strlen(dir));
    }
    free(dir);
    return status;
}

static KilnStatus write_overrides(const KilnJob *job, char **ret, KilnError *err)
{
    KilnText text = { 0 };

    for (const char *const *override = job->overrides; *override != NULL; override++) {
        kiln_text_append(&text, "- ");
        kiln_write_string(&text, *override);
        kiln_text_char(&text, '\n');
    }
    if (job->overrides[0] == NULL)
        kiln_text_append(&text, "[]\n");
    *ret = kiln_text_take(&text);
    return *ret != NULL ? KILN_OK : kiln_error_nomem(err, 1);
}

static KilnStatus make_files(KilnSweep *sweep, KilnConfig *config, size_t number,
                             KilnJobErrors *job_errors, KilnError *err)
{
    KilnJobFiles *files = &sweep->files[number - sweep->n_old];
    KilnStatus status = set_dir(sweep, config, number, err);

    if (status >= 0)
        status = share_threads(sweep, config, number, job_errors, err);
    if (status >= 0)
        status = kiln_config_yaml(config, NULL, true, &files->config, err);
    if (status >= 0)
        status = kiln_config_job_yaml(config, &files->references, err);
    if (status >= 0)
        status = write_overrides(&sweep->jobs.items[number], &files->overrides, err);
    if (status >= 0)
        status = kiln_config_own_yaml(config, &files->own, err);
    if (status >= 0)
        status = kiln_config_origins_yaml(config, NULL, &files->origins, err);
    if (status >= 0 && sweep->request->resume == NULL)
        kiln_config_allow_outputs(config, sweep->request->compose.registry, sweep->dir);
    return status >= 0 ? kiln_sweep_copy_configs(sweep, config, err) : status;
}

static KilnStatus freeze(KilnSweep *sweep, size_t number, KilnJobErrors *job_errors, KilnError *err)
{
    const KilnJob *job = &sweep->jobs.items[number];
    KilnErrors *errors = NULL;
    KilnConfig *config = NULL;
    KilnError wrong = { 0 };
    size_t n = 0;
    KilnStatus status = kiln_errors_new(&errors);

    if (status < 0)
        return kiln_error_nomem(err, 1);
    while (job->overrides[n] != NULL)
        n++;
    status = kiln_sweep_compose_job(sweep, job->overrides, n, number, true, &config, errors);
    kiln_job_errors_add(job_errors, errors, status, number);
    kiln_errors_free(errors);
    if (status >= 0)
        status = make_files(sweep, config, number, job_errors, &wrong);
    if (wrong.status < 0)
        kiln_job_errors_add_one(job_errors, &wrong, number);
    kiln_config_free(config);
    return status == KILN_E_NOMEM ? kiln_error_nomem(err, 1) : KILN_OK;
}

/* ---- All ---------------------------------------------------------------------------- */

typedef struct JobDir {
    const char *dir;
    size_t number;
} JobDir;

static int compare_dirs(const void *a, const void *b)
{
    return strcmp(((const JobDir *)a)->dir, ((const JobDir *)b)->dir);
}

/* Report two jobs with the same folder. */
static KilnStatus check_dirs(const KilnSweep *sweep, KilnJobErrors *job_errors, KilnError *err)
{
    size_t n = sweep->jobs.count;
    JobDir *dirs = calloc(n + 1, sizeof(*dirs));

    if (dirs == NULL)
        return kiln_error_nomem(err, n * sizeof(*dirs));
    for (size_t i = 0; i < n; i++)
        dirs[i] = (JobDir) { .dir = sweep->jobs.items[i].dir, .number = i };
    qsort(dirs, n, sizeof(*dirs), compare_dirs);
    for (size_t i = 1; i < n; i++) {
        KilnError same = { 0 };

        if (strcmp(dirs[i].dir, dirs[i - 1].dir) != 0)
            continue;
        kiln_error_set(&same, KILN_E_TYPE,
                       "kiln.sweep.subdir gives jobs #%zu and #%zu the same folder '%.300s'; "
                       "add ${kiln.job.num} to it",
                       dirs[i - 1].number, dirs[i].number, dirs[i].dir);
        kiln_job_errors_add_one(job_errors, &same, dirs[i].number);
        break;
    }
    free(dirs);
    return KILN_OK;
}

KilnStatus kiln_sweep_freeze(KilnSweep *sweep, KilnJobErrors *job_errors, KilnError *err)
{
    KilnStatus status = kiln_sweep_ask_all(sweep, err);

    if (status < 0)
        return status;
    sweep->files = calloc(sweep->jobs.count - sweep->n_old + 1, sizeof(*sweep->files));
    if (sweep->files == NULL)
        return kiln_error_nomem(err, sweep->jobs.count * sizeof(*sweep->files));
    for (size_t i = sweep->n_old; i < sweep->jobs.count && status >= 0; i++)
        status = freeze(sweep, i, job_errors, err);
    if (status >= 0 && job_errors->status >= 0)
        status = check_dirs(sweep, job_errors, err);
    return status;
}

/* Freezes a job when it starts: composes and checks its config, from the sweep's copies of its
 * sources, and writes its folder, from which alone it then runs. */
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "config/provenance/error_list.h"
#include "config/provenance/origins_file.h"
#include "config/yaml/output.h"
#include "config/composed.h"
#include "config/tree/tree.h"
#include "config/yaml/yaml_writer.h"
#include "registry/outputs.h"
#include "registry/shared_data.h"
#include "sweep/sweep_state.h"

enum { LONGEST_NAME = 255 };

/* ---- Threads ------------------------------------------------------------------------------ */

size_t kiln_sweep_at_once(const KilnSweep *sweep)
{
    if (sweep->n_jobs > 0)
        return sweep->n_jobs;
    return sweep->division.n_jobs > 0 ? sweep->division.n_jobs : 1;
}

static KilnStatus warn_of_threads(const char *threads, size_t n_jobs, size_t here, bool elsewhere,
                                  KilnJobErrors *job_errors, size_t number)
{
    KilnErrors *errors = NULL;
    KilnError err = { 0 };
    int64_t n = 0;

    if (kiln_parse_i64(threads, &n, NULL) < 0 || (n_jobs < 2 && !elsewhere) || n < 1 ||
        (size_t)n * n_jobs <= here)
        return KILN_OK;
    KilnStatus status = kiln_errors_new(&errors);
    if (status < 0)
        return status;
    if (elsewhere)
        kiln_error_set(&err, KILN_OK,
                       "trainer.threads=%s is more than the %zu processors that the launcher gives "
                       "a job; leave trainer.threads at 0 to use those",
                       threads, here);
    else
        kiln_error_set(&err, KILN_OK,
                       "%zu jobs at a time with trainer.threads=%s use more threads than the %zu "
                       "processors here; leave trainer.threads at 0 to divide the processors",
                       n_jobs, threads, here);
    kiln_errors_warn(errors, &err);
    kiln_job_errors_add(job_errors, errors, KILN_OK, number);
    kiln_errors_free(errors);
    return KILN_OK;
}

KilnStatus kiln_sweep_share_threads(const KilnSweep *sweep, KilnConfig *config, size_t number,
                                    KilnJobErrors *job_errors, KilnError *err)
{
    const KilnLauncherOps *ops = kiln_instance_component(sweep->launcher)->ops.launcher;
    KilnConfigNode *trainer = kiln_node_get(kiln_config_root(config), "trainer");
    KilnEntry *entry = trainer != NULL ? kiln_node_entry(trainer, "threads") : NULL;
    const KilnConfigNode *threads = NULL;
    const int64_t cpus = sweep->jobs.items[number].needs.cpus;
    const bool elsewhere = ops->processors != NULL;
    size_t n_jobs = elsewhere ? 1 : kiln_sweep_at_once(sweep);
    size_t here = elsewhere ? ops->processors(sweep->launcher) : sweep->processors;
    const bool measured = sweep->n_jobs == 0 && sweep->division.threads > 0;
    size_t share = cpus > 0 ? (size_t)cpus : measured ? sweep->division.threads : here / n_jobs;
    KilnArena *arena = kiln_config_arena(config);

    if (entry == NULL)
        return KILN_OK;
    KilnStatus status = kiln_config_resolve(config, entry->value, &threads, err);
    if (status < 0)
        return status;
    if (threads->kind != KILN_NODE_SCALAR || strcmp(threads->text, "0") != 0)
        return threads->kind == KILN_NODE_SCALAR
                   ? warn_of_threads(threads->text, n_jobs, here, elsewhere, job_errors, number)
                   : KILN_OK;
    KilnMaker maker = { .arena = arena, .layer = KILN_LAYER_ARGUMENT };
    maker.origin.source =
        cpus > 0    ? "kiln.needs.cpus"
        : elsewhere ? "processors that the launcher gives a job"
        : measured
            ? kiln_arena_printf(arena, "measured speed of %zu jobs at a time", n_jobs)
            : kiln_arena_printf(arena, "%zu processors shared by %zu jobs at a time", here, n_jobs);
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
    if (wrong == NULL &&
        (strcmp(dir, KILN_JOURNAL_FILE) == 0 || strcmp(dir, KILN_OPTUNA_FILE) == 0 ||
         kiln_starts_with(dir, "results.") || strcmp(dir, "report") == 0))
        wrong = "is a file or folder of the sweep itself";
    return wrong == NULL
               ? KILN_OK
               : kiln_error_set(err, KILN_E_TYPE, "kiln.sweep.subdir: '%.300s' %s", dir, wrong);
}

KilnStatus kiln_sweep_job_dir(const KilnConfig *config, char **ret, KilnError *err)
{
    char *dir = NULL;
    KilnStatus status = kiln_config_text(config, "kiln.sweep.subdir", &dir, err);

    if (status >= 0)
        status = check_dir(dir, err);
    if (status >= 0)
        *ret = dir;
    else
        free(dir);
    return status;
}

/* Set the folder of a job: one that no other job has. */
static KilnStatus set_dir(KilnSweep *sweep, const KilnConfig *config, size_t number, KilnError *err)
{
    KilnJob *job = &sweep->jobs.items[number];
    char *dir = NULL;
    KilnStatus status = kiln_sweep_job_dir(config, &dir, err);

    for (size_t i = 0; i < sweep->jobs.count && status >= 0; i++)
        if (sweep->jobs.items[i].dir != NULL && strcmp(sweep->jobs.items[i].dir, dir) == 0)
            status = kiln_error_set(err, KILN_E_TYPE,
                                    "kiln.sweep.subdir: job #%zu has the folder '%.300s' already; "
                                    "add ${kiln.job.num} to it",
                                    i, dir);
    if (status >= 0 && (job->dir = kiln_arena_strdup(&sweep->jobs.arena, dir)) == NULL)
        status = kiln_error_nomem(err, strlen(dir));
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

KilnStatus kiln_job_read_needs(KilnJob *job, const KilnConfig *config, KilnError *err)
{
    void *options = NULL;
    KilnStatus status = kiln_config_options(config, "kiln.needs", kiln_needs_fields,
                                            sizeof(KilnJobNeeds), &options, err);

    if (status >= 0)
        job->needs = *(const KilnJobNeeds *)options;
    kiln_options_free(kiln_needs_fields, sizeof(KilnJobNeeds), options);
    return status;
}

static KilnStatus make_files(KilnSweep *sweep, KilnConfig *config, size_t number,
                             KilnJobFiles *files, KilnError *err)
{
    KilnJobErrors warnings = { .items = NULL }; /* the check has reported them */
    KilnStatus status = kiln_sweep_share_threads(sweep, config, number, &warnings, err);

    if (status >= 0)
        status = kiln_config_yaml(config, NULL, true, &files->config, err);
    if (status >= 0)
        sweep->jobs.items[number].data = kiln_shared_data_key(config);
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
    kiln_job_errors_release(&warnings);
    return status;
}

KilnStatus kiln_sweep_config_of(const KilnSweep *sweep, size_t number, KilnConfig **ret,
                                KilnError *wrong)
{
    const KilnJob *job = &sweep->jobs.items[number];
    KilnErrors *errors = NULL;
    size_t n = 0;
    KilnStatus status = kiln_errors_new(&errors);

    if (status < 0)
        return kiln_error_nomem(wrong, 1);
    while (job->overrides[n] != NULL)
        n++;
    status = kiln_sweep_compose_job(sweep, job->overrides, n, number, true,
                                    sweep->arguments.sources, ret, errors);
    if (status < 0)
        kiln_error_set(wrong, status, "%s", kiln_errors_text(errors, 0));
    kiln_errors_free(errors);
    return status;
}

KilnStatus kiln_sweep_freeze(KilnSweep *sweep, size_t number, KilnError *wrong, KilnError *err)
{
    KilnJobFiles files = { .config = NULL };
    KilnConfig *config = NULL;
    KilnStatus status = KILN_OK;

    if (kiln_sweep_config_of(sweep, number, &config, wrong) >= 0 &&
        set_dir(sweep, config, number, wrong) >= 0 &&
        kiln_job_read_needs(&sweep->jobs.items[number], config, wrong) >= 0 &&
        make_files(sweep, config, number, &files, wrong) >= 0)
        status = kiln_sweep_copy_sources(sweep, config, err);
    if (wrong->status >= 0 && status >= 0)
        status = kiln_sweep_write_job(sweep, &sweep->jobs.items[number], &files, err);
    if (wrong->status >= 0 && status >= 0 && sweep->jobs.items[number].parent > 0)
        status = kiln_sweep_link_start(sweep, &sweep->jobs.items[number], wrong, err);
    if (wrong->status >= 0 && status >= 0)
        status = kiln_sweep_record_sources(sweep, err);
    if (wrong->status < 0)
        sweep->jobs.items[number].dir = NULL;
    kiln_job_files_release(&files);
    kiln_config_free(config);
    return status;
}

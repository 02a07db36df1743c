/* Finds the config that made a checkpoint, and composes it again with overrides. */
#include "train/run/checkpoint_config.h"

#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "config/override/override.h"
#include "kiln/embed/run.h"
#include "registry/outputs.h"
#include "train/checkpoint/checkpoint.h"
#include "train/run/run_config.h"

enum { LARGEST_CONFIG = 1 << 26 /* bytes */ };

/* Whether the job config in `folder` has the values of the resolved config at `path`. */
static bool is_config_of(const char *folder, const char *path, const KilnRegistry *registry)
{
    const KilnComposeRequest request = {
        .config_path = folder,
        .config_name = KILN_JOB_CONFIG,
        .registry = registry,
        .sections = kiln_run_sections(),
    };
    char *job = NULL, *resolved = NULL;
    KilnConfig *config = NULL;
    size_t size;
    const bool same = kiln_compose(&request, &config, NULL) >= 0 &&
                      kiln_config_yaml(config, NULL, true, &job, NULL) >= 0 &&
                      kiln_file_read(path, LARGEST_CONFIG, &resolved, &size, NULL) >= 0 &&
                      strcmp(job, resolved) == 0;

    kiln_config_free(config);
    free(job);
    free(resolved);
    return same;
}

KilnStatus kiln_checkpoint_config_find(const char *checkpoint, const KilnRegistry *registry,
                                       KilnCheckpointConfig *ret, KilnError *err)
{
    char *run = kiln_strdup(checkpoint);

    for (int i = 0; i < 2 && run != NULL && strrchr(run, '/') != NULL; i++)
        *strrchr(run, '/') = '\0';
    char *job = run != NULL ? kiln_path_join(run, ".kiln") : NULL;
    char *resolved = kiln_path_join(checkpoint, KILN_CHECKPOINT_CONFIG);
    const bool complete = job != NULL && resolved != NULL;
    const bool is_job = complete && is_config_of(job, resolved, registry);

    *ret = (KilnCheckpointConfig) {
        .run = run,
        .folder = is_job ? job : kiln_strdup(checkpoint),
        .name = is_job ? KILN_JOB_CONFIG : NULL,
    };
    if (!is_job)
        free(job);
    free(resolved);
    if (complete && ret->folder != NULL)
        return KILN_OK;
    kiln_checkpoint_config_release(ret);
    return kiln_error_nomem(err, strlen(checkpoint));
}

void kiln_checkpoint_config_release(KilnCheckpointConfig *config)
{
    free(config->run);
    free(config->folder);
    *config = (KilnCheckpointConfig) { 0 };
}

/* The first of the errors, without warnings. */
static KilnStatus first_error(const KilnErrors *errors, KilnStatus status, KilnError *err)
{
    for (size_t i = 0; i < kiln_errors_count(errors); i++)
        if (!kiln_errors_is_warning(errors, i))
            return kiln_error_set(err, status, "%s", kiln_errors_text(errors, i));
    return kiln_error_set(err, status, "out of memory composing the config");
}

static KilnStatus compose(const KilnComposeRequest *request, const char *run, KilnConfig **ret,
                          KilnError *err)
{
    KilnErrors *errors = NULL;
    KilnConfig *config = NULL;
    KilnStatus status = kiln_errors_new(&errors);

    if (status >= 0)
        status = kiln_compose(request, &config, errors);
    if (status >= 0)
        status = kiln_config_check(config, request->registry, errors);
    if (status >= 0)
        status = kiln_config_confine(config, request->registry, run, errors);
    if (status >= 0)
        *ret = config;
    else
        kiln_config_free(config);
    status = status >= 0 ? status : first_error(errors, status, err);
    kiln_errors_free(errors);
    return status;
}

/* The overrides, then `last`; the list is owned by the caller. */
static const char **add_override(const char *const *overrides, const char *last)
{
    size_t n = 0;

    while (overrides != NULL && overrides[n] != NULL)
        n++;
    const char **all = calloc(n + 2, sizeof(*all));
    for (size_t i = 0; i < n && all != NULL; i++)
        all[i] = overrides[i];
    if (all != NULL)
        all[n] = last;
    return all;
}

KilnStatus kiln_checkpoint_config_compose(const char *checkpoint, const KilnRegistry *registry,
                                          const char *const *overrides, KilnConfig **ret,
                                          KilnError *err)
{
    KilnCheckpointConfig found = { 0 };
    KilnText path = { 0 };

    kiln_override_quote(&path, "ckpt_path", checkpoint);
    const char **all = add_override(overrides, path.data);
    KilnStatus status = !path.failed && all != NULL
                            ? kiln_checkpoint_config_find(checkpoint, registry, &found, err)
                            : kiln_error_nomem(err, strlen(checkpoint));
    if (status >= 0) {
        const KilnComposeRequest request = {
            .config_path = found.folder,
            .config_name = found.name,
            .overrides = all,
            .registry = registry,
            .sections = kiln_run_sections(),
        };

        status = compose(&request, found.run, ret, err);
    }
    kiln_checkpoint_config_release(&found);
    kiln_text_release(&path);
    free(all);
    return status;
}

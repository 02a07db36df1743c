/* Outputs of a config that lead out of its run folder, and those that this user allowed. */
#define _XOPEN_SOURCE 700 /* realpath */
#include "registry/outputs.h"

#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "base/text.h"
#include "base/system/trust.h"
#include "config/provenance/error_list.h"
#include "config/tree/edit.h"
#include "registry/registry.h"

typedef struct Outputs {
    const char *run;    /* real path */
    KilnErrors *errors; /* NULL: allow all outputs from now on */
    KilnStatus status;
} Outputs;

/* Where a path leads, without links; owned by the caller. NULL: memory is out. */
static char *real_path(const char *path)
{
    char *whole = kiln_path_expand(path), *real = whole != NULL ? kiln_path_real(whole) : NULL;

    free(whole);
    return real;
}

static bool is_below(const char *path, const char *run)
{
    const size_t length = strlen(run);

    return strncmp(path, run, length) == 0 && path[length] == '/' &&
           strstr(path + length, "/../") == NULL && !kiln_ends_with(path, "/..");
}

static void refuse(Outputs *outputs, const char *key, const char *path, const KilnConfigNode *value)
{
    KilnError err = { 0 };

    kiln_error_set(&err, KILN_E_RANGE,
                   "%.300s: the config in %.600s would write to %.600s, outside of that folder: "
                   "give %.300s on the command line, or allow it with --trust",
                   key, outputs->run, path, key);
    (void)kiln_error_at(&err, &value->origin);
    kiln_errors_add(outputs->errors, &err);
    outputs->status = KILN_E_RANGE;
}

static void visit(void *ctx, const char *key, const KilnConfigNode *written,
                  const KilnConfigNode *value)
{
    Outputs *outputs = ctx;

    if (strcmp(value->text, "-") == 0)
        return;
    char *path = real_path(value->text);
    const KilnTrust trust = { { "output", outputs->run, path } };
    if (path == NULL)
        outputs->status = KILN_E_NOMEM;
    else if (is_below(path, outputs->run))
        ; /* its own */
    else if (outputs->errors == NULL)
        kiln_trust_allow(&trust);
    else if (written->layer == KILN_LAYER_FILE && !kiln_trust_allowed(&trust))
        refuse(outputs, key, path, value);
    free(path);
}

/* Only the user's own arguments make a run download. */
static KilnStatus forbid_download(KilnConfig *config)
{
    static const char key[] = "datamodule.download";
    const KilnConfigNode *download = kiln_node_find(kiln_config_root(config), key);
    KilnError err;

    if (download == NULL || download->layer != KILN_LAYER_FILE)
        return KILN_OK;
    return kiln_config_change(config, key, "false", "a config from a run folder", NULL, &err);
}

KilnStatus kiln_config_confine(KilnConfig *config, const KilnRegistry *registry, const char *run,
                               KilnErrors *errors)
{
    char *real = kiln_path_real(run);
    Outputs outputs = { .run = real, .errors = errors };

    if (real == NULL)
        return KILN_E_NOMEM;
    kiln_config_visit_outputs(config, registry, visit, &outputs);
    free(real);
    if (outputs.status >= 0 && errors != NULL)
        outputs.status = forbid_download(config);
    return outputs.status;
}

void kiln_config_allow_outputs(KilnConfig *config, const KilnRegistry *registry, const char *run)
{
    (void)!kiln_config_confine(config, registry, run, NULL);
}

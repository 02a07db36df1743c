/* Which outputs of a config lead out of its run folder, and which of these this user allowed. */
#define _XOPEN_SOURCE 700 /* realpath */
#include "registry/outputs.h"

#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "base/text.h"
#include "base/system/trust.h"
#include "registry/registry.h"

typedef struct Outputs {
    const char *run;    /* real path */
    KilnErrors *errors; /* NULL: all are allowed from now on */
    KilnStatus status;
} Outputs;

/* Where a value leads, without links; owned by the caller. NULL: memory is out. */
static char *real_path(const char *value)
{
    const char *home = getenv("HOME");
    KilnText whole = { 0 };

    if (home != NULL && (strcmp(value, "~") == 0 || kiln_starts_with(value, "~/"))) {
        kiln_text_append(&whole, home);
        value++;
    }
    kiln_text_append(&whole, value);
    char *path = !whole.failed ? kiln_path_real(whole.data) : NULL;
    kiln_text_release(&whole);
    return path;
}

static bool lies_in(const char *path, const char *run)
{
    const size_t length = strlen(run);

    return strncmp(path, run, length) == 0 && path[length] == '/' &&
           strstr(path + length, "/../") == NULL && !kiln_ends_with(path, "/..");
}

static void refuse(Outputs *outputs, const char *key, const char *path, const KilnConfigNode *value)
{
    KilnError err = { 0 };

    kiln_error_set(&err, KILN_E_RANGE,
                   "%.300s: the config in %.600s would write to %.600s, out of that folder: "
                   "give %.300s on the command line, or let it with --trust",
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
    else if (lies_in(path, outputs->run))
        ; /* its own */
    else if (outputs->errors == NULL)
        kiln_trust_allow(&trust);
    else if (written->layer == KILN_LAYER_FILE && !kiln_trust_allowed(&trust))
        refuse(outputs, key, path, value);
    free(path);
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
    return outputs.status;
}

void kiln_config_allow_outputs(KilnConfig *config, const KilnRegistry *registry, const char *run)
{
    char *real = kiln_path_real(run);
    Outputs outputs = { .run = real };

    if (real != NULL)
        kiln_config_visit_outputs(config, registry, visit, &outputs);
    free(real);
}

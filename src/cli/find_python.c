/* Finds the user's Python. */
#include "cli/find_python.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/system/file.h"
#include "cli/find_plugins.h"
#include "cli/open_config.h"
#include "config/compose.h"
#include "python/python_source.h"

#define VARIABLE "KILN_PYTHON"

static KilnStatus find(const KilnArgs *args, KilnArena *arena, const char **ret, KilnError *err)
{
    const KilnComposeRequest request = kiln_command_request(args, NULL);
    const char *variable = getenv(VARIABLE);
    KilnOwnValue *values = NULL;
    size_t n = 0;
    KilnStatus status = kiln_config_own(&request, "python", arena, &values, &n, err);

    *ret = variable != NULL && variable[0] != '\0' ? variable : "python3";
    if (status < 0 || n == 0)
        return status;
    if (!args->trust && !kiln_is_own_config(values[0].source))
        return kiln_error_set(err, KILN_E_PLUGIN,
                              "%s is no config of your own project, and names a program with "
                              "kiln.python: %.600s; give kiln.python=%.600s yourself if it may run",
                              values[0].source, values[0].text, values[0].text);
    *ret = values[0].text;
    return KILN_OK;
}

KilnStatus kiln_command_python(const KilnArgs *args, KilnRegistry *registry, KilnError *err)
{
    const bool in_run = kiln_in_run_folder();
    KilnArena arena = { 0 };
    KilnPythonRequest request = {
        .why = in_run ? "this folder is not searched, since it is that of a run" : NULL,
        .is_own = args->trust ? NULL : kiln_is_own_config,
        .foreign = args->foreign,
        .arguments = args->words,
    };
    char *folder = in_run ? NULL : kiln_path_real(".");
    KilnStatus status = find(args, &arena, &request.python, err);

    request.folder = folder;
    if (status >= 0)
        status = kiln_python_open(registry, &request, err);
    free(folder);
    kiln_arena_release(&arena);
    return status;
}

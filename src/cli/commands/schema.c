/* kiln schema: a JSON Schema of config files, for editors (registry/config_schema.h makes it). */
#include <stdio.h>
#include <stdlib.h>

#include "cli/commands/commands.h"
#include "cli/open_config.h"
#include "registry/config_schema.h"

static KilnStatus print(KilnArgs *args, const KilnRegistry *registry, KilnConfig *config, void *ctx,
                        KilnError *err)
{
    KilnComposeRequest request = kiln_command_request(args, registry);
    char *json = NULL;

    (void)config;
    (void)ctx;
    if (args->n_words > 1)
        return kiln_error_set(err, KILN_E_USAGE, "schema takes one group, not %zu words",
                              args->n_words);
    request.overrides = NULL; /* the word is a name */
    KilnStatus status = kiln_group_schema(&request, args->n_words > 0 ? args->words[0] : "", &json,
                                          err);
    if (status >= 0)
        puts(json);
    free(json);
    return status;
}

int kiln_command_schema(KilnArgs *args)
{
    return kiln_command_run(args, false, print, NULL);
}

/* kiln schema: a JSON Schema of config files, for editors (registry/config_schema.h makes it). */
#include <stdio.h>
#include <stdlib.h>

#include "cli/commands/commands.h"
#include "cli/open_config.h"
#include "cli/screen/screen.h"
#include "registry/config_schema.h"

int kiln_command_schema(KilnArgs *args)
{
    KilnRegistry *registry = NULL;
    KilnError err = { 0 };
    char *json = NULL;
    KilnStatus status = KILN_OK;

    if (args->n_words > 1)
        status = kiln_error_set(&err, KILN_E_USAGE, "schema takes one group, not %zu words",
                                args->n_words);
    if (status >= 0)
        status = kiln_command_registry(args, &registry);
    if (status >= 0) {
        KilnComposeRequest request = kiln_command_request(args, registry);

        request.overrides = NULL; /* the word is a name */
        status = kiln_group_schema(&request, args->n_words > 0 ? args->words[0] : "", &json, &err);
    }
    if (status >= 0)
        puts(json);
    free(json);
    const int exit_status = kiln_screen_result(args->command, status, &err);
    kiln_registry_free(registry);
    return exit_status;
}

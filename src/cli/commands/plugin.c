/* kiln plugin: components of one's own, a verb each. */
#include "cli/commands/commands.h"
#include "cli/plugin/plugin_verbs.h"
#include "cli/verb.h"

int kiln_command_plugin(KilnArgs *args)
{
    /* main.c's usage of the command lists them, too: completion reads it. */
    static const KilnVerb verbs[] = {
        { "new", kiln_plugin_verb_new },
        { "check", kiln_plugin_verb_check },
    };

    return kiln_verb_run(args, verbs, KILN_COUNT(verbs));
}

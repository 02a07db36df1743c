/* kiln sweep: what is done with the sweeps of `train -m`, a verb each. */
#include <string.h>

#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/screen/screen.h"
#include "cli/sweep/verbs.h"

/* main.c's usage of the command lists them, too: completion reads it. */
static const struct {
    const char *name;
    int (*run)(KilnArgs *args);
} verbs[] = {
    { "report", kiln_sweep_verb_report },
    { "add", kiln_sweep_verb_add },
    { "stop", kiln_sweep_verb_stop },
    { "simulate", kiln_sweep_verb_simulate },
};

static int unknown(const KilnArgs *args)
{
    const char *names[KILN_COUNT(verbs)], *nearest = NULL;
    const char *word = args->n_words > 0 ? args->words[0] : NULL;
    KilnText text = { 0 };
    KilnError err = { 0 };

    if (word != NULL)
        kiln_text_printf(&text, "%s: ", word);
    kiln_text_append(&text, "expected a verb: ");
    for (size_t i = 0; i < KILN_COUNT(verbs); i++) {
        names[i] = verbs[i].name;
        kiln_text_printf(&text, "%s%s", i > 0 ? ", " : "", names[i]);
    }
    if (word != NULL)
        nearest = kiln_nearest(word, names, KILN_COUNT(names));
    if (nearest != NULL)
        kiln_text_printf(&text, "; did you mean %s?", nearest);
    kiln_text_append(&text, " (`kiln sweep --help`)");
    return kiln_screen_result(args->command, kiln_text_to_error(&text, KILN_E_USAGE, &err), &err);
}

int kiln_command_sweep(KilnArgs *args)
{
    for (size_t i = 0; args->n_words > 0 && i < KILN_COUNT(verbs); i++) {
        if (strcmp(args->words[0], verbs[i].name) != 0)
            continue;
        memmove(args->words, args->words + 1, args->n_words * sizeof(*args->words));
        args->n_words--;
        return verbs[i].run(args);
    }
    return unknown(args);
}

/* Finds the verb of a command. */
#include "cli/verb.h"

#include <string.h>

#include "base/text.h"
#include "cli/screen/screen.h"

enum { MOST = 8 };

static int unknown(const KilnArgs *args, const KilnVerb *verbs, size_t n)
{
    const char *names[MOST], *nearest = NULL;
    const char *word = args->n_words > 0 ? args->words[0] : NULL;
    KilnText text = { 0 };
    KilnError err = { 0 };

    if (word != NULL)
        kiln_text_printf(&text, "%s: ", word);
    kiln_text_append(&text, "expected a verb: ");
    for (size_t i = 0; i < n && i < MOST; i++) {
        names[i] = verbs[i].name;
        kiln_text_printf(&text, "%s%s", i > 0 ? ", " : "", names[i]);
    }
    if (word != NULL)
        nearest = kiln_nearest(word, names, n < MOST ? n : MOST);
    if (nearest != NULL)
        kiln_text_printf(&text, "; did you mean %s?", nearest);
    kiln_text_printf(&text, " (`kiln %s --help`)", args->command);
    return kiln_screen_result(args->command, kiln_text_to_error(&text, KILN_E_USAGE, &err), &err);
}

int kiln_verb_run(KilnArgs *args, const KilnVerb *verbs, size_t n)
{
    for (size_t i = 0; args->n_words > 0 && i < n; i++) {
        if (strcmp(args->words[0], verbs[i].name) != 0)
            continue;
        memmove(args->words, args->words + 1, args->n_words * sizeof(*args->words));
        args->n_words--;
        return verbs[i].run(args);
    }
    return unknown(args, verbs, n);
}

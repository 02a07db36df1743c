/* kiln complete: prints candidates for the word at the cursor, in the form that the shell's script
 * expects. kiln completion: prints those scripts. */
#include <stdio.h>
#include <string.h>

#include "cli/commands/commands.h"
#include "cli/complete/complete_line.h"
#include "cli/complete/completion.h"
#include "cli/complete/shell_scripts.h"
#include "cli/screen/screen.h"

/* ---- Printing ------------------------------------------------------------------------------ */

/* Candidates are printed one a line, so text with control characters cannot be one. */
static bool printable(const char *text)
{
    for (; *text != '\0'; text++)
        if ((unsigned char)*text < ' ' || *text == '\x7f')
            return false;
    return true;
}

/* Print a candidate and its note (NULL: none) in the form of the shell. */
static void print(const KilnCandidate *candidate, const char *note, KilnShell shell,
                  const KilnLine *line)
{
    KilnText text = { 0 };

    switch (shell) {
    case KILN_SHELL_BASH: /* replaces the text after line->kept, and adds the closing quote only */
        kiln_line_quote(&text, candidate->text + line->kept, line->quote);
        if (!candidate->open && line->quote == '\0')
            kiln_text_char(&text, ' ');
        break;
    case KILN_SHELL_ZSH: /* _describe: + when the word continues; a colon ends the word */
        kiln_text_char(&text, candidate->open ? '+' : ' ');
        for (const char *p = candidate->text; *p != '\0'; p++)
            kiln_text_printf(&text, "%s%c", *p == ':' || *p == '\\' ? "\\" : "", *p);
        kiln_text_printf(&text, "%s%s", note != NULL ? ":" : "", note != NULL ? note : "");
        break;
    case KILN_SHELL_FISH: /* sees by the last character whether the word continues */
        kiln_text_printf(&text, "%s%s%s", candidate->text, note != NULL ? "\t" : "",
                         note != NULL ? note : "");
        break;
    }
    if (!text.failed && text.data != NULL)
        puts(text.data);
    kiln_text_release(&text);
}

static void print_all(const KilnCompletion *c, KilnShell shell, const KilnLine *line)
{
    for (size_t i = 0; i < c->count; i++) {
        const char *note = c->list[i].note;

        if (printable(c->list[i].text))
            print(&c->list[i], note != NULL && printable(note) ? note : NULL, shell, line);
    }
}

/* ---- Commands ------------------------------------------------------------------------------ */

/* Zsh passes separate words without quotes, the others a line. */
static bool read_line(KilnArena *arena, int argc, char **argv, KilnShell *ret_shell, KilnLine *ret)
{
    if (argc == 3 && strcmp(argv[0], "bash") == 0) {
        *ret_shell = KILN_SHELL_BASH;
        return kiln_line_read(arena, KILN_SHELL_BASH, argv[2], argv[1], ret);
    }
    if (argc == 2 && strcmp(argv[0], "fish") == 0) {
        *ret_shell = KILN_SHELL_FISH;
        return kiln_line_read(arena, KILN_SHELL_FISH, argv[1], "", ret);
    }
    if (argc < 2 || strcmp(argv[0], "zsh") != 0)
        return false;
    *ret_shell = KILN_SHELL_ZSH;
    *ret = (KilnLine) { .words = argv + 1, .count = (size_t)argc - 1 };
    return true;
}

int kiln_command_complete(int argc, char **argv)
{
    KilnCompletion c = { 0 };
    KilnLine line = { 0 };
    KilnShell shell;

    if (read_line(&c.arena, argc, argv, &shell, &line)) {
        c.word = c.typed = line.words[line.count - 1];
        if (line.file)
            kiln_candidates_paths(&c, "");
        else
            kiln_complete_words(&c, line.words, line.count);
        print_all(&c, shell, &line);
    }
    kiln_completion_release(&c);
    return 0;
}

int kiln_command_completion(KilnArgs *args)
{
    const char *word = args->n_words == 1 ? args->words[0] : "";
    KilnError err = { 0 };
    char path[16];

    snprintf(path, sizeof(path), "kiln.%s", word);
    for (const KilnShippedFile *script = kiln_shell_scripts; script->path != NULL; script++)
        if (strcmp(script->path, strcmp(word, "zsh") == 0 ? "_kiln" : path) == 0) {
            fputs(script->text, stdout);
            return 0;
        }
    kiln_error_set(&err, KILN_E_USAGE, "%s%s%sexpected the name of a shell: bash, zsh or fish",
                   word[0] != '\0' ? "'" : "", word, word[0] != '\0' ? "': " : "");
    return kiln_screen_result(args->command, err.status, &err);
}

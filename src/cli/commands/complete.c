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

/* Bash replaces the text after line->kept and adds the closing quote, but no blank: that is part of
 * the candidate. */
static void print_bash(const KilnCandidate *candidate, const KilnLine *line)
{
    KilnText text = { 0 };

    kiln_line_quote(&text, candidate->text + line->kept, line->quote);
    if (!candidate->open && line->quote == '\0')
        kiln_text_char(&text, ' ');
    if (!text.failed && text.data != NULL)
        puts(text.data);
    kiln_text_release(&text);
}

/* For _describe: a colon ends the word; the first character is + when the word continues. */
static void print_zsh(const KilnCandidate *candidate)
{
    putchar(candidate->open ? '+' : ' ');
    for (const char *p = candidate->text; *p != '\0'; p++) {
        if (*p == ':' || *p == '\\')
            putchar('\\');
        putchar(*p);
    }
    if (candidate->note != NULL && printable(candidate->note))
        printf(":%s", candidate->note);
    putchar('\n');
}

/* Fish tells by the last character whether the word continues. */
static void print_fish(const KilnCandidate *candidate)
{
    bool note = candidate->note != NULL && printable(candidate->note);

    printf("%s%s%s\n", candidate->text, note ? "\t" : "", note ? candidate->note : "");
}

static void print_all(const KilnCompletion *c, KilnShell shell, const KilnLine *line)
{
    for (size_t i = 0; i < c->count; i++) {
        const KilnCandidate *candidate = &c->list[i];

        if (!printable(candidate->text))
            continue;
        if (shell == KILN_SHELL_BASH)
            print_bash(candidate, line);
        else if (shell == KILN_SHELL_ZSH)
            print_zsh(candidate);
        else
            print_fish(candidate);
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
    static const char *const shells[][2] = { { "bash", "kiln.bash" },
                                             { "zsh", "_kiln" },
                                             { "fish", "kiln.fish" } };
    const char *word = args->n_words == 1 ? args->words[0] : "", *path = NULL;
    KilnError err = { 0 };

    for (size_t i = 0; i < KILN_COUNT(shells); i++)
        if (strcmp(word, shells[i][0]) == 0)
            path = shells[i][1];
    for (const KilnShippedFile *script = kiln_shell_scripts; script->path != NULL; script++)
        if (path != NULL && strcmp(script->path, path) == 0) {
            fputs(script->text, stdout);
            return 0;
        }
    kiln_error_set(&err, KILN_E_USAGE, "%s%s%sexpected the name of a shell: bash, zsh or fish",
                   word[0] != '\0' ? "'" : "", word, word[0] != '\0' ? "': " : "");
    return kiln_screen_result(args->command, err.status, &err);
}

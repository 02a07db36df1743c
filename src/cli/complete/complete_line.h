/* Splits an unfinished shell line into words without quotes, and quotes text for a shell. */
#ifndef KILN_CLI_COMPLETE_COMPLETE_LINE_H
#define KILN_CLI_COMPLETE_COMPLETE_LINE_H

#include "base/arena.h"
#include "base/text.h"

typedef enum KilnShell { KILN_SHELL_BASH, KILN_SHELL_ZSH, KILN_SHELL_FISH } KilnShell;

typedef struct KilnLine {
    char **words; /* without quotes; the last one is at the cursor, maybe "" */
    size_t count; /* at least 1 */
    size_t kept;  /* bytes of the last word before the part that bash replaces */
    char quote;   /* the quote that is open at the cursor; 0: none */
    bool file;    /* the last word is the file of a redirection */
} KilnLine;

/* Split `text`, a command up to the cursor, by the shell's rules of quoting. `breaks`: the
 * characters at which bash begins a new word to complete (COMP_WORDBREAKS). Words are in the arena.
 * False: out of memory. */
bool kiln_line_read(KilnArena *arena, KilnShell shell, const char *text, const char *breaks,
                    KilnLine *ret);
/* Append a word quoted for bash within `quote` (0: outside of quotes). */
void kiln_line_quote(KilnText *text, const char *word, char quote);

#endif

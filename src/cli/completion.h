/* The scripts that teach shells to complete, inside the program. */
#ifndef KILN_CLI_COMPLETION_H
#define KILN_CLI_COMPLETION_H

typedef struct KilnShellScript {
    const char *shell; /* "bash"; NULL closes the list */
    const char *text;
} KilnShellScript;

/* Made by tools/gen_completion.sh from tools/completion/. */
extern const KilnShellScript kiln_shell_scripts[];

#endif

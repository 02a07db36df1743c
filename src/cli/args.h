/* The command line: flags taken apart from overrides. */
#ifndef KILN_CLI_ARGS_H
#define KILN_CLI_ARGS_H

#include <jansson.h>

#include "kiln/data.h"

enum { KILN_MAX_REPEATED = 64 };

typedef struct KilnArgs {
    const char *command; /* "train", "eval", ... */
    const char *config_path, *config_name;
    const char *config_dirs[KILN_MAX_REPEATED + 1]; /* NULL-terminated, as all lists here */
    const char *plugins[KILN_MAX_REPEATED + 1];
    json_t *run_plugins; /* those of a past run, where none were given: holds their names; owned */
    const char *explain[KILN_MAX_REPEATED + 1];
    const char *cfg;     /* --cfg: "job", "kiln", "all" */
    const char *package; /* --package: the part that --cfg prints */
    KilnSplit split;     /* split=... of eval and predict, taken from the words */
    const char *input;   /* predict's input=..., taken from the words; NULL: split */
    const char *info;    /* --info: "all", "config", ... */
    const char *resume;  /* --resume DIR|last: the folder of a sweep */
    const char *run;     /* train's resume=..., RUN of eval and predict; taken from the words */
    const char *count;   /* -n N, of verify-resume */
    const char *svg;     /* --svg FILE, of graph */
    const char *depth;   /* --depth N, of graph */
    const char *phase;   /* --phase forward|backward|update, of graph */
    bool resolve, help, version;
    bool origins;      /* with --cfg: the origin of each value as a comment */
    bool multirun;     /* -m */
    bool plan;         /* with -m: print the jobs */
    bool retry_failed; /* with --resume */
    bool trust;        /* what a run folder names is loaded and written to */
    bool json;
    bool once;           /* of top */
    bool quiet, verbose; /* of what runs: errors alone, or more */
    const char **words;  /* everything else, in order: overrides; owned by KilnArgs */
    size_t n_words;
} KilnArgs;

/* Take the arguments of a command apart. All strings are borrowed; kiln_args_release frees the
 * list of words. KILN_E_USAGE: a flag that the command does not have, or flags that do not go
 * together. */
KILN_NODISCARD KilnStatus kiln_args_parse(const char *command, int argc, char **argv, KilnArgs *ret,
                                          KilnError *err);
/* The same of a line that is not finished: what is wrong is left out. *ret_waiting is
 * the flag at the end whose value is still missing; NULL: none. */
KILN_NODISCARD KilnStatus kiln_args_guess(const char *command, int argc, char **argv, KilnArgs *ret,
                                          const char **ret_waiting);
void kiln_args_release(KilnArgs *args);
/* Remove the word `key=VALUE` and return VALUE; NULL when there is none. */
const char *kiln_args_take(KilnArgs *args, const char *key);
/* Does the word name a file or folder, and not set a key? One without = does; with = it has a /
 * before that and is there: outputs/lr=0.1/seed=2. */
bool kiln_word_is_path(const char *word);
/* Remove the first word that is a path and return it; NULL when there is none. */
const char *kiln_args_take_path(KilnArgs *args);
/* Add a word, borrowed, in front of the others. */
KILN_NODISCARD KilnStatus kiln_args_add(KilnArgs *args, const char *word, KilnError *err);

#endif

/* The parsed command line: flags and words. */
#ifndef KILN_CLI_ARGS_H
#define KILN_CLI_ARGS_H

#include <jansson.h>

#include "cli/flags.h"
#include "kiln/data.h"

enum { KILN_MAX_REPEATED = 64, KILN_MAX_KEYS = 16 };

typedef struct KilnArgs {
    const char *command; /* "train", "eval", ... */
    const char *config_path, *config_name;
    const char *config_dirs[KILN_MAX_REPEATED + 1]; /* NULL-terminated, as all lists here */
    const char *plugins[KILN_MAX_REPEATED + 1];
    struct KilnFoundPlugins *plugins_found; /* all to load, once they are found; owned */
    bool foreign;                           /* the config is that of a run or sweep folder */
    json_t *run_plugins; /* what a past run recorded of its plugins; NULL: none */
    const char *explain[KILN_MAX_REPEATED + 1];
    const char *cfg;                             /* --cfg: "job", "kiln", "all" */
    const char *package;                         /* --package: the part that --cfg prints */
    const char *info;                            /* --info: "all", "config", ... */
    const char *resume;                          /* --resume DIR|last: the folder of a sweep */
    const char *count;                           /* verify-resume -n N */
    const char *svg, *depth, *phase;             /* of graph */
    const char *method, *steps, *window, *layer; /* of explain-prediction */
    bool resolve, help, version;
    bool origins;       /* with --cfg: the origin of each value as a comment */
    bool multirun;      /* -m */
    bool plan;          /* with -m: print the jobs */
    bool retry_failed;  /* with --resume */
    const char *extend; /* with --resume: --extend N */
    bool trust;         /* a run folder's plugins may be loaded, its outputs written anywhere */
    bool json, once;    /* of top; json also of doctor, sweep, plugin */
    const char *output,
        *target;       /* of new and explain-prediction; output also of plugin and import-hydra */
    const char *table; /* of new */
    bool force;        /* of new, sweep and import-hydra: replace the file */
    bool classes;      /* of import-hydra */
    const char *write; /* of sweep */
    const char *runs, *straggle; /* of sweep: simulate */
    const char *samples;         /* of check-data */
    bool all;                    /* of plugin: check every built-in component */
    const char *timeout;         /* of plugin: check */
    bool quiet, verbose;
    const char **words; /* everything else, in order: overrides; owned */
    size_t n_words;
    const char *keys[KILN_MAX_KEYS]; /* that the command takes from the words; static */
    size_t n_keys;

    /* Taken from the words by commands: */
    const char *run;   /* resume=RUN of train, RUN of eval and predict */
    const char *input; /* input=PATH of predict; NULL: a split */
    KilnSplit split;   /* split=NAME of eval and predict */
} KilnArgs;

/* Parse the arguments of a command. All strings are borrowed; kiln_args_release frees the list of
 * words. KILN_E_USAGE: a flag that the command does not have, or flags that do not go together.
 * `ret_waiting` is for an unfinished line (else NULL): errors are skipped, and it is set to the
 * last flag when its value is still missing. */
KILN_NODISCARD KilnStatus kiln_args_parse(const char *command, int argc, char **argv, KilnArgs *ret,
                                          const KilnFlag **ret_waiting, KilnError *err);
void kiln_args_release(KilnArgs *args);
/* Note that the command takes words `key=VALUE` (static), for advice about misspelt ones. */
void kiln_args_note_key(KilnArgs *args, const char *key);
/* Remove the word `key=VALUE` and return VALUE; NULL when there is none. Notes the key. */
const char *kiln_args_take(KilnArgs *args, const char *key);
/* Whether a word is a path and no override: it has no =, or a / before the = and exists, such as
 * outputs/lr=0.1/seed=2. */
bool kiln_word_is_path(const char *word);
/* Remove the first word that is a path and return it; NULL when there is none. */
const char *kiln_args_take_path(KilnArgs *args);
/* Insert a word, borrowed, before the others. */
KILN_NODISCARD KilnStatus kiln_args_add(KilnArgs *args, const char *word, KilnError *err);

#endif

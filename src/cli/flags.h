/* The flags of all commands: one table for parsing, help and completion. */
#ifndef KILN_CLI_FLAGS_H
#define KILN_CLI_FLAGS_H

#include <stddef.h>

#include "base/page.h"
#include "kiln/base.h"

typedef enum KilnFlagTakes {
    KILN_FLAG_SWITCH, /* no value */
    KILN_FLAG_ONE,
    KILN_FLAG_OPTIONAL, /* one of its choices; "all" when the next word is none */
    KILN_FLAG_MANY      /* can be repeated */
} KilnFlagTakes;

typedef struct KilnFlag {
    const char *name;  /* "--config-name" */
    const char *brief; /* "-cn"; NULL: none */
    const char *value; /* usage of the value: "DIR", "job|kiln|all"; NULL: a switch */
    KilnFlagTakes takes;
    size_t offset;        /* of its member in KilnArgs */
    const char *commands; /* "train graph"; NULL: all commands */
    const char *section;  /* its heading in help */
    const char *help;
} KilnFlag;

/* The i-th flag of a command, in the order of its help; NULL after the last. */
const KilnFlag *kiln_flag_at(const char *command, size_t i);
/* The flag of a command that `word` is: "--cfg", "--cfg=job", "-c". *ret_value is the text after
 * =, or NULL. NULL when the command has no such flag. */
const KilnFlag *kiln_flag_find(const char *command, const char *word, const char **ret_value);
/* KILN_E_USAGE for a word that is no flag of the command: says whose it is, or which is nearest. */
KilnStatus kiln_flag_unknown(const char *command, const char *word, KilnError *err);
/* Check a value of a flag that has choices. KILN_E_USAGE lists them. */
KILN_NODISCARD KilnStatus kiln_flag_check(const KilnFlag *flag, const char *value, KilnError *err);
/* Append the flags of a command, by section. */
void kiln_flags_write(KilnPage *page, const char *command);

/* The next part of a usage text, from *usage, which moves on; parts are separated by any of
 * `separators`: "last" and "DIR" of "[last|DIR]" by "[|]". *ret_length is its length; NULL: no
 * more. */
const char *kiln_usage_next(const char **usage, const char *separators, size_t *ret_length);
/* Whether a part of a usage text is a name to be typed as it is (last), not a placeholder (DIR). */
bool kiln_usage_is_name(const char *part);

#endif

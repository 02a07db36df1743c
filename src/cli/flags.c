/* The table of flags. */
#include "cli/flags.h"

#include <string.h>

#include "base/text.h"
#include "cli/args.h"

/* Commands that compose a config of the user's. */
#define COMPOSES "train graph verify-resume tune "
/* Commands that take the config of a run. */
#define REMEMBERS "eval predict replay "

#define AT(member) offsetof(KilnArgs, member)

static const KilnFlag flags[] = {
    { "--svg", NULL, "FILE", KILN_FLAG_ONE, AT(svg), "graph", "picture",
      "draw the step and its memory, instead of a table" },
    { "--depth", NULL, "N", KILN_FLAG_ONE, AT(depth), "graph", "picture",
      "put together layers that agree in the first N parts of their names" },
    { "--phase", NULL, "PHASE", KILN_FLAG_ONE, AT(phase), "graph", "picture",
      "only forward, backward or update" },
    { "--kills", "-n", "N", KILN_FLAG_ONE, AT(count), "verify-resume", "kills",
      "how often to kill (default: 20)" },
    { "--config-path", "-cp", "DIR", KILN_FLAG_ONE, AT(config_path), COMPOSES "show schema",
      "config",
      "the folder of the primary config (default: ./conf, else the one inside the program)" },
    { "--config-name", "-cn", "NAME", KILN_FLAG_ONE, AT(config_name), COMPOSES "show", "config",
      "the primary config (default: config)" },
    { "--config-dir", "-cd", "DIR", KILN_FLAG_MANY, AT(config_dirs),
      COMPOSES REMEMBERS "show schema", "config",
      "one more folder to search for groups; can be repeated" },
    { "--plugin", NULL, "FILE.so", KILN_FLAG_MANY, AT(plugins),
      COMPOSES REMEMBERS "list show schema init", "config",
      "load components from a plugin; can be repeated" },
    { "--trust", NULL, NULL, KILN_FLAG_SWITCH, AT(trust), "train " REMEMBERS, "config",
      "of a run folder from elsewhere: load the plugins that it names, and write where its config "
      "says" },
    { "--cfg", "-c", "job|kiln|all", KILN_FLAG_ONE, AT(cfg), "train", "looking",
      "print the composed config (kiln: its own settings) and stop" },
    { "--package", "-p", "KEY", KILN_FLAG_ONE, AT(package), "train", "looking",
      "with --cfg: only the part at KEY" },
    { "--resolve", NULL, NULL, KILN_FLAG_SWITCH, AT(resolve), "train", "looking",
      "with --cfg: with every ${...} resolved" },
    { "--origins", NULL, NULL, KILN_FLAG_SWITCH, AT(origins), "train", "looking",
      "with --cfg: where each value was set, as a comment" },
    { "--explain", NULL, "KEY...", KILN_FLAG_MANY, AT(explain), "train", "looking",
      "where the values of KEYs come from, and what they replaced; can be repeated" },
    { "--info", "-i", "[WHAT]", KILN_FLAG_TOPIC, AT(info), "train", "looking",
      "how the config was put together: all (if not given), config, defaults, defaults-tree, "
      "plugins or searchpath" },
    { "--plan", NULL, NULL, KILN_FLAG_SWITCH, AT(plan), "train", "looking",
      "layers, FLOPs, memory and time of the run, from a second of it; with -m: print the jobs, "
      "run none" },
    { "--multirun", "-m", NULL, KILN_FLAG_SWITCH, AT(multirun), "train", "sweeps",
      "one run for each combination of KEY=A,B,..." },
    { "--resume", NULL, "DIR|last", KILN_FLAG_ONE, AT(resume), "train", "sweeps",
      "with -m: run the jobs of that sweep (last: the newest) that have not ended, those that "
      "were cut off from their last checkpoint" },
    { "--retry-failed", NULL, NULL, KILN_FLAG_SWITCH, AT(retry_failed), "train", "sweeps",
      "with --resume: run the jobs that failed again, too" },
    { "--quiet", "-q", NULL, KILN_FLAG_SWITCH, AT(quiet), "train eval predict", "screen",
      "errors only" },
    { "--verbose", "-v", NULL, KILN_FLAG_SWITCH, AT(verbose), "train eval predict", "screen",
      "more: all that config files set, threads, checkpoints" },
    { "--once", NULL, NULL, KILN_FLAG_SWITCH, AT(once), "top", "output",
      "look once and stop, as in a pipe" },
    { "--json", NULL, NULL, KILN_FLAG_SWITCH, AT(json), "top", "output", "as JSON, once" },
    { "--json", NULL, NULL, KILN_FLAG_SWITCH, AT(json), "schema", "output",
      "a JSON Schema for editors, instead of an outline" },
    { "--help", "-h", NULL, KILN_FLAG_SWITCH, AT(help), NULL, "help", "this text" },
    { "--version", NULL, NULL, KILN_FLAG_SWITCH, AT(version), NULL, "help",
      "version of the program and of its plugin interface" },
};

static const char *const topics[] = { "all",           "config",  "defaults",
                                      "defaults-tree", "plugins", "searchpath" };

/* The next of the flag's commands and its length, from *list, which moves on; NULL: no more. */
static const char *next_command(const char **list, size_t *ret_length)
{
    const char *name = *list + strspn(*list, " ");

    *ret_length = strcspn(name, " ");
    *list = name + *ret_length;
    return *ret_length > 0 ? name : NULL;
}

static bool belongs(const KilnFlag *flag, const char *command)
{
    const char *list = flag->commands, *name;
    size_t length;

    if (list == NULL)
        return true;
    while ((name = next_command(&list, &length)) != NULL)
        if (strlen(command) == length && strncmp(name, command, length) == 0)
            return true;
    return false;
}

const KilnFlag *kiln_flag_at(const char *command, size_t i)
{
    for (size_t k = 0; k < KILN_COUNT(flags); k++)
        if (belongs(&flags[k], command) && i-- == 0)
            return &flags[k];
    return NULL;
}

/* Is that the flag's name or brief name, of `length` characters? */
static bool is_named(const KilnFlag *flag, const char *word, size_t length)
{
    const char *const names[] = { flag->name, flag->brief };

    for (size_t i = 0; i < KILN_COUNT(names); i++)
        if (names[i] != NULL && strlen(names[i]) == length && strncmp(names[i], word, length) == 0)
            return true;
    return false;
}

const KilnFlag *kiln_flag_find(const char *command, const char *word, const char **ret_value)
{
    size_t length = strcspn(word, "=");

    for (size_t i = 0; i < KILN_COUNT(flags); i++)
        if (belongs(&flags[i], command) && is_named(&flags[i], word, length)) {
            *ret_value = word[length] == '=' ? word + length + 1 : NULL;
            return &flags[i];
        }
    return NULL;
}

/* Commands that have a flag of that name: "graph top"; all of them with blanks between. */
static void write_owners(KilnText *text, const char *word)
{
    for (size_t i = 0; i < KILN_COUNT(flags); i++)
        if (is_named(&flags[i], word, strcspn(word, "=")))
            kiln_text_printf(text, "%s ", flags[i].commands);
}

/* "`kiln top` and `kiln schema`"; of many the first: "`kiln train` and other commands". */
static void write_commands(KilnText *text, const char *list)
{
    enum { MOST = 3 };
    const char *rest = list, *name;
    size_t length, n = 0, total = 0;

    while (next_command(&rest, &length) != NULL)
        total++;
    for (; (name = next_command(&list, &length)) != NULL && (n == 0 || total <= MOST); n++)
        kiln_text_printf(text, "%s`kiln %.*s`",
                         n == 0           ? ""
                         : n + 1 == total ? " and "
                                          : ", ",
                         (int)length, name);
    if (total > MOST)
        kiln_text_append(text, " and other commands");
}

static const char *nearest_flag(const char *command, const char *word)
{
    const char *names[KILN_COUNT(flags)];
    const KilnFlag *flag;
    size_t n = 0;

    for (; (flag = kiln_flag_at(command, n)) != NULL; n++)
        names[n] = flag->name;
    return kiln_nearest(word, names, n);
}

KilnStatus kiln_flag_unknown(const char *command, const char *word, KilnError *err)
{
    KilnText owners = { 0 }, text = { 0 };

    kiln_text_append_n(&text, word, strcspn(word, "="));
    write_owners(&owners, word);
    const char *nearest = text.failed ? NULL : nearest_flag(command, text.data);
    if (owners.length > 0 && !owners.failed) {
        kiln_text_append(&text, " is a flag of ");
        write_commands(&text, owners.data);
        kiln_text_printf(&text, ", not of `kiln %s`", command);
    } else if (nearest != NULL) {
        kiln_text_printf(&text, ": unknown flag; did you mean %s?", nearest);
    } else {
        kiln_text_append(&text, ": unknown flag");
    }
    kiln_error_set(err, KILN_E_USAGE, "%s (`kiln %s --help` lists its flags)",
                   text.failed ? word : text.data, command);
    kiln_text_release(&owners);
    kiln_text_release(&text);
    return KILN_E_USAGE;
}

const char *kiln_flag_topic(size_t i)
{
    return i < KILN_COUNT(topics) ? topics[i] : NULL;
}

void kiln_flags_write(KilnPage *page, const char *command)
{
    enum { TEXT = 27 /* the column of the texts */ };
    const KilnFlag *flag;
    const char *section = "";
    char usage[64];

    for (size_t i = 0; (flag = kiln_flag_at(command, i)) != NULL; i++) {
        if (strcmp(flag->section, section) != 0)
            kiln_page_heading(page, "flags: %s", flag->section);
        section = flag->section;
        snprintf(usage, sizeof(usage), "%s%s%s%s%s", flag->brief != NULL ? flag->brief : "",
                 flag->brief != NULL ? ", " : "", flag->name, flag->value != NULL ? " " : "",
                 flag->value != NULL ? flag->value : "");
        kiln_page_pair(page, TEXT, usage, flag->text);
    }
}

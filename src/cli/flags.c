/* The table of flags. */
#include "cli/flags.h"

#include <string.h>

#include "base/text.h"
#include "cli/args.h"

/* Commands that compose the user's config. */
#define COMPOSES "train graph verify-resume tune check-data "
/* Commands that use the config of a past run. */
#define PAST_RUN "eval predict explain-prediction generate replay "

#define AT(member) offsetof(KilnArgs, member)

static const KilnFlag flags[] = {
    { "--svg", NULL, "FILE", KILN_FLAG_ONE, AT(svg), "graph", "output",
      "draw the step's memory instead of printing a table" },
    { "--depth", NULL, "N", KILN_FLAG_ONE, AT(depth), "graph", "output",
      "group layers that agree in the first N parts of their names" },
    { "--phase", NULL, "forward|backward|update", KILN_FLAG_ONE, AT(phase), "graph", "output",
      "only one phase of the step" },
    { "--method", NULL, "auto|integrated_gradients|occlusion|grad_cam|contributions", KILN_FLAG_ONE,
      AT(method), "explain-prediction", "explanation",
      "how (default: auto, contributions of trees and integrated gradients of networks)" },
    { "--target", NULL, "CLASS", KILN_FLAG_ONE, AT(target), "explain-prediction", "explanation",
      "the class whose score is explained, by name or number (default: the predicted one)" },
    { "--steps", NULL, "N", KILN_FLAG_ONE, AT(steps), "explain-prediction", "explanation",
      "points of integrated gradients (default: 50)" },
    { "--window", NULL, "N", KILN_FLAG_ONE, AT(window), "explain-prediction", "explanation",
      "side of the squares that are occluded in images, in pixels (default: an eighth of the "
      "shorter side)" },
    { "--layer", NULL, "PATTERN", KILN_FLAG_ONE, AT(layer), "explain-prediction", "explanation",
      "of Grad-CAM: the layer, or group of layers, whose last feature maps are shown (default: the "
      "last ones before pooling)" },
    { "--output", NULL, "DIR", KILN_FLAG_ONE, AT(output), "explain-prediction", "explanation",
      "write pictures of images, pages of texts and JSON there (default of images: explanations)" },
    { "--kills", "-n", "N", KILN_FLAG_ONE, AT(count), "verify-resume", "kills",
      "how often to kill (default: 20)" },
    { "--config-path", "-cp", "DIR", KILN_FLAG_ONE, AT(config_path), COMPOSES "show schema",
      "config",
      "the folder of the primary config (default: ./conf, else the one inside the program)" },
    { "--config-name", "-cn", "CONFIG", KILN_FLAG_ONE, AT(config_name), COMPOSES "show", "config",
      "the primary config (default: config)" },
    { "--config-dir", "-cd", "DIR", KILN_FLAG_MANY, AT(config_dirs),
      COMPOSES PAST_RUN "show schema tokenizer", "config",
      "another folder to search for groups; can be repeated" },
    { "--plugin", NULL, "FILE.so", KILN_FLAG_MANY, AT(plugins),
      COMPOSES PAST_RUN "list show schema init tokenizer sweep plugin", "config",
      "load components from a plugin; can be repeated" },
    { "--trust", NULL, NULL, KILN_FLAG_SWITCH, AT(trust), "train sweep " PAST_RUN, "config",
      "trust a run folder from elsewhere: load the plugins that it names, and write where its "
      "config says" },
    { "--cfg", "-c", "job|kiln|all", KILN_FLAG_ONE, AT(cfg), "train", "inspection",
      "print the composed config (kiln: its own settings) and stop" },
    { "--package", "-p", "KEY", KILN_FLAG_ONE, AT(package), "train", "inspection",
      "with --cfg: only the part at KEY" },
    { "--resolve", NULL, NULL, KILN_FLAG_SWITCH, AT(resolve), "train", "inspection",
      "with --cfg: resolve every ${...}" },
    { "--origins", NULL, NULL, KILN_FLAG_SWITCH, AT(origins), "train", "inspection",
      "with --cfg: where each value was set, as a comment" },
    { "--explain", NULL, "KEY...", KILN_FLAG_MANY, AT(explain), "train", "inspection",
      "where the values of KEYs come from, and what they replaced; can be repeated" },
    { "--info", "-i", "[all|config|defaults|defaults-tree|plugins|searchpath]", KILN_FLAG_OPTIONAL,
      AT(info), "train", "inspection", "how the config was composed (default: all)" },
    { "--plan", NULL, NULL, KILN_FLAG_SWITCH, AT(plan), "train", "inspection",
      "layers, FLOPs, memory and time of the run, measured for a second; with -m: print the jobs "
      "and run none" },
    { "--multirun", "-m", NULL, KILN_FLAG_SWITCH, AT(multirun), "train", "sweeps",
      "one run for each combination of KEY=A,B,..." },
    { "--resume", NULL, "DIR|last", KILN_FLAG_ONE, AT(resume), "train", "sweeps",
      "with -m: resume that sweep (last: the newest): run the jobs that have not ended, "
      "interrupted ones from their last checkpoint" },
    { "--retry-failed", NULL, NULL, KILN_FLAG_SWITCH, AT(retry_failed), "train", "sweeps",
      "with --resume: run failed jobs again, too" },
    { "--extend", NULL, "N", KILN_FLAG_ONE, AT(extend), "train", "sweeps",
      "with --resume: N more trials, of a sweeper that has the option n_trials" },
    { "--output", "-o", "FILE", KILN_FLAG_ONE, AT(output), "new", "output",
      "the config to write (default: conf/experiment/NAME.yaml, NAME being that of the data)" },
    { "--output", "-o", "DIR", KILN_FLAG_ONE, AT(output), "plugin", "output",
      "new: the folder that gets the new one (default: this one)" },
    { "--output", "-o", "DIR", KILN_FLAG_ONE, AT(output), "import-hydra", "output",
      "the folder to write (default: conf)" },
    { "--runs", NULL, "N", KILN_FLAG_ONE, AT(runs), "sweep", "simulation",
      "simulate: medians of N runs with other seeds" },
    { "--straggle", NULL, "DEVIATION", KILN_FLAG_ONE, AT(straggle), "sweep", "simulation",
      "simulate: jobs are slower by random factors, 1 + |z| with z of this deviation" },
    { "--write", NULL, "EXPERIMENT", KILN_FLAG_ONE, AT(write), "sweep", "output",
      "report: also write the best config to conf/experiment/EXPERIMENT.yaml" },
    { "--force", NULL, NULL, KILN_FLAG_SWITCH, AT(force), "new sweep import-hydra", "output",
      "replace the file if it exists; import-hydra: those of the folder, whose other files stay" },
    { "--classes", NULL, NULL, KILN_FLAG_SWITCH, AT(classes), "import-hydra", "output",
      "only print the classes and options that it knows, and what they become" },
    { "--verbose", "-v", NULL, KILN_FLAG_SWITCH, AT(verbose), "sweep", "output",
      "simulate: also print each decision" },
    { "--target", NULL, "COLUMN", KILN_FLAG_ONE, AT(target), "new", "data",
      "the column to predict, of a table or of texts in columns" },
    { "--table", NULL, "TABLE", KILN_FLAG_ONE, AT(table), "new", "data",
      "the table of a SQLite database" },
    { "--quiet", "-q", NULL, KILN_FLAG_SWITCH, AT(quiet),
      "train eval predict explain-prediction generate", "screen", "errors only" },
    { "--verbose", "-v", NULL, KILN_FLAG_SWITCH, AT(verbose),
      "train eval predict explain-prediction generate", "screen",
      "more: all values from config files, threads, checkpoints" },
    { "--all", NULL, NULL, KILN_FLAG_SWITCH, AT(all), "plugin", "checks",
      "check: every built-in component" },
    { "--timeout", NULL, "SECONDS", KILN_FLAG_ONE, AT(timeout), "plugin", "checks",
      "check: how long one check may take (default: 120)" },
    { "--verbose", "-v", NULL, KILN_FLAG_SWITCH, AT(verbose), "plugin", "output",
      "check --all: also print what passed" },
    { "--once", NULL, NULL, KILN_FLAG_SWITCH, AT(once), "top", "output",
      "print once and stop, as in a pipe" },
    { "--json", NULL, NULL, KILN_FLAG_SWITCH, AT(json),
      "top doctor list check-data explain-prediction sweep plugin", "output",
      "as JSON, once; explain-prediction: a line of JSON for each sample" },
    { "--samples", NULL, "N", KILN_FLAG_ONE, AT(samples), "check-data", "data",
      "read at most N samples of each set, at equal distances (default: 1,000,000)" },
    { "--help", "-h", NULL, KILN_FLAG_SWITCH, AT(help), NULL, "help", "this text" },
    { "--version", NULL, NULL, KILN_FLAG_SWITCH, AT(version), NULL, "help",
      "version of the program and of its plugin interface" },
};

const char *kiln_usage_next(const char **usage, const char *separators, size_t *ret_length)
{
    const char *part = *usage + strspn(*usage, separators);

    *ret_length = strcspn(part, separators);
    *usage = part + *ret_length;
    return *ret_length > 0 ? part : NULL;
}

bool kiln_usage_is_name(const char *part)
{
    return part[0] >= 'a' && part[0] <= 'z';
}

static bool belongs(const KilnFlag *flag, const char *command)
{
    const char *list = flag->commands, *name;
    size_t length;

    if (list == NULL)
        return true;
    while ((name = kiln_usage_next(&list, " ", &length)) != NULL)
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

/* Whether `word`, up to its =, is the flag's name or brief name. */
static bool is_named(const KilnFlag *flag, const char *word)
{
    const char *const names[] = { flag->name, flag->brief };
    const size_t length = strcspn(word, "=");

    for (size_t i = 0; i < KILN_COUNT(names); i++)
        if (names[i] != NULL && strlen(names[i]) == length && strncmp(names[i], word, length) == 0)
            return true;
    return false;
}

const KilnFlag *kiln_flag_find(const char *command, const char *word, const char **ret_value)
{
    const char *equals = strchr(word, '=');

    for (size_t i = 0; i < KILN_COUNT(flags); i++)
        if (belongs(&flags[i], command) && is_named(&flags[i], word)) {
            *ret_value = equals != NULL ? equals + 1 : NULL;
            return &flags[i];
        }
    return NULL;
}

KilnStatus kiln_flag_unknown(const char *command, const char *word, KilnError *err)
{
    const char *names[KILN_COUNT(flags)], *owners = NULL;
    char name[64];
    size_t n = 0;

    snprintf(name, sizeof(name), "%.*s", (int)strcspn(word, "="), word);
    for (size_t i = 0; i < KILN_COUNT(flags); i++) {
        if (owners == NULL && is_named(&flags[i], word))
            owners = flags[i].commands;
        if (belongs(&flags[i], command))
            names[n++] = flags[i].name;
    }
    if (owners != NULL)
        return kiln_error_set(err, KILN_E_USAGE,
                              "%s is a flag of `kiln %.*s`%s, not of `kiln %s` (`kiln %s --help` "
                              "lists its flags)",
                              name, (int)strcspn(owners, " "), owners,
                              strchr(owners, ' ') != NULL ? " and other commands" : "", command,
                              command);
    const char *nearest = kiln_nearest(name, names, n);
    if (nearest == NULL && strncmp(name, "--", 2) == 0 && name[2] != '\0')
        return kiln_error_set(err, KILN_E_USAGE,
                              "%s: unknown flag; values have no dashes: %s=VALUE (`kiln %s --help` "
                              "lists the flags)",
                              name, name + 2, command);
    return kiln_error_set(err, KILN_E_USAGE,
                          "%s: unknown flag%s%s%s (`kiln %s --help` lists its flags)", name,
                          nearest != NULL ? "; did you mean " : "", nearest != NULL ? nearest : "",
                          nearest != NULL ? "?" : "", command);
}

KilnStatus kiln_flag_check(const KilnFlag *flag, const char *value, KilnError *err)
{
    const char *usage = flag->value, *part, *names[16];
    char list[128], text[256] = "";
    size_t length, n = 0, used = 0;

    while ((part = kiln_usage_next(&usage, "[|]", &length)) != NULL && n < KILN_COUNT(names)) {
        if (!kiln_usage_is_name(part) || used + length + 1 > sizeof(list))
            return KILN_OK; /* it takes any value */
        names[n++] = list + used;
        memcpy(list + used, part, length);
        used += length;
        list[used++] = '\0';
    }
    for (size_t i = 0; i < n; i++) {
        if (strcmp(value, names[i]) == 0)
            return KILN_OK;
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s", i > 0 ? ", " : "",
                 names[i]);
    }
    const char *nearest = kiln_nearest(value, names, n);
    return kiln_error_set(err, KILN_E_USAGE, "%s %s: expected one of %s%s%s%s", flag->name, value,
                          text, nearest != NULL ? "; did you mean " : "",
                          nearest != NULL ? nearest : "", nearest != NULL ? "?" : "");
}

void kiln_flags_write(KilnPage *page, const char *command)
{
    enum { TEXT = 27 /* the column of the texts */ };
    const KilnFlag *flag;
    const char *section = "";

    for (size_t i = 0; (flag = kiln_flag_at(command, i)) != NULL; i++) {
        if (strcmp(flag->section, section) != 0)
            kiln_page_heading(page, "flags: %s", flag->section);
        section = flag->section;
        KilnText left = { 0 };

        kiln_text_printf(&left, "%s%s%s%s%s", flag->brief != NULL ? flag->brief : "",
                         flag->brief != NULL ? ", " : "", flag->name,
                         flag->value != NULL ? " " : "", flag->value != NULL ? flag->value : "");
        kiln_page_pair(page, TEXT, left.data != NULL ? left.data : "", "%s", flag->help);
        page->text.failed = page->text.failed || left.failed;
        kiln_text_release(&left);
    }
}

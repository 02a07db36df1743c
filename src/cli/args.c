/* The command line: one table of flags, strict and with suggestions. */
#include "cli/args.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

typedef enum Takes {
    TAKES_NOTHING,
    TAKES_ONE,
    TAKES_TOPIC, /* one of topics[]; "all" when the next word is none */
    TAKES_MANY
} Takes;

typedef struct Flag {
    const char *name;  /* "--config-name" */
    const char *brief; /* "-cn", Hydra's; NULL: none */
    Takes takes;
    size_t offset;
} Flag;

static const Flag flags[] = {
    { "--cfg", "-c", TAKES_ONE, offsetof(KilnArgs, cfg) },
    { "--resolve", NULL, TAKES_NOTHING, offsetof(KilnArgs, resolve) },
    { "--package", "-p", TAKES_ONE, offsetof(KilnArgs, package) },
    { "--origins", NULL, TAKES_NOTHING, offsetof(KilnArgs, origins) },
    { "--info", "-i", TAKES_TOPIC, offsetof(KilnArgs, info) },
    { "--multirun", "-m", TAKES_NOTHING, offsetof(KilnArgs, multirun) },
    { "--plan", NULL, TAKES_NOTHING, offsetof(KilnArgs, plan) },
    { "--resume", NULL, TAKES_ONE, offsetof(KilnArgs, resume) },
    { "--retry-failed", NULL, TAKES_NOTHING, offsetof(KilnArgs, retry_failed) },
    { "--json", NULL, TAKES_NOTHING, offsetof(KilnArgs, json) },
    { "--kills", "-n", TAKES_ONE, offsetof(KilnArgs, count) },
    { "--svg", NULL, TAKES_ONE, offsetof(KilnArgs, svg) },
    { "--depth", NULL, TAKES_ONE, offsetof(KilnArgs, depth) },
    { "--phase", NULL, TAKES_ONE, offsetof(KilnArgs, phase) },
    { "--explain", NULL, TAKES_MANY, offsetof(KilnArgs, explain) },
    { "--config-path", "-cp", TAKES_ONE, offsetof(KilnArgs, config_path) },
    { "--config-name", "-cn", TAKES_ONE, offsetof(KilnArgs, config_name) },
    { "--config-dir", "-cd", TAKES_MANY, offsetof(KilnArgs, config_dirs) },
    { "--plugin", NULL, TAKES_MANY, offsetof(KilnArgs, plugins) },
    { "--once", NULL, TAKES_NOTHING, offsetof(KilnArgs, once) },
    { "--quiet", "-q", TAKES_NOTHING, offsetof(KilnArgs, quiet) },
    { "--verbose", "-v", TAKES_NOTHING, offsetof(KilnArgs, verbose) },
    { "--help", "-h", TAKES_NOTHING, offsetof(KilnArgs, help) },
    { "--version", NULL, TAKES_NOTHING, offsetof(KilnArgs, version) },
};

static const char *const topics[] = { "all",           "config",  "defaults",
                                      "defaults-tree", "plugins", "searchpath" };

static KilnStatus unknown_flag(const char *word, KilnError *err)
{
    const char *names[KILN_COUNT(flags)];

    for (size_t i = 0; i < KILN_COUNT(flags); i++)
        names[i] = flags[i].name;
    const char *nearest = kiln_nearest(word, names, KILN_COUNT(names));
    return kiln_error_set(err, KILN_E_USAGE, "unknown flag %s%s%s%s (--help lists them)", word,
                          nearest != NULL ? ": did you mean " : "", nearest != NULL ? nearest : "",
                          nearest != NULL ? "?" : "");
}

/* The flag that `word` is; *ret_value is the text behind = or NULL. */
static const Flag *flag_find(const char *word, const char **ret_value)
{
    const char *equals = strchr(word, '=');
    size_t length = equals != NULL ? (size_t)(equals - word) : strlen(word);

    for (size_t i = 0; i < KILN_COUNT(flags); i++) {
        const char *names[2] = { flags[i].name, flags[i].brief };

        for (int k = 0; k < 2; k++) {
            if (names[k] == NULL || strlen(names[k]) != length ||
                strncmp(names[k], word, length) != 0)
                continue;
            *ret_value = equals != NULL ? equals + 1 : NULL;
            return &flags[i];
        }
    }
    return NULL;
}

static KilnStatus flag_store(const Flag *flag, const char *value, KilnArgs *args, KilnError *err)
{
    void *place = (char *)args + flag->offset;

    if (flag->takes == TAKES_NOTHING) {
        *(bool *)place = true;
        return KILN_OK;
    }
    const char **list = place;
    size_t n = 0;
    if (flag->takes != TAKES_MANY && list[0] != NULL)
        return kiln_error_set(err, KILN_E_USAGE, "%s is given twice", flag->name);
    if (flag->takes == TAKES_MANY)
        while (list[n] != NULL)
            n++;
    if (n == KILN_MAX_REPEATED)
        return kiln_error_set(err, KILN_E_USAGE, "%s is given more than %d times", flag->name,
                              KILN_MAX_REPEATED);
    list[n] = value;
    return KILN_OK;
}

/* ~key deletes, so a lone dash or a negative number is no flag either. */
static bool is_flag(const char *word)
{
    return word[0] == '-' && word[1] != '\0' && !(word[1] >= '0' && word[1] <= '9');
}

/* No override, so behind --explain it can only be one more key. */
static bool is_key(const char *word)
{
    return *word != '\0' && strpbrk(word, "=~+") == NULL;
}

static bool is_topic(const char *word)
{
    for (size_t i = 0; word != NULL && i < KILN_COUNT(topics); i++)
        if (strcmp(word, topics[i]) == 0)
            return true;
    return false;
}

/* Rules between flags. */
static KilnStatus check_flags(KilnArgs *args, KilnError *err)
{
    if (args->cfg != NULL && strcmp(args->cfg, "hydra") == 0)
        args->cfg = "kiln";
    if (args->cfg != NULL && strcmp(args->cfg, "job") != 0 && strcmp(args->cfg, "kiln") != 0 &&
        strcmp(args->cfg, "all") != 0)
        return kiln_error_set(err, KILN_E_USAGE,
                              "--cfg %s: expected --cfg job, --cfg kiln or --cfg all", args->cfg);
    if (args->info != NULL && !is_topic(args->info)) {
        const char *near = kiln_nearest(args->info, topics, KILN_COUNT(topics));

        return kiln_error_set(err, KILN_E_USAGE,
                              "--info=%s: expected all, config, defaults, defaults-tree, plugins "
                              "or searchpath%s%s%s",
                              args->info, near != NULL ? "; did you mean " : "",
                              near != NULL ? near : "", near != NULL ? "?" : "");
    }
    if (args->info != NULL && args->cfg != NULL)
        return kiln_error_set(err, KILN_E_USAGE,
                              "--info and --cfg each print and stop: give one of them");
    if (args->quiet && args->verbose)
        return kiln_error_set(err, KILN_E_USAGE, "--quiet and --verbose: give one of them");
    if (args->resolve && args->cfg == NULL && !args->help)
        return kiln_error_set(err, KILN_E_USAGE,
                              "--resolve goes with --cfg: train --cfg job --resolve");
    if (args->origins && args->cfg == NULL)
        return kiln_error_set(err, KILN_E_USAGE,
                              "--origins goes with --cfg: train --cfg job --origins");
    if (args->package != NULL && args->cfg == NULL)
        return kiln_error_set(err, KILN_E_USAGE,
                              "--package goes with --cfg: train --cfg job --package %s",
                              args->package);
    return KILN_OK;
}

/* The value of the flag at argv[*i], which moves to the word that holds it. */
static const char *flag_value(const Flag *flag, const char *value, int argc, char **argv, int *i)
{
    if (value != NULL || flag->takes == TAKES_NOTHING)
        return value;
    if (flag->takes == TAKES_TOPIC && (*i + 1 == argc || !is_topic(argv[*i + 1])))
        return topics[0];
    return argv[++*i];
}

KilnStatus kiln_args_parse(int argc, char **argv, KilnArgs *ret, KilnError *err)
{
    KilnStatus status = KILN_OK;
    KilnArgs args = { 0 };

    args.words = calloc((size_t)argc + 1, sizeof(*args.words));
    if (args.words == NULL)
        return kiln_error_nomem(err, (size_t)argc * sizeof(*args.words));
    for (int i = 0; i < argc && status >= 0; i++) {
        const char *value = NULL;
        const Flag *flag;

        if (!is_flag(argv[i]) && args.explain[0] != NULL && is_key(argv[i])) {
            status = flag_store(flag_find("--explain", &value), argv[i], &args, err);
            continue;
        }
        if (!is_flag(argv[i])) {
            args.words[args.n_words++] = argv[i];
            continue;
        }
        flag = flag_find(argv[i], &value);
        if (flag == NULL)
            status = unknown_flag(argv[i], err);
        else if (flag->takes == TAKES_NOTHING && value != NULL)
            status = kiln_error_set(err, KILN_E_USAGE, "%s takes no value", flag->name);
        else if (flag->takes != TAKES_NOTHING && flag->takes != TAKES_TOPIC && value == NULL &&
                 i + 1 == argc)
            status = kiln_error_set(err, KILN_E_USAGE, "%s needs a value", flag->name);
        else
            status = flag_store(flag, flag_value(flag, value, argc, argv, &i), &args, err);
    }
    if (status >= 0)
        status = check_flags(&args, err);
    if (status < 0) {
        kiln_args_release(&args);
        return status;
    }
    *ret = args;
    return KILN_OK;
}

KilnStatus kiln_args_guess(int argc, char **argv, KilnArgs *ret, const char **ret_waiting)
{
    KilnArgs args = { 0 };
    const char *waiting = NULL;

    args.words = calloc((size_t)argc + 1, sizeof(*args.words));
    if (args.words == NULL)
        return KILN_E_NOMEM;
    for (int i = 0; i < argc; i++) {
        const char *value = NULL;
        const Flag *flag = is_flag(argv[i]) ? flag_find(argv[i], &value) : NULL;

        if (!is_flag(argv[i]))
            args.words[args.n_words++] = argv[i];
        else if (flag != NULL && flag->takes != TAKES_NOTHING && value == NULL && i + 1 == argc)
            waiting = flag->name;
        else if (flag != NULL)
            (void)flag_store(flag, flag_value(flag, value, argc, argv, &i), &args, NULL);
    }
    *ret = args;
    *ret_waiting = waiting;
    return KILN_OK;
}

const char *kiln_args_flag(size_t i)
{
    return i < KILN_COUNT(flags) ? flags[i].name : NULL;
}

const char *kiln_args_topic(size_t i)
{
    return i < KILN_COUNT(topics) ? topics[i] : NULL;
}

const char *kiln_args_flag_name(const char *word, const char **ret_value)
{
    const Flag *flag = is_flag(word) ? flag_find(word, ret_value) : NULL;

    return flag != NULL ? flag->name : NULL;
}

void kiln_args_release(KilnArgs *args)
{
    json_decref(args->run_plugins);
    free(args->words);
    *args = (KilnArgs) { 0 };
}

KilnStatus kiln_args_add(KilnArgs *args, const char *word, KilnError *err)
{
    const char **more = realloc(args->words, (args->n_words + 2) * sizeof(*more));

    if (more == NULL)
        return kiln_error_nomem(err, (args->n_words + 2) * sizeof(*more));
    memmove(more + 1, more, args->n_words * sizeof(*more));
    more[0] = word;
    args->words = more;
    more[++args->n_words] = NULL;
    return KILN_OK;
}

const char *kiln_args_take(KilnArgs *args, const char *key)
{
    size_t length = strlen(key);
    const char *value = NULL;
    size_t kept = 0;

    for (size_t i = 0; i < args->n_words; i++) {
        const char *word = args->words[i];

        if (strncmp(word, key, length) == 0 && word[length] == '=')
            value = word + length + 1;
        else
            args->words[kept++] = word;
    }
    args->n_words = kept;
    args->words[kept] = NULL;
    return value;
}

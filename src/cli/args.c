/* Parses the command line by the table of flags (cli/flags.c). */
#include "cli/args.h"

#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "base/text.h"
#include "cli/find_plugins.h"
#include "cli/flags.h"

static KilnStatus flag_store(const KilnFlag *flag, const char *value, KilnArgs *args,
                             KilnError *err)
{
    void *member = (char *)args + flag->offset;
    const char **list = member;
    size_t n = 0;

    if (flag->takes == KILN_FLAG_SWITCH) {
        *(bool *)member = true;
        return KILN_OK;
    }
    if (strcmp(flag->name, "--cfg") == 0 && strcmp(value, "hydra") == 0)
        value = "kiln"; /* as Hydra calls it */
    KilnStatus status = kiln_flag_check(flag, value, err);
    if (status < 0)
        return status;
    if (flag->takes != KILN_FLAG_MANY && list[0] != NULL)
        return kiln_error_set(err, KILN_E_USAGE, "%s is given twice", flag->name);
    if (flag->takes == KILN_FLAG_MANY)
        while (list[n] != NULL)
            n++;
    if (n == KILN_MAX_REPEATED)
        return kiln_error_set(err, KILN_E_USAGE, "%s is given more than %d times", flag->name,
                              KILN_MAX_REPEATED);
    list[n] = value;
    return KILN_OK;
}

/* A lone dash and a negative number are no flags. */
static bool is_flag(const char *word)
{
    return word[0] == '-' && word[1] != '\0' && !(word[1] >= '0' && word[1] <= '9');
}

/* Whether a word after --explain is one more key, and no override. */
static bool is_key(const char *word)
{
    return *word != '\0' && strpbrk(word, "=~+") == NULL;
}

/* Whether the flag of that name is given, which the command may not have. */
static bool is_given(const KilnArgs *args, const char *name)
{
    const char *value = NULL;
    const KilnFlag *flag = kiln_flag_find(args->command, name, &value);
    const char *member = (const char *)args + (flag != NULL ? flag->offset : 0);

    if (flag == NULL || flag->takes == KILN_FLAG_SWITCH)
        return flag != NULL && *(const bool *)member;
    return *(const char *const *)member != NULL;
}

/* Refuse flags that exclude each other, and flags without the flag that they need. */
static KilnStatus check_together(const KilnArgs *args, KilnError *err)
{
    static const char *const rivals[][4] = { { "--cfg", "--info", "--explain", "--plan" },
                                             { "--cfg", "--info", "--explain", "--resume" },
                                             { "--quiet", "--verbose" },
                                             { "--svg", "--phase" } };
    static const struct {
        const char *name, *other, *example;
    } needs[] = {
        { "--resolve", "--cfg", "train --cfg job --resolve" },
        { "--origins", "--cfg", "train --cfg job --origins" },
        { "--package", "--cfg", "train --cfg job --package KEY" },
        { "--retry-failed", "--resume", "train -m --resume DIR --retry-failed" },
        { "--extend", "--resume", "train -m --resume DIR --extend 50" },
    };

    for (size_t i = 0; i < KILN_COUNT(rivals); i++) {
        const char *first = NULL;

        for (size_t k = 0; k < KILN_COUNT(rivals[i]) && rivals[i][k] != NULL; k++) {
            if (!is_given(args, rivals[i][k]))
                continue;
            if (first != NULL)
                return kiln_error_set(err, KILN_E_USAGE,
                                      "%s and %s do not go together: give one of them", first,
                                      rivals[i][k]);
            first = rivals[i][k];
        }
    }
    for (size_t i = 0; i < KILN_COUNT(needs) && !args->help; i++)
        if (is_given(args, needs[i].name) && !is_given(args, needs[i].other))
            return kiln_error_set(err, KILN_E_USAGE, "%s goes with %s: %s", needs[i].name,
                                  needs[i].other, needs[i].example);
    if (args->resume != NULL && !args->multirun)
        return kiln_error_set(err, KILN_E_USAGE,
                              "--resume %s resumes a sweep, with -m: `train -m --resume %s`; a run "
                              "is resumed by `train resume=%s`",
                              args->resume, args->resume, args->resume);
    if (args->resume != NULL &&
        (args->config_path != NULL || args->config_name != NULL || args->config_dirs[0] != NULL))
        return kiln_error_set(
            err, KILN_E_USAGE,
            "--resume uses the config files that the sweep was started with; leave "
            "out --config-path, --config-name and --config-dir");
    return KILN_OK;
}

/* The value of the flag at argv[*i]; *i moves to the word that holds it. */
static const char *flag_value(const KilnFlag *flag, const char *value, int argc, char **argv,
                              int *i)
{
    if (value != NULL || flag->takes == KILN_FLAG_SWITCH)
        return value;
    if (flag->takes == KILN_FLAG_OPTIONAL &&
        (*i + 1 == argc || kiln_flag_check(flag, argv[*i + 1], NULL) < 0))
        return "all";
    return argv[++*i];
}

static bool lacks_value(const KilnFlag *flag, const char *value, bool is_last)
{
    return flag->takes != KILN_FLAG_SWITCH && value == NULL && is_last;
}

/* Parse the flag at argv[*i]. */
static KilnStatus parse_flag(int argc, char **argv, int *i, KilnArgs *args, KilnError *err)
{
    const char *value = NULL;
    const KilnFlag *flag = kiln_flag_find(args->command, argv[*i], &value);

    if (flag == NULL)
        return kiln_flag_unknown(args->command, argv[*i], err);
    if (flag->takes == KILN_FLAG_SWITCH && value != NULL)
        return kiln_error_set(err, KILN_E_USAGE, "%s takes no value", flag->name);
    if (lacks_value(flag, value, *i + 1 == argc) && flag->takes != KILN_FLAG_OPTIONAL)
        return kiln_error_set(err, KILN_E_USAGE, "%s needs a value", flag->name);
    return flag_store(flag, flag_value(flag, value, argc, argv, i), args, err);
}

KilnStatus kiln_args_parse(const char *command, int argc, char **argv, KilnArgs *ret,
                           const KilnFlag **ret_waiting, KilnError *err)
{
    KilnStatus status = KILN_OK;
    KilnArgs args = { .command = command };
    const char *value = NULL;

    args.words = calloc((size_t)argc + 1, sizeof(*args.words));
    args.plugins_found = calloc(1, sizeof(*args.plugins_found));
    if (args.words == NULL || args.plugins_found == NULL) {
        kiln_args_release(&args);
        return kiln_error_nomem(err, (size_t)argc * sizeof(*args.words));
    }
    for (int i = 0; i < argc && (status >= 0 || ret_waiting != NULL); i++) {
        const KilnFlag *flag = is_flag(argv[i]) ? kiln_flag_find(command, argv[i], &value) : NULL;

        if (ret_waiting != NULL && flag != NULL && lacks_value(flag, value, i + 1 == argc))
            *ret_waiting = flag;
        else if (is_flag(argv[i]))
            status = parse_flag(argc, argv, &i, &args, err);
        else if (args.explain[0] != NULL && is_key(argv[i]))
            status = flag_store(kiln_flag_find(command, "--explain", &value), argv[i], &args, err);
        else
            args.words[args.n_words++] = argv[i];
    }
    if (ret_waiting != NULL)
        status = KILN_OK;
    else if (status >= 0)
        status = check_together(&args, err);
    if (status < 0)
        kiln_args_release(&args);
    else
        *ret = args;
    return status;
}

void kiln_args_release(KilnArgs *args)
{
    kiln_plugins_free(args->plugins_found);
    json_decref(args->run_plugins);
    free(args->words);
    *args = (KilnArgs) { 0 };
}

bool kiln_word_is_path(const char *word)
{
    const char *equals = strchr(word, '='), *slash = strchr(word, '/');

    if (equals == NULL)
        return strchr("+~", word[0]) == NULL; /* no key to add or delete; "" is none */
    return slash != NULL && slash < equals && (kiln_is_file(word) || kiln_is_dir(word));
}

const char *kiln_args_take_path(KilnArgs *args)
{
    for (size_t i = 0; i < args->n_words; i++) {
        const char *word = args->words[i];

        if (!kiln_word_is_path(word))
            continue;
        memmove(args->words + i, args->words + i + 1, (args->n_words - i) * sizeof(*args->words));
        args->n_words--;
        return word;
    }
    return NULL;
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

void kiln_args_note_key(KilnArgs *args, const char *key)
{
    if (args->n_keys < KILN_MAX_KEYS)
        args->keys[args->n_keys++] = key;
}

const char *kiln_args_take(KilnArgs *args, const char *key)
{
    size_t length = strlen(key);
    const char *value = NULL;
    size_t kept = 0;

    kiln_args_note_key(args, key);
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

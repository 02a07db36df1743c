/* Completes a command, a flag, a flag's value or a command's words. What these can be is read from
 * the usage texts in cli/flags.c and cli/main.c: "[plots=DIR]" completes to folders. */
#include <string.h>

#include "base/text.h"
#include "cli/complete/completion.h"
#include "cli/flags.h"
#include "cli/plugin/new_kinds.h"
#include "kiln/embed/run.h"
#include "registry/registry.h"

/* ---- Placeholders of usage texts ----------------------------------------------------------- */

/* Names that `kiln show` takes: config files, components (model/resnet), sections (trainer). */
static void complete_names(KilnCompletion *c)
{
    const bool deep = strchr(c->typed, '/') != NULL;

    kiln_complete_group(c, "", true, "");
    for (size_t i = 0; c->registry != NULL && i < kiln_registry_count(c->registry); i++) {
        const KilnComponent *component = kiln_registry_at(c->registry, i);

        kiln_candidate_add(c, !deep, deep ? component->summary : NULL, "%s/%s",
                           kiln_kind_name(component->kind), deep ? component->name : "");
    }
    for (const KilnSection *section = kiln_run_sections(); section->key != NULL; section++)
        if (section->key[0] != '\0')
            kiln_candidate_add(c, false, section->summary, "%s", section->key);
}

/* Complete the name of a primary config. */
static void complete_config(KilnCompletion *c)
{
    for (const char *const *name = kiln_completion_options(c, "", false); *name != NULL; name++)
        kiln_candidate_add(c, false, NULL, "%s", *name);
}

/* A run or a checkpoint; train resumes runs only. */
static void complete_run(KilnCompletion *c)
{
    kiln_candidate_add(c, false, "the newest run", "last");
    if (c->typed == c->word)
        kiln_candidate_add(c, false, "the newest run's best checkpoint", "best");
    kiln_candidates_paths(c, "/");
}

static void complete_groups(KilnCompletion *c)
{
    kiln_complete_group(c, "", false, "");
}

static void complete_key(KilnCompletion *c)
{
    kiln_complete_keys(c, KILN_KEY_NAME);
}

/* What `kiln plugin new` writes. */
static void complete_kind(KilnCompletion *c)
{
    const KilnNewKind *kind;

    for (size_t i = 0; (kind = kiln_new_kind_at(i)) != NULL; i++)
        kiln_candidate_add(c, false, NULL, "%s", kind->name);
}

/* What a placeholder can be: a path with that end (as in kiln_candidates_paths), or what a function
 * finds. */
static const struct Placeholder {
    const char *name, *path_end;
    void (*complete)(KilnCompletion *c);
} placeholders[] = {
    { "DIR", "/", NULL },
    { "FILE", "", NULL },
    { "FILE.so", ".so", NULL },
    { "INPUT", "", NULL },
    { "RUN", NULL, complete_run },
    { "NAME", NULL, complete_names },
    { "KIND", NULL, complete_kind },
    { "GROUP", NULL, complete_groups },
    { "KEY", NULL, complete_key },
    { "OVERRIDE", NULL, kiln_complete_override },
    { "CONFIG", NULL, complete_config },
};

/* ---- Usage texts --------------------------------------------------------------------------- */

static bool is(const char *part, size_t length, const char *name)
{
    return strlen(name) == length && strncmp(part, name, length) == 0;
}

/* Complete one part of a usage text, a name or a placeholder. */
static void complete_part(KilnCompletion *c, const char *part, size_t length)
{
    if (length > 3 && strncmp(part + length - 3, "...", 3) == 0)
        length -= 3;
    if (kiln_usage_is_name(part)) {
        kiln_candidate_add(c, false, NULL, "%.*s", (int)length, part);
        return;
    }
    for (size_t i = 0; i < KILN_COUNT(placeholders); i++) {
        if (!is(part, length, placeholders[i].name))
            continue;
        if (placeholders[i].complete != NULL)
            placeholders[i].complete(c);
        else
            kiln_candidates_paths(c, placeholders[i].path_end);
    }
}

/* Complete the parts of a usage text, "last|DIR". */
static void complete_parts(KilnCompletion *c, const char *usage, size_t size)
{
    const char *text = kiln_arena_strndup(&c->arena, usage, size), *part;
    size_t length;

    while (text != NULL && (part = kiln_usage_next(&text, "[|]", &length)) != NULL)
        complete_part(c, part, length);
}

/* Whether one of the words before the cursor starts with `text`. */
static bool is_given(const KilnCompletion *c, const char *text)
{
    for (size_t i = 0; i < c->args->n_words; i++)
        if (kiln_starts_with(c->args->words[i], text))
            return true;
    return false;
}

/* How many of the command's words without = are there. Between overrides only paths count. */
static size_t words_given(const KilnCompletion *c)
{
    size_t n = 0;

    if (strstr(c->command->usage, "OVERRIDE") == NULL)
        return c->args->n_words;
    for (size_t i = 0; i < c->args->n_words; i++)
        n += kiln_word_is_path(c->args->words[i]);
    return n + is_given(c, "ckpt_path=");
}

/* Complete "key=", and its values after it. False: the word has another key. */
static bool complete_assignment(KilnCompletion *c, const char *part, size_t length)
{
    size_t key = strcspn(part, "=") + 1;

    if (strncmp(c->typed, part, key) != 0) {
        kiln_candidate_add(c, true, NULL, "%.*s", (int)key, part);
        return false;
    }
    c->typed += key;
    complete_parts(c, part + key, length - key);
    return true;
}

/* Complete the words of a command by its usage. Words without = have a place, optional lower-case
 * names and key=VALUE have none. */
static void complete_argument(KilnCompletion *c)
{
    const char *usage = c->command->usage, *part;
    const size_t given = words_given(c);
    size_t length, place = 0;

    if (strstr(usage, "INPUT") != NULL && complete_assignment(c, "input=INPUT", 11))
        return;
    while ((part = kiln_usage_next(&usage, " ", &length)) != NULL) {
        const bool optional = part[0] == '[';

        part += optional;
        length -= 2 * (size_t)optional;
        if (memchr(part, '=', length) != NULL) {
            if (complete_assignment(c, part, length))
                return;
        } else if (is(part, length, "OVERRIDE...") || (optional && kiln_usage_is_name(part))) {
            complete_parts(c, part, length);
        } else {
            const bool repeats = length > 3 && strncmp(part + length - 3, "...", 3) == 0;
            const bool named = is(part, length, "INPUT") &&
                               (is_given(c, "input=") || is_given(c, "split="));

            if (!named && (place == given || (repeats && given > place)))
                complete_parts(c, part, length);
            place++;
        }
        if (place > given && strstr(c->command->usage, "OVERRIDE") == NULL)
            return; /* the next words have other places */
    }
}

/* ---- Words ----------------------------------------------------------------------------------- */

static void complete_command(KilnCompletion *c)
{
    const KilnCommand *command;

    for (size_t i = 0; (command = kiln_command_at(i)) != NULL; i++)
        kiln_candidate_add(c, false, command->summary, "%s", command->name);
    kiln_candidate_add(c, false, "the commands", "--help");
    kiln_candidate_add(c, false, NULL, "--version");
}

/* `waiting`: the flag whose value is the word at the cursor; NULL: none. */
static void complete_word(KilnCompletion *c, const KilnFlag *waiting)
{
    const char *value = NULL;
    const KilnFlag *flag = kiln_flag_find(c->command->name, c->word, &value);

    if (waiting != NULL)
        complete_parts(c, waiting->value, strlen(waiting->value));
    if (waiting != NULL && (waiting->takes != KILN_FLAG_OPTIONAL || c->count > 0))
        return;
    if (flag != NULL && flag->value != NULL && value != NULL) {
        c->typed = value;
        complete_parts(c, flag->value, strlen(flag->value));
    } else if (c->word[0] == '-') {
        for (size_t i = 0; (flag = kiln_flag_at(c->command->name, i)) != NULL; i++)
            kiln_candidate_add(c, false, flag->help, "%s", flag->name);
    } else {
        complete_argument(c);
    }
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

/* The index of the program's name: after VAR=x, sudo, time; 0 under another name. */
static size_t find_program(char **words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(base_name(words[i]), "kiln") == 0 || strcmp(base_name(words[i]), "train") == 0)
            return i;
    return 0;
}

void kiln_complete_words(KilnCompletion *c, char **words, size_t count)
{
    const KilnFlag *waiting = NULL;
    KilnArgs args = { 0 };

    if (count < 2)
        return;
    size_t first = find_program(words, count - 1) + 1;
    const bool is_kiln = strcmp(base_name(words[first - 1]), "kiln") == 0;
    if (is_kiln && first + 1 == count) {
        complete_command(c);
        return;
    }
    c->command = kiln_command_find(is_kiln ? words[first++] : "train");
    for (size_t i = first; i + 1 < count; i++) { /* as the shell will do */
        char *path = kiln_starts_with(words[i], "~/") ? kiln_completion_home_path(c, words[i])
                                                      : NULL;

        words[i] = path != NULL ? path : words[i];
    }
    if (c->command == NULL || kiln_args_parse(c->command->name, (int)(count - 1 - first),
                                              words + first, &args, &waiting, NULL) < 0)
        return;
    c->args = &args;
    kiln_completion_compose(c);
    complete_word(c, waiting);
    kiln_args_release(&args);
    c->args = NULL;
}

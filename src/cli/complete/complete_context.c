/* Composes the config that an unfinished command line describes. */
#include "cli/complete/complete_context.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/system/file.h"
#include "base/text.h"
#include "cli/complete/candidates.h"
#include "cli/find_run.h"
#include "cli/open_config.h"
#include "config/override/override.h"
#include "config/defaults/shipped.h"
#include "config/composed.h"
#include "kiln/run.h"
#include "registry/registry.h"

/* ---- Words that compose ---------------------------------------------------------------- */

static bool compose(KilnCompletionContext *context, const char *const *words)
{
    KilnComposeRequest request = context->request;
    KilnConfig *config = NULL;

    request.overrides = words;
    if (kiln_compose(&request, &config, NULL) < 0)
        return false;
    kiln_config_free(context->config);
    context->config = config;
    return true;
}

/* Compose with all words, or else with those that compose with the ones before them. */
static void compose_words(KilnCompletionContext *context, const char *const *words, size_t n)
{
    const char **taken = kiln_arena_alloc(&context->arena, (n + 1) * sizeof(*taken));
    size_t n_taken = 0;

    if (taken == NULL || compose(context, words))
        return;
    for (size_t i = 0; i < n; i++) {
        taken[n_taken] = words[i];
        if (compose(context, taken))
            n_taken++;
        else
            taken[n_taken] = NULL;
    }
    if (context->config == NULL)
        compose(context, taken);
}

/* ---- Sweeps ------------------------------------------------------------------------------ */

/* Length of the text before the first comma that is not in brackets or quotes. */
static size_t first_length(const char *text)
{
    int depth = 0;
    char quote = '\0';
    size_t n = 0;

    for (; text[n] != '\0'; n++) {
        char c = text[n];

        if (c == '\\' && text[n + 1] != '\0')
            n++;
        else if (quote != '\0')
            quote = c == quote ? '\0' : quote;
        else if (c == '\'' || c == '"')
            quote = c;
        else if (strchr("([{", c) != NULL)
            depth++;
        else if (strchr(")]}", c) != NULL && depth-- == 0)
            break;
        else if (c == ',' && depth == 0)
            break;
    }
    return n;
}

/* `key=a` of `key=a,b` and `key=choice(a,b)`. */
static const char *first_value(KilnArena *arena, const char *word)
{
    static const char call[] = "choice(";
    const char *value = strchr(word, '=');

    if (value == NULL)
        return word;
    value++;
    const char *first = kiln_starts_with(value, call) ? value + strlen(call) : value;
    return kiln_arena_printf(arena, "%.*s%.*s", (int)(value - word), word, (int)first_length(first),
                             first);
}

/* ---- The context ------------------------------------------------------------------------- */

/* The word by which a command names a past run; NULL: none. */
static const char *run_word(const KilnArgs *args, const char *command)
{
    bool trains = strcmp(command, "train") == 0;
    const char *key = trains ? "resume=" : "ckpt_path=";

    for (size_t i = 0; i < args->n_words; i++)
        if (kiln_starts_with(args->words[i], key))
            return args->words[i] + strlen(key);
    for (size_t i = 0; i < args->n_words && !trains; i++)
        if (kiln_word_is_path(args->words[i]))
            return args->words[i];
    return NULL;
}

/* The folder of the config of the run or checkpoint that the words name; NULL: none. */
static const char *past_config(KilnArena *arena, const KilnArgs *args, const char *command)
{
    bool evaluates = strcmp(command, "eval") == 0 || strcmp(command, "predict") == 0;
    bool runs = strcmp(command, "train") == 0 || strcmp(command, "explain") == 0 ||
                strcmp(command, "replay") == 0;
    const char *word = evaluates || runs ? run_word(args, command) : NULL, *path = NULL;
    char *found = NULL;

    if (word == NULL)
        return NULL;
    word = kiln_home_path(arena, word);
    if (evaluates && kiln_checkpoint_resolve(word, kiln_runs_folder(args), &found, NULL) >= 0)
        path = kiln_arena_strdup(arena, found);
    else if (runs && kiln_run_find(word, kiln_runs_folder(args), &found, NULL) >= 0)
        path = kiln_arena_printf(arena, "%s/.kiln", found);
    free(found);
    return path;
}

/* Expand ~/ in the paths of flags, which the shell has not done in a completed line. */
static void expand_paths(KilnArena *arena, KilnArgs *args)
{
    if (args->config_path != NULL)
        args->config_path = kiln_home_path(arena, args->config_path);
    for (size_t i = 0; args->config_dirs[i] != NULL; i++)
        args->config_dirs[i] = kiln_home_path(arena, args->config_dirs[i]);
    for (size_t i = 0; args->plugins[i] != NULL; i++)
        args->plugins[i] = kiln_home_path(arena, args->plugins[i]);
}

/* Whether a word is an override of the config, and not the command's own argument. */
static bool is_override(const char *word, const char *command, bool past)
{
    static const char *const own[] = { "input=", "output=", "resume=", "split=", "plots=" };

    for (size_t i = 0; i < KILN_COUNT(own); i++)
        if (kiln_starts_with(word, own[i]))
            return false;
    if (strcmp(command, "explain") == 0 || (past && kiln_starts_with(word, "ckpt_path=")))
        return false;
    return strcmp(command, "train") == 0 || !kiln_word_is_path(word);
}

void kiln_completion_context_set(KilnArgs *args, const char *command, KilnCompletionContext *ret)
{
    *ret = (KilnCompletionContext) { 0 };
    KilnArena *arena = &ret->arena;
    const char *past = past_config(arena, args, command);
    const char **words = kiln_arena_alloc(arena, (args->n_words + 1) * sizeof(*words));
    size_t n = 0;

    expand_paths(arena, args);
    if (kiln_registry_new(&ret->registry, NULL) >= 0)
        for (size_t i = 0; args->plugins[i] != NULL; i++) /* bad ones are skipped */
            (void)!kiln_registry_load(ret->registry, args->plugins[i], NULL);
    ret->request = kiln_command_request(args, ret->registry);
    ret->request.overrides = NULL;
    if (past != NULL) {
        ret->request.config_path = past;
        ret->request.config_name = NULL;
    }
    if (words == NULL)
        return;
    /* Groups first: of model.hidden=[8] and model=resnet, which exclude each other, the group
     * counts. */
    for (int dotted = 0; dotted < 2; dotted++)
        for (size_t i = 0; i < args->n_words; i++) {
            const char *word = args->words[i];

            if ((memchr(word, '.', strcspn(word, "=")) != NULL) == (dotted == 1) &&
                is_override(word, command, past != NULL) &&
                (words[n] = first_value(arena, word)) != NULL)
                n++;
        }
    compose_words(ret, words, n);
}

void kiln_completion_context_release(KilnCompletionContext *context)
{
    kiln_config_free(context->config);
    kiln_registry_free(context->registry);
    kiln_arena_release(&context->arena);
    *context = (KilnCompletionContext) { 0 };
}

/* ---- Options ----------------------------------------------------------------------------- */

/* Files and components, and what the composed config finds besides in kiln.searchpath. */
const char **kiln_completion_context_options(KilnCompletionContext *context, const char *group,
                                             bool groups)
{
    KilnArena *arena = &context->arena;
    char **found = NULL;
    const char **more = NULL, **list = NULL;
    size_t count = 0, n = 0, capacity = 0;

    if (context->config != NULL)
        more = kiln_search_options(&context->config->search, group, groups);
    if (kiln_compose_options(&context->request, group, groups, &found, &count, NULL) < 0)
        count = 0;
    for (size_t i = 0; i < count || (more != NULL && *more != NULL); i++) {
        const char *name = i < count ? kiln_arena_strdup(arena, found[i]) : *more++;

        if (name != NULL && KILN_ARENA_RESERVE(arena, list, capacity, n + 2))
            list[n++] = name;
    }
    kiln_names_free(found, count);
    return list; /* the rest is zero */
}

/* The first comment of YAML text that is no header. */
static const char *first_comment(KilnArena *arena, const char *text)
{
    while (text[0] == '#') {
        size_t length = strcspn(text, "\n");
        const char *start = text + 1 + strspn(text + 1, "# \t");

        if (start < text + length && !kiln_starts_with(start, "@package") &&
            !kiln_starts_with(start, "yaml-language-server"))
            return kiln_arena_strndup(arena, start, (size_t)(text + length - start));
        text += length;
        text += *text == '\n';
    }
    return NULL;
}

static const char *file_comment(KilnCompletionContext *context, const char *folder,
                                const char *name)
{
    char *path = kiln_path_join(folder, name), head[512] = "";
    FILE *file = path != NULL && kiln_is_file(path) ? fopen(path, "r") : NULL;

    free(path);
    if (file == NULL)
        return NULL;
    head[fread(head, 1, sizeof(head) - 1, file)] = '\0';
    fclose(file);
    const char *note = first_comment(&context->arena, head);
    return note != NULL ? note : "";
}

const char *kiln_completion_context_option_note(KilnCompletionContext *context, const char *group,
                                                const char *option)
{
    const char *name = kiln_arena_printf(&context->arena, "%s/%s.yaml", group, option);
    const char *kind = strcmp(group, "task") == 0 ? "module" : group;
    const KilnSearchFolder *folder = context->config != NULL ? context->config->search.folders
                                                             : NULL;
    const KilnComponent *component;

    if (name == NULL)
        return NULL;
    for (; folder != NULL; folder = folder->next) {
        const char *note = file_comment(context, folder->path, name);

        if (note != NULL)
            return *note != '\0' ? note : NULL;
    }
    for (size_t i = 0; i < kiln_shipped_conf_count; i++)
        if (strcmp(kiln_shipped_conf[i].path, name) == 0)
            return first_comment(&context->arena, kiln_shipped_conf[i].text);
    component = context->registry != NULL
                    ? kiln_registry_find(context->registry, kiln_kind_find(kind, strlen(kind)),
                                         option)
                    : NULL;
    return component != NULL ? component->summary : NULL;
}

/* Composes what a half-typed command line says, as far as it goes. */
#include "cli/complete/complete_context.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "base/text.h"
#include "cli/complete/candidates.h"
#include "cli/find_run.h"
#include "config/override/override.h"
#include "config/defaults/shipped.h"
#include "config/composed.h"
#include "kiln/run.h"
#include "registry/registry.h"

/* ---- Words that compose ---------------------------------------------------------------- */

typedef struct Trial {
    KilnCompletionContext *context;
    const char **words;
    bool *taken;
    size_t *order; /* in which words are tried: places in `words` */
    size_t count;
} Trial;

static bool compose(Trial *trial)
{
    KilnCompletionContext *context = trial->context;
    const char **words = kiln_arena_alloc(&context->arena, (trial->count + 1) * sizeof(*words));
    KilnComposeRequest request = context->request;
    KilnConfig *config = NULL;
    KilnErrors *errors = NULL;
    size_t n = 0;

    if (words == NULL || kiln_errors_new(&errors) < 0)
        return false;
    for (size_t i = 0; i < trial->count; i++)
        if (trial->taken[i])
            words[n++] = trial->words[i];
    request.overrides = words;
    KilnStatus status = kiln_compose(&request, &config, errors);
    kiln_errors_free(errors);
    if (status < 0)
        return false;
    kiln_config_free(context->config);
    context->config = config;
    return true;
}

/* Take words from..to of the order if they compose with those that are taken; of those that do not
 * as many as possible. A wrong word among many costs few compositions so. */
static bool take(Trial *trial, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        trial->taken[trial->order[i]] = true;
    if (compose(trial))
        return true;
    for (size_t i = from; i < to; i++)
        trial->taken[trial->order[i]] = false;
    if (to - from < 2)
        return false;
    size_t middle = from + (to - from) / 2;
    bool first = take(trial, from, middle);
    return take(trial, middle, to) || first;
}

/* Of model.hidden=[8] and model=resnet, which do not fit each other, the choice of the
 * option counts: groups are tried first. */
static void take_words(Trial *trial)
{
    size_t n = 0;

    for (int dotted = 0; dotted < 2; dotted++)
        for (size_t i = 0; i < trial->count; i++) {
            size_t length = strcspn(trial->words[i], "=");

            if ((memchr(trial->words[i], '.', length) != NULL) == (dotted == 1))
                trial->order[n++] = i;
        }
    take(trial, 0, trial->count);
    if (trial->context->config == NULL)
        compose(trial);
}

/* ---- Sweeps ------------------------------------------------------------------------------ */

/* Length of the text in front of the first comma that no bracket or quote holds. */
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

/* ---- The scene --------------------------------------------------------------------------- */

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

/* The folder of the config that a run or checkpoint remembers; NULL: none. */
static const char *remembered(KilnArena *arena, const KilnArgs *args, const char *command)
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

static const char *const *home_paths(KilnArena *arena, const char *const *paths)
{
    size_t n = 0;

    while (paths[n] != NULL)
        n++;
    const char **copy = kiln_arena_alloc(arena, (n + 1) * sizeof(*copy));
    for (size_t i = 0; copy != NULL && i < n; i++)
        copy[i] = kiln_home_path(arena, paths[i]);
    return copy;
}

static KilnRegistry *make_registry(KilnArena *arena, const KilnArgs *args)
{
    KilnRegistry *registry = NULL;

    if (kiln_registry_new(&registry, NULL) < 0)
        return NULL;
    for (size_t i = 0; args->plugins[i] != NULL; i++)
        if (kiln_registry_load(registry, kiln_home_path(arena, args->plugins[i]), NULL) < 0)
            continue; /* its components are not offered */
    return registry;
}

void kiln_completion_context_set(const KilnArgs *args, const char *command,
                                 KilnCompletionContext *ret)
{
    *ret = (KilnCompletionContext) { 0 };
    KilnArena *arena = &ret->arena;
    const char *own = remembered(arena, args, command);
    Trial trial = { .context = ret };

    ret->registry = make_registry(arena, args);
    ret->request = (KilnComposeRequest) {
        .config_path = own != NULL                 ? own
                       : args->config_path != NULL ? kiln_home_path(arena, args->config_path)
                                                   : NULL,
        .config_name = own != NULL ? NULL : args->config_name,
        .config_dirs = home_paths(arena, args->config_dirs),
        .registry = ret->registry,
        .sections = kiln_run_sections(),
    };
    trial.words = kiln_arena_alloc(arena, (args->n_words + 1) * sizeof(*trial.words));
    trial.taken = kiln_arena_alloc(arena, args->n_words + 1);
    trial.order = kiln_arena_alloc(arena, (args->n_words + 1) * sizeof(*trial.order));
    if (trial.words == NULL || trial.taken == NULL || trial.order == NULL)
        return;
    for (size_t i = 0; i < args->n_words && strcmp(command, "explain") != 0; i++) {
        const char *word = first_value(arena, args->words[i]);

        if (word != NULL && !kiln_starts_with(word, "input=") &&
            !kiln_starts_with(word, "output=") && !kiln_starts_with(word, "resume=") &&
            !kiln_starts_with(word, "split=") && !kiln_starts_with(word, "plots=") &&
            !(strcmp(command, "train") != 0 && kiln_word_is_path(args->words[i])) &&
            !(own != NULL && kiln_starts_with(word, "ckpt_path=")))
            trial.words[trial.count++] = word;
    }
    take_words(&trial);
}

void kiln_completion_context_release(KilnCompletionContext *context)
{
    kiln_config_free(context->config);
    kiln_registry_free(context->registry);
    kiln_arena_release(&context->arena);
    *context = (KilnCompletionContext) { 0 };
}

/* ---- Options ----------------------------------------------------------------------------- */

static size_t add_names(const char **list, size_t n, const char *const *names)
{
    for (size_t i = 0; names != NULL && names[i] != NULL; i++) {
        size_t k = 0;

        while (k < n && strcmp(list[k], names[i]) != 0)
            k++;
        if (k == n)
            list[n++] = names[i];
    }
    return n;
}

/* Files and components, and what the composed config finds besides in folders of its own
 * (kiln.searchpath). */
const char **kiln_completion_context_options(KilnCompletionContext *context, const char *group,
                                             bool groups)
{
    char **found = NULL;
    const char **more = NULL, **list;
    size_t count = 0, n = 0;

    if (context->config != NULL)
        more = kiln_search_options(&context->config->search, group, groups);
    while (more != NULL && more[n] != NULL)
        n++;
    if (kiln_compose_options(&context->request, group, groups, &found, &count, NULL) < 0)
        found = NULL;
    list = kiln_arena_alloc(&context->arena, (count + n + 1) * sizeof(*list));
    n = 0;
    for (size_t i = 0; list != NULL && i < count; i++)
        if ((list[n] = kiln_arena_strdup(&context->arena, found[i])) != NULL)
            n++;
    if (found != NULL)
        kiln_names_free(found, count);
    if (list != NULL)
        n = add_names(list, n, more);
    return n > 0 ? list : NULL;
}

/* The first comment that is no header, from YAML text. */
static const char *first_comment(KilnArena *arena, const char *text)
{
    while (text[0] == '#') {
        size_t length = strcspn(text, "\n");
        const char *start = text + 1 + strspn(text + 1, "# \t");

        if (start < text + length && !kiln_starts_with(start, "@package"))
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

/* Collects completion candidates, and composes the config that an unfinished command line
 * describes. */
#include "cli/complete/completion.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/system/file.h"
#include "base/text.h"
#include "cli/find_plugins.h"
#include "cli/find_run.h"
#include "cli/open_config.h"
#include "config/override/override.h"
#include "config/composed.h"
#include "kiln/embed/run.h"
#include "registry/plugin/plugin_trust.h"
#include "registry/registry.h"

/* ---- Candidates ---------------------------------------------------------------------------- */

static void append(KilnCompletion *c, bool open, const char *text, const char *note)
{
    if (text != NULL && KILN_ARENA_RESERVE(&c->arena, c->list, c->capacity, c->count + 1))
        c->list[c->count++] = (KilnCandidate) { .text = text, .note = note, .open = open };
}

/* Whether one of the value's items before the last is the one that `text`, a word, ends in. */
static bool is_given(const KilnCompletion *c, const char *text)
{
    static const char ends[] = ",[(";
    const char *last = text + (c->item - c->word);

    for (const char *item = c->value; item < c->item; item += strcspn(item, ends) + 1)
        if (strcspn(item, ends) == strlen(last) && kiln_starts_with(item, last))
            return true;
    return false;
}

void kiln_candidate_add(KilnCompletion *c, bool open, const char *note, const char *format, ...)
{
    KilnText text = { 0 };
    va_list args;

    kiln_text_append_n(&text, c->word, (size_t)(c->typed - c->word));
    va_start(args, format);
    kiln_text_vprintf(&text, format, args);
    va_end(args);
    const char *whole = kiln_text_to_arena(&text, &c->arena);
    if (whole == NULL || !kiln_starts_with(whole, c->word) ||
        (c->value != NULL && is_given(c, whole)))
        return;
    for (size_t i = 0; i < c->count; i++)
        if (strcmp(c->list[i].text, whole) == 0)
            return;
    append(c, open || c->bracket, whole, note);
}

char *kiln_completion_home_path(KilnCompletion *c, const char *path)
{
    char *whole = kiln_path_expand(path);
    char *copy = whole != NULL ? kiln_arena_strdup(&c->arena, whole) : NULL;

    free(whole);
    return copy;
}

void kiln_candidates_paths(KilnCompletion *c, const char *end)
{
    const char *slash = strrchr(c->typed, '/'), *name = slash != NULL ? slash + 1 : c->typed;
    const char *typed = kiln_arena_strndup(&c->arena, c->typed, (size_t)(name - c->typed));
    const char *folder = typed != NULL ? kiln_completion_home_path(c, typed) : NULL;
    char **names = NULL;
    size_t count = 0;

    if (folder == NULL || kiln_dir_list(*folder != '\0' ? folder : ".", &names, &count, NULL) < 0)
        return;
    for (size_t i = 0; i < count; i++) {
        if (!kiln_starts_with(names[i], name) || (names[i][0] == '.' && name[0] != '.'))
            continue;
        char *path = kiln_path_join(folder, names[i]);
        const bool is_dir = path != NULL && kiln_is_dir(path);

        if (is_dir || (strcmp(end, "/") != 0 && kiln_ends_with(names[i], end)))
            append(c, is_dir,
                   kiln_arena_printf(&c->arena, "%.*s%s%s", (int)(name - c->word), c->word,
                                     names[i], is_dir ? "/" : ""),
                   NULL);
        free(path);
    }
    kiln_names_free(names, count);
}

/* ---- The config ---------------------------------------------------------------------------- */

static bool compose(KilnCompletion *c, const char *const *words)
{
    KilnComposeRequest request = c->request;
    KilnConfig *config = NULL;

    request.overrides = words;
    if (kiln_compose(&request, &config, NULL) < 0)
        return false;
    kiln_config_free(c->config);
    c->config = config;
    return true;
}

/* Compose with all words, or else with those that compose with the ones before them. Groups are
 * first then: of model.hidden=[8] and model=resnet, which exclude each other, the group counts. */
static void compose_words(KilnCompletion *c, const char *const *words, size_t n)
{
    const char **taken = kiln_arena_alloc(&c->arena, (n + 1) * sizeof(*taken));
    size_t n_taken = 0;

    if (taken == NULL || compose(c, words))
        return;
    for (int dotted = 0; dotted < 2; dotted++)
        for (size_t i = 0; i < n; i++) {
            if ((memchr(words[i], '.', strcspn(words[i], "=")) != NULL) != (dotted == 1))
                continue;
            taken[n_taken] = words[i];
            if (compose(c, taken))
                n_taken++;
            else
                taken[n_taken] = NULL;
        }
    if (c->config == NULL)
        compose(c, taken);
}

/* `key=a` of `key=a,b` and `key=choice(a,b)`. */
static const char *first_value(KilnArena *arena, const char *word)
{
    KilnOverride override;
    KilnText text = { 0 };

    if (kiln_override_read(arena, word, 1, &override, NULL) < 0 || override.sweep == NULL ||
        override.sweep->kind != KILN_SWEEP_CHOICE)
        return word;
    kiln_text_append_n(&text, word, (size_t)(override.value_text - override.text));
    kiln_value_written(override.value, &text);
    const char *first = kiln_text_to_arena(&text, arena);
    return first != NULL ? first : word;
}

/* The folder of the config of the run or checkpoint that the words name; NULL: none. */
static const char *past_config(KilnCompletion *c)
{
    const KilnArgs *args = c->args;
    const bool needs_run = kiln_starts_with(c->command->usage, "RUN");
    const bool evaluates = needs_run && strstr(c->command->usage, "split=") != NULL;
    const char *key = needs_run ? "ckpt_path=" : "resume=", *run = NULL, *path = NULL;
    char *found = NULL;

    for (size_t i = args->n_words; i-- > 0;)
        if (kiln_starts_with(args->words[i], key))
            run = args->words[i] + strlen(key);
    for (size_t i = 0; i < args->n_words && needs_run && run == NULL; i++)
        if (kiln_word_is_path(args->words[i]))
            run = args->words[i];
    run = run != NULL ? kiln_completion_home_path(c, run) : NULL;
    if (run == NULL)
        return NULL;
    if (evaluates && kiln_checkpoint_resolve(run, kiln_runs_folder(args), &found, NULL) >= 0)
        path = kiln_arena_strdup(&c->arena, found);
    else if (!evaluates && kiln_run_find(run, kiln_runs_folder(args), &found, NULL) >= 0)
        path = kiln_arena_printf(&c->arena, "%s/.kiln", found);
    free(found);
    return path;
}

/* Let the request search the folders that the config names in kiln.searchpath, too. */
static void add_search_path(KilnCompletion *c)
{
    const KilnSearchFolder *folder = c->config != NULL ? c->config->search.folders : NULL;
    const char **dirs = NULL;
    size_t n = 0, capacity = 0;

    for (; folder != NULL && KILN_ARENA_RESERVE(&c->arena, dirs, capacity, n + 2);
         folder = folder->next)
        dirs[n++] = folder->path;
    if (n > 0)
        c->request.config_dirs = dirs; /* the rest is zero */
}

/* What the line names, and else only what a command has loaded before: a Tab does not run code of a
 * folder that is only looked at. Bad ones are skipped. */
static void load_plugins(KilnCompletion *c)
{
    const KilnFoundPlugins *found = c->args->plugins_found;

    if (kiln_registry_new(&c->registry, NULL) < 0)
        return;
    (void)!kiln_plugins_find(c->args, NULL);
    for (size_t i = 0; i < found->count; i++) {
        const KilnFoundPlugin *plugin = &found->list[i];

        if (strcmp(plugin->from, "--plugin") == 0 || kiln_plugin_allowed(plugin->path, NULL) >= 0)
            (void)!kiln_registry_load_from(c->registry, plugin->path, plugin->from, NULL);
    }
}

void kiln_completion_compose(KilnCompletion *c)
{
    const KilnArgs *args = c->args;
    const char *past = past_config(c);
    const char **words = kiln_arena_alloc(&c->arena, (args->n_words + 1) * sizeof(*words));

    load_plugins(c);
    c->request = kiln_command_request(args, c->registry);
    c->request.overrides = NULL;
    if (past != NULL) {
        c->request.config_path = past;
        c->request.config_name = NULL;
    }
    for (size_t i = 0; words != NULL && i < args->n_words; i++)
        words[i] = first_value(&c->arena, args->words[i]);
    if (words != NULL)
        compose_words(c, words, args->n_words);
    add_search_path(c);
}

const char *const *kiln_completion_options(KilnCompletion *c, const char *group, bool groups)
{
    static const char *const none[] = { NULL };
    char **found = NULL;
    size_t count = 0;

    if (kiln_compose_options(&c->request, group, groups, &found, &count, NULL) < 0)
        return none;
    const char **list = kiln_arena_alloc(&c->arena, (count + 1) * sizeof(*list));
    for (size_t i = 0; list != NULL && i < count; i++)
        list[i] = kiln_arena_strdup(&c->arena, found[i]);
    kiln_names_free(found, count);
    return list != NULL ? list : none;
}

void kiln_completion_release(KilnCompletion *c)
{
    kiln_config_free(c->config);
    kiln_registry_free(c->registry);
    kiln_arena_release(&c->arena);
    *c = (KilnCompletion) { 0 };
}

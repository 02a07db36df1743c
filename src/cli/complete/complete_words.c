/* Completes a command, a flag, a flag's value or a command's words. What these can be is read from
 * the usage texts in cli/flags.c and cli/main.c: "[plots=DIR]" completes to folders. */
#include "cli/complete/complete_words.h"

#include <string.h>

#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/complete/complete_context.h"
#include "cli/complete/complete_keys.h"
#include "cli/flags.h"
#include "kiln/run.h"
#include "registry/registry.h"

typedef struct Cursor {
    const KilnCommand *command;
    KilnArgs args; /* of the words before the cursor */
    KilnCandidates *candidates;
    KilnCompletionContext context;
    bool composed; /* the context is set */
} Cursor;

static KilnCompletionContext *context(Cursor *cursor)
{
    if (!cursor->composed)
        kiln_completion_context_set(&cursor->args, cursor->command->name, &cursor->context);
    cursor->composed = true;
    return &cursor->context;
}

/* ---- Names of groups, files and components ------------------------------------------------- */

/* Folders of config files by one level, and with `files` the files: experiment/mnist/cnn. */
static void complete_files(Cursor *cursor, bool files)
{
    KilnCompletionContext *composed = context(cursor);
    KilnCandidates *candidates = cursor->candidates;
    KilnArena *arena = &candidates->arena;
    const char *typed = candidates->typed, *slash = strrchr(typed, '/');
    size_t length = slash != NULL ? (size_t)(slash - typed) : 0;
    const char *group = kiln_arena_strndup(arena, typed, length);

    if (group == NULL)
        return;
    const char **groups = kiln_completion_context_options(composed, group, true);
    const char **options = files ? kiln_completion_context_options(composed, group, false) : NULL;
    length += slash != NULL;
    for (; options != NULL && *options != NULL; options++)
        kiln_candidates_add(candidates, false,
                            kiln_arena_printf(arena, "%.*s%s", (int)length, typed, *options),
                            kiln_completion_context_option_note(composed, group, *options));
    for (; groups != NULL && *groups != NULL; groups++) {
        const char *path = kiln_arena_printf(arena, "%.*s%s", (int)length, typed, *groups);

        if (path == NULL || (strcmp(path, "kiln") == 0 && *typed == '\0'))
            continue;
        kiln_candidates_add(candidates, false, path, "group");
        if (files || kiln_completion_context_options(composed, path, true) != NULL)
            kiln_candidates_add(candidates, true, kiln_arena_printf(arena, "%s/", path), "group");
    }
}

/* Names that `kiln show` takes: config files, components (model/resnet), sections (trainer). */
static void complete_names(Cursor *cursor)
{
    KilnCandidates *candidates = cursor->candidates;
    const KilnRegistry *registry = context(cursor)->registry;
    bool deep = strchr(candidates->typed, '/') != NULL;

    complete_files(cursor, true);
    for (size_t i = 0; registry != NULL && i < kiln_registry_count(registry); i++) {
        const KilnComponent *component = kiln_registry_at(registry, i);
        const char *kind = kiln_kind_name(component->kind);

        kiln_candidates_add(
            candidates, !deep,
            kiln_arena_printf(&candidates->arena, "%s/%s", kind, deep ? component->name : ""),
            deep ? component->summary : NULL);
    }
    for (const KilnSection *section = kiln_run_sections(); section->key != NULL; section++)
        if (section->key[0] != '\0')
            kiln_candidates_add(candidates, false, section->key, section->summary);
}

/* ---- Usage texts --------------------------------------------------------------------------- */

static bool is(const char *part, size_t length, const char *name)
{
    return strlen(name) == length && strncmp(part, name, length) == 0;
}

/* Complete one part of a usage text, a name or a placeholder. `before` is the text of the word
 * before it ("--cfg=", "plots="). */
static void complete_part(Cursor *cursor, const char *part, size_t length, const char *before)
{
    KilnCandidates *candidates = cursor->candidates;
    const char *typed = candidates->typed + strlen(before);

    if (length > 3 && strncmp(part + length - 3, "...", 3) == 0)
        length -= 3;
    if (kiln_usage_is_name(part)) {
        kiln_candidates_add(
            candidates, false,
            kiln_arena_printf(&candidates->arena, "%s%.*s", before, (int)length, part), NULL);
    } else if (is(part, length, "DIR")) {
        kiln_candidates_paths(candidates, before, typed, "/");
    } else if (is(part, length, "FILE") || is(part, length, "INPUT")) {
        kiln_candidates_paths(candidates, before, typed, "");
    } else if (is(part, length, "FILE.so")) {
        kiln_candidates_paths(candidates, before, typed, ".so");
    } else if (is(part, length, "RUN")) {
        kiln_candidates_add(candidates, false,
                            kiln_arena_printf(&candidates->arena, "%slast", before),
                            "the newest run");
        if (before[0] == '\0') /* train resumes runs, not checkpoints */
            kiln_candidates_add(candidates, false, "best", "the newest run's best checkpoint");
        kiln_candidates_paths(candidates, before, typed, "/");
    } else if (is(part, length, "NAME")) {
        complete_names(cursor);
    } else if (is(part, length, "GROUP")) {
        complete_files(cursor, false);
    } else if (is(part, length, "KEY")) {
        kiln_complete_keys(context(cursor), candidates, before, typed, KILN_KEY_NAME);
    } else if (is(part, length, "OVERRIDE")) {
        kiln_complete_override(context(cursor), candidates);
    } else if (is(part, length, "CONFIG")) {
        const char **names = kiln_completion_context_options(context(cursor), "", false);

        for (; names != NULL && *names != NULL; names++)
            kiln_candidates_add(candidates, false,
                                kiln_arena_printf(&candidates->arena, "%s%s", before, *names),
                                NULL);
    }
}

static void complete_parts(Cursor *cursor, const char *usage, size_t size, const char *before)
{
    const char *text = kiln_arena_strndup(&cursor->candidates->arena, usage, size), *part;
    size_t length;

    while (text != NULL && (part = kiln_usage_next(&text, "[|]", &length)) != NULL)
        complete_part(cursor, part, length, before);
}

/* Whether one of the words before the cursor starts with `text`. */
static bool is_given(const Cursor *cursor, const char *text)
{
    for (size_t i = 0; i < cursor->args.n_words; i++)
        if (kiln_starts_with(cursor->args.words[i], text))
            return true;
    return false;
}

/* How many of the command's words without = are there. Between overrides only paths count. */
static size_t words_given(const Cursor *cursor)
{
    size_t n = 0;

    if (strstr(cursor->command->usage, "OVERRIDE") == NULL)
        return cursor->args.n_words;
    for (size_t i = 0; i < cursor->args.n_words; i++)
        n += kiln_word_is_path(cursor->args.words[i]);
    return n + is_given(cursor, "ckpt_path=");
}

/* Complete "key=", and its values after it. False: the word has another key. */
static bool complete_assignment(Cursor *cursor, const char *part, size_t length)
{
    KilnCandidates *candidates = cursor->candidates;
    size_t key = strcspn(part, "=") + 1;
    const char *before = kiln_arena_strndup(&candidates->arena, part, key);

    if (before == NULL || !kiln_starts_with(candidates->typed, before)) {
        kiln_candidates_add(candidates, true, before, NULL);
        return false;
    }
    complete_parts(cursor, part + key, length - key, before);
    return true;
}

/* Complete the words of a command by its usage. Words without = have a place, optional lower-case
 * names and key=VALUE have none. */
static void complete_argument(Cursor *cursor)
{
    const char *usage = cursor->command->usage, *part;
    const size_t given = words_given(cursor);
    size_t length, place = 0;

    if (strstr(usage, "INPUT") != NULL && complete_assignment(cursor, "input=INPUT", 11))
        return;
    while ((part = kiln_usage_next(&usage, " ", &length)) != NULL) {
        const bool optional = part[0] == '[';

        part += optional;
        length -= 2 * (size_t)optional;
        if (memchr(part, '=', length) != NULL) {
            if (complete_assignment(cursor, part, length))
                return;
        } else if (is(part, length, "OVERRIDE...") || (optional && kiln_usage_is_name(part))) {
            complete_parts(cursor, part, length, "");
        } else {
            const bool repeats = length > 3 && strncmp(part + length - 3, "...", 3) == 0;
            const bool named = is(part, length, "INPUT") &&
                               (is_given(cursor, "input=") || is_given(cursor, "split="));

            if (!named && (place == given || (repeats && given > place)))
                complete_parts(cursor, part, length, "");
            place++;
        }
        if (place > given && strstr(cursor->command->usage, "OVERRIDE") == NULL)
            return; /* the next words have other places */
    }
}

/* ---- Flags and commands ---------------------------------------------------------------------- */

static void complete_flag(Cursor *cursor)
{
    const KilnFlag *flag;

    for (size_t i = 0; (flag = kiln_flag_at(cursor->command->name, i)) != NULL; i++)
        kiln_candidates_add(cursor->candidates, false, flag->name, flag->help);
}

static void complete_command(KilnCandidates *candidates)
{
    const KilnCommand *command;

    for (size_t i = 0; (command = kiln_command_at(i)) != NULL; i++)
        kiln_candidates_add(candidates, false, command->name, command->summary);
    kiln_candidates_add(candidates, false, "--help", "the commands");
    kiln_candidates_add(candidates, false, "--version", NULL);
}

/* `waiting`: the flag whose value is the word at the cursor; NULL: none. */
static void complete_word(Cursor *cursor, const KilnFlag *waiting)
{
    KilnCandidates *candidates = cursor->candidates;
    const char *typed = candidates->typed, *value = NULL;
    const KilnFlag *flag = kiln_flag_find(cursor->command->name, typed, &value);

    if (waiting != NULL)
        complete_parts(cursor, waiting->value, strlen(waiting->value), "");
    if (waiting != NULL && (waiting->takes != KILN_FLAG_OPTIONAL || candidates->count > 0))
        return;
    if (flag != NULL && flag->value != NULL && value != NULL) {
        const char *before = kiln_arena_strndup(&candidates->arena, typed, (size_t)(value - typed));

        if (before != NULL)
            complete_parts(cursor, flag->value, strlen(flag->value), before);
    } else if (typed[0] == '-') {
        complete_flag(cursor);
    } else {
        complete_argument(cursor);
    }
}

/* ---- Words ----------------------------------------------------------------------------------- */

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

void kiln_complete_words(char **words, size_t count, KilnCandidates *candidates)
{
    Cursor cursor = { .candidates = candidates };
    const KilnFlag *waiting = NULL;

    if (count < 2)
        return;
    size_t first = find_program(words, count - 1) + 1;
    const bool is_kiln = strcmp(base_name(words[first - 1]), "kiln") == 0;
    if (is_kiln && first + 1 == count) {
        complete_command(candidates);
        return;
    }
    cursor.command = kiln_command_find(is_kiln ? words[first++] : "train");
    if (cursor.command == NULL || kiln_args_parse(cursor.command->name, (int)(count - 1 - first),
                                                  words + first, &cursor.args, &waiting, NULL) < 0)
        return;
    complete_word(&cursor, waiting);
    kiln_args_release(&cursor.args);
    kiln_completion_context_release(&cursor.context);
}

/* Finds out what is asked for where the cursor stands: a command, a flag, its value, an
 * argument, an override. */
#include "cli/complete_words.h"

#include <string.h>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/complete_keys.h"
#include "cli/complete_scene.h"
#include "registry/registry.h"

typedef struct Cursor {
    const char *command;
    KilnArgs args; /* of the words in front of the cursor */
    KilnCandidates *candidates;
    KilnScene scene;
} Cursor;

static void add_all(Cursor *cursor, const char *before, const char *const *names)
{
    KilnArena *arena = &cursor->candidates->arena;

    for (; *names != NULL; names++)
        kiln_candidates_add(cursor->candidates, false,
                            kiln_arena_printf(arena, "%s%s", before, *names), NULL);
}

/* ---- Flags --------------------------------------------------------------------------------- */

/* What --help says of a flag: the end of the line that begins with it. */
static const char *flag_note(KilnArena *arena, const char *flag)
{
    size_t n = strlen(flag);

    for (const char *line = kiln_args_help(); *line != '\0'; line += *line == '\n') {
        const char *start = line + strspn(line, " ");
        size_t length = strcspn(start, "\n");
        const char *note = strstr(start, "  ");

        if (strncmp(start, flag, n) == 0 && start[n] == ' ' && note != NULL &&
            note < start + length) {
            note += strspn(note, " ");
            return kiln_arena_strndup(arena, note, (size_t)(start + length - note));
        }
        line = start + length;
    }
    return NULL;
}

static void complete_flag(Cursor *cursor)
{
    const char *name;
    bool takes_value;

    for (size_t i = 0; (name = kiln_args_flag(i, &takes_value)) != NULL; i++)
        kiln_candidates_add(cursor->candidates, false, name,
                            flag_note(&cursor->candidates->arena, name));
}

static void complete_flag_value(Cursor *cursor, const char *flag, const char *before,
                                const char *typed)
{
    static const char *const cfg[] = { "job", "kiln", "all", NULL };
    static const char *const info[] = { "all",     "config",     "defaults", "defaults-tree",
                                        "plugins", "searchpath", NULL };

    if (strcmp(flag, "--cfg") == 0) {
        add_all(cursor, before, cfg);
    } else if (strcmp(flag, "--info") == 0) {
        add_all(cursor, before, info);
    } else if (strcmp(flag, "--plugin") == 0) {
        kiln_candidates_paths(cursor->candidates, before, typed, ".so");
    } else if (strcmp(flag, "--config-path") == 0 || strcmp(flag, "--config-dir") == 0 ||
               strcmp(flag, "--resume") == 0) {
        kiln_candidates_paths(cursor->candidates, before, typed, "/");
    } else {
        kiln_scene_set(&cursor->args, cursor->command, &cursor->scene);
        if (strcmp(flag, "--config-name") == 0) {
            const char **names = kiln_scene_options(&cursor->scene, "", false);

            if (names != NULL)
                add_all(cursor, before, names);
        } else { /* --explain, --package */
            kiln_complete_keys(&cursor->scene, cursor->candidates, before, typed, KILN_KEY_NAME);
        }
    }
}

/* ---- Arguments of the commands that are no overrides --------------------------------------- */

static const char *group_of(KilnKind kind)
{
    return kind == KILN_KIND_MODULE     ? "task"
           : kind == KILN_KIND_CALLBACK ? "callbacks"
                                        : kiln_kind_name(kind);
}

/* The groups that have components, and with `each` these: model/resnet. */
static void complete_component(Cursor *cursor, bool each)
{
    KilnCandidates *candidates = cursor->candidates;
    KilnScene *scene = &cursor->scene;
    bool deep = strchr(candidates->typed, '/') != NULL;

    kiln_scene_set(&cursor->args, cursor->command, scene);
    for (size_t i = 0; scene->registry != NULL && i < kiln_registry_count(scene->registry); i++) {
        const KilnComponent *component = kiln_registry_at(scene->registry, i);
        const char *group = group_of(component->kind);

        if (!deep)
            kiln_candidates_add(candidates, false, group, NULL);
        if (!deep && each)
            kiln_candidates_add(candidates, true,
                                kiln_arena_printf(&candidates->arena, "%s/", group), NULL);
        if (deep)
            kiln_candidates_add(
                candidates, false,
                kiln_arena_printf(&candidates->arena, "%s/%s", group, component->name),
                component->summary);
    }
}

static void complete_explain(Cursor *cursor)
{
    if (cursor->args.n_words == 0) {
        kiln_candidates_paths(cursor->candidates, "", cursor->candidates->typed, "/");
        return;
    }
    kiln_scene_set(&cursor->args, cursor->command, &cursor->scene);
    kiln_complete_keys(&cursor->scene, cursor->candidates, "", cursor->candidates->typed,
                       KILN_KEY_NAME);
}

static void complete_override(Cursor *cursor)
{
    static const char input[] = "input=";
    KilnCandidates *candidates = cursor->candidates;

    if (strcmp(cursor->command, "predict") == 0) {
        kiln_candidates_add(candidates, true, input, "a PNG file, or a folder of them");
        if (kiln_starts_with(candidates->typed, input)) {
            kiln_candidates_paths(candidates, input, candidates->typed + strlen(input), "");
            return;
        }
    }
    kiln_scene_set(&cursor->args, cursor->command, &cursor->scene);
    kiln_complete_override(&cursor->scene, candidates);
}

static void complete_argument(Cursor *cursor)
{
    static const char *const shells[] = { "bash", "zsh", "fish", NULL };
    const char *command = cursor->command;

    if (strcmp(command, "train") == 0 || strcmp(command, "eval") == 0 ||
        strcmp(command, "predict") == 0)
        complete_override(cursor);
    else if (strcmp(command, "explain") == 0)
        complete_explain(cursor);
    else if (cursor->args.n_words > 0)
        return; /* the others take one */
    else if (strcmp(command, "list") == 0 || strcmp(command, "schema") == 0)
        complete_component(cursor, false);
    else if (strcmp(command, "show") == 0)
        complete_component(cursor, true);
    else if (strcmp(command, "completion") == 0)
        add_all(cursor, "", shells);
    else if (strcmp(command, "init") == 0)
        kiln_candidates_paths(cursor->candidates, "", cursor->candidates->typed, "/");
}

/* ---- Words --------------------------------------------------------------------------------- */

static void complete_command(KilnCandidates *candidates)
{
    const char *name, *summary;

    for (size_t i = 0; (name = kiln_command_name(i, &summary)) != NULL; i++)
        kiln_candidates_add(candidates, false, name, summary);
    kiln_candidates_add(candidates, false, "--help", "the commands");
    kiln_candidates_add(candidates, false, "--version", NULL);
}

static void complete_with(Cursor *cursor, const char *waiting)
{
    const char *typed = cursor->candidates->typed, *value = NULL;
    const char *flag = kiln_args_flag_name(typed, &value);

    if (waiting != NULL) {
        complete_flag_value(cursor, waiting, "", typed);
    } else if (flag != NULL && value != NULL) {
        const char *before = kiln_arena_strndup(&cursor->candidates->arena, typed,
                                                (size_t)(value - typed));
        if (before != NULL)
            complete_flag_value(cursor, flag, before, value);
    } else if (typed[0] == '-') {
        complete_flag(cursor);
    } else {
        complete_argument(cursor);
    }
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

/* Where the program stands among the words: behind VAR=x, sudo, time. By another name
 * it is the first. */
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
    const char *waiting = NULL;

    if (count < 2)
        return;
    size_t first = find_program(words, count - 1) + 1;
    cursor.command = "train";
    if (strcmp(base_name(words[first - 1]), "kiln") == 0) {
        if (first + 1 == count) {
            complete_command(candidates);
            return;
        }
        cursor.command = words[first++];
    }
    if (kiln_args_guess((int)(count - 1 - first), words + first, &cursor.args, &waiting) < 0)
        return;
    complete_with(&cursor, waiting);
    kiln_args_release(&cursor.args);
    kiln_scene_release(&cursor.scene);
}

/* Finds out what is asked for where the cursor stands: a command, a flag, its value, an
 * argument, an override. */
#include "cli/complete/complete_words.h"

#include <string.h>

#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/complete/complete_keys.h"
#include "cli/complete/complete_context.h"
#include "cli/flags.h"
#include "kiln/run.h"
#include "registry/registry.h"

typedef struct Cursor {
    const char *command;
    KilnArgs args; /* of the words in front of the cursor */
    KilnCandidates *candidates;
    KilnCompletionContext context;
} Cursor;

static void add_all(Cursor *cursor, const char *before, const char *const *names)
{
    KilnArena *arena = &cursor->candidates->arena;

    for (; *names != NULL; names++)
        kiln_candidates_add(cursor->candidates, false,
                            kiln_arena_printf(arena, "%s%s", before, *names), NULL);
}

/* ---- Flags --------------------------------------------------------------------------------- */

static void complete_flag(Cursor *cursor)
{
    const KilnFlag *flag;

    for (size_t i = 0; (flag = kiln_flag_at(cursor->command, i)) != NULL; i++)
        kiln_candidates_add(cursor->candidates, false, flag->name, flag->text);
}

static void complete_topic(Cursor *cursor, const char *before)
{
    KilnArena *arena = &cursor->candidates->arena;
    const char *topic;

    for (size_t i = 0; (topic = kiln_flag_topic(i)) != NULL; i++)
        kiln_candidates_add(cursor->candidates, false,
                            kiln_arena_printf(arena, "%s%s", before, topic), NULL);
}

static void complete_flag_value(Cursor *cursor, const char *flag, const char *before,
                                const char *typed)
{
    static const char *const cfg[] = { "job", "kiln", "all", NULL };
    static const char *const phases[] = { "forward", "backward", "update", NULL };
    static const char *const newest[] = { "last", NULL };

    if (strcmp(flag, "--cfg") == 0) {
        add_all(cursor, before, cfg);
    } else if (strcmp(flag, "--info") == 0) {
        complete_topic(cursor, before);
    } else if (strcmp(flag, "--phase") == 0) {
        add_all(cursor, before, phases);
    } else if (strcmp(flag, "--depth") == 0) {
        return; /* a number */
    } else if (strcmp(flag, "--svg") == 0) {
        kiln_candidates_paths(cursor->candidates, before, typed, "");
    } else if (strcmp(flag, "--plugin") == 0) {
        kiln_candidates_paths(cursor->candidates, before, typed, ".so");
    } else if (strcmp(flag, "--config-path") == 0 || strcmp(flag, "--config-dir") == 0) {
        kiln_candidates_paths(cursor->candidates, before, typed, "/");
    } else if (strcmp(flag, "--resume") == 0) {
        add_all(cursor, before, newest);
        kiln_candidates_paths(cursor->candidates, before, typed, "/");
    } else {
        kiln_completion_context_set(&cursor->args, cursor->command, &cursor->context);
        if (strcmp(flag, "--config-name") == 0) {
            const char **names = kiln_completion_context_options(&cursor->context, "", false);

            if (names != NULL)
                add_all(cursor, before, names);
        } else { /* --explain, --package */
            kiln_complete_keys(&cursor->context, cursor->candidates, before, typed, KILN_KEY_NAME);
        }
    }
}

/* ---- Arguments of the commands that are no overrides --------------------------------------- */

/* The groups that have components, as `list` names them. */
static void complete_list(Cursor *cursor)
{
    const KilnRegistry *registry = cursor->context.registry;

    for (size_t i = 0; registry != NULL && i < kiln_registry_count(registry); i++) {
        KilnKind kind = kiln_registry_at(registry, i)->kind;

        kiln_candidates_add(cursor->candidates, false,
                            kind == KILN_KIND_MODULE     ? "task"
                            : kind == KILN_KIND_CALLBACK ? "callbacks"
                                                         : kiln_kind_name(kind),
                            NULL);
    }
}

/* Folders of config files by one level, and with `files` these: experiment/mnist/cnn. */
static void complete_files(Cursor *cursor, bool files)
{
    KilnCandidates *candidates = cursor->candidates;
    KilnArena *arena = &candidates->arena;
    const char *typed = candidates->typed, *slash = strrchr(typed, '/');
    size_t length = slash != NULL ? (size_t)(slash - typed) : 0;
    const char *group = kiln_arena_strndup(arena, typed, length);

    if (group == NULL)
        return;
    const char **groups = kiln_completion_context_options(&cursor->context, group, true);
    const char **options = files ? kiln_completion_context_options(&cursor->context, group, false)
                                 : NULL;
    length += slash != NULL;
    for (; options != NULL && *options != NULL; options++)
        kiln_candidates_add(candidates, false,
                            kiln_arena_printf(arena, "%.*s%s", (int)length, typed, *options),
                            kiln_completion_context_option_note(&cursor->context, group, *options));
    for (; groups != NULL && *groups != NULL; groups++) {
        const char *path = kiln_arena_printf(arena, "%.*s%s", (int)length, typed, *groups);

        if (path == NULL || (strcmp(path, "kiln") == 0 && *typed == '\0'))
            continue;
        kiln_candidates_add(candidates, false, path, "group");
        if (files || kiln_completion_context_options(&cursor->context, path, true) != NULL)
            kiln_candidates_add(candidates, true, kiln_arena_printf(arena, "%s/", path), "group");
    }
}

/* Components (model/resnet), sections (trainer), and what complete_files offers. */
static void complete_show(Cursor *cursor)
{
    KilnCandidates *candidates = cursor->candidates;
    const KilnRegistry *registry = cursor->context.registry;
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

/* Arguments that name groups and components, which are the same for all words. */
static void complete_name(Cursor *cursor)
{
    kiln_completion_context_set(&cursor->args, cursor->command, &cursor->context);
    if (strcmp(cursor->command, "list") == 0)
        complete_list(cursor);
    else if (strcmp(cursor->command, "schema") == 0)
        complete_files(cursor, false);
    else
        complete_show(cursor);
}

/* How many words before the cursor are paths. */
static size_t paths_before(const Cursor *cursor)
{
    size_t n = 0;

    for (size_t i = 0; i < cursor->args.n_words; i++)
        n += kiln_word_is_path(cursor->args.words[i]);
    return n;
}

/* RUN: run folders, checkpoints, names for the newest; with `files` records too. */
static void complete_run(Cursor *cursor, bool files)
{
    KilnCandidates *candidates = cursor->candidates;

    kiln_candidates_add(candidates, false, "last", "the newest run");
    kiln_candidates_add(candidates, false, "best", "the newest run's best checkpoint");
    kiln_candidates_paths(candidates, "", candidates->typed, files ? "" : "/");
}

/* A run or a flight record, then overrides. */
static void complete_replay(Cursor *cursor)
{
    if (paths_before(cursor) == 0) {
        complete_run(cursor, true);
        return;
    }
    kiln_completion_context_set(&cursor->args, cursor->command, &cursor->context);
    kiln_complete_override(&cursor->context, cursor->candidates);
}

static void complete_explain(Cursor *cursor)
{
    if (cursor->args.n_words == 0) {
        complete_run(cursor, false);
        return;
    }
    kiln_completion_context_set(&cursor->args, cursor->command, &cursor->context);
    kiln_complete_keys(&cursor->context, cursor->candidates, "", cursor->candidates->typed,
                       KILN_KEY_NAME);
}

/* RUN of eval and predict, then predict's INPUT, as long as they are not given by name. */
static void complete_past(Cursor *cursor)
{
    size_t n = paths_before(cursor);
    bool predicts = strcmp(cursor->command, "predict") == 0;
    bool named = false, input = !predicts;

    for (size_t i = 0; i < cursor->args.n_words; i++) {
        named = named || kiln_starts_with(cursor->args.words[i], "ckpt_path=");
        input = input || kiln_starts_with(cursor->args.words[i], "input=") ||
                kiln_starts_with(cursor->args.words[i], "split=");
    }
    n += named;
    if (n == 0)
        complete_run(cursor, false);
    else if (n == 1 && !input)
        kiln_candidates_paths(cursor->candidates, "", cursor->candidates->typed, "");
}

/* A word that is no override: `word`=PATH. True when its value is being typed. */
static bool complete_own(KilnCandidates *candidates, const char *word, const char *note,
                         const char *ending)
{
    kiln_candidates_add(candidates, true, word, note);
    if (!kiln_starts_with(candidates->typed, word))
        return false;
    kiln_candidates_paths(candidates, word, candidates->typed + strlen(word), ending);
    return true;
}

static bool complete_split(KilnCandidates *candidates)
{
    if (!kiln_starts_with(candidates->typed, "split=")) {
        kiln_candidates_add(candidates, true, "split=", "whose samples: test, val, train");
        return false;
    }
    kiln_candidates_add(candidates, false, "split=test", "the test samples");
    kiln_candidates_add(candidates, false, "split=val", "those to validate on");
    kiln_candidates_add(candidates, false, "split=train", "those to train on, not augmented");
    return true;
}

static void complete_override(Cursor *cursor)
{
    KilnCandidates *candidates = cursor->candidates;
    bool past = strcmp(cursor->command, "eval") == 0 || strcmp(cursor->command, "predict") == 0;

    if (past && complete_split(candidates))
        return;
    if (past)
        complete_past(cursor);
    if (strcmp(cursor->command, "predict") == 0 &&
        (complete_own(candidates, "input=", "a PNG file, or a folder of them", "") ||
         complete_own(candidates, "output=", "the file to write: .jsonl, .csv, .safetensors", "")))
        return;
    if (strcmp(cursor->command, "eval") == 0 &&
        complete_own(candidates, "plots=", "a folder for pictures", "/"))
        return;
    if (strcmp(cursor->command, "train") == 0 &&
        complete_own(candidates, "resume=", "go on in a run folder, with its config", "/")) {
        kiln_candidates_add(candidates, false, "resume=last", "the newest run");
        return;
    }
    kiln_completion_context_set(&cursor->args, cursor->command, &cursor->context);
    kiln_complete_override(&cursor->context, candidates);
}

/* ckpt ACTION RUN...; ls takes folders of runs. */
static void complete_ckpt(Cursor *cursor)
{
    static const char *const actions[] = { "ls", "show", "verify", "diff", NULL };

    if (cursor->args.n_words == 0)
        add_all(cursor, "", actions);
    else if (strcmp(cursor->args.words[0], "ls") == 0)
        kiln_candidates_paths(cursor->candidates, "", cursor->candidates->typed, "/");
    else
        complete_run(cursor, false);
}

static void complete_argument(Cursor *cursor)
{
    static const char *const shells[] = { "bash", "zsh", "fish", NULL };
    static const char *const searches[] = { "lr", "batch_size", NULL };
    const char *command = cursor->command;

    if (strcmp(command, "tune") == 0)
        add_all(cursor, "", searches);
    if (strcmp(command, "train") == 0 || strcmp(command, "graph") == 0 ||
        strcmp(command, "verify-resume") == 0 || strcmp(command, "eval") == 0 ||
        strcmp(command, "tune") == 0 || strcmp(command, "predict") == 0)
        complete_override(cursor);
    else if (strcmp(command, "explain") == 0)
        complete_explain(cursor);
    else if (strcmp(command, "replay") == 0)
        complete_replay(cursor);
    else if (strcmp(command, "ckpt") == 0)
        complete_ckpt(cursor);
    else if (cursor->args.n_words > 0)
        return; /* the others take one */
    else if (strcmp(command, "list") == 0 || strcmp(command, "schema") == 0 ||
             strcmp(command, "show") == 0)
        complete_name(cursor);
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
    const KilnFlag *flag = kiln_flag_find(cursor->command, typed, &value);

    if (waiting != NULL)
        complete_flag_value(cursor, waiting, "", typed);
    if (waiting != NULL && (strcmp(waiting, "--info") != 0 || cursor->candidates->count > 0))
        return; /* --info may stand alone */
    if (flag != NULL && value != NULL) {
        const char *before = kiln_arena_strndup(&cursor->candidates->arena, typed,
                                                (size_t)(value - typed));
        if (before != NULL)
            complete_flag_value(cursor, flag->name, before, value);
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
    if (kiln_args_guess(cursor.command, (int)(count - 1 - first), words + first, &cursor.args,
                        &waiting) < 0)
        return;
    complete_with(&cursor, waiting);
    kiln_args_release(&cursor.args);
    kiln_completion_context_release(&cursor.context);
}

/* train resume=RUN: the config that a run was made from, with the other words on top. */
#define _XOPEN_SOURCE 700 /* realpath */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/runs.h"
#include "cli/screen.h"
#include "config/story.h"
#include "kiln/run.h"
#include "sweep/sweep.h"

#define CONFIG ".kiln/config.yaml"

/* ---- Overrides of what was resolved -------------------------------------------------- */

/* The key of an override: "lr" of "++lr=0.1"; its length in *ret. */
static const char *key_of(const char *word, size_t *ret)
{
    word += strspn(word, "+~");
    *ret = strcspn(word, "=@");
    return word;
}

/* Whether `key` is `name`, or below it. */
static bool is_within(const char *key, const char *name, size_t length)
{
    return strncmp(key, name, length) == 0 && (key[length] == '\0' || key[length] == '.');
}

static bool is_set(const char *const *words, const char *key)
{
    for (; *words != NULL; words++) {
        size_t length;
        const char *name = key_of(*words, &length);

        if (is_within(key, name, length))
            return true;
    }
    return false;
}

/* A key that took its value through ${...} from what `word` sets; NULL: none. */
static const char *follower(const KilnStories *stories, const char *const *words, const char *word)
{
    size_t length;
    const char *name = key_of(word, &length);

    for (size_t i = 0; i < stories->count; i++) {
        const KilnStory *story = &stories->list[i];
        const char **refers = story->there && story->count > 0 ? story->steps[0].refers : NULL;

        for (; refers != NULL && *refers != NULL; refers++)
            if (is_within(*refers, name, length) && !is_set(words, story->key))
                return story->key;
    }
    return NULL;
}

KilnStatus kiln_command_check_followers(const char *run, const char *const *words, KilnError *err)
{
    char *path = kiln_path_join(run, ".kiln/origins.yaml");
    KilnStories stories = { 0 };
    KilnArena arena = { 0 };
    KilnStatus status = path != NULL ? KILN_OK : kiln_error_nomem(err, 1);

    if (status >= 0 && *words != NULL && kiln_is_file(path))
        status = kiln_stories_read(&arena, path, &stories, err);
    for (const char *const *word = words; *word != NULL && status >= 0; word++) {
        const char *key = follower(&stories, words, *word);
        size_t length;
        const char *name = key_of(*word, &length);

        if (key != NULL)
            status = kiln_error_set(err, KILN_E_USAGE,
                                    "%s: in this run %s had its value from ${%.*s}, which is a "
                                    "plain value now and does not follow: say %s=... too",
                                    *word, key, (int)length, name, key);
    }
    if (err != NULL)
        err->origin = (KilnOrigin) { 0 }; /* it ends with the arena */
    kiln_arena_release(&arena);
    free(path);
    return status;
}

/* ---- The run -------------------------------------------------------------------------- */

static KilnStatus check_run(const char *run, KilnError *err)
{
    char *config = kiln_path_join(run, CONFIG);
    KilnStatus status = KILN_OK;

    if (config == NULL)
        status = kiln_error_nomem(err, strlen(run));
    else if (!kiln_is_file(config))
        status = kiln_error_set(err, KILN_E_IO,
                                "resume=%s: it has no " CONFIG ": the run was ended before that "
                                "was written, and there is nothing to go on from; start it again",
                                run);
    free(config);
    return status;
}

/* The overrides: those of the command line, the folder, and a checkpoint that was named. */
static const char **overrides_of(const KilnArgs *args, const char *run, const char *checkpoint,
                                 KilnText texts[2])
{
    const char **overrides = calloc(args->n_words + 3, sizeof(*overrides));
    size_t n = args->n_words;

    if (overrides == NULL)
        return NULL;
    memcpy(overrides, args->words, n * sizeof(*overrides));
    kiln_override_quote(&texts[0], "kiln.run.dir", run);
    if (checkpoint != NULL)
        kiln_override_quote(&texts[1], "ckpt_path", checkpoint);
    overrides[n++] = texts[0].data;
    overrides[n++] = texts[1].data; /* NULL: none */
    if (!texts[0].failed && !texts[1].failed)
        return overrides;
    free(overrides);
    return NULL;
}

/* resume=CHECKPOINT is the run that it lies in, from there. */
static char *checkpoint_of(const char *word)
{
    char *state = kiln_path_join(word, "state.json"), *checkpoint = NULL;

    if (state != NULL && kiln_is_file(state))
        (void)!kiln_checkpoint_resolve(word, "", &checkpoint, NULL);
    free(state);
    return checkpoint;
}

static KilnStatus compose(const KilnArgs *args, const KilnRegistry *registry, const char *run,
                          const char *checkpoint, bool check, KilnConfig **ret)
{
    KilnText texts[2] = { 0 };
    const char **overrides = overrides_of(args, run, checkpoint, texts);
    char *folder = kiln_path_join(run, ".kiln");
    KilnStatus status = KILN_E_NOMEM;

    if (overrides != NULL && folder != NULL) {
        KilnComposeRequest request = kiln_command_request(args, registry);

        request.config_path = folder;
        request.config_name = NULL;
        request.overrides = overrides;
        status = kiln_command_compose_request(args, &request, check, ret);
    }
    kiln_text_release(&texts[0]);
    kiln_text_release(&texts[1]);
    free(overrides);
    free(folder);
    return status;
}

KilnStatus kiln_command_resumed(const KilnArgs *args, const KilnRegistry *registry, bool check,
                                KilnConfig **ret, char **ret_run)
{
    char *found = NULL, *run = NULL, *checkpoint = checkpoint_of(args->run);
    KilnError err = { 0 };
    KilnStatus status = kiln_run_find(args->run, &found, &err);

    if (status >= 0 && (run = realpath(found, NULL)) == NULL)
        status = kiln_error_errno(&err, found);
    if (status >= 0)
        status = check_run(run, &err);
    if (status >= 0)
        status = kiln_command_check_followers(run, args->words, &err);
    if (status < 0)
        kiln_screen_error(args->command, &err);
    else
        status = compose(args, registry, run, checkpoint, check, ret);
    free(checkpoint);
    free(found);
    if (status < 0)
        free(run);
    else
        *ret_run = run;
    return status;
}

/* Opens the config of a past run, with overrides on top. */
#define _XOPEN_SOURCE 700 /* realpath */
#include "cli/open_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "base/text.h"
#include "cli/find_run.h"
#include "cli/untrusted.h"
#include "cli/open_config.h"
#include "cli/screen/screen.h"
#include "kiln/embed/run.h"
#include "config/override/override.h"
#include "train/run/checkpoint_config.h"
#include "train/run/run_config.h"

KilnStatus kiln_command_compose_run(const KilnArgs *args, const KilnRegistry *registry,
                                    const KilnRunRequest *request, bool check, KilnConfig **ret)
{
    size_t n = 0, n_before = 0;

    while (request->before != NULL && request->before[n_before] != NULL)
        n_before++;
    const char **overrides = calloc(n_before + args->n_words + 3, sizeof(*overrides));
    char *folder = kiln_path_join(request->run, ".kiln");
    KilnText dir = { 0 }, checkpoint = { 0 };
    KilnStatus status = KILN_E_NOMEM;

    if (request->run_dir != NULL)
        kiln_override_quote(&dir, "kiln.run.dir", request->run_dir);
    if (request->checkpoint != NULL)
        kiln_override_quote(&checkpoint, "ckpt_path", request->checkpoint);
    if (overrides != NULL && folder != NULL && !dir.failed && !checkpoint.failed) {
        KilnComposeRequest compose = kiln_command_request(args, registry);

        for (; n < n_before; n++)
            overrides[n] = request->before[n];
        for (size_t i = 0; i < args->n_words; i++)
            overrides[n++] = args->words[i];
        if (dir.data != NULL)
            overrides[n++] = dir.data;
        overrides[n] = checkpoint.data;
        compose.config_path = request->folder != NULL ? request->folder : folder;
        compose.config_name = request->folder != NULL ? request->name : KILN_JOB_CONFIG;
        compose.overrides = overrides;
        status = kiln_command_compose_request(args, &compose, check, request->run, ret, NULL);
    } else {
        KilnError err = { 0 };

        kiln_error_nomem(&err, strlen(request->run));
        kiln_screen_error(args->command, &err);
    }
    kiln_text_release(&dir);
    kiln_text_release(&checkpoint);
    free(overrides);
    free(folder);
    return status;
}

/* ---- train resume=RUN -------------------------------------------------------------------- */

/* Refuse overrides of what a resumed run takes from its folder. */
static KilnStatus check_words(const KilnArgs *args, KilnError *err)
{
    static const struct {
        const char *key, *why;
    } settled[] = {
        { "ckpt_path", "it continues from its own checkpoint; for another one of the run give "
                       "resume=RUN/checkpoints/NAME, for a new run from any checkpoint give "
                       "ckpt_path=... without resume=" },
        { "weights", "it has its weights; for a new run with other weights give weights=... "
                     "without resume=" },
        { "weights_of", "it has its weights; for a new run with other weights give weights_of=... "
                        "without resume=" },
        { "lora.weights", "it has its adapters; for a new run with others give lora.weights=... "
                          "without resume=" },
        { "kiln.run.dir", "it stays in its folder; for a new run from its checkpoint give "
                          "ckpt_path=... without resume=" },
    };

    for (size_t i = 0; i < args->n_words; i++) {
        const char *key = args->words[i] + strspn(args->words[i], "+~");

        for (size_t j = 0; j < KILN_COUNT(settled); j++)
            if (kiln_starts_with(key, settled[j].key) &&
                strchr("=.", key[strlen(settled[j].key)]) != NULL)
                return kiln_error_set(err, KILN_E_USAGE, "%s does not go with resume=%s: %s",
                                      args->words[i], args->run, settled[j].why);
    }
    return KILN_OK;
}

/* The checkpoint that resume=CHECKPOINT names; NULL when the word names a run. */
static char *checkpoint_of(const char *word)
{
    char *state = kiln_path_join(word, "state.json"), *checkpoint = NULL;

    if (state != NULL && kiln_is_file(state))
        (void)!kiln_checkpoint_resolve(word, "", &checkpoint, NULL);
    free(state);
    return checkpoint;
}

KilnStatus kiln_command_compose_resumed(const KilnArgs *args, const KilnRegistry *registry,
                                        bool check, KilnConfig **ret, char **ret_run)
{
    char *found = NULL, *run = NULL, *checkpoint = checkpoint_of(args->run);
    KilnError err = { 0 };
    KilnStatus status = kiln_run_find(args->run, kiln_runs_folder(args), &found, &err);

    if (status >= 0 && (run = realpath(found, NULL)) == NULL)
        status = kiln_error_errno(&err, found);
    if (status >= 0)
        status = check_words(args, &err);
    if (status >= 0 && check)
        status = kiln_untrusted_links(args, run, &err);
    if (status < 0) {
        kiln_screen_error(args->command, &err);
    } else {
        const KilnRunRequest request = { .run = run, .run_dir = run, .checkpoint = checkpoint };

        status = kiln_command_compose_run(args, registry, &request, check, ret);
    }
    free(checkpoint);
    free(found);
    if (status < 0)
        free(run);
    else
        *ret_run = run;
    return status;
}

/* ---- Checkpoints ------------------------------------------------------------------------- */

void kiln_command_take_run(KilnArgs *args)
{
    args->run = kiln_args_take(args, "ckpt_path");
    if (args->run == NULL)
        args->run = kiln_args_take_path(args);
}

KilnStatus kiln_command_check_words(KilnArgs *args, const char *input, KilnError *err)
{
    const char *word = kiln_args_take_path(args);

    if (word == NULL)
        return KILN_OK;
    if (input != NULL)
        return kiln_error_set(err, KILN_E_USAGE,
                              "%s: the input is one file or folder, and %s was given before it; "
                              "put several files into a folder",
                              word, input);
    return kiln_error_set(err, KILN_E_USAGE,
                          "%s: unexpected word; an override is KEY=VALUE (see `kiln %s --help`)",
                          word, args->command);
}

/* "RUN" of "RUN/checkpoints/NAME". */
static const char *run_of(const char *checkpoint, char run[4096])
{
    snprintf(run, 4096, "%s", checkpoint);
    for (int i = 0; i < 2 && strrchr(run, '/') != NULL; i++)
        *strrchr(run, '/') = '\0';
    return run;
}

KilnStatus kiln_command_checkpoint(KilnArgs *args, char **ret)
{
    KilnError err = { 0 };
    char run[4096];
    KilnStatus status;

    if (args->run == NULL)
        status = kiln_error_set(&err, KILN_E_USAGE,
                                "which run? `kiln %s RUN`, RUN being a run folder, a checkpoint, "
                                "last or best (ckpt_path=RUN is the same)",
                                args->command);
    else
        status = kiln_checkpoint_resolve(args->run, kiln_runs_folder(args), ret, &err);
    if (status >= 0)
        status = kiln_untrusted_run_plugins(args, run_of(*ret, run), &err);
    if (status < 0)
        kiln_screen_error(args->command, &err);
    return status;
}

KilnStatus kiln_command_compose_checkpoint(const KilnArgs *args, const KilnRegistry *registry,
                                           const char *checkpoint, KilnConfig **ret)
{
    KilnCheckpointConfig found = { 0 };
    KilnError err = { 0 };
    KilnStatus status = kiln_checkpoint_config_find(checkpoint, registry, &found, &err);

    if (status >= 0) {
        const KilnRunRequest request = {
            .run = found.run, .folder = found.folder, .name = found.name, .checkpoint = checkpoint
        };

        status = kiln_command_compose_run(args, registry, &request, true, ret);
    } else {
        kiln_screen_error(args->command, &err);
    }
    kiln_checkpoint_config_release(&found);
    return status;
}

/* train resume=RUN: the config that a run was made from, with the other words on top. */
#define _XOPEN_SOURCE 700 /* realpath */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/system/file.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/foreign.h"
#include "cli/find_run.h"
#include "cli/screen/screen.h"
#include "kiln/run.h"
#include "sweep/sweep.h"

/* What a run that goes on takes from elsewhere than its overrides. */
static KilnStatus check_words(const KilnArgs *args, KilnError *err)
{
    static const struct {
        const char *key, *why;
    } settled[] = {
        { "ckpt_path", "it goes on from its own checkpoint; another one of the run is given as "
                       "resume=RUN/checkpoints/NAME, that of another run begins a new run: "
                       "ckpt_path=... without resume=" },
        { "weights", "it has its weights; a new run begins with others: weights=... without "
                     "resume=" },
        { "kiln.run.dir", "it stays in its folder; a new run from its checkpoint goes elsewhere: "
                          "ckpt_path=... without resume=" },
    };

    for (size_t i = 0; i < args->n_words; i++) {
        const char *key = args->words[i] + strspn(args->words[i], "+~");

        for (size_t j = 0; j < KILN_COUNT(settled); j++)
            if (strncmp(key, settled[j].key, strlen(settled[j].key)) == 0 &&
                key[strlen(settled[j].key)] == '=')
                return kiln_error_set(err, KILN_E_USAGE, "%s does not go with resume=%s: %s",
                                      args->words[i], args->run, settled[j].why);
    }
    return KILN_OK;
}

/* ---- The run -------------------------------------------------------------------------- */

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
        request.config_name = KILN_JOB_CONFIG;
        request.overrides = overrides;
        status = kiln_command_compose_request(args, &request, check, run, ret);
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
    KilnStatus status = kiln_run_find(args->run, kiln_runs_folder(args), &found, &err);

    if (status >= 0 && (run = realpath(found, NULL)) == NULL)
        status = kiln_error_errno(&err, found);
    if (status >= 0)
        status = check_words(args, &err);
    if (status >= 0 && check)
        status = kiln_foreign_links(args, run, &err);
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

/* Runs a checked component for a few batches. */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/system/file.h"
#include "base/text.h"
#include "cli/contract/case_words.h"

/* Compose and check. `name` NULL: the default config. */
static KilnStatus compose(KilnCase *self, const char *folder, const char *name,
                          const char *const *overrides, KilnConfig **ret, KilnError *err)
{
    const KilnComposeRequest request = {
        .config_path = folder,
        .config_name = name,
        .overrides = overrides,
        .registry = self->registry,
        .sections = kiln_run_sections(),
    };
    KilnErrors *errors = NULL;
    KilnConfig *config = NULL;

    if (overrides == NULL || folder == NULL || kiln_errors_new(&errors) < 0)
        return kiln_error_nomem(err, 1);
    KilnStatus status = kiln_compose(&request, &config, errors);
    if (status >= 0)
        status = kiln_config_check(config, self->registry, errors);
    if (status >= 0) {
        *ret = config;
    } else {
        status = kiln_error_set(err, KILN_E_MISSING, "%s", kiln_errors_text(errors, 0));
        kiln_config_free(config);
    }
    kiln_errors_free(errors);
    return status;
}

KilnStatus kiln_case_compose(KilnCase *self, const char *const *more, KilnConfig **ret,
                             KilnError *err)
{
    return compose(self, self->folder, NULL, kiln_case_run_words(self, more), ret, err);
}

const char *kiln_case_run_dir(KilnCase *self, const char *name)
{
    return kiln_arena_printf(&self->arena, "%s/%s", self->folder, name);
}

/* When a run ends before its time. */
typedef struct End {
    int64_t batches; /* after so many; -1: never */
    bool killed;     /* the process ends, without another word */
    bool flushes;    /* what stdio holds in memory is written before */
} End;

static bool may_continue(void *ctx, KilnTrainer *trainer)
{
    const End *end = ctx;

    if (end->batches < 0 || kiln_trainer_batches_done(trainer) < end->batches)
        return true;
    if (end->killed && end->flushes)
        fflush(NULL);
    if (end->killed)
        _exit(0);
    return false;
}

static KilnStatus fit(KilnCase *self, KilnConfig *config, const char *resume, End end,
                      KilnError *err)
{
    const KilnRunEnv env = {
        .registry = self->registry,
        .stop = self->request->stop,
        .may_continue = may_continue,
        .ctx = &end,
        .resume = resume,
    };

    return kiln_run_fit(config, &env, NULL, err);
}

static KilnStatus fit_in(KilnCase *self, const char *name, const char *const *more, End end,
                         KilnError *err)
{
    const char *dir = kiln_case_run_dir(self, name), *words[16];
    KilnConfig *config = NULL;
    size_t n = 0;

    while (more[n] != NULL && n + 2 < KILN_COUNT(words)) {
        words[n] = more[n];
        n++;
    }
    words[n++] = kiln_arena_printf(&self->arena, "kiln.run.dir='%s'", dir);
    words[n] = NULL;
    if (dir == NULL || words[n - 1] == NULL)
        return kiln_error_nomem(err, 1);
    KilnStatus status = kiln_case_compose(self, words, &config, err);
    if (status >= 0)
        status = fit(self, config, NULL, end, err);
    kiln_config_free(config);
    return status;
}

KilnStatus kiln_case_fit(KilnCase *self, const char *name, const char *const *more, int64_t batches,
                         KilnError *err)
{
    return fit_in(self, name, more, (End) { .batches = batches }, err);
}

KilnStatus kiln_case_kill(KilnCase *self, const char *name, const char *const *more,
                          int64_t batches, bool flushes, KilnError *err)
{
    const End end = { .batches = batches, .killed = true, .flushes = flushes };
    int ended = 0;

    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        (void)!fit_in(self, name, more, end, err);
        _exit(1);
    }
    if (pid < 0 || waitpid(pid, &ended, 0) != pid)
        return kiln_error_errno(err, "fork");
    if (ended == 0)
        return KILN_OK;
    return WIFSIGNALED(ended)
               ? kiln_error_set(err, KILN_E_INTERNAL, "the run crashed before it was killed")
               : kiln_error_set(err, KILN_E_RANGE, "the run ends before it can be killed");
}

KilnStatus kiln_case_resume(KilnCase *self, const char *name, KilnError *err)
{
    const char *dir = kiln_case_run_dir(self, name);
    const char *folder = kiln_arena_printf(&self->arena, "%s/.kiln", dir);
    const char *const words[] = { kiln_arena_printf(&self->arena, "kiln.run.dir='%s'", dir), NULL };
    KilnConfig *config = NULL;

    if (dir == NULL || words[0] == NULL)
        return kiln_error_nomem(err, 1);
    KilnStatus status = compose(self, folder, "job", words, &config, err);
    if (status >= 0)
        status = fit(self, config, dir, (End) { .batches = -1 }, err);
    kiln_config_free(config);
    return status;
}

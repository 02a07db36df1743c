/* kiln replay: trains the last batches of a flight record again and reports where the first NaN or
 * infinity came from, or whether the losses and gradients are the same. callbacks/flight_recorder.c
 * makes the record, kiln/files/flight.h is its format. */
#define _XOPEN_SOURCE 700 /* mkdtemp */
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/system/file.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/find_run.h"
#include "cli/untrusted.h"
#include "cli/open_config.h"
#include "cli/open_run.h"
#include "cli/screen/screen.h"
#include "kiln/files/flight.h"
#include "kiln/embed/run.h"
#include "train/trainer.h"

enum { SHOWN = 16 /* batches */, SAMPLES = 8 };

typedef struct Replay {
    KilnArgs *args;
    KilnFlight *flight;
    char *run;              /* the folder that holds the record, absolute */
    char *checkpoint;       /* to start from; NULL: the beginning */
    int64_t start;          /* batches before the checkpoint */
    char scratch[64];       /* the replay's own run folder */
    char record[96];        /* the replay's own flight record */
    KilnFlightBatch target; /* the last batch to train */
    KilnFlight *made;       /* what the replay recorded; NULL: nothing yet */
} Replay;

/* ---- The record and where to start ------------------------------------------------------- */

/* The first batch with a loss that is not finite, else the last batch. */
static KilnFlightBatch target_of(const KilnFlight *flight)
{
    const size_t n = kiln_flight_count(flight);

    for (size_t i = 0; i < n; i++) {
        const KilnFlightBatch batch = kiln_flight_at(flight, i);

        if (batch.ended && !isfinite(batch.loss))
            return batch;
    }
    return kiln_flight_at(flight, n - 1);
}

/* Open the record that a word names: a file, or the record of a run. */
static KilnStatus open_record(Replay *replay, const char *word, KilnError *err)
{
    char *run = NULL, *path = NULL;
    KilnStatus status = KILN_OK;

    if (!kiln_is_file(word))
        status = kiln_run_find(word, kiln_runs_folder(replay->args), &run, err);
    if (status >= 0)
        path = run != NULL ? kiln_path_join(run, "flight.kiln") : kiln_strdup(word);
    if (status >= 0 && path == NULL)
        status = kiln_error_nomem(err, 1);
    else if (status >= 0 && !kiln_is_file(path))
        status = kiln_error_set(err, KILN_E_MISSING,
                                "%s: has no flight.kiln: the run had no callback flight_recorder "
                                "(callbacks=flight_recorder), or it ended well",
                                run);
    else if (status >= 0)
        status = kiln_flight_open(path, &replay->flight, err);
    if (status >= 0 && kiln_flight_count(replay->flight) == 0)
        status = kiln_error_set(err, KILN_E_FORMAT, "%s: records no batch", word);
    if (status >= 0 && (replay->run = kiln_path_real(path)) == NULL)
        status = kiln_error_nomem(err, 1);
    if (status >= 0) {
        *strrchr(replay->run, '/') = '\0';
        replay->target = target_of(replay->flight);
    }
    free(run);
    free(path);
    return status;
}

/* Start from the last checkpoint before the target batch. */
static void compare_checkpoint(void *ctx, const char *path, const json_t *state)
{
    const json_t *batches = json_object_get(state, "batches");
    const int64_t n = json_integer_value(batches);
    Replay *replay = ctx;

    if (!json_is_integer(batches) || json_is_true(json_object_get(state, "weights_only")) ||
        n > replay->target.batches || (replay->checkpoint != NULL && n <= replay->start))
        return;
    replay->start = n;
    free(replay->checkpoint);
    replay->checkpoint = kiln_strdup(path);
}

/* ---- Printing ---------------------------------------------------------------------------- */

static void print_where(const KilnFlightBatch *batch)
{
    printf("epoch %" PRId64 ", batch %" PRId64 ", step %" PRId64, batch->epoch, batch->batch,
           batch->step);
}

static void print_samples(const Replay *replay)
{
    const KilnFlightBatch *batch = &replay->target;
    const int64_t kept = kiln_flight_form(replay->flight).most_samples;
    const int64_t n = batch->n_samples < kept ? batch->n_samples : kept;

    printf("  samples");
    for (int64_t i = 0; i < n && i < SAMPLES; i++)
        printf("%s %" PRId64, i > 0 ? "," : "", batch->samples[i]);
    printf(batch->n_samples > SAMPLES ? ", ... (%" PRId64 ")\n" : "\n", batch->n_samples);
}

static void print_record(const Replay *replay)
{
    const char *reason = kiln_flight_reason(replay->flight);

    printf("recorded: %zu batches, the last in ", kiln_flight_count(replay->flight));
    const KilnFlightBatch last = kiln_flight_at(replay->flight,
                                                kiln_flight_count(replay->flight) - 1);
    print_where(&last);
    printf("\n  the run %s%s\n", reason[0] != '\0' ? "ended: " : "was cut off", reason);
    printf("replay of ");
    print_where(&replay->target);
    printf(", from %s\n",
           replay->checkpoint != NULL ? strrchr(replay->checkpoint, '/') + 1 : "the beginning");
    print_samples(replay);
}

/* The parameter whose gradient norms differ most; NULL: all are equal. */
static const char *worst_norm(const Replay *replay, const KilnFlightBatch *a,
                              const KilnFlightBatch *b, double ret[2])
{
    const KilnFlightForm form = kiln_flight_form(replay->flight);
    const char *worst = NULL;
    double most = -1.0;

    if (a->norms == NULL || b->norms == NULL)
        return a->norms == b->norms ? NULL : "the optimizer's step";
    for (size_t i = 0; i < form.n_names; i++) {
        const double x = (double)a->norms[i], y = (double)b->norms[i];

        if (memcmp(&a->norms[i], &b->norms[i], sizeof(float)) == 0 || fabs(x - y) <= most)
            continue;
        worst = form.names[i];
        most = fabs(x - y);
        ret[0] = x;
        ret[1] = y;
    }
    return worst;
}

static bool same(double a, double b)
{
    return memcmp(&a, &b, sizeof(a)) == 0 || (isnan(a) && isnan(b));
}

/* Find a batch by its number; false: it is not in the record. */
static bool batch_in(const KilnFlight *flight, int64_t batches, KilnFlightBatch *ret)
{
    for (size_t i = 0; flight != NULL && i < kiln_flight_count(flight); i++) {
        *ret = kiln_flight_at(flight, i);
        if (ret->batches == batches)
            return true;
    }
    return false;
}

/* Print the last batches of both records side by side, and all that differ. Returns how many
 * differ; -1: no batch is in both. */
static int compare(const Replay *replay)
{
    const size_t n = kiln_flight_count(replay->flight);
    int compared = 0, differ = 0;

    printf("%-8s  %12s  %12s  %12s  %s\n", "batch", "loss was", "and is", "rate", "gradients");
    for (size_t i = 0; i < n; i++) {
        const KilnFlightBatch was = kiln_flight_at(replay->flight, i);
        KilnFlightBatch is;
        double norms[2] = { 0 };

        if (was.batches > replay->target.batches || !batch_in(replay->made, was.batches, &is) ||
            !was.ended || !is.ended)
            continue;
        const char *worst = worst_norm(replay, &was, &is, norms);
        const bool equal = worst == NULL && same(was.loss, is.loss);
        compared++;
        differ += !equal;
        if (replay->target.batches - was.batches >= SHOWN && equal)
            continue;
        printf("%-8" PRId64 "  %12.8g  %12.8g  %12.4g  ", was.batches, was.loss, is.loss, was.rate);
        if (worst == NULL)
            printf("%s\n", was.norms == NULL ? "no step" : "equal");
        else
            printf("%s: %.8g, and %.8g\n", worst, norms[0], norms[1]);
    }
    return compared > 0 ? differ : -1;
}

/* ---- The replay: a run in a scratch folder ----------------------------------------------------
 */

/* Report samples of the batch that begins whose data holds NaN or infinity. */
static void check_data(const KilnTrainer *trainer)
{
    const KilnDataSpec *spec = kiln_trainer_spec(trainer);
    int64_t n = 0;
    const int64_t *samples = kiln_trainer_batch_samples(trainer, &n);

    for (size_t f = 0; f < spec->n_features; f++) {
        const float *data = kiln_trainer_feature(trainer, spec->features[f].name, &n);
        const int64_t size = kiln_shape_count(&spec->features[f].shape);

        if (spec->features[f].dtype != KILN_F32 || spec->features[f].varies || data == NULL)
            continue;
        for (int64_t i = 0; i < n * size; i++) {
            if (isfinite((double)data[i]))
                continue;
            const int64_t sample = samples != NULL ? samples[i / size] : i / size;
            const char *name = kiln_trainer_sample_name(trainer, sample);

            printf("the data: sample %" PRId64 "%s%s%s holds %s in \"%s\"\n", sample,
                   name != NULL ? " (" : "", name != NULL ? name : "", name != NULL ? ")" : "",
                   isnan((double)data[i]) ? "NaN" : "infinity", spec->features[f].name);
            i = (i / size + 1) * size - 1;
        }
    }
}

/* Called before each batch; false ends the replay. From the first recorded batch on, the result of
 * every operation is checked. */
static bool may_continue(void *ctx, KilnTrainer *trainer)
{
    Replay *replay = ctx;
    const int64_t batches = kiln_trainer_batches_done(trainer);

    if (batches >= kiln_flight_at(replay->flight, 0).batches)
        trainer->graph->detect_anomaly = true;
    if (batches == replay->target.batches)
        check_data(trainer);
    if (batches <= replay->target.batches)
        return true;
    (void)!kiln_flight_open(replay->record, &replay->made, NULL);
    return false;
}

/* Compare with the record and print the verdict. Returns the exit status. */
static int judge(Replay *replay, KilnStatus status, const KilnError *err)
{
    if (replay->made == NULL)
        (void)!kiln_flight_open(replay->record, &replay->made, NULL);
    const int differ = compare(replay);

    if (status == KILN_E_NUMERIC)
        printf("reproduced: %s\n", err->text);
    else if (status < 0)
        return kiln_screen_result(replay->args->command, status, err);
    else if (differ == 0)
        printf("equal: every loss and gradient norm is as recorded\n");
    else if (differ > 0)
        printf("%d batches differ: another machine, other data, another program, or a run resumed "
               "with other overrides?\n",
               differ);
    else
        printf("no batch of the record was replayed to its end\n");
    return status < 0 || differ == 0 ? 0 : 1;
}

/* Runs in a process of its own: what crashed once will crash again. */
static int replay_here(Replay *replay)
{
    static const char *const overrides[] = {
        "test=false",
        "trainer.enable_checkpointing=false",
        "trainer.enable_progress_bar=false",
        "trainer.enable_model_summary=false",
        "trainer.num_sanity_val_steps=0",
        "ckpt_path=null",
        NULL,
    };
    const KilnRunRequest request = {
        .run = replay->run,
        .before = overrides,
        .run_dir = replay->scratch,
        .checkpoint = replay->checkpoint,
    };
    KilnRegistry *registry = NULL;
    KilnConfig *config = NULL;
    KilnError err = { 0 };
    KilnStatus status = kiln_command_registry(replay->args, &registry);

    if (status >= 0)
        status = kiln_command_compose_run(replay->args, registry, &request, true, &config);
    if (status < 0)
        return kiln_screen_exit_status(status);
    KilnRunEnv env = {
        .registry = registry,
        .overrides = replay->args->words,
        .stop = kiln_screen_catch_signals().stop,
        .may_continue = may_continue,
        .ctx = replay,
    };
    status = kiln_run_fit(config, &env, NULL, &err);
    const int result = judge(replay, status, &err);
    kiln_flight_close(replay->made);
    kiln_config_free(config);
    kiln_registry_free(registry);
    return result;
}

/* Report where the replay crashed. */
static void report_crash(Replay *replay, int signal)
{
    printf("reproduced: the replay ended by signal %d (%s)", signal, strsignal(signal));
    if (kiln_flight_open(replay->record, &replay->made, NULL) >= 0 &&
        kiln_flight_count(replay->made) > 0) {
        const KilnFlightBatch last = kiln_flight_at(replay->made,
                                                    kiln_flight_count(replay->made) - 1);

        printf(" %s ", last.ended ? "after" : "in");
        print_where(&last);
    }
    printf("\n");
    kiln_flight_close(replay->made);
}

/* Returns the exit status. */
static int replay_apart(Replay *replay, KilnError *err)
{
    int status = 0;

    fflush(NULL);
    const pid_t child = fork();
    if (child == 0)
        _exit(kiln_screen_close(replay->args->command, replay_here(replay)));
    if (child < 0 || waitpid(child, &status, 0) != child)
        return kiln_screen_result(replay->args->command,
                                  kiln_error_errno(err, "a process for the replay"), err);
    if (!WIFSIGNALED(status))
        return WEXITSTATUS(status);
    report_crash(replay, WTERMSIG(status));
    return 0;
}

static KilnStatus make_scratch(Replay *replay, KilnError *err)
{
    snprintf(replay->scratch, sizeof(replay->scratch), "%.40s/kiln-replay-XXXXXX",
             kiln_tmpdir("/tmp"));
    if (mkdtemp(replay->scratch) == NULL)
        return kiln_error_errno(err, replay->scratch);
    snprintf(replay->record, sizeof(replay->record), "%s/flight.kiln", replay->scratch);
    return KILN_OK;
}

int kiln_command_replay(KilnArgs *args)
{
    Replay replay = { .args = args };
    KilnError err = { 0 };
    const char *word = kiln_args_take_path(args);
    int result;
    KilnStatus status = word != NULL
                            ? open_record(&replay, word, &err)
                            : kiln_error_set(&err, KILN_E_USAGE,
                                             "which run? `kiln replay RUN`, RUN being a run "
                                             "folder, a checkpoint, last, best or a flight record");

    if (status >= 0)
        status = kiln_untrusted_run_plugins(args, replay.run, &err);
    if (status >= 0)
        status = make_scratch(&replay, &err);
    if (status >= 0) {
        kiln_run_checkpoints(replay.run, compare_checkpoint, &replay);
        print_record(&replay);
        result = replay_apart(&replay, &err);
        (void)!kiln_path_remove(replay.scratch, NULL);
    } else {
        result = kiln_screen_result(args->command, status, &err);
    }
    kiln_flight_close(replay.flight);
    free(replay.run);
    free(replay.checkpoint);
    return result;
}

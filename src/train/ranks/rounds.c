/* What the ranks of a run exchange in each round of batches: what their hooks request,
 * gradients and running statistics. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kiln/tools/clock.h"
#include "train/optim/optimize.h"
#include "train/trainer.h"

/* ---- Agreeing ------------------------------------------------------------------------------ */

/* What a rank reports to the others. The first members must be the same on all. */
typedef struct Word {
    int64_t epoch, batch, step;
    double rate;
    int64_t samples; /* of the batch that it is about to train */
    double since_validation;
    int32_t ends, stops, paused, skips_epoch, saves;
    char reason[sizeof(((KilnRunState *)0)->stop_reason)];
} Word;

static Word word_of(const KilnTrainer *trainer, int64_t samples)
{
    const KilnRunEnv *env = trainer->env;
    Word word = {
        .epoch = trainer->at.epoch,
        .batch = trainer->at.batch,
        .step = trainer->at.step,
        .rate = trainer->optimizers[0].rate,
        .samples = samples,
        .since_validation = kiln_clock() - trainer->timing.last_validation,
        .ends = trainer->ranks.wants_end || (env->stop != NULL && *env->stop != 0),
        .stops = trainer->at.should_stop,
        .paused = trainer->state.paused,
        .skips_epoch = trainer->batch.skip == KILN_SKIP_EPOCH,
        .saves = trainer->save_signal.pending,
    };

    snprintf(word.reason, sizeof(word.reason), "%s", trainer->state.stop_reason);
    return word;
}

static KilnStatus check_position(const Word *first, const Word *other, int rank, KilnError *err)
{
    if (memcmp(first, other, offsetof(Word, samples)) == 0)
        return KILN_OK;
    return kiln_error_set(
        err, KILN_E_INTERNAL,
        "rank %d is at epoch %" PRId64 ", batch %" PRId64 ", step %" PRId64 ", learning rate %g; "
        "rank 0 at epoch %" PRId64 ", batch %" PRId64 ", step %" PRId64 ", learning rate %g: all "
        "ranks need the same command, data and plugins",
        rank, other->epoch, other->batch, other->step, other->rate, first->epoch, first->batch,
        first->step, first->rate);
}

/* Do what any rank requests. */
static void follow(KilnTrainer *trainer, const Word *words)
{
    bool paused = true;

    trainer->ranks.samples = 0;
    trainer->ranks.since_validation = words[0].since_validation;
    for (int r = 0; r < trainer->ranks.world; r++) {
        trainer->ranks.samples += words[r].samples;
        if (words[r].ends != 0)
            trainer->state.interrupted = true;
        if (words[r].skips_epoch != 0)
            trainer->batch.skip = KILN_SKIP_EPOCH;
        if (words[r].saves != 0)
            trainer->save_signal.pending = trainer->ranks.rank == 0;
        if (words[r].stops == 0)
            continue;
        if (!trainer->at.should_stop)
            kiln_trainer_stop(trainer, words[r].reason);
        paused = paused && words[r].paused != 0;
    }
    if (trainer->at.should_stop)
        trainer->state.paused = paused;
}

static KilnStatus agree(KilnTrainer *trainer, int64_t samples, KilnError *err)
{
    const Word mine = word_of(trainer, samples);
    Word *words = calloc((size_t)trainer->ranks.world, sizeof(*words));

    if (words == NULL)
        return kiln_error_nomem(err, (size_t)trainer->ranks.world * sizeof(*words));
    KilnStatus status = kiln_ranks_gather(&trainer->ranks, &mine, sizeof(mine), words, err);
    for (int r = 1; r < trainer->ranks.world && status >= 0; r++)
        status = check_position(&words[0], &words[r], r, err);
    if (status >= 0)
        follow(trainer, words);
    free(words);
    return status;
}

KilnStatus kiln_ranks_agree(KilnTrainer *trainer, KilnError *err)
{
    return kiln_ranks_several(&trainer->ranks) ? agree(trainer, 0, err) : KILN_OK;
}

KilnStatus kiln_ranks_begin_round(KilnTrainer *trainer, int64_t size, bool *ret_any, KilnError *err)
{
    KilnStatus status = agree(trainer, size, err);

    *ret_any = trainer->ranks.samples > 0;
    trainer->ranks.ran = trainer->ranks.computed = false;
    if (trainer->ranks.rank > 0) /* passed to rank 0 already, or logged by its hooks, too */
        kiln_metrics_clear(trainer->metrics, KILN_PHASE_FIT);
    return status;
}

/* ---- What a failed round must not change ---------------------------------------------------- */

/* The gradients count within a group of batches only. */
static size_t bytes_to_keep(const KilnTrainer *trainer, size_t i, KilnBuffer **ret)
{
    const KilnParams *params = trainer->params;
    KilnBuffer *const buffers[] = { params->gradients, params->statistics, params->counters };

    *ret = buffers[i];
    return i == 0 && trainer->at.in_group == 0 ? 0 : kiln_buffer_bytes(buffers[i]);
}

KilnStatus kiln_ranks_keep(KilnTrainer *trainer, KilnError *err)
{
    KilnRanks *ranks = &trainer->ranks;

    for (size_t i = 0; i < KILN_COUNT(ranks->kept) && ranks->rank == 0; i++) {
        KilnBuffer *buffer;
        const size_t bytes = bytes_to_keep(trainer, i, &buffer);

        if (bytes > 0 && ranks->kept[i] == NULL && (ranks->kept[i] = malloc(bytes)) == NULL)
            return kiln_error_nomem(err, bytes);
        if (bytes > 0)
            kiln_buffer_download(buffer, 0, ranks->kept[i], bytes);
    }
    return KILN_OK;
}

void kiln_ranks_put_back(KilnTrainer *trainer)
{
    const KilnRanks *ranks = &trainer->ranks;

    for (size_t i = 0; i < KILN_COUNT(ranks->kept) && ranks->rank == 0; i++) {
        KilnBuffer *buffer;
        const size_t bytes = bytes_to_keep(trainer, i, &buffer);

        if (bytes > 0 && ranks->kept[i] != NULL)
            kiln_buffer_upload(buffer, 0, ranks->kept[i], bytes);
    }
}

/* ---- Gradients and statistics ------------------------------------------------------------- */

typedef KilnStatus Move(KilnRanks *ranks, void *data, int64_t count, KilnDType dtype,
                        KilnError *err);

/* Call `move` with the elements of a buffer: where they are if the host sees them, else on a copy,
 * a part at a time. */
static KilnStatus move_range(KilnTrainer *trainer, KilnBuffer *buffer, int64_t begin, int64_t count,
                             KilnDType dtype, Move *move, KilnError *err)
{
    enum { PART = 1 << 18 };
    const size_t size = kiln_dtype_size(dtype);
    void *seen = kiln_buffer_host_view(buffer, (size_t)begin * size);
    KilnStatus status = kiln_backend_synchronize(trainer->backend, err);

    if (status < 0 || seen != NULL)
        return status < 0 ? status : move(&trainer->ranks, seen, count, dtype, err);
    void *part = malloc(PART * size);
    if (part == NULL)
        return kiln_error_nomem(err, PART * size);
    for (int64_t at = 0; at < count && status >= 0; at += PART) {
        const int64_t n = count - at < PART ? count - at : PART;
        const size_t offset = (size_t)(begin + at) * size;

        kiln_buffer_download(buffer, offset, part, (size_t)n * size);
        status = move(&trainer->ranks, part, n, dtype, err);
        if (status >= 0)
            kiln_buffer_upload(buffer, offset, part, (size_t)n * size);
    }
    free(part);
    return status;
}

static KilnStatus broadcast(KilnRanks *ranks, void *data, int64_t count, KilnDType dtype,
                            KilnError *err)
{
    return kiln_ranks_broadcast(ranks, data, (size_t)count * kiln_dtype_size(dtype), err);
}

static KilnStatus share(KilnTrainer *trainer, KilnBuffer *buffer, KilnError *err)
{
    const int64_t bytes = (int64_t)kiln_buffer_bytes(buffer);

    return bytes > 0 ? move_range(trainer, buffer, 0, bytes, KILN_U8, broadcast, err) : KILN_OK;
}

KilnStatus kiln_ranks_share_statistics(KilnTrainer *trainer, KilnError *err)
{
    KilnStatus status = share(trainer, trainer->params->statistics, err);

    return status >= 0 ? share(trainer, trainer->params->counters, err) : status;
}

/* A rank without a batch adds nothing; rank 0 also holds the sum of the group's rounds before. */
static bool adds_nothing(const KilnTrainer *trainer)
{
    return !trainer->ranks.computed && (trainer->ranks.rank > 0 || trainer->at.in_group == 0);
}

KilnStatus kiln_ranks_reduce(KilnTrainer *trainer, KilnError *err)
{
    KilnParams *params = trainer->params;
    const size_t size = kiln_dtype_size(params->dtype);
    int64_t begin, count;
    size_t next = 0;
    KilnStatus status = KILN_OK;

    while (status >= 0 && kiln_optimize_next_range(trainer, NULL, &next, &begin, &count)) {
        if (adds_nothing(trainer))
            kiln_buffer_clear(params->gradients, (size_t)begin * size, (size_t)count * size);
        status = move_range(trainer, params->gradients, begin, count, params->dtype, kiln_ranks_sum,
                            err);
    }
    for (size_t i = 0; i < params->count; i++)
        if (params->items[i]->sparse_rows >= 0)
            kiln_param_gradient_written(params->items[i]);
    return status >= 0 ? kiln_ranks_share_statistics(trainer, err) : status;
}

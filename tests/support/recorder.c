#include "tests/support/recorder.h"

#include <stdio.h>
#include <string.h>

#include "tests/support/run_fixture.h"
#include "train/trainer.h"

Recorder recorder;

static KilnStatus recorder_note(const char *hook)
{
    size_t used = strlen(recorder.hooks);

    snprintf(recorder.hooks + used, sizeof(recorder.hooks) - used, "%s%s", used > 0 ? " " : "",
             hook);
    return KILN_OK;
}

#define RECORDER_HOOK(name)                                                                        \
    static inline KilnStatus recorder_##name(KilnInstance *self, KilnTrainer *trainer,             \
                                             KilnError *err)                                       \
    {                                                                                              \
        (void)self;                                                                                \
        (void)trainer;                                                                             \
        (void)err;                                                                                 \
        return recorder_note(#name);                                                               \
    }

RECORDER_HOOK(setup)

RECORDER_HOOK(fit_start)

RECORDER_HOOK(train_start)

RECORDER_HOOK(train_epoch_start)

RECORDER_HOOK(train_batch_start)

RECORDER_HOOK(train_epoch_end)

RECORDER_HOOK(validation_start)

RECORDER_HOOK(validation_epoch_start)

RECORDER_HOOK(validation_batch_start)

RECORDER_HOOK(validation_batch_end)

RECORDER_HOOK(validation_epoch_end)

RECORDER_HOOK(validation_end)

RECORDER_HOOK(train_end)

RECORDER_HOOK(fit_end)

RECORDER_HOOK(test_start)

RECORDER_HOOK(test_epoch_start)

RECORDER_HOOK(test_batch_start)

RECORDER_HOOK(test_batch_end)

RECORDER_HOOK(test_epoch_end)

RECORDER_HOOK(test_end)

RECORDER_HOOK(teardown)

static KilnStatus recorder_train_batch_end(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    (void)self;
    (void)err;
    const int64_t step = kiln_trainer_global_step(trainer);

    if (step > 0 && step == recorder.stop_at)
        recorder.stop = 1;
    if (kiln_trainer_batches_done(trainer) == recorder.stop_at_batch)
        recorder.stop = 1;
    if (step > 0 && step == recorder.disk_full_at) {
        (void)!kiln_save_requests_finish(trainer, NULL); /* what was begun is on disk */
        limit_files(900);
    }
    sleep_ms(recorder.batch_ms);
    return recorder_note("train_batch_end");
}

static void recorder_exception(KilnInstance *self, KilnTrainer *trainer, const KilnError *why)
{
    (void)self;
    (void)trainer;
    (void)why;
    (void)recorder_note("exception");
}

static const KilnCallbackOps recorder_ops = {
    .setup = recorder_setup,
    .on_fit_start = recorder_fit_start,
    .on_train_start = recorder_train_start,
    .on_train_epoch_start = recorder_train_epoch_start,
    .on_train_batch_start = recorder_train_batch_start,
    .on_train_batch_end = recorder_train_batch_end,
    .on_train_epoch_end = recorder_train_epoch_end,
    .on_validation_start = recorder_validation_start,
    .on_validation_epoch_start = recorder_validation_epoch_start,
    .on_validation_batch_start = recorder_validation_batch_start,
    .on_validation_batch_end = recorder_validation_batch_end,
    .on_validation_epoch_end = recorder_validation_epoch_end,
    .on_validation_end = recorder_validation_end,
    .on_train_end = recorder_train_end,
    .on_fit_end = recorder_fit_end,
    .on_test_start = recorder_test_start,
    .on_test_epoch_start = recorder_test_epoch_start,
    .on_test_batch_start = recorder_test_batch_start,
    .on_test_batch_end = recorder_test_batch_end,
    .on_test_epoch_end = recorder_test_epoch_end,
    .on_test_end = recorder_test_end,
    .on_exception = recorder_exception,
    .teardown = recorder_teardown,
};

const KilnComponent recorder_component = {
    .kind = KILN_KIND_CALLBACK,
    .name = "recorder",
    .summary = "Watch and disturb",
    .ops.callback = &recorder_ops,
};

/* Logs the processors, memory and disk traffic that the run uses. */
#include "kiln.h"
#include "kiln/usage.h"

typedef struct State {
    KilnUsage last; /* previous reading; rates are since then */
} State;

static KilnStatus on_train_start(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    State *state = kiln_state(self);

    (void)trainer;
    (void)err;
    state->last = kiln_usage_now();
    return KILN_OK;
}

static void log_value(KilnTrainer *trainer, const char *name, double value, bool known)
{
    if (known)
        kiln_trainer_log(trainer, name, value, KILN_LOG_STEP | KILN_LOG_MEASURED);
}

/* Clocks of different resolution may show more than all processors; cap it. */
static double percent(double part, double whole)
{
    return part < whole ? 100.0 * part / whole : 100.0;
}

static KilnStatus on_train_batch_end(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    State *state = kiln_state(self);
    const KilnUsage *last = &state->last;

    (void)err;
    if (!kiln_trainer_row_is_due(trainer))
        return KILN_OK;
    const KilnUsage now = kiln_usage_now();
    const double seconds = now.time - last->time, all = now.all_s - last->all_s;
    log_value(trainer, "device/cpu_percent",
              percent(now.process_s - last->process_s, seconds * now.processors),
              seconds > 0.0 && now.process_s >= 0.0 && now.processors > 0.0);
    log_value(trainer, "device/machine_cpu_percent", percent(now.busy_s - last->busy_s, all),
              all > 0.0 && now.all_s >= 0.0);
    log_value(trainer, "device/memory_bytes", (double)now.resident, now.resident >= 0);
    log_value(trainer, "device/memory_percent",
              100.0 - percent((double)now.available, (double)now.limit), now.limit > 0);
    log_value(trainer, "device/read_bytes_per_s", (double)(now.read - last->read) / seconds,
              seconds > 0.0 && now.read >= 0);
    log_value(trainer, "device/write_bytes_per_s", (double)(now.written - last->written) / seconds,
              seconds > 0.0 && now.written >= 0);
    state->last = now;
    return KILN_OK;
}

static const char *const logs[] = {
    "device/cpu_percent",
    "device/machine_cpu_percent",
    "device/memory_bytes",
    "device/memory_percent",
    "device/read_bytes_per_s",
    "device/write_bytes_per_s",
    NULL,
};

static const KilnCallbackOps ops = {
    .on_train_start = on_train_start,
    .on_train_batch_end = on_train_batch_end,
    .logs = logs,
};

const KilnComponent kiln_callback_device_stats = {
    .kind = KILN_KIND_CALLBACK,
    .name = "device_stats",
    .summary = "Log the processors, memory and disk traffic in use",
    .state_size = sizeof(State),
    .ops.callback = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_callback_device_stats, NULL };
KILN_PLUGIN_DEFINE(list)
#endif

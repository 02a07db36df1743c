/* Estimates the memory of a run and refuses one that does not fit. */
#include "train/analysis/memory_estimate.h"

#include <stdio.h>
#include <string.h>

#include "base/call.h"
#include "base/text.h"
#include "graph/plan/plan_report.h"
#include "kiln/tools/clock.h"
#include "train/optim/averaged_weights.h"
#include "train/optim/lr_scales.h"
#include "train/trainer.h"

/* Measured: runs of all kinds of networks take 1 to 8 MiB more than the other parts: code pages
 * read on first use, and what oneDNN compiles. */
static const int64_t growth = 8 << 20;

int64_t kiln_memory_estimate_needed(const KilnMemoryEstimate *memory)
{
    return memory->activations + memory->constants + memory->converted + memory->parameters +
           memory->gradients + memory->buffers + memory->optimizer + memory->average +
           memory->callbacks + memory->metrics + memory->computing + memory->batches +
           memory->order + memory->reading + memory->snapshot + memory->growth;
}

int64_t kiln_memory_estimate_peak(const KilnMemoryEstimate *memory)
{
    return kiln_memory_estimate_needed(memory) + memory->program;
}

/* ---- Estimating ------------------------------------------------------------------------ */

/* All steps share one block, as large as the largest step needs. */
void kiln_memory_estimate_add_plan(KilnMemoryEstimate *memory, const KilnPlan *plan)
{
    if (memory->activations < (int64_t)kiln_plan_bytes(plan))
        memory->activations = (int64_t)kiln_plan_bytes(plan);
    memory->constants += (int64_t)kiln_plan_constant_bytes(plan);
    if (memory->converted < (int64_t)kiln_plan_converted_bytes(plan))
        memory->converted = (int64_t)kiln_plan_converted_bytes(plan);
    if (!kiln_plan_trains(plan))
        return;
    memory->flops = kiln_plan_flops(plan, false);
    memory->flops_backward = kiln_plan_flops(plan, true);
}

/* Rows per sample follow from the shapes of the recorded step. */
void kiln_memory_estimate_add_metrics(KilnMemoryEstimate *memory, const KilnStep *step,
                                      int64_t samples)
{
    const KilnMetricCollection *states = &step->metrics->collection;

    for (size_t i = 0; i < step->n_metric_inputs; i++) {
        const KilnMetricState *state = states->list[step->metric_inputs[i].state].state;
        const KilnMetricOps *ops = kiln_instance_component(state->metric)->ops.metric;
        const int64_t scores = kiln_shape_count(kiln_tensor_shape(step->metric_inputs[i].scores));
        const double rows = (double)scores / (double)state->form.width *
                            ((double)samples / (double)step->batch.size);

        int64_t computing = 0;

        if (ops->memory == NULL)
            continue;
        kiln_call_enter(state->metric, "memory");
        memory->metrics += ops->memory(state->metric, &state->form, (int64_t)rows, &computing);
        kiln_call_leave();
        if (memory->computing < computing)
            memory->computing = computing;
    }
}

/* A tensor's entry in a file's header: name, type, shape and offset. */
static int64_t header_bytes(const KilnParam *param)
{
    return 80 + (int64_t)strlen(kiln_param_name(param));
}

static bool averages_weights(const KilnTrainer *trainer)
{
    bool any = false;

    for (size_t i = 0; i < trainer->n_callbacks; i++)
        any |= kiln_instance_component(trainer->callbacks[i])->ops.callback->averages;
    return any;
}

static int64_t checkpoint_bytes(const KilnTrainer *trainer)
{
    const bool averages = averages_weights(trainer);
    int64_t sum = (int64_t)strlen(trainer->config_yaml) + 4096; /* config.yaml, state.json */

    for (size_t i = 0; i < kiln_params_count(trainer->params); i++) {
        const KilnParam *param = kiln_params_at(trainer->params, i);
        const int64_t count = kiln_shape_count(kiln_param_shape(param));
        const KilnDType dtype = kiln_param_dtype(param);
        const int64_t copies = 1 + kiln_optimizers_slots(trainer, param);

        sum += copies * (count * (int64_t)kiln_dtype_size(dtype) + header_bytes(param));
        if (averages && dtype != KILN_I64)
            sum += count * (int64_t)kiln_dtype_size(kiln_params_step_dtype(trainer->params)) +
                   header_bytes(param);
    }
    return sum;
}

static int64_t loader_bytes(KilnTrainer *trainer, KilnSplit split)
{
    int64_t sum = 0;

    for (size_t set = 0; set < trainer->data.sets[split].n; set++) {
        KilnLoaderSpec spec = kiln_trainer_loader_spec(trainer, split, set);

        if (kiln_trainer_set_batches(trainer, split, set) > 0)
            sum += kiln_loader_spec_bytes(&spec);
    }
    return sum;
}

/* Of all loaders, which stay until the run ends. */
static int64_t loaders_bytes(KilnTrainer *trainer)
{
    return loader_bytes(trainer, KILN_TRAIN) + loader_bytes(trainer, KILN_VAL) +
           loader_bytes(trainer, KILN_TEST);
}

/* Memory of reading samples; loaders of training and validation may read at the same time. */
static int64_t reading_bytes(const KilnTrainer *trainer)
{
    const KilnDataModuleOps *ops = kiln_instance_component(trainer->datamodule)->ops.datamodule;
    const int64_t workers = trainer->options.trainer->num_workers;
    const int64_t loaders = workers > 0 && kiln_trainer_split_batches(trainer, KILN_VAL) > 0 ? 2
                                                                                             : 1;

    if (ops->memory == NULL)
        return 0;
    kiln_call_enter(trainer->datamodule, "memory");
    const int64_t bytes = ops->memory(trainer->datamodule);
    kiln_call_leave();
    return bytes * loaders * (workers > 0 ? workers : 1);
}

/* Subtract what threads that are not started yet take of a limit of addresses: each a stack and a
 * heap arena. */
static void reserve_threads(const KilnTrainer *trainer, KilnMemory *memory)
{
    const int64_t each = (8 + 64) << 20;
    const int64_t taken = each * (trainer->threads - 1 + trainer->options.trainer->num_workers);

    memory->available = taken < memory->available ? memory->available - taken : 0;
}

void kiln_memory_estimate_complete(KilnTrainer *trainer)
{
    KilnMemoryEstimate *memory = &trainer->memory;
    const KilnParams *params = trainer->params;
    const int64_t size = (int64_t)kiln_dtype_size(kiln_params_dtype(params));

    memory->parameters = (kiln_params_size(params) + params->n_fixed) * size;
    memory->buffers = params->n_statistics * size + params->n_counters * (int64_t)sizeof(int64_t);
    for (size_t i = 0; i < kiln_params_count(params); i++) {
        const KilnParam *param = kiln_params_at(params, i);
        const int64_t bytes = kiln_shape_count(kiln_param_shape(param)) * size;

        /* Those of parameters that are never trained are allocated but never written. */
        if (!kiln_param_trained(param) || !kiln_lr_scales_trained(trainer, param))
            continue;
        memory->gradients += bytes;
        memory->optimizer += kiln_optimizers_slots(trainer, param) * bytes;
    }
    memory->average = averages_weights(trainer) ? kiln_averaged_bytes(params) : 0;
    for (size_t i = 0; i < trainer->n_callbacks; i++) {
        const KilnCallbackOps *ops = kiln_instance_component(trainer->callbacks[i])->ops.callback;

        if (ops->memory == NULL)
            continue;
        kiln_call_enter(trainer->callbacks[i], "memory");
        memory->callbacks += ops->memory(trainer->callbacks[i], trainer);
        kiln_call_leave();
    }
    KilnLoaderSpec train = kiln_trainer_loader_spec(trainer, KILN_TRAIN, 0);
    memory->order = kiln_loader_spec_order_bytes(&train);
    memory->batches = loaders_bytes(trainer) - memory->order;
    memory->reading = reading_bytes(trainer);
    memory->growth = growth;
    memory->program = kiln_memory_resident("");
    memory->checkpoint = checkpoint_bytes(trainer);
    if (trainer->options.trainer->enable_checkpointing)
        memory->snapshot = memory->checkpoint +
                           (trainer->schedule.accumulate > 1 ? memory->gradients : 0);
    memory->memory_known = kiln_memory_read("", &memory->memory);
    if (memory->memory_known && memory->memory.process)
        reserve_threads(trainer, &memory->memory);
}

/* ---- Refusing --------------------------------------------------------------------------- */

static void add_part(KilnText *text, const char *name, int64_t bytes)
{
    char number[KILN_UNIT_TEXT];

    if (bytes > 0)
        kiln_text_printf(text, "%s%s %s", text->length > 0 ? ", " : "", name,
                         kiln_bytes_text((double)bytes, number));
}

static bool is_option(const KilnField *fields, const char *name)
{
    for (const KilnField *field = fields; field != NULL && field->name != NULL; field++)
        if (strcmp(field->name, name) == 0)
            return true;
    return false;
}

static bool is_trainer_option(const char *name)
{
    for (const KilnSection *section = kiln_run_sections(); section->key != NULL; section++)
        if (strcmp(section->key, "trainer") == 0)
            return is_option(section->fields, name);
    return false;
}

/* The largest batch size that fits: activations and batches grow with it. */
static int64_t fitting_batch(const KilnTrainer *trainer)
{
    const KilnMemoryEstimate *memory = &trainer->memory;
    double grows = (double)(memory->activations + memory->batches);
    double left = (double)memory->memory.available -
                  ((double)kiln_memory_estimate_needed(memory) - grows);

    return grows > 0.0 ? (int64_t)(0.95 * left / grows * (double)trainer->data.batch_size) : 0;
}

static void suggest(const KilnTrainer *trainer, KilnText *text)
{
    int64_t batch = fitting_batch(trainer);
    const KilnComponent *data = kiln_instance_component(trainer->datamodule);

    kiln_text_append(text, "; try ");
    if (trainer->memory.order > kiln_memory_estimate_needed(&trainer->memory) / 2) {
        kiln_text_append(text, "fewer training samples");
        return;
    }
    if (batch >= 1 && batch < trainer->data.batch_size)
        kiln_text_printf(text, "a smaller batch (about %lld samples fit, %s%lld now)",
                         (long long)batch,
                         is_option(data->fields, "batch_size") ? "datamodule.batch_size=" : "",
                         (long long)trainer->data.batch_size);
    else
        kiln_text_append(text, "a smaller network");
    if (is_trainer_option("recompute"))
        kiln_text_append(text, ", trainer.recompute, which stores fewer activations");
    if (trainer->options.trainer->precision == KILN_PRECISION_64)
        kiln_text_append(text, ", trainer.precision=32-true");
    else if (trainer->options.trainer->precision == KILN_PRECISION_32)
        kiln_text_append(text, ", trainer.precision=bf16-mixed");
}

static KilnStatus too_large(const KilnTrainer *trainer, int64_t needed, const KilnText *text,
                            KilnError *err)
{
    const KilnMemory *memory = &trainer->memory.memory;
    char need[KILN_UNIT_TEXT], have[KILN_UNIT_TEXT], of[KILN_UNIT_TEXT];

    return kiln_error_set(
        err, KILN_E_NOMEM, "the run needs %s of memory and %s are available (%s has %s): %s",
        kiln_bytes_text((double)needed, need), kiln_bytes_text((double)memory->available, have),
        memory->process ? "the process"
        : memory->group ? "its control group"
                        : "the machine",
        kiln_bytes_text((double)memory->limit, of),
        text->failed || text->data == NULL ? "" : text->data);
}

KilnStatus kiln_trainer_check_parameters(const KilnTrainer *trainer, KilnError *err)
{
    const KilnParams *params = trainer->params;
    const int64_t size = (int64_t)kiln_dtype_size(kiln_params_dtype(params));
    const int64_t bytes = (2 * kiln_params_size(params) + params->n_fixed) * size;
    char number[KILN_UNIT_TEXT], need[KILN_UNIT_TEXT], have[KILN_UNIT_TEXT];
    KilnMemory memory;

    if (!kiln_memory_read("", &memory) || bytes <= memory.available)
        return KILN_OK;
    return kiln_error_set(
        err, KILN_E_NOMEM,
        "the network has %s parameters: with their gradients they need %s of "
        "memory, but %s are available; try a smaller network",
        kiln_quantity_text((double)(kiln_params_size(params) + params->n_fixed), number),
        kiln_bytes_text((double)bytes, need), kiln_bytes_text((double)memory.available, have));
}

KilnStatus kiln_trainer_check_memory(const KilnTrainer *trainer, KilnError *err)
{
    const KilnMemoryEstimate *memory = &trainer->memory;
    KilnText text = { 0 };

    if (!memory->memory_known || kiln_memory_estimate_needed(memory) <= memory->memory.available)
        return KILN_OK;
    add_part(&text, "activations", memory->activations);
    add_part(&text, "converted weights", memory->constants + memory->converted);
    add_part(&text, "parameters", memory->parameters);
    add_part(&text, "gradients", memory->gradients);
    add_part(&text, "buffers", memory->buffers);
    add_part(&text, "optimizer state", memory->optimizer);
    add_part(&text, "averaged weights", memory->average);
    add_part(&text, "callbacks", memory->callbacks);
    add_part(&text, "metrics", memory->metrics + memory->computing);
    add_part(&text, "batches", memory->batches);
    add_part(&text, "reading samples", memory->reading);
    add_part(&text, "the order of samples", memory->order);
    add_part(&text, "the checkpoint snapshot", memory->snapshot);
    suggest(trainer, &text);
    KilnStatus status = too_large(trainer, kiln_memory_estimate_needed(memory), &text, err);
    kiln_text_release(&text);
    return status;
}

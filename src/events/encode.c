/* The only user of libprotobuf-c. */
#include "events/encode.h"

#ifdef KILN_WITH_PROTOBUF

#include <stdlib.h>
#include <string.h>

#include <events.pb-c.h>

#include "base/arena.h"

enum { STRINGS = 7, TEXT = 1, BOOL = 2, NUMBER = 3, SUCCESS = 1, FAILURE = 2 };

KilnStatus kiln_events_supported(KilnError *err)
{
    (void)err;
    return KILN_OK;
}

static KilnStatus pack(const ProtobufCMessage *message, KilnEventBytes *ret, KilnError *err)
{
    size_t size = protobuf_c_message_get_packed_size(message);
    uint8_t *data = malloc(size + 1);

    if (data == NULL)
        return kiln_error_nomem(err, size);
    (void)protobuf_c_message_pack(message, data);
    *ret = (KilnEventBytes) { .data = data, .size = size };
    return KILN_OK;
}

KilnStatus kiln_event_encode_version(double wall_time, KilnEventBytes *ret, KilnError *err)
{
    char version[] = "brain.Event:2";
    Kiln__Pb__Event event = KILN__PB__EVENT__INIT;

    event.wall_time = wall_time;
    event.what_case = KILN__PB__EVENT__WHAT_FILE_VERSION;
    event.file_version = version;
    return pack(&event.base, ret, err);
}

/* An event with one value, which `value` is filled to. */
static KilnStatus pack_value(const KilnEvent *from, Kiln__Pb__Value *value, KilnEventBytes *ret,
                             KilnError *err)
{
    Kiln__Pb__Event event = KILN__PB__EVENT__INIT;
    Kiln__Pb__Summary summary = KILN__PB__SUMMARY__INIT;

    summary.n_value = 1;
    summary.value = &value;
    event.wall_time = from->wall_time;
    event.step = from->step;
    event.what_case = KILN__PB__EVENT__WHAT_SUMMARY;
    event.summary = &summary;
    return pack(&event.base, ret, err);
}

/* ---- Values ------------------------------------------------------------------------------ */

static KilnStatus encode_histogram(const KilnEvent *event, Kiln__Pb__Value *value,
                                   KilnEventBytes *ret, KilnError *err)
{
    const KilnHistogram *from = event->histogram;
    double *numbers = malloc((2 * from->n_bins + 1) * sizeof(*numbers));
    Kiln__Pb__Histogram histogram = KILN__PB__HISTOGRAM__INIT;

    if (numbers == NULL)
        return kiln_error_nomem(err, 2 * from->n_bins * sizeof(*numbers));
    for (size_t i = 0; i < from->n_bins; i++) {
        numbers[i] = from->edges[i + 1];
        numbers[from->n_bins + i] = (double)from->counts[i];
    }
    histogram.min = from->min;
    histogram.max = from->max;
    histogram.count = (double)from->count;
    histogram.sum = from->sum;
    histogram.sum_squares = from->sum_squares;
    histogram.n_upper_edges = histogram.n_counts = from->n_bins;
    histogram.upper_edges = numbers;
    histogram.counts = numbers + from->n_bins;
    value->what_case = KILN__PB__VALUE__WHAT_HISTOGRAM;
    value->histogram = &histogram;
    KilnStatus status = pack_value(event, value, ret, err);
    free(numbers);
    return status;
}

static KilnStatus encode_image(const KilnEvent *event, Kiln__Pb__Value *value, KilnEventBytes *ret,
                               KilnError *err)
{
    Kiln__Pb__Image image = KILN__PB__IMAGE__INIT;

    image.height = (int32_t)event->height;
    image.width = (int32_t)event->width;
    image.channels = (int32_t)event->channels;
    image.png = (ProtobufCBinaryData) { .len = event->png_size, .data = (uint8_t *)event->png };
    value->what_case = KILN__PB__VALUE__WHAT_IMAGE;
    value->image = &image;
    return pack_value(event, value, ret, err);
}

/* A value that a plugin of TensorBoard shows. */
static KilnStatus encode_plugin(const KilnEvent *event, Kiln__Pb__Value *value, const char *plugin,
                                const KilnEventBytes *content, KilnEventBytes *ret, KilnError *err)
{
    Kiln__Pb__Metadata metadata = KILN__PB__METADATA__INIT;
    Kiln__Pb__PluginData data = KILN__PB__PLUGIN_DATA__INIT;

    data.plugin = (char *)plugin;
    data.content = (ProtobufCBinaryData) { .len = content->size, .data = content->data };
    metadata.plugin_data = &data;
    value->metadata = &metadata;
    return pack_value(event, value, ret, err);
}

static KilnStatus encode_text(const KilnEvent *event, Kiln__Pb__Value *value, KilnEventBytes *ret,
                              KilnError *err)
{
    ProtobufCBinaryData text = { .len = strlen(event->text), .data = (uint8_t *)event->text };
    Kiln__Pb__Tensor tensor = KILN__PB__TENSOR__INIT;
    Kiln__Pb__Shape shape = KILN__PB__SHAPE__INIT;
    Kiln__Pb__Dim dim = KILN__PB__DIM__INIT, *dims = &dim;

    dim.size = 1;
    shape.n_dim = 1;
    shape.dim = &dims;
    tensor.dtype = STRINGS;
    tensor.shape = &shape;
    tensor.n_strings = 1;
    tensor.strings = &text;
    value->what_case = KILN__PB__VALUE__WHAT_TENSOR;
    value->tensor = &tensor;
    return encode_plugin(event, value, "text", &(KilnEventBytes) { 0 }, ret, err);
}

/* ---- Hyperparameters ------------------------------------------------------------------------ */

static KilnStatus encode_hparams(const KilnEvent *event, const char *tag,
                                 Kiln__Pb__HparamsData *data, KilnEventBytes *ret, KilnError *err)
{
    Kiln__Pb__Value value = KILN__PB__VALUE__INIT;
    KilnEventBytes content = { 0 };
    KilnStatus status = pack(&data->base, &content, err);

    value.tag = (char *)tag;
    if (status >= 0)
        status = encode_plugin(event, &value, "hparams", &content, ret, err);
    free(content.data);
    return status;
}

static int32_t type_of(const KilnHparam *hparam)
{
    return hparam->kind == KILN_HPARAM_NUMBER ? NUMBER
           : hparam->kind == KILN_HPARAM_BOOL ? BOOL
                                              : TEXT;
}

/* Arrays of messages and of pointers to them, as the library wants them. */
#define MESSAGES(Type, INIT, arena, n, objects, pointers)                                          \
    Type *objects = kiln_arena_alloc(arena, ((n) + 1) * sizeof(*objects));                         \
    Type **pointers = kiln_arena_alloc(arena, ((n) + 1) * sizeof(*pointers));                      \
    for (size_t i_ = 0; objects != NULL && pointers != NULL && i_ < (n); i_++) {                   \
        objects[i_] = (Type)INIT;                                                                  \
        pointers[i_] = &objects[i_];                                                               \
    }

static KilnStatus encode_experiment(const KilnEvent *event, KilnArena *arena, KilnEventBytes *ret,
                                    KilnError *err)
{
    const KilnLogRun *run = event->run;
    Kiln__Pb__HparamsData data = KILN__PB__HPARAMS_DATA__INIT;
    Kiln__Pb__Experiment experiment = KILN__PB__EXPERIMENT__INIT;
    MESSAGES(Kiln__Pb__HparamInfo, KILN__PB__HPARAM_INFO__INIT, arena, run->n_hparams, infos,
             hparams)
    MESSAGES(Kiln__Pb__MetricInfo, KILN__PB__METRIC_INFO__INIT, arena, run->n_metrics, metrics,
             metric_list)
    MESSAGES(Kiln__Pb__MetricName, KILN__PB__METRIC_NAME__INIT, arena, run->n_metrics, names,
             name_list)

    if (infos == NULL || hparams == NULL || metrics == NULL || metric_list == NULL ||
        names == NULL || name_list == NULL)
        return kiln_error_nomem(err, run->n_metrics * sizeof(*metrics));
    for (size_t i = 0; i < run->n_hparams; i++) {
        infos[i].name = (char *)run->hparams[i].name;
        infos[i].type = type_of(&run->hparams[i]);
    }
    for (size_t i = 0; i < run->n_metrics; i++) {
        names[i].tag = (char *)run->metrics[i];
        metrics[i].name = &names[i];
    }
    experiment.created = event->wall_time;
    experiment.n_hparams = run->n_hparams;
    experiment.hparams = hparams;
    experiment.n_metrics = run->n_metrics;
    experiment.metrics = metric_list;
    data.what_case = KILN__PB__HPARAMS_DATA__WHAT_EXPERIMENT;
    data.experiment = &experiment;
    return encode_hparams(event, "_hparams_/experiment", &data, ret, err);
}

static void fill_value(const KilnHparam *from, Kiln__Pb__HparamValue *to)
{
    if (from->kind == KILN_HPARAM_NUMBER) {
        to->kind_case = KILN__PB__HPARAM_VALUE__KIND_NUMBER;
        to->number = from->number;
    } else if (from->kind == KILN_HPARAM_BOOL) {
        to->kind_case = KILN__PB__HPARAM_VALUE__KIND_TRUTH;
        to->truth = from->number != 0.0;
    } else {
        to->kind_case = KILN__PB__HPARAM_VALUE__KIND_TEXT;
        to->text = (char *)from->value;
    }
}

static KilnStatus encode_session(const KilnEvent *event, KilnArena *arena, KilnEventBytes *ret,
                                 KilnError *err)
{
    const KilnLogRun *run = event->run;
    Kiln__Pb__HparamsData data = KILN__PB__HPARAMS_DATA__INIT;
    Kiln__Pb__Session session = KILN__PB__SESSION__INIT;
    MESSAGES(Kiln__Pb__HparamEntry, KILN__PB__HPARAM_ENTRY__INIT, arena, run->n_hparams, entries,
             entry_list)
    MESSAGES(Kiln__Pb__HparamValue, KILN__PB__HPARAM_VALUE__INIT, arena, run->n_hparams, values,
             value_list)

    if (entries == NULL || entry_list == NULL || values == NULL || value_list == NULL)
        return kiln_error_nomem(err, run->n_hparams * sizeof(*entries));
    for (size_t i = 0; i < run->n_hparams; i++) {
        fill_value(&run->hparams[i], &values[i]);
        entries[i].key = (char *)run->hparams[i].name;
        entries[i].value = &values[i];
    }
    session.started = event->wall_time;
    session.n_hparams = run->n_hparams;
    session.hparams = entry_list;
    data.what_case = KILN__PB__HPARAMS_DATA__WHAT_SESSION;
    data.session = &session;
    return encode_hparams(event, "_hparams_/session_start_info", &data, ret, err);
}

static KilnStatus encode_session_end(const KilnEvent *event, KilnEventBytes *ret, KilnError *err)
{
    Kiln__Pb__HparamsData data = KILN__PB__HPARAMS_DATA__INIT;
    Kiln__Pb__SessionEnd end = KILN__PB__SESSION_END__INIT;

    end.status = event->failed ? FAILURE : SUCCESS;
    end.ended = event->wall_time;
    data.what_case = KILN__PB__HPARAMS_DATA__WHAT_SESSION_END;
    data.session_end = &end;
    return encode_hparams(event, "_hparams_/session_end_info", &data, ret, err);
}

KilnStatus kiln_event_encode(const KilnEvent *event, KilnEventBytes *ret, KilnError *err)
{
    Kiln__Pb__Value value = KILN__PB__VALUE__INIT;
    KilnArena arena = { 0 };
    KilnStatus status = KILN_E_INTERNAL;

    if (event->tag != NULL)
        value.tag = (char *)event->tag;
    switch (event->kind) {
    case KILN_EVENT_SCALAR:
        value.what_case = KILN__PB__VALUE__WHAT_SCALAR;
        value.scalar = (float)event->scalar;
        status = pack_value(event, &value, ret, err);
        break;
    case KILN_EVENT_HISTOGRAM:
        status = encode_histogram(event, &value, ret, err);
        break;
    case KILN_EVENT_IMAGE:
        status = encode_image(event, &value, ret, err);
        break;
    case KILN_EVENT_TEXT:
        status = encode_text(event, &value, ret, err);
        break;
    case KILN_EVENT_EXPERIMENT:
        status = encode_experiment(event, &arena, ret, err);
        break;
    case KILN_EVENT_SESSION:
        status = encode_session(event, &arena, ret, err);
        break;
    case KILN_EVENT_SESSION_END:
        status = encode_session_end(event, ret, err);
        break;
    }
    kiln_arena_release(&arena);
    return status;
}

#endif

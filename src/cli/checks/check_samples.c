/* Checks a datamodule: what it declares, the sizes of its sets, and that samples are as declared,
 * the same again, and the same in two threads. */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/checks/checks.h"

enum {
    SAMPLES = 6, /* of a set, at equal distances, that are read again and again */
    FIRST = 512, /* of a set, that are read once */
    FENCE = 64   /* bytes after a feature */
};
enum { FENCE_BYTE = 0xA5 };

typedef struct Data {
    KilnCase *self;
    KilnInstance *datamodule;
    const KilnDataModuleOps *ops;
    KilnDataSpec spec;
    KilnSplit split;
    size_t set;
    KilnDataset dataset;
    int64_t read, again; /* samples */
    int64_t missing;     /* numbers that are NaN, of samples that were read */
} Data;

/* One sample, with a fence after each feature. */
typedef struct Room {
    const Data *data;
    char **data_of; /* of each feature */
    size_t *bytes;  /* that the feature fills */
    int64_t *lengths;
    KilnStatus status; /* of the last read */
    KilnError err;
    int64_t index;
} Room;

static void room_release(Room *room)
{
    for (size_t f = 0; room->data_of != NULL && f < room->data->spec.n_features; f++) {
        if (room->data->spec.features[f].content == KILN_TEXT && room->data_of[f] != NULL)
            free(*(char **)room->data_of[f]);
        free(room->data_of[f]);
    }
    free(room->data_of);
    free(room->bytes);
    free(room->lengths);
    *room = (Room) { 0 };
}

static size_t feature_bytes(const KilnFeature *feature)
{
    return feature->content == KILN_TEXT
               ? sizeof(char *)
               : (size_t)kiln_shape_count(&feature->shape) * kiln_dtype_size(feature->dtype);
}

static bool room_new(const Data *data, Room *room)
{
    const size_t n = data->spec.n_features;

    *room = (Room) { .data = data,
                     .data_of = calloc(n + 1, sizeof(*room->data_of)),
                     .bytes = calloc(n + 1, sizeof(*room->bytes)),
                     .lengths = calloc(n + 1, sizeof(*room->lengths)) };
    bool whole = room->data_of != NULL && room->bytes != NULL && room->lengths != NULL;
    for (size_t f = 0; f < n && whole; f++) {
        room->bytes[f] = feature_bytes(&data->spec.features[f]);
        room->data_of[f] = calloc(1, room->bytes[f] + FENCE);
        whole = room->data_of[f] != NULL;
    }
    if (!whole)
        kiln_case_fail(data->self, "", "memory is out");
    return whole;
}

/* ---- Reading --------------------------------------------------------------------------------- */

/* Read a sample, with random numbers of the first epoch, into memory of such bytes. */
static void read_sample(Room *room, int64_t index, int before)
{
    const Data *data = room->data;
    const size_t n = data->spec.n_features;
    KilnSample sample = { .data = (void *const *)room->data_of, .lengths = room->lengths };
    KilnRng rng;

    room->index = index;
    memset(room->lengths, 0, n * sizeof(*room->lengths));
    if (data->dataset.lengths != NULL)
        data->dataset.lengths(data->dataset.ctx, index, room->lengths);
    for (size_t f = 0; f < n; f++) {
        const KilnFeature *feature = &data->spec.features[f];

        if (feature->content == KILN_TEXT)
            free(*(char **)room->data_of[f]);
        /* Of a varying feature there is room for its length alone. */
        if (feature->varies && data->dataset.lengths != NULL && feature->shape.dim[0] > 0)
            room->bytes[f] = feature_bytes(feature) / (size_t)feature->shape.dim[0] *
                             (size_t)room->lengths[f];
        memset(room->data_of[f], feature->content == KILN_TEXT ? 0 : before, room->bytes[f]);
        memset(room->data_of[f] + room->bytes[f], FENCE_BYTE, FENCE);
    }
    kiln_rng_init(&rng, 1, KILN_RNG_AUGMENT, 0, (uint64_t)index);
    kiln_call_enter(data->datamodule, "dataset.get");
    room->status = data->dataset.get(data->dataset.ctx, index, &rng, &sample, &room->err);
    kiln_call_leave();
}

static void *read_in_thread(void *ctx)
{
    Room *room = ctx;

    read_sample(room, room->index, FENCE_BYTE);
    return NULL;
}

/* "sample 3 of train" */
static const char *name_of(const Data *data, int64_t index, char buf[64])
{
    snprintf(buf, 64, "sample %lld of %s", (long long)index, kiln_split_name(data->split));
    return buf;
}

/* ---- One sample ------------------------------------------------------------------------------ */

static void check_fences(const Data *data, const Room *room)
{
    char name[64];

    for (size_t f = 0; f < data->spec.n_features; f++)
        for (size_t i = 0; i < FENCE; i++)
            if ((unsigned char)room->data_of[f][room->bytes[f] + i] != FENCE_BYTE)
                return kiln_case_fail(data->self,
                                      "write as many elements as the spec declares, of a varying "
                                      "feature as many as its length",
                                      "%s: wrote beyond the %zu bytes of feature \"%s\"",
                                      name_of(data, room->index, name), room->bytes[f],
                                      data->spec.features[f].name);
}

/* The number of elements that were written. */
static int64_t count_of(const Data *data, const Room *room, size_t f)
{
    const KilnFeature *feature = &data->spec.features[f];
    const int64_t all = kiln_shape_count(&feature->shape);

    return feature->varies && feature->shape.dim[0] > 0
               ? all / feature->shape.dim[0] * room->lengths[f]
               : all;
}

static void check_values(Data *data, const Room *room, size_t f)
{
    const KilnFeature *feature = &data->spec.features[f];
    const char *const *id_names;
    const int64_t n = count_of(data, room, f);
    const int64_t n_ids = kiln_spec_ids(&data->spec, feature, &id_names);
    const bool may_miss = (feature->content & (KILN_ROW | KILN_VECTOR)) != 0; /* as NaN */
    char name[64];

    name_of(data, room->index, name);
    if (feature->varies && (room->lengths[f] < 0 || room->lengths[f] > feature->shape.dim[0]))
        return kiln_case_fail(data->self, "lengths are from 0 to the first axis of the shape",
                              "%s: feature \"%s\" has length %lld", name, feature->name,
                              (long long)room->lengths[f]);
    for (int64_t i = 0; i < n; i++) {
        const float number = feature->dtype == KILN_F32
                                 ? ((const float *)(void *)room->data_of[f])[i]
                                 : 0.0F;

        data->missing += may_miss && isnan(number);
        if (!isfinite(number) && !(may_miss && isnan(number)))
            return kiln_case_fail(data->self, "write every element, and no NaN",
                                  "%s: element %lld of feature \"%s\" is not a finite number", name,
                                  (long long)i, feature->name);
        if (feature->dtype == KILN_I32 && n_ids > 0 &&
            (((const int32_t *)(void *)room->data_of[f])[i] >= n_ids ||
             (((const int32_t *)(void *)room->data_of[f])[i] < 0 &&
              feature->content != KILN_LABEL)))
            return kiln_case_fail(data->self, "ids are from 0 to n_ids - 1",
                                  "%s: element %lld of feature \"%s\" is %d, of %lld ids", name,
                                  (long long)i, feature->name,
                                  ((const int32_t *)(void *)room->data_of[f])[i], (long long)n_ids);
    }
}

/* The class that `label` gives without reading must be that of the sample. */
static void check_label(const Data *data, const Room *room)
{
    const KilnFeature *label = kiln_spec_label(&data->spec);
    char name[64];

    if (label == NULL || data->dataset.label == NULL ||
        !kiln_dataset_has(&data->dataset, label->name))
        return;
    const int64_t fast = data->dataset.label(data->dataset.ctx, room->index);
    const int64_t read = *(const int32_t *)(void *)room->data_of[label - data->spec.features];
    if (fast >= 0 && fast != read)
        kiln_case_fail(data->self, "`label` and `get` must agree: samplers use the first",
                       "%s: `label` gives class %lld, the sample has %lld",
                       name_of(data, room->index, name), (long long)fast, (long long)read);
}

/* Whether both hold the same sample; texts count by their characters. */
static bool is_same(const Data *data, const Room *a, const Room *b)
{
    for (size_t f = 0; f < data->spec.n_features; f++) {
        const KilnFeature *feature = &data->spec.features[f];

        if (!kiln_dataset_has(&data->dataset, feature->name))
            continue;
        if (feature->content == KILN_TEXT) {
            const char *x = *(char **)(void *)a->data_of[f], *y = *(char **)(void *)b->data_of[f];

            if ((x == NULL) != (y == NULL) || (x != NULL && strcmp(x, y) != 0))
                return false;
            continue;
        }
        const size_t bytes = (size_t)count_of(data, a, f) * kiln_dtype_size(feature->dtype);
        if (a->lengths[f] != b->lengths[f] || memcmp(a->data_of[f], b->data_of[f], bytes) != 0)
            return false;
    }
    return true;
}

static void check_again(Data *data, const Room *first, Room rooms[2], int64_t index)
{
    static const char advice[] = "samples depend on the index and the given stream alone; `get` "
                                 "runs in several threads and only reads what they share";
    pthread_t threads[2];
    char name[64];

    name_of(data, index, name);
    read_sample(&rooms[0], index, 0);
    if (rooms[0].status < 0 || !is_same(data, first, &rooms[0]))
        return kiln_case_fail(data->self, advice, "%s differs when it is read again", name);
    read_sample(&rooms[0], index, FENCE_BYTE);
    if (rooms[0].status < 0 || !is_same(data, first, &rooms[0]))
        return kiln_case_fail(data->self, "write every element: memory is not cleared before",
                              "%s keeps what was in its memory", name);
    for (int i = 0; i < 2; i++) {
        rooms[i].index = index;
        if (pthread_create(&threads[i], NULL, read_in_thread, &rooms[i]) != 0)
            return kiln_case_skip(data->self, "", "no thread can be started");
    }
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 2; i++)
        if (rooms[i].status < 0 || !is_same(data, first, &rooms[i]))
            kiln_case_fail(data->self, advice, "%s differs when two threads read it at once", name);
}

/* Of a datamodule that is shareable: two forked processes must read the same sample. */
static void check_forked(Data *data, const Room *first, Room *room, int64_t index)
{
    pid_t pids[2];
    int wrong = 0;
    char name[64];

    for (int i = 0; i < 2; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            read_sample(room, index, 0);
            _exit(room->status < 0 || !is_same(data, first, room));
        }
    }
    for (int i = 0; i < 2; i++) {
        int status = 0;

        if (pids[i] > 0 && (waitpid(pids[i], &status, 0) != pids[i] || status != 0))
            wrong++;
    }
    if (wrong > 0)
        kiln_case_fail(data->self, "without `shareable` each job of a sweep sets up its own data",
                       "%s differs in a process that is forked after setup",
                       name_of(data, index, name));
}

/* `again`: read it twice, in two threads and in two processes. */
static void check_sample(Data *data, Room rooms[3], int64_t index, bool again)
{
    char name[64];

    read_sample(&rooms[2], index, 0);
    if (rooms[2].status == KILN_E_SKIP)
        return;
    if (rooms[2].status < 0)
        return kiln_case_fail(data->self, "", "%s: %s", name_of(data, index, name),
                              rooms[2].err.text[0] != '\0' ? rooms[2].err.text
                                                           : "failed and gave no reason");
    check_fences(data, &rooms[2]);
    for (size_t f = 0; f < data->spec.n_features && !kiln_case_failed(data->self); f++)
        if (kiln_dataset_has(&data->dataset, data->spec.features[f].name))
            check_values(data, &rooms[2], f);
    if (!kiln_case_failed(data->self))
        check_label(data, &rooms[2]);
    data->read++;
    if (!again || kiln_case_failed(data->self))
        return;
    check_again(data, &rooms[2], rooms, index);
    if (!kiln_case_failed(data->self) && data->ops->shareable && data->again == 0)
        check_forked(data, &rooms[2], &rooms[0], index);
    data->again++;
}

/* ---- Sets ------------------------------------------------------------------------------------ */

static void check_samples_of_set(Data *data)
{
    const int64_t stride = 1 + data->dataset.count / SAMPLES;
    Room rooms[3] = { { 0 } };
    bool whole = true;

    for (int i = 0; i < 3 && whole; i++)
        whole = room_new(data, &rooms[i]);
    for (int64_t i = 0; i < data->dataset.count && whole && !kiln_case_failed(data->self); i++)
        if (i < FIRST || i % stride == 0)
            check_sample(data, rooms, i, i % stride == 0);
    for (int i = 0; i < 3; i++)
        room_release(&rooms[i]);
}

static void check_set(Data *data)
{
    KilnError err = { 0 };

    data->dataset = (KilnDataset) { 0 };
    if (KILN_CALLED(
            data->datamodule, "dataset",
            data->ops->dataset(data->datamodule, data->split, data->set, &data->dataset, &err),
            &err) < 0)
        return kiln_case_fail_with(data->self, &err);
    if (data->dataset.count < 0 || (data->dataset.count > 0 && data->dataset.get == NULL))
        return kiln_case_fail(data->self, "set `count` and `get`",
                              "set %zu of %s has %lld samples and %s", data->set,
                              kiln_split_name(data->split), (long long)data->dataset.count,
                              data->dataset.get == NULL ? "no `get`" : "a `get`");
    check_samples_of_set(data);
}

static void check_splits(Data *data)
{
    int64_t n_train = 0;
    char missing[96];

    for (int split = 0; split < KILN_SPLIT_COUNT && !kiln_case_failed(data->self); split++) {
        const char *const *names = NULL;
        size_t n = 1;

        data->split = (KilnSplit)split;
        if (split != KILN_TRAIN && data->ops->sets != NULL)
            n = data->ops->sets(data->datamodule, data->split, &names);
        if (n > KILN_MAX_SETS)
            return kiln_case_fail(data->self, "", "%s has %zu sets, at most %d are allowed",
                                  kiln_split_name(data->split), n, KILN_MAX_SETS);
        for (data->set = 0; data->set < n && !kiln_case_failed(data->self); data->set++)
            check_set(data);
        n_train = split == KILN_TRAIN ? data->dataset.count : n_train;
    }
    snprintf(missing, sizeof(missing), "; missing numbers (NaN), which networks do not take: %lld",
             (long long)data->missing);
    kiln_case_pass(data->self,
                   "%zu features, %lld training samples; %lld samples read, %lld of them twice and "
                   "in two threads%s",
                   data->spec.n_features, (long long)n_train, (long long)data->read,
                   (long long)data->again, data->missing > 0 ? missing : "");
}

void kiln_contract_samples(KilnCase *self)
{
    const KilnDataContext context = { .stage = KILN_STAGE_FIT, .seed = 1 };
    KilnCaseInstance built;
    KilnError err = { 0 };

    if (!kiln_case_open(self, &built))
        return;
    Data data = { .self = self,
                  .datamodule = built.instance,
                  .ops = self->component->ops.datamodule };
    KilnStatus status = KILN_OK;
    if (data.ops->prepare_data != NULL)
        status = KILN_CALLED(data.datamodule, "prepare_data",
                             data.ops->prepare_data(data.datamodule, &context, &err), &err);
    if (status >= 0)
        status = KILN_CALLED(data.datamodule, "setup",
                             data.ops->setup(data.datamodule, &context, &err), &err);
    if (status >= 0)
        status = KILN_CALLED(data.datamodule, "spec",
                             data.ops->spec(data.datamodule, &data.spec, &err), &err);
    if (status >= 0)
        status = kiln_spec_check(&data.spec, &err);
    /* Data that are not there are no fault of the component: other commands say so. */
    if (status == KILN_E_IO || status == KILN_E_MISSING)
        kiln_case_skip(self, "give it data: add datamodule.OPTION=VALUE to the command", "%s",
                       err.text);
    else if (status < 0)
        kiln_case_fail_with(self, &err);
    else
        check_splits(&data);
    kiln_case_close(&built);
}

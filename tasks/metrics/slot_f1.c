/* F1 of slots (chunks, named entities), the number that conlleval and seqeval give: a slot counts
 * when its type, its first and its last tag are right (kiln/tools/tag_spans.h). */
#include "kiln.h"
#include "kiln/tools/tag_spans.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct Opts {
    int64_t average;
    bool per_type;
} Opts;

static const KilnChoice averages[] = {
    { "micro", KILN_AVERAGE_MICRO },
    { "macro", KILN_AVERAGE_MACRO },
    { "weighted", KILN_AVERAGE_WEIGHTED },
    { NULL, 0 },
};

static const KilnField fields[] = {
    KILN_FIELD_ENUM(
        Opts, average, "micro", averages,
        "micro: over all slots; macro: mean over types; weighted: weighted by frequency"),
    KILN_FIELD_BOOL(Opts, per_type, "false", "also log the F1 of each type"),
    KILN_FIELD_END,
};

/* ---- Slots of a sequence ----------------------------------------------------------------- */

/* The tags of a sequence, one after the other. */
typedef struct Reader {
    const KilnSequence *sequence;
    const KilnMetricForm *form;
    int64_t at;
    const char *text;
} Reader;

/* False at the end. */
static bool read_tag(Reader *reader, KilnString *ret)
{
    const KilnSequence *s = reader->sequence;

    if (s->ids != NULL) {
        if (reader->at >= s->count)
            return false;
        const char *name = reader->form->names[s->ids[reader->at++]];
        *ret = (KilnString) { name, strlen(name) };
        return true;
    }
    const char *text = reader->text + strspn(reader->text, " \t\r\n");
    *ret = (KilnString) { text, strcspn(text, " \t\r\n") };
    reader->text = text + ret->length;
    return ret->length > 0;
}

static KilnStatus check_ids(const KilnMetricForm *form, const KilnSequence *s, KilnError *err)
{
    if (s->ids == NULL && s->text == NULL)
        return kiln_error_set(err, KILN_E_SHAPE, "a sequence has neither ids nor text");
    for (int64_t i = 0; s->ids != NULL && i < s->count; i++)
        if (form->names == NULL || s->ids[i] < 0 || s->ids[i] >= form->n_names)
            return kiln_error_set(err, KILN_E_RANGE, "id %lld has no name: %lld tags are named",
                                  (long long)s->ids[i],
                                  form->names != NULL ? (long long)form->n_names : 0LL);
    return KILN_OK;
}

/* The slots of a sequence in order; *ret is owned by the caller. Returns how many tags
 * there are, or a status below 0. */
static int64_t find_slots(const KilnMetricForm *form, const KilnSequence *s, KilnTagSpan **ret,
                          int64_t *ret_count, KilnError *err)
{
    Reader reader = { .sequence = s, .form = form, .text = s->text };
    KilnSpanFinder finder = { 0 };
    KilnString tag;
    int64_t most = s->ids != NULL ? s->count : (int64_t)strlen(s->text), n = 0, tags = 0;
    KilnTagSpan *slots = malloc(((size_t)most + 1) * sizeof(*slots));

    if (slots == NULL)
        return kiln_error_nomem(err, ((size_t)most + 1) * sizeof(*slots));
    for (; read_tag(&reader, &tag); tags++)
        n += kiln_span_next(&finder, tag, &slots[n]);
    n += kiln_span_end(&finder, &slots[n]);
    *ret = slots;
    *ret_count = n;
    return tags;
}

/* ---- Counting ------------------------------------------------------------------------------- */

/* Counts of a type, which is added if it is new: the state has a list of types and an array of
 * KilnClassCount. */
static KilnStatus count_of(KilnMetricState *state, KilnString type, KilnClassCount **ret,
                           KilnError *err)
{
    const void *list;
    const char *types;
    int64_t bytes, index = 0, at = 0, *counts;
    KilnStatus status = kiln_metric_state_list(state, "types", KILN_U8, &list, &bytes, err);

    if (status < 0)
        return status;
    for (types = list; at < bytes; index++) {
        size_t length = strnlen(types + at, (size_t)(bytes - at));

        if (length == type.length && memcmp(types + at, type.data, length) == 0)
            break;
        at += (int64_t)length + 1;
    }
    if (at >= bytes) {
        status = kiln_metric_state_append(state, "types", KILN_U8, type.data, (int64_t)type.length,
                                          err);
        if (status >= 0)
            status = kiln_metric_state_append(state, "types", KILN_U8, "", 1, err);
    }
    if (status >= 0)
        status = kiln_metric_state_counts(state, "counts", 3 * (index + 1), &counts, err);
    if (status >= 0)
        *ret = (KilnClassCount *)(void *)counts + index;
    return status;
}

static bool same_type(KilnString a, KilnString b)
{
    return a.length == b.length && memcmp(a.data, b.data, a.length) == 0;
}

static KilnStatus count_slots(KilnMetricState *state, const KilnTagSpan *found, int64_t n_found,
                              const KilnTagSpan *actual, int64_t n_actual, KilnError *err)
{
    KilnStatus status = KILN_OK;
    KilnClassCount *count;

    for (int64_t i = 0; i < n_found && status >= 0; i++) {
        status = count_of(state, found[i].type, &count, err);
        if (status >= 0)
            count->predicted++;
    }
    for (int64_t i = 0, j = 0; i < n_actual && status >= 0; i++) {
        status = count_of(state, actual[i].type, &count, err);
        if (status < 0)
            break;
        count->actual++;
        while (j < n_found && found[j].last < actual[i].last)
            j++;
        count->hits += j < n_found && found[j].last == actual[i].last &&
                       found[j].first == actual[i].first &&
                       same_type(found[j].type, actual[i].type);
    }
    return status;
}

static KilnStatus count_row(KilnMetricState *state, const KilnSequence *predicted,
                            const KilnSequence *truth, KilnError *err)
{
    const KilnMetricForm *form = kiln_metric_state_form(state);
    KilnTagSpan *found = NULL, *actual = NULL;
    int64_t n_found = 0, n_actual = 0, tags = 0, true_tags = 0;
    KilnStatus status = check_ids(form, predicted, err);

    if (status >= 0)
        status = check_ids(form, truth, err);
    if (status >= 0)
        tags = find_slots(form, predicted, &found, &n_found, err);
    if (status >= 0 && tags >= 0)
        true_tags = find_slots(form, truth, &actual, &n_actual, err);
    if (tags < 0 || true_tags < 0)
        status = KILN_E_NOMEM;
    else if (status >= 0 && tags != true_tags)
        status = kiln_error_set(
            err, KILN_E_SHAPE,
            "a sequence has %lld tags and its reference %lld; both need one per word",
            (long long)tags, (long long)true_tags);
    if (status >= 0)
        status = count_slots(state, found, n_found, actual, n_actual, err);
    free(found);
    free(actual);
    return status;
}

static KilnStatus update(KilnInstance *self, KilnMetricState *state, const KilnMetricRows *rows,
                         KilnError *err)
{
    KilnStatus status = KILN_OK;

    (void)self;
    if (rows->n_references != 1)
        return kiln_error_set(err, KILN_E_SHAPE, "tags have one reference, not %lld",
                              (long long)rows->n_references);
    for (int64_t i = 0; i < rows->count && status >= 0; i++)
        status = count_row(state, &rows->sequences[i], &rows->references[i], err);
    return status;
}

/* ---- Results ------------------------------------------------------------------------ */

typedef struct Type {
    const char *name;
    KilnClassCount count;
} Type;

static int by_name(const void *a, const void *b)
{
    return strcmp(((const Type *)a)->name, ((const Type *)b)->name);
}

/* The types sorted by name, so sums do not depend on the order of rows. */
static KilnStatus sorted_types(KilnMetricState *state, Type **ret, int64_t *ret_count,
                               KilnError *err)
{
    const void *list;
    int64_t bytes, n = 0, *counts;
    Type *types;
    KilnStatus status = kiln_metric_state_list(state, "types", KILN_U8, &list, &bytes, err);

    if (status >= 0 && bytes > 0 && ((const char *)list)[bytes - 1] != '\0')
        status = kiln_error_set(err, KILN_E_FORMAT, "the names of types have no end");
    for (int64_t i = 0; status >= 0 && i < bytes; i++)
        n += ((const char *)list)[i] == '\0';
    if (status >= 0)
        status = kiln_metric_state_counts(state, "counts", 3 * n, &counts, err);
    if (status < 0)
        return status;
    types = malloc(((size_t)n + 1) * sizeof(*types));
    if (types == NULL)
        return kiln_error_nomem(err, ((size_t)n + 1) * sizeof(*types));
    const char *name = list;
    for (int64_t i = 0; i < n; i++, name += strlen(name) + 1)
        types[i] = (Type) { .name = name, .count = ((KilnClassCount *)(void *)counts)[i] };
    qsort(types, (size_t)n, sizeof(*types), by_name);
    *ret = types;
    *ret_count = n;
    return KILN_OK;
}

/* The types of `other` may be others, or in another order. */
static KilnStatus merge(KilnInstance *self, KilnMetricState *state, KilnMetricState *other,
                        KilnError *err)
{
    Type *types = NULL;
    int64_t n = 0;
    KilnStatus status = sorted_types(other, &types, &n, err);

    (void)self;
    for (int64_t i = 0; i < n && status >= 0; i++) {
        const KilnString type = { types[i].name, strlen(types[i].name) };
        KilnClassCount *count;

        status = count_of(state, type, &count, err);
        if (status < 0)
            break;
        count->hits += types[i].count.hits;
        count->predicted += types[i].count.predicted;
        count->actual += types[i].count.actual;
    }
    free(types);
    return status;
}

static double precision(KilnClassCount count)
{
    return kiln_ratio(count.hits, count.predicted);
}

static double recall(KilnClassCount count)
{
    return kiln_ratio(count.hits, count.actual);
}

static double f1(KilnClassCount count)
{
    return kiln_ratio(2 * count.hits, count.predicted + count.actual);
}

static double average(const Type *types, int64_t n, int64_t how, double (*score)(KilnClassCount))
{
    KilnClassCount all = { 0 };
    double sum = 0.0, weights = 0.0;

    for (int64_t i = 0; i < n; i++) {
        const KilnClassCount *count = &types[i].count;
        double weight = how == KILN_AVERAGE_WEIGHTED ? (double)count->actual : 1.0;

        all.hits += count->hits;
        all.predicted += count->predicted;
        all.actual += count->actual;
        sum += weight * score(*count);
        weights += weight;
    }
    if (how == KILN_AVERAGE_MICRO)
        return score(all);
    return weights > 0.0 ? sum / weights : 0.0;
}

static KilnStatus compute(KilnInstance *self, KilnMetricState *state, KilnError *err)
{
    static const struct {
        const char *name;
        double (*score)(KilnClassCount);
    } values[] = { { NULL, f1 }, { "precision", precision }, { "recall", recall } };
    const Opts *opts = kiln_opts(self);
    bool any = kiln_metric_state_rows(state) > 0;
    Type *types = NULL;
    int64_t n = 0;
    KilnStatus status = sorted_types(state, &types, &n, err);

    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]) && status >= 0; i++)
        status = kiln_metric_state_report(
            state, values[i].name,
            any ? average(types, n, opts->average, values[i].score) : (double)NAN, err);
    for (int64_t i = 0; i < n && opts->per_type && status >= 0; i++)
        status = kiln_metric_state_report(state, types[i].name, f1(types[i].count), err);
    free(types);
    return status;
}

static const KilnMetricOps ops = {
    .takes = KILN_METRIC_SEQUENCES,
    .mode = KILN_MODE_MAX,
    .update = update,
    .compute = compute,
    .merge = merge,
};

const KilnComponent kiln_metric_slot_f1 = {
    .kind = KILN_KIND_METRIC,
    .name = "slot_f1",
    .summary = "F1, precision and recall of slots, as conlleval and seqeval",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .ops.metric = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_metric_slot_f1, NULL };
KILN_PLUGIN_DEFINE(list)
#endif

/* Mean average precision and recall of detections as pycocotools counts them (COCOeval of boxes;
 * Lin et al., "Microsoft COCO: Common objects in context", 2014). Values that pycocotools gives as
 * -1, such as those of sizes that no object has, are NaN. */
#include "kiln.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Opts {
    bool per_class;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_BOOL(Opts, per_class, "false",
                    "log the average precision of each class as well, as NAME/CLASS"),
    KILN_FIELD_END,
};

enum {
    THRESHOLDS = 10,  /* of intersection over union: 0.5, 0.55, ... 0.95 */
    RECALLS = 101,    /* 0, 0.01, ... 1; both computed as numpy.linspace does */
    MOST_BOXES = 100, /* of a class in an image, the best ones */
    AREAS = 4
};

/* Objects with an area from and to these count; the others are ignored, as are detections of such a
 * size that are no object. */
static const double areas[AREAS][2] = {
    { 0.0, 1e10 }, { 0.0, 32.0 * 32.0 }, { 32.0 * 32.0, 96.0 * 96.0 }, { 96.0 * 96.0, 1e10 }
};

/* The recalls that are logged: of objects of a size, with at most so many detections. */
enum { VALUES = 6 };
static const struct {
    int area, most;
} values[VALUES] = { { 0, 1 }, { 0, 10 }, { 0, 100 }, { 1, 100 }, { 2, 100 }, { 3, 100 } };

/* ---- The boxes of an epoch ------------------------------------------------------------------- */

static KilnStatus update(KilnInstance *self, KilnMetricState *state, const KilnMetricRows *rows,
                         KilnError *err)
{
    KilnStatus status = KILN_OK;
    int64_t n[2] = { 0 };

    (void)self;
    for (int64_t i = 0; i < 2 * rows->count && status >= 0; i++) {
        const int32_t size = (int32_t)rows->group_sizes[i];

        n[i % 2] += rows->group_sizes[i];
        status = kiln_metric_state_append(state, "sizes", KILN_I32, &size, 1, err);
    }
    if (status >= 0)
        status = kiln_metric_state_append(state, "detections", KILN_F32, rows->scores,
                                          n[0] * KILN_DETECTION_COLUMNS, err);
    return status < 0 ? status
                      : kiln_metric_state_append(state, "boxes", KILN_F32, rows->targets,
                                                 n[1] * KILN_TRUTH_COLUMNS, err);
}

/* A detection among all of its class. */
typedef struct Found {
    double score;
    int rank;                  /* in its image, from 0 */
    uint16_t matched, ignored; /* a bit for each threshold */
} Found;

/* What one class is counted with. */
typedef struct Work {
    const int32_t *sizes;
    const float *detections, *boxes;
    int64_t n_images, label;
    KilnRanked *order;     /* [largest image], then [all] to sort `found` */
    const float **ours;    /* [MOST_BOXES]: detections of an image, by falling score */
    const float **theirs;  /* [largest image]: its boxes */
    bool *taken, *ignored; /* [largest image] */
    int64_t *by_ignored;   /* [largest image] */
    double *overlap;       /* [MOST_BOXES, largest image] */
    Found *found[AREAS];   /* [all detections] */
    int64_t n_found, n_truth[AREAS];
} Work;

static void release(Work *work)
{
    free(work->order);
    free(work->ours);
    free(work->theirs);
    free(work->taken);
    free(work->ignored);
    free(work->by_ignored);
    free(work->overlap);
    for (int a = 0; a < AREAS; a++)
        free(work->found[a]);
}

static KilnStatus open(const KilnMetricState *state, Work *work, KilnError *err)
{
    int64_t n_sizes = 0, n_detections = 0, n_boxes = 0, most = 1;
    KilnStatus status = kiln_metric_state_list(state, "sizes", KILN_I32,
                                               (const void **)&work->sizes, &n_sizes, err);

    if (status >= 0)
        status = kiln_metric_state_list(state, "detections", KILN_F32,
                                        (const void **)&work->detections, &n_detections, err);
    if (status >= 0)
        status = kiln_metric_state_list(state, "boxes", KILN_F32, (const void **)&work->boxes,
                                        &n_boxes, err);
    if (status < 0)
        return status;
    work->n_images = n_sizes / 2;
    for (int64_t i = 1; i < n_sizes; i += 2)
        most = work->sizes[i] > most ? work->sizes[i] : most;
    const size_t n = (size_t)most, all = (size_t)(n_detections / KILN_DETECTION_COLUMNS + 1);
    work->order = malloc(all * sizeof(*work->order));
    work->ours = malloc(MOST_BOXES * sizeof(*work->ours));
    work->theirs = malloc(n * sizeof(*work->theirs));
    work->taken = malloc(n);
    work->ignored = malloc(n);
    work->by_ignored = malloc(n * sizeof(*work->by_ignored));
    work->overlap = malloc(MOST_BOXES * n * sizeof(*work->overlap));
    bool failed = work->order == NULL || work->ours == NULL || work->theirs == NULL ||
                  work->taken == NULL || work->ignored == NULL || work->by_ignored == NULL ||
                  work->overlap == NULL;
    for (int a = 0; a < AREAS; a++) {
        work->found[a] = malloc(all * sizeof(Found));
        failed = failed || work->found[a] == NULL;
    }
    return failed ? kiln_error_nomem(err, AREAS * all * sizeof(Found)) : KILN_OK;
}

/* ---- One image ------------------------------------------------------------------------------- */

static double area_of(const float *box)
{
    return ((double)box[2] - (double)box[0]) * ((double)box[3] - (double)box[1]);
}

/* Intersection over union; over the detection's area where the box is a crowd. */
static double overlap_of(const float *detection, const float *box)
{
    const double w = fmin((double)detection[2], (double)box[2]) -
                     fmax((double)detection[0], (double)box[0]);
    const double h = fmin((double)detection[3], (double)box[3]) -
                     fmax((double)detection[1], (double)box[1]);

    if (w <= 0.0 || h <= 0.0)
        return 0.0;
    const double ours = area_of(detection);
    return w * h / (box[5] > 0.0f ? ours : ours + area_of(box) - w * h);
}

/* The detections of the class in an image that has n, the best MOST_BOXES; returns their number. */
static KilnStatus select_ours(Work *work, const float *detections, int64_t n, int64_t *ret,
                              KilnError *err)
{
    int64_t count = 0;

    for (int64_t i = 0; i < n; i++) {
        const float *row = detections + i * KILN_DETECTION_COLUMNS;

        if ((int64_t)row[4] == work->label)
            work->order[count++] = (KilnRanked) { .score = (double)row[5], .target = (double)i };
    }
    KilnStatus status = kiln_ranked_sort(work->order, count, err);
    *ret = count < MOST_BOXES ? count : MOST_BOXES;
    for (int64_t i = 0; i < *ret; i++)
        work->ours[i] = detections + (int64_t)work->order[i].target * KILN_DETECTION_COLUMNS;
    return status;
}

/* The boxes to look at, those that are ignored last; returns the number of the others. */
static int64_t sort_truth(Work *work, const double area[2], int64_t n)
{
    int64_t count = 0, at;

    for (int64_t i = 0; i < n; i++) {
        const float *box = work->theirs[i];

        work->ignored[i] = box[5] > 0.0f || (double)box[6] < area[0] || (double)box[6] > area[1];
        if (!work->ignored[i])
            work->by_ignored[count++] = i;
    }
    at = count;
    for (int64_t i = 0; i < n; i++)
        if (work->ignored[i])
            work->by_ignored[at++] = i;
    return count;
}

/* The box of detection `d`: the one that overlaps most, the last of equals, and one that is ignored
 * only if no other is left; -1: none overlaps enough. */
static int64_t match(const Work *work, int64_t d, int64_t n, double threshold)
{
    double most = fmin(threshold, 1.0 - 1e-10);
    int64_t best = -1;

    for (int64_t i = 0; i < n; i++) {
        const int64_t g = work->by_ignored[i];
        const double overlap = work->overlap[d * n + g];

        if (work->taken[g] && !(work->theirs[g][5] > 0.0f))
            continue;
        if (best >= 0 && !work->ignored[best] && work->ignored[g])
            break;
        if (overlap < most)
            continue;
        most = overlap;
        best = g;
    }
    return best;
}

static void count_area(Work *work, int a, int64_t n_ours, int64_t n)
{
    Found *found = work->found[a] + work->n_found;

    work->n_truth[a] += sort_truth(work, areas[a], n);
    for (int64_t d = 0; d < n_ours; d++)
        found[d] = (Found) { .score = (double)work->ours[d][5], .rank = (int)d };
    for (int t = 0; t < THRESHOLDS; t++) {
        const double threshold = t * ((0.95 - 0.5) / (THRESHOLDS - 1)) + 0.5;
        const uint16_t bit = (uint16_t)(1u << t);

        memset(work->taken, 0, (size_t)n);
        for (int64_t d = 0; d < n_ours; d++) {
            const int64_t g = match(work, d, n, threshold);
            const double area = area_of(work->ours[d]);
            const bool ignored = g >= 0 ? work->ignored[g]
                                        : area < areas[a][0] || area > areas[a][1];

            if (g >= 0)
                work->taken[g] = true;
            found[d].matched |= g >= 0 ? bit : 0;
            found[d].ignored |= ignored ? bit : 0;
        }
    }
}

static KilnStatus count_class(Work *work, KilnError *err)
{
    const float *detections = work->detections, *boxes = work->boxes;
    KilnStatus status = KILN_OK;

    work->n_found = 0;
    memset(work->n_truth, 0, sizeof(work->n_truth));
    for (int64_t i = 0; i < work->n_images && status >= 0; i++) {
        const int64_t size = work->sizes[2 * i], n_boxes = work->sizes[2 * i + 1];
        int64_t n = 0, n_ours = 0;

        status = select_ours(work, detections, size, &n_ours, err);
        for (int64_t g = 0; g < n_boxes; g++)
            if ((int64_t)boxes[g * KILN_TRUTH_COLUMNS + 4] == work->label)
                work->theirs[n++] = boxes + g * KILN_TRUTH_COLUMNS;
        for (int64_t d = 0; d < n_ours; d++)
            for (int64_t g = 0; g < n; g++)
                work->overlap[d * n + g] = overlap_of(work->ours[d], work->theirs[g]);
        for (int a = 0; a < AREAS; a++)
            count_area(work, a, n_ours, n);
        work->n_found += n_ours;
        detections += size * KILN_DETECTION_COLUMNS;
        boxes += n_boxes * KILN_TRUTH_COLUMNS;
    }
    return status;
}

/* ---- Precision and recall -------------------------------------------------------------------- */

/* Sums over classes that have objects. */
typedef struct Sums {
    double precision[AREAS][THRESHOLDS], recall[VALUES];
    int64_t n[AREAS]; /* classes */
} Sums;

/* Sort the detections of the class by score, and leave them in `order` as numbers. */
static KilnStatus sort_found(Work *work, int a, KilnError *err)
{
    for (int64_t i = 0; i < work->n_found; i++)
        work->order[i] = (KilnRanked) { .score = work->found[a][i].score, .target = (double)i };
    return kiln_ranked_sort(work->order, work->n_found, err);
}

/* The recall of all sorted detections below the rank `most`. Their precision, largest from each
 * recall on, averaged over RECALLS recalls, is *ret_precision. `curve` has room for both of each.
 */
static double measure(const Work *work, int a, int t, int most, double *curve,
                      double *ret_precision)
{
    const uint16_t bit = (uint16_t)(1u << t);
    const double all = (double)work->n_truth[a];
    double hits = 0.0, misses = 0.0, sum = 0.0;
    int64_t n = 0, at = 0;

    for (int64_t i = 0; i < work->n_found; i++) {
        const Found *found = &work->found[a][(int64_t)work->order[i].target];

        if (found->rank >= most)
            continue;
        if ((found->ignored & bit) == 0) {
            hits += (found->matched & bit) != 0;
            misses += (found->matched & bit) == 0;
        }
        curve[2 * n] = hits / all;
        curve[2 * n + 1] = hits / (misses + hits + 0x1p-52);
        n++;
    }
    for (int64_t i = n - 1; i > 0; i--)
        curve[2 * i - 1] = fmax(curve[2 * i - 1], curve[2 * i + 1]);
    for (int i = 0; i < RECALLS; i++) {
        while (at < n && curve[2 * at] < i * 0.01)
            at++;
        sum += at < n ? curve[2 * at + 1] : 0.0;
    }
    *ret_precision = sum / RECALLS;
    return n > 0 ? curve[2 * (n - 1)] : 0.0;
}

static KilnStatus add_class(Work *work, Sums *sums, KilnError *err)
{
    const size_t room = (size_t)(work->n_found + 1) * 2 * sizeof(double);
    double *curve = malloc(room);
    KilnStatus status = curve != NULL ? KILN_OK : kiln_error_nomem(err, room);

    for (int v = 0; v < VALUES && status >= 0; v++) {
        const int a = values[v].area;

        if (work->n_truth[a] == 0)
            continue;
        status = sort_found(work, a, err);
        for (int t = 0; t < THRESHOLDS && status >= 0; t++) {
            double precision;

            sums->recall[v] += measure(work, a, t, values[v].most, curve, &precision) / THRESHOLDS;
            if (values[v].most == MOST_BOXES)
                sums->precision[a][t] += precision;
        }
        sums->n[a] += values[v].most == MOST_BOXES;
    }
    free(curve);
    return status;
}

/* ---- Values ---------------------------------------------------------------------------------- */

static double mean_precision(const Sums *sums, int a)
{
    double sum = 0.0;

    for (int t = 0; t < THRESHOLDS; t++)
        sum += sums->precision[a][t];
    return sums->n[a] > 0 ? sum / THRESHOLDS / (double)sums->n[a] : (double)NAN;
}

static KilnStatus report(KilnMetricState *state, const Sums *sums, KilnError *err)
{
    static const char *const sizes[AREAS] = { NULL, "small", "medium", "large" };
    static const char *const recalls[VALUES] = { "mar_1",     "mar_10",     "mar_100",
                                                 "mar_small", "mar_medium", "mar_large" };
    const double n = sums->n[0] > 0 ? (double)sums->n[0] : (double)NAN;
    KilnStatus status = kiln_metric_state_report(state, NULL, mean_precision(sums, 0), err);

    if (status >= 0)
        status = kiln_metric_state_report(state, "50", sums->precision[0][0] / n, err);
    if (status >= 0)
        status = kiln_metric_state_report(state, "75", sums->precision[0][5] / n, err);
    for (int a = 1; a < AREAS && status >= 0; a++)
        status = kiln_metric_state_report(state, sizes[a], mean_precision(sums, a), err);
    for (int v = 0; v < VALUES && status >= 0; v++) {
        const int64_t classes = sums->n[values[v].area];

        status = kiln_metric_state_report(
            state, recalls[v], classes > 0 ? sums->recall[v] / (double)classes : (double)NAN, err);
    }
    return status;
}

static KilnStatus compute_class(const Opts *opts, KilnMetricState *state, Work *work, Sums *sums,
                                KilnError *err)
{
    char number[24];
    Sums own = { 0 };
    KilnStatus status = count_class(work, err);

    if (status >= 0)
        status = add_class(work, &own, err);
    for (int a = 0; a < AREAS; a++) {
        for (int t = 0; t < THRESHOLDS; t++)
            sums->precision[a][t] += own.precision[a][t];
        sums->n[a] += own.n[a];
    }
    for (int v = 0; v < VALUES; v++)
        sums->recall[v] += own.recall[v];
    if (status >= 0 && opts->per_class)
        status = kiln_metric_state_report(
            state, kiln_form_name(kiln_metric_state_form(state), work->label, number),
            mean_precision(&own, 0), err);
    return status;
}

static KilnStatus compute(KilnInstance *self, KilnMetricState *state, KilnError *err)
{
    const int64_t n_classes = kiln_metric_state_form(state)->n_names;
    Work work = { 0 };
    Sums sums = { 0 };
    KilnStatus status = open(state, &work, err);

    for (; work.label < n_classes && status >= 0; work.label++)
        status = compute_class(kiln_opts(self), state, &work, &sums, err);
    release(&work);
    return status >= 0 ? report(state, &sums, err) : status;
}

static KilnStatus check(KilnInstance *self, const KilnMetricForm *form, KilnError *err)
{
    (void)self;
    return form->n_names > 0 ? KILN_OK
                             : kiln_error_set(err, KILN_E_SHAPE, "the data have no classes");
}

/* A hundred detections and ten boxes in each image. */
static int64_t memory(const KilnInstance *self, const KilnMetricForm *form, int64_t rows,
                      int64_t *ret_computing)
{
    const int64_t kept = MOST_BOXES * KILN_DETECTION_COLUMNS + 10 * KILN_TRUTH_COLUMNS + 2;

    (void)self;
    (void)form;
    *ret_computing = rows * MOST_BOXES *
                     (int64_t)(AREAS * sizeof(Found) + sizeof(KilnRanked) + 2 * sizeof(double));
    return rows * kept * (int64_t)sizeof(float);
}

static const KilnMetricOps ops = {
    .takes = KILN_METRIC_DETECTIONS,
    .mode = KILN_MODE_MAX,
    .check = check,
    .update = update,
    .compute = compute,
    .memory = memory,
};

const KilnComponent kiln_metric_coco_map = {
    .kind = KILN_KIND_METRIC,
    .name = "coco_map",
    .summary = "Mean average precision and recall of boxes, as pycocotools",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .ops.metric = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_metric_coco_map, NULL };
KILN_PLUGIN_DEFINE(list)
#endif

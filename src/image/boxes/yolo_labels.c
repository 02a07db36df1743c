/* Reads the text of boxes of an image, in YOLO's format. */
#include "image/boxes/yolo_labels.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/parse.h"
#include "base/system/file.h"
#include "kiln/array.h"

enum { FIELD = 64, WHY = 200, FEWEST_POINTS = 3 };
#define MOST_BYTES ((size_t)64 << 20)
/* Programs that write labels round: so far outside of 0..1 a number may be, as Ultralytics reads
 * it. */
static const double rounding = 0.01;

KilnStatus kiln_yolo_wrong(const char *path, size_t line, const char *why, bool skips,
                           KilnBoxSet *set, int64_t *skipped, KilnError *err)
{
    if (!skips)
        return kiln_error_set(err, KILN_E_FORMAT, "%s:%zu: %s", path, line, why);
    if (set->example[0] == '\0')
        snprintf(set->example, sizeof(set->example), "%s:%zu: %s", path, line, why);
    (*skipped)++;
    return KILN_OK;
}

/* The next number of the line; false: it is none, which is in `why`, or the line ends. */
static bool next_number(const char **at, double *ret, char why[WHY])
{
    char field[FIELD];
    const char *start = *at + strspn(*at, " \t\r");
    const size_t length = strcspn(start, " \t\r");

    *at = start + length;
    if (length == 0)
        return false;
    snprintf(field, sizeof(field), "%.*s", (int)length, start);
    if (length < FIELD && kiln_parse_f64(field, ret, NULL) >= 0 && isfinite(*ret))
        return true;
    snprintf(why, WHY, "\"%.60s\" is not a number", field);
    return false;
}

static bool read_class(double class, const KilnBoxSet *set, char why[WHY])
{
    if (class >= 0.0 && class < (double)set->n_classes && class == floor(class))
        return true;
    snprintf(why, WHY, "the class %g is not one of 0 to %lld, the classes of \"names\"", class,
             (long long)set->n_classes - 1);
    return false;
}

static bool in_range(double value, char why[WHY])
{
    if (value >= -rounding && value <= 1.0 + rounding)
        return true;
    snprintf(why, WHY,
             "%g is outside of 0 to 1: boxes are in parts of the image's width and height", value);
    return false;
}

/* The rectangle around points, of which the first two are known. */
static bool read_polygon(const char **at, const double first[4], size_t *ret_n, double box[4],
                         char why[WHY])
{
    double value;

    for (int axis = 0; axis < 2; axis++) {
        box[axis] = fmin(first[axis], first[axis + 2]);
        box[axis + 2] = fmax(first[axis], first[axis + 2]);
    }
    for (*ret_n = 4; next_number(at, &value, why); (*ret_n)++) {
        const size_t axis = *ret_n % 2;

        if (!in_range(value, why))
            return false;
        box[axis] = fmin(box[axis], value);
        box[axis + 2] = fmax(box[axis + 2], value);
    }
    return why[0] == '\0';
}

/* Cut at the image; false: nothing remains. */
static bool finish_box(const double box[4], double class, float ret[KILN_TRUTH_COLUMNS],
                       bool *ret_cut, char why[WHY])
{
    for (int i = 0; i < 4; i++) {
        ret[i] = (float)fmin(fmax(box[i], 0.0), 1.0);
        *ret_cut = *ret_cut || box[i] < -rounding || box[i] > 1.0 + rounding;
    }
    ret[4] = (float)class;
    ret[5] = 0.0f;
    ret[6] = (ret[2] - ret[0]) * (ret[3] - ret[1]);
    if (ret[2] > ret[0] && ret[3] > ret[1])
        return true;
    snprintf(why, WHY, "the box has no area in the image");
    return false;
}

/* A line as a box; false: what is wrong is in `why`. */
static bool read_row(const char *line, const KilnBoxSet *set, float ret[KILN_TRUTH_COLUMNS],
                     bool *ret_cut, char why[WHY])
{
    double class = 0.0, values[4], box[4];
    size_t n = 0;

    if (!next_number(&line, &class, why) || !read_class(class, set, why))
        return false;
    while (n < 4 && next_number(&line, &values[n], why) && in_range(values[n], why))
        n++;
    if (why[0] != '\0')
        return false;
    if (n == 4 && line[strspn(line, " \t\r")] != '\0') {
        if (!read_polygon(&line, values, &n, box, why))
            return false;
    } else if (n == 4)
        for (int i = 0; i < 4; i++)
            box[i] = values[i % 2] + (i < 2 ? -0.5 : 0.5) * values[2 + i % 2];
    if (n == 4 || (n >= 2 * FEWEST_POINTS && n % 2 == 0))
        return finish_box(box, class, ret, ret_cut, why);
    snprintf(why, WHY,
             "expected a class and 4 numbers (center x, center y, width, height), or a polygon of "
             "at least %d points, got a class and %zu numbers",
             (int)FEWEST_POINTS, n);
    return false;
}

static int compare_rows(const void *a, const void *b)
{
    const float *left = a, *right = b;

    for (int i = 0; i < KILN_TRUTH_COLUMNS; i++)
        if (left[i] != right[i])
            return left[i] < right[i] ? -1 : 1;
    return 0;
}

/* Keep one of each of the rows from `first` on. */
static void remove_copies(KilnYoloRows *rows, size_t first)
{
    size_t n = first;

    qsort(rows->rows + first, rows->n - first, sizeof(*rows->rows), compare_rows);
    for (size_t i = first; i < rows->n; i++)
        if (i == first || compare_rows(rows->rows[i], rows->rows[n - 1]) != 0)
            memmove(rows->rows[n++], rows->rows[i], sizeof(*rows->rows));
    rows->n = n;
}

static KilnStatus read_lines(const char *path, char *text, bool skips, KilnBoxSet *set,
                             KilnYoloRows *to, KilnError *err)
{
    const size_t first = to->n;
    KilnStatus status = KILN_OK;
    size_t number = 1;

    for (char *line = text, *next; line != NULL && status >= 0; line = next, number++) {
        char why[WHY] = "";
        bool cut = false;

        next = strchr(line, '\n');
        if (next != NULL)
            *next++ = '\0';
        if (line[strspn(line, " \t\r")] == '\0')
            continue;
        if (!KILN_RESERVE(to->rows, to->capacity, to->n + 1))
            return kiln_error_nomem(err, (to->n + 1) * sizeof(*to->rows));
        if (read_row(line, set, to->rows[to->n], &cut, why)) {
            to->n++;
            if (cut && set->cut_boxes++ == 0)
                snprintf(set->cut_example, sizeof(set->cut_example), "%.280s:%zu", path, number);
        } else
            status = kiln_yolo_wrong(path, number, why, skips, set, &set->skipped_boxes, err);
    }
    const size_t n = to->n;
    if (n > first)
        remove_copies(to, first);
    if (to->n < n && set->copies == 0)
        snprintf(set->copy_example, sizeof(set->copy_example), "%.300s", path);
    set->copies += (int64_t)(n - to->n);
    return status;
}

KilnStatus kiln_yolo_labels_read(const char *path, bool skips, KilnBoxSet *set, KilnYoloRows *to,
                                 bool *ret_found, KilnError *err)
{
    struct stat info;
    char *text = NULL;
    size_t size = 0;

    *ret_found = stat(path, &info) == 0;
    if (!*ret_found)
        return KILN_OK;
    KilnStatus status = kiln_file_read(path, MOST_BYTES, &text, &size, err);
    if (status >= 0 && memchr(text, '\0', size) != NULL)
        status = kiln_yolo_wrong(path, 1, "the file is not text", skips, set, &set->skipped_boxes,
                                 err);
    else if (status >= 0)
        status = read_lines(path, text, skips, set, to, err);
    free(text);
    return status;
}

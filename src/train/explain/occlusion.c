/* Occlusion: windows of an image, columns and tokens become the baseline, one after the other. */
#include <inttypes.h>
#include <string.h>

#include "train/explain/explaining.h"

/* What is occluded at once: elements of one feature, by rows of a rectangle. An element of a row or
 * sequence is a rectangle of one column in a grid of one row. */
typedef struct Grid {
    size_t feature;
    int64_t height, width, depth; /* depth: elements that belong together, a pixel's channels */
    int64_t window, stride, rows, columns; /* windows down and across */
    double *sums;                          /* [height, width] of what the score lost */
    int32_t *hits;                         /* of the windows there */
} Grid;

/* Windows of that stride that cover `size`; the last one may be cut. */
static int64_t windows(int64_t size, int64_t window, int64_t stride)
{
    return size <= window ? 1 : (size - window + stride - 1) / stride + 1;
}

/* The grid of feature f: false if it is not explained. */
static bool grid_of(const KilnExplaining *self, size_t f, Grid *ret)
{
    const KilnVariants *variants = self->variants;
    const KilnFeature *feature = &variants->spec->features[f];
    const KilnShape shape = kiln_explaining_shape(self, f);

    if (variants->count[f] == 0 || variants->points[f] == NULL)
        return false;
    *ret = (Grid) { .feature = f, .height = 1, .depth = 1, .window = 1, .stride = 1 };
    if (feature->content == KILN_IMAGE && shape.rank == 3) {
        const int64_t shorter = shape.dim[0] < shape.dim[1] ? shape.dim[0] : shape.dim[1];
        const int64_t eighth = shorter >= 8 ? shorter / 8 : 1;

        ret->height = shape.dim[0];
        ret->width = shape.dim[1];
        ret->depth = shape.dim[2];
        ret->window = self->spec->window > 0 ? self->spec->window : eighth;
        ret->stride = ret->window > 1 ? ret->window / 2 : 1;
    } else if (feature->dtype == KILN_F32 && shape.rank > 1) {
        ret->width = shape.dim[0];
        ret->depth = variants->count[f] / ret->width;
    } else {
        ret->width = variants->count[f];
    }
    ret->rows = ret->height > 1 ? windows(ret->height, ret->window, ret->stride) : 1;
    ret->columns = windows(ret->width, ret->window, ret->stride);
    return true;
}

/* The window's part of one axis. */
static void part(int64_t number, const Grid *grid, int64_t size, int64_t *ret_from, int64_t *ret_to)
{
    *ret_from = number * grid->stride;
    *ret_to = *ret_from + grid->window < size ? *ret_from + grid->window : size;
}

/* Occlude window `number` in variant `row`. */
static void occlude(const KilnVariants *variants, const Grid *grid, int64_t number, int64_t row)
{
    const size_t f = grid->feature;
    float *to = variants->factors[f] != NULL ? variants->factors[f] : variants->data[f];
    int64_t top, bottom, left, right;

    part(number / grid->columns, grid, grid->height, &top, &bottom);
    part(number % grid->columns, grid, grid->width, &left, &right);
    to += row * variants->count[f];
    for (int64_t y = top; y < bottom; y++)
        for (int64_t i = (y * grid->width + left) * grid->depth;
             i < (y * grid->width + right) * grid->depth; i++)
            to[i] = 0.0f;
}

/* Note what window `number` cost. */
static void note(const Grid *grid, int64_t number, double loss)
{
    int64_t top, bottom, left, right;

    part(number / grid->columns, grid, grid->height, &top, &bottom);
    part(number % grid->columns, grid, grid->width, &left, &right);
    for (int64_t y = top; y < bottom; y++)
        for (int64_t x = left; x < right; x++) {
            grid->sums[y * grid->width + x] += loss;
            grid->hits[y * grid->width + x]++;
        }
}

static KilnStatus run_grid(KilnExplaining *self, const Grid *grid, KilnError *err)
{
    KilnVariants *variants = self->variants;
    const int64_t target = self->result.target, all = grid->rows * grid->columns;
    KilnStatus status = KILN_OK;

    for (int64_t at = 0; at < all && status >= 0; at += variants->rows) {
        const int64_t n = all - at < variants->rows ? all - at : variants->rows;

        status = kiln_poll_check(self->spec->poll, "occluding", at, all, err);
        if (status < 0)
            break;
        for (int64_t row = 0; row < n; row++) {
            kiln_variants_scale(variants, row, 1.0);
            occlude(variants, grid, at + row, row);
        }
        status = kiln_variants_score(variants, n, err);
        for (int64_t row = 0; row < n && status >= 0; row++)
            note(grid, at + row,
                 self->result.score - (double)variants->scores[row * variants->n_scores + target]);
    }
    return status;
}

static KilnStatus check_window(const Grid *grid, KilnError *err)
{
    const int64_t shorter = grid->height < grid->width ? grid->height : grid->width;

    if (grid->window <= shorter)
        return KILN_OK;
    return kiln_error_set(err, KILN_E_RANGE,
                          "a window of %" PRId64 " pixels is larger than the image of %" PRId64
                          " × %" PRId64 " pixels that the model gets; expected 1 to %" PRId64
                          " (an eighth of the shorter side is usual)",
                          grid->window, grid->height, grid->width, shorter);
}

static KilnStatus explain_feature(KilnExplaining *self, Grid *grid, KilnError *err)
{
    const int64_t places = grid->height * grid->width;
    const bool image = grid->height > 1 || grid->depth > 1;

    grid->sums = kiln_arena_alloc(&self->variants->arena, (size_t)places * sizeof(*grid->sums));
    grid->hits = kiln_arena_alloc(&self->variants->arena, (size_t)places * sizeof(*grid->hits));
    if (grid->sums == NULL || grid->hits == NULL)
        return kiln_error_nomem(err, (size_t)places * sizeof(*grid->sums));
    KilnStatus status = run_grid(self, grid, err);
    if (status < 0)
        return status;
    float *values = kiln_explaining_add(self, grid->feature,
                                        image ? KILN_SHAPE(grid->height, grid->width, 1)
                                              : kiln_explaining_shape(self, grid->feature));
    if (values == NULL)
        return kiln_error_nomem(err, (size_t)places * sizeof(*values));
    for (int64_t i = 0; i < places; i++)
        values[i] = (float)(grid->sums[i] / (grid->hits[i] > 0 ? grid->hits[i] : 1));
    return KILN_OK;
}

KilnStatus kiln_explain_occlusion(KilnExplaining *self, KilnError *err)
{
    KilnStatus status = KILN_OK;
    Grid grid;

    for (size_t f = 0; f < self->variants->spec->n_features && status >= 0; f++)
        if (grid_of(self, f, &grid))
            status = check_window(&grid, err) < 0 ? err->status : explain_feature(self, &grid, err);
    return status;
}

/* Circles, squares and triangles. */
#include "kiln/images/draw_shapes.h"

#include <math.h>

const char *const kiln_shape_names[] = { "circle", "square", "triangle", NULL };

/* How far the place is inside the shape, in pixels; negative outside. The place is relative to the
 * centre of a shape that is turned back. */
static float inside(const KilnDrawnShape *shape, float x, float y)
{
    static const float half_root_3 = 0.8660254f, half_root_2 = 0.7071068f;

    if (shape->kind == KILN_SHAPE_CIRCLE)
        return shape->radius - sqrtf(x * x + y * y);
    if (shape->kind == KILN_SHAPE_SQUARE)
        return shape->radius * half_root_2 - fmaxf(fabsf(x), fabsf(y));
    return shape->radius * 0.5f - fmaxf(y, half_root_3 * fabsf(x) - 0.5f * y);
}

static int64_t clip(float value, int64_t most)
{
    return value < 0.0f ? 0 : value > (float)most ? most : (int64_t)value;
}

void kiln_draw_shape(KilnImage *image, const KilnDrawnShape *shape)
{
    const float reach = shape->radius + 1.0f, c = cosf(shape->angle), s = sinf(shape->angle);
    const int64_t bottom = clip(ceilf(shape->y + reach), image->height);
    const int64_t right = clip(ceilf(shape->x + reach), image->width);

    for (int64_t row = clip(shape->y - reach, image->height); row < bottom; row++)
        for (int64_t column = clip(shape->x - reach, image->width); column < right; column++) {
            const float dx = (float)column + 0.5f - shape->x, dy = (float)row + 0.5f - shape->y;
            const float depth = inside(shape, c * dx + s * dy, c * dy - s * dx) + 0.5f;
            const float cover = depth < 0.0f ? 0.0f : depth > 1.0f ? 1.0f : depth;
            float *pixel = image->data + (row * image->width + column) * image->channels;

            for (int64_t k = 0; k < image->channels && k < 3; k++)
                pixel[k] += cover * (shape->colour[k] - pixel[k]);
        }
}

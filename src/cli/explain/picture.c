/* The picture of an explained image: the image, beside it the map, with a title and a legend. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/explain/explain_output.h"
#include "kiln/image.h"
#include "kiln/plot.h"

enum { LEAST_SIDE = 224, MARGIN = 12, LINE = 18, BAR = 10 };

static const double title_size = 13.0, legend_size = 11.0;
/* The map's colours let this much of the image shine through. */
static const float through = 0.25f;

/* What the map is drawn of. */
typedef struct Map {
    const KilnAttribution *attribution;
    float scale;   /* the attribution that has the full colour */
    bool negative; /* some are below 0 */
    KilnImage image, heat, large_image, large_heat, sheet;
} Map;

/* ---- The image and the map ------------------------------------------------------------------- */

/* Colours, or the mean of the channels; those of a normalized image, which have no known range,
 * stretched to 0..1. */
static KilnStatus image_of(Map *map, KilnError *err)
{
    const KilnShape *shape = &map->attribution->feature->shape;
    const int64_t places = shape->dim[0] * shape->dim[1], channels = shape->dim[2];
    const int64_t kept = channels == 3 ? 3 : 1;
    const float *input = map->attribution->input;
    float least = INFINITY, most = -INFINITY;

    if (kiln_image_resize_buffer(&map->image, shape->dim[0], shape->dim[1], kept, err) < 0)
        return err->status;
    for (int64_t i = 0; i < places * kept; i++) {
        float sum = 0.0f;

        for (int64_t c = 0; c < channels / kept; c++)
            sum += input[i * (channels / kept) + c];
        sum /= (float)(channels / kept);
        map->image.data[i] = sum;
        least = fminf(least, sum);
        most = fmaxf(most, sum);
    }
    for (int64_t i = 0; i < places * kept && (least < 0.0f || most > 1.0f); i++)
        map->image.data[i] = most > least ? (map->image.data[i] - least) / (most - least) : 0.5f;
    return KILN_OK;
}

static int compare(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;

    return (x > y) - (x < y);
}

/* Sum the attributions over the channels, and divide them by the 99th percentile of their sizes, so
 * that single pixels do not hide the others. */
static KilnStatus heat_of(Map *map, KilnError *err)
{
    const KilnShape *shape = &map->attribution->shape;
    const int64_t places = shape->dim[0] * shape->dim[1], channels = shape->dim[2];
    float *sizes = malloc((size_t)places * sizeof(*sizes)), *heat;

    if (sizes == NULL)
        return kiln_error_nomem(err, (size_t)places * sizeof(*sizes));
    if (kiln_image_resize_buffer(&map->heat, shape->dim[0], shape->dim[1], 1, err) < 0) {
        free(sizes);
        return err->status;
    }
    heat = map->heat.data;
    for (int64_t i = 0; i < places; i++) {
        heat[i] = 0.0f;
        for (int64_t c = 0; c < channels; c++)
            heat[i] += map->attribution->values[i * channels + c];
        sizes[i] = fabsf(heat[i]);
        map->negative |= heat[i] < 0.0f;
    }
    qsort(sizes, (size_t)places, sizeof(*sizes), compare);
    map->scale = sizes[places * 99 / 100];
    if (!(map->scale > 0.0f))
        map->scale = sizes[places - 1];
    for (int64_t i = 0; i < places && map->scale > 0.0f; i++)
        heat[i] = fmaxf(-1.0f, fminf(1.0f, heat[i] / map->scale));
    free(sizes);
    return KILN_OK;
}

/* Enlarge small images by a whole number. Pixels stay squares, coarse maps become smooth. */
static KilnStatus enlarge(Map *map, KilnError *err)
{
    const int64_t height = map->image.height, width = map->image.width;
    const int64_t shorter = height < width ? height : width;
    const int64_t times = shorter < LEAST_SIDE ? (LEAST_SIDE + shorter - 1) / shorter : 1;
    const bool same = map->heat.height == height && map->heat.width == width;
    KilnImageWindow window = { .height = height,
                               .width = width,
                               .to_height = height * times,
                               .to_width = width * times,
                               .filter = KILN_FILTER_NEAREST };
    KilnStatus status = kiln_image_scale_part(&map->image, &window, &map->large_image, err);

    window.height = map->heat.height;
    window.width = map->heat.width;
    window.filter = same ? KILN_FILTER_NEAREST : KILN_FILTER_BILINEAR;
    return status < 0 ? status : kiln_image_scale_part(&map->heat, &window, &map->large_heat, err);
}

/* Red (for) or blue (against) over a light grey. */
static void colour_of(float heat, float grey, float ret[3])
{
    const float strength = (1.0f - through) * fabsf(heat), base = 0.7f + 0.28f * grey;
    const float other = 0.1f, own = 0.85f;

    ret[0] = base * (1.0f - strength) + (heat < 0.0f ? other : own) * strength;
    ret[1] = base * (1.0f - strength) + other * strength;
    ret[2] = base * (1.0f - strength) + (heat < 0.0f ? own : other) * strength;
}

/* ---- The sheet ------------------------------------------------------------------------------- */

static float *pixel(const Map *map, int64_t y, int64_t x)
{
    return map->sheet.data + (y * map->sheet.width + x) * 3;
}

static void put_image(const Map *map, int64_t top, int64_t left)
{
    const KilnImage *image = &map->large_image;

    for (int64_t y = 0; y < image->height; y++)
        for (int64_t x = 0; x < image->width; x++)
            for (int64_t c = 0; c < 3; c++)
                pixel(map, top + y,
                      left + x)[c] = image->data[(y * image->width + x) * image->channels +
                                                 (image->channels == 3 ? c : 0)];
}

static void put_map(const Map *map, int64_t top, int64_t left)
{
    const KilnImage *image = &map->large_image;

    for (int64_t y = 0; y < image->height; y++)
        for (int64_t x = 0; x < image->width; x++) {
            const float *from = image->data + (y * image->width + x) * image->channels;
            const float grey = image->channels == 3 ? (from[0] + from[1] + from[2]) / 3.0f
                                                    : from[0];

            colour_of(map->large_heat.data[y * image->width + x], grey,
                      pixel(map, top + y, left + x));
        }
}

/* The colours from -1, or 0 where nothing is negative, to 1. */
static void put_bar(const Map *map, int64_t top, int64_t left)
{
    const int64_t width = map->large_image.width;

    for (int64_t x = 0; x < width; x++) {
        const float share = ((float)x + 0.5f) / (float)width;

        for (int64_t y = 0; y < BAR; y++)
            colour_of(map->negative ? 2.0f * share - 1.0f : share, 1.0f,
                      pixel(map, top + y, left + x));
    }
}

/* Leave out characters at the end until the line fits. */
static KilnStatus fit(KilnPlotText *line, char *text, int width, int *ret_width, KilnError *err)
{
    size_t n = strlen(text);
    KilnStatus status = kiln_plot_text_line(line, LINE, 0, NULL, ret_width, err);

    while (status >= 0 && *ret_width > width && n > 3) {
        do
            n--;
        while (n > 3 && ((unsigned char)text[n] & 0xc0) == 0x80);
        memcpy(text + n - 3, "...", 4);
        status = kiln_plot_text_line(line, LINE, 0, NULL, ret_width, err);
    }
    return status;
}

/* A part of a line, for text at its left end (at 0) or its right end (at 1). */
typedef struct Room {
    int64_t top, left;
    int width;
    double at;
} Room;

static KilnStatus put_text(const Map *map, const Room *room, double size, const char *words,
                           KilnError *err)
{
    char text[160];
    KilnPlotText line = { .text = text, .family = "sans-serif", .size = size, .stretch = 1.0 };
    int wide = 0;

    snprintf(text, sizeof(text), "%s", words);
    KilnStatus status = fit(&line, text, room->width, &wide, err);
    if (status < 0 || wide > room->width)
        return status;
    uint8_t *ink = calloc((size_t)wide, LINE);
    if (ink == NULL)
        return kiln_error_nomem(err, (size_t)wide * LINE);
    status = kiln_plot_text_line(&line, LINE, wide, ink, &wide, err);
    const int64_t left = room->left + (int64_t)(room->at * (double)(room->width - wide));
    for (int64_t y = 0; y < LINE && status >= 0; y++)
        for (int64_t x = 0; x < wide; x++)
            for (int64_t c = 0; c < 3; c++)
                pixel(map, room->top + y, left + x)[c] *= 1.0f - (float)ink[y * wide + x] / 255.0f;
    free(ink);
    return status;
}

static KilnStatus put_title(const Map *map, const KilnExplained *explained, KilnError *err)
{
    const KilnExplanation *explanation = explained->explanation;
    Room room = { .top = MARGIN / 2,
                  .left = MARGIN,
                  .width = (int)(map->sheet.width - 2 * (int64_t)MARGIN) };
    char what[160], numbers[160];

    if (explanation->target_name != NULL)
        snprintf(what, sizeof(what), "class %s", explanation->target_name);
    else
        snprintf(what, sizeof(what), "score %lld", (long long)explanation->target);
    snprintf(numbers, sizeof(numbers), "score %.4g (baseline %.4g), %s", explanation->score,
             explanation->baseline, kiln_explained_method(explanation->method));
    KilnStatus status = put_text(map, &room, title_size, what, err);
    room.top += LINE;
    return status < 0 ? status : put_text(map, &room, title_size, numbers, err);
}

/* What the colours at the ends of the bar stand for. */
static KilnStatus put_legend(const Map *map, int64_t top, int64_t left, KilnError *err)
{
    const int width = (int)map->large_image.width, first = width * 6 / 10;
    const Room least = { .top = top, .left = left, .width = first };
    const Room most = { .top = top, .left = left + first, .width = width - first, .at = 1.0 };
    char text[80] = "0";

    if (map->negative)
        snprintf(text, sizeof(text), "against %.3g", -(double)map->scale);
    KilnStatus status = put_text(map, &least, legend_size, text, err);
    snprintf(text, sizeof(text), "for %.3g", (double)map->scale);
    return status < 0 ? status : put_text(map, &most, legend_size, text, err);
}

static KilnStatus draw(Map *map, const KilnExplained *explained, KilnError *err)
{
    const bool has_text = kiln_plot_supported(NULL) >= 0;
    const int64_t head = has_text ? 2 * LINE : MARGIN / 2, foot = has_text ? LINE : 0;

    if (image_of(map, err) < 0 || heat_of(map, err) < 0 || enlarge(map, err) < 0)
        return err->status;
    const int64_t height = map->large_image.height, width = map->large_image.width;
    const int64_t top = MARGIN / 2 + head + MARGIN / 2, right = 2 * MARGIN + width;
    const int64_t below = top + height + MARGIN / 2;
    if (kiln_image_resize_buffer(&map->sheet, below + BAR + foot + MARGIN / 2,
                                 right + width + MARGIN, 3, err) < 0)
        return err->status;
    for (int64_t i = 0; i < map->sheet.height * map->sheet.width * 3; i++)
        map->sheet.data[i] = 1.0f;
    put_image(map, top, MARGIN);
    put_map(map, top, right);
    put_bar(map, below, right);
    if (!has_text)
        return KILN_OK;
    const KilnStatus status = put_title(map, explained, err);
    return status < 0 ? status : put_legend(map, below + BAR, right, err);
}

KilnStatus kiln_explained_picture(const KilnExplained *explained, const KilnAttribution *image,
                                  const char *path, KilnError *err)
{
    Map map = { .attribution = image };
    KilnStatus status = draw(&map, explained, err);

    if (status >= 0)
        status = kiln_image_write_png(path, &map.sheet, err);
    kiln_image_release(&map.image);
    kiln_image_release(&map.heat);
    kiln_image_release(&map.large_image);
    kiln_image_release(&map.large_heat);
    kiln_image_release(&map.sheet);
    return status;
}

/* Rows of a decoder to floats, and to the scaler. */
#include "image/decode/row_sink.h"

#include <stdlib.h>
#include <string.h>

#include "image/pixels.h"

KilnStatus kiln_row_sink_init(KilnRowSink *sink, const KilnImageWindow *window,
                              const int64_t decoded[2], int64_t shrink, int64_t channels,
                              KilnImage *image, KilnError *err)
{
    const double by = 1.0 / (double)shrink;
    const KilnScaling scaling = { .filter = window->filter,
                                  .top = (double)window->top * by,
                                  .left = (double)window->left * by,
                                  .height = (double)window->height * by,
                                  .width = (double)window->width * by };
    KilnStatus status = kiln_image_resize_buffer(image, window->to_height, window->to_width,
                                                 channels, err);

    *sink = (KilnRowSink) { .image = image };
    sink->rows = kiln_scaling_rect(&scaling, decoded[0], decoded[1]);
    sink->scales = shrink > 1 || window->to_height != window->height ||
                   window->to_width != window->width;
    if (status < 0)
        return status;
    const size_t columns = (size_t)sink->rows.width + 1;
    sink->samples = malloc(columns * 4 * sizeof(*sink->samples));
    sink->pixels = malloc(columns * 3 * sizeof(*sink->pixels));
    if (sink->samples == NULL || sink->pixels == NULL)
        return kiln_error_nomem(err, columns * 4 * sizeof(*sink->samples));
    return sink->scales ? kiln_scaler_init(&sink->scaler, &scaling, &sink->rows, image, err)
                        : KILN_OK;
}

/* Where the next row's pixels go. */
static float *next_row(KilnRowSink *sink)
{
    const KilnImage *image = sink->image;

    return sink->scales ? sink->pixels : image->data + sink->row * image->width * image->channels;
}

static void row_done(KilnRowSink *sink)
{
    sink->row++;
    if (sink->scales)
        kiln_scaler_add(&sink->scaler, sink->pixels);
}

void kiln_row_sink_add(KilnRowSink *sink, const uint8_t *row, int64_t samples)
{
    const int64_t n = sink->rows.width * samples;
    float *to = samples == sink->image->channels ? next_row(sink) : sink->samples;

    for (int64_t i = 0; i < n; i++)
        to[i] = (float)row[i] / 255.0f;
    if (to == sink->samples)
        kiln_pixels_convert(sink->samples, sink->rows.width, samples, sink->image->channels,
                            next_row(sink));
    row_done(sink);
}

void kiln_row_sink_add16(KilnRowSink *sink, const uint8_t *row, int64_t samples)
{
    for (int64_t i = 0; i < sink->rows.width * samples; i++)
        sink->samples[i] = (float)(row[2 * i] << 8 | row[2 * i + 1]) / 65535.0f;
    kiln_pixels_convert(sink->samples, sink->rows.width, samples, sink->image->channels,
                        next_row(sink));
    row_done(sink);
}

void kiln_row_sink_add_floats(KilnRowSink *sink, const float *row, int64_t samples)
{
    memcpy(sink->samples, row, (size_t)(sink->rows.width * samples) * sizeof(*row));
    kiln_pixels_convert(sink->samples, sink->rows.width, samples, sink->image->channels,
                        next_row(sink));
    row_done(sink);
}

void kiln_row_sink_release(KilnRowSink *sink)
{
    kiln_scaler_release(&sink->scaler);
    free(sink->samples);
    free(sink->pixels);
    *sink = (KilnRowSink) { 0 };
}

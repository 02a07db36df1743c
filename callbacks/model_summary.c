/* Prints the network as a table before training: layers, shapes, parameters. */
#include "kiln.h"

#include <stdio.h>
#include <string.h>

/* 11173962 -> "11,173,962" */
static const char *with_commas(int64_t value, char *buf, size_t size)
{
    char digits[32];
    size_t n = (size_t)snprintf(digits, sizeof(digits), "%lld", (long long)value), used = 0;

    for (size_t i = 0; i < n && used + 2 < size; i++) {
        if (i > 0 && (n - i) % 3 == 0)
            buf[used++] = ',';
        buf[used++] = digits[i];
    }
    buf[used] = '\0';
    return buf;
}

static int widest(const KilnLayerInfo *layers, size_t n)
{
    int width = (int)strlen("layer");

    for (size_t i = 0; i < n; i++)
        if ((int)strlen(layers[i].path) > width)
            width = (int)strlen(layers[i].path);
    return width;
}

static KilnStatus on_fit_start(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    const KilnLayerInfo *layers;
    size_t n = kiln_trainer_layers(trainer, &layers);
    int width = widest(layers, n);
    int64_t total = kiln_params_size(kiln_trainer_params(trainer));
    char shape[KILN_SHAPE_TEXT], count[48];

    (void)self;
    (void)err;
    kiln_trainer_print(trainer, "%-*s  %-18s  %-22s  %12s", width, "layer", "operation", "output",
                       "parameters");
    for (size_t i = 0; i < n; i++)
        kiln_trainer_print(trainer, "%-*s  %-18s  %-22s  %12s", width, layers[i].path, layers[i].op,
                           kiln_shape_text(&layers[i].output, shape, sizeof(shape)),
                           with_commas(layers[i].parameters, count, sizeof(count)));
    kiln_trainer_print(trainer, "%s parameters, %.2f MB", with_commas(total, count, sizeof(count)),
                       (double)total * sizeof(float) / 1e6);
    return KILN_OK;
}

static const KilnCallbackOps ops = { .on_fit_start = on_fit_start, .shows_summary = true };

const KilnComponent kiln_callback_model_summary = {
    .kind = KILN_KIND_CALLBACK,
    .name = "model_summary",
    .summary = "Print layers, output shapes and parameters before training",
    .ops.callback = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_callback_model_summary, NULL };
KILN_PLUGIN_DEFINE(list)
#endif

/* Prints the network as a table before training: layers, shapes, parameters, FLOPs. */
#include "kiln.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Opts {
    int64_t max_depth;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_I64(
        Opts, max_depth, "2", -1, 1e6,
        "layers deeper than this are summed in their parent; -1: show all; 0: totals only"),
    KILN_FIELD_END,
};

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

static void print_table(KilnTrainer *trainer, char *table)
{
    for (char *line = table, *end; *line != '\0'; line = end + 1) {
        end = strchr(line, '\n');
        *end = '\0';
        kiln_trainer_print(trainer, "%s", line);
    }
}

static void print_totals(KilnTrainer *trainer)
{
    const KilnParams *params = kiln_trainer_params(trainer);
    int64_t total = kiln_params_size(params), frozen = 0;

    for (size_t i = 0; i < kiln_params_count(params); i++) {
        const KilnParam *param = kiln_params_at(params, i);
        const int64_t n = kiln_shape_count(kiln_param_shape(param));

        total += kiln_param_fixed(param) ? n : 0;
        frozen += kiln_param_fixed(param) || kiln_param_frozen(param) ? n : 0;
    }
    const double bytes = (double)total * (double)kiln_dtype_size(kiln_params_dtype(params));
    char count[48], rest[48];

    if (frozen == 0)
        kiln_trainer_print(trainer, "%s parameters, %.2f MB",
                           with_commas(total, count, sizeof(count)), bytes / 1e6);
    else
        kiln_trainer_print(trainer, "%s parameters, %.2f MB, of them %s frozen",
                           with_commas(total, count, sizeof(count)), bytes / 1e6,
                           with_commas(frozen, rest, sizeof(rest)));
}

static KilnStatus on_fit_start(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    const int width = kiln_trainer_console(trainer)->width;

    if (opts->max_depth != 0) {
        char *table = kiln_trainer_layer_table(trainer, opts->max_depth, width);

        if (table == NULL)
            return kiln_error_nomem(err, 1);
        print_table(trainer, table);
        free(table);
    }
    print_totals(trainer);
    return KILN_OK;
}

static const KilnCallbackOps ops = { .on_fit_start = on_fit_start, .shows_summary = true };

const KilnComponent kiln_callback_model_summary = {
    .kind = KILN_KIND_CALLBACK,
    .name = "model_summary",
    .summary = "Print layers, output shapes, parameters and FLOPs before training",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .ops.callback = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_callback_model_summary, NULL };
KILN_PLUGIN_DEFINE(list)
#endif

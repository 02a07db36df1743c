/* Activations as panels of rows × columns, in plain order or in blocks of channels. */
#include "backend/cpu/norm/panels.h"

#include "tensor/bf16.h"

enum { PLAIN_PLACES = 256 };

KilnGroups kiln_groups(const KilnCall *call, const KilnArg *x, int64_t pixels)
{
    const KilnMdFormat format = kiln_layout_format(&kiln_cpu(call)->dnnl, x->layout, &x->shape);
    KilnGroups groups = {
        .channels = kiln_cpu_columns(x),
        .rows = kiln_cpu_rows(x),
        .blocked = format == KILN_MD_C16 || format == KILN_MD_C8,
    };

    if (groups.blocked) {
        groups.size = format == KILN_MD_C16 ? 16 : 8;
        groups.images = x->shape.rank == 4 ? x->shape.dim[0] : groups.rows;
        groups.pixels = groups.rows / groups.images;
    } else {
        groups.size = KILN_PANEL;
        groups.pixels = pixels > 0 ? pixels : PLAIN_PLACES;
        groups.images = (groups.rows + groups.pixels - 1) / groups.pixels;
    }
    groups.count = (groups.channels + groups.size - 1) / groups.size;
    return groups;
}

int64_t kiln_group_channels(const KilnGroups *groups, int64_t g)
{
    const int64_t left = groups->channels - g * groups->size;

    return left < groups->size ? left : groups->size;
}

static KilnPanels plain_panels(const KilnGroups *groups, int64_t g, int64_t image, KilnPanel panel)
{
    const int64_t first = image * groups->pixels, left = groups->rows - first;

    panel.rows = left < groups->pixels ? left : groups->pixels;
    panel.stride = groups->channels;
    panel.columns = (int)kiln_group_channels(groups, g);
    return (KilnPanels) { .n = 1,
                          .panel = { panel },
                          .at = { first * groups->channels + g * groups->size } };
}

/* A blocked image is a run of pixels; a panel's row holds as many as fit side by side, and the rest
 * is a row of its own. */
KilnPanels kiln_panels(const KilnGroups *groups, int64_t g, int64_t image, bool relu)
{
    const int64_t elements = groups->pixels * groups->size;
    KilnPanel panel = { .rows = elements / KILN_PANEL,
                        .stride = KILN_PANEL,
                        .columns = KILN_PANEL,
                        .bf16 = groups->bf16,
                        .relu = relu };
    KilnPanels panels = { .n = 0 };

    if (!groups->blocked)
        return plain_panels(groups, g, image, panel);
    const int64_t begin = (image * groups->count + g) * elements;
    if (panel.rows > 0) {
        panels.at[panels.n] = begin;
        panels.panel[panels.n++] = panel;
    }
    if (elements % KILN_PANEL > 0) {
        panels.at[panels.n] = begin + panel.rows * KILN_PANEL;
        panel.rows = 1;
        panel.columns = (int)(elements % KILN_PANEL);
        panels.panel[panels.n++] = panel;
    }
    return panels;
}

static void repeat(const KilnGroups *groups, float values[KILN_PANEL])
{
    for (int64_t c = groups->size; c < KILN_PANEL; c++)
        values[c] = values[c - groups->size];
}

void kiln_columns_repeat(const KilnGroups *groups, KilnNormColumns *columns)
{
    repeat(groups, columns->mean);
    repeat(groups, columns->scale);
    repeat(groups, columns->bias);
    repeat(groups, columns->mean_dy);
    repeat(groups, columns->slope);
}

static void *elements_of(const KilnArg *arg, bool there, int64_t at)
{
    if (!there)
        return NULL;
    return (char *)arg->data + (size_t)at * kiln_dtype_size(arg->dtype);
}

const void *kiln_panel_input(const KilnCall *call, int i, int64_t at)
{
    return elements_of(&call->inputs[i], i < call->n_inputs && !call->inputs[i].absent, at);
}

void *kiln_panel_output(const KilnCall *call, int i, int64_t at)
{
    return elements_of(&call->outputs[i], i < call->n_outputs, at);
}

unsigned kiln_panel_to_bf16(const KilnCall *call, const KilnPanelArg *args)
{
    unsigned bf16 = 0, f32 = 0;

    for (; args->bit != 0; args++) {
        const int n = args->output ? call->n_outputs : call->n_inputs;
        const KilnArg *arg = args->output ? &call->outputs[args->i] : &call->inputs[args->i];

        if (args->i >= n || arg->absent)
            continue;
        if (arg->dtype == KILN_BF16)
            bf16 |= args->bit;
        else
            f32 |= args->bit;
    }
    return f32 == 0 ? KILN_NORM_ALL : bf16;
}

float kiln_panel_element(const KilnArg *arg, int64_t i)
{
    return arg->dtype == KILN_BF16 ? kiln_bf16_to(((const uint16_t *)arg->data)[i])
                                   : ((const float *)arg->data)[i];
}

double kiln_panel_total(const KilnGroups *groups, const double sums[KILN_PANEL], int64_t c)
{
    double sum = 0.0;

    for (int64_t at = c; at < KILN_PANEL; at += groups->size)
        sum += sums[at];
    return sum;
}

void kiln_panel_layouts(KilnCall *call, int x, const int *inputs, int n_inputs, const int *outputs,
                        int n_outputs)
{
    KilnDnnl *dnnl = &kiln_cpu(call)->dnnl;
    KilnArg *base = &call->inputs[x];
    bool plain = kiln_layout_format(dnnl, base->layout, &base->shape) == KILN_MD_ANY;

    for (int i = 0; i < n_outputs; i++)
        plain |= outputs[i] < call->n_outputs && call->outputs[outputs[i]].fixed;
    const KilnLayout layout = plain ? KILN_PLAIN : base->layout;
    for (int i = 0; i < call->n_inputs; i++)
        call->inputs[i].layout = KILN_PLAIN;
    for (int i = 0; i < n_inputs; i++)
        call->inputs[inputs[i]].layout = layout;
    for (int i = 0; i < n_outputs; i++)
        if (outputs[i] < call->n_outputs)
            kiln_output_layout(dnnl, &call->outputs[outputs[i]], layout);
}

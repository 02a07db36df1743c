/* Activations as panels: how the loops of normalization walk through any layout. */
#ifndef KILN_BACKEND_CPU_NORM_PANELS_H
#define KILN_BACKEND_CPU_NORM_PANELS_H

#include "backend/cpu/cpu.h"

/* Activations [..., C] as images × groups of channels. Group g begins with channel
 * g * size. */
typedef struct KilnGroups {
    int64_t channels, count, size; /* of all; groups; channels in each but the last */
    int64_t images, places, rows;  /* images; rows of [..., C] in each but the last, and in all */
    bool blocked;
    unsigned bf16; /* KILN_NORM_... bits of the activations, set by the kernel */
} KilnGroups;

/* The panels of an image's group, and where they begin. */
typedef struct KilnPanels {
    int n;
    KilnPanel panel[2];
    int64_t at[2]; /* in elements */
} KilnPanels;

/* `places` is what makes an image in plain order; 0: any split will do. */
KilnGroups kiln_groups(const KilnCall *call, const KilnArg *x, int64_t places);
/* Channels of group g. */
int64_t kiln_group_channels(const KilnGroups *groups, int64_t g);
KilnPanels kiln_panels(const KilnGroups *groups, int64_t g, int64_t image, bool relu);
/* Repeat each column's values of a group over the places that stand side by side. */
void kiln_columns_repeat(const KilnGroups *groups, KilnNormColumns *columns);
/* Bytes of input or output i of a call from element `at` on; NULL: it is absent. */
const void *kiln_panel_input(const KilnCall *call, int i, int64_t at);
void *kiln_panel_output(const KilnCall *call, int i, int64_t at);
/* The bits of what is bf16 among a call's activations: input or output i of a list that
 * ends with bit 0, absent ones left out; KILN_NORM_ALL when all that are there are. */
typedef struct KilnPanelArg {
    unsigned bit;
    int i;
    bool output;
} KilnPanelArg;
unsigned kiln_panel_to_bf16(const KilnCall *call, const KilnPanelArg *args);
/* Element i of activations as a float. */
float kiln_panel_element(const KilnArg *arg, int64_t i);
/* Sum of channel c over a row of columns as the loops leave it. */
double kiln_panel_total(const KilnGroups *groups, const double sums[KILN_PANEL], int64_t c);
/* The big arguments of a call lie as input x, which must be plain when a big output
 * has a place of its own, or when x comes in an order that is not one of channels
 * in blocks; all others are plain. */
void kiln_panel_layouts(KilnCall *call, int x, const int *inputs, int n_inputs, const int *outputs,
                        int n_outputs);

#endif

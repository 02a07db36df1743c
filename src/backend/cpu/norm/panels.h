/* Activations as panels, so that the loops of normalization work in any layout. */
#ifndef KILN_BACKEND_CPU_NORM_PANELS_H
#define KILN_BACKEND_CPU_NORM_PANELS_H

#include "backend/cpu/cpu.h"

/* Activations [..., C] as images × groups of channels. Group g begins at channel g * size. */
typedef struct KilnGroups {
    int64_t channels, count, size; /* total channels; groups; channels in each group but the last */
    int64_t images, pixels, rows;  /* images; rows of [..., C] per image but the last; all rows */
    bool blocked;
    unsigned bf16; /* KILN_NORM_... bits of the activations, set by the kernel */
} KilnGroups;

/* The panels of an image's group, with their offsets. */
typedef struct KilnPanels {
    int n;
    KilnPanel panel[2];
    int64_t at[2]; /* in elements */
} KilnPanels;

/* `pixels` is the number of rows per image in plain order; 0: any split. */
KilnGroups kiln_groups(const KilnCall *call, const KilnArg *x, int64_t pixels);
/* Channels of group g. */
int64_t kiln_group_channels(const KilnGroups *groups, int64_t g);
KilnPanels kiln_panels(const KilnGroups *groups, int64_t g, int64_t image, bool relu);
/* Repeats each column's values of a group for the pixels side by side in a panel's row. */
void kiln_columns_repeat(const KilnGroups *groups, KilnNormColumns *columns);
/* Address of element `at` of input or output i of a call; NULL: absent. */
const void *kiln_panel_input(const KilnCall *call, int i, int64_t at);
void *kiln_panel_output(const KilnCall *call, int i, int64_t at);
/* The bits of a call's bf16 activations: `args` lists inputs and outputs and ends with bit 0;
 * absent ones are skipped. KILN_NORM_ALL if all that are present are bf16. */
typedef struct KilnPanelArg {
    unsigned bit;
    int i;
    bool output;
} KilnPanelArg;
unsigned kiln_panel_to_bf16(const KilnCall *call, const KilnPanelArg *args);
/* Element i of activations as a float. */
float kiln_panel_element(const KilnArg *arg, int64_t i);
/* Sum of channel c over a row of columns as the loops return it. */
double kiln_panel_total(const KilnGroups *groups, const double sums[KILN_PANEL], int64_t c);
/* Gives the large arguments of a call the layout of input x. x must be plain if a large output has
 * a destination or if x's layout is not blocked by channels. All other arguments are plain. */
void kiln_panel_layouts(KilnCall *call, int x, const int *inputs, int n_inputs, const int *outputs,
                        int n_outputs);

#endif

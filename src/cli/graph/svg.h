/* Pieces of pictures of the step, shared by their parts. */
#ifndef KILN_CLI_GRAPH_SVG_H
#define KILN_CLI_GRAPH_SVG_H

#include "cli/graph/graph_view.h"

/* The colour of a kind of operation, "#4c78a8", by its name. */
const char *kiln_svg_colour(const KilnCallReport *call);
/* The i-th kind's colour and what it is; NULL behind the last. */
const char *kiln_svg_kind(size_t i, const char **ret_name);
/* Text as it may stand in SVG; at most `most` characters, with an ellipsis. */
void kiln_svg_text(KilnText *svg, const char *text, int most);
/* The block's use over the step, as wide as the picture; its height is fixed. */
enum { KILN_SVG_MEMORY_HEIGHT = 440 };
void kiln_svg_memory(KilnText *svg, const KilnStepView *view, double y, double width);

#endif

/* A tensor as lines along one axis: what operations along an axis loop over. */
#ifndef KILN_GRAPH_OPS_SELECT_LINES_H
#define KILN_GRAPH_OPS_SELECT_LINES_H

#include "kiln/tensor.h"

/* Line l has n elements, `inner` apart, from kiln_line_start(lines, l). */
typedef struct KilnLines {
    int64_t count, n, inner;
} KilnLines;

static inline KilnLines kiln_lines_of(const KilnShape *shape, int64_t axis)
{
    KilnLines lines = { .count = 1, .n = shape->dim[axis], .inner = 1 };

    for (int i = 0; i < shape->rank; i++) {
        if (i > axis)
            lines.inner *= shape->dim[i];
        if (i != axis)
            lines.count *= shape->dim[i];
    }
    return lines;
}

static inline int64_t kiln_line_start(const KilnLines *lines, int64_t line)
{
    return line / lines->inner * lines->n * lines->inner + line % lines->inner;
}

#endif

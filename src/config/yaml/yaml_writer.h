/* Nodes as YAML text that reads back as the same values. */
#ifndef KILN_CONFIG_YAML_YAML_WRITER_H
#define KILN_CONFIG_YAML_YAML_WRITER_H

#include "config/interpolate/interpolate.h"
#include "config/provenance/origin_comments.h"

typedef struct KilnYamlWriter {
    KilnText *text;
    const KilnConfig *config; /* needed to resolve only */
    bool resolve;
    bool references; /* when resolving, keep references to other values of the job */
    bool origins;    /* append the origin of each value (origin_comments.h) */
    /* Leave out this key of the root? NULL: none. */
    bool (*hidden)(const KilnConfig *config, const char *key);
    size_t nodes;
} KilnYamlWriter;

/* The node as YAML, ending in a newline. Fails when an interpolation does. */
KILN_NODISCARD KilnStatus kiln_write_node(KilnYamlWriter *writer, const KilnConfigNode *node,
                                          KilnError *err);
/* A scalar on one line, with quotes where it needs them. */
void kiln_write_scalar(KilnText *text, const KilnConfigNode *node);
/* A value on one line, in flow style, with all text in quotes: {'a': 1, 'b': ['x']}; its entries
 * from index `first` on. */
void kiln_write_flow(KilnText *text, const KilnConfigNode *node, size_t first);
/* Text as a YAML string, in quotes; in flow style more text needs them. */
void kiln_write_quoted(KilnText *text, const char *string);
/* Text as a YAML string, with quotes where it needs them in block style. */
void kiln_write_string(KilnText *text, const char *string);

#endif

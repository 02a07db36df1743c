/* The grammar of values, for overrides (`lr=0.1`, `f=[1,2]`) and, nearly the same, for arguments
 * of resolvers (`${oc.env:X,[1,2]}`). value.c parses values, value_text.c writes them. */
#ifndef KILN_CONFIG_OVERRIDE_VALUE_H
#define KILN_CONFIG_OVERRIDE_VALUE_H

#include "base/text.h"
#include "config/tree/tree.h"

typedef struct KilnValueParser KilnValueParser;
typedef struct KilnSweepValue KilnSweepValue; /* config/sweep/sweep_value.h */

struct KilnValueParser {
    KilnMaker maker; /* of the nodes */
    const char *text;
    size_t at; /* of the next character */
    int depth;
    bool functions;                    /* int(...), sort(...) and so on are calls */
    const KilnConfigNode *extension;   /* result of extend_list(); NULL: none */
    KilnSweepValue *sweeps;            /* those found so far: choice(...), int(1,2) */
    KilnError *err;                    /* filled by every function that fails */
    struct KilnResolution *resolution; /* resolves ${...}; NULL: it stays text */
    const KilnConfigNode *node;        /* whose text it is, for relative paths in ${...} */
};

/* Parse one element at `at`: text, number, quoted text, [list], {mapping}, call. Stops before a
 * comma, a closing bracket or the end. */
KILN_NODISCARD KilnStatus kiln_value_element(KilnValueParser *parser, KilnConfigNode **ret);
/* Parse elements (of a mapping: pairs) with commas up to and with `close` ('\0': the end of the
 * text), and append them to `node`. With `gaps` an empty element is "" (as resolvers have it). */
KILN_NODISCARD KilnStatus kiln_value_sequence(KilnValueParser *parser, char close, bool gaps,
                                              KilnConfigNode *node);
/* Append an item (key NULL in lists), as kiln_node_append. A value that is in the tree already
 * keeps its parent. */
KilnEntry *kiln_value_append(KilnValueParser *parser, KilnConfigNode *node, const char *key,
                             KilnConfigNode *item);
/* The end of the ${...} at `at`; brackets in quotes do not count. 0: it is not closed. */
size_t kiln_value_skip_interpolation(const char *text, size_t at);
void kiln_value_skip_blanks(KilnValueParser *parser);
/* "column 7: MESSAGE", or "at the end: MESSAGE", with the origin in an argument; KILN_E_SYNTAX. */
KilnStatus kiln_value_fail(const KilnValueParser *parser, size_t at, const char *format, ...)
    KILN_PRINTF(3, 4);

/* The value as Python's str() prints it, which is how it appears in interpolated text: True,
 * None, 1e-05, [1, 'x']. */
void kiln_value_text(const KilnConfigNode *node, KilnText *text);
/* The value as an argument that parses to the same value, written like Hydra does: quotes and
 * escapes, no blanks in lists and mappings, null. */
void kiln_value_written(const KilnConfigNode *node, KilnText *text);
/* The value as JSON, spelled as Python's json.dumps does. */
void kiln_value_json(const KilnConfigNode *node, KilnText *text);
/* Call a function of the override grammar, whose name is at `at`, with a list of arguments, in
 * which named ones have a key. */
KILN_NODISCARD KilnStatus kiln_function_call(KilnValueParser *parser, const char *name, size_t at,
                                             const KilnConfigNode *arguments, KilnConfigNode **ret);
/* Does the text start with a call of an existing function? */
bool kiln_function_is_called(const char *text);

#endif

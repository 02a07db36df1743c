/* The grammar of values: of overrides (`lr=0.1`, `f=[1,2]`) and, nearly the
 * same, of arguments of resolvers (`${oc.env:X,[1,2]}`). */
#ifndef KILN_CONFIG_OVERRIDE_VALUE_H
#define KILN_CONFIG_OVERRIDE_VALUE_H

#include "base/text.h"
#include "config/tree/tree.h"

typedef struct KilnValueText KilnValueText;
typedef struct KilnSweepValue KilnSweepValue; /* config/sweep_value.h */

struct KilnValueText {
    KilnMaker maker; /* of the nodes */
    const char *text;
    size_t at; /* where the next thing is read */
    int depth;
    bool functions;                  /* int(...), sort(...) and the like are calls */
    const KilnConfigNode *extension; /* what extend_list() made; NULL: none */
    KilnSweepValue *sweeps;          /* those met so far: choice(...), or int(1,2) */
    /* Value of the ${...} at `at`, which moves behind it. NULL: it stays text. */
    KilnStatus (*interpolate)(void *ctx, KilnValueText *value, const KilnConfigNode **ret,
                              KilnError *err);
    void *ctx;
};

/* One element from `at` on: text, number, quoted text, [list], {mapping}, call.
 * Stops in front of a comma, a closing bracket or the end. */
KILN_NODISCARD KilnStatus kiln_value_element(KilnValueText *value, KilnConfigNode **ret,
                                             KilnError *err);
/* Elements and commas up to `close`, which is skipped, appended to `list`. With
 * `gaps` an empty place is "" (as resolvers have it). */
KILN_NODISCARD KilnStatus kiln_value_sequence(KilnValueText *value, char close, bool gaps,
                                              KilnConfigNode *list, KilnError *err);
/* Past the } that closes the ${ at `at`; brackets in quotes don't count. 0: none. */
size_t kiln_value_skip_interpolation(const char *text, size_t at);
void kiln_value_skip_blanks(KilnValueText *value);
/* An error of an argument is about what is `at` there. */
void kiln_value_point(const KilnValueText *value, size_t at, KilnError *err);
/* "column 7: ", or "at the end: ", in front of a message; KILN_E_SYNTAX. */
KilnStatus kiln_value_fail(const KilnValueText *value, size_t at, KilnError *err,
                           const char *format, ...) KILN_PRINTF(4, 5);
/* Text of a value as Python's str() prints it, which is what an interpolation in
 * text yields: True, None, 1e-05, [1, 'x']. */
void kiln_value_text(const KilnConfigNode *node, KilnText *text);
/* The value as it is written in an argument, so that it reads back: quotes and
 * escapes, lists and mappings without blanks, None as null, as Hydra writes it. */
void kiln_value_written(const KilnConfigNode *node, KilnText *text);
/* The value as JSON, spelled as Python's json.dumps does. */
void kiln_value_json(const KilnConfigNode *node, KilnText *text);
/* Quoted text from the quote at `at` on, its end skipped. */
KILN_NODISCARD KilnStatus kiln_value_quoted(KilnValueText *value, KilnConfigNode **ret,
                                            KilnError *err);

/* Apply a function of the override grammar, whose name is `at` there, to its
 * arguments: a list, in which named ones have a key. */
KILN_NODISCARD KilnStatus kiln_function_call(KilnValueText *value, const char *name, size_t at,
                                             const KilnConfigNode *arguments, KilnConfigNode **ret,
                                             KilnError *err);
/* Does the text start like a call of a function that there is? */
bool kiln_function_is_called(const char *text);

#endif

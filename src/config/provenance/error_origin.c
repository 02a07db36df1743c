/* Completes messages with the origins of values, and of the interpolations that lead to them. */
#include "config/provenance/error_origin.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "config/composed.h"
#include "config/interpolate/interpolate.h"
#include "config/provenance/origin.h"

/* ", through ${lr} in conf/x.yaml:3:5 and ${rate} in ...": the interpolations between
 * `node` and its value; each is introduced by `word`, the next ones by `more`. */
static void append_hops(const KilnConfig *config, const KilnConfigNode *node,
                        const KilnConfigNode *value, const char *word, const char *more,
                        KilnText *text)
{
    const KilnConfigNode *hop = node;

    for (int i = 0; value != NULL && hop != NULL && hop != value && i < KILN_INTERPOLATION_DEPTH;
         i++) {
        if (kiln_node_is_scalar(hop, KILN_SCALAR_INTERPOLATION) &&
            !kiln_origin_equal(&hop->origin, &value->origin)) {
            kiln_text_printf(text, "%s%s in ", i == 0 ? word : more, hop->text);
            kiln_origin_write(text, &hop->origin);
        }
        hop = kiln_interpolation_target(config, hop);
    }
}

/* "with ${x} from conf/x.yaml:3:5" for the "${" at `start`. */
static void append_part(const KilnConfig *config, const KilnConfigNode *node, const char *start,
                        KilnText *text)
{
    KilnConfigNode part = { .kind = KILN_NODE_SCALAR,
                            .scalar = KILN_SCALAR_INTERPOLATION,
                            .parent = node->parent };
    const KilnConfigNode *value = NULL;

    part.text = kiln_arena_strndup(config->arena, start, strcspn(start, "}") + 1);
    if (part.text == NULL || kiln_interpolation_target(config, &part) == NULL ||
        kiln_config_resolve(config, &part, &value, NULL) < 0 || value->kind != KILN_NODE_SCALAR)
        return;
    kiln_text_printf(text, "\n  with %s from ", part.text);
    kiln_origin_write(text, &value->origin);
}

/* The origins of the parts of a value that combines text and ${...}. */
static void append_parts(const KilnConfig *config, const KilnConfigNode *node,
                         const KilnConfigNode *value, KilnText *text)
{
    const KilnConfigNode *hop = node;

    for (int i = 0; hop != NULL && hop != value && i < KILN_INTERPOLATION_DEPTH; i++) {
        if (kiln_node_is_scalar(hop, KILN_SCALAR_INTERPOLATION) &&
            kiln_origin_equal(&hop->origin, &value->origin)) {
            for (const char *p = hop->text; (p = strstr(p, "${")) != NULL; p += 2)
                append_part(config, hop, p, text);
            return;
        }
        hop = kiln_interpolation_target(config, hop);
    }
}

void kiln_node_where(const KilnConfig *config, const KilnConfigNode *node,
                     const KilnConfigNode *value, char *buf, size_t size)
{
    KilnText text = { 0 };

    if (size == 0)
        return;
    kiln_text_append(&text, "from ");
    kiln_origin_write(&text, value != NULL ? &value->origin : &node->origin);
    append_hops(config, node, value, ", through ", " and ", &text);
    snprintf(buf, size, "%s", text.data != NULL ? text.data : "");
    kiln_text_release(&text);
}

static bool is_written(const KilnConfigNode *node)
{
    return node->origin.line > 0 || node->layer == KILN_LAYER_ARGUMENT;
}

/* The nearest node around it that somebody wrote; for a component, its _target_. */
static const KilnConfigNode *nearest_written(const KilnConfigNode *node)
{
    for (; node != NULL; node = node->parent) {
        const KilnConfigNode *target = kiln_node_get(node, "_target_");

        if (target != NULL && is_written(target))
            return target;
        if (is_written(node))
            return node;
    }
    return NULL;
}

KilnStatus kiln_error_about(const KilnConfig *config, const KilnConfigNode *node,
                            const KilnConfigNode *value, KilnError *err)
{
    const KilnConfigNode *at = value != NULL ? value : node;
    const KilnRemoved *removed = NULL; /* what left only a default */
    KilnOrigin origin = err->origin;
    KilnText text = { 0 };

    if (at != NULL && !is_written(at)) {
        removed = kiln_removal_find(config, kiln_node_path(config, at));
        at = nearest_written(node != NULL && is_written(node) ? node : at);
    }
    kiln_text_append(&text, err->text);
    if (value != NULL)
        append_parts(config, node, value, &text);
    append_hops(config, node, value, "\n  through ", "\n  and ", &text);
    if (removed != NULL)
        kiln_text_printf(&text, "\n  removed by %s", removed->origin.source);
    else if (at != value && value != NULL && value->kind == KILN_NODE_SCALAR &&
             value->origin.source != NULL)
        kiln_text_printf(&text, "\n  from %s", value->origin.source);
    kiln_error_set(err, err->status, "%s", text.data != NULL ? text.data : "out of memory");
    kiln_text_release(&text);
    if (origin.source != NULL)
        err->origin = origin;
    else if (removed != NULL)
        err->origin = removed->origin;
    else if (at != NULL)
        err->origin = at->origin;
    return err->status;
}

KilnStatus kiln_error_placed(KilnError *err, const char *path)
{
    if (kiln_origin_prefix(err->text, &err->origin) > 0)
        return err->status;
    kiln_error_prefix(err, "%s%s", path, path[0] != '\0' ? ": " : "");
    return kiln_error_at(err, &err->origin);
}

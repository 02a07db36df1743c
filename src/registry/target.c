/* Finds the component that a _target_ names: "kind/name", or a name alone. */
#include "registry/registry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "config/provenance/error_origin.h"
#include "schema/table.h"
#include "schema/field_value.h"

KilnKind kiln_kind_find(const char *name, size_t length)
{
    for (int k = 0; k < KILN_KIND_COUNT; k++) {
        const char *text = kiln_kind_name((KilnKind)k);

        if (strlen(text) == length && memcmp(text, name, length) == 0)
            return (KilnKind)k;
    }
    return KILN_KIND_ANY;
}

static KilnStatus unknown(const KilnRegistry *registry, KilnKind kind, const char *name,
                          KilnError *err)
{
    const char **names = calloc(registry->count + 1, sizeof(*names));
    KilnKind other = KILN_KIND_ANY; /* the first that has a component of that name */
    KilnText text = { 0 };
    size_t n = 0;

    for (size_t i = 0; names != NULL && i < registry->count; i++) {
        const KilnComponent *c = registry->items[i];

        if (kind == KILN_KIND_ANY || c->kind == kind)
            names[n++] = c->name;
        if (other == KILN_KIND_ANY && strcmp(c->name, name) == 0)
            other = c->kind;
    }
    const char *near = kiln_nearest(name, names, n);
    kiln_text_printf(&text, "there is no %s \"%.80s\"",
                     kind == KILN_KIND_ANY ? "component" : kiln_kind_name(kind), name);
    if (other != KILN_KIND_ANY)
        kiln_text_printf(&text, ", it is %s", kiln_value_kind(other));
    else if (near != NULL)
        kiln_text_printf(&text, "; did you mean \"%s\"?", near);
    if (kind == KILN_KIND_ANY && near == NULL)
        kiln_text_append(&text, "; kiln list shows all");
    for (size_t i = 0; kind != KILN_KIND_ANY && i < n; i++)
        kiln_text_printf(&text, "%s%s", i == 0 ? "\n  there are: " : ", ", names[i]);
    if (other == KILN_KIND_ANY && near == NULL)
        kiln_text_append(&text, "; --plugin FILE.so adds those of a plugin");
    free(names);
    return kiln_text_to_error(&text, KILN_E_KEY, err);
}

static KilnStatus of_kind(const KilnRegistry *registry, KilnKind kind, const char *name,
                          const KilnComponent **ret, KilnError *err)
{
    const KilnComponent *found = NULL;

    for (size_t i = 0; i < registry->count; i++) {
        const KilnComponent *c = registry->items[i];

        if (strcmp(c->name, name) != 0 || (kind != KILN_KIND_ANY && c->kind != kind))
            continue;
        if (found != NULL)
            return kiln_error_set(err, KILN_E_KEY,
                                  "\"%s\" is the name of %s and of %s: write %s/%s or %s/%s", name,
                                  kiln_value_kind(found->kind), kiln_value_kind(c->kind),
                                  kiln_kind_name(found->kind), name, kiln_kind_name(c->kind), name);
        found = c;
    }
    if (found == NULL)
        return unknown(registry, kind, name, err);
    *ret = found;
    return KILN_OK;
}

/* `target` is "KIND/NAME" with an unknown kind: suggest the nearest kind that has such a component,
 * else the nearest of all. */
static KilnStatus unknown_kind(const KilnRegistry *registry, const char *target, size_t length,
                               KilnError *err)
{
    const char *all[KILN_KIND_COUNT], *having[KILN_KIND_COUNT], *near;
    char kind[40];
    KilnText text = { 0 };
    size_t n = 0;

    snprintf(kind, sizeof(kind), "%.*s", (int)(length < sizeof(kind) ? length : sizeof(kind) - 1),
             target);
    for (int k = 0; k < KILN_KIND_COUNT; k++) {
        all[k] = kiln_kind_name((KilnKind)k);
        if (kiln_registry_find(registry, (KilnKind)k, target + length + 1) != NULL)
            having[n++] = all[k];
    }
    near = kiln_nearest(kind, having, n);
    if (near == NULL)
        near = kiln_nearest(kind, all, KILN_KIND_COUNT);
    kiln_text_printf(&text, "\"%.80s\": there is no kind of components named \"%s\"", target, kind);
    if (near != NULL)
        kiln_text_printf(&text, "; did you mean \"%s%.80s\"?", near, target + length);
    return kiln_text_to_error(&text, KILN_E_KEY, err);
}

KilnStatus kiln_registry_target(const KilnRegistry *registry, const char *target, KilnKind kind,
                                const KilnComponent **ret, KilnError *err)
{
    const char *slash = strchr(target, '/');

    if (slash == NULL)
        return of_kind(registry, kind, target, ret, err);
    KilnKind said = kiln_kind_find(target, (size_t)(slash - target));
    if (said == KILN_KIND_ANY)
        return unknown_kind(registry, target, (size_t)(slash - target), err);
    if (kind != KILN_KIND_ANY && said != kind)
        return kiln_error_set(err, KILN_E_TYPE, "expected %s, got \"%.80s\", which is %s",
                              kiln_value_kind(kind), target, kiln_value_kind(said));
    return of_kind(registry, said, slash + 1, ret, err);
}

/* The name of a class of Python in a target, "python:mydata.Tweets" or "KIND/python:mydata.Tweets",
 * of which *kind becomes that kind; NULL: it names none. */
static const char *python_name(const char *target, KilnKind *kind)
{
    const char *slash = strchr(target, '/');

    if (kiln_starts_with(target, KILN_PYTHON_PREFIX))
        return target;
    if (slash == NULL || !kiln_starts_with(slash + 1, KILN_PYTHON_PREFIX))
        return NULL;
    const KilnKind said = kiln_kind_find(target, (size_t)(slash - target));
    if (said == KILN_KIND_ANY || (*kind != KILN_KIND_ANY && *kind != said))
        return NULL; /* kiln_registry_target says what is wrong */
    *kind = said;
    return slash + 1;
}

KilnStatus kiln_registry_describe(const KilnRegistry *registry, const char *target, KilnKind kind,
                                  const char *origin, const KilnComponent **ret, KilnError *err)
{
    const char *name = python_name(target, &kind);

    if (name == NULL)
        return kiln_registry_target(registry, target, kind, ret, err);
    if (of_kind(registry, kind, name, ret, NULL) >= 0)
        return KILN_OK;
    if (registry->source.find == NULL)
        return kiln_error_set(err, KILN_E_KEY, "\"%.80s\": this program runs no Python", name);
    KilnStatus status = registry->source.find(registry->source.ctx, registry->self, name, kind,
                                              origin, err);
    return status >= 0 ? of_kind(registry, kind, name, ret, err) : status;
}

static KilnStatus no_name(const KilnConfigNode *node, KilnKind kind, KilnError *err)
{
    const char *what = kiln_value_kind(kind);
    char got[KILN_GOT_TEXT];

    if (node->kind == KILN_NODE_SCALAR && node->scalar == KILN_SCALAR_MISSING)
        return kiln_error_set(err, KILN_E_MISSING, "required value missing (name of %s)", what);
    kiln_value_got(node, got, sizeof(got));
    return kiln_error_set(err, KILN_E_TYPE, "expected the name of %s, got %s", what, got);
}

/* The name alone: `written` is a scalar, resolved or not. */
static KilnStatus named_component(const KilnConfig *config, const KilnRegistry *registry,
                                  const KilnConfigNode *written, KilnKind kind,
                                  const KilnComponent **ret, KilnError *err)
{
    const KilnConfigNode *name = NULL;
    KilnStatus status = kiln_config_resolve(config, written, &name, err);
    KilnError inner = { 0 };

    if (status < 0)
        return status; /* the message has its origins */
    if (name == NULL)
        name = written;
    status = name->kind == KILN_NODE_SCALAR && name->scalar == KILN_SCALAR_STR
                 ? kiln_registry_describe(registry, name->text, kind, name->origin.source, ret,
                                          &inner)
                 : no_name(name, kind, &inner);
    if (status < 0 && status != KILN_E_NOMEM)
        kiln_error_about(config, written, name, &inner);
    if (name->layer == KILN_LAYER_DEFAULT && name->origin.line == 0)
        inner.origin = (KilnOrigin) { 0 }; /* the reference to it is the error */
    if (status < 0 && err != NULL)
        *err = inner;
    return status;
}

KilnStatus kiln_node_component(const KilnConfig *config, const KilnRegistry *registry,
                               const KilnConfigNode *node, KilnKind kind, const KilnComponent **ret,
                               KilnError *err)
{
    KilnError inner = { 0 };

    if (node->kind == KILN_NODE_SCALAR)
        return named_component(config, registry, node, kind, ret, err);
    const KilnConfigNode *target = kiln_node_get(node, KILN_TARGET_KEY);
    if (target != NULL)
        return named_component(config, registry, target, kind, ret, err);
    kiln_error_set(&inner, KILN_E_MISSING, "%s without " KILN_TARGET_KEY " where %s is expected",
                   node->kind == KILN_NODE_MAP ? "a mapping" : "a list", kiln_value_kind(kind));
    kiln_error_about(config, node, node, &inner);
    if (err != NULL)
        *err = inner;
    return KILN_E_MISSING;
}

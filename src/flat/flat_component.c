/* Components of callers that know no structs: their options tables and instances. What they do is
 * in flat_callback.c, flat_metric.c and flat_datamodule.c. */
#include "flat/flat_component.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "registry/registry.h"

enum { SLOT = 8 }; /* bytes of a value, a pointer or a count in the options struct */

const KilnFlatComponent *kiln_flat_component_of(const KilnInstance *self)
{
    return (const KilnFlatComponent *)kiln_instance_component(self);
}

void *kiln_flat_object(KilnInstance *self)
{
    return ((const KilnFlatObject *)kiln_state(self))->object;
}

/* ---- Options as JSON ------------------------------------------------------------------------- */

static void write_value(const KilnField *field, const void *at, KilnText *text)
{
    switch (field->type) {
    case KILN_TYPE_BOOL:
        kiln_text_append(text, *(const bool *)at ? "true" : "false");
        break;
    case KILN_TYPE_I64:
        kiln_text_printf(text, "%lld", (long long)*(const int64_t *)at);
        break;
    case KILN_TYPE_F64:
        kiln_text_json_number(text, *(const double *)at);
        break;
    case KILN_TYPE_ENUM:
        kiln_text_json_string(text, field->choices[*(const int64_t *)at].name);
        break;
    default:
        kiln_text_json_string(text, *(char *const *)at);
    }
}

static void write_option(const KilnField *field, const char *options, KilnText *text)
{
    const void *at = options + field->offset;
    const bool is_text = field->type == KILN_TYPE_STR;
    const char *first = NULL;

    if (field->shape == KILN_ONE && !(field->optional && !is_text)) {
        if (is_text && *(char *const *)at == NULL)
            kiln_text_append(text, "null");
        else
            write_value(field, at, text);
        return;
    }
    memcpy(&first, at, sizeof(first));
    if (field->shape == KILN_ONE) {
        if (first == NULL)
            kiln_text_append(text, "null");
        else
            write_value(field, first, text);
        return;
    }
    const size_t n = *(const size_t *)(const void *)(options + field->count_offset);
    kiln_text_char(text, '[');
    for (size_t i = 0; i < n; i++) {
        kiln_text_append(text, i > 0 ? ", " : "");
        write_value(field, first + i * field->item_size, text);
    }
    kiln_text_char(text, ']');
}

/* ---- Instances ------------------------------------------------------------------------------- */

static KilnStatus init(KilnInstance *self, KilnError *err)
{
    const KilnFlatComponent *component = kiln_flat_component_of(self);
    KilnFlatObject *object = kiln_state(self);
    KilnText text = { 0 };
    char *options = NULL;

    kiln_text_char(&text, '{');
    for (size_t i = component->first_own; i < component->n_fields; i++) {
        kiln_text_append(&text, i > component->first_own ? ", " : "");
        kiln_text_json_string(&text, component->fields[i].name);
        kiln_text_append(&text, ": ");
        write_option(&component->fields[i], kiln_opts(self), &text);
    }
    kiln_text_char(&text, '}');
    KilnStatus status = kiln_text_finish(&text, KILN_OK, &options, err);
    if (status >= 0)
        status = component->create(component->ctx, kiln_instance_path(self), options,
                                   &object->object, err);
    object->created = status >= 0;
    free(options);
    return status;
}

void kiln_flat_object_release(KilnInstance *self)
{
    const KilnFlatComponent *component = kiln_flat_component_of(self);
    const KilnFlatObject *object = kiln_state(self);

    if (object->created)
        component->destroy(component->ctx, object->object);
}

/* ---- Components ------------------------------------------------------------------------------ */

static KilnStatus set_kind(KilnFlatComponent *component, const char *kind, KilnError *err)
{
    component->component.kind = kiln_kind_find(kind, strlen(kind));
    switch (component->component.kind) {
    case KILN_KIND_CALLBACK:
        component->component.ops.callback = &component->callback;
        break;
    case KILN_KIND_METRIC:
        kiln_flat_metric_init(component);
        break;
    case KILN_KIND_DATAMODULE:
        kiln_flat_datamodule_init(component);
        break;
    default:
        return kiln_error_set(err, KILN_E_KEY,
                              "kind \"%s\": expected callback, metric or datamodule", kind);
    }
    return KILN_OK;
}

KilnStatus kiln_flat_component_new(const char *kind, const char *name, const char *summary,
                                   KilnFlatCreate *create, KilnFlatDestroy *destroy, void *ctx,
                                   KilnFlatComponent **ret, KilnError *err)
{
    KilnFlatComponent *component = calloc(1, sizeof(*component));

    if (component == NULL)
        return kiln_error_nomem(err, sizeof(*component));
    component->create = create;
    component->destroy = destroy;
    component->ctx = ctx;
    component->component = (KilnComponent) {
        .name = kiln_arena_strdup(&component->arena, name),
        .summary = kiln_arena_strdup(&component->arena, summary),
        .fields = component->fields,
        .state_size = sizeof(KilnFlatObject),
        .init = init,
        .release = kiln_flat_object_release,
    };
    KilnStatus status = set_kind(component, kind, err);
    if (status >= 0 && component->arena.failed)
        status = kiln_error_nomem(err, strlen(name));
    if (status < 0)
        kiln_flat_component_free(component);
    else
        *ret = component;
    return status;
}

void kiln_flat_component_free(KilnFlatComponent *component)
{
    if (component != NULL)
        kiln_arena_release(&component->arena);
    free(component);
}

/* ---- Options tables -------------------------------------------------------------------------- */

/* Bytes of one value of a type; 0: there is no such type. */
static size_t parse_type(const char *type, size_t length, KilnType *ret)
{
    static const struct {
        const char *name;
        KilnType type;
        size_t size;
    } types[] = { { "bool", KILN_TYPE_BOOL, sizeof(bool) },
                  { "int", KILN_TYPE_I64, sizeof(int64_t) },
                  { "float", KILN_TYPE_F64, sizeof(double) },
                  { "str", KILN_TYPE_STR, sizeof(char *) } };

    for (size_t i = 0; i < KILN_COUNT(types); i++)
        if (strlen(types[i].name) == length && strncmp(type, types[i].name, length) == 0) {
            *ret = types[i].type;
            return types[i].size;
        }
    return 0;
}

static void set_choices(KilnFlatComponent *component, KilnField *field, const char *const *choices)
{
    size_t n = 0;

    while (choices[n] != NULL)
        n++;
    KilnChoice *list = kiln_arena_alloc(&component->arena, (n + 1) * sizeof(*list));
    for (size_t i = 0; i < n && list != NULL; i++)
        list[i] = (KilnChoice) { kiln_arena_strdup(&component->arena, choices[i]), (int64_t)i };
    field->type = KILN_TYPE_ENUM;
    field->item_size = sizeof(int64_t);
    field->choices = list;
    field->n_choices = n + 1;
}

KilnStatus kiln_flat_component_option(KilnFlatComponent *component, const char *name,
                                      const char *type, const char *value,
                                      const char *const *choices, const char *help, KilnError *err)
{
    KilnArena *arena = &component->arena;
    const size_t length = strcspn(type, "?[");
    KilnField field = { .name = kiln_arena_strdup(arena, name),
                        .optional = type[length] == '?',
                        .shape = type[length] == '[' ? KILN_LIST : KILN_ONE,
                        .offset = component->component.opts_size,
                        .value = value != NULL ? kiln_arena_strdup(arena, value) : NULL,
                        .min = -INFINITY,
                        .max = INFINITY,
                        .help = kiln_arena_strdup(arena, help) };

    if (component->n_fields == KILN_FLAT_OPTIONS)
        return kiln_error_set(err, KILN_E_RANGE, "%s: a component has at most %d options", name,
                              KILN_FLAT_OPTIONS);
    field.item_size = parse_type(type, length, &field.type);
    if (field.item_size == 0)
        return kiln_error_set(err, KILN_E_TYPE,
                              "%s: type \"%s\": expected bool, int, float or str, or one of these "
                              "with ? or []",
                              name, type);
    if (choices != NULL)
        set_choices(component, &field, choices);
    if (field.type == KILN_TYPE_I64) {
        field.min = -9.2e18;
        field.max = 9.2e18;
    }
    const bool points = field.shape == KILN_LIST || (field.optional && field.type != KILN_TYPE_STR);
    field.size = points ? sizeof(void *) : field.item_size;
    component->component.opts_size += SLOT;
    if (field.shape == KILN_LIST) {
        field.count_offset = component->component.opts_size;
        component->component.opts_size += SLOT;
    }
    if (arena->failed)
        return kiln_error_nomem(err, strlen(name));
    component->fields[component->n_fields++] = field;
    return KILN_OK;
}

KilnStatus kiln_flat_component_add(KilnFlatComponent *component, KilnRegistry *registry,
                                   KilnError *err)
{
    const KilnComponent *const list[] = { &component->component, NULL };

    component->component.n_fields = component->n_fields + 1; /* KILN_FIELD_END among them */
    return kiln_registry_insert(registry, list, err);
}

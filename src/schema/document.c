/* Writes a subtree as the canonical document that libcyaml loads (bind.c): values are read
 * strictly, defaults are filled in, interpolations resolved. */
#include "schema/document.h"

#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "base/utf8.h"
#include "schema/bind.h"
#include "schema/table.h"
#include "schema/field_value.h"

/* ---- Scalars ------------------------------------------------------------------------ */

/* Double-quoted; everything but printable ASCII as an escape, so that neither
 * line folding nor YAML's set of allowed characters matters. */
static void emit_text(KilnText *text, const char *value)
{
    const char *end = value + strlen(value);
    uint32_t c;

    kiln_text_char(text, '"');
    while (value < end) {
        value += kiln_utf8_next(value, (size_t)(end - value), &c);
        if (c == '"' || c == '\\')
            kiln_text_printf(text, "\\%c", (int)c);
        else if (c >= ' ' && c <= '~')
            kiln_text_char(text, (char)c);
        else
            kiln_text_printf(text, "\\U%08x", (unsigned)c);
    }
    kiln_text_char(text, '"');
}

static KilnStatus emit_path(KilnText *text, const char *value, KilnError *err)
{
    const char *home = getenv("HOME");
    char *whole = NULL;

    if ((strcmp(value, "~") == 0 || kiln_starts_with(value, "~/")) &&
        (home == NULL || home[0] == '\0'))
        return kiln_error_set(err, KILN_E_MISSING, "%s: HOME is not set, so ~ can't be expanded",
                              value);
    whole = kiln_path_expand(value);
    if (whole != NULL)
        emit_text(text, whole);
    text->failed = text->failed || whole == NULL;
    free(whole);
    return KILN_OK;
}

/* A document while it is written. */
typedef struct Emit {
    KilnDocument *to;
    const KilnConfig *config; /* NULL: nothing to resolve */
    KilnText path;            /* of the value that is being written */
    KilnArena arena;          /* of defaults */
    KilnError *err;
} Emit;

static const char *key_of(const Emit *emit)
{
    return emit->path.data != NULL ? emit->path.data : "";
}

/* Prefix the value's key to the message. */
static KilnStatus at(const Emit *emit, KilnStatus status)
{
    if (status < 0)
        kiln_error_prefix(emit->err, "%s: ", key_of(emit));
    return status;
}

static KilnStatus emit_scalar(Emit *emit, const KilnField *field, const KilnConfigNode *node)
{
    KilnText *text = &emit->to->text;
    KilnValue value;
    KilnStatus status = kiln_value_read(field, node, &value, emit->err);

    if (status < 0)
        return at(emit, status);
    switch (field->type) {
    case KILN_TYPE_BOOL:
        kiln_text_append(text, value.boolean ? "true" : "false");
        break;
    case KILN_TYPE_I64:
    case KILN_TYPE_ENUM:
    case KILN_TYPE_SIZE:
        kiln_text_printf(text, "%lld", (long long)value.integer);
        break;
    case KILN_TYPE_F64:
    case KILN_TYPE_DURATION: /* libcyaml reads inf and nan, not YAML's .inf and .nan */
        kiln_text_printf(text, "%.17g", value.number);
        break;
    case KILN_TYPE_QUANTITY:
        kiln_text_printf(text, "{of: %lld, value: %.17g}", (long long)value.integer, value.number);
        break;
    case KILN_TYPE_PATH:
        return at(emit, emit_path(text, value.text, emit->err));
    default:
        emit_text(text, value.text);
        break;
    }
    return KILN_OK;
}

/* ---- Structs, lists, mappings --------------------------------------------------------- */

static KilnStatus emit_table(Emit *emit, const KilnConfigNode *map, const KilnField *fields);

static KilnStatus emit_one(Emit *emit, const KilnField *field, const KilnConfigNode *node)
{
    return field->type == KILN_TYPE_STRUCT && node->kind == KILN_NODE_MAP
               ? emit_table(emit, node, field->fields)
               : emit_scalar(emit, field, node);
}

static KilnStatus emit_item(Emit *emit, const KilnField *item, const KilnEntry *entry)
{
    const KilnConfigNode *node;
    KilnStatus status = kiln_value_resolve(emit->config, key_of(emit), entry->value, &node,
                                           emit->err);

    if (status < 0)
        return status;
    if (entry->key != NULL) {
        kiln_text_append(&emit->to->text, "{key: ");
        emit_text(&emit->to->text, entry->key);
        kiln_text_append(&emit->to->text, ", value: ");
    }
    status = emit_one(emit, item, node);
    if (entry->key != NULL)
        kiln_text_char(&emit->to->text, '}');
    return status;
}

static KilnStatus emit_many(Emit *emit, const KilnField *field, const KilnConfigNode *node)
{
    const KilnField item = kiln_field_item(field);
    KilnStatus status = KILN_OK;

    if (node->kind != (field->shape == KILN_LIST ? KILN_NODE_LIST : KILN_NODE_MAP))
        return at(emit, kiln_value_wrong_shape(field, node, emit->err));
    kiln_text_char(&emit->to->text, '[');
    for (size_t i = 0; i < node->count && status == KILN_OK; i++) {
        size_t before = kiln_key_push(&emit->path, node->entries[i].key, i);

        if (i > 0)
            kiln_text_append(&emit->to->text, ", ");
        status = emit_item(emit, &item, &node->entries[i]);
        kiln_key_pop(&emit->path, before);
    }
    kiln_text_char(&emit->to->text, ']');
    return status;
}

/* "name: value", or nothing for null; `start` is where the table begins. */
static KilnStatus emit_option(Emit *emit, const KilnField *field, const KilnConfigNode *map,
                              size_t start)
{
    const KilnConfigNode *node = NULL;
    KilnStatus status = kiln_option_value(emit->config, &emit->arena, key_of(emit), map, field,
                                          &node, emit->err);

    if (status < 0)
        return status;
    bool null = field->optional && kiln_node_is_null(node);
    if (field->optional && field->shape != KILN_ONE)
        kiln_text_char(&emit->to->given, null ? 'n' : 'y');
    if (null)
        return KILN_OK;
    kiln_text_printf(&emit->to->text, "%s%s: ", emit->to->text.length > start ? ", " : "",
                     field->name);
    return field->shape == KILN_ONE ? emit_one(emit, field, node) : emit_many(emit, field, node);
}

static KilnStatus emit_table(Emit *emit, const KilnConfigNode *map, const KilnField *fields)
{
    KilnStatus status = KILN_OK;

    kiln_text_char(&emit->to->text, '{');
    size_t start = emit->to->text.length;
    for (const KilnField *f = fields; f != NULL && f->type != KILN_TYPE_END && status == KILN_OK;
         f++) {
        if (f->type == KILN_TYPE_COMPONENT || f->renamed != NULL)
            continue;
        size_t before = kiln_key_push(&emit->path, f->name, 0);
        status = emit_option(emit, f, map, start);
        kiln_key_pop(&emit->path, before);
    }
    kiln_text_char(&emit->to->text, '}');
    return status;
}

KilnStatus kiln_document_write(const KilnConfig *config, const KilnConfigNode *map,
                               const char *path, const KilnField *fields, KilnDocument *ret,
                               KilnError *err)
{
    Emit emit = { .to = ret, .config = config, .err = err };
    KilnStatus status;

    kiln_text_append(&emit.path, path);
    status = emit_table(&emit, map, fields);
    if (status == KILN_OK && (ret->text.failed || ret->given.failed || emit.path.failed))
        status = kiln_error_nomem(err, ret->text.capacity);
    kiln_text_release(&emit.path);
    kiln_arena_release(&emit.arena);
    return status;
}

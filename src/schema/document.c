/* Reads mappings of options in the order of their tables, and writes the document. */
#include "schema/document.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/system/file.h"
#include "base/utf8.h"
#include "schema/bind.h"
#include "schema/field_value.h"
#include "schema/table.h"

/* A document while it is read. */
typedef struct Reader {
    KilnDocument *to;
    const KilnConfig *config; /* NULL: nothing to resolve */
    const KilnReport *report; /* NULL: `err` is the first error */
    KilnText key;             /* of the value that is being read */
    KilnStatus status;        /* of the first error */
    KilnError *err;
} Reader;

/* ---- Errors --------------------------------------------------------------------------- */

static const char *key_of(const Reader *reader)
{
    return reader->key.data != NULL ? reader->key.data : "";
}

static void fail(Reader *reader, const KilnError *err)
{
    if (reader->status == KILN_OK && reader->report == NULL && reader->err != NULL)
        *reader->err = *err;
    if (reader->status == KILN_OK)
        reader->status = err->status;
}

/* The value of `written` is wrong; the message does not name the key. */
static void refuse(Reader *reader, const KilnOptionsScope *scope, const KilnConfigNode *written,
                   const KilnConfigNode *value, KilnError *err)
{
    if (reader->report != NULL)
        reader->report->refused(reader->report->ctx, scope, key_of(reader), written, value, err);
    else
        kiln_error_prefix(err, "%s: ", key_of(reader));
    fail(reader, err);
}

static void refuse_unknown(Reader *reader, const KilnOptionsScope *scope)
{
    for (size_t i = 0; scope->map != NULL && i < scope->map->count; i++) {
        const KilnEntry *entry = &scope->map->entries[i];

        if (kiln_table_find(scope->fields, entry->key) != NULL ||
            (scope->target && strcmp(entry->key, KILN_TARGET_KEY) == 0) ||
            (scope->open && kiln_table_renamed(scope->fields, entry->key) == NULL))
            continue;
        size_t before = kiln_key_push(&reader->key, entry->key, 0);
        reader->report->unknown(reader->report->ctx, scope, key_of(reader), entry);
        fail(reader, &(KilnError) { .status = KILN_E_KEY });
        kiln_key_pop(&reader->key, before);
    }
}

/* ---- Nodes ---------------------------------------------------------------------------- */

/* The value of `written`; NULL: it does not resolve. */
static const KilnConfigNode *resolve(Reader *reader, const KilnOptionsScope *scope,
                                     const KilnConfigNode *written)
{
    const KilnConfigNode *value = NULL;
    KilnError err = { 0 };

    if (reader->config == NULL)
        return written;
    if (kiln_config_resolve(reader->config, written, &value, &err) < 0) {
        if (reader->report != NULL)
            reader->report->unresolved(reader->report->ctx, written, &err);
        fail(reader, &err);
        return NULL;
    }
    if (value == NULL) {
        kiln_error_set(&err, KILN_E_MISSING, "there is no such value");
        refuse(reader, scope, written, written, &err);
    }
    return value;
}

/* The default of an option that the mapping does not have; NULL: it is required. */
static const KilnConfigNode *default_node(Reader *reader, const KilnOptionsScope *scope,
                                          const KilnField *field)
{
    KilnConfigNode *node = NULL;
    KilnError err = { 0 };

    if (field->value == NULL)
        kiln_error_set(&err, KILN_E_MISSING, "required value missing (%s)", field->help);
    else if (kiln_node_parse(&reader->to->arena, field->value, "default", &node, &err) >= 0)
        return node;
    refuse(reader, scope, scope->missing, scope->missing, &err);
    return NULL;
}

/* ---- Slots ---------------------------------------------------------------------------- */

/* A slot with room for `n` parts. */
static void add_slot(Reader *reader, const KilnField *field, size_t n, bool null)
{
    KilnDocument *to = reader->to;
    KilnPart *parts = kiln_arena_alloc(&to->arena, n * sizeof(KilnPart));

    if (parts == NULL ||
        !KILN_ARENA_RESERVE(&to->arena, to->slots, to->slot_capacity, to->slot_count + 2))
        to->text.failed = true;
    else
        to->slots[to->slot_count++] = (KilnSlot) { .field = field, .parts = parts, .null = null };
}

/* Add a part to the last slot. */
static void add_part(Reader *reader, const KilnConfigNode *written, const KilnConfigNode *value)
{
    KilnDocument *to = reader->to;
    const char *key = kiln_arena_strdup(&to->arena, key_of(reader));

    to->text.failed = to->text.failed || key == NULL;
    if (to->text.failed || kiln_node_is_null(value))
        return;
    KilnSlot *slot = &to->slots[to->slot_count - 1];
    slot->parts[slot->count++] = (KilnPart) { key, written, value };
}

/* ---- Values --------------------------------------------------------------------------- */

/* Double-quoted; everything but printable ASCII as an escape, so that neither
 * line folding nor YAML's set of allowed characters matters. */
static void write_text(KilnText *text, const char *value)
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

/* A leading ~ is the home folder. */
static KilnStatus write_path(KilnText *text, const char *value, KilnError *err)
{
    const char *home = getenv("HOME");
    char *whole = NULL;

    if ((strcmp(value, "~") == 0 || kiln_starts_with(value, "~/")) &&
        (home == NULL || home[0] == '\0'))
        return kiln_error_set(err, KILN_E_MISSING, "%s: HOME is not set, so ~ can't be expanded",
                              value);
    whole = kiln_path_expand(value);
    if (whole != NULL)
        write_text(text, whole);
    text->failed = text->failed || whole == NULL;
    free(whole);
    return KILN_OK;
}

static KilnStatus write_scalar(KilnText *text, const KilnField *field, const KilnConfigNode *node,
                               KilnError *err)
{
    KilnValue value;
    KilnStatus status = kiln_value_read(field, node, &value, err);

    if (status < 0)
        return status;
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
    case KILN_TYPE_IMAGE_SIZE:
        kiln_text_printf(text, "{height: %lld, width: %lld}", (long long)value.integer,
                         (long long)value.integer);
        break;
    case KILN_TYPE_PATH:
        return write_path(text, value.text, err);
    default:
        write_text(text, value.text);
        break;
    }
    return KILN_OK;
}

static void read_table(Reader *reader, const KilnOptionsScope *scope);

static bool is_image_size(const KilnField *field, const KilnConfigNode *value)
{
    return field->type == KILN_TYPE_IMAGE_SIZE && value->kind == KILN_NODE_LIST;
}

/* [height, width], or [n] for both. */
static void read_image_size(Reader *reader, const KilnField *field, const KilnOptionsScope *scope,
                            const KilnConfigNode *written, const KilnConfigNode *list)
{
    KilnField side = *field;
    KilnValue sides[2] = { 0 };
    KilnError err = { 0 };

    side.type = KILN_TYPE_I64;
    side.optional = false;
    if (list->count < 1 || list->count > 2) {
        kiln_error_set(&err, KILN_E_RANGE,
                       "expected [height, width] or one number for both, got %zu numbers",
                       list->count);
        refuse(reader, scope, written, list, &err);
        return;
    }
    for (size_t i = 0; i < list->count; i++) {
        const size_t before = kiln_key_push(&reader->key, NULL, i);
        const KilnConfigNode *value = resolve(reader, scope, list->entries[i].value);

        if (value != NULL && kiln_value_read(&side, value, &sides[i], &err) < 0)
            refuse(reader, scope, list->entries[i].value, value, &err);
        kiln_key_pop(&reader->key, before);
    }
    kiln_text_printf(&reader->to->text, "{height: %lld, width: %lld}", (long long)sides[0].integer,
                     (long long)sides[list->count - 1].integer);
}

/* One value, or one item of a list or mapping. */
static void read_one(Reader *reader, const KilnField *field, const KilnOptionsScope *scope,
                     const KilnConfigNode *written, const KilnConfigNode *value)
{
    KilnError err = { 0 };

    if (field->shape == KILN_ONE && field->type == KILN_TYPE_COMPONENT &&
        (value->kind == KILN_NODE_MAP || kiln_node_is_scalar(value, KILN_SCALAR_STR) ||
         (field->optional && kiln_node_is_null(value)))) {
        add_part(reader, written, value);
    } else if (field->shape == KILN_ONE && field->type == KILN_TYPE_STRUCT &&
               value->kind == KILN_NODE_MAP) {
        read_table(reader,
                   &(KilnOptionsScope) { .fields = field->fields,
                                         .map = value,
                                         .missing = scope->map != NULL ? value : scope->missing,
                                         .via = written != value ? written : scope->via,
                                         .name = field->name,
                                         .plain = scope->plain,
                                         .outer = scope });
    } else if (is_image_size(field, value)) {
        read_image_size(reader, field, scope, written, value);
    } else if (write_scalar(&reader->to->text, field, value, &err) < 0) {
        refuse(reader, scope, written, value, &err);
    } else if (field->writes) {
        add_part(reader, written, value);
    }
}

static void read_items(Reader *reader, const KilnField *field, const KilnOptionsScope *scope,
                       const KilnConfigNode *written, const KilnConfigNode *many)
{
    const KilnField item = kiln_field_item(field);
    KilnText *text = &reader->to->text;
    KilnOptionsScope items = *scope;

    items.via = written != many ? written : scope->via;
    kiln_text_char(text, '[');
    for (size_t i = 0; i < many->count; i++) {
        const KilnEntry *entry = &many->entries[i];
        size_t before = kiln_key_push(&reader->key, entry->key, i);
        const KilnConfigNode *value = resolve(reader, &items, entry->value);

        kiln_text_append(text, i > 0 ? ", " : "");
        if (entry->key != NULL) {
            kiln_text_append(text, "{key: ");
            write_text(text, entry->key);
            kiln_text_append(text, ", value: ");
        }
        if (value != NULL)
            read_one(reader, &item, &items, entry->value, value);
        kiln_text_append(text, entry->key != NULL ? "}" : "");
        kiln_key_pop(&reader->key, before);
    }
    kiln_text_char(text, ']');
}

/* "name: value", or nothing for null and components; `start` is where the table begins. */
static void read_option(Reader *reader, const KilnField *field, const KilnOptionsScope *scope,
                        size_t start)
{
    const bool component = field->type == KILN_TYPE_COMPONENT;
    KilnText *text = &reader->to->text;
    size_t before = text->length;
    const KilnConfigNode *written = kiln_node_get(scope->map, field->name), *value = NULL;
    KilnOptionsScope around = *scope;

    if (written == NULL) {
        written = default_node(reader, scope, field);
        around.map = NULL;
    }
    if (written != NULL)
        value = resolve(reader, scope, written);
    if (value == NULL)
        return;
    /* `callbacks: null` means none of them. */
    bool null = kiln_node_is_null(value) &&
                (field->optional || (component && field->shape == KILN_MAPPING));
    null = null || (field->optional && is_image_size(field, value) && value->count == 0);
    if (component || field->writes || (field->optional && field->shape != KILN_ONE))
        add_slot(reader, field, field->shape == KILN_ONE ? 1 : value->count, null);
    if (null)
        return;
    kiln_text_printf(text, "%s%s: ", text->length > start ? ", " : "", field->name);
    if ((field->shape == KILN_LIST && value->kind == KILN_NODE_LIST) ||
        (field->shape == KILN_MAPPING && value->kind == KILN_NODE_MAP))
        read_items(reader, field, &around, written, value);
    else
        read_one(reader, field, &around, written, value);
    if (component)
        kiln_key_pop(text, before);
}

static void read_table(Reader *reader, const KilnOptionsScope *scope)
{
    KilnText *text = &reader->to->text;

    if (reader->report != NULL)
        refuse_unknown(reader, scope);
    kiln_text_char(text, '{');
    size_t start = text->length;
    for (const KilnField *f = scope->fields; f != NULL && f->type != KILN_TYPE_END; f++) {
        if (f->renamed != NULL || (scope->plain && f->type == KILN_TYPE_COMPONENT))
            continue;
        size_t before = kiln_key_push(&reader->key, f->name, 0);
        read_option(reader, f, scope, start);
        kiln_key_pop(&reader->key, before);
    }
    kiln_text_char(text, '}');
}

KilnStatus kiln_document_read(const KilnConfig *config, const char *key,
                              const KilnOptionsScope *scope, const KilnReport *report,
                              KilnDocument *ret, KilnError *err)
{
    Reader reader = { .to = ret, .config = config, .report = report, .err = err };

    kiln_text_append(&reader.key, key);
    if (KILN_ARENA_RESERVE(&ret->arena, ret->slots, ret->slot_capacity, 1))
        read_table(&reader, scope);
    else
        ret->text.failed = true;
    if (ret->text.failed || reader.key.failed)
        reader.status = kiln_error_nomem(err, ret->text.capacity);
    kiln_text_release(&reader.key);
    return reader.status;
}

void kiln_document_release(KilnDocument *document)
{
    kiln_text_release(&document->text);
    kiln_arena_release(&document->arena);
}

/* Loads a checked subtree into a component's options struct through libcyaml,
 * and frees it; the only file that knows libcyaml. libcyaml is not asked to
 * check anything: it gets a canonical document in which every value was
 * already read strictly (see docs/design.md). */
#include "schema/bind.h"

#include <cyaml/cyaml.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/table.h"
#include "schema/value.h"

/* ---- The libcyaml schema of a table ------------------------------------------ */

/* Lives on the stack: freeing options must not be able to fail. */
typedef struct Schema {
    cyaml_schema_field_t fields[KILN_MAX_FIELDS + 1];
    cyaml_schema_value_t items[KILN_MAX_FIELDS]; /* of lists */
    cyaml_schema_value_t top;
} Schema;

static const cyaml_schema_value_t text_value = {
    .type = CYAML_STRING,
    .flags = CYAML_FLAG_POINTER, /* never the NULL variants: they eat "" and "null" */
    .data_size = sizeof(char),
    .string = { .min = 0, .max = CYAML_UNLIMITED },
};

static cyaml_schema_value_t one_value(const KilnField *field)
{
    switch (field->type) {
    case KILN_TYPE_BOOL:
        return (cyaml_schema_value_t) { .type = CYAML_BOOL, .data_size = sizeof(bool) };
    case KILN_TYPE_I64:
    case KILN_TYPE_ENUM: /* the document holds the choice's value */
    case KILN_TYPE_SIZE:
        return (cyaml_schema_value_t) { .type = CYAML_INT, .data_size = sizeof(int64_t) };
    case KILN_TYPE_F64:
    case KILN_TYPE_DURATION:
        return (cyaml_schema_value_t) { .type = CYAML_FLOAT, .data_size = sizeof(double) };
    default:
        return text_value;
    }
}

static void schema_make(const KilnField *fields, size_t size, Schema *ret)
{
    size_t n = 0;

    memset(ret, 0, sizeof(*ret));
    for (const KilnField *f = fields; f != NULL && f->type != KILN_TYPE_END; f++) {
        cyaml_schema_field_t *to = &ret->fields[n];

        if (f->type == KILN_TYPE_COMPONENT || n == KILN_MAX_FIELDS)
            continue; /* the builder's affair */
        *to = (cyaml_schema_field_t) { .key = f->name, .data_offset = (uint32_t)f->offset };
        if (f->shape == KILN_LIST) {
            ret->items[n] = one_value(f);
            to->count_offset = (uint32_t)f->count_offset;
            to->count_size = sizeof(size_t);
            to->value = (cyaml_schema_value_t) {
                .type = CYAML_SEQUENCE,
                .flags = CYAML_FLAG_POINTER,
                .data_size = f->type == KILN_TYPE_STR ? sizeof(char *) : sizeof(int64_t),
                .sequence = { .entry = &ret->items[n], .min = 0, .max = CYAML_UNLIMITED },
            };
        } else {
            to->value = one_value(f);
            if (f->optional) /* null: the key is left out of the document */
                to->value.flags |= CYAML_FLAG_OPTIONAL;
        }
        n++;
    }
    ret->top = (cyaml_schema_value_t) { .type = CYAML_MAPPING,
                                        .flags = CYAML_FLAG_POINTER,
                                        .data_size = (uint32_t)size,
                                        .mapping = { .fields = ret->fields } };
}

typedef struct Log {
    char text[512];
} Log;

static void log_keep(cyaml_log_t level, void *ctx, const char *format, va_list args)
    KILN_PRINTF(3, 0);
static void log_keep(cyaml_log_t level, void *ctx, const char *format, va_list args)
{
    Log *log = ctx;
    size_t used = strlen(log->text);

    (void)level;
    vsnprintf(log->text + used, sizeof(log->text) - used, format, args);
}

static cyaml_config_t cyaml_setup(Log *log)
{
    return (cyaml_config_t) { .log_ctx = log,
                              .log_fn = log_keep,
                              .mem_fn = cyaml_mem,
                              .log_level = CYAML_LOG_ERROR,
                              .flags = CYAML_CFG_NO_ALIAS };
}

/* ---- The canonical document ---------------------------------------------------- */

/* One character of valid UTF-8 at *p, which is moved behind it. */
static unsigned long next_character(const char **p)
{
    const unsigned char *s = (const unsigned char *)*p;
    int more = s[0] < 0x80 ? 0 : s[0] < 0xE0 ? 1 : s[0] < 0xF0 ? 2 : 3;
    unsigned long c = more == 0 ? s[0] : s[0] & (0x3FU >> more);

    for (int i = 1; i <= more; i++)
        c = c << 6 | (s[i] & 0x3FU);
    *p += more + 1;
    return c;
}

/* Double-quoted; everything but printable ASCII as an escape, so that neither
 * line folding nor YAML's set of allowed characters matters. */
static void emit_text(KilnText *text, const char *value)
{
    kiln_text_char(text, '"');
    while (*value != '\0') {
        unsigned long c = next_character(&value);

        if (c == '"' || c == '\\')
            kiln_text_printf(text, "\\%c", (int)c);
        else if (c >= ' ' && c <= '~')
            kiln_text_char(text, (char)c);
        else
            kiln_text_printf(text, "\\U%08lx", c);
    }
    kiln_text_char(text, '"');
}

static KilnStatus emit_path(KilnText *text, const char *value, KilnError *err)
{
    KilnText whole = { 0 };

    if (strcmp(value, "~") == 0 || kiln_starts_with(value, "~/")) {
        const char *home = getenv("HOME");

        if (home == NULL || home[0] == '\0')
            return kiln_error_set(err, KILN_E_MISSING,
                                  "%s: HOME is not set, so ~ can't be expanded", value);
        kiln_text_append(&whole, home);
        value++;
    }
    kiln_text_append(&whole, value);
    if (whole.failed)
        text->failed = true;
    else
        emit_text(text, whole.data);
    kiln_text_release(&whole);
    return KILN_OK;
}

/* One table's document while it is written. */
typedef struct Emit {
    KilnText text;
    const KilnConfig *config; /* NULL: nothing to resolve */
    const char *path;
    KilnArena arena; /* of defaults */
    KilnError *err;
} Emit;

/* Put the option's key in front of the message. */
static KilnStatus at(const Emit *emit, const KilnField *field, KilnStatus status)
{
    if (status < 0)
        kiln_error_prefix(emit->err, "%s%s%s: ", emit->path, emit->path[0] != '\0' ? "." : "",
                          field->name);
    return status;
}

static KilnStatus emit_value(Emit *emit, const KilnField *field, const KilnConfigNode *node)
{
    KilnText *text = &emit->text;
    KilnValue value;
    KilnStatus status = kiln_value_read(field, node, &value, emit->err);

    if (status < 0)
        return at(emit, field, status);
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
    case KILN_TYPE_PATH:
        return at(emit, field, emit_path(text, value.text, emit->err));
    default:
        emit_text(text, value.text);
        break;
    }
    return KILN_OK;
}

/* The message of a node that does not resolve names its key itself. */
static KilnStatus resolve(const Emit *emit, const KilnField *field, const KilnConfigNode *node,
                          const KilnConfigNode **ret)
{
    *ret = node;
    if (emit->config == NULL)
        return KILN_OK;
    *ret = NULL;
    KilnStatus status = kiln_config_resolve(emit->config, node, ret, emit->err);
    if (status == KILN_OK && *ret == NULL)
        status = at(emit, field,
                    kiln_error_set(emit->err, KILN_E_MISSING, "there is no such value"));
    return status;
}

static KilnStatus emit_list(Emit *emit, const KilnField *field, const KilnConfigNode *list)
{
    const KilnConfigNode *item;
    KilnStatus status = KILN_OK;

    if (list->kind != KILN_NODE_LIST)
        return at(emit, field, kiln_error_set(emit->err, KILN_E_TYPE, "expected a list"));
    kiln_text_char(&emit->text, '[');
    for (size_t i = 0; i < list->count && status == KILN_OK; i++) {
        if (i > 0)
            kiln_text_char(&emit->text, ',');
        status = resolve(emit, field, list->entries[i].value, &item);
        if (status == KILN_OK)
            status = emit_value(emit, field, item);
    }
    kiln_text_char(&emit->text, ']');
    return status;
}

/* The field's line; `written` NULL: its default. */
static KilnStatus emit_field(Emit *emit, const KilnField *field, const KilnConfigNode *written)
{
    const KilnConfigNode *node = NULL;
    KilnConfigNode *parsed = NULL;
    KilnStatus status;

    if (written == NULL && field->value == NULL)
        return at(
            emit, field,
            kiln_error_set(emit->err, KILN_E_MISSING, "required value missing (%s)", field->help));
    if (written == NULL) {
        status = kiln_node_parse(&emit->arena, field->value, "default", &parsed, emit->err);
        if (status < 0)
            return at(emit, field, status);
        written = parsed;
    }
    status = resolve(emit, field, written, &node);
    if (status < 0)
        return status;
    if (field->optional && node->kind == KILN_NODE_SCALAR && node->scalar == KILN_SCALAR_NULL)
        return KILN_OK;
    kiln_text_printf(&emit->text, "%s: ", field->name);
    status = field->shape == KILN_LIST ? emit_list(emit, field, node)
                                       : emit_value(emit, field, node);
    kiln_text_char(&emit->text, '\n');
    return status;
}

static KilnStatus emit_table(Emit *emit, const KilnConfigNode *map, const KilnField *fields)
{
    KilnStatus status = KILN_OK;

    kiln_text_append(&emit->text, "---\n");
    size_t start = emit->text.length;
    for (const KilnField *f = fields; f != NULL && f->type != KILN_TYPE_END; f++) {
        if (f->type == KILN_TYPE_COMPONENT)
            continue;
        status = emit_field(emit, f, map != NULL ? kiln_node_get(map, f->name) : NULL);
        if (status < 0)
            return status;
    }
    if (emit->text.length == start)
        kiln_text_append(&emit->text, "{}\n");
    return emit->text.failed ? kiln_error_nomem(emit->err, emit->text.capacity) : KILN_OK;
}

/* ---- Loading and freeing -------------------------------------------------------- */

static KilnStatus load(const Emit *emit, const KilnField *fields, size_t size, void **ret)
{
    Log log = { "" };
    cyaml_config_t setup = cyaml_setup(&log);
    Schema schema;

    schema_make(fields, size, &schema);
    cyaml_err_t code = cyaml_load_data((const uint8_t *)emit->text.data, emit->text.length, &setup,
                                       &schema.top, ret, NULL);
    if (code == CYAML_OK)
        return KILN_OK;
    if (code == CYAML_ERR_OOM)
        return kiln_error_nomem(emit->err, size);
    return kiln_error_set(emit->err, KILN_E_INTERNAL, "%s: libcyaml: %s: %s", emit->path,
                          cyaml_strerror(code), log.text);
}

KilnStatus kiln_bind(const KilnConfig *config, const KilnConfigNode *map, const char *path,
                     const KilnField *fields, size_t size, void **ret, KilnError *err)
{
    Emit emit = { .config = config, .path = path, .err = err };
    void *options = NULL;

    if (size == 0) {
        *ret = NULL;
        return KILN_OK;
    }
    KilnStatus status = emit_table(&emit, map, fields);
    if (status == KILN_OK)
        status = load(&emit, fields, size, &options);
    if (status == KILN_OK)
        *ret = options;
    kiln_text_release(&emit.text);
    kiln_arena_release(&emit.arena);
    return status;
}

void kiln_options_free(const KilnField *fields, size_t size, void *options)
{
    Log log = { "" };
    cyaml_config_t setup = cyaml_setup(&log);
    Schema schema;

    if (options == NULL)
        return;
    schema_make(fields, size, &schema);
    (void)cyaml_free(&setup, &schema.top, options, 0);
}

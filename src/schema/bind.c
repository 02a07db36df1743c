/* Loads a checked subtree into a component's options struct through libcyaml, and frees it; the
 * only file that knows libcyaml. libcyaml checks nothing: its input is a canonical document in
 * which every value was already read strictly (document.c, docs/design.md). */
#include "schema/bind.h"

#include <cyaml/cyaml.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/table.h"

/* ---- The libcyaml schema of a table ------------------------------------------ */

/* Each row may need a table of its own or a pair's (key, value, end), each table an end. */
enum { MOST_FIELDS = 5 * KILN_MAX_ROWS + 1, MOST_ITEMS = KILN_MAX_ROWS };

/* Lives on the stack: freeing options must not be able to fail. */
typedef struct Schema {
    cyaml_schema_field_t fields[MOST_FIELDS];
    cyaml_schema_value_t items[MOST_ITEMS]; /* of lists and maps */
    size_t field_count, item_count;
    bool full; /* the table has more rows than kiln_table_check lets pass */
    cyaml_schema_value_t top;
} Schema;

static const cyaml_schema_value_t text_value = {
    .type = CYAML_STRING,
    .flags = CYAML_FLAG_POINTER, /* never the NULL variants: they eat "" and "null" */
    .data_size = sizeof(char),
    .string = { .min = 0, .max = CYAML_UNLIMITED },
};

static cyaml_schema_field_t *add_table(Schema *schema, const KilnField *fields);

static cyaml_schema_value_t mapping_value(const cyaml_schema_field_t *fields, size_t size)
{
    return (cyaml_schema_value_t) { .type = CYAML_MAPPING,
                                    .data_size = (uint32_t)size,
                                    .mapping = { .fields = fields } };
}

/* {of: 1, value: 0.25} */
static const cyaml_schema_field_t quantity_fields[] = {
    { .key = "of",
      .data_offset = offsetof(KilnQuantity, of),
      .value = { .type = CYAML_INT, .data_size = sizeof(int64_t) } },
    { .key = "value",
      .data_offset = offsetof(KilnQuantity, value),
      .value = { .type = CYAML_FLOAT, .data_size = sizeof(double) } },
    { .key = NULL },
};

static const cyaml_schema_field_t size_fields[] = {
    { .key = "height",
      .data_offset = offsetof(KilnSize, height),
      .value = { .type = CYAML_INT, .data_size = sizeof(int64_t) } },
    { .key = "width",
      .data_offset = offsetof(KilnSize, width),
      .value = { .type = CYAML_INT, .data_size = sizeof(int64_t) } },
    { .key = NULL },
};

static cyaml_schema_value_t one_value(Schema *schema, const KilnField *field)
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
    case KILN_TYPE_QUANTITY:
        return mapping_value(quantity_fields, sizeof(KilnQuantity));
    case KILN_TYPE_IMAGE_SIZE:
        return mapping_value(size_fields, sizeof(KilnSize));
    case KILN_TYPE_STRUCT:
        return mapping_value(add_table(schema, field->fields), field->item_size);
    default:
        return text_value;
    }
}

/* Room for `n` fields and their end; NULL when there is none. */
static cyaml_schema_field_t *take_fields(Schema *schema, size_t n)
{
    cyaml_schema_field_t *fields = &schema->fields[schema->field_count];

    if (n >= MOST_FIELDS - schema->field_count) {
        schema->full = true;
        return NULL;
    }
    memset(fields, 0, (n + 1) * sizeof(*fields));
    schema->field_count += n + 1;
    return fields;
}

/* A mapping's pair: {key: "text", value: ...}. */
static cyaml_schema_value_t pair_value(Schema *schema, const KilnField *field)
{
    cyaml_schema_field_t *fields = take_fields(schema, 2);

    if (fields != NULL) {
        fields[0] = (cyaml_schema_field_t) { .key = "key", .value = text_value };
        fields[1] = (cyaml_schema_field_t) { .key = "value",
                                             .data_offset = (uint32_t)field->value_offset,
                                             .value = one_value(schema, field) };
    }
    return mapping_value(fields, field->pair_size);
}

static void many_values(Schema *schema, const KilnField *field, cyaml_schema_field_t *to)
{
    bool map = field->shape == KILN_MAPPING;

    if (schema->item_count == MOST_ITEMS) {
        schema->full = true;
        return;
    }
    cyaml_schema_value_t *item = &schema->items[schema->item_count++];
    *item = map ? pair_value(schema, field) : one_value(schema, field);
    to->count_offset = (uint32_t)field->count_offset;
    to->count_size = sizeof(size_t);
    to->value = (cyaml_schema_value_t) {
        .type = CYAML_SEQUENCE,
        .flags = CYAML_FLAG_POINTER,
        .data_size = (uint32_t)(map ? field->pair_size : field->item_size),
        .sequence = { .entry = item, .min = 0, .max = CYAML_UNLIMITED },
    };
}

static cyaml_schema_field_t *add_table(Schema *schema, const KilnField *fields)
{
    cyaml_schema_field_t *table = take_fields(schema, kiln_table_count(fields)), *to = table;

    for (const KilnField *f = fields; table != NULL && f != NULL && f->type != KILN_TYPE_END; f++) {
        if (f->type == KILN_TYPE_COMPONENT || f->renamed != NULL)
            continue; /* the builder fills in components */
        *to = (cyaml_schema_field_t) { .key = f->name, .data_offset = (uint32_t)f->offset };
        if (f->shape == KILN_ONE)
            to->value = one_value(schema, f);
        else
            many_values(schema, f, to);
        if (f->optional) /* null: the key is left out of the document */
            to->value.flags |= CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL;
        to++;
    }
    return table;
}

/* False when the table is larger than any that passes the self-check. */
static bool schema_make(const KilnField *fields, size_t size, Schema *ret)
{
    ret->field_count = ret->item_count = 0;
    ret->full = false;
    ret->top = mapping_value(add_table(ret, fields), size);
    ret->top.flags = CYAML_FLAG_POINTER;
    return !ret->full;
}

enum { LOG_TEXT = 512 };

static void log_keep(cyaml_log_t level, void *ctx, const char *format, va_list args)
    KILN_PRINTF(3, 0);
static void log_keep(cyaml_log_t level, void *ctx, const char *format, va_list args)
{
    char *log = ctx;
    size_t used = strlen(log);

    (void)level;
    vsnprintf(log + used, LOG_TEXT - used, format, args);
}

static cyaml_config_t cyaml_setup(char log[LOG_TEXT])
{
    return (cyaml_config_t) { .log_ctx = log,
                              .log_fn = log_keep,
                              .mem_fn = cyaml_mem,
                              .log_level = CYAML_LOG_ERROR,
                              .flags = CYAML_CFG_NO_ALIAS };
}

/* ---- Slots ---------------------------------------------------------------------- */

static bool place_slots(const KilnField *fields, char *base, KilnSlot **next);

/* Those of the struct at `at`, or of each of a list or mapping of them. */
static bool place_nested(const KilnField *field, char *at, size_t count, KilnSlot **next)
{
    bool map = field->shape == KILN_MAPPING, good = true;
    size_t stride = map ? field->pair_size : field->item_size;

    for (size_t i = 0; at != NULL && i < count && good; i++)
        good = place_slots(field->fields, at + i * stride + (map ? field->value_offset : 0), next);
    return good;
}

/* Set where the members of the slots are. libcyaml gives NULL for an empty sequence; of an optional
 * list NULL means null. False when memory is out. */
static bool place_slots(const KilnField *fields, char *base, KilnSlot **next)
{
    bool good = true;

    for (const KilnField *f = fields; f != NULL && f->type != KILN_TYPE_END && good; f++) {
        bool many = f->shape != KILN_ONE;
        char *value = base + f->offset;
        size_t count = 1;

        if (many || f->optional)
            memcpy(&value, base + f->offset, sizeof(value));
        if (many)
            memcpy(&count, base + f->count_offset, sizeof(count));
        if ((*next)->field == f) {
            const KilnSlot *slot = *next;

            (*next)++->base = base;
            if (f->type != KILN_TYPE_COMPONENT && many && !slot->null && value == NULL) {
                value = calloc(1, 1);
                memcpy(base + f->offset, &value, sizeof(value));
                good = value != NULL;
            }
        }
        if (f->type == KILN_TYPE_STRUCT && good)
            good = place_nested(f, value, count, next);
    }
    return good;
}

/* ---- Loading and freeing -------------------------------------------------------- */

KilnStatus kiln_options_load(const KilnDocument *document, const char *path,
                             const KilnField *fields, size_t size, void **ret, KilnError *err)
{
    char log[LOG_TEXT] = "";
    cyaml_config_t setup = cyaml_setup(log);
    KilnSlot *slots = document->slots;
    void *options = NULL;
    Schema schema;

    *ret = NULL;
    if (size == 0)
        return KILN_OK;
    if (!schema_make(fields, size, &schema))
        return kiln_error_set(err, KILN_E_INTERNAL, "%s: more than %d options", path,
                              KILN_MAX_ROWS);
    cyaml_err_t code = cyaml_load_data((const uint8_t *)document->text.data, document->text.length,
                                       &setup, &schema.top, &options, NULL);
    if (code == CYAML_OK && !place_slots(fields, options, &slots)) {
        (void)cyaml_free(&setup, &schema.top, options, 0);
        code = CYAML_ERR_OOM;
    }
    if (code == CYAML_ERR_OOM)
        return kiln_error_nomem(err, size);
    if (code != CYAML_OK)
        return kiln_error_set(err, KILN_E_INTERNAL, "%s: libcyaml: %s: %s", path,
                              cyaml_strerror(code), log);
    *ret = options;
    return KILN_OK;
}

KilnStatus kiln_bind(const KilnConfig *config, const KilnConfigNode *map, const char *path,
                     const KilnField *fields, size_t size, void **ret, KilnError *err)
{
    const KilnOptionsScope scope = { .fields = fields, .map = map, .missing = map, .plain = true };
    KilnDocument document = { 0 };
    void *options = NULL;
    KilnStatus status = kiln_document_read(config, path, &scope, NULL, &document, err);

    if (status == KILN_OK)
        status = kiln_options_load(&document, path, fields, size, &options, err);
    if (status == KILN_OK)
        *ret = options;
    kiln_document_release(&document);
    return status;
}

void kiln_options_free(const KilnField *fields, size_t size, void *options)
{
    char log[LOG_TEXT] = "";
    cyaml_config_t setup = cyaml_setup(log);
    Schema schema;

    if (options != NULL && schema_make(fields, size, &schema))
        (void)cyaml_free(&setup, &schema.top, options, 0);
}

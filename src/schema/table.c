/* Facts about options tables, and their self-check: a wrong row is an error when the table is
 * registered, not when somebody uses the option. */
#include "schema/table.h"

#include <math.h>
#include <string.h>

#include "base/text.h"
#include "schema/document.h"

const KilnTypeInfo *kiln_type_info(KilnType type)
{
    static const KilnTypeInfo all[] = {
        [KILN_TYPE_END] = { 0 },
        [KILN_TYPE_BOOL] = { "bool", "true or false", "booleans", sizeof(bool), false },
        [KILN_TYPE_I64] = { "int", "an integer", "integers", sizeof(int64_t), true },
        [KILN_TYPE_F64] = { "float", "a number", "numbers", sizeof(double), true },
        [KILN_TYPE_STR] = { "text", "text", "texts", sizeof(char *), false },
        [KILN_TYPE_PATH] = { "path", "a path", "paths", sizeof(char *), false },
        [KILN_TYPE_ENUM] = { "choice", NULL, "choices", sizeof(int64_t), false },
        [KILN_TYPE_DURATION] = { "duration", "a duration (90s, 1h30m, 00:15:00)", "durations",
                                 sizeof(double), true },
        [KILN_TYPE_SIZE] = { "size", "a size (512, 64MiB, 2GB)", "sizes", sizeof(int64_t), true },
        [KILN_TYPE_QUANTITY] = { "quantity", NULL, "quantities", sizeof(KilnQuantity), false },
        [KILN_TYPE_STRUCT] = { "mapping", "a mapping of options", "mappings", 0, false },
        [KILN_TYPE_COMPONENT] = { "component", NULL, "components", sizeof(void *), false },
        [KILN_TYPE_IMAGE_SIZE] = { "image size", "an image size ([24, 32], or 32 for both)", NULL,
                                   sizeof(KilnSize), true },
    };

    return (size_t)type < KILN_COUNT(all) ? &all[type] : &all[KILN_TYPE_END];
}

const KilnQuantityForm kiln_quantity_forms[KILN_QUANTITY_FORMS] = {
    { KILN_ALLOW_BOOL, "bool", "true or false" },
    { KILN_ALLOW_COUNT, "count", "a count (3)" },
    { KILN_ALLOW_FRACTION, "fraction", "a fraction from 0.0 to 1.0 (0.25)" },
    { KILN_ALLOW_DURATION, "duration", "a duration (90s, 1h30m, 00:15:00)" },
};

size_t kiln_table_count(const KilnField *fields)
{
    size_t n = 0;

    while (fields != NULL && fields[n].type != KILN_TYPE_END)
        n++;
    return n;
}

static const KilnField *find(const KilnField *fields, const char *name, bool renamed)
{
    for (size_t i = 0; fields != NULL && fields[i].type != KILN_TYPE_END; i++)
        if ((fields[i].renamed != NULL) == renamed && strcmp(fields[i].name, name) == 0)
            return &fields[i];
    return NULL;
}

const KilnField *kiln_table_find(const KilnField *fields, const char *name)
{
    return find(fields, name, false);
}

const KilnField *kiln_table_renamed(const KilnField *fields, const char *name)
{
    return find(fields, name, true);
}

const char *kiln_table_nearest(const KilnField *fields, const char *name)
{
    const char *names[KILN_MAX_FIELDS];
    size_t n = 0;

    for (size_t i = 0; i < kiln_table_count(fields) && n < KILN_MAX_FIELDS; i++)
        if (fields[i].renamed == NULL)
            names[n++] = fields[i].name;
    return kiln_nearest(name, names, n);
}

KilnField kiln_field_item(const KilnField *field)
{
    KilnField item = *field;

    /* null removes a component from a mapping. */
    item.optional = field->type == KILN_TYPE_COMPONENT && field->shape == KILN_MAPPING;
    item.shape = KILN_ONE;
    return item;
}

bool kiln_is_snake_case(const char *name)
{
    if (name == NULL || name[0] < 'a' || name[0] > 'z')
        return false;
    return name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_")] == '\0';
}

/* A table that is being checked. */
typedef struct Table {
    const KilnField *fields;
    size_t n; /* rows, with KILN_FIELD_END */
    size_t opts_size;
    const char *path; /* "window.", the prefix of its options' names */
    int depth;
    size_t *rows; /* of all tables */
} Table;

static KilnStatus bad(const Table *table, const KilnField *field, const char *what, KilnError *err)
{
    return kiln_error_set(err, KILN_E_PLUGIN, "option %s%s: %s", table->path, field->name, what);
}

static bool is_pointer(const KilnField *f)
{
    bool text = f->type == KILN_TYPE_STR || f->type == KILN_TYPE_PATH ||
                f->type == KILN_TYPE_COMPONENT;

    return f->shape != KILN_ONE || (f->optional && !text);
}

static bool inside(size_t offset, size_t size, size_t total)
{
    return size <= total && offset <= total - size;
}

static KilnStatus check_layout(const Table *table, const KilnField *f, KilnError *err)
{
    size_t one = kiln_type_info(f->type)->size;

    if ((int)f->type < KILN_TYPE_END || f->type >= KILN_TYPE_COUNT || (int)f->shape < KILN_ONE ||
        f->shape > KILN_MAPPING)
        return bad(table, f, "kiln does not know its type or shape", err);
    if (f->item_size == 0 || (one != 0 && f->item_size != one))
        return bad(table, f, "the size of a value (item_size) is not its type's", err);
    if (f->size != (is_pointer(f) ? sizeof(void *) : f->item_size) ||
        !inside(f->offset, f->size, table->opts_size))
        return bad(table, f, "its member is not within the options struct (opts_size)", err);
    if (f->shape != KILN_ONE && !inside(f->count_offset, sizeof(size_t), table->opts_size))
        return bad(table, f, "its count is not within the options struct (opts_size)", err);
    if (f->shape == KILN_MAPPING && f->type != KILN_TYPE_COMPONENT &&
        (f->value_offset < sizeof(char *) || !inside(f->value_offset, f->item_size, f->pair_size)))
        return bad(table, f, "key and value are not within a pair (pair_size)", err);
    return KILN_OK;
}

static KilnStatus check_limits(const Table *table, const KilnField *f, KilnError *err)
{
    if (kiln_type_info(f->type)->bounded && !(f->min <= f->max))
        return bad(table, f, "its lower bound is above the upper one", err);
    if (f->type == KILN_TYPE_QUANTITY &&
        (f->allowed & (KILN_ALLOW_COUNT | KILN_ALLOW_FRACTION | KILN_ALLOW_DURATION)) == 0)
        return bad(table, f, "it allows neither counts, fractions nor durations", err);
    if (f->type == KILN_TYPE_COMPONENT &&
        ((int)f->component_kind < 0 || f->component_kind >= KILN_KIND_COUNT))
        return bad(table, f, "kiln does not know its kind of component", err);
    if (f->type != KILN_TYPE_ENUM)
        return KILN_OK;
    if (f->choices == NULL || (f->n_choices == 1 && f->choices[0].name == NULL))
        return bad(table, f, "it has no choices", err);
    if (f->n_choices == 0 || f->choices[f->n_choices - 1].name != NULL)
        return bad(table, f,
                   "its list of choices has no end: write { NULL, 0 } as its last row, and give "
                   "the array itself",
                   err);
    for (const KilnChoice *c = f->choices; c->name != NULL; c++)
        for (const KilnChoice *d = f->choices; d != c; d++)
            if (strcmp(c->name, d->name) == 0)
                return bad(table, f, "two choices have the same name", err);
    return KILN_OK;
}

/* ---- Defaults --------------------------------------------------------------------- */

/* Keep the first error. A default may refer to other options, which are checked when it is used,
 * and leave out required ones. */
static void keep_refused(void *ctx, const KilnOptionsScope *scope, const char *key,
                         const KilnConfigNode *written, const KilnConfigNode *value, KilnError *err)
{
    KilnError *first = ctx;

    (void)scope;
    (void)key;
    (void)written;
    if (first->status == KILN_OK && err->status != KILN_E_MISSING &&
        !kiln_node_is_scalar(value, KILN_SCALAR_INTERPOLATION))
        *first = *err;
}

static void keep_unknown(void *ctx, const KilnOptionsScope *scope, const char *key,
                         const KilnEntry *entry)
{
    KilnError *first = ctx;

    (void)scope;
    (void)key;
    if (first->status == KILN_OK)
        kiln_error_set(first, KILN_E_KEY, "%s is not one of its options", entry->key);
}

/* The default is read like a value. */
static KilnStatus check_default(const Table *table, const KilnField *f, KilnError *err)
{
    const KilnField row[] = { *f, KILN_FIELD_END };
    KilnError first = { 0 };
    const KilnReport report = { .ctx = &first, .refused = keep_refused, .unknown = keep_unknown };
    KilnDocument document = { 0 };
    KilnStatus status = kiln_document_read(NULL, "", &(KilnOptionsScope) { .fields = row }, &report,
                                           &document, err);

    kiln_document_release(&document);
    if (status == KILN_E_NOMEM || first.status == KILN_OK)
        return status == KILN_E_NOMEM ? status : KILN_OK;
    return kiln_error_set(err, KILN_E_PLUGIN, "option %s%s: its default %s: %.1500s", table->path,
                          f->name, f->value, first.text);
}

/* ---- Tables ----------------------------------------------------------------------- */

static KilnStatus check_table(const Table *table, KilnError *err);

static KilnStatus check_nested(const Table *table, const KilnField *f, KilnError *err)
{
    KilnText path = { 0 };
    KilnStatus status;

    if (f->fields == NULL || (f->n_fields == 1 && f->fields[0].type == KILN_TYPE_END))
        return bad(table, f, "it has no table", err);
    if (table->depth == KILN_MAX_TABLES)
        return bad(table, f, "its table is nested too deep, or contains itself", err);
    kiln_text_printf(&path, "%s%s.", table->path, f->name);
    if (path.failed)
        return kiln_error_nomem(err, 0);
    Table nested = {
        f->fields, f->n_fields, f->item_size, path.data, table->depth + 1, table->rows
    };
    status = check_table(&nested, err);
    kiln_text_release(&path);
    return status;
}

/* "size", or an option of a part: "loss.label_smoothing". */
static bool is_option(const KilnField *fields, const char *name)
{
    const size_t length = strcspn(name, ".");

    for (size_t i = 0; fields[i].type != KILN_TYPE_END; i++)
        if (fields[i].renamed == NULL && strncmp(fields[i].name, name, length) == 0 &&
            fields[i].name[length] == '\0')
            return name[length] == '\0' ||
                   (fields[i].shape == KILN_ONE &&
                    (fields[i].type == KILN_TYPE_STRUCT || fields[i].type == KILN_TYPE_COMPONENT));
    return false;
}

static KilnStatus check_row(const Table *table, const KilnField *f, KilnError *err)
{
    KilnStatus status;

    if (f->help == NULL || f->help[0] == '\0')
        return bad(table, f, "it has no help text", err);
    if (f->renamed != NULL)
        return is_option(table->fields, f->renamed)
                   ? KILN_OK
                   : bad(table, f, "it is the former name of no option", err);
    status = check_layout(table, f, err);
    if (status == KILN_OK)
        status = check_limits(table, f, err);
    if (status == KILN_OK && f->type == KILN_TYPE_STRUCT)
        status = check_nested(table, f, err);
    return status == KILN_OK ? check_default(table, f, err) : status;
}

/* Nothing may be read after the end of the array. */
static KilnStatus check_end(const Table *table, KilnError *err)
{
    const char *of = table->path[0] != '\0' ? " of " : "";
    const int length = (int)strlen(table->path) - (table->path[0] != '\0'); /* without the dot */

    if (table->n == 0)
        return kiln_error_set(err, KILN_E_PLUGIN,
                              "the length of the options table%s%.*s is unknown: write "
                              "KILN_FIELDS(fields), where fields is the array itself",
                              of, length, table->path);
    if (table->fields[table->n - 1].type != KILN_TYPE_END)
        return kiln_error_set(err, KILN_E_PLUGIN,
                              "the options table%s%.*s has no end: write KILN_FIELD_END as its "
                              "last row",
                              of, length, table->path);
    return KILN_OK;
}

static KilnStatus check_table(const Table *table, KilnError *err)
{
    const KilnField *fields = table->fields;
    KilnStatus status = fields != NULL ? check_end(table, err) : KILN_OK;

    for (size_t i = 0; status == KILN_OK && fields != NULL && fields[i].type != KILN_TYPE_END;
         i++) {
        const KilnField *f = &fields[i];

        if (i == KILN_MAX_FIELDS)
            return kiln_error_set(err, KILN_E_PLUGIN, "more than %d options", KILN_MAX_FIELDS);
        if (++*table->rows > KILN_MAX_ROWS)
            return kiln_error_set(err, KILN_E_PLUGIN, "more than %d options with nested ones",
                                  KILN_MAX_ROWS);
        if (!kiln_is_snake_case(f->name))
            return kiln_error_set(err, KILN_E_PLUGIN, "option %zu: its name '%s' is not snake_case",
                                  i + 1, f->name != NULL ? f->name : "");
        for (size_t j = 0; j < i; j++)
            if (strcmp(fields[j].name, f->name) == 0)
                return bad(table, f, "two options have this name", err);
        status = check_row(table, f, err);
    }
    return status;
}

KilnStatus kiln_table_check(const KilnField *fields, size_t n, size_t opts_size, KilnError *err)
{
    size_t rows = 0;
    const Table table = { fields, n, opts_size, "", 1, &rows };

    return check_table(&table, err);
}

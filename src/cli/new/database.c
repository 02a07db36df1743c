/* The config of a table of a SQLite database. */
#include "base/text.h"
#include "cli/new/rows.h"

/* Names of tables, from a query. */
typedef struct Tables {
    KilnArena *arena;
    const char *first;
    KilnText list;
    size_t n;
} Tables;

static KilnStatus no_column(void *ctx, const char *name, KilnError *err)
{
    (void)ctx;
    (void)name;
    (void)err;
    return KILN_OK;
}

static KilnStatus add_table(void *ctx, const KilnString *values, size_t n, KilnError *err)
{
    Tables *tables = ctx;

    (void)n;
    if (tables->n++ == 0)
        tables->first = kiln_arena_strndup(tables->arena, values[0].data, values[0].length);
    kiln_text_append(&tables->list, tables->n > 1 ? ", " : "");
    kiln_text_append_n(&tables->list, values[0].data, values[0].length);
    return tables->first != NULL ? KILN_OK : kiln_error_nomem(err, values[0].length);
}

/* `SELECT * FROM "name"`, with quotes in the name doubled. */
static const char *select_all(KilnNewConfig *config, const char *table)
{
    KilnText text = { 0 };

    kiln_text_append(&text, "SELECT * FROM \"");
    for (const char *at = table; *at != '\0'; at++)
        kiln_text_append(&text, *at == '"' ? "\"\"" : (const char[]) { *at, '\0' });
    kiln_text_char(&text, '"');
    return kiln_text_to_arena(&text, &config->arena);
}

KilnStatus kiln_new_database(KilnNewConfig *config, const char *path, KilnError *err)
{
    static const char query[] =
        "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND "
        "name NOT LIKE 'sqlite_%' ORDER BY name";
    KilnNewFiles files = { .n[KILN_TRAIN] = 1 };
    Tables tables = { .arena = &config->arena };
    const KilnQueryRows rows_of = { &tables, no_column, add_table };
    KilnStatus status = kiln_query_run(path, query, &rows_of, config->poll, err);

    if (status >= 0 && tables.n == 0)
        status = kiln_error_set(err, KILN_E_FORMAT, "%s: the database has no tables", path);
    else if (status >= 0 && tables.n > 1 && config->table == NULL)
        status = kiln_error_set(err, KILN_E_USAGE,
                                "%s: has the tables %s; choose one: --table=%s (or write a SELECT "
                                "that joins them: datamodule.query)",
                                path, tables.list.data != NULL ? tables.list.data : "",
                                tables.first);
    kiln_text_release(&tables.list);
    if (status < 0)
        return status;
    files.list[KILN_TRAIN][0] = path;
    KilnNewRows rows = { .config = config, .files = &files };
    rows.query = select_all(config, config->table != NULL ? config->table : tables.first);
    status = rows.query != NULL ? kiln_new_rows_read(&rows, NULL, err) : kiln_error_nomem(err, 64);
    if (status >= 0)
        status = kiln_new_table(&rows, err);
    kiln_new_rows_close(&rows);
    return status;
}

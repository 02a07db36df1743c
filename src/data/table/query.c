/* Rows of an SQL query, from SQLite. The only file that knows the library. */
#include "data/table/table_internal.h"

#ifdef KILN_WITH_SQLITE

#include <sqlite3.h>
#include <stdlib.h>

enum { POLL_ROWS = 1 << 14 };

static KilnStatus fails(sqlite3 *db, const char *path, KilnError *err)
{
    return kiln_error_set(err, KILN_E_FORMAT, "%s: query: %s", path,
                          db != NULL ? sqlite3_errmsg(db) : "memory is out");
}

static KilnStatus add_columns(sqlite3_stmt *statement, const KilnQueryRows *rows, KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (int c = 0; c < sqlite3_column_count(statement) && status >= 0; c++) {
        const char *name = sqlite3_column_name(statement, c);

        status = name != NULL ? rows->add_column(rows->ctx, name, err) : kiln_error_nomem(err, 64);
    }
    return status;
}

static KilnStatus add_row(sqlite3_stmt *statement, const KilnQueryRows *rows, KilnString *values,
                          KilnError *err)
{
    const int n = sqlite3_column_count(statement);

    for (int c = 0; c < n; c++) {
        const char *text = NULL;

        if (sqlite3_column_type(statement, c) == SQLITE_BLOB)
            return kiln_error_set(err, KILN_E_TYPE,
                                  "column \"%s\" has bytes (a BLOB); expected texts and numbers",
                                  sqlite3_column_name(statement, c));
        if (sqlite3_column_type(statement, c) != SQLITE_NULL)
            text = (const char *)sqlite3_column_text(statement, c);
        values[c] = (KilnString) { text, (size_t)sqlite3_column_bytes(statement, c) };
        if (text == NULL)
            values[c].length = 0;
    }
    return rows->add_row(rows->ctx, values, (size_t)n, err);
}

static KilnStatus add_rows(sqlite3 *db, sqlite3_stmt *statement, const char *path,
                           const KilnQueryRows *rows, const KilnPoll *poll, KilnError *err)
{
    KilnString *values = calloc((size_t)sqlite3_column_count(statement) + 1, sizeof(*values));
    KilnStatus status = values != NULL ? KILN_OK : kiln_error_nomem(err, sizeof(*values));
    int step = SQLITE_DONE;

    for (int64_t i = 0; status >= 0 && (step = sqlite3_step(statement)) == SQLITE_ROW; i++) {
        if (i % POLL_ROWS == 0)
            status = kiln_poll_check(poll, "reading rows", i, 0, err);
        if (status >= 0 && (status = add_row(statement, rows, values, err)) < 0)
            (void)kiln_error_prefix(err, "%s: row %lld: ", path, (long long)i + 1);
    }
    free(values);
    return status >= 0 && step != SQLITE_DONE ? fails(db, path, err) : status;
}

KilnStatus kiln_query_run(const char *path, const char *query, const KilnQueryRows *rows,
                          const KilnPoll *poll, KilnError *err)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *statement = NULL;
    const char *rest = NULL;
    KilnStatus status = KILN_OK;

    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(db, query, -1, &statement, &rest) != SQLITE_OK)
        status = fails(db, path, err);
    else if (statement == NULL || sqlite3_column_count(statement) == 0)
        status = kiln_error_set(err, KILN_E_RANGE, "query: \"%s\" gives no rows; expected a SELECT",
                                query);
    else if (rest[strspn(rest, " \t\r\n;")] != '\0')
        status = kiln_error_set(err, KILN_E_RANGE, "query: has several statements; expected one");
    if (status >= 0)
        status = add_columns(statement, rows, err);
    if (status >= 0 && rows->add_row != NULL)
        status = add_rows(db, statement, path, rows, poll, err);
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return status;
}

KilnStatus kiln_query_supported(KilnError *err)
{
    (void)err;
    return KILN_OK;
}

#else

KilnStatus kiln_query_supported(KilnError *err)
{
    return kiln_error_set(err, KILN_E_MISSING,
                          "this program was built without SQLite; install libsqlite3-dev and build "
                          "again, or export the rows as CSV");
}

KilnStatus kiln_query_run(const char *path, const char *query, const KilnQueryRows *rows,
                          const KilnPoll *poll, KilnError *err)
{
    (void)path;
    (void)query;
    (void)rows;
    (void)poll;
    (void)kiln_query_supported(err);
    return kiln_error_prefix(err, "query: ");
}

#endif

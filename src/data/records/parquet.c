/* Reads Parquet files by libkiln-parquet, which is loaded when the first one is read: Arrow's
 * libraries are larger than kiln. */
#include "data/records/parquet.h"

#include "base/text.h"

#ifdef KILN_WITH_PARQUET

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/system/file.h"
#include "data/records/arrow_csv.h"

enum { FLUSH = 1 << 18, MESSAGE = 512 };

/* ---- The library ----------------------------------------------------------------------------- */

#define LIBRARY_NAME "libkiln-parquet.so"

static const KilnArrowLibrary *library;
static char problem[MESSAGE];
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* The run path of this program has the folder; the library stays loaded. */
static void load(void)
{
    void *handle = dlopen(LIBRARY_NAME, RTLD_NOW | RTLD_LOCAL);
    const char *why = handle == NULL ? dlerror() : NULL;
    const KilnArrowLibrary *found = handle != NULL ? dlsym(handle, "kiln_arrow_library") : NULL;

    if (found != NULL && found->library == KILN_ARROW_LIBRARY)
        library = found;
    else
        snprintf(problem, sizeof(problem), "%s",
                 why != NULL ? why : LIBRARY_NAME ": is of another version of kiln");
}

static KilnStatus get_library(KilnError *err)
{
    pthread_once(&once, load);
    return library != NULL
               ? KILN_OK
               : kiln_error_set(err, KILN_E_MISSING,
                                "the library that reads Parquet can't be loaded: %s", problem);
}

const char *kiln_parquet_version(KilnError *err)
{
    return get_library(err) >= 0 ? library->version : NULL;
}

/* ---- Rows ------------------------------------------------------------------------------------ */

static KilnStatus flush(KilnText *text, int to, const char *from, KilnError *err)
{
    if (text->failed)
        return kiln_error_nomem(err, text->capacity);
    const bool written = kiln_fd_write(to, text->data, text->length);
    kiln_text_clear(text);
    return written ? KILN_OK : kiln_error_errno(err, from);
}

static KilnStatus write_batch(const struct ArrowSchema *schema, const struct ArrowArray *batch,
                              const char *from, int to, KilnText *text, KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (int64_t row = 0; row < batch->length && status >= 0; row++) {
        kiln_arrow_csv_row(schema, batch, row, text);
        if (text->length > FLUSH)
            status = flush(text, to, from, err);
    }
    return status;
}

static KilnStatus damaged(const char *from, const char *message, KilnError *err)
{
    size_t n = strlen(message);

    while (n > 0 && strchr(" \n.", message[n - 1]) != NULL)
        n--;
    return kiln_error_set(err, KILN_E_FORMAT, "%s: is no Parquet file, or is damaged: %.*s", from,
                          (int)n, message);
}

static KilnStatus write_rows(KilnArrowFile *file, const struct ArrowSchema *schema, int64_t rows,
                             const char *from, int to, const KilnPoll *poll, KilnError *err)
{
    struct ArrowArray batch = { .length = 0 };
    KilnText text = { 0 };
    char message[MESSAGE];
    int64_t done = 0;
    KilnStatus status = kiln_arrow_csv_header(schema, &text, err);

    if (status < 0)
        (void)kiln_error_prefix(err, "%s: ", from);
    while (status >= 0) {
        status = kiln_poll_check(poll, "rows unpacked", done, rows, err);
        if (status >= 0 && library->next(file, &batch, message, sizeof(message)) < 0)
            status = damaged(from, message, err);
        if (status < 0 || batch.release == NULL)
            break;
        status = write_batch(schema, &batch, from, to, &text, err);
        done += batch.length;
        batch.release(&batch);
    }
    if (status >= 0)
        status = flush(&text, to, from, err);
    kiln_text_release(&text);
    return status;
}

KilnStatus kiln_parquet_unpack(const char *from, int to, const KilnPoll *poll, KilnError *err)
{
    struct ArrowSchema schema = { .release = NULL };
    KilnArrowFile *file = NULL;
    char message[MESSAGE];
    int64_t rows = 0;
    int fd = -1;
    KilnStatus status = kiln_file_open_regular(from, &fd, err);

    if (status < 0)
        return status;
    close(fd);
    status = get_library(err);
    if (status < 0)
        return kiln_error_prefix(err, "%s: ", from);
    if (library->open(from, &file, &schema, &rows, message, sizeof(message)) < 0)
        status = damaged(from, message, err);
    if (status >= 0)
        status = write_rows(file, &schema, rows, from, to, poll, err);
    if (schema.release != NULL)
        schema.release(&schema);
    if (file != NULL)
        library->close(file);
    return status;
}

#else

const char *kiln_parquet_version(KilnError *err)
{
    (void)kiln_error_set(err, KILN_E_MISSING,
                         "this kiln was built without Parquet: install libparquet-dev of Apache's "
                         "package archive, or set ARROW_DIR, and build it again");
    return NULL;
}

KilnStatus kiln_parquet_unpack(const char *from, int to, const KilnPoll *poll, KilnError *err)
{
    (void)to;
    (void)poll;
    return kiln_error_set(
        err, KILN_E_MISSING,
        "%s: this kiln was built without Parquet; convert the file, such as by duckdb -c \"COPY "
        "'%s' TO 'table.csv'\" or python3 -c \"import pandas; "
        "pandas.read_parquet('%s').to_csv('table.csv', index=False)\", or install libparquet-dev "
        "of Apache's package archive and build kiln again",
        from, from, from);
}

#endif

bool kiln_is_parquet(const char *path)
{
    return kiln_ends_with(path, ".parquet");
}

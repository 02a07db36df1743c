/* kiln tokenizer train: trains a tokenizer on the lines, or on a column, of files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/open_config.h"
#include "cli/screen/work_progress.h"
#include "data/records/mapped_file.h"
#include "kiln/array.h"
#include "kiln/files/text_records.h"

/* The texts of files: each line, with its line end, or a column of each row. */
typedef struct Source {
    const char **paths;
    int64_t *sizes; /* as the files are, packed or not */
    size_t n, capacity, sizes_capacity;
    const KilnPoll *poll;
    int64_t total, before; /* bytes of all files (of a column: rows), of those before this one */
    int64_t number;        /* the texts so far, of lines: in this file */
    bool ended;

    size_t file; /* the one that is read, of lines */
    KilnMappedFile map;
    size_t at;

    KilnRecords *records; /* of a column */
    size_t column;
    KilnRecord record;
} Source;

/* How far reading is, in the unit of `total`. */
static int64_t position(const Source *source)
{
    if (source->records != NULL)
        return source->number;
    if (source->map.size == 0)
        return source->before;
    return source->before + (int64_t)((double)source->at / (double)source->map.size *
                                      (double)source->sizes[source->file]);
}

/* KilnPoll.poll of the training, which does not know how many texts there are; ctx: the source. */
static bool poll_training(void *ctx, const char *what, int64_t done, int64_t total)
{
    const Source *source = ctx;
    const bool reads = total == 0 && !source->ended;

    return kiln_poll(source->poll, what, reads ? position(source) : done,
                     reads ? source->total : total);
}

/* Standard input, a FIFO, what the shell makes of <(...). */
static bool is_pipe(const char *path)
{
    struct stat st;

    return strcmp(path, "-") == 0 || (stat(path, &st) == 0 && S_ISFIFO(st.st_mode));
}

static void close_file(Source *source)
{
    kiln_mapped_file_close(&source->map);
    source->before += source->sizes[source->file++];
}

static bool next_line(void *ctx, KilnString *ret, KilnStatus *ret_status, KilnError *err)
{
    Source *source = ctx;

    for (; source->file < source->n; close_file(source)) {
        KilnMappedFile *map = &source->map;

        if (map->path == NULL) {
            const char *path = source->paths[source->file];

            *ret_status = is_pipe(path) ? kiln_mapped_file_spool(map, path, source->poll, err)
                                        : kiln_mapped_file_open(map, path, NULL, source->poll, err);
            if (*ret_status < 0)
                return false;
            source->at = map->begin;
            source->number = 0;
        }
        if (source->at == map->size)
            continue;
        const char *line = map->data + source->at;
        const char *end = memchr(line, '\n', map->size - source->at);

        *ret = (KilnString) { line,
                              end != NULL ? (size_t)(end - line) + 1 : map->size - source->at };
        source->at += ret->length;
        source->number++;
        return true;
    }
    source->ended = true;
    return false;
}

static bool next_row(void *ctx, KilnString *ret, KilnStatus *ret_status, KilnError *err)
{
    Source *source = ctx;

    source->ended = source->number == source->total;
    if (source->ended)
        return false;
    *ret_status = kiln_records_read(source->records, source->number++, &source->column, 1,
                                    &source->record, err);
    if (*ret_status >= 0)
        *ret = source->record.fields[0];
    return *ret_status >= 0;
}

/* ---- Opening --------------------------------------------------------------------------------- */

/* Split "a,b,c", in place. */
static KilnStatus list_files(Source *source, char *files, KilnError *err)
{
    for (char *path = files, *rest; path != NULL; path = rest) {
        struct stat st = { 0 };

        rest = strchr(path, ',');
        if (rest != NULL)
            *rest++ = '\0';
        if (*path == '\0')
            continue;
        if (strcmp(path, "-") != 0 && stat(path, &st) != 0)
            return kiln_error_errno(err, path);
        if (!KILN_RESERVE(source->paths, source->capacity, source->n + 1) ||
            !KILN_RESERVE(source->sizes, source->sizes_capacity, source->n + 1))
            return kiln_error_nomem(err, source->n * sizeof(*source->paths));
        source->paths[source->n] = path;
        source->sizes[source->n++] = (int64_t)st.st_size;
        source->total += (int64_t)st.st_size;
    }
    return KILN_OK;
}

static KilnStatus open_column(Source *source, const char *column, KilnError *err)
{
    const KilnRecordsSpec spec = { .paths = source->paths,
                                   .n_paths = source->n,
                                   .poll = source->poll };

    for (size_t i = 0; i < source->n; i++)
        if (is_pipe(source->paths[i]))
            return kiln_error_set(err, KILN_E_USAGE,
                                  "column=%s: %s is a pipe, of which each line is a text; a column "
                                  "needs a file .csv, .tsv or .jsonl",
                                  column, source->paths[i]);
    KilnStatus status = kiln_records_open(&spec, &source->records, err);
    if (status >= 0)
        status = kiln_records_column(source->records, column, &source->column, err);
    if (status < 0)
        return status;
    source->total = kiln_records_count(source->records);
    return KILN_OK;
}

static void close_source(Source *source)
{
    kiln_mapped_file_close(&source->map);
    kiln_record_release(&source->record);
    kiln_records_close(source->records);
    free(source->paths);
    free(source->sizes);
}

static KilnStatus train_on(KilnInstance *tokenizer, char *files, const char *column,
                           const KilnPoll *poll, KilnError *err)
{
    Source source = { .poll = poll };
    const KilnTexts texts = { column != NULL ? next_row : next_line, &source };
    const KilnPoll training = { poll_training, &source };
    KilnStatus status = list_files(&source, files, err);

    if (status >= 0 && column != NULL)
        status = open_column(&source, column, err);
    if (status >= 0)
        status = kiln_tokenizer_train(tokenizer, &texts, &training, err);
    if (status == KILN_E_FORMAT && source.map.path != NULL)
        kiln_error_prefix(err, "%s:%lld: ", source.map.path, (long long)source.number);
    close_source(&source);
    return status;
}

/* ---- The command ----------------------------------------------------------------------------- */

static KilnStatus train(KilnInstance *tokenizer, const char *files, const char *column,
                        const char *output, KilnError *err)
{
    KilnWorkProgress progress = kiln_work_progress_open();
    const KilnPoll poll = { kiln_work_progress_poll, &progress };
    char *list = kiln_strdup(files);
    KilnStatus status = list != NULL ? train_on(tokenizer, list, column, &poll, err)
                                     : kiln_error_nomem(err, strlen(files));

    kiln_work_progress_close(&progress);
    free(list);
    if (status >= 0)
        status = kiln_tokenizer_save(tokenizer, output, err);
    if (status >= 0)
        printf("%s: %lld tokens\n", output, (long long)kiln_tokenizer_size(tokenizer));
    return status;
}

KilnStatus kiln_command_tokenizer_train(KilnArgs *args, const KilnRegistry *registry,
                                        KilnConfig *unused, void *ctx, KilnError *err)
{
    const char *files = kiln_args_take(args, "files"), *output = kiln_args_take(args, "output");
    const char *column = kiln_args_take(args, "column");
    KilnInstance *tokenizer = NULL;
    KilnConfig *config = NULL;

    (void)unused;
    (void)ctx;
    if (files == NULL || *files == '\0')
        return kiln_error_set(err, KILN_E_USAGE,
                              "train: needs texts: files=FILE,FILE,... (each line is one, or with "
                              "column=NAME that column of each row; files=-: standard input)");
    if (*files == '[')
        return kiln_error_set(
            err, KILN_E_USAGE,
            "train: files=%s: write the names without brackets: files=a.txt,b.txt", files);
    KilnComposeRequest request = kiln_command_request(args, registry);
    request.sections = NULL;
    if (request.config_name == NULL)
        request.config_name = "tokenizer";
    KilnStatus status = kiln_command_compose_request(args, &request, true, NULL, &config, NULL);
    if (status >= 0)
        status = kiln_config_build(config, "tokenizer", registry, KILN_KIND_TOKENIZER, &tokenizer,
                                   err);
    if (status >= 0)
        status = train(tokenizer, files, column, output != NULL ? output : "tokenizer.json", err);
    kiln_instance_free(tokenizer);
    kiln_config_free(config);
    return status;
}

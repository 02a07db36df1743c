/* Compares two folders: checkpoints, or the checkpoints and logs of two runs. */
#define _GNU_SOURCE /* memmem, strchrnul */
#include "cli/verify/differences.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/system/file.h"
#include "config/yaml/yaml_reader.h"
#include "tensor/safetensors.h"
#include "train/checkpoint/checkpoint.h"

static const size_t largest = (size_t)1 << 30; /* file that is read as a whole */

/* Two files: their name in messages, and the text before their differences. */
typedef struct Pair {
    const char *name, *where;
    const char *paths[2];
} Pair;

static void add(KilnDifferences *found, const char *format, ...) KILN_PRINTF(2, 3);
static void add(KilnDifferences *found, const char *format, ...)
{
    char line[1024];
    va_list args;

    if (found->count++ >= found->most)
        return;
    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    kiln_text_printf(&found->text, "%s\n", line);
}

/* The parts in a row; "" when memory ran out. */
static const char *join(KilnDifferences *found, const char *a, const char *b, const char *c)
{
    const char *text = kiln_arena_printf(&found->arena, "%s%s%s", a, b, c);

    if (text != NULL)
        return text;
    found->status = kiln_error_nomem(found->err, strlen(b));
    return "";
}

/* ---- Tensors --------------------------------------------------------------------------- */

/* Read a tensor in a type that holds all its values exactly. Owned by the caller; NULL: an error.
 */
static void *read_tensor(const KilnSafetensors *file, const KilnStEntry *entry,
                         KilnDType *ret_dtype, KilnDifferences *found)
{
    void *data = NULL;

    *ret_dtype = KILN_F64;
    if (strcmp(entry->dtype, "F64") != 0 && !kiln_safetensors_dtype(entry, ret_dtype))
        found->status = kiln_error_set(found->err, KILN_E_FORMAT,
                                       "%s has type %s, which kiln lacks", entry->name,
                                       entry->dtype);
    else if ((data = malloc((size_t)kiln_shape_count(&entry->shape) * kiln_dtype_size(*ret_dtype) +
                            1)) == NULL)
        found->status = kiln_error_nomem(found->err, (size_t)(entry->end - entry->begin));
    else
        found->status = kiln_safetensors_read(file, entry, *ret_dtype, data, found->err);
    return data;
}

static double element(const void *data, KilnDType dtype, int64_t i)
{
    switch (dtype) {
    case KILN_F32:
        return (double)((const float *)data)[i];
    case KILN_F64:
        return ((const double *)data)[i];
    case KILN_I32:
        return (double)((const int32_t *)data)[i];
    case KILN_I64:
        return (double)((const int64_t *)data)[i];
    default:
        return (double)((const uint8_t *)data)[i];
    }
}

static void compare_elements(const char *name, void *const data[2], KilnDType dtype, int64_t n,
                             KilnDifferences *found)
{
    double most = -1.0, values[2] = { 0 };
    int64_t differ = 0, at = 0;

    for (int64_t i = 0; i < n; i++) {
        const double x = element(data[0], dtype, i), y = element(data[1], dtype, i);
        const double gap = fabs(x - y);

        if (memcmp(&x, &y, sizeof(x)) == 0)
            continue;
        if (differ++ == 0 || gap > most || isnan(gap)) {
            most = gap;
            at = i;
            values[0] = x;
            values[1] = y;
        }
    }
    if (differ > 0)
        add(found, "%s: %lld of %lld values differ, by %.3g at most (%.9g and %.9g at %lld)", name,
            (long long)differ, (long long)n, most, values[0], values[1], (long long)at);
}

static void compare_tensor(const char *name, KilnSafetensors *const files[2],
                           const KilnStEntry *const entries[2], KilnDifferences *found)
{
    const KilnStEntry *a = entries[0], *b = entries[1];
    char shapes[2][KILN_SHAPE_TEXT];
    void *data[2] = { NULL, NULL };
    KilnDType dtype = KILN_F32;

    if (!kiln_shape_equal(&a->shape, &b->shape) || strcmp(a->dtype, b->dtype) != 0) {
        add(found, "%s: %s %s and %s %s", name, a->dtype,
            kiln_shape_text(&a->shape, shapes[0], KILN_SHAPE_TEXT), b->dtype,
            kiln_shape_text(&b->shape, shapes[1], KILN_SHAPE_TEXT));
        return;
    }
    for (int i = 0; i < 2 && found->status >= 0; i++)
        data[i] = read_tensor(files[i], entries[i], &dtype, found);
    if (found->status >= 0)
        compare_elements(name, data, dtype, kiln_shape_count(&a->shape), found);
    free(data[0]);
    free(data[1]);
}

static void compare_tensors(const Pair *pair, KilnDifferences *found)
{
    KilnSafetensors *files[2] = { NULL, NULL };

    for (int i = 0; i < 2 && found->status >= 0; i++)
        found->status = kiln_safetensors_open(pair->paths[i], &files[i], found->err);
    for (int side = 0; side < 2 && found->status >= 0; side++)
        for (size_t i = 0; i < kiln_safetensors_count(files[side]) && found->status >= 0; i++) {
            const KilnStEntry *entry = kiln_safetensors_at(files[side], i);
            const KilnStEntry *other = kiln_safetensors_find(files[1 - side], entry->name);
            const char *name = join(found, pair->where, entry->name, "");

            if (other == NULL)
                add(found, "%s: only in the %s", name, found->sides[side]);
            else if (side == 0)
                compare_tensor(name, files, (const KilnStEntry *const[]) { entry, other }, found);
        }
    kiln_safetensors_close(files[0]);
    kiln_safetensors_close(files[1]);
}

/* ---- config.yaml and state.json ---------------------------------------------------------- */

/* A value on one line; "absent" for NULL. */
static const char *node_text(const KilnConfigNode *node, KilnDifferences *found)
{
    char count[32];

    if (node == NULL || node->kind == KILN_NODE_SCALAR)
        return node == NULL ? "absent" : node->text;
    snprintf(count, sizeof(count), "%zu", node->count);
    return join(found, node->kind == KILN_NODE_MAP ? "a mapping of " : "a list of ", count, "");
}

static bool is_same_leaf(const KilnConfigNode *a, const KilnConfigNode *b)
{
    return a != NULL && b != NULL && a->kind == KILN_NODE_SCALAR && b->kind == KILN_NODE_SCALAR &&
           strcmp(a->text, b->text) == 0 && a->quoted == b->quoted;
}

/* `where` is the text before the key: "config: ". The members of state.json that are checksums
 * differ wherever files do. */
static void compare_nodes(const char *where, KilnText *key, const KilnConfigNode *a,
                          const KilnConfigNode *b, bool is_state, KilnDifferences *found)
{
    if (is_same_leaf(a, b))
        return;
    if (a == NULL || b == NULL || a->kind != b->kind || a->kind == KILN_NODE_SCALAR) {
        add(found, "%s%s: %s and %s", where, key->length > 0 ? key->data : "", node_text(a, found),
            node_text(b, found));
        return;
    }
    for (int side = 0; side < 2; side++) {
        const KilnConfigNode *of = side == 0 ? a : b, *other = side == 0 ? b : a;

        for (size_t i = 0; i < of->count; i++) {
            const char *name = of->entries[i].key;
            const KilnConfigNode *value = of->entries[i].value, *twin = NULL;

            if (of->kind == KILN_NODE_MAP)
                twin = kiln_node_get(other, name);
            else if (i < other->count)
                twin = other->entries[i].value;
            if ((side == 1 && twin != NULL) ||
                (is_state && (strcmp(name, "files") == 0 || strcmp(name, "tensors") == 0 ||
                              strcmp(name, "xxh3") == 0)))
                continue;
            const size_t before = kiln_key_push(key, of->kind == KILN_NODE_MAP ? name : NULL, i);
            compare_nodes(where, key, side == 0 ? value : NULL, side == 0 ? twin : value, false,
                          found);
            kiln_key_pop(key, before);
        }
    }
}

/* JSON is YAML, too. */
static void compare_trees(const Pair *pair, KilnDifferences *found)
{
    const bool is_state = kiln_ends_with(pair->name, KILN_CHECKPOINT_STATE);
    const char *where = join(found, pair->where, is_state ? "state: " : "config: ", "");
    KilnConfigNode *roots[2] = { NULL, NULL };
    KilnArena arena = { 0 };
    KilnText key = { 0 };

    for (int i = 0; i < 2 && found->status >= 0; i++)
        found->status = kiln_yaml_read_file(&arena, pair->paths[i], &roots[i], found->err);
    if (found->status >= 0)
        compare_nodes(where, &key, roots[0], roots[1], is_state, found);
    found->err->origin = (KilnOrigin) { 0 }; /* it ends with the arena */
    kiln_text_release(&key);
    kiln_arena_release(&arena);
}

/* ---- What loggers wrote ------------------------------------------------------------------ */

/* A file, read record by record. */
typedef struct Log {
    char *data; /* owned */
    size_t size, at;
} Log;

/* A record without its wall-clock time; zero after the last one. */
typedef struct Record {
    const char *data;
    size_t size;
} Record;

/* Cut out the wall-clock time: "wall_time" of an object in metrics.jsonl, the sixth column of
 * metrics.csv. */
static void cut_time(char *line)
{
    enum { WALL_TIME = 5 };
    char *from = *line == '{' ? strstr(line, "\"wall_time\": ") : line;

    for (int column = 0; column < WALL_TIME && *line != '{'; column++) {
        from += strcspn(from, ",");
        from += *from == ',';
    }
    if (from != NULL)
        memmove(from, from + strcspn(from, ",}"), strlen(from + strcspn(from, ",}")) + 1);
}

/* The next line of metrics.csv or metrics.jsonl; objects of measurements are skipped. */
static Record next_line(Log *log)
{
    while (log->at < log->size) {
        char *line = log->data + log->at, *end = strchrnul(line, '\n');

        log->at = (size_t)(end - log->data) + 1;
        *end = '\0';
        if (strstr(line, "\"measured\": {") != NULL)
            continue;
        cut_time(line);
        return (Record) { .data = line, .size = strlen(line) };
    }
    return (Record) { 0 };
}

/* TensorBoard: the next event after its wall-clock time, which comes first (Event.wall_time, field
 * 1, a double). A record is: size, its checksum, data, their checksum (TFRecord). Events of the
 * HPARAMS page hold times, and are skipped. What is damaged is returned as it is. */
static Record next_event(Log *log)
{
    enum { HEAD = 12, FOOT = 4, TIME = 9 };
    static const char hparams[] = "_hparams_/";

    while (log->at < log->size) {
        const char *record = log->data + log->at;
        const size_t room = log->size - log->at;
        uint64_t size = 0;

        for (int i = 0; i < 8 && room >= HEAD; i++)
            size |= (uint64_t)(uint8_t)record[i] << (8 * i);
        if (room < HEAD + FOOT || size < TIME || size > room - HEAD - FOOT) {
            log->at = log->size;
            return (Record) { .data = record, .size = room };
        }
        log->at += HEAD + (size_t)size + FOOT;
        if (memmem(record + HEAD, (size_t)size, hparams, strlen(hparams)) == NULL)
            return (Record) { .data = record + HEAD + TIME, .size = (size_t)size - TIME };
    }
    return (Record) { 0 };
}

/* The next line of a text file. */
static Record next_text(Log *log)
{
    char *line = log->data + log->at;

    if (log->at >= log->size)
        return (Record) { 0 };
    const char *end = memchr(line, '\n', log->size - log->at);
    const size_t size = end != NULL ? (size_t)(end - line) : log->size - log->at;

    log->at += size + 1;
    return (Record) { .data = line, .size = size };
}

/* The whole file as one record. */
static Record next_file(Log *log)
{
    const Record all = { .data = log->at < log->size ? log->data : NULL, .size = log->size };

    log->at = log->size;
    return all.data != NULL ? all : (Record) { 0 };
}

/* The bytes of a line in a message. */
static int shown(const Record *record)
{
    enum { MOST = 160 };

    return record->size < MOST ? (int)record->size : MOST;
}

static void add_record(const Pair *pair, Record (*next)(Log *), long number, const Record *a,
                       const Record *b, KilnDifferences *found)
{
    const char *name = join(found, pair->where, pair->name, "");
    const bool by_lines = next == next_line || next == next_text;

    if (next == next_file)
        add(found, "%s: the bytes differ", name);
    else if (a->data == NULL || b->data == NULL)
        add(found, "%s: %s %ld: only in the %s", name, by_lines ? "line" : "event", number,
            found->sides[a->data == NULL]);
    else if (by_lines)
        add(found, "%s: line %ld: %.*s and %.*s", name, number, shown(a), a->data, shown(b),
            b->data);
    else
        add(found, "%s: event %ld: differs", name, number);
}

static void compare_records(const Pair *pair, Record (*next)(Log *), KilnDifferences *found)
{
    Log logs[2] = { { 0 } };
    bool more = true;

    for (int i = 0; i < 2 && found->status >= 0; i++)
        found->status = kiln_file_read(pair->paths[i], largest, &logs[i].data, &logs[i].size,
                                       found->err);
    for (long number = 1; more && found->status >= 0; number++) {
        const Record a = next(&logs[0]), b = next(&logs[1]);

        more = a.data != NULL || b.data != NULL;
        if (more && (a.data == NULL || b.data == NULL || a.size != b.size ||
                     memcmp(a.data, b.data, a.size) != 0))
            add_record(pair, next, number, &a, &b, found);
    }
    free(logs[0].data);
    free(logs[1].data);
}

/* ---- Files and folders --------------------------------------------------------------------- */

/* Compare a file by its content, and by its records where that finds nothing. */
static void compare_file(const Pair *pair, KilnDifferences *found)
{
    typedef struct Kind {
        const char *name; /* or its end: ".safetensors" */
        void (*compare)(const Pair *pair, KilnDifferences *found);
        Record (*next)(Log *log);
    } Kind;
    static const Kind kinds[] = {
        { ".safetensors", compare_tensors, next_file },
        { KILN_CHECKPOINT_CONFIG, compare_trees, next_file },
        { KILN_CHECKPOINT_STATE, compare_trees, NULL }, /* the checksums differ */
        { "metrics.csv", NULL, next_line },
        { "metrics.jsonl", NULL, next_line },
        { "events.out.tfevents.0.kiln", NULL, next_event },
        { ".csv", NULL, next_text },
        { ".jsonl", NULL, next_text },
        { ".tsv", NULL, next_text },
        { ".txt", NULL, next_text },
    };
    const char *slash = strrchr(pair->name, '/'), *name = slash != NULL ? slash + 1 : pair->name;
    const size_t before = found->count;
    Kind kind = { .next = next_file };

    for (size_t i = KILN_COUNT(kinds); i-- > 0;) /* whole names come first, and win */
        if (strcmp(name, kinds[i].name) == 0 ||
            (*kinds[i].name == '.' && kiln_ends_with(name, kinds[i].name)))
            kind = kinds[i];
    if (kind.compare != NULL)
        kind.compare(pair, found);
    if (kind.next != NULL && found->status >= 0 && found->count == before)
        compare_records(pair, kind.next, found);
}

/* The weights come first: they are what people want to know. */
static int by_weight(const void *a, const void *b)
{
    const char *const *x = a, *const *y = b;
    const int model = (strcmp(*y, KILN_CHECKPOINT_MODEL) == 0) -
                      (strcmp(*x, KILN_CHECKPOINT_MODEL) == 0);

    return model != 0 ? model : -strcmp(*x, *y);
}

static void compare_folders(const char *where, const char *const folders[2],
                            KilnDifferences *found);

/* Compare the entry `name` of two folders, if one has it. */
static void compare_entry(const char *where, const char *const folders[2], const char *name,
                          KilnDifferences *found)
{
    Pair pair = { .name = name, .where = where };
    const char *path = join(found, where, name, "");
    char targets[2][256];
    bool is_link = false, there[2];

    for (int i = 0; i < 2; i++) {
        pair.paths[i] = join(found, folders[i], "/", name);
        is_link |= kiln_link_read(pair.paths[i], targets[i], sizeof(targets[i]));
        there[i] = kiln_is_file(pair.paths[i]) || kiln_is_dir(pair.paths[i]);
    }
    if (found->status < 0)
        return;
    if (is_link && strcmp(targets[0], targets[1]) != 0)
        add(found, "%s: points to \"%s\" and \"%s\"", path, targets[0], targets[1]);
    else if (!is_link && there[0] != there[1])
        add(found, "%s: only in the %s", path, found->sides[there[1]]);
    else if (!is_link && kiln_is_dir(pair.paths[0]) && kiln_is_dir(pair.paths[1]))
        compare_folders(join(found, path, ": ", ""), pair.paths, found);
    else if (!is_link && there[0])
        compare_file(&pair, found);
}

static void compare_folders(const char *where, const char *const folders[2], KilnDifferences *found)
{
    struct stat info;

    for (int side = 0; side < 2 && found->status >= 0; side++) {
        char **names = NULL;
        size_t n = 0;

        found->status = kiln_dir_list(folders[side], &names, &n, found->err);
        if (n > 0)
            qsort(names, n, sizeof(*names), by_weight);
        for (size_t i = 0; i < n && found->status >= 0; i++)
            if (side == 0 || lstat(join(found, folders[0], "/", names[i]), &info) != 0)
                compare_entry(where, folders, names[i], found);
        kiln_names_free(names, n);
    }
}

KilnStatus kiln_differences_folders(const char *a, const char *b, KilnDifferences *found,
                                    KilnError *err)
{
    const char *const folders[2] = { a, b };

    found->err = err;
    compare_folders("", folders, found);
    return found->status;
}

/* Whether a file of the run folder may differ between equal runs: it has times or measurements. */
static bool is_measured(const char *name)
{
    static const char *const names[] = { "summary.json", "measured.csv", "profile.csv" };
    bool is = kiln_ends_with(name, ".log") || kiln_ends_with(name, ".kiln") || name[0] == '.';

    for (size_t i = 0; i < KILN_COUNT(names); i++)
        is |= strcmp(name, names[i]) == 0;
    return is;
}

/* Compare the files in two run folders, those of callbacks and loggers among them. */
static void compare_run_files(const char *const runs[2], KilnDifferences *found)
{
    for (int side = 0; side < 2 && found->status >= 0; side++) {
        char **names = NULL;
        size_t n = 0;

        found->status = kiln_dir_list(runs[side], &names, &n, found->err);
        for (size_t i = 0; i < n && found->status >= 0; i++)
            if (kiln_is_file(join(found, runs[side], "/", names[i])) && !is_measured(names[i]) &&
                (side == 0 || !kiln_is_file(join(found, runs[0], "/", names[i]))))
                compare_entry("", runs, names[i], found);
        kiln_names_free(names, n);
    }
}

KilnStatus kiln_differences_runs(const char *a, const char *b, KilnDifferences *found,
                                 KilnError *err)
{
    static const char events[] = "tensorboard/events.out.tfevents.0.kiln";
    const char *const runs[2] = { a, b };

    found->err = err;
    const char *const checkpoints[2] = { join(found, a, "/checkpoints", ""),
                                         join(found, b, "/checkpoints", "") };
    compare_folders("checkpoints/", checkpoints, found);
    compare_run_files(runs, found);
    if (found->status >= 0)
        compare_entry("", runs, events, found);
    return found->status;
}

void kiln_differences_release(KilnDifferences *found)
{
    kiln_text_release(&found->text);
    kiln_arena_release(&found->arena);
}

/* The config of images of text lines. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/new/rows.h"
#include "kiln/images/line_images.h"

enum {
    HEIGHT = 32,   /* that images are scaled to */
    WIDEST = 1024, /* of that height */
    STEP = 4       /* columns of an image that crnn reads as one */
};

enum { IMAGE, TEXT, COLUMNS };

typedef struct Looked {
    KilnNewRows *rows;
    size_t columns[COLUMNS];
    const char *root;
    KilnLineImages lines;
    int64_t n, bad, tight; /* rows; that can't be read; with a text that is long for its image */
    int64_t widest, longest, quoted;
    char why[700]; /* the first bad one */
    char tight_place[300];
    KilnText path;
} Looked;

static KilnStatus check_row(Looked *looked, KilnSplit split, const KilnRecord *record,
                            int64_t *ret_width, KilnError *err)
{
    const KilnString path = record->fields[IMAGE], text = record->fields[TEXT];
    int64_t size[3];

    kiln_text_clear(&looked->path);
    kiln_record_append_path(record, COLUMNS, IMAGE, looked->root, &looked->path);
    if (looked->path.failed)
        return kiln_error_nomem(err, path.length);
    if (path.length == 0)
        return kiln_error_set(err, KILN_E_MISSING, "there is no image");
    KilnStatus status = kiln_image_size(looked->path.data, 0, size, err);
    if (status >= 0)
        status = kiln_line_images_width(&looked->lines, size[0], size[1], ret_width, err);
    return status >= 0
               ? kiln_line_images_check(&looked->lines, text, *ret_width, split == KILN_TRAIN, err)
               : status;
}

/* A blank and a text in quotes, as lists of ICDAR's competitions have it. */
static bool is_quoted(KilnString text)
{
    return text.length > 2 && text.data[0] == ' ' && text.data[1] == '"' &&
           text.data[text.length - 1] == '"';
}

static KilnStatus look_at_row(Looked *looked, KilnSplit split, const KilnRecords *records,
                              int64_t i, KilnRecord *record, KilnError *err)
{
    KilnError why = { 0 };
    char place[300];
    int64_t width = 0;
    KilnStatus status = kiln_records_read(records, i, looked->columns, COLUMNS, record, &why);

    if (status >= 0) {
        status = check_row(looked, split, record, &width, &why);
        if (status < 0)
            (void)kiln_error_prefix(
                &why, "%s: ", kiln_records_location(records, i, place, sizeof(place)));
    }
    if (status < 0) {
        if (looked->bad++ == 0)
            snprintf(looked->why, sizeof(looked->why), "%.690s", why.text);
        return KILN_OK;
    }
    const int64_t length = kiln_line_images_count(record->fields[TEXT]);
    looked->n += split == KILN_TRAIN;
    looked->quoted += is_quoted(record->fields[TEXT]);
    looked->widest = width > looked->widest ? width : looked->widest;
    looked->longest = length > looked->longest ? length : looked->longest;
    if (length * STEP > width && looked->tight++ == 0)
        (void)kiln_records_location(records, i, looked->tight_place, sizeof(looked->tight_place));
    return split == KILN_TRAIN ? kiln_line_images_collect(&looked->lines, record->fields[TEXT], err)
                               : KILN_OK;
}

static KilnStatus look_at_split(Looked *looked, KilnSplit split, KilnError *err)
{
    const KilnRecordsSpec spec = kiln_new_rows_spec(looked->rows, split);
    KilnRecords *records = NULL;
    KilnRecord record = { 0 };
    KilnStatus status = spec.n_paths > 0 ? kiln_records_open(&spec, &records, err) : KILN_OK;
    const int64_t n = records != NULL ? kiln_records_count(records) : 0;

    for (size_t c = 0; c < COLUMNS && records != NULL && status >= 0; c++)
        status = kiln_records_column(records, looked->rows->names[looked->columns[c]],
                                     &looked->columns[c], err);
    for (int64_t i = 0; i < n && status >= 0; i++) {
        status = kiln_poll_check(spec.poll, "reading sizes of images", i, n, err);
        if (status >= 0)
            status = look_at_row(looked, split, records, i, &record, err);
    }
    kiln_record_release(&record);
    kiln_records_close(records);
    return status;
}

/* ---- What is said ---------------------------------------------------------------------------- */

static void say_characters(const Looked *looked)
{
    enum { LISTED = 60 };
    const KilnNameList *list = &looked->lines.characters;
    KilnText text = { 0 };

    for (size_t i = 0; i < list->n && i < LISTED; i++)
        kiln_text_append(&text, list->names[i]);
    kiln_new_say(looked->rows->config, "characters", "%zu: %s%s", list->n,
                 text.data != NULL ? text.data : "", list->n > LISTED ? " ..." : "");
    kiln_text_release(&text);
}

static void say_odd(const Looked *looked)
{
    KilnNewConfig *config = looked->rows->config;

    if (looked->bad > 0) {
        kiln_new_set(config, KILN_NEW_DATA, "on_error", "skip  # leave bad rows out");
        kiln_new_say_odd(config, "bad rows: %lld, which are left out; the first: %s",
                         (long long)looked->bad, looked->why);
    }
    if (looked->quoted > 0)
        kiln_new_say_odd(config,
                         "texts in quotes after a blank, which are read as parts of them: %lld; "
                         "remove the blanks: sed 's/, \"/,\"/' FILE >FILE.csv",
                         (long long)looked->quoted);
    if (looked->tight > 0)
        kiln_new_say_odd(config,
                         "texts that are too long for their images: %lld, such as %s: crnn gives a "
                         "character for each %d pixels at most, at a height of %d; "
                         "datamodule.height=%d doubles that",
                         (long long)looked->tight, looked->tight_place, STEP, HEIGHT, 2 * HEIGHT);
}

static void fill(const Looked *looked, size_t image, size_t text)
{
    const KilnNewRows *rows = looked->rows;
    KilnNewConfig *config = rows->config;
    const double val_fraction = looked->n < 1000 ? 0.2 : 0.1;

    config->task = "text_recognition";
    config->datamodule = "text_line_list";
    config->model = "crnn";
    config->optimizer = "adamw";
    kiln_new_say(config, "data", "a list of %lld images of lines (column %s) and their texts",
                 (long long)looked->n, rows->names[image]);
    kiln_new_say(config, "task", "text_recognition: the text of a line, up to %lld characters",
                 (long long)looked->longest);
    kiln_new_say(config, "model", "crnn: convolutions and an LSTM, from scratch");
    say_characters(looked);
    kiln_new_set(config, KILN_NEW_ROOT, "lr", "0.002");
    kiln_new_set_length(config, looked->n, looked->n < 1000 ? 8 : 32, 4000, 100);
    kiln_new_set_files(config, rows->files);
    if (looked->root != NULL)
        kiln_new_set_text(config, KILN_NEW_DATA, "root", looked->root);
    kiln_new_rows_set(rows, "columns");
    kiln_new_set_text(config, KILN_NEW_DATA, "image", rows->names[image]);
    kiln_new_set_text(config, KILN_NEW_DATA, "text", rows->names[text]);
    kiln_new_set(config, KILN_NEW_DATA, "max_width", "%lld  # the widest line, %d pixels high",
                 (long long)((looked->widest + HEIGHT - 1) / HEIGHT * HEIGHT), HEIGHT);
    if (rows->files->n[KILN_VAL] == 0)
        kiln_new_set(config, KILN_NEW_DATA, "val_fraction", "%g", val_fraction);
    kiln_new_set(config, KILN_NEW_TRAINER, "gradient_clip_val", "1.0");
    say_odd(looked);
    kiln_new_say_splits(config, rows->files, val_fraction, 0.0);
}

KilnStatus kiln_new_lines(KilnNewRows *rows, size_t image, size_t text, const char *root,
                          KilnError *err)
{
    const KilnDataContext context = { .stage = KILN_STAGE_FIT };
    Looked looked = { .rows = rows, .root = root };

    rows->decimal_comma = false; /* it is no number here */
    kiln_line_images_init(&looked.lines, HEIGHT, WIDEST);
    KilnStatus status = kiln_line_images_open(&looked.lines, &context, err);
    for (int split = 0; split < KILN_SPLIT_COUNT && status >= 0; split++) {
        looked.columns[IMAGE] = image;
        looked.columns[TEXT] = text;
        status = look_at_split(&looked, (KilnSplit)split, err);
    }
    if (status >= 0 && looked.n < 4)
        status = kiln_error_set(err, KILN_E_FORMAT,
                                "%s: %lld lines that can be read are too few to train and validate "
                                "on%s%s",
                                rows->files->list[KILN_TRAIN][0], (long long)looked.n,
                                looked.bad > 0 ? "; the first that can't: " : "", looked.why);
    if (status >= 0)
        fill(&looked, image, text);
    kiln_text_release(&looked.path);
    kiln_line_images_release(&looked.lines);
    return status;
}

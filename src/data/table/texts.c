/* Columns of texts as the feature "tokens": those of a row, joined by blanks, as ids of a tokenizer
 * that is trained on the training rows and saved with the checkpoint. */
#include <stdlib.h>

#include "base/system/file.h"
#include "data/table/table_data.h"
#include "kiln/tokenizer.h"

static const char file_name[] = "tokenizer.json";

bool kiln_table_is_text(const KilnTableData *data, size_t c)
{
    return data->source.tokenizer != NULL && data->plan.columns[c].kind == KILN_COLUMN_TEXT;
}

bool kiln_table_has_texts(const KilnTableData *data)
{
    for (size_t c = 0; c < data->plan.n_columns; c++)
        if (kiln_table_is_text(data, c))
            return true;
    return false;
}

/* ---- The text of a row ----------------------------------------------------------------------- */

static void join(KilnText *text, KilnString more)
{
    if (text->length > 0 && more.length > 0)
        kiln_text_char(text, ' ');
    kiln_text_append_n(text, more.data != NULL ? more.data : "", more.length);
}

/* The texts of row `row` of the cells, replacing `ret`. */
static void text_of_row(const KilnTableData *data, const KilnCells *cells,
                        const KilnCellColumn *columns, int64_t row, KilnText *ret)
{
    kiln_text_clear(ret);
    for (size_t c = 0; c < data->plan.n_columns; c++) {
        char buf[40];

        if (!kiln_table_is_text(data, c) || cells->cells[c] == NULL)
            continue;
        const KilnCell cell = cells->cells[c][row];
        if (kiln_cell_is_text(cell))
            join(ret, columns[c].dictionary.texts[kiln_cell_code(cell)]);
        else if (kiln_cell_is_number(cell))
            join(ret, kiln_number_name(kiln_cell_number(cell), buf));
    }
}

/* ---- The tokenizer --------------------------------------------------------------------------- */

typedef struct Reader {
    const KilnTableData *data;
    const KilnCells *cells;
    const KilnCellColumn *columns;
    KilnRowList rows;
    int64_t at;
    KilnText text;
} Reader;

static bool next(void *ctx, KilnString *ret, KilnStatus *ret_status, KilnError *err)
{
    Reader *reader = ctx;

    if (reader->at == reader->rows.n)
        return false;
    text_of_row(reader->data, reader->cells, reader->columns, reader->rows.rows[reader->at++],
                &reader->text);
    if (reader->text.failed) {
        *ret_status = kiln_error_nomem(err, reader->text.capacity);
        return false;
    }
    *ret = (KilnString) { reader->text.data, reader->text.length };
    return true;
}

KilnStatus kiln_table_train_tokenizer(const KilnTableData *data, const KilnCells *cells,
                                      const KilnCellColumn *columns, KilnRowList rows,
                                      KilnError *err)
{
    Reader reader = { .data = data, .cells = cells, .columns = columns, .rows = rows };
    const KilnTexts texts = { .next = next, .ctx = &reader };

    if (!kiln_table_has_texts(data))
        return KILN_OK;
    const KilnStatus status = kiln_tokenizer_train(data->source.tokenizer, &texts, data->poll, err);
    kiln_text_release(&reader.text);
    return status;
}

KilnStatus kiln_table_open_tokenizer(const KilnTableData *data, const char *fitted, KilnError *err)
{
    char *path = kiln_table_has_texts(data) ? kiln_path_join(fitted, file_name) : NULL;
    KilnStatus status = KILN_OK;

    if (!kiln_table_has_texts(data))
        return KILN_OK;
    if (path == NULL)
        return kiln_error_nomem(err, sizeof(file_name));
    status = kiln_tokenizer_open(data->source.tokenizer, path, err);
    free(path);
    return status;
}

KilnStatus kiln_table_save_tokenizer(const KilnTableData *data, const char *dir, KilnError *err)
{
    return kiln_table_has_texts(data)
               ? kiln_text_tokenizer_save(data->source.tokenizer, dir, file_name, err)
               : KILN_OK;
}

/* ---- Ids ------------------------------------------------------------------------------------- */

static KilnTextEncode encode_of(const KilnTableData *data)
{
    return (KilnTextEncode) { .tokenizer = data->source.tokenizer,
                              .pair = -1,
                              .max_length = data->source.max_length };
}

KilnStatus kiln_table_fill_tokens(KilnTableRows *rows, const KilnCells *cells,
                                  const KilnCellColumn *columns, KilnRowList list, KilnError *err)
{
    const KilnTableData *data = rows->data;
    const KilnTextEncode encode = encode_of(data);
    const int64_t most = data->source.max_length;
    KilnText text = { 0 };
    KilnStatus status = KILN_OK;

    if (!kiln_table_has_texts(data))
        return KILN_OK;
    rows->tokens = calloc((size_t)(list.n * most) + 1, sizeof(*rows->tokens));
    rows->lengths = calloc((size_t)list.n + 1, sizeof(*rows->lengths));
    if (rows->tokens == NULL || rows->lengths == NULL)
        return kiln_error_nomem(err, (size_t)(list.n * most) * sizeof(*rows->tokens));
    for (int64_t i = 0; i < list.n && status >= 0; i++) {
        text_of_row(data, cells, columns, list.rows[i], &text);
        status = text.failed
                     ? kiln_error_nomem(err, text.capacity)
                     : kiln_text_encode_one(&encode, (KilnString) { text.data, text.length }, NULL,
                                            rows->tokens + i * most, &rows->lengths[i], err);
    }
    kiln_text_release(&text);
    return status;
}

KilnStatus kiln_table_encode_raw(const KilnTableData *data, const KilnRawValue *values,
                                 KilnSample *sample, KilnError *err)
{
    const KilnTextEncode encode = encode_of(data);
    KilnText text = { 0 };

    for (size_t c = 0; c < data->plan.n_columns; c++) {
        const KilnRawValue *value = kiln_table_is_text(data, c) ? &values[data->field_of[c]] : NULL;
        char buf[40];

        if (value != NULL && value->type == KILN_RAW_TEXT) {
            const KilnCellValue cell = kiln_cell_value(
                &data->rules, (KilnString) { value->text, strlen(value->text) }, true);

            if (cell.kind != KILN_VALUE_MISSING)
                join(&text, cell.text);
        } else if (value != NULL && value->type == KILN_RAW_NUMBER) {
            join(&text, kiln_number_name(value->number, buf));
        }
    }
    const KilnStatus status =
        text.failed
            ? kiln_error_nomem(err, text.capacity)
            : kiln_text_encode_one(&encode, (KilnString) { text.data, text.length }, NULL,
                                   sample->data[data->tokens], &sample->lengths[data->tokens], err);
    kiln_text_release(&text);
    return status;
}

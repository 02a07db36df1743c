/* A tokenizer for text data: trained on the training split, or read from the checkpoint. */
#include <stdio.h>
#include <string.h>

#include "data/text/text_data.h"

/* The texts of some columns of the training split, row by row; of lists, their items. */
typedef struct Training {
    const KilnTextData *data;
    const size_t *columns;
    size_t n;
    int64_t row;
    size_t column; /* of the row, the next one */
    KilnRecord record;
    KilnString rest; /* of the column before, its next items */
} Training;

/* Begin the next column; false: there is none, or it can't be read. */
static bool next_column(Training *training, KilnStatus *ret_status, KilnError *err)
{
    if (training->column == training->n) {
        training->column = 0;
        training->row++;
    }
    if (training->row >= kiln_text_data_count(training->data, KILN_TRAIN))
        return false;
    if (training->column == 0)
        *ret_status = kiln_text_data_read(training->data, KILN_TRAIN, training->row,
                                          &training->record, err);
    if (*ret_status >= 0)
        training->rest = training->record.fields[training->columns[training->column++]];
    return *ret_status >= 0;
}

static bool next_text(void *ctx, KilnString *ret, KilnStatus *ret_status, KilnError *err)
{
    Training *training = ctx;

    while (!kiln_record_next_item(&training->rest, ret))
        if (!next_column(training, ret_status, err))
            return false;
    return true;
}

KilnStatus kiln_text_tokenizer_prepare(KilnInstance *tokenizer, const char *name,
                                       const KilnTextData *data, const size_t *columns, size_t n,
                                       const KilnDataContext *context, KilnError *err)
{
    Training training = { .data = data, .columns = columns, .n = n };
    const KilnTexts texts = { next_text, &training };
    char path[4096];

    if (context->fitted != NULL) {
        snprintf(path, sizeof(path), "%s/%s", context->fitted, name);
        return kiln_tokenizer_open(tokenizer, path, err);
    }
    if (context->stage != KILN_STAGE_FIT)
        return kiln_error_set(err, KILN_E_MISSING,
                              "the checkpoint has no tokenizer (%s); train again", name);
    const KilnStatus status = kiln_tokenizer_train(tokenizer, &texts, context->poll, err);
    kiln_record_release(&training.record);
    return status;
}

KilnStatus kiln_text_tokenizer_save(const KilnInstance *tokenizer, const char *dir,
                                    const char *name, KilnError *err)
{
    char path[4096];

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return kiln_tokenizer_save(tokenizer, path, err);
}

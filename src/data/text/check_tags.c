/* The check of tags in a data set of sentences. */
#include "data/tag_check.h"
#include "kiln/array.h"
#include "kiln/tools/text_data.h"
#include "kiln/tools/text_words.h"

#include <stdlib.h>

typedef struct Columns {
    size_t words, tags;
} Columns;

/* A sentence; grown as needed. */
typedef struct Sentence {
    KilnRecord record;
    KilnWords split;
    KilnString *words, *tags;
    size_t words_room, tags_room;
} Sentence;

static void sentence_release(Sentence *sentence)
{
    kiln_record_release(&sentence->record);
    kiln_words_release(&sentence->split);
    free(sentence->words);
    free(sentence->tags);
}

static KilnStatus check_sentence(const KilnTextData *data, const Columns *columns, KilnSplit split,
                                 int64_t i, Sentence *sentence, KilnTagCheck *check, KilnError *err)
{
    KilnWords *words = &sentence->split;
    char place[512];
    KilnString rest, tag;
    size_t n = 0;
    KilnStatus status = kiln_text_data_read(data, split, i, &sentence->record, err);

    if (status >= 0)
        status = kiln_words_of_value(words, sentence->record.fields[columns->words], err);
    if (status < 0)
        return status;
    if (!KILN_RESERVE(sentence->words, sentence->words_room, words->n + 1) ||
        !KILN_RESERVE(sentence->tags, sentence->tags_room, words->n + 1))
        return kiln_error_nomem(err, words->n * sizeof(*sentence->words));
    rest = sentence->record.fields[columns->tags];
    for (const bool list = kiln_value_is_list(rest);
         n < words->n && kiln_value_next_item(&rest, list, &tag); n++) {
        sentence->words[n] = kiln_words_at(words, n);
        sentence->tags[n] = tag;
    }
    kiln_tag_check_add(check, sentence->words, sentence->tags, (int64_t)n,
                       kiln_text_data_location(data, split, i, place, sizeof(place)));
    return KILN_OK;
}

KilnStatus kiln_text_data_check_tags(const KilnTextData *data, size_t words, size_t tags,
                                     const KilnPoll *poll,
                                     void (*add)(void *ctx, const KilnDataFinding *finding),
                                     void *ctx, KilnError *err)
{
    const Columns columns = { words, tags };
    Sentence sentence = { 0 };
    KilnStatus status = KILN_OK;

    for (int s = 0; s < KILN_SPLIT_COUNT && status >= 0; s++) {
        const KilnSplit split = (KilnSplit)s;
        const int64_t n = kiln_text_data_count(data, split);
        KilnTagCheck check = { 0 };

        for (int64_t i = 0; i < n && status >= 0; i++) {
            status = kiln_poll_check(poll, "checking tags", i, n, err);
            if (status >= 0)
                status = check_sentence(data, &columns, split, i, &sentence, &check, err);
        }
        if (status >= 0 && n > 0)
            kiln_tag_check_report(&check, kiln_split_name(split), add, ctx);
    }
    sentence_release(&sentence);
    return status;
}

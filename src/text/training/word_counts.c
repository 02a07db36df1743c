/* Counts the words of texts, and the trainer of WordLevel, which keeps the most frequent. */
#include <stdlib.h>
#include <string.h>

#include "kiln/array.h"
#include "text/training/vocab_trainer.h"

static bool count_word(KilnWordCounts *counts, const char *word, size_t n)
{
    int32_t id = kiln_vocab_find(&counts->words, word, n);

    if (id < 0) {
        id = (int32_t)counts->words.n;
        if (!KILN_RESERVE(counts->counts, counts->capacity, (size_t)id + 1) ||
            !kiln_vocab_add(&counts->words, (KilnString) { word, n }, id))
            return false;
        counts->counts[id] = 0;
    }
    counts->counts[id]++;
    return true;
}

static KilnStatus count_text(const KilnTokenPipeline *pipeline, KilnString text, KilnPieces *pieces,
                             KilnWordCounts *ret, KilnError *err)
{
    KilnStatus status = kiln_pipeline_pieces(pipeline, text, pieces, err);

    for (size_t i = 0; i < pieces->n && status >= 0; i++) {
        const KilnTextPiece *piece = &pieces->items[i];

        /* JSON objects of the file format have no keys with U+0000. */
        if (piece->n > 0 && memchr(pieces->text + piece->at, '\0', piece->n) == NULL &&
            !count_word(ret, pieces->text + piece->at, piece->n))
            status = kiln_error_nomem(err, ret->words.n * sizeof(KilnString));
    }
    return status;
}

KilnStatus kiln_word_counts_read(const KilnTokenPipeline *pipeline, const KilnTexts *texts,
                                 const KilnPoll *poll, KilnWordCounts *ret, KilnError *err)
{
    KilnPieces pieces = { 0 };
    KilnString text;
    KilnStatus status = KILN_OK;
    int64_t n = 0;

    while (status >= 0 && texts->next(texts->ctx, &text, &status, err)) {
        if (status >= 0)
            status = count_text(pipeline, text, &pieces, ret, err);
        if (status >= 0 && ++n % 256 == 0)
            status = kiln_poll_check(poll, "reading texts", n, 0, err);
    }
    kiln_pieces_release(&pieces);
    if (status >= 0 && ret->words.n == 0)
        status = kiln_error_set(err, KILN_E_MISSING, "the %lld texts have no words to learn from",
                                (long long)n);
    return status;
}

void kiln_word_counts_release(KilnWordCounts *counts)
{
    kiln_vocab_release(&counts->words);
    free(counts->counts);
    *counts = (KilnWordCounts) { 0 };
}

/* ---- What was learned ------------------------------------------------------------------------ */

int32_t kiln_learned_add(KilnLearned *learned, const char *token, size_t n)
{
    const int32_t id = kiln_vocab_find(&learned->vocab, token, n);

    if (id >= 0)
        return id;
    const int32_t next = (int32_t)learned->vocab.n;
    return kiln_vocab_add(&learned->vocab, (KilnString) { token, n }, next) ? next : -1;
}

void kiln_learned_release(KilnLearned *learned)
{
    kiln_vocab_release(&learned->vocab);
    free(learned->merges);
    free(learned->scores);
    *learned = (KilnLearned) { 0 };
}

/* ---- WordLevel ------------------------------------------------------------------------------- */

typedef struct CountedWord {
    KilnString word;
    int64_t count;
} CountedWord;

static int compare_words(const void *first, const void *second)
{
    const CountedWord *a = first, *b = second;
    const size_t n = a->word.length < b->word.length ? a->word.length : b->word.length;

    if (a->count != b->count)
        return a->count > b->count ? -1 : 1;
    const int order = memcmp(a->word.data, b->word.data, n);
    return order != 0                        ? order
           : a->word.length < b->word.length ? -1
                                             : a->word.length > b->word.length;
}

KilnStatus kiln_train_words(const KilnWordCounts *words, const KilnTokenTraining *training,
                            KilnLearned *ret, KilnError *err)
{
    CountedWord *list = malloc((words->words.n + 1) * sizeof(*list));
    bool failed = list == NULL;

    for (size_t i = 0; i < words->words.n && !failed; i++)
        list[i] = (CountedWord) { words->words.tokens[i], words->counts[i] };
    if (!failed)
        qsort(list, words->words.n, sizeof(*list), compare_words);
    for (size_t i = 0; i < training->n_special_tokens && !failed; i++)
        failed = kiln_learned_add(ret, training->special_tokens[i],
                                  strlen(training->special_tokens[i])) < 0;
    for (size_t i = 0; i < words->words.n && !failed; i++) {
        if (list[i].count < training->min_frequency ||
            (int64_t)ret->vocab.n >= training->vocab_size)
            break;
        failed = kiln_learned_add(ret, list[i].word.data, list[i].word.length) < 0;
    }
    free(list);
    return failed ? kiln_error_nomem(err, words->words.n * sizeof(*list)) : KILN_OK;
}

/* Byte pair encoding: the merge with the lowest rank first, of these the leftmost. */
#include <stdlib.h>
#include <string.h>

#include "kiln/array.h"
#include "text/pipeline/token_model.h"
#include "text/unicode/characters.h"

/* Words up to this length are searched for the next merge; longer ones use a heap. */
enum { SHORT_WORD = 48 };

/* ---- The table of merges --------------------------------------------------------------------- */

static size_t hash_pair(int32_t left, int32_t right)
{
    const uint64_t key = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;

    return (size_t)((key * 0x9e3779b97f4a7c15u) >> 20);
}

static KilnMerge *merge_slot(const KilnTokenModel *model, int32_t left, int32_t right)
{
    const size_t mask = model->merges_size - 1;
    size_t at = hash_pair(left, right) & mask;

    while (model->merges[at].left >= 0 &&
           (model->merges[at].left != left || model->merges[at].right != right))
        at = (at + 1) & mask;
    return &model->merges[at];
}

static const KilnMerge *find_merge(const KilnTokenModel *model, int32_t left, int32_t right)
{
    if (model->merges_size == 0)
        return NULL;
    const KilnMerge *merge = merge_slot(model, left, right);
    return merge->left >= 0 ? merge : NULL;
}

/* The id of what two tokens merge to; -1: the vocabulary lacks it. */
static int32_t merged_id(const KilnTokenModel *model, int32_t left, int32_t right, KilnText *text)
{
    const KilnString a = model->vocab.tokens[left], b = model->vocab.tokens[right];
    const size_t skip = model->prefix != NULL ? strlen(model->prefix) : 0;

    kiln_text_clear(text);
    kiln_text_append_n(text, a.data, a.length);
    if (b.length >= skip)
        kiln_text_append_n(text, b.data + skip, b.length - skip);
    return text->failed ? -1 : kiln_vocab_find(&model->vocab, text->data, text->length);
}

KilnStatus kiln_bpe_prepare(KilnTokenModel *model, size_t *ret_bad, KilnError *err)
{
    size_t size = 16;
    KilnText text = { 0 };

    while (size < model->n_merges * 2)
        size *= 2;
    free(model->merges);
    model->merges = malloc(size * sizeof(*model->merges));
    if (model->merges == NULL)
        return kiln_error_nomem(err, size * sizeof(*model->merges));
    model->merges_size = size;
    for (size_t i = 0; i < size; i++)
        model->merges[i].left = -1;
    for (size_t i = 0; i < model->n_merges; i++) {
        const int32_t left = model->merge_list[i][0], right = model->merge_list[i][1];
        const int32_t id = merged_id(model, left, right, &text);

        if (id < 0) {
            kiln_text_release(&text);
            *ret_bad = i;
            return KILN_E_FORMAT;
        }
        *merge_slot(model, left, right) = (KilnMerge) { left, right, (int32_t)i, id };
    }
    kiln_text_release(&text);
    return KILN_OK;
}

/* ---- Symbols --------------------------------------------------------------------------------- */

/* The symbols of a word that is being read. */
typedef struct Word {
    const KilnTokenModel *model;
    KilnModelWork *work;
    size_t n;
    int32_t unk; /* an unknown token that may still grow; -1: none */
    uint32_t unk_length;
} Word;

static void put_symbol(Word *word, int32_t id, size_t length)
{
    if (!KILN_RESERVE(word->work->symbols, word->work->symbols_capacity, word->n + 1)) {
        word->work->failed = true;
        return;
    }
    const int32_t at = (int32_t)word->n++;

    if (at > 0)
        word->work->symbols[at - 1].next = at;
    word->work->symbols[at] =
        (KilnSymbol) { .id = id, .previous = at - 1, .next = -1, .length = (uint32_t)length };
}

static void flush_unk(Word *word)
{
    if (word->unk >= 0)
        put_symbol(word, word->unk, word->unk_length);
    word->unk = -1;
}

/* The bytes of `text` as tokens <0x..>; false: one is missing. */
static bool put_bytes(Word *word, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (word->model->byte_ids[(unsigned char)text[i]] < 0)
            return false;
    for (size_t i = 0; i < n; i++)
        put_symbol(word, word->model->byte_ids[(unsigned char)text[i]], 1);
    return true;
}

/* A symbol that the vocabulary lacks. Without a token for unknown ones it is left out. */
static void put_unknown(Word *word, const char *symbol, size_t n, size_t length)
{
    const KilnTokenModel *model = word->model;

    if (model->byte_fallback && put_bytes(word, symbol, n))
        return;
    if (model->unk < 0)
        return;
    if (word->unk >= 0 && model->fuse_unk) {
        word->unk_length += (uint32_t)length;
        return;
    }
    flush_unk(word);
    word->unk = model->unk;
    word->unk_length = (uint32_t)length;
}

static void put_known(Word *word, int32_t id, size_t length)
{
    flush_unk(word);
    put_symbol(word, id, length);
}

static void read_raw(Word *word, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const int32_t id = word->model->alphabet[(unsigned char)text[i]];
        char c[4];

        if (id >= 0)
            put_known(word, id, 1);
        else
            put_unknown(word, c, kiln_byte_char((uint8_t)text[i], c), 1);
    }
}

static void read_characters(Word *word, const char *text, size_t n)
{
    const KilnTokenModel *model = word->model;
    const bool plain = (model->prefix == NULL || *model->prefix == '\0') &&
                       (model->suffix == NULL || *model->suffix == '\0');
    KilnText symbol = { 0 };

    for (size_t at = 0, length; at < n; at += length) {
        uint32_t c;
        const char *data = text + at;

        length = kiln_utf8_read(text + at, &c);
        size_t size = length;
        if (!plain) {
            kiln_text_clear(&symbol);
            if (at > 0 && model->prefix != NULL)
                kiln_text_append(&symbol, model->prefix);
            kiln_text_append_n(&symbol, text + at, length);
            if (at + length == n && model->suffix != NULL)
                kiln_text_append(&symbol, model->suffix);
            if (symbol.failed)
                break;
            data = symbol.data;
            size = symbol.length;
        }
        const int32_t id = kiln_vocab_find(&model->vocab, data, size);
        if (id >= 0)
            put_known(word, id, length);
        else
            put_unknown(word, data, size, length);
    }
    word->work->failed = word->work->failed || symbol.failed;
    kiln_text_release(&symbol);
}

/* ---- Merging --------------------------------------------------------------------------------- */

static void merge_at(KilnSymbol *symbols, int32_t at, int32_t id)
{
    KilnSymbol *left = &symbols[at], *right = &symbols[left->next];

    left->id = id;
    left->length += right->length;
    left->next = right->next;
    right->length = 0;
    if (left->next >= 0)
        symbols[left->next].previous = at;
}

/* Search the lowest rank again after each merge; pair i is that of symbol i and the next. */
static size_t merge_short(const KilnTokenModel *model, KilnSymbol *symbols, size_t n)
{
    const KilnMerge *pairs[SHORT_WORD];

    for (size_t i = 0; i + 1 < n; i++)
        pairs[i] = find_merge(model, symbols[i].id, symbols[i + 1].id);
    while (n > 1) {
        size_t best = n;

        for (size_t i = 0; i + 1 < n; i++)
            if (pairs[i] != NULL && (best == n || pairs[i]->rank < pairs[best]->rank))
                best = i;
        if (best == n)
            break;
        symbols[best].id = pairs[best]->id;
        symbols[best].length += symbols[best + 1].length;
        n--;
        for (size_t i = best + 1; i < n; i++)
            symbols[i] = symbols[i + 1];
        for (size_t i = best + 1; i + 1 < n; i++)
            pairs[i] = pairs[i + 1];
        if (best > 0)
            pairs[best - 1] = find_merge(model, symbols[best - 1].id, symbols[best].id);
        if (best + 1 < n)
            pairs[best] = find_merge(model, symbols[best].id, symbols[best + 1].id);
    }
    return n;
}

static bool before(KilnHeapMerge a, KilnHeapMerge b)
{
    return a.rank != b.rank ? a.rank < b.rank : a.at < b.at;
}

static void heap_push(KilnModelWork *work, KilnHeapMerge item)
{
    if (!KILN_RESERVE(work->heap, work->heap_capacity, work->n_heap + 1)) {
        work->failed = true;
        return;
    }
    size_t at = work->n_heap++;

    for (; at > 0 && before(item, work->heap[(at - 1) / 2]); at = (at - 1) / 2)
        work->heap[at] = work->heap[(at - 1) / 2];
    work->heap[at] = item;
}

static KilnHeapMerge heap_pop(KilnModelWork *work)
{
    const KilnHeapMerge top = work->heap[0], last = work->heap[--work->n_heap];
    size_t at = 0;

    for (size_t child; (child = 2 * at + 1) < work->n_heap; at = child) {
        if (child + 1 < work->n_heap && before(work->heap[child + 1], work->heap[child]))
            child++;
        if (!before(work->heap[child], last))
            break;
        work->heap[at] = work->heap[child];
    }
    work->heap[at] = last;
    return top;
}

static void push_pair(const KilnTokenModel *model, KilnModelWork *work, int32_t at)
{
    const KilnSymbol *symbol = at >= 0 ? &work->symbols[at] : NULL;

    if (symbol == NULL || symbol->next < 0)
        return;
    const KilnMerge *merge = find_merge(model, symbol->id, work->symbols[symbol->next].id);
    if (merge != NULL)
        heap_push(work, (KilnHeapMerge) { merge->rank, at, merge->id });
}

static size_t merge_long(const KilnTokenModel *model, KilnModelWork *work, size_t n)
{
    KilnSymbol *symbols = work->symbols;
    size_t kept = 0;

    work->n_heap = 0;
    for (size_t i = 0; i < n; i++)
        push_pair(model, work, (int32_t)i);
    while (work->n_heap > 0 && !work->failed) {
        const KilnHeapMerge top = heap_pop(work);
        const KilnSymbol *symbol = &symbols[top.at];

        if (symbol->length == 0 || symbol->next < 0)
            continue;
        const KilnMerge *merge = find_merge(model, symbol->id, symbols[symbol->next].id);
        if (merge == NULL || merge->id != top.id)
            continue; /* one of the two has changed since */
        merge_at(symbols, top.at, top.id);
        push_pair(model, work, symbol->previous);
        push_pair(model, work, top.at);
    }
    for (size_t i = 0; i < n; i++)
        if (symbols[i].length > 0)
            symbols[kept++] = symbols[i];
    return kept;
}

/* A token that is the whole piece; -1: none. */
static int32_t whole_token(const KilnTokenModel *model, KilnModelWork *work, const char *text,
                           size_t n)
{
    size_t length = 0;

    if (!model->raw_bytes)
        return kiln_vocab_find(&model->vocab, text, n);
    if (!KILN_RESERVE(work->text, work->text_capacity, 2 * n + 4)) {
        work->failed = true;
        return -1;
    }
    for (size_t i = 0; i < n; i++)
        length += kiln_byte_char((uint8_t)text[i], work->text + length);
    return kiln_vocab_find(&model->vocab, work->text, length);
}

KilnStatus kiln_bpe_tokenize(const KilnTokenModel *model, KilnModelWork *work, const char *text,
                             size_t n, KilnError *err)
{
    Word word = { .model = model, .work = work, .unk = -1 };
    size_t at = 0;

    (void)err;
    if (model->ignore_merges) {
        const int32_t id = whole_token(model, work, text, n);

        if (id >= 0) {
            kiln_model_put(work, id, 0, n);
            return KILN_OK;
        }
    }
    if (model->raw_bytes)
        read_raw(&word, text, n);
    else
        read_characters(&word, text, n);
    flush_unk(&word);
    if (work->failed)
        return KILN_OK;
    const size_t kept = word.n <= SHORT_WORD ? merge_short(model, work->symbols, word.n)
                                             : merge_long(model, work, word.n);
    for (size_t i = 0; i < kept; i++) {
        kiln_model_put(work, work->symbols[i].id, at, at + work->symbols[i].length);
        at += work->symbols[i].length;
    }
    return KILN_OK;
}

/* Unigram: the segmentation with the highest sum of the tokens' scores (Viterbi). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kiln/array.h"
#include "text/pipeline/token_model.h"
#include "text/unicode/characters.h"

KilnStatus kiln_unigram_prepare(KilnTokenModel *model, KilnError *err)
{
    double least = INFINITY;

    for (size_t i = 0; i < model->vocab.n; i++) {
        if (model->vocab.tokens[i].data == NULL)
            continue;
        if (!kiln_trie_add(&model->trie, model->vocab.tokens[i], (int32_t)i))
            return kiln_error_nomem(err, model->trie.capacity * sizeof(*model->trie.nodes));
        least = model->scores[i] < least ? model->scores[i] : least;
    }
    model->unk_score = least - KILN_UNIGRAM_UNK_PENALTY;
    return KILN_OK;
}

/* ---- The best path --------------------------------------------------------------------------- */

static void reach(KilnPathNode *node, double score, size_t start, int32_t id)
{
    if (node->start < 0 || score > node->score)
        *node = (KilnPathNode) { .score = score, .start = (int32_t)start, .id = id };
}

/* Extend the best path that ends at `start` by each token that begins there; false: none of them
 * is a single character. */
static bool extend(const KilnTokenModel *model, KilnPathNode *path, const char *text, size_t n,
                   size_t start, size_t char_length)
{
    int32_t node = model->trie.first[(uint8_t)text[start]];
    bool single = false;

    for (size_t at = start + 1; node > 0; at++) {
        const int32_t id = model->trie.nodes[node].id;

        if (id >= 0) {
            reach(&path[at], path[start].score + model->scores[id], start, id);
            single = single || at - start == char_length;
        }
        node = at < n ? kiln_trie_sibling(&model->trie, model->trie.nodes[node].child,
                                          (uint8_t)text[at])
                      : 0;
    }
    return single;
}

/* A token of the best path: unknown characters that follow each other are one, written as bytes if
 * the vocabulary has those. */
static void put_token(const KilnTokenModel *model, KilnModelWork *work, const char *text,
                      size_t begin, size_t end)
{
    const int32_t id = kiln_vocab_find(&model->vocab, text + begin, end - begin);
    bool bytes = id < 0 && model->byte_fallback;

    for (size_t i = begin; i < end && bytes; i++)
        bytes = model->byte_ids[(unsigned char)text[i]] >= 0;
    if (!bytes)
        kiln_model_put(work, id >= 0 ? id : model->unk, begin, end);
    for (size_t i = begin; i < end && bytes; i++)
        kiln_model_put(work, model->byte_ids[(unsigned char)text[i]], begin, end);
}

/* Put the path's nodes in their order: each start then has the end of its token. */
static void put_path(const KilnTokenModel *model, KilnModelWork *work, const char *text, size_t n)
{
    KilnPathNode *path = work->path;
    size_t begin = 0;

    for (size_t end = n; end > 0;) {
        const size_t start = (size_t)path[end].start;

        path[start].score = (double)end; /* the scores are not needed any more */
        end = start;
    }
    while (begin < n) {
        size_t end = (size_t)path[begin].score;

        while (end < n && path[end].id == model->unk &&
               path[(size_t)path[end].score].id == model->unk)
            end = (size_t)path[end].score;
        put_token(model, work, text, begin, end);
        begin = end;
    }
}

KilnStatus kiln_unigram_tokenize(const KilnTokenModel *model, KilnModelWork *work, const char *text,
                                 size_t n, KilnError *err)
{
    if (!KILN_RESERVE(work->path, work->path_capacity, n + 1)) {
        work->failed = true;
        return KILN_OK;
    }
    work->path[0] = (KilnPathNode) { .start = 0, .id = -1 };
    for (size_t i = 1; i <= n; i++)
        work->path[i].start = -1;
    for (size_t at = 0, length; at < n; at += length) {
        uint32_t c;

        length = kiln_utf8_read(text + at, &c);
        if (extend(model, work->path, text, n, at, length))
            continue;
        if (model->unk < 0)
            return kiln_model_no_unk(model, err);
        reach(&work->path[at + length], work->path[at].score + model->unk_score, at, model->unk);
    }
    put_path(model, work, text, n);
    return KILN_OK;
}

/* Words and hashed n-grams, as fastText makes them of a line (Joulin et al., "Bag of Tricks for
 * Efficient Text Classification", 2016; Dictionary::getLine of fastText 0.9.2): words are what
 * white space separates, with </s> after the last; n-grams of words, and of the characters of a
 * word, have the id of one of `buckets` hash values. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kiln.h"
#include "kiln/array.h"
#include "kiln/tokenizer.h"

typedef struct Opts {
    int64_t word_ngrams, minn, maxn, buckets, min_frequency;
} Opts;

static const KilnField fields[] = {
    KILN_FIELD_I64(Opts, word_ngrams, "1", 1, 16, "words of the longest n-gram of words"),
    KILN_FIELD_I64(Opts, minn, "0", 0, 64, "characters of the shortest n-gram within a word"),
    KILN_FIELD_I64(Opts, maxn, "0", 0, 64, "characters of the longest one; 0: none"),
    KILN_FIELD_I64(Opts, buckets, "2000000", 0, 1e9, "hash values of n-grams"),
    KILN_FIELD_I64(Opts, min_frequency, "1", 1, 1e9, "occurrences that a word needs"),
    KILN_FIELD_END,
};

/* A word of the vocabulary. */
typedef struct Word {
    char *text; /* NUL-terminated */
    size_t length;
    uint32_t hash;
    int64_t count;
} Word;

typedef struct State {
    int64_t word_ngrams, minn, maxn, buckets;
    Word *words;
    size_t n, capacity;
    int32_t *table; /* open addressing; -1: free */
    size_t table_size;
} State;

/* Ids: this, the words, the buckets. */
enum { PAD, FIRST_WORD };
static const char pad[] = "<pad>", end_of_text[] = "</s>";
static const char magic[] = "kiln ngrams 1";

/* ---- Words ------------------------------------------------------------------------------------
 */

/* FNV-1a with fastText's signed bytes. */
#define HASH_START 2166136261u

static uint32_t hash_byte(uint32_t hash, char c)
{
    const uint32_t byte = (uint32_t)(signed char)c;

    return (hash ^ byte) * 16777619u;
}

static uint32_t hash_of(const char *text, size_t n)
{
    uint32_t hash = HASH_START;

    for (size_t i = 0; i < n; i++)
        hash = hash_byte(hash, text[i]);
    return hash;
}

/* The entry of the table for a word, or the free one where it would be. */
static size_t slot_of(const State *state, const char *text, size_t n, uint32_t hash)
{
    size_t at = hash % state->table_size;

    while (state->table[at] >= 0) {
        const Word *word = &state->words[state->table[at]];

        if (word->hash == hash && word->length == n && memcmp(word->text, text, n) == 0)
            break;
        at = (at + 1) % state->table_size;
    }
    return at;
}

/* Make a table of twice the words. */
static bool make_table(State *state)
{
    const size_t size = 4 * state->n + 1024;
    int32_t *table = malloc(size * sizeof(*table));

    if (table == NULL)
        return false;
    memset(table, 0xff, size * sizeof(*table));
    free(state->table);
    state->table = table;
    state->table_size = size;
    for (size_t i = 0; i < state->n; i++)
        table[slot_of(state, state->words[i].text, state->words[i].length, state->words[i].hash)] =
            (int32_t)i;
    return true;
}

static bool add_word(State *state, const char *text, size_t n, int64_t count)
{
    const uint32_t hash = hash_of(text, n);

    if (2 * (state->n + 1) > state->table_size && !make_table(state))
        return false;
    const size_t slot = slot_of(state, text, n, hash);
    if (state->table[slot] >= 0) {
        state->words[state->table[slot]].count += count;
        return true;
    }
    char *copy = strndup(text, n);
    if (copy == NULL || !KILN_RESERVE(state->words, state->capacity, state->n + 1)) {
        free(copy);
        return false;
    }
    state->words[state->n] = (Word) { copy, n, hash, count };
    state->table[slot] = (int32_t)state->n++;
    return true;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == '\v' || c == '\f' || c == '\0';
}

/* The next word of the text at *at; after the last one </s>; false: there is none left. */
static bool next_word(KilnString text, size_t *at, KilnString *ret)
{
    while (*at < text.length && is_space(text.data[*at]))
        ++*at;
    const size_t begin = *at;
    while (*at < text.length && !is_space(text.data[*at]))
        ++*at;
    if (*at > begin) {
        *ret = (KilnString) { text.data + begin, *at - begin };
        return true;
    }
    *ret = (KilnString) { end_of_text, sizeof(end_of_text) - 1 };
    return (*at)++ == text.length;
}

/* ---- Training -----------------------------------------------------------------------------------
 */

static void forget(State *state)
{
    for (size_t i = 0; i < state->n; i++)
        free(state->words[i].text);
    free(state->words);
    free(state->table);
    *state = (State) { 0 };
}

/* Frequent words first, equally frequent ones in the order of their bytes. */
static int compare_words(const void *a, const void *b)
{
    const Word *x = a, *y = b;

    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    return strcmp(x->text, y->text);
}

static KilnStatus finish(State *state, int64_t min_frequency, KilnError *err)
{
    size_t kept = 0;

    if (state->n > 0)
        qsort(state->words, state->n, sizeof(*state->words), compare_words);
    while (kept < state->n && state->words[kept].count >= min_frequency)
        kept++;
    for (size_t i = kept; i < state->n; i++)
        free(state->words[i].text);
    state->n = kept;
    return make_table(state) ? KILN_OK : kiln_error_nomem(err, kept);
}

static KilnStatus train(KilnInstance *self, const KilnTexts *texts, const KilnPoll *poll,
                        KilnError *err)
{
    const Opts *opts = kiln_opts(self);
    State *state = kiln_state(self);
    KilnStatus status = KILN_OK;
    KilnString text, word;
    int64_t n = 0;

    forget(state);
    *state = (State) { .word_ngrams = opts->word_ngrams,
                       .minn = opts->minn,
                       .maxn = opts->maxn,
                       .buckets = opts->buckets };
    for (; texts->next(texts->ctx, &text, &status, err); n++) {
        if (n % 1024 == 0 && (status = kiln_poll_check(poll, "counting words", n, 0, err)) < 0)
            return status;
        for (size_t at = 0; next_word(text, &at, &word);)
            if (!add_word(state, word.data, word.length, 1))
                return kiln_error_nomem(err, state->n * sizeof(*state->words));
    }
    if (status >= 0 && n == 0)
        status = kiln_error_set(err, KILN_E_MISSING, "there are no texts to learn words of");
    return status >= 0 ? finish(state, opts->min_frequency, err) : status;
}

/* ---- Files
 * ---------------------------------------------------------------------------------------- */

static KilnStatus save(const KilnInstance *self, const char *path, KilnError *err)
{
    const State *state = kiln_state((KilnInstance *)self);
    char own[4200];

    snprintf(own, sizeof(own), "%s.part", path);
    FILE *file = kiln_file_open(own, "w");
    bool good = file != NULL &&
                fprintf(file, "%s\n%" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %zu\n", magic,
                        state->word_ngrams, state->minn, state->maxn, state->buckets, state->n) > 0;
    for (size_t i = 0; i < state->n && good; i++)
        good = fprintf(file, "%s\n", state->words[i].text) > 0;
    if (file != NULL)
        good = fclose(file) == 0 && good;
    if (good && rename(own, path) == 0)
        return KILN_OK;
    const KilnStatus status = kiln_error_errno(err, own);
    remove(own);
    return status;
}

static KilnStatus read_words(State *state, FILE *file, const char *path, KilnError *err)
{
    char *line = NULL;
    size_t room = 0, n = 0;
    ssize_t length = getline(&line, &room, file);
    bool good = length == (ssize_t)sizeof(magic) && memcmp(line, magic, sizeof(magic) - 1) == 0;

    if (good && getline(&line, &room, file) > 0) {
        int64_t numbers[5] = { 0 };
        char *at = line;

        for (size_t i = 0; i < KILN_COUNT(numbers) && good; i++) {
            char *end;

            errno = 0;
            numbers[i] = strtoll(at, &end, 10);
            good = end > at && errno == 0 && numbers[i] >= 0 && numbers[i] <= INT32_MAX;
            at = end;
        }
        *state = (State) {
            .word_ngrams = numbers[0], .minn = numbers[1], .maxn = numbers[2], .buckets = numbers[3]
        };
        n = (size_t)numbers[4];
    }
    for (size_t i = 0; i < n && good; i++) {
        length = getline(&line, &room, file);
        good = length > 1 && line[length - 1] == '\n' &&
               add_word(state, line, (size_t)length - 1, 1) && state->n == i + 1;
    }
    free(line);
    if (!good)
        return kiln_error_set(err, KILN_E_FORMAT,
                              "%s: damaged, or not the file of a tokenizer/ngrams", path);
    return make_table(state) ? KILN_OK : kiln_error_nomem(err, n);
}

static KilnStatus open_file(KilnInstance *self, const char *path, KilnError *err)
{
    State *state = kiln_state(self);
    FILE *file = kiln_file_open(path, "r");

    if (file == NULL)
        return kiln_error_errno(err, path);
    forget(state);
    const KilnStatus status = read_words(state, file, path, err);
    fclose(file);
    return status;
}

/* ---- Encoding
 * --------------------------------------------------------------------------------------- */

/* Where an id comes from. */
typedef struct Place {
    size_t begin, end; /* bytes of the text */
} Place;

/* Offsets in characters, counted from the last place on: places come in order. */
typedef struct Counter {
    const char *text;
    bool characters;
    size_t bytes, n;
} Counter;

static uint32_t offset_of(Counter *counter, size_t at)
{
    if (!counter->characters)
        return (uint32_t)at;
    if (at < counter->bytes)
        counter->bytes = counter->n = 0;
    for (; counter->bytes < at; counter->bytes++)
        counter->n += ((unsigned char)counter->text[counter->bytes] & 0xc0) != 0x80;
    return (uint32_t)counter->n;
}

/* Where the ids of a text go. */
typedef struct Output {
    KilnEncoding *encoding;
    Counter *counter; /* NULL: no offsets */
    KilnText *texts;  /* of the ids, each followed by a NUL; NULL: none */
} Output;

static KilnStatus put(const Output *out, int64_t id, Place place, KilnString text, KilnError *err)
{
    KilnEncoding *to = out->encoding;
    const KilnStatus status = kiln_encoding_reserve(to, to->n + 1, err);

    if (status < 0)
        return status;
    to->ids[to->n] = (int32_t)id;
    to->spans[to->n].begin = out->counter != NULL ? offset_of(out->counter, place.begin) : 0;
    to->spans[to->n].end = out->counter != NULL ? offset_of(out->counter, place.end) : 0;
    to->types[to->n] = to->special[to->n] = to->sequences[to->n] = 0;
    to->n++;
    if (out->texts != NULL) {
        kiln_text_append_n(out->texts, text.data, text.length);
        kiln_text_char(out->texts, '\0');
    }
    return KILN_OK;
}

static int64_t id_of(const State *state, KilnString word)
{
    if (state->table_size == 0)
        return -1;
    const int32_t at =
        state->table[slot_of(state, word.data, word.length, hash_of(word.data, word.length))];

    return at >= 0 ? FIRST_WORD + at : -1;
}

static int64_t bucket_id(const State *state, uint64_t hash)
{
    return FIRST_WORD + (int64_t)state->n + (int64_t)(hash % (uint64_t)state->buckets);
}

/* Byte i of <word>. */
static char marked_byte(KilnString word, size_t i)
{
    return (char)(i == 0 ? '<' : i == word.length + 1 ? '>' : word.data[i - 1]);
}

static bool continues(KilnString word, size_t i)
{
    return ((unsigned char)marked_byte(word, i) & 0xc0) == 0x80;
}

/* The n-grams of characters of <word>. */
static KilnStatus put_characters(const State *state, KilnString word, Place place,
                                 const Output *out, KilnError *err)
{
    const size_t n = word.length + 2;
    KilnText marked = { 0 };

    for (size_t i = 0; i < n && out->texts != NULL; i++)
        kiln_text_char(&marked, marked_byte(word, i));
    KilnStatus status = marked.failed ? kiln_error_nomem(err, n) : KILN_OK;
    for (size_t i = 0; i < n && status >= 0 && state->buckets > 0; i++) {
        const char *text = marked.data != NULL ? marked.data + i : NULL;
        uint32_t hash = HASH_START;
        size_t end = i;

        if (continues(word, i))
            continue;
        for (int64_t length = 1; end < n && length <= state->maxn && status >= 0; length++) {
            do
                hash = hash_byte(hash, marked_byte(word, end++));
            while (end < n && continues(word, end));
            if (length >= state->minn && !(length == 1 && (i == 0 || end == n)))
                status = put(out, bucket_id(state, hash), place, (KilnString) { text, end - i },
                             err);
        }
    }
    kiln_text_release(&marked);
    return status;
}

/* Words, each with its characters. */
static KilnStatus put_words(const State *state, KilnString text, const Output *out, KilnError *err)
{
    KilnStatus status = KILN_OK;
    KilnString word;

    for (size_t at = 0; status >= 0 && next_word(text, &at, &word);) {
        const bool is_end = word.data == end_of_text;
        const size_t begin = is_end ? text.length : (size_t)(word.data - text.data);
        const Place place = { begin, is_end ? begin : begin + word.length };
        const int64_t id = id_of(state, word);

        if (id >= 0)
            status = put(out, id, place, word, err);
        if (status >= 0 && state->maxn > 0 && !is_end)
            status = put_characters(state, word, place, out, err);
    }
    return status;
}

/* N-grams of the words, whether they are in the vocabulary or not. Hashes are extended as signed
 * numbers, as fastText keeps them. */
static KilnStatus put_ngrams(const State *state, KilnString text, const Output *out, KilnError *err)
{
    KilnStatus status = KILN_OK;
    KilnString first, word;
    KilnText gram = { 0 };

    for (size_t at = 0; status >= 0 && next_word(text, &at, &first);) {
        uint64_t hash = (uint64_t)(int64_t)(int32_t)hash_of(first.data, first.length);
        const size_t begin = first.data == end_of_text ? text.length
                                                       : (size_t)(first.data - text.data);
        size_t next = at;

        kiln_text_clear(&gram);
        if (out->texts != NULL)
            kiln_text_append_n(&gram, first.data, first.length);
        for (int64_t n = 1; n < state->word_ngrams && status >= 0 && next_word(text, &next, &word);
             n++) {
            hash = hash * 116049371u + (uint64_t)(int64_t)(int32_t)hash_of(word.data, word.length);
            const size_t end = next < text.length ? next : text.length;
            if (out->texts != NULL) {
                kiln_text_char(&gram, ' ');
                kiln_text_append_n(&gram, word.data, word.length);
            }
            status = gram.failed ? kiln_error_nomem(err, text.length)
                                 : put(out, bucket_id(state, hash), (Place) { begin, end },
                                       (KilnString) { gram.data, gram.length }, err);
        }
    }
    kiln_text_release(&gram);
    return status;
}

static KilnStatus encode_text(const State *state, KilnString text, KilnOffsets offsets,
                              KilnEncoding *ret, KilnText *ret_texts, KilnError *err)
{
    Counter counter = { .text = text.data, .characters = offsets == KILN_OFFSETS_CHARACTERS };
    const Output out = { .encoding = ret,
                         .counter = offsets != KILN_OFFSETS_NONE ? &counter : NULL,
                         .texts = ret_texts };
    KilnStatus status = put_words(state, text, &out, err);

    if (status >= 0 && state->word_ngrams > 1 && state->buckets > 0)
        status = put_ngrams(state, text, &out, err);
    return status;
}

static KilnStatus encode(const KilnInstance *self, const KilnTokenizerInput *input,
                         KilnEncoding *ret, KilnError *err)
{
    const State *state = kiln_state((KilnInstance *)self);

    ret->n = 0;
    KilnStatus status = encode_text(state, input->text, input->offsets, ret, NULL, err);
    const size_t first = ret->n;
    if (status >= 0 && input->pair != NULL)
        status = encode_text(state, *input->pair, input->offsets, ret, NULL, err);
    for (size_t i = first; i < ret->n; i++)
        ret->types[i] = ret->sequences[i] = 1;
    return status;
}

/* N-grams of characters are shown with the marks that fastText puts around a word: <wa. */
static KilnStatus spell(const KilnInstance *self, const KilnTokenizerInput *input, KilnText *ret,
                        KilnError *err)
{
    const State *state = kiln_state((KilnInstance *)self);
    KilnEncoding encoding = { 0 };
    KilnStatus status = encode_text(state, input->text, KILN_OFFSETS_NONE, &encoding, ret, err);

    if (status >= 0 && input->pair != NULL)
        status = encode_text(state, *input->pair, KILN_OFFSETS_NONE, &encoding, ret, err);
    kiln_encoding_release(&encoding);
    return status >= 0 && ret->failed ? kiln_error_nomem(err, ret->length) : status;
}

/* ---- The vocabulary
 * ------------------------------------------------------------------------------- */

static int64_t size(const KilnInstance *self)
{
    const State *state = kiln_state((KilnInstance *)self);

    return FIRST_WORD + (int64_t)state->n + state->buckets;
}

static KilnString token(const KilnInstance *self, int64_t id)
{
    const State *state = kiln_state((KilnInstance *)self);

    if (id == PAD)
        return (KilnString) { pad, sizeof(pad) - 1 };
    if (id < FIRST_WORD || id >= FIRST_WORD + (int64_t)state->n)
        return (KilnString) { 0 };
    const Word *word = &state->words[id - FIRST_WORD];
    return (KilnString) { word->text, word->length };
}

static int64_t id(const KilnInstance *self, KilnString text)
{
    if (text.length == sizeof(pad) - 1 && memcmp(text.data, pad, text.length) == 0)
        return PAD;
    return id_of(kiln_state((KilnInstance *)self), text);
}

static int64_t special(const KilnInstance *self, KilnSpecialToken role)
{
    if (role == KILN_TOKEN_PAD)
        return PAD;
    return role == KILN_TOKEN_EOS ? id(self, (KilnString) { end_of_text, sizeof(end_of_text) - 1 })
                                  : -1;
}

static KilnStatus decode(const KilnInstance *self, const int32_t *ids, size_t n, bool skip_special,
                         KilnText *ret, KilnError *err)
{
    for (size_t i = 0, written = 0; i < n; i++) {
        const KilnString word = token(self, ids[i]);
        const bool added = ids[i] == PAD || ids[i] == special(self, KILN_TOKEN_EOS);

        if (word.length == 0 || (skip_special && added))
            continue;
        if (written++ > 0)
            kiln_text_char(ret, ' ');
        kiln_text_append_n(ret, word.data, word.length);
    }
    return ret->failed ? kiln_error_nomem(err, n) : KILN_OK;
}

static void release(KilnInstance *self)
{
    forget(kiln_state(self));
}

static const KilnTokenizerOps ops = {
    .train = train,
    .open = open_file,
    .save = save,
    .encode = encode,
    .decode = decode,
    .size = size,
    .token = token,
    .id = id,
    .special = special,
    .spell = spell,
};

const KilnComponent kiln_tokenizer_ngrams = {
    .kind = KILN_KIND_TOKENIZER,
    .name = "ngrams",
    .summary = "Words and hashed n-grams of words and characters, as fastText",
    KILN_FIELDS(fields),
    .opts_size = sizeof(Opts),
    .state_size = sizeof(State),
    .release = release,
    .ops.tokenizer = &ops,
};

#ifdef KILN_BUILD_PLUGIN
static const KilnComponent *const list[] = { &kiln_tokenizer_ngrams, NULL };
KILN_PLUGIN_DEFINE(list)
#endif

/* Streams of tokens: long documents, which are encoded in windows, have the ids that they have in
 * one piece, for every recorded tokenizer.json; in memory and in a file. */
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "kiln/tools/token_stream.h"
#include "tests/support/cmocka.h"
#include "tests/support/data/loader_fixture.h"
#include "text/stream/windowed_text.h"

enum { LENGTH = 5 * KILN_TEXT_WINDOW / 2 }; /* bytes of a text, about */

/* A recorded file's tokenizer; *ret: the file. */
static void open_recorded(const char *name, json_t **ret, Built *ret_tokenizer)
{
    char path[128], options[300];
    json_error_t why;
    KilnError err = { 0 };

    snprintf(path, sizeof(path), "tests/unit/text/%s.json", name);
    *ret = json_load_file(path, JSON_ALLOW_NUL, &why);
    assert_non_null(*ret);
    char *text = json_dumps(json_object_get(*ret, "tokenizer"), 0);
    fixture_put("tokenizer.json", text, strlen(text));
    free(text);
    snprintf(options, sizeof(options), "path: %s", fixture_path("tokenizer.json"));
    *ret_tokenizer = build_yaml_or_fail(KILN_KIND_TOKENIZER, "pretrained", options);
    if (kiln_tokenizer_train(ret_tokenizer->instance, &(KilnTexts) { 0 }, NULL, &err) < 0)
        fail_msg("%s: %s", name, err.text);
}

/* The recorded texts one after the other, in an order that does not repeat, each followed by one
 * of the separators. */
static void join_texts(const json_t *cases, const char *const *separators, size_t n, KilnText *ret)
{
    uint32_t state = 1;

    while (ret->length < LENGTH) {
        state = state * 1664525u + 1013904223u;
        const json_t *text =
            json_object_get(json_array_get(cases, (state >> 8) % json_array_size(cases)), "text");

        kiln_text_append_n(ret, json_string_value(text), json_string_length(text));
        kiln_text_append(ret, separators[(state >> 20) % n]);
    }
    assert_false(ret->failed);
}

static KilnTokenStream *open_stream(const KilnInstance *tokenizer, const char *path, bool cached)
{
    char cache[300];
    const KilnTextPart part = { path, 0, UINT64_MAX };
    KilnTokenStreamSpec spec = {
        .tokenizer = tokenizer, .parts = &part, .n_parts = 1, .name = "text"
    };
    KilnTokenStream *stream = NULL;
    KilnError err = { 0 };

    snprintf(cache, sizeof(cache), "%s", fixture_path("cache"));
    if (cached)
        spec.cache = cache;
    if (kiln_token_stream_open(&spec, &stream, &err) < 0)
        fail_msg("%s", err.text);
    return stream;
}

static int32_t *read_all(const KilnTokenStream *stream)
{
    const int64_t n = kiln_token_stream_count(stream);
    int32_t *ids = malloc((size_t)n * sizeof(*ids));

    assert_non_null(ids);
    kiln_token_stream_read(stream, 0, n, ids);
    return ids;
}

/* That the stream of a file has those ids, and then the end of a text if there is one. */
static void check_stream(const char *name, const KilnInstance *tokenizer, bool cached,
                         const KilnEncoding *want)
{
    const int64_t end = kiln_tokenizer_special(tokenizer, KILN_TOKEN_EOS);
    const size_t n = want->n + (end >= 0);
    KilnTokenStream *stream = open_stream(tokenizer, fixture_path("text.txt"), cached);
    int32_t *ids = read_all(stream);

    if ((size_t)kiln_token_stream_count(stream) != n)
        fail_msg("%s: %lld tokens, expected %zu", name, (long long)kiln_token_stream_count(stream),
                 n);
    for (size_t i = 0; i < want->n; i++)
        if (ids[i] != want->ids[i])
            fail_msg("%s: token %zu is %d, expected %d", name, i, ids[i], want->ids[i]);
    if (end >= 0)
        assert_int_equal(ids[want->n], end);
    kiln_token_stream_positions(stream, 0, (int64_t)n, ids); /* one document */
    assert_int_equal(ids[n - 1], n - 1);
    free(ids);
    kiln_token_stream_close(stream);
}

static void check_text(const char *name, const KilnInstance *tokenizer, bool cached,
                       const KilnText *text)
{
    const KilnTokenizerInput input = { .text = { text->data, text->length } };
    KilnEncoding whole = { 0 };
    KilnError err = { 0 };

    fixture_put("text.txt", text->data, text->length);
    if (kiln_tokenizer_encode(tokenizer, &input, &whole, &err) < 0)
        fail_msg("%s: %s", name, err.text);
    check_stream(name, tokenizer, false, &whole);
    if (cached) {
        check_stream(name, tokenizer, true, &whole); /* makes the file */
        check_stream(name, tokenizer, true, &whole); /* finds it */
    }
    kiln_encoding_release(&whole);
}

static void test_windows(void **unused)
{
    static const char *const names[] = { "gpt2",   "roberta",   "bert",     "bert_cased", "t5",
                                         "llama",  "llama3",    "words",    "digits",     "split",
                                         "merged", "delimiter", "metaspace" };
    static const char *const separators[] = { " ", "", "\n", "\n\n", "  ", "\r\n", " \n \n" };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(names); i++) {
        json_t *file;
        Built tokenizer;

        open_recorded(names[i], &file, &tokenizer);
        const json_t *cases = json_object_get(file, "cases");
        for (int lines = 0; lines < 2; lines++) {
            KilnText text = { 0 };

            join_texts(cases, separators, lines ? KILN_COUNT(separators) : 1, &text);
            check_text(names[i], tokenizer.instance, i == 0, &text);
            kiln_text_release(&text);
        }
        built_free(&tokenizer);
        json_decref(file);
    }
}

/* Nothing is lost or doubled where a word is longer than a window. */
static void test_long_word(void **unused)
{
    static const char *const words[] = { "a", "ab", "\xf0\x9f\x91\xa9\xe2\x80\x8d", "x1", "    " };
    json_t *file;
    Built tokenizer;

    (void)unused;
    open_recorded("gpt2", &file, &tokenizer);
    for (size_t i = 0; i < KILN_COUNT(words); i++) {
        KilnText text = { 0 }, decoded = { 0 };
        KilnError err = { 0 };

        while (text.length < LENGTH)
            kiln_text_append(&text, words[i]);
        fixture_put("text.txt", text.data, text.length);
        KilnTokenStream *stream = open_stream(tokenizer.instance, fixture_path("text.txt"), false);
        int32_t *ids = read_all(stream);
        assert_int_equal(kiln_tokenizer_decode(tokenizer.instance, ids,
                                               (size_t)kiln_token_stream_count(stream), true,
                                               &decoded, &err),
                         KILN_OK);
        assert_int_equal(decoded.length, text.length);
        assert_memory_equal(decoded.data, text.data, text.length);
        free(ids);
        kiln_token_stream_close(stream);
        kiln_text_release(&text);
        kiln_text_release(&decoded);
    }
    built_free(&tokenizer);
    json_decref(file);
}

/* A tokenizer learns the same words from one long line as from many short ones. */
static void test_training_on_a_long_line(void **unused)
{
    static const char *const files[] = { "line.txt", "lines.txt" };
    Built tokenizers[2];
    KilnError err = { 0 };

    (void)unused;
    for (int i = 0; i < 2; i++) {
        KilnText text = { 0 };

        for (int word = 0; text.length < LENGTH; word++)
            kiln_text_printf(&text, "word %d%c", word % 997, i == 1 && word % 10 == 0 ? '\n' : ' ');
        fixture_put(files[i], text.data, text.length);
        kiln_text_release(&text);
        tokenizers[i] = build_yaml_or_fail(KILN_KIND_TOKENIZER, "words", "vocab_size: 2000");
        const KilnTextPart part = { fixture_path(files[i]), 0, UINT64_MAX };
        if (kiln_text_parts_train(&part, 1, tokenizers[i].instance, NULL, &err) < 0)
            fail_msg("%s", err.text);
    }
    const int64_t size = kiln_tokenizer_size(tokenizers[0].instance);
    assert_int_equal(size, kiln_tokenizer_size(tokenizers[1].instance));
    for (int64_t id = 0; id < size; id++) {
        const KilnString token = kiln_tokenizer_token(tokenizers[0].instance, id);
        const KilnString other = kiln_tokenizer_token(tokenizers[1].instance, id);

        assert_int_equal(token.length, other.length);
        assert_memory_equal(token.data, other.data, token.length);
    }
    built_free(&tokenizers[0]);
    built_free(&tokenizers[1]);
}

/* The byte of bad text in a later window is the file's. */
static void test_place(void **unused)
{
    KilnText text = { 0 };
    KilnTokenStream *stream = NULL;
    KilnError err = { 0 };
    json_t *file;
    Built tokenizer;

    (void)unused;
    open_recorded("gpt2", &file, &tokenizer);
    while (text.length < LENGTH)
        kiln_text_append(&text, "0123456789 abcde\n");
    const size_t bad = text.length - 100;
    text.data[bad] = '\xff';
    fixture_put("text.txt", text.data, text.length);
    const KilnTextPart part = { fixture_path("text.txt"), 0, UINT64_MAX };
    const KilnTokenStreamSpec spec = {
        .tokenizer = tokenizer.instance, .parts = &part, .n_parts = 1, .name = "text"
    };
    char says[100];
    snprintf(says, sizeof(says), "text.txt:%zu: byte %zu of the file (0xff)", bad / 17 + 1, bad);
    assert_int_equal(kiln_token_stream_open(&spec, &stream, &err), KILN_E_FORMAT);
    if (strstr(err.text, says) == NULL)
        fail_msg("'%s' lacks '%s'", err.text, says);
    kiln_text_release(&text);
    built_free(&tokenizer);
    json_decref(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_windows),
        cmocka_unit_test(test_long_word),
        cmocka_unit_test(test_training_on_a_long_line),
        cmocka_unit_test(test_place),
    };

    return cmocka_run_group_tests(tests, fixture_begin, fixture_end);
}

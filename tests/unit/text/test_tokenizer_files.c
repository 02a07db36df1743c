/* tokenizer.json files as Hugging Face's library reads them: ids, offsets, types, masks, decoded
 * texts, as tests/record/tokenizer_files.py recorded them; and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "kiln/tools/token_pipeline.h"

/* Write a text to a temporary file and open it as a tokenizer. */
static KilnStatus open_text(const char *text, KilnTokenPipeline **ret, KilnError *err)
{
    char path[] = "/tmp/kiln-tokenizer-XXXXXX";
    const int fd = mkstemp(path);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    KilnStatus status = kiln_token_pipeline_open(path, ret, err);
    unlink(path);
    return status;
}

static void check_numbers(const char *name, const char *text, const json_t *want,
                          const uint8_t *got)
{
    for (size_t i = 0; i < json_array_size(want); i++)
        if (json_integer_value(json_array_get(want, i)) != got[i])
            fail_msg("%s of '%s': %d at %zu", name, text, got[i], i);
}

static void check_decoded(const KilnTokenPipeline *pipeline, const KilnEncoding *encoding,
                          const json_t *want, bool skip)
{
    KilnText text = { 0 };
    KilnError err = { 0 };

    assert_int_equal(
        kiln_token_pipeline_decode(pipeline, encoding->ids, encoding->n, skip, &text, &err),
        KILN_OK);
    assert_int_equal(text.length, json_string_length(want));
    if (text.length > 0)
        assert_memory_equal(text.data, json_string_value(want), text.length);
    kiln_text_release(&text);
}

static void check_case(const KilnTokenPipeline *pipeline, KilnEncoding *encoding,
                       const json_t *item)
{
    const json_t *text = json_object_get(item, "text"), *second = json_object_get(item, "pair");
    const json_t *ids = json_object_get(item, "ids"), *offsets = json_object_get(item, "offsets");
    const KilnString pair = { json_string_value(second), json_string_length(second) };
    const KilnTokenizerInput input = {
        .text = { json_string_value(text), json_string_length(text) },
        .pair = json_is_string(second) ? &pair : NULL,
        .add_special_tokens = json_is_true(json_object_get(item, "add_special_tokens")),
        .offsets = KILN_OFFSETS_CHARACTERS,
    };
    KilnError err = { 0 };

    if (kiln_token_pipeline_encode(pipeline, &input, encoding, &err) < 0)
        fail_msg("'%s': %s", json_string_value(text), err.text);
    if (encoding->n != json_array_size(ids))
        fail_msg("'%s': %zu tokens, expected %zu", json_string_value(text), encoding->n,
                 json_array_size(ids));
    for (size_t i = 0; i < encoding->n; i++) {
        const json_t *span = json_array_get(offsets, i);

        assert_int_equal(encoding->ids[i], json_integer_value(json_array_get(ids, i)));
        assert_int_equal(encoding->spans[i].begin, json_integer_value(json_array_get(span, 0)));
        assert_int_equal(encoding->spans[i].end, json_integer_value(json_array_get(span, 1)));
    }
    check_numbers("types", json_string_value(text), json_object_get(item, "type_ids"),
                  encoding->types);
    check_numbers("special", json_string_value(text), json_object_get(item, "special_tokens_mask"),
                  encoding->special);
    check_decoded(pipeline, encoding, json_object_get(item, "decoded"), true);
    check_decoded(pipeline, encoding, json_object_get(item, "decoded_all"), false);
}

static void check_all(const KilnTokenPipeline *pipeline, const json_t *cases)
{
    KilnEncoding encoding = { 0 };

    for (size_t i = 0; i < json_array_size(cases); i++)
        check_case(pipeline, &encoding, json_array_get(cases, i));
    kiln_encoding_release(&encoding);
}

/* Each recorded file, and the file again after kiln has written it. */
static void test_recorded_files(void **unused)
{
    static const char *const names[] = { "gpt2",   "roberta",   "bert",     "bert_cased", "t5",
                                         "llama",  "llama3",    "words",    "digits",     "split",
                                         "merged", "delimiter", "metaspace" };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(names); i++) {
        char path[128], copy[] = "/tmp/kiln-tokenizer-XXXXXX";
        KilnTokenPipeline *pipeline = NULL, *again = NULL;
        KilnError err = { 0 };
        json_error_t why;

        snprintf(path, sizeof(path), "tests/unit/text/%s.json", names[i]);
        json_t *file = json_load_file(path, JSON_ALLOW_NUL, &why);
        assert_non_null(file);
        char *text = json_dumps(json_object_get(file, "tokenizer"), 0);
        if (open_text(text, &pipeline, &err) < 0)
            fail_msg("%s: %s", path, err.text);
        check_all(pipeline, json_object_get(file, "cases"));
        const int fd = mkstemp(copy);
        assert_true(fd >= 0);
        close(fd);
        assert_int_equal(kiln_token_pipeline_save(pipeline, copy, &err), KILN_OK);
        assert_int_equal(kiln_token_pipeline_open(copy, &again, &err), KILN_OK);
        check_all(again, json_object_get(file, "cases"));
        unlink(copy);
        kiln_token_pipeline_free(pipeline);
        kiln_token_pipeline_free(again);
        free(text);
        json_decref(file);
    }
}

static void test_refusals(void **unused)
{
#define MODEL "\"model\": {\"type\": \"WordLevel\", \"vocab\": {\"a\": 0}, \"unk_token\": \"a\"}"
    static const struct {
        const char *text, *says;
    } cases[] = {
        { "[1", "1:2:" },
        { "{}", "model: expected an object" },
        { "{\"model\": {\"type\": \"Other\"}}", "model.type: kiln has no `Other`" },
        { "{" MODEL ", \"normalizer\": {\"type\": \"X\"}}", "normalizer.type: kiln has no `X`" },
        { "{" MODEL ", \"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": "
          "\"UnicodeScripts\"}]}}",
          "pre_tokenizer.pretokenizers[0].type: kiln has no `UnicodeScripts`" },
        { "{" MODEL ", \"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"Regex\": \"(\"}, "
          "\"behavior\": \"Isolated\", \"invert\": false}}",
          "pre_tokenizer.pattern: the pattern `(`" },
        { "{" MODEL ", \"normalizer\": {\"type\": \"Strip\", \"middle\": true}}",
          "normalizer.middle: kiln does not know this key" },
        { "{" MODEL ", \"decoder\": {\"type\": \"CTC\"}}", "decoder.type: kiln has no `CTC`" },
        { "{\"model\": {\"type\": \"BPE\", \"dropout\": 0.1, \"vocab\": {}, \"merges\": []}}",
          "model.dropout: " },
        { "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0}, \"merges\": [[\"a\", \"b\"]]}}",
          "model.merges: entry 0: expected two tokens" },
        { "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 0}, \"merges\": []}}",
          "`a` and `b` have the same id 0" },
        { "{\"model\": {\"type\": \"Unigram\", \"vocab\": [[\"a\", 0]], \"unk_id\": 1}}",
          "model.unk_id: expected an id below 1" },
    };

    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        KilnTokenPipeline *pipeline = NULL;
        KilnError err = { 0 };

        assert_int_equal(open_text(cases[i].text, &pipeline, &err), KILN_E_FORMAT);
        if (strstr(err.text, cases[i].says) == NULL)
            fail_msg("case %zu: '%s' lacks '%s'", i, err.text, cases[i].says);
    }
}

static void test_invalid_utf8(void **unused)
{
    KilnTokenPipeline *pipeline = NULL;
    KilnEncoding encoding = { 0 };
    KilnError err = { 0 };
    const KilnTokenizerInput input = { .text = { "ab\xc3(", 4 } };

    (void)unused;
    assert_int_equal(open_text("{" MODEL "}", &pipeline, &err), KILN_OK);
    assert_int_equal(kiln_token_pipeline_encode(pipeline, &input, &encoding, &err), KILN_E_FORMAT);
    assert_non_null(strstr(err.text, "byte 2 (0xc3) is not UTF-8"));
    kiln_encoding_release(&encoding);
    kiln_token_pipeline_free(pipeline);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recorded_files),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_invalid_utf8),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

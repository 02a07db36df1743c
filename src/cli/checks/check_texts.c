/* Checks a tokenizer: ids that exist, texts that come back, a saved one that encodes the same, and
 * two threads that do. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/call.h"
#include "base/text.h"
#include "cli/checks/checks.h"
#include "kiln/tokenizer.h"

static const char *const texts[] = {
    "the quick brown fox jumps over the lazy dog",
    "The quick brown foxes jumped over 12 lazy dogs.",
    "sphinx of black quartz, judge my vow",
    "na\xC3\xAFve caf\xC3\xA9 \xE2\x82\xAC 5",
    "one two two three three three",
    "   spaces   and\ttabs\n",
    "x",
    "",
};

typedef struct Texts {
    KilnCase *self;
    KilnInstance *tokenizer;
    int same; /* texts that came back as they were */
} Texts;

/* ---- Training -------------------------------------------------------------------------------- */

/* All texts, several times, as training needs repetition. */
static bool next(void *ctx, KilnString *ret, KilnStatus *ret_status, KilnError *err)
{
    enum { TIMES = 8 };
    size_t *at = ctx;
    const size_t i = *at % KILN_COUNT(texts);

    (void)ret_status, (void)err;
    if (++*at > TIMES * KILN_COUNT(texts))
        return false;
    *ret = (KilnString) { texts[i], strlen(texts[i]) };
    return true;
}

/* Learn a vocabulary; one that reads a file instead has it from its options. */
static bool train(const Texts *of)
{
    size_t at = 0;
    const KilnTexts all = { .next = next, .ctx = &at };
    KilnError err = { 0 };
    const KilnStatus status = KILN_CALLED(
        of->tokenizer, "train", kiln_tokenizer_train(of->tokenizer, &all, NULL, &err), &err);

    if (status < 0)
        kiln_case_skip(of->self, "add tokenizer.OPTION=VALUE to the command",
                       "it does not learn from %zu short texts: %s", KILN_COUNT(texts), err.text);
    return status >= 0;
}

/* ---- Texts ----------------------------------------------------------------------------------- */

static KilnStatus encode(const KilnInstance *tokenizer, const char *text, KilnEncoding *ret,
                         KilnError *err)
{
    const KilnTokenizerInput input = { .text = { text, strlen(text) },
                                       .offsets = KILN_OFFSETS_BYTES };

    return KILN_CALLED(tokenizer, "encode", kiln_tokenizer_encode(tokenizer, &input, ret, err),
                       err);
}

static void check_encoding(const Texts *of, const char *text, const KilnEncoding *encoding)
{
    const int64_t size = kiln_tokenizer_size(of->tokenizer);

    for (size_t i = 0; i < encoding->n; i++) {
        if (encoding->ids[i] < 0 || encoding->ids[i] >= size)
            return kiln_case_fail(of->self, "ids are from 0 to `size` - 1",
                                  "id %d of \"%s\", of %lld tokens", encoding->ids[i], text,
                                  (long long)size);
        if (encoding->spans[i].begin > encoding->spans[i].end ||
            encoding->spans[i].end > strlen(text))
            return kiln_case_fail(of->self, "spans are byte offsets in the text",
                                  "token %zu of \"%s\" stands for bytes %u to %u", i, text,
                                  encoding->spans[i].begin, encoding->spans[i].end);
    }
}

static void check_text(Texts *of, const char *text)
{
    KilnEncoding encoding = { 0 };
    KilnText back = { 0 };
    KilnError err = { 0 };
    KilnStatus status = encode(of->tokenizer, text, &encoding, &err);

    if (status >= 0) {
        check_encoding(of, text, &encoding);
        status = KILN_CALLED(
            of->tokenizer, "decode",
            kiln_tokenizer_decode(of->tokenizer, encoding.ids, encoding.n, false, &back, &err),
            &err);
    }
    if (status < 0)
        kiln_case_fail(of->self, "", "\"%s\": %s", text, err.text);
    else
        of->same += back.data != NULL ? strcmp(back.data, text) == 0 : *text == '\0';
    kiln_text_release(&back);
    kiln_encoding_release(&encoding);
}

/* Tokens and ids belong together. */
static void check_vocabulary(const Texts *of)
{
    enum { MOST = 2000 };
    const int64_t size = kiln_tokenizer_size(of->tokenizer);

    if (size < 1)
        kiln_case_fail(of->self, "", "its vocabulary has %lld tokens", (long long)size);
    for (int64_t id = 0; id < size && id < MOST && !kiln_case_failed(of->self); id++) {
        const KilnString token = kiln_tokenizer_token(of->tokenizer, id);

        if (token.length > 0 && kiln_tokenizer_id(of->tokenizer, token) != id)
            kiln_case_fail(of->self, "`id` gives the number of what `token` gives",
                           "token %lld is \"%.*s\", whose id is %lld", (long long)id,
                           (int)token.length, token.data,
                           (long long)kiln_tokenizer_id(of->tokenizer, token));
    }
    for (int role = KILN_TOKEN_PAD; role <= KILN_TOKEN_MASK; role++) {
        const int64_t id = kiln_tokenizer_special(of->tokenizer, (KilnSpecialToken)role);

        if (id < -1 || id >= size)
            kiln_case_fail(of->self, "-1: there is none", "`special` gives id %lld of %lld tokens",
                           (long long)id, (long long)size);
    }
}

/* ---- The same elsewhere ---------------------------------------------------------------------- */

/* Whether both give the same ids of all texts. */
static bool agree(const KilnInstance *a, const KilnInstance *b)
{
    bool same = true;

    for (size_t i = 0; i < KILN_COUNT(texts) && same; i++) {
        KilnEncoding first = { 0 }, second = { 0 };

        same = encode(a, texts[i], &first, NULL) >= 0 && encode(b, texts[i], &second, NULL) >= 0 &&
               first.n == second.n &&
               (first.n == 0 || memcmp(first.ids, second.ids, first.n * sizeof(*first.ids)) == 0);
        kiln_encoding_release(&first);
        kiln_encoding_release(&second);
    }
    return same;
}

static void check_saved(const Texts *of)
{
    const char *path = kiln_case_run_dir(of->self, "tokenizer.json");
    KilnCaseInstance built;
    KilnError err = { 0 };

    if (path == NULL || !kiln_case_open(of->self, &built))
        return;
    KilnStatus status = KILN_CALLED(of->tokenizer, "save",
                                    kiln_tokenizer_save(of->tokenizer, path, &err), &err);
    if (status >= 0)
        status = KILN_CALLED(built.instance, "open",
                             kiln_tokenizer_open(built.instance, path, &err), &err);
    if (status < 0)
        kiln_case_fail_with(of->self, &err);
    else if (!agree(of->tokenizer, built.instance))
        kiln_case_fail(of->self, "`save` writes everything that `encode` needs",
                       "what it saved and opened gives other ids");
    kiln_case_close(&built);
}

static void *work(void *ctx)
{
    const KilnInstance *tokenizer = ctx;

    for (int i = 0; i < 20; i++)
        if (!agree(tokenizer, tokenizer))
            return ctx;
    return NULL;
}

static void check_threads(const Texts *of)
{
    pthread_t threads[2];
    void *wrong[2] = { NULL };
    int n = 0;

    while (n < 2 && pthread_create(&threads[n], NULL, work, of->tokenizer) == 0)
        n++;
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], &wrong[i]);
    if (wrong[0] != NULL || wrong[1] != NULL)
        kiln_case_fail(of->self, "after `train` or `open` it is immutable: work in the encoding",
                       "two threads at once get other ids");
}

void kiln_contract_texts(KilnCase *self)
{
    KilnCaseInstance built;
    KilnEncoding encoding = { 0 };

    if (!kiln_case_open(self, &built))
        return;
    Texts of = { .self = self, .tokenizer = built.instance };
    if (train(&of)) {
        for (size_t i = 0; i < KILN_COUNT(texts) && !kiln_case_failed(self); i++)
            check_text(&of, texts[i]);
        (void)!encode(of.tokenizer, "not UTF-8: \xFF\xC3", &encoding,
                      NULL); /* may fail, not crash */
        kiln_encoding_release(&encoding);
        if (!kiln_case_failed(self))
            check_vocabulary(&of);
        if (!kiln_case_failed(self))
            check_saved(&of);
        if (!kiln_case_failed(self))
            check_threads(&of);
        kiln_case_pass(self,
                       "%lld tokens; %d of %zu texts come back as they were; saved and "
                       "opened, two threads: the same ids",
                       (long long)kiln_tokenizer_size(of.tokenizer), of.same, KILN_COUNT(texts));
    }
    kiln_case_close(&built);
}

/* Which models fit under which users, and what is said of those that do not. */
#include <string.h>

#include "kiln/embed/config.h"
#include "registry/signature/model_match.h"
#include "tests/support/cmocka.h"

#define IMAGE                                                                                      \
    {                                                                                              \
        .name = "image", .content = KILN_IMAGE, .dtype = KILN_F32, .axes = "h w c"                 \
    }
#define LABEL                                                                                      \
    {                                                                                              \
        .name = "label", .content = KILN_LABEL, .dtype = KILN_I32, .axes = ""                      \
    }
#define TOKENS(name_)                                                                              \
    {                                                                                              \
        .name = name_, .content = KILN_TOKENS, .dtype = KILN_I32, .axes = "time"                   \
    }
#define VECTOR(name_)                                                                              \
    {                                                                                              \
        .name = name_, .content = KILN_VECTOR, .dtype = KILN_F32, .axes = "size"                   \
    }
#define SEQUENCE(name_)                                                                            \
    {                                                                                              \
        .name = name_, .content = KILN_SEQUENCE, .dtype = KILN_F32, .axes = "time size"            \
    }
#define DENSE                                                                                      \
    {                                                                                              \
        .name = "x", .content = KILN_IMAGE | KILN_VECTOR | KILN_ROW, .dtype = KILN_F32             \
    }
#define NO_MATCH SIZE_MAX

typedef struct Case {
    const char *what;
    KilnTensorSpec given[3], feeds[2], takes[2], gives[3], needs[2];
    bool own, unknown; /* the data is not known */
    KilnMisfit want;
    size_t input[2], output[2];
    const char *text;
} Case;

static size_t count(const KilnTensorSpec *specs, size_t max)
{
    size_t n = 0;

    while (n < max && specs[n].name != NULL)
        n++;
    return n;
}

static const Case cases[] = {
    { .what = "by content",
      .given = { IMAGE, LABEL },
      .feeds = { IMAGE },
      .takes = { DENSE },
      .gives = { VECTOR("logits") },
      .needs = { VECTOR("pixels") } },
    { .what = "the wrong content",
      .given = { IMAGE, LABEL },
      .feeds = { IMAGE },
      .takes = { TOKENS("words") },
      .gives = { VECTOR("logits") },
      .needs = { VECTOR("logits") },
      .want = KILN_MISFIT_INPUT,
      .text = "net takes tokens \"words\", but datamodule d gives an image and a label of i32" },
    { .what = "the task feeds nothing of the data",
      .given = { TOKENS("words"), LABEL },
      .feeds = { IMAGE },
      .takes = { TOKENS("words") },
      .gives = { VECTOR("logits") },
      .needs = { VECTOR("logits") },
      .want = KILN_MISFIT_DATA,
      .text =
          "task t feeds its model an image, but datamodule d gives tokens \"words\" and a label "
          "of i32" },
    { .what = "two by name",
      .given = { TOKENS("target"), LABEL, TOKENS("source") },
      .feeds = { TOKENS("") },
      .takes = { TOKENS("source"), TOKENS("target") },
      .gives = { VECTOR("logits") },
      .needs = { VECTOR("logits") },
      .input = { 2, 0 } },
    { .what = "one by name, the other is left",
      .given = { TOKENS("a"), TOKENS("source") },
      .feeds = { TOKENS("") },
      .takes = { TOKENS("target"), TOKENS("source") },
      .gives = { VECTOR("logits") },
      .needs = { VECTOR("logits") },
      .input = { 0, 1 } },
    { .what = "ambiguous",
      .given = { TOKENS("a"), TOKENS("b") },
      .feeds = { TOKENS("") },
      .takes = { TOKENS("source"), TOKENS("target") },
      .gives = { VECTOR("logits") },
      .needs = { VECTOR("logits") },
      .want = KILN_MISFIT_AMBIGUOUS,
      .text = "input \"source\" of net has several candidates: datamodule d gives tokens \"a\" and "
              "tokens \"b\"; call one like the input" },
    { .what = "one feature is not given twice",
      .given = { TOKENS("source") },
      .feeds = { TOKENS("") },
      .takes = { TOKENS("source"), TOKENS("target") },
      .gives = { VECTOR("logits") },
      .needs = { VECTOR("logits") },
      .want = KILN_MISFIT_INPUT,
      .text = "net takes tokens \"source\" and tokens \"target\", but datamodule d gives tokens "
              "\"source\"" },
    { .what = "an absent optional input",
      .given = { IMAGE },
      .feeds = { IMAGE, TOKENS("") },
      .takes = { { .name = "words", .content = KILN_TOKENS, .dtype = KILN_I32, .optional = true },
                 IMAGE },
      .gives = { VECTOR("logits") },
      .needs = { VECTOR("logits") },
      .input = { NO_MATCH, 0 } },
    { .what = "only optional inputs, and none of them",
      .given = { IMAGE },
      .feeds = { IMAGE },
      .takes = { { .name = "words", .content = KILN_TOKENS, .dtype = KILN_I32, .optional = true } },
      .gives = { VECTOR("logits") },
      .needs = { VECTOR("logits") },
      .want = KILN_MISFIT_INPUT,
      .text = "net takes tokens \"words\", but datamodule d gives an image" },
    { .what = "varying data and a model for one length",
      .given = { { .name = "words", .content = KILN_TOKENS, .dtype = KILN_I32, .varies = true } },
      .feeds = { { .name = "", .content = KILN_TOKENS, .dtype = KILN_I32, .varies = true } },
      .takes = { TOKENS("words") },
      .gives = { VECTOR("logits") },
      .needs = { VECTOR("logits") },
      .want = KILN_MISFIT_INPUT,
      .text = "net takes tokens \"words\", but datamodule d gives tokens \"words\" of varying "
              "length" },
    { .what = "another type",
      .given = { { .name = "row", .content = KILN_ROW, .dtype = KILN_I32 } },
      .feeds = { { .name = "", .content = KILN_ROW, .dtype = KILN_I32 } },
      .takes = { { .name = "row", .content = KILN_ROW, .dtype = KILN_F32 } },
      .gives = { VECTOR("logits") },
      .needs = { VECTOR("logits") },
      .want = KILN_MISFIT_INPUT,
      .text = "net takes a row of f32, but datamodule d gives a row of i32" },
    { .what = "own values by name",
      .given = { VECTOR("noise") },
      .feeds = { VECTOR("noise") },
      .takes = { DENSE },
      .gives = { VECTOR("logits") },
      .needs = { VECTOR("pixels") },
      .own = true },
    { .what = "own values of the wrong content",
      .given = { VECTOR("noise") },
      .feeds = { VECTOR("noise") },
      .takes = { IMAGE },
      .gives = { VECTOR("logits") },
      .needs = { VECTOR("pixels") },
      .own = true,
      .want = KILN_MISFIT_INPUT,
      .text = "net takes an image, but task t feeds it a vector \"noise\"" },
    { .what = "unknown data that may fit",
      .feeds = { IMAGE },
      .takes = { DENSE },
      .gives = { VECTOR("logits") },
      .needs = { VECTOR("logits") },
      .unknown = true,
      .input = { NO_MATCH } },
    { .what = "unknown data that cannot fit",
      .feeds = { IMAGE },
      .takes = { TOKENS("words") },
      .gives = { VECTOR("logits") },
      .needs = { VECTOR("logits") },
      .unknown = true,
      .want = KILN_MISFIT_INPUT,
      .text = "net takes tokens \"words\", but task t feeds it an image" },
    { .what = "outputs by name among several of a content",
      .given = { IMAGE },
      .feeds = { IMAGE },
      .takes = { IMAGE },
      .gives = { VECTOR("logits"), SEQUENCE("hidden"), SEQUENCE("token_logits") },
      .needs = { SEQUENCE("token_logits"), VECTOR("scores") },
      .output = { 2, 0 } },
    { .what = "an ambiguous need",
      .given = { IMAGE },
      .feeds = { IMAGE },
      .takes = { IMAGE },
      .gives = { VECTOR("logits"), SEQUENCE("hidden"), SEQUENCE("token_logits") },
      .needs = { SEQUENCE("tags") },
      .want = KILN_MISFIT_OUTPUT,
      .text = "task t needs a sequence \"tags\", but net gives a vector \"logits\", a sequence "
              "\"hidden\" and a sequence \"token_logits\"" },
    { .what = "a need that nothing meets",
      .given = { IMAGE },
      .feeds = { IMAGE },
      .takes = { IMAGE },
      .gives = { VECTOR("logits") },
      .needs = { { .name = "mask", .content = KILN_MAP, .axes = "h w classes" } },
      .want = KILN_MISFIT_OUTPUT,
      .text = "task t needs a map of f32 \"mask\", but net gives a vector \"logits\"" },
};

static void test_matching(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < KILN_COUNT(cases); i++) {
        const Case *c = &cases[i];
        const KilnModelUse use = { .option = "model",
                                   .feeds = c->feeds,
                                   .n_feeds = count(c->feeds, 2),
                                   .own = c->own,
                                   .needs = c->needs,
                                   .n_needs = count(c->needs, 2) };
        const KilnSignature signature = { .inputs = c->takes,
                                          .n_inputs = count(c->takes, 2),
                                          .outputs = c->gives,
                                          .n_outputs = count(c->gives, 3) };
        const KilnModelPair pair = { .user = "task t",
                                     .giver = "datamodule d",
                                     .use = &use,
                                     .model = "net",
                                     .inputs = signature.inputs,
                                     .n_inputs = signature.n_inputs,
                                     .signature = &signature,
                                     .given = c->unknown ? NULL : c->given,
                                     .n_given = c->unknown ? 0 : count(c->given, 3) };
        const KilnModelMatch match = kiln_model_match(&pair);
        KilnText text = { 0 };

        kiln_misfit_text(&text, &pair, &match);
        if (match.misfit != c->want || (c->text != NULL && strcmp(text.data, c->text) != 0))
            fail_msg("%s: %d: %s", c->what, (int)match.misfit, text.data);
        for (size_t k = 0; k < signature.n_inputs && c->want == KILN_FITS; k++)
            if (match.given[k] != c->input[k])
                fail_msg("%s: input %zu got value %zu", c->what, k, match.given[k]);
        for (size_t k = 0; k < use.n_needs && c->want == KILN_FITS; k++)
            if (match.output[k] != c->output[k])
                fail_msg("%s: need %zu got output %zu", c->what, k, match.output[k]);
        kiln_text_release(&text);
    }
}

static void test_features_of_a_task(void **unused)
{
    const KilnTensorSpec needs[] = { LABEL };
    const KilnTensorSpec good[] = { IMAGE, LABEL };
    const KilnTensorSpec list = {
        .name = "label", .content = KILN_LABEL, .dtype = KILN_I32, .axes = "values"
    };
    const KilnTensorSpec real = {
        .name = "label", .content = KILN_LABEL, .dtype = KILN_F32, .axes = ""
    };

    (void)unused;
    assert_null(kiln_features_unmet(needs, 1, good, 2));
    assert_ptr_equal(kiln_features_unmet(needs, 1, good, 1), needs);
    assert_ptr_equal(kiln_features_unmet(needs, 1, &list, 1), needs);
    assert_ptr_equal(kiln_features_unmet(needs, 1, &real, 1), needs);
}

/* What every registered component declares is complete. */
static void test_builtin_signatures(void **unused)
{
    KilnRegistry *registry = NULL;
    KilnError err = { 0 };

    (void)unused;
    assert_int_equal(kiln_registry_new(&registry, &err), KILN_OK);
    for (size_t i = 0; i < kiln_registry_count(registry); i++)
        if (kiln_signature_check(kiln_registry_at(registry, i), &err) < 0)
            fail_msg("%s: %s", kiln_registry_at(registry, i)->name, err.text);
    kiln_registry_free(registry);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matching),
        cmocka_unit_test(test_features_of_a_task),
        cmocka_unit_test(test_builtin_signatures),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

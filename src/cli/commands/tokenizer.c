/* kiln tokenizer: encodes and decodes with a tokenizer.json. (train: tokenizer_train.c) */
#define _DEFAULT_SOURCE /* strsep */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/parse.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/open_config.h"
#include "cli/screen/screen.h"
#include "kiln/tools/token_pipeline.h"

/* ---- encode and decode ----------------------------------------------------------------------- */

static json_t *encoding_json(const KilnTokenPipeline *pipeline, const KilnEncoding *encoding)
{
    json_t *object = json_object(), *ids = json_array(), *tokens = json_array();
    json_t *offsets = json_array();

    for (size_t i = 0; i < encoding->n; i++) {
        const KilnString token = kiln_token_pipeline_token(pipeline, encoding->ids[i]);

        kiln_json_add(&ids, json_integer(encoding->ids[i]));
        kiln_json_add(&tokens, json_stringn(token.data, token.length));
        kiln_json_add(&offsets, json_pack("[i, i]", (int)encoding->spans[i].begin,
                                          (int)encoding->spans[i].end));
    }
    kiln_json_put(&object, "ids", ids);
    kiln_json_put(&object, "tokens", tokens);
    kiln_json_put(&object, "offsets", offsets);
    return object;
}

static KilnStatus encode_line(const KilnTokenPipeline *pipeline, KilnString line,
                              KilnEncoding *encoding, KilnError *err)
{
    const KilnTokenizerInput input = { .text = line,
                                       .add_special_tokens = true,
                                       .offsets = KILN_OFFSETS_CHARACTERS };
    KilnStatus status = kiln_token_pipeline_encode(pipeline, &input, encoding, err);

    if (status < 0)
        return status;
    json_t *json = encoding_json(pipeline, encoding);
    char *text = kiln_json_dump(json, 0);
    if (text == NULL)
        status = kiln_error_nomem(err, encoding->n);
    else
        puts(text);
    free(text);
    json_decref(json);
    return status;
}

/* Ids separated by spaces or commas; brackets around them are allowed. */
static KilnStatus decode_line(const KilnTokenPipeline *pipeline, KilnString line,
                              KilnEncoding *encoding, KilnError *err)
{
    KilnText text = { 0 };
    char *rest = (char *)line.data, *word;
    KilnStatus status = KILN_OK;

    encoding->n = 0;
    while (status >= 0 && (word = strsep(&rest, " ,[]\t\r")) != NULL) {
        int64_t id = 0;

        if (*word == '\0')
            continue;
        status = kiln_parse_i64(word, &id, err);
        if (status >= 0 && (id < 0 || id >= kiln_token_pipeline_size(pipeline)))
            status = kiln_error_set(err, KILN_E_RANGE, "expected ids from 0 to %lld, got %s",
                                    (long long)kiln_token_pipeline_size(pipeline) - 1, word);
        if (status >= 0)
            status = kiln_encoding_reserve(encoding, encoding->n + 1, err);
        if (status >= 0)
            encoding->ids[encoding->n++] = (int32_t)id;
    }
    if (status >= 0)
        status = kiln_token_pipeline_decode(pipeline, encoding->ids, encoding->n, true, &text, err);
    kiln_text_char(&text, '\n');
    if (status >= 0 && text.failed)
        status = kiln_error_nomem(err, text.length);
    if (status >= 0)
        fwrite(text.data, 1, text.length, stdout); /* it may contain NUL */
    kiln_text_release(&text);
    return status;
}

typedef KilnStatus LineAction(const KilnTokenPipeline *pipeline, KilnString line,
                              KilnEncoding *encoding, KilnError *err);

/* Call `action` for each line of standard input, without its line end. */
static KilnStatus for_each_line(const KilnTokenPipeline *pipeline, LineAction *action,
                                KilnError *err)
{
    KilnEncoding encoding = { 0 };
    char *line = NULL;
    size_t capacity = 0;
    ssize_t n;
    KilnStatus status = KILN_OK;

    for (int64_t number = 1; status >= 0 && (n = getline(&line, &capacity, stdin)) >= 0; number++) {
        if (n > 0 && line[n - 1] == '\n')
            line[--n] = '\0';
        status = action(pipeline, (KilnString) { line, (size_t)n }, &encoding, err);
        if (status < 0)
            kiln_error_prefix(err, "standard input, line %lld: ", (long long)number);
    }
    if (status >= 0 && ferror(stdin))
        status = kiln_error_errno(err, "standard input");
    free(line);
    kiln_encoding_release(&encoding);
    return status;
}

static KilnStatus encode(const KilnTokenPipeline *pipeline, KilnError *err)
{
    return for_each_line(pipeline, encode_line, err);
}

static KilnStatus decode(const KilnTokenPipeline *pipeline, KilnError *err)
{
    return for_each_line(pipeline, decode_line, err);
}

/* ---- show ------------------------------------------------------------------------------------ */

static KilnStatus show(const KilnTokenPipeline *pipeline, KilnError *err)
{
    static const char *const roles[] = { "pad", "bos", "eos", "unk", "mask" };

    (void)err;
    printf("model      %s\ntokens     %lld\n", kiln_token_pipeline_model(pipeline),
           (long long)kiln_token_pipeline_size(pipeline));
    for (int i = 0; i < (int)KILN_COUNT(roles); i++) {
        const int64_t id = kiln_token_pipeline_special(pipeline, (KilnSpecialToken)i);
        const KilnString token = kiln_token_pipeline_token(pipeline, id);

        if (id >= 0)
            printf("%-10s %lld  %.*s\n", roles[i], (long long)id, (int)token.length, token.data);
    }
    return KILN_OK;
}

/* ---- The command ----------------------------------------------------------------------------- */

static KilnStatus with_file(KilnArgs *args, const KilnRegistry *registry, KilnConfig *config,
                            void *ctx, KilnError *err)
{
    KilnStatus (*const *action)(const KilnTokenPipeline *pipeline, KilnError *err) = ctx;
    KilnTokenPipeline *pipeline = NULL;

    (void)registry;
    (void)config;
    if (args->n_words != 2)
        return kiln_error_set(err, KILN_E_USAGE, "%s: expected one tokenizer.json", args->words[0]);
    KilnStatus status = kiln_token_pipeline_open(args->words[1], &pipeline, err);
    if (status >= 0)
        status = (*action)(pipeline, err);
    kiln_token_pipeline_free(pipeline);
    return status;
}

static KilnStatus unknown(KilnArgs *args, const KilnRegistry *registry, KilnConfig *config,
                          void *ctx, KilnError *err)
{
    static const char *const names[] = { "train", "encode", "decode", "show" };
    const char *name = args->n_words > 0 ? args->words[0] : "";
    const char *nearest = kiln_nearest(name, names, KILN_COUNT(names));

    (void)registry;
    (void)config;
    (void)ctx;
    return kiln_error_set(err, KILN_E_USAGE, "%s%sexpected train, encode, decode or show%s%s%s",
                          name, *name != '\0' ? ": " : "", nearest != NULL ? "; did you mean " : "",
                          nearest != NULL ? nearest : "", nearest != NULL ? "?" : "");
}

int kiln_command_tokenizer(KilnArgs *args)
{
    static const struct {
        const char *name;
        KilnStatus (*run)(const KilnTokenPipeline *pipeline, KilnError *err);
    } actions[] = { { "encode", encode }, { "decode", decode }, { "show", show } };
    const char *name = args->n_words > 0 ? args->words[0] : "";

    if (strcmp(name, "train") == 0) {
        args->n_words--;
        memmove(args->words, args->words + 1, (args->n_words + 1) * sizeof(*args->words));
        return kiln_command_run(args, false, kiln_command_tokenizer_train, NULL);
    }
    for (size_t i = 0; i < KILN_COUNT(actions); i++)
        if (strcmp(name, actions[i].name) == 0)
            return kiln_command_run(args, false, with_file, (void *)&actions[i].run);
    return kiln_command_run(args, false, unknown, NULL);
}

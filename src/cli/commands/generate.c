/* kiln generate: text from a language model's checkpoint. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/open_config.h"
#include "cli/open_run.h"
#include "cli/screen/screen.h"
#include "kiln/embed/generate.h"
#include "kiln/tools/clock.h"

enum { MAX_STOP = 16 };

/* What the words of the command line say. */
typedef struct Request {
    KilnGenerateOptions options;
    const char *stop[MAX_STOP + 1];
    const char *prompt; /* NULL: the lines of `input` */
    const char *input;  /* a file, or "-" */
    char **prompts;
    size_t n, capacity;
    bool begun;  /* the prompt is printed */
    bool failed; /* standard output can't be written */
} Request;

/* ---- The words ------------------------------------------------------------------------------- */

/* Take `key=NUMBER`, from `low` to `high`, if it is there. */
static KilnStatus take_number(KilnArgs *args, const char *key, double low, double high, double *ret,
                              KilnError *err)
{
    const char *text = kiln_args_take(args, key);
    double value = 0.0;

    if (text == NULL)
        return KILN_OK;
    if (kiln_parse_f64(text, &value, err) < 0)
        kiln_error_prefix(err, "%s=%s: ", key, text);
    else if (!(value >= low && value <= high))
        kiln_error_set(err, KILN_E_USAGE, "%s=%s: expected a number from %g to %g", key, text, low,
                       high);
    else
        *ret = value;
    return err->status < 0 ? KILN_E_USAGE : KILN_OK;
}

/* The same of a whole number. */
static KilnStatus take_count(KilnArgs *args, const char *key, double low, int64_t *ret,
                             KilnError *err)
{
    double value = (double)*ret;
    KilnStatus status = take_number(args, key, low, 1e9, &value, err);

    if (status >= 0 && floor(value) != value)
        status = kiln_error_set(err, KILN_E_USAGE, "%s=%g: expected a whole number", key, value);
    *ret = (int64_t)value;
    return status;
}

/* Take all words `stop=TEXT`. */
static KilnStatus take_stops(KilnArgs *args, Request *request, KilnError *err)
{
    size_t kept = 0, n = 0;

    kiln_args_note_key(args, "stop");
    for (size_t i = 0; i < args->n_words; i++) {
        const char *word = args->words[i];

        if (!kiln_starts_with(word, "stop=")) {
            args->words[kept++] = word;
            continue;
        }
        if (n == MAX_STOP || strcmp(word, "stop=") == 0)
            return kiln_error_set(err, KILN_E_USAGE,
                                  "%s: expected at most %d texts, none of them empty", word,
                                  (int)MAX_STOP);
        request->stop[n++] = word + strlen("stop=");
    }
    args->n_words = kept;
    args->words[kept] = NULL;
    request->options.stop = request->stop;
    return KILN_OK;
}

static KilnStatus take_words(KilnArgs *args, Request *request, KilnError *err)
{
    KilnTokenChoice *choice = &request->options.choice;
    int64_t seed = 1;
    KilnStatus status;

    choice->temperature = 1.0;
    request->prompt = kiln_args_take(args, "prompt");
    request->input = kiln_args_take(args, "input");
    kiln_command_take_run(args);
    status = take_number(args, "temperature", 0.0, 1e6, &choice->temperature, err);
    if (status >= 0)
        status = take_number(args, "top_p", 0.0, 1.0, &choice->top_p, err);
    if (status >= 0)
        status = take_number(args, "repetition_penalty", 1e-3, 1e3, &choice->repetition_penalty,
                             err);
    if (status >= 0)
        status = take_count(args, "top_k", 0.0, &choice->top_k, err);
    if (status >= 0)
        status = take_count(args, "max_tokens", 1.0, &request->options.max_tokens, err);
    if (status >= 0)
        status = take_count(args, "seed", 0.0, &seed, err);
    if (status >= 0)
        status = take_stops(args, request, err);
    choice->seed = (uint64_t)seed;
    if (status >= 0 && args->run != NULL && (request->prompt == NULL) == (request->input == NULL))
        status = kiln_error_set(err, KILN_E_USAGE,
                                "%s: `kiln generate RUN prompt=TEXT`; input=FILE takes each line "
                                "as a prompt, input=- those of standard input",
                                request->prompt == NULL ? "the prompt is missing"
                                                        : "both prompt and input are given");
    return status;
}

/* ---- Prompts --------------------------------------------------------------------------------- */

static KilnStatus add_prompt(Request *request, const char *text, KilnError *err)
{
    if (request->n == request->capacity) {
        const size_t capacity = request->capacity > 0 ? 2 * request->capacity : 16;
        char **prompts = realloc(request->prompts, capacity * sizeof(*prompts));

        if (prompts == NULL)
            return kiln_error_nomem(err, capacity * sizeof(*prompts));
        request->prompts = prompts;
        request->capacity = capacity;
    }
    request->prompts[request->n] = kiln_strdup(text);
    return request->prompts[request->n++] != NULL ? KILN_OK : kiln_error_nomem(err, strlen(text));
}

static KilnStatus read_lines(Request *request, KilnError *err)
{
    const bool standard = strcmp(request->input, "-") == 0;
    FILE *file = standard ? stdin : fopen(request->input, "re");
    char *line = NULL;
    size_t capacity = 0;
    ssize_t n;
    KilnStatus status = KILN_OK;

    if (file == NULL)
        return kiln_error_errno(err, request->input);
    while (status >= 0 && (n = getline(&line, &capacity, file)) >= 0) {
        if (strlen(line) != (size_t)n)
            status = kiln_error_set(err, KILN_E_FORMAT, "%s: line %zu contains a null byte",
                                    request->input, request->n + 1);
        while (n > 0 && (line[n - 1] == '\n' || line[n - 1] == '\r'))
            line[--n] = '\0';
        if (status >= 0)
            status = add_prompt(request, line, err);
    }
    if (status >= 0 && ferror(file))
        status = kiln_error_errno(err, request->input);
    if (!standard)
        fclose(file);
    free(line);
    if (status >= 0 && request->n == 0)
        status = kiln_error_set(err, KILN_E_MISSING, "input=%s: has no line", request->input);
    return status;
}

/* ---- Output ---------------------------------------------------------------------------------- */

/* Print generated text, the first after the prompt. */
static void print_text(void *ctx, size_t prompt, KilnString text)
{
    Request *request = ctx;

    (void)prompt;
    if (!request->begun && fputs(request->prompt, stdout) == EOF)
        request->failed = true;
    request->begun = true;
    if (fwrite(text.data, 1, text.length, stdout) != text.length || fflush(stdout) != 0)
        request->failed = true;
}

static const char *end_name(KilnGenerateEnd end)
{
    switch (end) {
    case KILN_GENERATE_MAX_TOKENS:
        return "max_tokens";
    case KILN_GENERATE_END_TOKEN:
        return "end_token";
    case KILN_GENERATE_STOP:
        return "stop";
    case KILN_GENERATE_INTERRUPTED:
        return "interrupted";
    }
    return "";
}

/* A line of JSON for each prompt. */
static KilnStatus print_lines(const Request *request, const KilnGenerated *generated,
                              KilnError *err)
{
    KilnText text = { 0 };

    for (size_t i = 0; i < generated->n; i++) {
        const KilnGeneratedText *made = &generated->list[i];

        kiln_text_append(&text, "{\"prompt\": ");
        kiln_text_json_string(&text, request->prompts[i]);
        kiln_text_append(&text, ", \"text\": ");
        kiln_text_json_string(&text, made->text.data);
        kiln_text_printf(&text, ", \"tokens\": %zu, \"end\": \"%s\"}\n", made->n_tokens,
                         end_name(made->end));
    }
    const bool failed = text.failed;
    if (!failed)
        fwrite(text.data, 1, text.length, stdout);
    kiln_text_release(&text);
    return failed ? kiln_error_nomem(err, generated->n) : KILN_OK;
}

/* How fast it was, for the user. */
static void print_rate(const KilnGenerated *generated, double seconds)
{
    size_t tokens = 0;

    for (size_t i = 0; i < generated->n; i++)
        tokens += generated->list[i].n_tokens;
    fprintf(stderr, "%zu tokens in %.2f s (%.1f tokens/s)\n", tokens, seconds,
            (double)tokens / seconds);
}

/* ---- The command ----------------------------------------------------------------------------- */

static KilnStatus run(Request *request, KilnPredictor *predictor, bool quiet, KilnError *err)
{
    KilnGenerated *generated = NULL;
    const double start = kiln_clock();

    if (request->prompt != NULL) {
        request->options.text = print_text;
        request->options.ctx = request;
    }
    request->options.interrupt = kiln_screen_catch_signals().stop;
    KilnStatus status = kiln_generate(predictor, (const char *const *)request->prompts, request->n,
                                      &request->options, &generated, err);
    if (request->prompt != NULL && status >= 0)
        print_text(request, 0, (KilnString) { "\n", 1 });
    else if (request->prompt != NULL && request->begun)
        putchar('\n');
    else if (status >= 0)
        status = print_lines(request, generated, err);
    if (status >= 0 && !quiet)
        print_rate(generated, kiln_clock() - start);
    kiln_generated_free(generated);
    return status >= 0 && request->failed ? kiln_screen_write_error(err) : status;
}

static KilnStatus open_and_run(KilnArgs *args, Request *request, const KilnRegistry *registry,
                               const char *checkpoint, KilnError *err)
{
    KilnConsole console;
    const KilnPredictorSpec spec = {
        .registry = registry,
        .ckpt_path = checkpoint,
        .overrides = args->words,
        .console = kiln_screen_run_console(stderr, args->quiet, args->verbose, &console),
        .max_calls = 1,
    };
    KilnPredictor *predictor = NULL;
    KilnStatus status = request->prompt != NULL ? add_prompt(request, request->prompt, err)
                                                : read_lines(request, err);

    if (status >= 0)
        status = kiln_predictor_open(&spec, &predictor, err);
    if (status >= 0)
        status = run(request, predictor, args->quiet, err);
    kiln_predictor_free(predictor);
    return status;
}

int kiln_command_generate(KilnArgs *args)
{
    Request request = { 0 };
    KilnRegistry *registry = NULL;
    char *checkpoint = NULL;
    KilnError err = { 0 };
    KilnStatus status = take_words(args, &request, &err);

    if (status < 0)
        return kiln_command_refuse(args, status, &err);
    status = kiln_command_checkpoint(args, &checkpoint);
    if (status >= 0)
        status = kiln_command_registry(args, &registry);
    if (status >= 0) {
        status = open_and_run(args, &request, registry, checkpoint, &err);
        if (status < 0)
            kiln_screen_error(args->command, &err);
        kiln_command_advise(args, status);
    }
    for (size_t i = 0; i < request.n; i++)
        free(request.prompts[i]);
    free(request.prompts);
    kiln_registry_free(registry);
    free(checkpoint);
    return kiln_screen_signal_status() != 0 ? kiln_screen_signal_status()
                                            : kiln_screen_exit_status(status);
}

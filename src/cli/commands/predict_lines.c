/* kiln predict RUN -: answers each line of standard input at once, for pipes and other programs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "cli/commands/commands.h"
#include "cli/open_config.h"
#include "cli/open_run.h"
#include "cli/screen/screen.h"
#include "data/raw/raw_input.h"
#include "kiln/embed/predict.h"
#include "kiln/tools/prediction_json.h"

/* How lines are read: as the text of `field`, or as JSON objects with all fields. */
typedef struct Reader {
    KilnPredictor *predictor;
    const char *field; /* NULL: JSON */
    KilnRawJson json;
    bool failed; /* a line has no answer */
} Reader;

/* A line is a text where a sample is one text, unless the user says otherwise. */
static KilnStatus choose_format(Reader *reader, const char *format, KilnError *err)
{
    const KilnRawField *fields;
    const size_t n = kiln_predictor_fields(reader->predictor, &fields);
    const char *text = NULL;
    size_t required = 0;

    for (size_t i = 0; i < n; i++) {
        required += !fields[i].optional;
        if ((fields[i].types & KILN_RAW_TEXT) != 0 && (text == NULL || !fields[i].optional))
            text = fields[i].name;
    }
    if (text != NULL && required > 1)
        text = NULL;
    reader->json = (KilnRawJson) { .fields = fields, .n_fields = n };
    if (format == NULL) {
        reader->field = text;
        return KILN_OK;
    }
    if (strcmp(format, "jsonl") == 0)
        return KILN_OK;
    if (strcmp(format, "text") != 0)
        return kiln_error_set(err, KILN_E_USAGE, "format=%s: expected text or jsonl", format);
    reader->field = text;
    return text != NULL ? KILN_OK
                        : kiln_error_set(err, KILN_E_USAGE,
                                         "format=text: a sample here is not one text; lines are "
                                         "JSON objects (format=jsonl)");
}

/* The answer to line `index`, a line of JSON. */
static KilnStatus print_answer(const KilnPredictor *predictor, const KilnPrediction *prediction,
                               int64_t index, KilnError *err)
{
    KilnText line = { 0 };
    char place[32];

    snprintf(place, sizeof(place), "-:%lld", (long long)index + 1);
    kiln_prediction_json_begin(&line, index, place);
    kiln_prediction_json_text(&line, "error", prediction->error);
    for (size_t i = 0; i < prediction->n_results; i++)
        kiln_prediction_json_value(&line, prediction->results[i].name, prediction->results[i].json);
    for (size_t i = 0; i < prediction->n_outputs; i++) {
        const KilnOutputView *output = &prediction->outputs[i];

        kiln_prediction_json_output(&line, kiln_predictor_data_spec(predictor), output->name,
                                    output->data, kiln_shape_count(&output->shape));
    }
    kiln_prediction_json_end(&line);
    char *text = kiln_text_take(&line);
    if (text == NULL)
        return kiln_error_nomem(err, 1);
    const bool good = fputs(text, stdout) != EOF && fflush(stdout) == 0;
    free(text);
    return good ? KILN_OK : kiln_screen_write_error(err);
}

/* The answer to a line that is no sample. */
static KilnStatus print_problem(Reader *reader, KilnStatus problem, const char *message,
                                int64_t index, KilnError *err)
{
    const KilnPrediction answer = { .status = problem, .error = message };

    reader->failed = true;
    return print_answer(reader->predictor, &answer, index, err);
}

static KilnStatus answer_sample(Reader *reader, const KilnRawSample *sample, int64_t index,
                                KilnError *err)
{
    KilnPredictions *predictions = NULL;
    KilnStatus status = kiln_predict(reader->predictor, sample, 1, &predictions, err);

    if (status >= 0) {
        reader->failed |= predictions->list[0].status < 0;
        status = print_answer(reader->predictor, &predictions->list[0], index, err);
    }
    kiln_predictions_free(predictions);
    return status;
}

static KilnStatus answer_line(Reader *reader, const char *text, size_t n, int64_t index,
                              KilnError *err)
{
    const KilnRawValue value = { .name = reader->field, .type = KILN_RAW_TEXT, .text = text };
    KilnRawSample sample = { .values = &value, .n_values = 1 };
    KilnError problem = { 0 };

    if (strlen(text) != n)
        return print_problem(reader, KILN_E_FORMAT, "the line has a NUL byte", index, err);
    if (reader->field != NULL)
        return answer_sample(reader, &sample, index, err);
    KilnStatus status = kiln_raw_json_parse(&reader->json, text, n, &sample, &problem);
    if (status < 0)
        return print_problem(reader, status, problem.text, index, err);
    status = answer_sample(reader, &sample, index, err);
    kiln_raw_json_release(&sample);
    return status;
}

/* A line that has no answer makes the exit status 1, at the end. */
static KilnStatus answer_lines(Reader *reader, KilnError *err)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t n;
    KilnStatus status = KILN_OK;

    for (int64_t i = 0; status >= 0 && (n = getline(&line, &room, stdin)) > 0; i++) {
        n -= line[n - 1] == '\n';
        n -= n > 0 && line[n - 1] == '\r';
        line[n] = '\0';
        status = answer_line(reader, line, (size_t)n, i, err);
    }
    free(line);
    return status >= 0 && reader->failed
               ? kiln_error_set(err, KILN_E_FORMAT, "some lines could not be read; see \"error\"")
               : status;
}

int kiln_command_predict_lines(KilnArgs *args)
{
    const char *format = kiln_args_take(args, "format");
    KilnConsole console;
    KilnRegistry *registry = NULL;
    Reader reader = { 0 };
    KilnError err = { 0 };
    char *checkpoint = NULL;
    KilnStatus status = kiln_command_checkpoint(args, &checkpoint);

    if (status < 0)
        return kiln_screen_exit_status(status);
    status = kiln_command_registry(args, &registry);
    if (status >= 0) {
        const KilnPredictorSpec spec = {
            .registry = registry,
            .ckpt_path = checkpoint,
            .overrides = args->words,
            .console = kiln_screen_run_console(stderr, args->quiet, args->verbose, &console),
            .max_calls = 1,
        };

        status = kiln_predictor_open(&spec, &reader.predictor, &err);
        if (status >= 0)
            status = choose_format(&reader, format, &err);
        if (status >= 0)
            status = answer_lines(&reader, &err);
        if (status < 0)
            kiln_screen_error(args->command, &err);
    }
    kiln_predictor_free(reader.predictor);
    kiln_registry_free(registry);
    free(checkpoint);
    return kiln_screen_exit_status(status);
}

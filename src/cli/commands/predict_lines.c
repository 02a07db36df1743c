/* kiln predict RUN -: answers each line of standard input at once, for pipes and other programs. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/open_config.h"
#include "cli/open_run.h"
#include "cli/screen/screen.h"
#include "kiln/embed/predict.h"

/* The field that a line is the text of. */
static KilnStatus find_field(const KilnPredictor *predictor, const char **ret, KilnError *err)
{
    const KilnRawField *fields;
    const size_t n = kiln_predictor_fields(predictor, &fields);
    const char *found = NULL;

    for (size_t i = 0; i < n; i++) {
        const bool takes = (fields[i].types & KILN_RAW_TEXT) != 0 && found == NULL;

        if (!takes && !fields[i].optional)
            return kiln_error_set(err, KILN_E_TYPE,
                                  "standard input is read as one text per line, but a sample here "
                                  "needs \"%s\", too; give a .jsonl file",
                                  fields[i].name);
        if (takes)
            found = fields[i].name;
    }
    if (found == NULL)
        return kiln_error_set(err, KILN_E_TYPE, "the samples here are no texts; give a file");
    *ret = found;
    return KILN_OK;
}

/* JSON lacks NaN and infinity: texts, as prediction_writer writes them. */
static json_t *number(double value)
{
    return isfinite(value) ? json_real(value)
                           : json_string(isnan(value) ? "nan"
                                         : value > 0  ? "inf"
                                                      : "-inf");
}

static void add_output(json_t *line, const KilnDataSpec *spec, const KilnOutputView *output)
{
    const int64_t n = kiln_shape_count(&output->shape);
    json_t *list = json_array();
    int64_t best = 0;

    for (int64_t i = 0; i < n; i++) {
        best = output->data[i] > output->data[best] ? i : best;
        json_array_append_new(list, number((double)output->data[i]));
    }
    if (strcmp(output->name, "probabilities") == 0 && n > 0 && n == spec->n_classes)
        json_object_set_new(line, "class", json_string(spec->class_names[best]));
    json_object_set_new(line, output->name, list);
}

/* The answer to line `index`, a line of JSON. */
static KilnStatus print_answer(const KilnPredictor *predictor, const KilnPrediction *prediction,
                               int64_t index, KilnError *err)
{
    char place[32];
    json_t *line = json_object();

    snprintf(place, sizeof(place), "-:%lld", (long long)index + 1);
    json_object_set_new(line, "index", json_integer(index));
    json_object_set_new(line, "file", json_string(place));
    if (prediction->status < 0)
        json_object_set_new(line, "error", json_string(prediction->error));
    for (size_t i = 0; i < prediction->n_results; i++)
        if (prediction->results[i].json != NULL)
            json_object_set_new(line, prediction->results[i].name,
                                json_loads(prediction->results[i].json, JSON_DECODE_ANY, NULL));
    for (size_t i = 0; i < prediction->n_outputs; i++)
        add_output(line, kiln_predictor_data_spec(predictor), &prediction->outputs[i]);
    char *text = json_dumps(line, JSON_REAL_PRECISION(9));
    json_decref(line);
    if (text == NULL)
        return kiln_error_nomem(err, 1);
    const bool good = printf("%s\n", text) > 0 && fflush(stdout) == 0;
    free(text);
    return good ? KILN_OK : kiln_screen_write_error(err);
}

static KilnStatus answer_line(KilnPredictor *predictor, const char *field, const char *text,
                              size_t n, int64_t index, bool *ret_failed, KilnError *err)
{
    const KilnRawValue value = { .name = field, .type = KILN_RAW_TEXT, .text = text };
    const KilnRawSample sample = { .values = &value, .n_values = 1 };
    const KilnPrediction nul = { .status = KILN_E_FORMAT, .error = "the line has a NUL byte" };
    KilnPredictions *predictions = NULL;
    KilnStatus status = KILN_OK;

    if (strlen(text) != n) {
        *ret_failed = true;
        return print_answer(predictor, &nul, index, err);
    }
    status = kiln_predict(predictor, &sample, 1, &predictions, err);
    if (status >= 0) {
        *ret_failed |= predictions->list[0].status < 0;
        status = print_answer(predictor, &predictions->list[0], index, err);
    }
    kiln_predictions_free(predictions);
    return status;
}

/* A line that has no answer makes the exit status 1, at the end. */
static KilnStatus answer_lines(KilnPredictor *predictor, KilnError *err)
{
    const char *field = NULL;
    char *line = NULL;
    size_t room = 0;
    ssize_t n;
    bool failed = false;
    KilnStatus status = find_field(predictor, &field, err);

    for (int64_t i = 0; status >= 0 && (n = getline(&line, &room, stdin)) > 0; i++) {
        n -= line[n - 1] == '\n';
        n -= n > 0 && line[n - 1] == '\r';
        line[n] = '\0';
        status = answer_line(predictor, field, line, (size_t)n, i, &failed, err);
    }
    free(line);
    return status >= 0 && failed
               ? kiln_error_set(err, KILN_E_FORMAT, "some lines could not be read; see \"error\"")
               : status;
}

int kiln_command_predict_lines(KilnArgs *args)
{
    KilnConsole console;
    KilnRegistry *registry = NULL;
    KilnPredictor *predictor = NULL;
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

        status = kiln_predictor_open(&spec, &predictor, &err);
        if (status >= 0)
            status = answer_lines(predictor, &err);
        if (status < 0)
            kiln_screen_error(args->command, &err);
    }
    kiln_predictor_free(predictor);
    kiln_registry_free(registry);
    free(checkpoint);
    return kiln_screen_exit_status(status);
}

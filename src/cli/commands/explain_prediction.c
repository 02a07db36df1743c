/* kiln explain-prediction: how much each pixel, column or token of a sample matters for a score. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "base/system/file.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/explain/explain_output.h"
#include "cli/open_config.h"
#include "cli/open_run.h"
#include "cli/screen/screen.h"
#include "cli/screen/work_progress.h"
#include "kiln/tools/prediction_json.h"
#include "train/predict/predictor.h"
#include "train/trainer.h"

/* Where images are explained without --output. */
static const char default_output[] = "explanations";

typedef struct Request {
    const KilnArgs *args;
    const char *input, *output; /* output NULL: nothing is written */
    KilnExplainSpec spec;
    KilnPredictor *predictor;
    KilnWorkProgress progress;
    KilnPage page;
    int64_t unread;  /* samples that can't be read */
    KilnError first; /* why the first of them can't */
} Request;

/* ---- Files ----------------------------------------------------------------------------------- */

/* DIR/INDEX.ENDING, owned by the caller. */
static char *file_path(const Request *request, int64_t index, const char *ending)
{
    char name[48];

    snprintf(name, sizeof(name), "%05lld.%s", (long long)index, ending);
    return kiln_path_join(request->output, name);
}

typedef KilnStatus Format(const KilnExplained *explained, KilnText *ret, KilnError *err);

static KilnStatus write_text(const Request *request, const KilnExplained *explained, Format *format,
                             const char *ending, KilnError *err)
{
    char *path = file_path(request, explained->index, ending);
    KilnText text = { 0 };
    KilnStatus status = path != NULL ? format(explained, &text, err) : kiln_error_nomem(err, 64);

    if (status >= 0 && text.failed)
        status = kiln_error_nomem(err, text.length);
    if (status >= 0)
        status = kiln_file_write(path, text.data, text.length, err);
    kiln_text_release(&text);
    free(path);
    return status;
}

/* Write the picture of an image, *ret_path, or the page of a text; and JSON of all. */
static KilnStatus write_files(const Request *request, KilnExplained *explained, char **ret_path,
                              KilnError *err)
{
    const KilnAttribution *image = kiln_explained_image(explained);
    const KilnExplanation *explanation = explained->explanation;
    bool text = false;
    KilnStatus status = kiln_dir_make(request->output, err);

    if (status < 0)
        return kiln_error_prefix(err, "--output: ");
    if (status >= 0 && image != NULL) {
        *ret_path = file_path(request, explained->index, "png");
        status = *ret_path != NULL ? kiln_explained_picture(explained, image, *ret_path, err)
                                   : kiln_error_nomem(err, 64);
        explained->picture = *ret_path;
    }
    for (size_t i = 0; i < explanation->n; i++)
        text |= explanation->list[i].texts != NULL;
    if (status >= 0 && text)
        status = write_text(request, explained, kiln_explained_html, "html", err);
    return status < 0 || request->args->output == NULL
               ? status
               : write_text(request, explained, kiln_explained_json, "json", err);
}

/* ---- Samples --------------------------------------------------------------------------------- */

/* Print the page if it was made. */
static KilnStatus print(Request *request, KilnStatus status, KilnError *err)
{
    KilnText *text = &request->page.text;

    if (status >= 0 && text->failed)
        status = kiln_error_nomem(err, text->length);
    if (status >= 0 &&
        (fwrite(text->data, 1, text->length, stdout) < text->length || fflush(stdout) != 0))
        status = kiln_screen_write_error(err);
    kiln_text_clear(text);
    return status;
}

static KilnStatus explain_sample(Request *request, const KilnRawSample *raw, int64_t index,
                                 const char *file, KilnError *err)
{
    KilnExplanation *explanation = NULL;
    char *picture = NULL;
    KilnStatus status = kiln_explain(request->predictor, raw, &request->spec, &explanation, err);

    kiln_work_progress_close(&request->progress);
    if (status < 0)
        return status;
    KilnExplained explained = {
        .explanation = explanation,
        .raw = raw,
        .index = index,
        .file = file,
    };
    if (request->output == NULL && !request->args->json && kiln_explained_image(&explained) != NULL)
        request->output = default_output;
    if (request->output != NULL)
        status = write_files(request, &explained, &picture, err);
    if (status >= 0)
        status = print(request,
                       request->args->json
                           ? kiln_explained_json(&explained, &request->page.text, err)
                           : kiln_explained_page(&explained, &request->page, err),
                       err);
    free(picture);
    kiln_explanation_free(explanation);
    return status;
}

/* Report a sample that can't be read, as kiln predict does, and go on. */
static KilnStatus report_unread(Request *request, int64_t index, const char *file,
                                const KilnError *why, KilnError *err)
{
    KilnText *text = &request->page.text;

    if (why->status == KILN_E_NOMEM) {
        *err = *why;
        return err->status;
    }
    if (request->unread++ == 0)
        request->first = *why;
    if (!request->args->json)
        return KILN_OK;
    kiln_prediction_json_begin(text, index, file);
    kiln_prediction_json_text(text, "error", why->text);
    kiln_prediction_json_end(text);
    return print(request, KILN_OK, err);
}

static KilnStatus explain_readable(Request *request, const KilnRawSet *set, int64_t index,
                                   KilnError *err)
{
    const char *file = set->name != NULL ? set->name(set->ctx, index) : NULL;
    KilnSample *sample = NULL;
    KilnRawSample raw = { 0 };
    KilnError why = { 0 };
    KilnStatus status = set->get(set->ctx, index, &raw, &why);

    if (status < 0)
        return report_unread(request, index, file, &why, err);
    status = kiln_predictor_preprocess(request->predictor, &raw, &sample, &why);
    kiln_predictor_sample_free(request->predictor, sample);
    status = status < 0 ? report_unread(request, index, file, &why, err)
                        : explain_sample(request, &raw, index, file, err);
    if (set->done != NULL)
        set->done(set->ctx, &raw);
    return status;
}

static KilnStatus explain_samples(Request *request, const KilnRawSet *set, KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (int64_t i = 0; i < set->count && status >= 0; i++)
        status = *request->progress.stop != 0
                     ? kiln_error_set(err, KILN_E_INTERRUPTED, "interrupted")
                     : explain_readable(request, set, i, err);
    if (status >= 0 && request->unread > 0 && set->count == 1) {
        *err = request->first;
        return err->status;
    }
    if (status >= 0 && request->unread > 0)
        status = kiln_error_set(
            err, request->first.status, "%lld of %lld inputs could not be read; the first: %s",
            (long long)request->unread, (long long)set->count, request->first.text);
    return status;
}

static KilnStatus explain_input(Request *request, KilnError *err)
{
    KilnPredictor *predictor = request->predictor;
    KilnInput input = { 0 };
    KilnDataset dataset;
    KilnStatus status = kiln_input_open(&input, predictor->trainer->datamodule,
                                        kiln_predictor_data_spec(predictor), request->input, NULL,
                                        &dataset, err);

    if (status >= 0)
        status = explain_samples(request, &input.raw.set, err);
    kiln_input_close(&input);
    return status;
}

/* ---- The command ----------------------------------------------------------------------------- */

/* A flag that the method does not read is a mistake. */
static KilnStatus check_flag(const Request *request, const char *flag, const char *value,
                             KilnExplainMethod method, KilnError *err)
{
    const KilnExplainMethod given = request->spec.method;
    const KilnChoice *choice = kiln_explain_methods;

    if (value == NULL || given == method ||
        (given == KILN_EXPLAIN_AUTO && method == KILN_EXPLAIN_INTEGRATED_GRADIENTS))
        return KILN_OK;
    while (choice->value != (int64_t)method)
        choice++;
    return kiln_error_set(err, KILN_E_USAGE, "%s belongs to --method %s", flag, choice->name);
}

static KilnStatus parse_number(const char *flag, const char *text, int64_t most, int64_t *ret,
                               KilnError *err)
{
    if (text == NULL)
        return KILN_OK;
    if (kiln_parse_i64(text, ret, NULL) < 0 || *ret < 1 || *ret > most)
        return kiln_error_set(err, KILN_E_USAGE, "%s %s: expected a number from 1 to %lld", flag,
                              text, (long long)most);
    return KILN_OK;
}

static KilnStatus take_words(KilnArgs *args, Request *request, KilnError *err)
{
    const KilnChoice *choice = kiln_explain_methods;

    kiln_command_take_run(args);
    request->input = kiln_args_take_path(args);
    if (args->run != NULL && request->input == NULL)
        return kiln_error_set(err, KILN_E_USAGE,
                              "input is missing: `kiln %s RUN INPUT`, INPUT being a file or folder "
                              "of samples as of `kiln predict`",
                              args->command);
    KilnStatus status = kiln_command_check_words(args, request->input, err);
    if (status < 0)
        return status;
    while (args->method != NULL && strcmp(choice->name, args->method) != 0)
        choice++; /* the flag's choices are these */
    request->spec = (KilnExplainSpec) { .method = (KilnExplainMethod)choice->value,
                                        .target = args->target,
                                        .layer = args->layer };
    request->output = args->output;
    request->args = args;
    status = parse_number("--steps", args->steps, 10000, &request->spec.steps, err);
    if (status >= 0)
        status = parse_number("--window", args->window, 1000000, &request->spec.window, err);
    if (status >= 0)
        status = check_flag(request, "--steps", args->steps, KILN_EXPLAIN_INTEGRATED_GRADIENTS,
                            err);
    if (status >= 0)
        status = check_flag(request, "--window", args->window, KILN_EXPLAIN_OCCLUSION, err);
    return status < 0 ? status
                      : check_flag(request, "--layer", args->layer, KILN_EXPLAIN_GRAD_CAM, err);
}

/* KilnPoll.poll of --quiet: only whether to stop. */
static bool poll_stop(void *ctx, const char *what, int64_t done, int64_t total)
{
    (void)what;
    (void)done;
    (void)total;
    return *((const KilnWorkProgress *)ctx)->stop != 0;
}

static KilnStatus open_and_explain(KilnArgs *args, Request *request, const KilnRegistry *registry,
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
    KilnStatus status = kiln_predictor_open(&spec, &request->predictor, err);

    request->page = kiln_screen_page();
    request->progress = kiln_work_progress_open();
    const KilnPoll poll = { args->quiet ? poll_stop : kiln_work_progress_poll, &request->progress };
    request->spec.poll = &poll;
    if (status >= 0)
        status = explain_input(request, err);
    kiln_work_progress_close(&request->progress);
    kiln_text_release(&request->page.text);
    kiln_predictor_free(request->predictor);
    return status;
}

int kiln_command_explain_prediction(KilnArgs *args)
{
    Request request = { 0 };
    KilnRegistry *registry = NULL;
    char *checkpoint = NULL;
    KilnError err = { 0 };
    KilnStatus status = take_words(args, &request, &err);

    if (status < 0)
        return kiln_screen_result(args->command, status, &err);
    status = kiln_command_checkpoint(args, &checkpoint);
    if (status >= 0)
        status = kiln_command_registry(args, &registry);
    if (status >= 0) {
        status = open_and_explain(args, &request, registry, checkpoint, &err);
        if (status < 0 && kiln_screen_signal_status() != 128 + SIGPIPE)
            kiln_screen_error(args->command, &err);
        kiln_command_advise(args, status);
    }
    kiln_registry_free(registry);
    free(checkpoint);
    return kiln_screen_signal_status() != 0 ? kiln_screen_signal_status()
                                            : kiln_screen_exit_status(status);
}

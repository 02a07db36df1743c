/* kiln sweep simulate FILE|DIR: what a sweeper and a pruner would have done with recorded trials.
 */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/parse.h"
#include "base/system/file.h"
#include "cli/commands/commands.h"
#include "cli/open_config.h"
#include "cli/screen/screen.h"
#include "cli/sweep/simulate_page.h"
#include "cli/sweep/verbs.h"
#include "cli/untrusted.h"
#include "config/provenance/error_list.h"

enum { MOST_RUNS = 100000 };

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *number_json(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *event_json(const KilnSimulatedEvent *event)
{
    static const char *const kinds[] = { "start", "resume", "stop", "end" };

    return json_pack("{s:f, s:s, s:I, s:I, s:I, s:o, s:s}", "time", event->time, "event",
                     kinds[event->kind], "trial", (json_int_t)event->trial, "worker",
                     (json_int_t)event->worker, "epoch", (json_int_t)event->epoch, "value",
                     number_json(event->value), "reason", event->reason);
}

static json_t *run_json(const KilnSimulatedSweep *sweep, const KilnSimulatedRun *run)
{
    const KilnSimulated *simulated = run->simulated;
    json_t *json = json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:o, s:o}", "seed", (json_int_t)run->seed,
        "trials", (json_int_t)simulated->history.count, "stopped", (json_int_t)simulated->stopped,
        "resumed", (json_int_t)simulated->resumed, "epochs", (json_int_t)simulated->epochs,
        "whole_epochs", (json_int_t)run->whole_epochs, "seconds", simulated->seconds, "busy",
        simulated->busy, "best", number_json(kiln_simulated_value(sweep, run->best)), "best_tried",
        number_json(kiln_simulated_value(sweep, run->tried)));
    json_t *names = json_array(), *events = json_array();

    for (size_t i = 0; i < simulated->history.count; i++)
        kiln_json_add(&names, kiln_json_text(sweep->curves.curves[run->curves[i]].name));
    for (size_t i = 0; i < simulated->n_events; i++)
        kiln_json_add(&events, event_json(&simulated->events[i]));
    kiln_json_put(&json, "recorded", names);
    kiln_json_put(&json, "events", events);
    return json;
}

static KilnStatus print_json(const KilnSimulatedSweep *sweep, const char *source, KilnError *err)
{
    json_t *json = json_pack(
        "{s:s, s:s, s:s?, s:I, s:I, s:s, s:s, s:o}", "source", source, "sweeper", sweep->sweeper,
        "pruner", sweep->pruner, "workers", (json_int_t)sweep->workers, "recorded",
        (json_int_t)sweep->curves.count, "metric", sweep->curves.objective.metric, "mode",
        sweep->curves.objective.mode == KILN_MODE_MAX ? "max" : "min", "best_recorded",
        number_json(kiln_simulated_value(sweep, sweep->least)));
    json_t *runs = json_array();

    for (size_t i = 0; i < sweep->n_runs; i++)
        kiln_json_add(&runs, run_json(sweep, &sweep->runs[i]));
    kiln_json_put(&json, "runs", runs);
    char *text = json != NULL ? json_dumps(json, JSON_INDENT(2)) : NULL;
    json_decref(json);
    if (text == NULL)
        return kiln_error_nomem(err, 1);
    const bool printed = puts(text) != EOF;
    free(text);
    return printed ? KILN_OK : kiln_screen_write_error(err);
}

/* ---- The verb -------------------------------------------------------------------------------- */

/* A number of a flag; `ret` keeps its value where the flag was not given. */
static KilnStatus read_numbers(const KilnArgs *args, KilnSimulateRequest *ret, KilnError *err)
{
    int64_t runs = 1;

    if (args->runs != NULL &&
        (kiln_parse_i64(args->runs, &runs, NULL) < 0 || runs < 1 || runs > MOST_RUNS))
        return kiln_error_set(err, KILN_E_USAGE, "--runs %s: expected a number from 1 to %d",
                              args->runs, MOST_RUNS);
    ret->runs = (size_t)runs;
    if (args->straggle != NULL && (kiln_parse_f64(args->straggle, &ret->straggle, NULL) < 0 ||
                                   !(ret->straggle >= 0.0) || !isfinite(ret->straggle)))
        return kiln_error_set(
            err, KILN_E_USAGE,
            "--straggle %s: expected a deviation from 0 on: 0.5 makes half of the "
            "jobs slower by more than a third",
            args->straggle);
    return KILN_OK;
}

static KilnStatus simulate(KilnArgs *args, KilnSimulateRequest *request, const char *word)
{
    KilnSimulatedSweep sweep = { .n_runs = 0 };
    KilnRegistry *registry = NULL;
    KilnErrors *errors = NULL;
    KilnError err = { 0 };
    KilnStatus status = kiln_command_registry(args, &registry);

    if (status < 0)
        return status;
    status = kiln_errors_new(&errors);
    request->compose = kiln_command_request(args, registry);
    if (status >= 0)
        status = kiln_sweep_simulate(request, &sweep, errors);
    kiln_screen_errors(args->command, errors);
    if (status >= 0) {
        status = args->json ? print_json(&sweep, word, &err)
                            : kiln_simulated_print(&sweep, word, args->verbose, &err);
        if (status < 0)
            kiln_screen_error(args->command, &err);
    }
    kiln_simulated_sweep_release(&sweep);
    kiln_errors_free(errors);
    kiln_registry_free(registry);
    return status;
}

/* A file, or the folder of a sweep. */
static KilnStatus find(const KilnArgs *args, const char *word, char **ret, KilnError *err)
{
    if (kiln_is_file(word)) {
        *ret = kiln_strdup(word);
        return *ret != NULL ? KILN_OK : kiln_error_nomem(err, strlen(word));
    }
    KilnStatus status = kiln_sweep_find_dir(word, ret, err);
    return status >= 0 ? kiln_untrusted_links(args, *ret, err) : status;
}

int kiln_sweep_verb_simulate(KilnArgs *args)
{
    const char *word = kiln_args_take_path(args);
    KilnSimulateRequest request = { .runs = 1 };
    KilnError err = { 0 };
    char *source = NULL;
    KilnStatus status = read_numbers(args, &request, &err);

    if (status >= 0 && word == NULL)
        status = kiln_error_set(
            &err, KILN_E_USAGE,
            "simulate: expected recorded trials: a CSV file, the folder of a sweep or `last`: kiln "
            "sweep simulate last kiln/sweeper=random kiln/pruner=asha");
    if (status >= 0)
        status = find(args, word, &source, &err);
    if (status < 0) {
        free(source);
        return kiln_screen_result(args->command, status, &err);
    }
    request.source = source;
    status = simulate(args, &request, word);
    free(source);
    return kiln_screen_exit_status(status);
}

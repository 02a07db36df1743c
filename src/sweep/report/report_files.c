/* report.json and importance.csv: the report for programs. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/parse.h"
#include "base/system/file.h"
#include "sweep/report/sweep_report.h"

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *number_json(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *job_json(const KilnSweepReport *report, size_t number)
{
    const KilnJob *job = &report->sweep.jobs.items[number];
    json_t *overrides = json_array();

    for (const char *const *override = job->overrides; *override != NULL; override++)
        kiln_json_add(&overrides, kiln_json_text(*override));
    return json_pack("{s:I, s:o, s:f, s:s?, s:o}", "job", (json_int_t)number, "value",
                     number_json(kiln_sweep_report_value(report, number)), "seconds", job->seconds,
                     "dir", job->dir, "overrides", overrides);
}

static json_t *parameter_json(const KilnSweepReport *report, size_t index)
{
    const KilnParameter *parameter = &report->parameters[index];
    const KilnAxis *axis = report->space.axes[parameter->axis];
    json_t *json = json_object(), *values = json_array();

    kiln_json_put(&json, "key", kiln_json_text(parameter->key));
    kiln_json_put(&json, "label", kiln_json_text(parameter->label));
    kiln_json_put(&json, "importance", number_json(parameter->importance));
    kiln_json_put(&json, "with_interactions", number_json(parameter->with_pairs));
    kiln_json_put(&json, "tried", json_integer((json_int_t)parameter->tried));
    kiln_json_put(&json, "log", json_boolean(parameter->log));
    for (size_t i = 0; i < parameter->n_values; i++)
        kiln_json_add(&values, kiln_json_text(parameter->texts[i]));
    if (parameter->n_values > 0) {
        kiln_json_put(&json, "values", values);
        return json;
    }
    json_decref(values);
    kiln_json_put(&json, "low", number_json(axis->low));
    kiln_json_put(&json, "high", number_json(axis->high));
    return json;
}

static json_t *interactions_json(const KilnSweepReport *report)
{
    json_t *list = json_array();

    for (size_t i = 0; i < report->n_interactions; i++) {
        const KilnInteraction *pair = &report->interactions[i];
        json_t *labels = json_array();

        kiln_json_add(&labels, kiln_json_text(report->parameters[pair->first].label));
        kiln_json_add(&labels, kiln_json_text(report->parameters[pair->second].label));
        kiln_json_add(
            &list, json_pack("{s:o, s:f}", "parameters", labels, "importance", pair->importance));
    }
    return list;
}

static json_t *suggestions_json(const KilnSweepReport *report)
{
    static const char *const kinds[] = {
        [KILN_SUGGEST_WIDEN] = "widen", [KILN_SUGGEST_FIX] = "fix", [KILN_SUGGEST_SEEDS] = "seeds"
    };
    json_t *list = json_array();

    for (size_t i = 0; i < report->n_suggestions; i++) {
        const KilnReportSuggestion *suggestion = &report->suggestions[i];
        const KilnParameter *parameter = &report->parameters[suggestion->parameter];

        kiln_json_add(&list, json_pack("{s:s, s:o, s:o}", "kind", kinds[suggestion->kind],
                                       "parameter", kiln_json_text(parameter->label), "text",
                                       kiln_json_text(suggestion->text)));
    }
    return list;
}

static json_t *commands_json(const KilnSweepReport *report)
{
    json_t *list = json_array();

    for (size_t i = 0; i < report->n_commands; i++)
        kiln_json_add(&list,
                      json_pack("{s:o, s:s}", "command", kiln_json_text(report->commands[i].line),
                                "purpose", report->commands[i].purpose));
    return list;
}

static json_t *report_json(const KilnSweepReport *report)
{
    json_t *json = json_object(), *ranked = json_array(), *parameters = json_array();
    const bool weighed = report->fanova.single != NULL;

    kiln_json_put(&json, "sweep", kiln_json_text(report->sweep.path));
    kiln_json_put(&json, "metric", kiln_json_text(report->sweep.metric));
    kiln_json_put(&json, "mode", json_string(kiln_mode_text(report->mode)));
    kiln_json_put(&json, "jobs",
                  json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "all",
                            (json_int_t)report->sweep.jobs.count, "ok", (json_int_t)report->ok,
                            "stopped", (json_int_t)report->stopped, "failed",
                            (json_int_t)report->failed, "running", (json_int_t)report->running,
                            "waiting", (json_int_t)report->waiting, "forbidden",
                            (json_int_t)report->forbidden));
    kiln_json_put(&json, "seconds", json_real(report->seconds));
    kiln_json_put(&json, "best", job_json(report, report->ranked[0]));
    for (size_t i = 0; i < report->n_ranked; i++)
        kiln_json_add(&ranked, job_json(report, report->ranked[i]));
    kiln_json_put(&json, "ranked", ranked);
    for (size_t i = 0; i < report->n_parameters; i++)
        kiln_json_add(&parameters, parameter_json(report, i));
    kiln_json_put(&json, "parameters", parameters);
    kiln_json_put(&json, "analysed_jobs", json_integer((json_int_t)report->n_points));
    kiln_json_put(&json, "explained",
                  weighed ? number_json(report->fanova.explained) : json_null());
    kiln_json_put(&json, "interactions", interactions_json(report));
    kiln_json_put(&json, "suggestions", suggestions_json(report));
    kiln_json_put(&json, "commands", commands_json(report));
    return json;
}

KilnStatus kiln_sweep_report_json(const KilnSweepReport *report, char **ret, KilnError *err)
{
    json_t *json = report_json(report);
    char *text = kiln_json_dump(json, JSON_INDENT(1) | JSON_REAL_PRECISION(17));

    json_decref(json);
    if (text == NULL)
        return kiln_error_nomem(err, 1);
    *ret = text;
    return KILN_OK;
}

/* ---- CSV ------------------------------------------------------------------------------------- */

static void put_cell(KilnText *text, const char *cell)
{
    if (strpbrk(cell, ",\"\n\r") == NULL) {
        kiln_text_append(text, cell);
        return;
    }
    kiln_text_char(text, '"');
    for (; *cell != '\0'; cell++) {
        if (*cell == '"')
            kiln_text_char(text, '"');
        kiln_text_char(text, *cell);
    }
    kiln_text_char(text, '"');
}

static void put_row(KilnText *text, const char *first, const char *second, double importance)
{
    char number[KILN_F64_TEXT];

    put_cell(text, first);
    kiln_text_char(text, ',');
    put_cell(text, second);
    kiln_text_printf(text, ",%s\n", kiln_format_f64(importance, number, sizeof(number)));
}

/* Parameters, then all pairs; of too few jobs the head alone. */
static void put_csv(const KilnSweepReport *report, KilnText *text)
{
    const size_t dims = report->n_parameters;

    kiln_text_append(text, "parameter,with,importance\n");
    if (report->fanova.single == NULL)
        return;
    for (size_t i = 0; i < dims; i++)
        put_row(text, report->parameters[i].label, "", report->parameters[i].importance);
    for (size_t i = 0; i < dims; i++)
        for (size_t k = i + 1; k < dims; k++)
            put_row(text, report->parameters[i].label, report->parameters[k].label,
                    report->fanova.pairs[i * dims + k]);
}

/* ---- Files ----------------------------------------------------------------------------------- */

static KilnStatus write_file(const KilnSweepReport *report, const char *name, const char *text,
                             KilnError *err)
{
    char *path = kiln_sweep_report_path(report, name);
    KilnStatus status = path != NULL ? kiln_file_write(path, text, strlen(text), err)
                                     : kiln_error_nomem(err, strlen(name));

    free(path);
    return status;
}

KilnStatus kiln_sweep_report_write(const KilnSweepReport *report, KilnError *err)
{
    char *json = NULL, *folder = kiln_sweep_report_path(report, "");
    KilnText csv = { 0 };
    KilnStatus status = folder != NULL ? kiln_dir_make(folder, err) : kiln_error_nomem(err, 1);

    if (status >= 0)
        status = kiln_sweep_report_json(report, &json, err);
    if (status >= 0)
        status = write_file(report, "report.json", json, err);
    put_csv(report, &csv);
    if (status >= 0)
        status = csv.failed ? kiln_error_nomem(err, 1)
                            : write_file(report, "importance.csv", csv.data, err);
    kiln_text_release(&csv);
    free(json);
    free(folder);
    return status;
}

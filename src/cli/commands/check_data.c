/* kiln check-data: looks for mistakes in the data of a config. */
#include <stdio.h>
#include <stdlib.h>

#include "base/call.h"
#include "base/json.h"
#include "base/parse.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/open_config.h"
#include "cli/screen/screen.h"
#include "cli/screen/work_progress.h"
#include "registry/instance.h"
#include "train/check/data_check.h"

/* Samples of a set that are read unless --samples says otherwise. */
enum { SAMPLES = 1000000 };

/* ---- What is printed ------------------------------------------------------------------------- */

static void put_level(KilnPage *page, const KilnDataReport *report, KilnCheckLevel level)
{
    enum { TEXT = 31 };
    static const char *const headings[] = { "passed", "notes", "warnings", "errors" };

    if (report->levels[level] > 0)
        kiln_page_heading(page, "%s", headings[level]);
    for (size_t i = 0; i < report->n; i++) {
        const KilnDataFinding *finding = &report->list[i];

        if (finding->level != level)
            continue;
        kiln_page_pair(page, TEXT, finding->check, "%s", finding->text);
        if (finding->advice != NULL)
            kiln_page_pair(page, TEXT, "", "-> %s", finding->advice);
    }
}

static void put_count(KilnText *text, int64_t n, const char *one, const char *several)
{
    kiln_text_printf(text, "%s%lld %s", text->length > 0 ? ", " : "", (long long)n,
                     n == 1 ? one : several);
}

static KilnStatus print_report(const KilnDataReport *report, KilnError *err)
{
    KilnPage page = kiln_screen_page();
    KilnText counts = { 0 };

    for (int level = KILN_CHECK_ERROR; level >= KILN_CHECK_PASSED; level--)
        put_level(&page, report, (KilnCheckLevel)level);
    put_count(&counts, report->levels[KILN_CHECK_PASSED], "passed", "passed");
    put_count(&counts, report->levels[KILN_CHECK_NOTE], "note", "notes");
    put_count(&counts, report->levels[KILN_CHECK_WARNING], "warning", "warnings");
    put_count(&counts, report->levels[KILN_CHECK_ERROR], "error", "errors");
    kiln_text_printf(&page.text, "\n%s; %lld of %lld samples were read\n",
                     counts.data != NULL ? counts.data : "", (long long)report->looked,
                     (long long)report->samples);
    kiln_text_release(&counts);
    return kiln_screen_print(&page) == 0 ? KILN_OK : kiln_error_nomem(err, 0);
}

static KilnStatus print_json(const KilnDataReport *report, KilnError *err)
{
    json_t *json = kiln_data_report_json(report);
    char *text = kiln_json_dump(json, JSON_INDENT(2));
    const KilnStatus status = text != NULL ? KILN_OK : kiln_error_nomem(err, 0);

    if (text != NULL)
        puts(text);
    free(text);
    json_decref(json);
    return status;
}

/* ---- The checks ------------------------------------------------------------------------------ */

/* Set the datamodule up as a run does. What it says about its data is a finding, not a failure. */
static KilnStatus open_data(KilnDataCheck *check, KilnDataSpec *spec, KilnDataReport *report,
                            KilnError *err)
{
    const KilnDataModuleOps *ops = kiln_instance_component(check->datamodule)->ops.datamodule;
    const KilnDataContext context = { .stage = KILN_STAGE_FIT,
                                      .seed = check->seed,
                                      .poll = check->poll };
    KilnError why = { 0 };
    KilnStatus status = KILN_OK;

    if (ops->prepare_data != NULL)
        status = KILN_CALLED(check->datamodule, "prepare_data",
                             ops->prepare_data(check->datamodule, &context, &why), &why);
    if (status >= 0)
        status = KILN_CALLED(check->datamodule, "setup",
                             ops->setup(check->datamodule, &context, &why), &why);
    if (status >= 0)
        status = KILN_CALLED(check->datamodule, "spec", ops->spec(check->datamodule, spec, &why),
                             &why);
    if (status >= 0)
        status = kiln_spec_check(spec, &why);
    check->spec = spec;
    if (status >= 0)
        return KILN_OK;
    if (status == KILN_E_NOMEM || status == KILN_E_INTERRUPTED)
        return kiln_error_set(err, status, "%s", why.text);
    kiln_data_report_add(report, KILN_CHECK_ERROR, "opening the data", 1,
                         "no other check could be made", "%s", why.text);
    return status;
}

static KilnStatus read_seed(const KilnConfig *config, uint64_t *ret, KilnError *err)
{
    char *text = NULL;
    int64_t seed = 0;
    KilnStatus status = kiln_config_text(config, "seed", &text, err);

    if (status >= 0)
        status = kiln_parse_i64(text, &seed, err);
    free(text);
    *ret = (uint64_t)seed;
    return status;
}

static KilnStatus make_checks(KilnDataCheck *check, KilnDataReport *report, KilnError *err)
{
    KilnDataSpec spec = { 0 };
    KilnStatus status = read_seed(check->config, &check->seed, err);

    if (status >= 0)
        status = kiln_config_build(check->config, "datamodule", check->registry,
                                   KILN_KIND_DATAMODULE, &check->datamodule, err);
    if (status < 0)
        return status;
    status = open_data(check, &spec, report, err);
    if (status >= 0)
        status = kiln_data_check(check, report, err);
    else if (report->levels[KILN_CHECK_ERROR] > 0)
        status = KILN_OK;
    return status < 0 ? kiln_instance_error(check->config, check->datamodule, err) : status;
}

/* ---- The command ----------------------------------------------------------------------------- */

static KilnStatus check_data(KilnArgs *args, const KilnRegistry *registry, KilnConfig *config,
                             void *ctx, KilnError *err)
{
    KilnWorkProgress progress = kiln_work_progress_open();
    const KilnPoll poll = { kiln_work_progress_poll, &progress };
    KilnDataCheck check = {
        .config = config, .registry = registry, .poll = &poll, .limit = SAMPLES
    };
    KilnDataReport report = { 0 };
    KilnStatus status = KILN_OK;

    (void)ctx;
    if (args->samples != NULL)
        status = kiln_parse_i64(args->samples, &check.limit, err);
    if (status < 0 || check.limit < 1)
        status = kiln_error_set(err, KILN_E_USAGE, "--samples %s: expected a whole number above 0",
                                args->samples);
    if (status >= 0)
        status = make_checks(&check, &report, err);
    kiln_work_progress_close(&progress);
    if (status >= 0)
        status = args->json ? print_json(&report, err) : print_report(&report, err);
    if (status >= 0 && report.levels[KILN_CHECK_ERROR] > 0)
        status = KILN_E_FORMAT; /* exit status 1; everything has been said */
    kiln_data_report_release(&report);
    kiln_instance_free(check.datamodule);
    return status;
}

int kiln_command_check_data(KilnArgs *args)
{
    return kiln_command_run(args, true, check_data, NULL);
}

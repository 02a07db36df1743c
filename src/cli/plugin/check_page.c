/* The report of kiln plugin check, for people and for programs. */
#include "cli/plugin/check_page.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "cli/screen/screen.h"

enum { TEXT = 28 /* the column */ };

static const char *const level_names[] = {
    [KILN_CONTRACT_PASSED] = "passed",
    [KILN_CONTRACT_SKIPPED] = "skipped",
    [KILN_CONTRACT_FAILED] = "failed",
};

/* The findings of one component: [i, end). */
static size_t end_of(const KilnContractReport *report, size_t i)
{
    size_t end = i;

    while (end < report->n && strcmp(report->list[end].component, report->list[i].component) == 0)
        end++;
    return end;
}

static bool has_failure(const KilnContractReport *report, size_t from, size_t end)
{
    for (size_t i = from; i < end; i++)
        if (report->list[i].level == KILN_CONTRACT_FAILED)
            return true;
    return false;
}

static void put_finding(KilnPage *page, const KilnContractFinding *finding)
{
    char left[64];

    snprintf(left, sizeof(left), "%-7s  %s", level_names[finding->level], finding->check);
    kiln_page_pair(page, TEXT, left, "%s", finding->text);
    if (finding->advice[0] != '\0')
        kiln_page_pair(page, TEXT, "", "-> %s", finding->advice);
}

static void put_component(KilnPage *page, const KilnContractReport *report, size_t from, size_t end,
                          const char *target)
{
    const char *name = report->list[from].component;

    kiln_page_heading(page, "%s", name[0] != '\0' ? name : target);
    for (size_t i = from; i < end; i++)
        put_finding(page, &report->list[i]);
}

void kiln_check_page_write(KilnPage *page, const KilnContractReport *report, const char *target,
                           bool brief)
{
    for (size_t i = 0, end; i < report->n; i = end) {
        end = end_of(report, i);
        if (!brief || has_failure(report, i, end))
            put_component(page, report, i, end, target);
    }
    if (report->n > 0 && page->text.length > 0)
        kiln_text_char(&page->text, '\n');
    kiln_text_printf(&page->text, "%s: %zu component%s, %zu passed, %zu skipped, %zu failed\n",
                     target, report->components, report->components == 1 ? "" : "s",
                     report->levels[KILN_CONTRACT_PASSED], report->levels[KILN_CONTRACT_SKIPPED],
                     report->levels[KILN_CONTRACT_FAILED]);
}

static json_t *finding_json(const KilnContractFinding *finding)
{
    json_t *json = json_pack("{s:s, s:f}", "result", level_names[finding->level], "seconds",
                             finding->seconds);

    kiln_json_put(&json, "component", kiln_json_text(finding->component));
    kiln_json_put(&json, "check", kiln_json_text(finding->check));
    kiln_json_put(&json, "text", kiln_json_text(finding->text));
    kiln_json_put(&json, "advice", kiln_json_text(finding->advice));
    return json;
}

KilnStatus kiln_check_print_json(const KilnContractReport *report, const char *target,
                                 KilnError *err)
{
    json_t *json = json_pack("{s:I, s:I, s:I, s:I}", "components", (json_int_t)report->components,
                             "passed", (json_int_t)report->levels[KILN_CONTRACT_PASSED], "skipped",
                             (json_int_t)report->levels[KILN_CONTRACT_SKIPPED], "failed",
                             (json_int_t)report->levels[KILN_CONTRACT_FAILED]);
    json_t *findings = json_array();

    for (size_t i = 0; i < report->n; i++)
        kiln_json_add(&findings, finding_json(&report->list[i]));
    kiln_json_put(&json, "target", kiln_json_text(target));
    kiln_json_put(&json, "findings", findings);
    char *text = kiln_json_dump(json, JSON_INDENT(2));
    json_decref(json);
    if (text == NULL)
        return kiln_error_nomem(err, 0);
    const bool printed = puts(text) != EOF;
    free(text);
    return printed ? KILN_OK : kiln_screen_write_error(err);
}

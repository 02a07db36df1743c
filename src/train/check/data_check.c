/* Runs the checks of data and collects what they find. */
#include "train/check/data_check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/call.h"
#include "base/json.h"
#include "base/system/file.h"
#include "base/text.h"
#include "kiln/array.h"
#include "train/check/checked_sets.h"

/* ---- The report ------------------------------------------------------------------------------ */

const char *kiln_check_level_name(KilnCheckLevel level)
{
    static const char *const names[] = { "passed", "note", "warning", "error" };

    return names[level];
}

static void add_finding(void *ctx, const KilnDataFinding *finding)
{
    KilnDataReport *report = ctx;
    KilnDataFinding own = *finding;

    own.check = kiln_arena_strdup(&report->arena, finding->check);
    own.text = kiln_arena_strdup(&report->arena, finding->text);
    if (finding->advice != NULL)
        own.advice = kiln_arena_strdup(&report->arena, finding->advice);
    if (own.level < KILN_CHECK_PASSED || own.level > KILN_CHECK_ERROR || own.check == NULL ||
        own.text == NULL || !KILN_RESERVE(report->list, report->capacity, report->n + 1)) {
        report->arena.failed = true;
        return;
    }
    report->list[report->n++] = own;
    report->levels[own.level]++;
}

void kiln_data_report_add(KilnDataReport *report, KilnCheckLevel level, const char *check,
                          int64_t count, const char *advice, const char *format, ...)
{
    KilnText text = { 0 };
    va_list args;

    va_start(args, format);
    kiln_text_vprintf(&text, format, args);
    va_end(args);
    report->arena.failed = report->arena.failed || text.failed;
    add_finding(report, &(KilnDataFinding) { level, check, count,
                                             text.data != NULL ? text.data : "", advice });
    kiln_text_release(&text);
}

void kiln_data_report_release(KilnDataReport *report)
{
    free(report->list);
    kiln_arena_release(&report->arena);
}

json_t *kiln_data_report_json(const KilnDataReport *report)
{
    json_t *object = json_object(), *list = json_array();

    for (int level = 0; level <= KILN_CHECK_ERROR; level++) {
        static const char *const keys[] = { "passed", "notes", "warnings", "errors" };

        kiln_json_put(&object, keys[level], json_integer(report->levels[level]));
    }
    kiln_json_put(&object, "samples", json_integer(report->samples));
    kiln_json_put(&object, "samples_read", json_integer(report->looked));
    for (size_t i = 0; i < report->n; i++) {
        const KilnDataFinding *finding = &report->list[i];
        json_t *one = json_object();

        kiln_json_put(&one, "level", json_string(kiln_check_level_name(finding->level)));
        kiln_json_put(&one, "check", kiln_json_text(finding->check));
        kiln_json_put(&one, "count", json_integer(finding->count));
        kiln_json_put(&one, "text", kiln_json_text(finding->text));
        if (finding->advice != NULL)
            kiln_json_put(&one, "advice", kiln_json_text(finding->advice));
        kiln_json_add(&list, one);
    }
    kiln_json_put(&object, "checks", list);
    return object;
}

/* ---- Reading the sets ------------------------------------------------------------------------ */

static const KilnDataModuleOps *ops_of(const KilnDataCheck *check)
{
    return kiln_instance_component(check->datamodule)->ops.datamodule;
}

static KilnStatus read_set(KilnCheckedSets *sets, KilnSplit split, size_t number, const char *name,
                           KilnError *err)
{
    const KilnDataCheck *check = sets->check;
    KilnSetRead *set = &sets->list[sets->n];
    KilnStatus status = KILN_CALLED(
        check->datamodule, "dataset",
        ops_of(check)->dataset(check->datamodule, split, number, &set->dataset, err), err);

    set->number = (int)sets->n;
    set->split = split;
    snprintf(set->name, sizeof(set->name), "%s%s%.50s", kiln_split_name(split),
             name[0] != '\0' ? "/" : "", name);
    if (status < 0 || set->dataset.count == 0)
        return status;
    sets->n++;
    status = kiln_set_read(check->spec, check->datamodule, check->seed, check->limit, check->poll,
                           set, err);
    sets->report->samples += set->dataset.count;
    sets->report->looked += set->looked;
    return status;
}

static KilnStatus read_sets(KilnCheckedSets *sets, KilnError *err)
{
    const KilnDataCheck *check = sets->check;
    const KilnDataModuleOps *ops = ops_of(check);
    KilnStatus status = KILN_OK;

    for (int split = 0; split < KILN_SPLIT_COUNT && status >= 0; split++) {
        const char *const *names = NULL;
        size_t n = 1;

        if (split != KILN_TRAIN && ops->sets != NULL)
            n = ops->sets(check->datamodule, (KilnSplit)split, &names);
        for (size_t i = 0; i < n && i < KILN_MAX_SETS && status >= 0; i++)
            status = read_set(sets, (KilnSplit)split, i, names != NULL ? names[i] : "", err);
        if (status >= 0 && split == KILN_TRAIN && sets->n == 0)
            status = kiln_error_set(err, KILN_E_MISSING,
                                    "datamodule %s has no training samples; check its options",
                                    kiln_instance_name(check->datamodule));
    }
    return status;
}

/* ---- Augmented training samples ---------------------------------------------------------------
 */

/* Read the training samples again as validation prepares them, for their keys. */
static KilnStatus read_plain(KilnCheckedSets *sets, KilnInstance *datamodule, const char *fitted,
                             KilnError *err)
{
    const KilnDataCheck *check = sets->check;
    const KilnDataModuleOps *ops = ops_of(check);
    const KilnDataContext context = { .stage = KILN_STAGE_VALIDATE,
                                      .seed = check->seed,
                                      .poll = check->poll,
                                      .fitted = fitted,
                                      .data = check->data };
    KilnSetRead plain = sets->list[0];
    KilnDataSpec spec;
    KilnStatus status = KILN_CALLED(datamodule, "setup", ops->setup(datamodule, &context, err),
                                    err);

    plain.keys = NULL;
    plain.features = NULL;
    plain.n_features = 0;
    plain.broken = 0;
    if (status >= 0)
        status = KILN_CALLED(datamodule, "spec", ops->spec(datamodule, &spec, err), err);
    if (status >= 0)
        status = KILN_CALLED(datamodule, "dataset",
                             ops->dataset(datamodule, KILN_TRAIN, 0, &plain.dataset, err), err);
    if (status >= 0)
        status = kiln_set_read(&spec, datamodule, check->seed, check->limit, check->poll, &plain,
                               err);
    if (status >= 0) {
        KilnSampleKey *keys = sets->list[0].keys;

        sets->list[0].keys = plain.keys;
        sets->list[0].n_keys = plain.n_keys;
        plain.keys = keys;
    }
    kiln_set_read_release(&plain);
    return status;
}

static KilnStatus read_with_fitted(KilnCheckedSets *sets, const char *folder, KilnError *err)
{
    const KilnDataCheck *check = sets->check;
    const KilnDataModuleOps *ops = ops_of(check);
    const bool saves = ops->save_preprocessing != NULL;
    KilnInstance *datamodule = NULL;
    KilnStatus status = KILN_OK;

    if (saves)
        status = KILN_CALLED(check->datamodule, "save_preprocessing",
                             ops->save_preprocessing(check->datamodule, folder, err), err);
    if (status >= 0)
        status = kiln_config_build(check->config, "datamodule", check->registry,
                                   KILN_KIND_DATAMODULE, &datamodule, err);
    if (status >= 0)
        status = read_plain(sets, datamodule, saves ? folder : NULL, err);
    kiln_instance_free(datamodule);
    return status;
}

/* What is augmented differs from its copy in another split. */
static KilnStatus compare_plain(KilnCheckedSets *sets, KilnError *err)
{
    const KilnDataCheck *check = sets->check;
    bool augmented = false;
    KilnStatus status = kiln_set_is_augmented(check->spec, check->datamodule, check->seed,
                                              &sets->list[0], &augmented, err);

    if (status < 0 || !augmented)
        return status;
    if (check->brief) {
        sets->train_differs = true;
        sets->list[0].n_keys = 0;
        return KILN_OK;
    }
    char *folder = kiln_path_join(kiln_tmpdir("/tmp"), "kiln-check-XXXXXX");
    if (folder == NULL)
        return kiln_error_nomem(err, 64);
    if (mkdtemp(folder) == NULL) {
        status = kiln_error_errno(err, folder);
    } else {
        status = read_with_fitted(sets, folder, err);
        if (kiln_path_remove(folder, status >= 0 ? err : NULL) < 0 && status >= 0)
            status = KILN_E_IO;
    }
    free(folder);
    return status;
}

/* ---- What the datamodule says -----------------------------------------------------------------
 */

static void add_omission(void *ctx, const KilnOmission *omission)
{
    kiln_data_report_add(ctx, KILN_CHECK_WARNING, "left out", omission->count, NULL,
                         "%lld %s such as %s: %s", (long long)omission->count, omission->what,
                         omission->example, omission->reason);
}

static KilnStatus ask_datamodule(const KilnDataCheck *check, KilnDataReport *report, KilnError *err)
{
    const KilnDataModuleOps *ops = ops_of(check);
    const size_t before = report->n;

    if (ops->left_out != NULL) {
        kiln_call_enter(check->datamodule, "left_out");
        ops->left_out(check->datamodule, add_omission, report);
        kiln_call_leave();
        if (report->n == before)
            kiln_data_report_add(report, KILN_CHECK_PASSED, "left out", 0, NULL,
                                 "nothing that was found is left out");
    }
    if (ops->check == NULL || check->brief)
        return KILN_OK;
    return KILN_CALLED(check->datamodule, "check",
                       ops->check(check->datamodule, check->poll, add_finding, report, err), err);
}

KilnStatus kiln_data_check(const KilnDataCheck *check, KilnDataReport *ret, KilnError *err)
{
    KilnCheckedSets *sets = calloc(1, sizeof(*sets));

    if (sets == NULL)
        return kiln_error_nomem(err, sizeof(*sets));
    sets->check = check;
    sets->report = ret;
    KilnStatus status = read_sets(sets, err);
    if (status >= 0)
        status = compare_plain(sets, err);
    if (status >= 0)
        status = kiln_check_values(sets, err);
    if (status >= 0)
        status = kiln_check_labels(sets, err);
    if (status >= 0)
        status = kiln_check_overlap(sets, err);
    if (status >= 0)
        status = ask_datamodule(check, ret, err);
    for (size_t s = 0; s < KILN_COUNT(sets->list); s++)
        kiln_set_read_release(&sets->list[s]);
    free(sets);
    return status >= 0 && ret->arena.failed ? kiln_error_nomem(err, 0) : status;
}

/* Reads the rows of all splits, infers the kinds of their columns and fits them. */
#include <stdatomic.h>
#include <stdlib.h>

#include "base/min.h"
#include "base/system/machine.h"
#include "base/system/threads.h"
#include "base/text.h"
#include "data/table/load.h"

typedef KilnTableLoad Load;

static char *const *paths_of(const KilnTableData *data, KilnSplit split, size_t *ret_n)
{
    const KilnTextFiles *files = data->source.files;

    *ret_n = split == KILN_TRAIN ? files->train_count
             : split == KILN_VAL ? files->val_count
                                 : files->test_count;
    return split == KILN_TRAIN ? files->train : split == KILN_VAL ? files->val : files->test;
}

/* ---- Reading --------------------------------------------------------------------------------- */

/* The files that a stage needs; those of training also for a part that is held out. */
static bool needs(const Load *load, KilnSplit split)
{
    const KilnTableSource *source = &load->data->source;
    const KilnStage stage = load->context->stage;
    const bool tests = source->files->test_count > 0 ||
                       (source->test_fraction == 0.0 && source->split_column == NULL &&
                        source->leave_last_out == NULL);
    size_t n;

    (void)paths_of(load->data, split, &n);
    if (n == 0 || stage == KILN_STAGE_PREDICT)
        return false;
    if (stage == KILN_STAGE_TEST)
        return split == (tests ? KILN_TEST : KILN_TRAIN);
    return stage == KILN_STAGE_FIT || split != KILN_TEST;
}

static KilnStatus open_sources(Load *load, KilnError *err)
{
    KilnStatus status = KILN_OK;

    if (load->context->stage == KILN_STAGE_FIT && load->data->source.files->train_count == 0)
        return kiln_error_set(err, KILN_E_MISSING,
                              "files.train: no files; set datamodule.files.train=[FILE.csv]");
    for (int split = 0; split < KILN_SPLIT_COUNT && status >= 0; split++) {
        size_t n;
        char *const *paths = paths_of(load->data, (KilnSplit)split, &n);

        if (!needs(load, (KilnSplit)split))
            continue;
        status = kiln_source_open(&load->data->source, paths, n, load->context->poll,
                                  &load->data->sources[split], err);
        if (status < 0)
            (void)kiln_error_prefix(err, "files.%s: ", kiln_split_name((KilnSplit)split));
    }
    return status;
}

static bool is_open(const Load *load, int split)
{
    return load->data->sources[split].names.n > 0;
}

static KilnStatus bad_row(void *ctx, const KilnError *why, KilnError *err)
{
    Load *load = ctx;

    return load->again ? KILN_OK : kiln_table_skip(load->data, load->reading, why, err);
}

static KilnStatus read_source(Load *load, int split, const bool *wanted, KilnCells *ret,
                              KilnError *err)
{
    const KilnSourceColumns columns = { .list = load->columns,
                                        .wanted = wanted,
                                        .n = load->data->plan.n_columns };
    const KilnTableSink sink = { .ctx = load, .bad_row = bad_row };

    load->reading = (KilnSplit)split;
    return kiln_source_read(&load->data->source, &load->data->sources[split], &columns,
                            &load->data->rules, load->context->poll, &sink, ret, err);
}

/* Replace column c by what was read again; rows that were dropped since then are passed over. */
static void take_column(KilnCells *cells, const KilnCells *more, size_t c)
{
    int64_t at = 0;

    for (int64_t i = 0; i < cells->n_rows; i++) {
        while (at < more->n_rows && more->rows[at] < cells->rows[i])
            at++;
        if (at < more->n_rows)
            cells->cells[c][i] = more->cells[c][at];
    }
}

/* Read columns again whose numbers are texts after all. */
static KilnStatus read_again(Load *load, const bool *columns, bool *ret_any, KilnError *err)
{
    const size_t n = load->data->plan.n_columns;
    KilnStatus status = KILN_OK;
    bool any = false;

    for (size_t c = 0; c < n; c++)
        if (columns[c]) {
            any = load->columns[c].as_text = true;
            kiln_dictionary_release(&load->columns[c].dictionary);
        }
    *ret_any = any;
    load->again = true;
    for (int split = 0; split < KILN_SPLIT_COUNT && any && status >= 0; split++) {
        KilnCells more = { 0 };

        if (!is_open(load, split))
            continue;
        status = read_source(load, split, columns, &more, err);
        for (size_t c = 0; c < n && status >= 0; c++)
            if (columns[c] && more.cells[c] != NULL)
                take_column(&load->cells[split], &more, c);
        kiln_cells_release(&more);
    }
    return status;
}

/* ---- Kinds ----------------------------------------------------------------------------------- */

/* Whether the target is a class, by all rows of the training files. */
static KilnStatus infer_target(Load *load, KilnError *err)
{
    enum { MOST_CLASSES = 20 };
    KilnTablePlan *plan = &load->data->plan;
    const KilnCells *cells = &load->cells[KILN_TRAIN];
    int64_t *all;
    KilnColumnFacts facts;

    if (plan->target < 0 || load->data->source.target_type != KILN_TARGET_AUTO)
        return KILN_OK;
    all = malloc(((size_t)cells->n_rows + 1) * sizeof(*all));
    if (all == NULL)
        return kiln_error_nomem(err, (size_t)cells->n_rows * sizeof(*all));
    for (int64_t i = 0; i < cells->n_rows; i++)
        all[i] = i;
    KilnStatus status = kiln_column_facts(cells, (size_t)plan->target,
                                          &load->columns[plan->target].dictionary,
                                          (KilnRowList) { all, cells->n_rows }, &facts, err);
    if (status >= 0)
        plan->classes = facts.texts * 10 > facts.numbers ||
                        (facts.whole && facts.distinct <= MOST_CLASSES);
    free(all);
    return status;
}

/* Threads look at a column each. */
typedef struct FactsJob {
    const Load *load;
    KilnRowList rows;
    atomic_size_t next;
} FactsJob;

typedef struct FactsWorker {
    FactsJob *job;
    KilnStatus status;
    KilnError err;
} FactsWorker;

static void *count_facts(void *argument)
{
    FactsWorker *worker = argument;
    const Load *load = worker->job->load;
    const KilnCells *cells = &load->cells[KILN_TRAIN];
    size_t c;

    while (worker->status >= 0 &&
           (c = atomic_fetch_add(&worker->job->next, 1)) < load->data->plan.n_columns)
        if (cells->cells[c] != NULL)
            worker->status = kiln_column_facts(cells, c, &load->columns[c].dictionary,
                                               worker->job->rows,
                                               &load->data->plan.columns[c].facts, &worker->err);
    return NULL;
}

static KilnStatus find_facts(const Load *load, KilnRowList rows, KilnError *err)
{
    enum { MAX_THREADS = 16 };
    const size_t n = (size_t)kiln_min_i64(kiln_processors_here().threads, MAX_THREADS);
    FactsJob job = { .load = load, .rows = rows };
    FactsWorker *workers = calloc(n, sizeof(*workers));
    KilnStatus status = workers != NULL ? KILN_OK : kiln_error_nomem(err, n * sizeof(*workers));

    for (size_t w = 0; w < n && status >= 0; w++)
        workers[w].job = &job;
    if (status >= 0)
        kiln_run_in_threads(n, count_facts, workers, sizeof(*workers));
    for (size_t w = 0; w < n && status >= 0; w++)
        if (workers[w].status < 0) {
            status = workers[w].status;
            if (err != NULL)
                *err = workers[w].err;
        }
    free(workers);
    return status;
}

static KilnStatus infer_kinds(Load *load, KilnRowList rows, bool *ret_again, KilnError *err)
{
    KilnTablePlan *plan = &load->data->plan;
    const KilnStatus status = find_facts(load, rows, err);

    for (size_t c = 0; c < plan->n_columns && status >= 0; c++) {
        KilnTableColumn *column = &plan->columns[c];
        const int64_t at = (int64_t)c;

        if (load->cells[KILN_TRAIN].cells[c] == NULL)
            continue;
        column->has_missing = column->facts.missing > 0;
        if (at == plan->target)
            column->kind = plan->classes ? KILN_COLUMN_CATEGORY : KILN_COLUMN_NUMBER;
        else if (at == plan->group || at == load->by.name)
            column->kind = KILN_COLUMN_IGNORED;
        else if (!column->given)
            column->kind = kiln_column_infer(&column->facts, rows.n, &column->why);
        ret_again[c] =
            (column->kind == KILN_COLUMN_CATEGORY || kiln_table_is_text(load->data, c)) &&
            !load->columns[c].as_text && column->facts.texts > 0 && column->facts.numbers > 0;
    }
    return status;
}

/* Columns of the training files that another split lacks. */
static KilnStatus check_columns(const Load *load, KilnError *err)
{
    const KilnTablePlan *plan = &load->data->plan;
    char place[512];

    for (int split = 0; split < KILN_SPLIT_COUNT; split++)
        for (size_t c = 0; c < plan->n_columns && is_open(load, split); c++) {
            const KilnTableColumn *column = &plan->columns[c];
            const bool target = (int64_t)c == plan->target, group = (int64_t)c == plan->group;
            const bool used = column->kind == KILN_COLUMN_NUMBER ||
                              column->kind == KILN_COLUMN_CATEGORY ||
                              column->kind == KILN_COLUMN_DATE || group ||
                              kiln_table_is_text(load->data, c);

            if (load->cells[split].cells[c] != NULL || !used || (target && split == KILN_TEST))
                continue;
            snprintf(place, sizeof(place), "%s", load->data->sources[split].paths[0]);
            const bool needed = target || group;
            return kiln_error_set(err, KILN_E_KEY,
                                  "files.%s: %s lacks the column \"%s\", which the training files "
                                  "have%s%s%s",
                                  kiln_split_name((KilnSplit)split), place, column->name,
                                  needed ? ""
                                         : "; a model can't learn from what it does not get later: "
                                           "+datamodule.columns.",
                                  needed ? "" : column->name,
                                  needed ? "" : "=ignored leaves it out");
        }
    return KILN_OK;
}

static KilnStatus check_plan(const Load *load, KilnError *err)
{
    const KilnTablePlan *plan = &load->data->plan;
    const size_t others = plan->n_columns - (plan->target >= 0);
    const char *text = NULL;

    if (plan->n_numbers + plan->n_categories > 0 || kiln_table_has_texts(load->data) ||
        plan->target < 0)
        return KILN_OK; /* without a target it is the task that says what it needs */
    for (size_t c = 0; c < plan->n_columns; c++)
        if (plan->columns[c].kind == KILN_COLUMN_TEXT && (int64_t)c != plan->target)
            text = plan->columns[c].name;
    return kiln_error_set(err, KILN_E_MISSING,
                          "files.train: no column is left to learn from: %zu %s text or ignored; "
                          "set kinds with columns%s%s%s",
                          others, others == 1 ? "column is" : "columns are",
                          text != NULL ? ", or learn from texts such as \"" : "",
                          text != NULL ? text : "",
                          text != NULL ? "\": tokenizer=words, with a model of tokens such as "
                                         "bag_of_tokens"
                                       : "");
}

/* Infer the kinds, and drop the rows that do not fit them. Rows that are dropped have no part in
 * the kinds, and of a column of texts and numbers it is known only when it is read as texts how
 * many are different. */
static KilnStatus find_kinds(Load *load, KilnError *err)
{
    KilnSplitList *train = &load->lists[KILN_TRAIN];
    bool *again = calloc(load->data->plan.n_columns + 1, sizeof(*again));
    KilnStatus status = again != NULL ? KILN_OK : kiln_error_nomem(err, load->data->plan.n_columns);
    int64_t before = -1;
    bool any = false;

    while (status >= 0 && (before != train->n || any)) {
        before = train->n;
        status = infer_kinds(load, (KilnRowList) { train->rows, train->n }, again, err);
        if (status >= 0)
            status = check_columns(load, err);
        if (status >= 0)
            status = read_again(load, again, &any, err);
        if (status >= 0)
            status = kiln_table_check_list(load, train, true, err);
    }
    free(again);
    if (status >= 0 && train->n == 0)
        status = kiln_error_set(err, KILN_E_MISSING, "files.train: no row can be used");
    if (status >= 0 && load->data->plan.target >= 0 && !load->data->plan.classes)
        status = kiln_table_check_list(load, train, false, err);
    return status;
}

/* Infer and fit by the training rows. */
static KilnStatus fit(Load *load, KilnError *err)
{
    KilnTableData *data = load->data;
    KilnTablePlan *plan = &data->plan;
    KilnSplitList *train = &load->lists[KILN_TRAIN];
    const KilnCells *cells = &load->cells[KILN_TRAIN];
    KilnStatus status = find_kinds(load, err);

    if (status >= 0 && plan->classes)
        status = kiln_fit_names(cells, (size_t)plan->target,
                                &load->columns[plan->target].dictionary, data->source.target_end,
                                (KilnRowList) { train->rows, train->n }, &plan->class_names,
                                &plan->n_classes, err);
    const KilnRowList rows = { train->rows, train->n };
    if (status >= 0)
        status = kiln_table_plan_fit(plan, cells, load->columns, rows,
                                     data->source.missing_indicators, load->context->seed, err);
    if (status >= 0)
        status = check_plan(load, err);
    if (status >= 0)
        status = kiln_table_train_tokenizer(data, cells, load->columns, rows, err);
    return status >= 0 ? kiln_table_find_leaks(data, cells, load->columns, rows, err) : status;
}

/* ---- Splits ---------------------------------------------------------------------------------- */

static KilnStatus all_rows(Load *load, int split, KilnError *err)
{
    KilnSplitList *list = &load->lists[split];
    const int64_t n = load->cells[split].n_rows;

    *list = (KilnSplitList) { .source = (KilnSplit)split,
                              .rows = malloc(((size_t)n + 1) * sizeof(*list->rows)),
                              .n = n };
    for (int64_t i = 0; i < n && list->rows != NULL; i++)
        list->rows[i] = i;
    return list->rows != NULL ? KILN_OK : kiln_error_nomem(err, (size_t)n * sizeof(*list->rows));
}

static KilnStatus make_lists(Load *load, KilnError *err)
{
    const KilnTableSource *source = &load->data->source;
    KilnStatus status = KILN_OK;

    load->by.seed = source->split_seed != NULL ? (uint64_t)*source->split_seed
                                               : load->context->seed;
    if (is_open(load, KILN_TRAIN))
        status = kiln_table_split(load->data, &load->cells[KILN_TRAIN], load->columns, &load->by,
                                  load->lists, err);
    for (int split = KILN_VAL; split < KILN_SPLIT_COUNT && status >= 0; split++)
        if (is_open(load, split))
            status = all_rows(load, split, err);
    return status;
}

/* The samples of the splits that the stage has. */
static KilnStatus fill(Load *load, KilnError *err)
{
    KilnTableData *data = load->data;
    const int64_t target = data->plan.target;
    KilnStatus status = KILN_OK;

    for (int split = 0; split < KILN_SPLIT_COUNT && status >= 0; split++) {
        KilnSplitList *list = &load->lists[split];
        KilnTableRows *rows = &data->splits[split];

        if (list->rows == NULL)
            continue;
        const KilnCells *cells = &load->cells[list->source];
        const KilnCell *targets = target >= 0 ? cells->cells[target] : NULL;
        rows->no_target = targets == NULL ||
                          (cells->n_rows > 0 && list->source == KILN_TEST &&
                           !kiln_cell_is_number(targets[0]) && !kiln_cell_is_text(targets[0]));
        rows->source = list->source;
        if (split != KILN_TRAIN || load->context->fitted != NULL)
            status = kiln_table_check_list(load, list, rows->no_target, err);
        if (status >= 0)
            status = kiln_table_fill(rows, cells, load->columns,
                                     (KilnRowList) { list->rows, list->n }, err);
        if (status >= 0)
            status = kiln_table_fill_tokens(rows, cells, load->columns,
                                            (KilnRowList) { list->rows, list->n }, err);
    }
    return status;
}

static void release(Load *load)
{
    for (size_t c = 0; c < load->data->plan.n_columns && load->columns != NULL; c++)
        kiln_dictionary_release(&load->columns[c].dictionary);
    for (int split = 0; split < KILN_SPLIT_COUNT; split++) {
        kiln_cells_release(&load->cells[split]);
        free(load->lists[split].rows);
    }
    free(load->columns);
    free(load->wanted);
}

static KilnStatus no_row(const Load *load, int split, KilnError *err)
{
    const KilnTableSkipped *first = &load->data->skipped[split][0];

    for (int i = 0; i < KILN_SKIP_REASONS && first->count == 0; i++)
        first = &load->data->skipped[split][i];
    return kiln_error_set(err, KILN_E_MISSING, "files.%s: %s: no row can be used%s%s%s%s",
                          kiln_split_name((KilnSplit)split), load->data->sources[split].paths[0],
                          first->count > 0 ? "; the first: " : "", first->example,
                          first->count > 0 ? ": " : "", first->reason);
}

static KilnStatus read_all(Load *load, KilnError *err)
{
    KilnStatus status = kiln_table_choose_columns(load, err);

    for (int split = 0; split < KILN_SPLIT_COUNT && status >= 0; split++) {
        if (!is_open(load, split))
            continue;
        status = read_source(load, split, load->wanted, &load->cells[split], err);
        if (status >= 0)
            status = kiln_table_check_targets(load, (KilnSplit)split, err);
        if (status >= 0 && load->cells[split].n_rows == 0)
            status = no_row(load, split, err);
    }
    return status;
}

KilnStatus kiln_table_load(KilnTableData *data, const KilnDataContext *context, KilnError *err)
{
    Load load = { .data = data, .context = context, .by = { -1, -1, -1, 0 } };
    KilnStatus status = open_sources(&load, err);

    if (status >= 0)
        status = context->fitted != NULL ? kiln_table_plan_read(&data->plan, context->fitted, err)
                                         : kiln_table_list_columns(&load, err);
    if (status >= 0 && is_open(&load, KILN_TRAIN))
        status = kiln_table_find_split_columns(&load, err);
    if (status >= 0)
        status = read_all(&load, err);
    if (status >= 0 && context->fitted == NULL)
        status = infer_target(&load, err);
    if (status >= 0)
        status = make_lists(&load, err);
    if (status >= 0)
        status = context->fitted == NULL ? fit(&load, err) : check_columns(&load, err);
    if (status >= 0 && context->fitted != NULL)
        status = kiln_table_open_tokenizer(data, context->fitted, err);
    if (status >= 0)
        status = kiln_table_features(data, err);
    if (status >= 0)
        status = fill(&load, err);
    release(&load);
    return status;
}

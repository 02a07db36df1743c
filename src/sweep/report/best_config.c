/* The config of the best job as a file of the group experiment/: its overrides as YAML, with the
 * values of its frozen config, and why each was chosen. */
#include <math.h>
#include <string.h>

#include "base/system/file.h"
#include "config/override/override.h"
#include "config/tree/tree.h"
#include "config/yaml/yaml_writer.h"
#include "sweep/report/sweep_report.h"

enum { COMMENT = 32 /* the column of comments */, INDENT = 2 };

/* A key of the file, with a value or with keys below it. */
typedef struct Branch Branch;
struct Branch {
    const char *key, *value, *comment; /* value NULL: keys below */
    Branch *first, *last, *next;
};

typedef struct Writing {
    const KilnSweepReport *report;
    const KilnJob *job;
    size_t number;
    const KilnConfigNode *choices; /* options of groups; NULL: none */
    KilnArena arena;
    KilnText defaults;
    Branch root;
} Writing;

/* ---- Reasons ------------------------------------------------------------------------------- */

/* The parameter whose value an override of the job is; false: the value is the same in all jobs.
 * *ret_follows: it varies with that parameter by zip(). */
static bool find_parameter(const Writing *writing, const char *key, size_t *ret, bool *ret_follows)
{
    const KilnSweepReport *report = writing->report;

    for (size_t i = 0; i < report->n_parameters; i++) {
        const KilnParameter *parameter = &report->parameters[i];

        if (kiln_sweep_report_text(report, writing->number, i) == NULL)
            continue;
        for (size_t k = 0; k < report->space.count; k++) {
            const KilnAxis *axis = report->space.axes[k];

            *ret = i;
            *ret_follows = k != parameter->axis;
            if (axis->leader == parameter->axis &&
                strcmp(axis->key + strspn(axis->key, "+"), key) == 0)
                return true;
        }
    }
    return false;
}

static const char *reason_of(Writing *writing, const char *key)
{
    KilnText text = { 0 };
    size_t i = 0;
    bool follows = false;

    if (!find_parameter(writing, key, &i, &follows)) {
        kiln_text_append(&text, "the same in all jobs");
        return kiln_text_to_arena(&text, &writing->arena);
    }
    const KilnParameter *parameter = &writing->report->parameters[i];
    kiln_text_printf(&text, "job #%zu: ", writing->number);
    if (follows)
        kiln_text_printf(&text, "varies with %s; ", parameter->key);
    if (parameter->tried > 1)
        kiln_text_printf(&text, "best of %zu values tried", parameter->tried);
    else
        kiln_text_append(&text, "only value tried");
    if (!isnan(parameter->importance))
        kiln_text_printf(&text, "; importance %.2f", parameter->importance);
    return kiln_text_to_arena(&text, &writing->arena);
}

/* Append a comment, which a line end in a name would end. */
static void put_comment(KilnText *text, const char *comment)
{
    const size_t start = text->length;

    kiln_text_printf(text, "# %s\n", comment);
    for (size_t i = start; !text->failed && i + 1 < text->length; i++)
        if ((unsigned char)text->data[i] < ' ')
            text->data[i] = ' ';
}

static void pad(KilnText *text, size_t line)
{
    const size_t width = text->length - line;

    kiln_text_printf(text, "%*s", width + 2 < COMMENT ? (int)(COMMENT - width) : 2, "");
}

/* ---- Groups --------------------------------------------------------------------------------- */

static void put_option(KilnText *text, const KilnConfigNode *option)
{
    if (option == NULL || kiln_node_is_scalar(option, KILN_SCALAR_NULL))
        kiln_text_append(text, "null");
    else if (option->kind != KILN_NODE_SCALAR)
        kiln_write_flow(text, option, 0);
    else if (option->text[0] == '[') /* several options */
        kiln_text_append(text, option->text);
    else
        kiln_write_string(text, option->text);
}

/* A group that is deleted has no option, but files. */
static bool is_group(const Writing *writing, const char *key, bool deleted)
{
    KilnText folder = { 0 };

    if (!deleted)
        return writing->choices != NULL && kiln_node_get(writing->choices, key) != NULL;
    kiln_text_printf(&folder, "%s/.kiln/conf/%s", writing->report->sweep.path, key);
    const bool is = !folder.failed && kiln_is_dir(folder.data);
    kiln_text_release(&folder);
    return is;
}

/* An experiment that the jobs began with is included, from the same group. */
static void put_experiment(Writing *writing, const KilnConfigNode *option)
{
    KilnText *text = &writing->defaults;
    const bool several = option->kind == KILN_NODE_SCALAR && option->text[0] == '[';

    if (option->kind == KILN_NODE_LIST) {
        for (size_t i = 0; i < option->count; i++)
            kiln_text_printf(text, "  - %s\n", option->entries[i].value->text);
        return;
    }
    kiln_text_append(text, several ? "  - /experiment: " : "  - ");
    put_option(text, option);
    kiln_text_char(text, '\n');
}

static void add_group(Writing *writing, const char *key, bool added, bool deleted)
{
    const KilnConfigNode *option = deleted ? NULL : kiln_node_get(writing->choices, key);
    KilnText *text = &writing->defaults;
    const size_t line = text->length;

    if (strcmp(key, "experiment") == 0 && option != NULL &&
        !kiln_node_is_scalar(option, KILN_SCALAR_NULL)) {
        put_experiment(writing, option);
        return;
    }
    kiln_text_printf(text, "  - %s/%s: ", added ? "" : "override ", key);
    put_option(text, option);
    pad(text, line);
    put_comment(text, reason_of(writing, key));
}

/* ---- Values --------------------------------------------------------------------------------- */

/* The branch at a path, made if it is not there; NULL: a branch above has a value already, of which
 * this one is a part, or memory is out. */
static Branch *branch_at(Writing *writing, const char *path)
{
    Branch *at = &writing->root;
    char part[KILN_PATH_PART];

    while (kiln_path_next(&path, part)) {
        Branch *child = at->first;

        if (at->value != NULL)
            return NULL;
        while (child != NULL && strcmp(child->key, part) != 0)
            child = child->next;
        if (child == NULL) {
            child = kiln_arena_alloc(&writing->arena, sizeof(*child));
            if (child == NULL)
                return NULL;
            child->key = kiln_arena_strdup(&writing->arena, part);
            if (at->last != NULL)
                at->last->next = child;
            else
                at->first = child;
            at->last = child;
        }
        at = child;
    }
    return at;
}

/* The part of a path before the first list: a file can't set an item of a list, only all of it. */
static const char *path_to_list(Writing *writing, const char *path)
{
    const KilnConfigNode *node = writing->report->best_config;
    KilnText whole = { 0 };
    const char *rest = path;
    char part[KILN_PATH_PART];

    while (node != NULL && node->kind == KILN_NODE_MAP && kiln_path_next(&rest, part)) {
        (void)kiln_key_push(&whole, part, 0);
        node = kiln_node_get(node, part);
    }
    if (node != NULL && node->kind == KILN_NODE_LIST)
        return kiln_text_to_arena(&whole, &writing->arena);
    kiln_text_release(&whole);
    return path;
}

/* The value that the override itself has, of a key that the frozen config has under another name.
 */
static const char *own_value(Writing *writing, const char *text)
{
    KilnOverride override = { .value = NULL };
    KilnText value = { 0 };

    if (kiln_override_read(&writing->arena, text, 1, &override, NULL) < 0 || override.value == NULL)
        return "null";
    kiln_write_flow(&value, override.value, 0);
    return kiln_text_to_arena(&value, &writing->arena);
}

static void add_value(Writing *writing, const char *key, const char *override, bool deleted,
                      bool replaces, const char *comment)
{
    const char *path = path_to_list(writing, key);
    const KilnConfigNode *node = kiln_node_find(writing->report->best_config, path);
    Branch *branch = branch_at(writing, path);
    KilnText value = { 0 };

    if (branch == NULL)
        return;
    *branch = (Branch) { .key = branch->key, .comment = comment, .next = branch->next };
    if (deleted) {
        branch->value = "!delete";
        return;
    }
    if (node == NULL) {
        branch->value = own_value(writing, override);
        return;
    }
    if (replaces)
        kiln_text_append(&value, "!replace ");
    if (node->kind == KILN_NODE_SCALAR)
        kiln_write_scalar(&value, node);
    else
        kiln_write_flow(&value, node, 0);
    branch->value = kiln_text_to_arena(&value, &writing->arena);
}

static void add_override(Writing *writing, const char *override)
{
    const bool deleted = override[0] == '~', added = override[0] == '+';
    const char *start, *value;
    size_t n = kiln_override_split(override + deleted, &start, &value);
    const char operator= n> 0 && strchr("+-:", start[n - 1]) != NULL ? start[--n] : '=';
    const char *key = kiln_arena_strndup(&writing->arena, start, n);

    if (key == NULL)
        return;
    if (is_group(writing, key, deleted))
        add_group(writing, key, added, deleted);
    else
        add_value(writing, key, override, deleted, operator== ':', reason_of(writing, key));
}

/* The processors were divided among the jobs; the order of sums depends on the threads. */
static void add_threads(Writing *writing)
{
    static const char key[] = "trainer.threads";
    const KilnConfigNode *threads = kiln_node_find(writing->report->best_config, key);

    if (threads != NULL && threads->kind == KILN_NODE_SCALAR &&
        kiln_job_value(writing->job, key) == NULL)
        add_value(writing, key, key, false, false,
                  kiln_arena_printf(&writing->arena, "as job #%zu ran: the bytes depend on it",
                                    writing->number));
}

/* ---- The file ------------------------------------------------------------------------------- */

static void put_branches(KilnText *text, const Branch *branch, int indent)
{
    for (; branch != NULL; branch = branch->next) {
        const size_t line = text->length;

        kiln_text_printf(text, "%*s", indent, "");
        kiln_write_string(text, branch->key);
        kiln_text_char(text, ':');
        if (branch->value != NULL) {
            kiln_text_printf(text, " %s", branch->value);
            pad(text, line);
            put_comment(text, branch->comment);
        } else {
            kiln_text_char(text, '\n');
            put_branches(text, branch->first, indent + INDENT);
        }
    }
}

static void put_head(KilnText *text, Writing *writing, const char *name)
{
    const KilnSweepReport *report = writing->report;
    KilnText command = { 0 };

    kiln_text_append(text, "# @package _global_\n");
    put_comment(text, kiln_arena_printf(&writing->arena,
                                        "The best of %zu jobs of the sweep %s: %s %.6g, job #%zu.",
                                        report->n_ranked, report->sweep.dir, report->sweep.metric,
                                        kiln_sweep_report_value(report, writing->number),
                                        writing->number));
    put_comment(text, "Written by `kiln sweep report`. In the folder experiment/ of your configs:");
    kiln_text_append(&command, "  ");
    kiln_sweep_report_put_train(report, &command);
    kiln_text_char(&command, ' ');
    kiln_sweep_report_put_experiment(report, name, &command);
    put_comment(text, command.data != NULL ? command.data : "");
    text->failed = text->failed || command.failed;
    kiln_text_release(&command);
}

static KilnStatus missing(const KilnSweepReport *report, const KilnJob *job, KilnError *err)
{
    return kiln_error_set(err, KILN_E_IO,
                          "%s/%s: the folder of job #%zu, the best one, lacks .kiln/job.yaml or "
                          ".kiln/kiln.yaml, from which best.yaml is made; restore the folder, or "
                          "write the experiment from its overrides: %s",
                          report->sweep.dir, job->dir != NULL ? job->dir : "", report->ranked[0],
                          job->line);
}

KilnStatus kiln_sweep_report_best_config(const KilnSweepReport *report, const char *name,
                                         char **ret, KilnError *err)
{
    const size_t number = report->ranked[0];
    Writing writing = { .report = report,
                        .job = &report->sweep.jobs.items[number],
                        .number = number };
    KilnStatus status = KILN_OK;
    KilnText text = { 0 };

    if (report->best_config == NULL || report->best_own == NULL)
        return missing(report, writing.job, err);
    writing.choices = kiln_node_find(report->best_own, "kiln.runtime.choices");
    for (const char *const *override = writing.job->overrides; *override != NULL; override++)
        add_override(&writing, *override);
    add_threads(&writing);
    put_head(&text, &writing, name);
    if (writing.defaults.length > 0)
        kiln_text_printf(&text, "defaults:\n%s", writing.defaults.data);
    if (writing.defaults.length > 0 && writing.root.first != NULL)
        kiln_text_char(&text, '\n');
    put_branches(&text, writing.root.first, 0);
    if (writing.job->parent > 0)
        status = kiln_sweep_report_put_schedule(report, number, &writing.arena, &text, err);
    text.failed = text.failed || writing.defaults.failed || writing.arena.failed;
    kiln_text_release(&writing.defaults);
    kiln_arena_release(&writing.arena);
    return kiln_text_finish(&text, status, ret, err);
}

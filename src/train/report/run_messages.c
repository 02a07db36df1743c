/* Messages about a run: its config, its paths, and the commands that continue it. */
#include "train/report/run_messages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "config/compose.h"
#include "train/loader/data_summary.h"
#include "train/analysis/hparams.h"
#include "train/trainer.h"

/* ---- Names and commands -------------------------------------------------------------------- */

const char *kiln_path_near(const char *path)
{
    char here[4096];
    size_t length;

    if (getcwd(here, sizeof(here)) == NULL)
        return path;
    length = strlen(here);
    return length > 1 && strncmp(path, here, length) == 0 && path[length] == '/' ? path + length + 1
                                                                                 : path;
}

bool kiln_run_link(const KilnTrainer *trainer, const char *link, char *ret, size_t size)
{
    char path[4096 + 64];

    snprintf(path, sizeof(path), "%s/checkpoints/%s", trainer->run_dir, link);
    ssize_t length = readlink(path, ret, size - 1);
    if (length >= 0)
        ret[length] = '\0';
    return length >= 0;
}

static void append_key(KilnText *text, const char *key, const char *value)
{
    KilnText word = { 0 };

    kiln_text_printf(&word, "%s=%s", key, value);
    kiln_text_shell_word(text, word.data != NULL ? word.data : "");
    kiln_text_release(&word);
}

void kiln_run_resume_command(const KilnTrainer *trainer, KilnText *text)
{
    kiln_text_append(text, "train ");
    append_key(text, "resume", kiln_path_near(trainer->run_dir));
}

static void append_checkpoint(const KilnTrainer *trainer, const char *checkpoint, KilnText *text)
{
    KilnText path = { 0 };

    kiln_text_printf(&path, "%s/checkpoints/%s", kiln_path_near(trainer->run_dir), checkpoint);
    append_key(text, "ckpt_path", path.data != NULL ? path.data : "");
    kiln_text_release(&path);
}

void kiln_run_eval_command(const KilnTrainer *trainer, const char *checkpoint, KilnText *text)
{
    kiln_text_append(text, "kiln eval ");
    append_checkpoint(trainer, checkpoint, text);
}

void kiln_run_predict_command(const KilnTrainer *trainer, const char *checkpoint, KilnText *text)
{
    KilnSplit split = KILN_TEST;

    while (split > KILN_TRAIN && kiln_trainer_split_batches(trainer, split) == 0)
        split = split == KILN_TEST ? KILN_VAL : KILN_TRAIN;
    kiln_text_append(text, "kiln predict ");
    append_checkpoint(trainer, checkpoint, text);
    kiln_text_printf(text, " split=%s", kiln_split_name(split));
}

void kiln_run_generate_command(const KilnTrainer *trainer, const char *checkpoint, KilnText *text)
{
    kiln_text_append(text, "kiln generate ");
    append_checkpoint(trainer, checkpoint, text);
    kiln_text_append(text, " prompt=TEXT");
}

/* ---- The config ---------------------------------------------------------------------------- */

enum {
    MIN_WIDTH = 60, /* of a console that shows origins */
    MAX_KEY = 40,   /* longer keys and values do not widen their columns */
    MAX_VALUE = 24
};

/* The line "task vision  model mlp": selected options by group; for a resumed run, whose config has
 * no groups, its components. */
typedef struct Line {
    KilnText plain, styled;
} Line;

static void add_selection(Line *line, const char *group, const char *option)
{
    const char *gap = line->plain.length > 0 ? "  " : "";

    kiln_text_printf(&line->plain, "%s%s %s", gap, group, option);
    kiln_text_printf(&line->styled, "%s\033[2m%s\033[0m %s", gap, group, option);
}

static void print_selections(KilnTrainer *trainer, const KilnDifference *list, size_t n_list)
{
    const KilnSelection *selection;
    Line line = { 0 };
    size_t n = 0;

    for (; (selection = kiln_config_selection(trainer->config, n)) != NULL; n++)
        if (selection->option != NULL && strchr(selection->key, '/') == NULL &&
            strcmp(selection->key, "callbacks") != 0 && strcmp(selection->key, "trainer") != 0)
            add_selection(&line, selection->key, selection->option);
    for (size_t i = 0; i < n_list && n == 0; i++) {
        const char *slash = strchr(list[i].value, '/');

        if (list[i].shipped && slash != NULL && strchr(list[i].key, '.') == NULL)
            add_selection(&line, list[i].key, slash + 1);
    }
    if (line.plain.data != NULL && line.styled.data != NULL)
        kiln_output_styled(&trainer->output, line.plain.data, line.styled.data);
    kiln_text_release(&line.plain);
    kiln_text_release(&line.styled);
}

static int grow_width(int width, const char *text, int max)
{
    int length = (int)strlen(text);

    return length > width && length <= max ? length : width;
}

/* Print a value, with its origin if the console is wide enough. */
static void print_difference(KilnTrainer *trainer, const KilnDifference *difference, int key,
                             int value)
{
    const bool origins = trainer->output.console.width >= MIN_WIDTH;
    KilnText plain = { 0 }, styled = { 0 };

    kiln_text_printf(&plain, "%-*s  %-*s", origins ? key : 0, difference->key, origins ? value : 0,
                     difference->value);
    kiln_text_append(&styled, plain.data != NULL ? plain.data : "");
    if (origins) {
        kiln_text_printf(&plain, "  %s", difference->from);
        kiln_text_printf(&styled, "  \033[2m%s\033[0m", difference->from);
    }
    if (plain.data != NULL && styled.data != NULL)
        kiln_output_styled(&trainer->output, plain.data, styled.data);
    kiln_text_release(&plain);
    kiln_text_release(&styled);
}

/* Whether a difference is printed. Not those from the run's own file, where all values of a resumed
 * run without origins.yaml come from. */
static bool is_shown(const KilnTrainer *trainer, const KilnDifference *difference)
{
    const char *run = trainer->run_dir, *from = difference->from;
    const bool of_run = kiln_starts_with(from, run) &&
                        kiln_starts_with(from + strlen(run), "/.kiln/");

    return trainer->output.console.verbose || (!difference->shipped && !of_run);
}

static void print_data(void *ctx, const char *name, const char *text)
{
    KilnTrainer *trainer = ctx;

    if (strcmp(name, KILN_DATA_COLUMN_LINE) == 0)
        kiln_output_pair(&trainer->output, name, text);
    else
        kiln_output_words(&trainer->output, name, text);
}

void kiln_report_config(KilnTrainer *trainer)
{
    const KilnDifference *list = NULL;
    KilnArena arena = { 0 };
    size_t n = 0;
    int key = 0, value = 0;

    if (kiln_differences_collect(trainer->config, trainer->origins, &arena, &list, &n, NULL) < 0)
        n = 0;
    print_selections(trainer, list, n);
    for (size_t i = 0; i < n; i++)
        if (is_shown(trainer, &list[i])) {
            key = grow_width(key, list[i].key, MAX_KEY);
            value = grow_width(value, list[i].value, MAX_VALUE);
        }
    for (size_t i = 0; i < n; i++)
        if (is_shown(trainer, &list[i]))
            print_difference(trainer, &list[i], key, value);
    kiln_arena_release(&arena);
    kiln_data_summary_lines(trainer, print_data, trainer);
    if (trainer->inferred)
        kiln_output_words(&trainer->output, "inferred",
                          "options of the datamodule, kept in .kiln/config.yaml of the run");
    kiln_output_pair(&trainer->output, "run folder", kiln_path_near(trainer->run_dir));
    kiln_output_print(&trainer->output, "%s", "");
}

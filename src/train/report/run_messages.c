/* How a run is spoken of: what it was asked for, where its folder is, and the commands that go on
 * from it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "config/compose.h"
#include "train/loader/data_summary.h"
#include "train/analysis/hparams.h"
#include "train/run/run_folder.h"

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

/* ---- What was asked for -------------------------------------------------------------------- */

enum { WIDE = 60, KEY_MOST = 40, VALUE_MOST = 24 };

/* "task vision  model mlp": the groups of one option; of a run that goes on, whose config has no
 * groups, its components. */
typedef struct Choices {
    KilnText plain, styled;
} Choices;

static void add_choice(Choices *line, const char *group, const char *option)
{
    const char *gap = line->plain.length > 0 ? "  " : "";

    kiln_text_printf(&line->plain, "%s%s %s", gap, group, option);
    kiln_text_printf(&line->styled, "%s\033[2m%s\033[0m %s", gap, group, option);
}

static void print_choices(KilnTrainer *trainer, const KilnDifference *list, size_t n_list)
{
    const KilnSelection *selection;
    Choices line = { 0 };
    size_t n = 0;

    for (; (selection = kiln_config_selection(trainer->config, n)) != NULL; n++)
        if (selection->option != NULL && strchr(selection->key, '/') == NULL &&
            strcmp(selection->key, "callbacks") != 0 && strcmp(selection->key, "trainer") != 0)
            add_choice(&line, selection->key, selection->option);
    for (size_t i = 0; i < n_list && n == 0; i++) {
        const char *slash = strchr(list[i].value, '/');

        if (list[i].shipped && slash != NULL && strchr(list[i].key, '.') == NULL)
            add_choice(&line, list[i].key, slash + 1);
    }
    if (line.plain.data != NULL && line.styled.data != NULL)
        kiln_output_styled(&trainer->output, line.plain.data, line.styled.data);
    kiln_text_release(&line.plain);
    kiln_text_release(&line.styled);
}

static int widest(int width, const char *text, int most)
{
    int length = (int)strlen(text);

    return length > width && length <= most ? length : width;
}

/* Where there is room, with its origin; `train --explain KEY` tells more anyway. */
static void print_difference(KilnTrainer *trainer, const KilnDifference *difference, int key,
                             int value)
{
    const bool wide = trainer->output.console.width >= WIDE;
    KilnText plain = { 0 }, styled = { 0 };

    kiln_text_printf(&plain, "%-*s  %-*s", wide ? key : 0, difference->key, wide ? value : 0,
                     difference->value);
    kiln_text_append(&styled, plain.data != NULL ? plain.data : "");
    if (wide) {
        kiln_text_printf(&plain, "  %s", difference->from);
        kiln_text_printf(&styled, "  \033[2m%s\033[0m", difference->from);
    }
    if (plain.data != NULL && styled.data != NULL)
        kiln_output_styled(&trainer->output, plain.data, styled.data);
    kiln_text_release(&plain);
    kiln_text_release(&styled);
}

/* Of a run that goes on and left no origins.yaml, all values are from its own file; that says
 * nothing. */
static bool is_told(const KilnTrainer *trainer, const KilnDifference *difference)
{
    const char *run = trainer->run_dir, *from = difference->from;
    const bool of_run = kiln_starts_with(from, run) &&
                        kiln_starts_with(from + strlen(run), "/.kiln/");

    return trainer->output.console.verbose || (!difference->shipped && !of_run);
}

static void print_data(void *ctx, const char *name, const char *text)
{
    KilnTrainer *trainer = ctx;

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
    print_choices(trainer, list, n);
    for (size_t i = 0; i < n; i++)
        if (is_told(trainer, &list[i])) {
            key = widest(key, list[i].key, KEY_MOST);
            value = widest(value, list[i].value, VALUE_MOST);
        }
    for (size_t i = 0; i < n; i++)
        if (is_told(trainer, &list[i]))
            print_difference(trainer, &list[i], key, value);
    kiln_arena_release(&arena);
    kiln_data_summary_lines(trainer, print_data, trainer);
    kiln_output_pair(&trainer->output, "run folder", kiln_path_near(trainer->run_dir));
    kiln_output_print(&trainer->output, "%s", "");
}

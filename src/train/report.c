/* How a run is spoken of: where its folder is, and the commands that go on from it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "train/run_folder.h"

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

/* A word as a shell reads it back. */
static void append_word(KilnText *text, const char *word)
{
    static const char *const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                     "0123456789_-+=./,:@%^";

    if (word[0] != '\0' && word[strspn(word, plain)] == '\0') {
        kiln_text_append(text, word);
        return;
    }
    kiln_text_char(text, '\'');
    for (; *word != '\0'; word++)
        kiln_text_append_n(text, *word == '\'' ? "'\\''" : word, *word == '\'' ? 4 : 1);
    kiln_text_char(text, '\'');
}

static void append_key(KilnText *text, const char *key, const char *value)
{
    KilnText word = { 0 };

    kiln_text_printf(&word, "%s=%s", key, value);
    append_word(text, word.data != NULL ? word.data : "");
    kiln_text_release(&word);
}

void kiln_run_resume_command(const KilnTrainer *trainer, KilnText *text)
{
    const char *const *words = trainer->env->overrides;

    kiln_text_append(text, "train ");
    for (size_t i = 0; words != NULL && words[i] != NULL; i++)
        if (!kiln_starts_with(words[i], "ckpt_path=")) {
            append_word(text, words[i]);
            kiln_text_char(text, ' ');
        }
    append_key(text, "ckpt_path", kiln_path_near(trainer->run_dir));
}

void kiln_run_eval_command(const KilnTrainer *trainer, const char *checkpoint, KilnText *text)
{
    KilnText path = { 0 };

    kiln_text_printf(&path, "%s/checkpoints/%s", kiln_path_near(trainer->run_dir), checkpoint);
    kiln_text_append(text, "kiln eval ");
    append_key(text, "ckpt_path", path.data != NULL ? path.data : "");
    kiln_text_release(&path);
}

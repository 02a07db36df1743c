/* Growable text and the nearest-name search. */
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool reserve(KilnText *text, size_t more)
{
    if (text->failed || more > SIZE_MAX / 2 - text->length) {
        text->failed = true;
        return false;
    }
    size_t need = text->length + more + 1;
    if (need <= text->capacity)
        return true;
    size_t capacity = text->capacity < 64 ? 64 : text->capacity;
    while (capacity < need)
        capacity *= 2;
    char *data = realloc(text->data, capacity);
    if (data == NULL) {
        text->failed = true;
        return false;
    }
    text->data = data;
    text->capacity = capacity;
    return true;
}

void kiln_text_append_n(KilnText *text, const char *more, size_t n)
{
    if (!reserve(text, n))
        return;
    memcpy(text->data + text->length, more, n);
    text->length += n;
    text->data[text->length] = '\0';
}

void kiln_text_append(KilnText *text, const char *more)
{
    kiln_text_append_n(text, more, strlen(more));
}

void kiln_text_char(KilnText *text, char c)
{
    kiln_text_append_n(text, &c, 1);
}

void kiln_text_vprintf(KilnText *text, const char *format, va_list args)
{
    va_list again;

    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    if (length >= 0 && reserve(text, (size_t)length)) {
        vsnprintf(text->data + text->length, (size_t)length + 1, format, again);
        text->length += (size_t)length;
    }
    va_end(again);
}

void kiln_text_printf(KilnText *text, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    kiln_text_vprintf(text, format, args);
    va_end(args);
}

void kiln_text_shell_word(KilnText *text, const char *word)
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

void kiln_text_clear(KilnText *text)
{
    text->length = 0;
    text->failed = false;
    if (text->data != NULL)
        text->data[0] = '\0';
}

size_t kiln_key_push(KilnText *text, const char *key, size_t i)
{
    size_t before = text->length;

    if (key != NULL)
        kiln_text_printf(text, "%s%s", before > 0 ? "." : "", key);
    else
        kiln_text_printf(text, "[%zu]", i);
    return before;
}

void kiln_key_pop(KilnText *text, size_t length)
{
    text->length = length;
    if (text->data != NULL)
        text->data[length] = '\0';
}

char *kiln_text_take(KilnText *text)
{
    char *data = NULL;

    if (reserve(text, 0)) {
        data = text->data;
        data[text->length] = '\0';
        text->data = NULL;
    }
    kiln_text_release(text);
    return data;
}

KilnStatus kiln_text_finish(KilnText *text, KilnStatus status, char **ret, KilnError *err)
{
    char *taken = status >= 0 ? kiln_text_take(text) : NULL;

    kiln_text_release(text);
    if (status >= 0 && taken == NULL)
        return kiln_error_nomem(err, 1);
    if (status >= 0)
        *ret = taken;
    return status;
}

void kiln_text_release(KilnText *text)
{
    free(text->data);
    *text = (KilnText) { 0 };
}

char *kiln_text_to_arena(KilnText *text, KilnArena *arena)
{
    const char *data = text->data != NULL ? text->data : "";
    char *copy = text->failed ? NULL : kiln_arena_strndup(arena, data, text->length);

    arena->failed |= copy == NULL;
    kiln_text_release(text);
    return copy;
}

KilnStatus kiln_text_to_error(KilnText *text, KilnStatus status, KilnError *err)
{
    kiln_error_set(err, status, "%s", text->data != NULL ? text->data : "out of memory");
    kiln_text_release(text);
    return status;
}

bool kiln_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool kiln_is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool kiln_is_word(char c)
{
    return kiln_is_letter(c) || kiln_is_digit(c) || c == '-';
}

bool kiln_starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

bool kiln_ends_with(const char *text, const char *suffix)
{
    size_t n = strlen(text), m = strlen(suffix);

    return n >= m && memcmp(text + n - m, suffix, m) == 0;
}

char *kiln_strdup(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = malloc(size);

    return copy != NULL ? memcpy(copy, text, size) : NULL;
}

enum { LONGEST_NAME = 63 };

static int least(int a, int b)
{
    return a < b ? a : b;
}

static bool differ(char a, char b)
{
    bool letters = (a | 32) >= 'a' && (a | 32) <= 'z'; /* small and capital ones are the same */

    return letters ? (a | 32) != (b | 32) : a != b;
}

/* Edit distance with swaps of neighbours (optimal string alignment). */
static int edit_distance(const char *a, const char *b)
{
    int n = (int)strlen(a), m = (int)strlen(b);
    int rows[3][LONGEST_NAME + 1];

    if (n > LONGEST_NAME || m > LONGEST_NAME)
        return LONGEST_NAME;
    for (int j = 0; j <= m; j++)
        rows[0][j] = j;
    for (int i = 1; i <= n; i++) {
        int *now = rows[i % 3], *up = rows[(i + 2) % 3], *up2 = rows[(i + 1) % 3];

        now[0] = i;
        for (int j = 1; j <= m; j++) {
            now[j] = least(least(up[j], now[j - 1]) + 1, up[j - 1] + differ(a[i - 1], b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = least(now[j], up2[j - 2] + 1);
        }
    }
    return rows[n % 3][m];
}

/* What other programs for training call it, and what it is called here. */
static const struct {
    const char *other, *usual;
} synonyms[] = {
    { "arch", "model" },
    { "backbone", "model" },
    { "bs", "batch_size" },
    { "checkpoint", "ckpt_path" },
    { "clip_grad_norm", "gradient_clip_val" },
    { "criterion", "loss" },
    { "data_dir", "root" },
    { "data_path", "root" },
    { "data_root", "root" },
    { "dataset", "datamodule" },
    { "epochs", "max_epochs" },
    { "gpus", "accelerator" },
    { "grad_clip", "gradient_clip_val" },
    { "gradient_accumulation_steps", "accumulate_grad_batches" },
    { "hidden_dim", "hidden" },
    { "hidden_size", "hidden" },
    { "learning_rate", "lr" },
    { "lr_scheduler", "scheduler" },
    { "max_grad_norm", "gradient_clip_val" },
    { "n_epochs", "max_epochs" },
    { "network", "model" },
    { "num_epochs", "max_epochs" },
    { "per_device_train_batch_size", "batch_size" },
    { "random_seed", "seed" },
    { "resume_from_checkpoint", "ckpt_path" },
    { "train_batch_size", "batch_size" },
    { "wd", "weight_decay" },
    { "workers", "num_workers" },
};

const char *kiln_usual_name(const char *name)
{
    for (size_t i = 0; i < KILN_COUNT(synonyms); i++)
        if (strcmp(synonyms[i].other, name) == 0)
            return synonyms[i].usual;
    return NULL;
}

const char *kiln_nearest(const char *text, const char *const *names, size_t n)
{
    const char *best = NULL, *usual = kiln_usual_name(text);
    int length = (int)strlen(text);
    int limit = length <= 4 ? 1 : length <= 8 ? 2 : length / 3;

    for (size_t i = 0; i < n; i++) {
        int distance = edit_distance(text, names[i]);

        if (length >= 3 && distance > limit && kiln_starts_with(names[i], text))
            distance = limit; /* an unfinished name */
        if (distance < limit || (distance == limit && best == NULL)) {
            limit = distance;
            best = names[i];
        }
    }
    for (size_t i = 0; i < n && best == NULL && usual != NULL; i++)
        if (strcmp(names[i], usual) == 0)
            best = names[i];
    return best;
}

/* The config that `kiln new` writes, and what it says about it. */
#include "cli/new/new_config.h"

#include <stdarg.h>
#include <string.h>

#include "base/min.h"
#include "base/text.h"
#include "config/yaml/scalar.h"

void kiln_new_release(KilnNewConfig *config)
{
    for (int part = 0; part < KILN_NEW_PARTS; part++)
        kiln_text_release(&config->parts[part]);
    kiln_arena_release(&config->arena);
}

/* ---- Values ---------------------------------------------------------------------------------- */

/* Whether YAML reads a plain text as that text, also within brackets. */
static bool is_plain(const char *value)
{
    KilnArena arena = { 0 };
    const char *text = NULL;
    bool plain = kiln_is_word(value[0]) || value[0] == '/' || kiln_starts_with(value, "./") ||
                 kiln_starts_with(value, "../");

    for (const char *at = value; *at != '\0' && plain; at++)
        plain = kiln_is_word(*at) || strchr("-./+=@", *at) != NULL;
    plain = plain && value[0] != '-' && value[0] != '=' &&
            kiln_scalar_yaml(&arena, value, &text) == KILN_SCALAR_STR;
    kiln_arena_release(&arena);
    return plain;
}

void kiln_new_put_text(KilnText *text, const char *value)
{
    KilnText escaped = { 0 };

    if (is_plain(value)) {
        kiln_text_append(text, value);
        return;
    }
    for (const char *at = value; *at != '\0'; at++) {
        if (at[0] == '$' && at[1] == '{')
            kiln_text_char(&escaped, '\\');
        kiln_text_char(&escaped, *at);
    }
    kiln_text_json_string(text, escaped.data != NULL ? escaped.data : "");
    text->failed = text->failed || escaped.failed;
    kiln_text_release(&escaped);
}

void kiln_new_set(KilnNewConfig *config, KilnNewPart part, const char *key, const char *format, ...)
{
    KilnText *text = &config->parts[part];
    va_list args;

    kiln_text_printf(text, "%s%s: ", part == KILN_NEW_ROOT ? "" : "  ", key);
    va_start(args, format);
    kiln_text_vprintf(text, format, args);
    va_end(args);
    kiln_text_char(text, '\n');
}

void kiln_new_set_text(KilnNewConfig *config, KilnNewPart part, const char *key, const char *value)
{
    KilnText text = { 0 };

    kiln_new_put_text(&text, value);
    kiln_new_set(config, part, key, "%s", text.data != NULL ? text.data : "");
    config->parts[part].failed = config->parts[part].failed || text.failed;
    kiln_text_release(&text);
}

int64_t kiln_new_epochs(int64_t samples, int64_t batch, int64_t steps, int64_t least, int64_t most)
{
    const int64_t in_epoch = samples / batch + 1, epochs = steps / in_epoch;

    return epochs < least ? least : kiln_min_i64(epochs, most);
}

void kiln_new_set_length(KilnNewConfig *config, int64_t samples, int64_t batch, int64_t steps,
                         int64_t most_epochs)
{
    kiln_new_set(config, KILN_NEW_ROOT, "batch_size", "%lld", (long long)batch);
    kiln_new_set(config, KILN_NEW_TRAINER, "max_epochs", "%lld",
                 (long long)kiln_new_epochs(samples, batch, steps, 3, most_epochs));
}

/* ---- What is said ---------------------------------------------------------------------------- */

static const char *formatted(KilnNewConfig *config, const char *format, va_list args)
{
    KilnText text = { 0 };

    kiln_text_vprintf(&text, format, args);
    return kiln_text_to_arena(&text, &config->arena);
}

void kiln_new_say(KilnNewConfig *config, const char *name, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    const char *text = formatted(config, format, args);
    va_end(args);
    if (text != NULL && config->n_said < KILN_COUNT(config->said))
        config->said[config->n_said++] = (KilnNewLine) { name, text };
}

void kiln_new_say_odd(KilnNewConfig *config, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    const char *text = formatted(config, format, args);
    va_end(args);
    if (text != NULL && config->n_odd < KILN_COUNT(config->odd))
        config->odd[config->n_odd++] = (KilnNewLine) { "", text };
}

void kiln_new_say_classes(KilnNewConfig *config, const char *what, const int64_t *counts,
                          const char *const *names, size_t n)
{
    enum { FEW = 10, UNEQUAL = 10 };
    size_t least = 0, most = 0, few = 0;

    for (size_t i = 0; i < n; i++) {
        least = counts[i] < counts[least] ? i : least;
        most = counts[i] > counts[most] ? i : most;
        few += counts[i] < FEW;
    }
    if (n > 0 && few > 0)
        kiln_new_say_odd(config, "%zu of %zu classes have fewer than %d %s (\"%s\": %lld)", few, n,
                         FEW, what, names[least], (long long)counts[least]);
    if (n > 0 && counts[least] > 0 && counts[most] / counts[least] >= UNEQUAL)
        kiln_new_say_odd(config,
                         "\"%s\" has %lld %s and \"%s\" %lld; where small classes matter: "
                         "task.loss.balanced=true",
                         names[most], (long long)counts[most], what, names[least],
                         (long long)counts[least]);
}

/* ---- The text -------------------------------------------------------------------------------- */

static void put_group(KilnText *text, bool in_group, const char *group, const char *option)
{
    if (option != NULL)
        kiln_text_printf(text, "  - %s%s: %s\n", in_group ? "override /" : "", group, option);
}

/* A primary config selects all groups; an option of a group, what differs from the default. */
static void put_defaults(KilnText *text, const KilnNewConfig *config, bool in_group)
{
    kiln_text_append(text, "defaults:\n");
    put_group(text, in_group, "task", config->task);
    put_group(text, in_group, "datamodule", config->datamodule);
    put_group(text, in_group, "model",
              config->model != NULL || in_group ? config->model : "linear");
    put_group(text, in_group, "optimizer",
              config->optimizer != NULL || in_group ? config->optimizer : "sgd");
    put_group(text, in_group, "scheduler", "cosine");
    put_group(text, in_group, "callbacks",
              config->callbacks != NULL || in_group ? config->callbacks : "default");
    if (in_group)
        return;
    put_group(text, false, "logger", "csv");
    put_group(text, false, "trainer", "default");
    kiln_text_append(text, "  - _self_\n  - experiment: null\n");
}

KilnStatus kiln_new_text(const KilnNewConfig *config, bool in_group, const char *comment,
                         char **ret, KilnError *err)
{
    static const char *const names[KILN_NEW_PARTS] = { "",          "datamodule", "model",
                                                       "optimizer", "task",       "trainer" };
    KilnText text = { 0 };

    if (in_group)
        kiln_text_append(&text, "# @package _global_\n");
    kiln_text_append(&text, comment);
    put_defaults(&text, config, in_group);
    kiln_text_char(&text, '\n');
    kiln_text_append(&text, config->parts[KILN_NEW_ROOT].data);
    if (!in_group)
        kiln_text_append(&text, "seed: 1\nckpt_path: null\ntest: true\n");
    for (int part = KILN_NEW_DATA; part < KILN_NEW_PARTS; part++) {
        text.failed = text.failed || config->parts[part].failed;
        if (config->parts[part].length > 0)
            kiln_text_printf(&text, "%s:\n%s", names[part], config->parts[part].data);
    }
    text.failed = text.failed || config->parts[KILN_NEW_ROOT].failed;
    return kiln_text_finish(&text, KILN_OK, ret, err);
}

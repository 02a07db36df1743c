/* Writes overrides for configs of a checked component. */
#include "cli/contract/case_words.h"

#include <string.h>

#include "base/text.h"
#include "cli/help/example.h"
#include "registry/registry.h"

enum { WORDS = 128 };

typedef struct Words {
    KilnArena *arena;
    const char *list[WORDS];
    size_t n;
} Words;

static void add(Words *words, const char *word)
{
    if (word != NULL && words->n + 1 < WORDS)
        words->list[words->n++] = word;
    else if (word == NULL)
        words->arena->failed = true;
}

static const char *const *finish(const Words *words)
{
    const size_t bytes = (words->n + 1) * sizeof(*words->list);
    const char **list = kiln_arena_alloc(words->arena, bytes);

    if (list == NULL || words->arena->failed)
        return NULL;
    memcpy(list, words->list, bytes);
    return list;
}

/* The rest of a word "KEY.OPTION=VALUE": "OPTION=VALUE"; NULL: it is another word. */
static const char *option_of(const char *word, const char *key)
{
    while (*word == '+')
        word++;
    const size_t length = strlen(key);
    return strncmp(word, key, length) == 0 && word[length] == '.' ? word + length + 1 : NULL;
}

/* Where the component is in configs: "model"; its kind's name means the same. */
static const char *own_option(const KilnComponent *component, const char *word)
{
    const char *option = option_of(word, kiln_kind_name(component->kind));

    return option == NULL && component->kind == KILN_KIND_MODULE ? option_of(word, "task") : option;
}

static bool is_named(const char *option, const char *name, size_t length)
{
    return strncmp(option, name, length) == 0 && strchr("=.[", option[length]) != NULL;
}

static bool is_given(const Words *words, const char *name, size_t length)
{
    for (size_t i = 0; i < words->n; i++)
        if (is_named(words->list[i], name, length))
            return true;
    return false;
}

/* Each part of "a=b c=d", in the arena; NULL after the last. */
static const char *next_part(KilnArena *arena, const char **text)
{
    const char *part = *text + strspn(*text, " ");
    const size_t length = strcspn(part, " ");

    *text = part + length;
    return length > 0 ? kiln_arena_strndup(arena, part, length) : NULL;
}

/* The component's options, "OPTION=VALUE": the user's, and examples of required numbers and choices
 * that the user has not given. */
static void add_options(Words *words, const KilnCase *self)
{
    const char *examples = kiln_example_required(words->arena, self->component->fields, "x");
    const char *part;

    for (const char *const *word = self->words; *word != NULL; word++)
        if (own_option(self->component, *word) != NULL)
            add(words, own_option(self->component, *word));
    while (examples != NULL && (part = next_part(words->arena, &examples)) != NULL)
        if (strstr(part, "DIR") == NULL && strstr(part, "VALUE") == NULL &&
            !is_given(words, part + 2, strcspn(part + 2, "=")))
            add(words, part + 2); /* without "x." */
}

bool kiln_case_gives(KilnCase *self, const char *option)
{
    Words options = { .arena = &self->arena };

    add_options(&options, self);
    return is_given(&options, option, strlen(option));
}

static const char *target_of(const KilnComponent *component, KilnArena *arena)
{
    return kiln_arena_printf(arena, "%s/%s", kiln_kind_name(component->kind), component->name);
}

const char *const *kiln_case_instance_words(KilnCase *self)
{
    Words words = { .arena = &self->arena }, options = { .arena = &self->arena };

    add(&words, kiln_arena_printf(&self->arena, "+checked._target_=%s",
                                  target_of(self->component, &self->arena)));
    add_options(&options, self);
    for (size_t i = 0; i < options.n; i++)
        add(&words, kiln_arena_printf(&self->arena, "++checked.%s", options.list[i]));
    return finish(&words);
}

/* ---- Runs ------------------------------------------------------------------------------------ */

/* Add the parts of "a=b +c=d" that are whole; "datamodule.root=DIR" is a placeholder. With ++ it
 * does not matter whether a config that the other words choose has the key. */
static void add_parts(Words *words, const char *text)
{
    const char *part;

    while ((part = next_part(words->arena, &text)) != NULL)
        if (strstr(part, "=DIR") == NULL && strstr(part, "=VALUE") == NULL)
            add(words, *part == '+' ? kiln_arena_printf(words->arena, "+%s", part) : part);
}

/* "datamodule.batch_transforms=[{_target_: batch_transform/mixup, alpha: 0.2}]" */
static void add_listed(Words *words, const KilnCase *self, const char *key)
{
    Words options = { .arena = words->arena };
    KilnText text = { 0 };

    kiln_text_printf(&text, "%s=[{_target_: %s", key, target_of(self->component, words->arena));
    add_options(&options, self);
    for (size_t i = 0; i < options.n; i++)
        kiln_text_printf(&text, ", %.*s: %s", (int)strcspn(options.list[i], "="), options.list[i],
                         strchr(options.list[i], '=') + 1);
    kiln_text_append(&text, "}]");
    add(words, kiln_text_to_arena(&text, words->arena));
}

/* The slot of a component in the config that comes with kiln. */
static KilnComponentSlot find_slot(KilnCase *self)
{
    const KilnComposeRequest request = { .config_path = self->folder,
                                         .registry = self->registry,
                                         .sections = kiln_run_sections() };
    KilnConfig *config = NULL;
    KilnErrors *errors = NULL;

    if (kiln_errors_new(&errors) < 0 || kiln_compose(&request, &config, errors) < 0)
        config = NULL;
    const KilnComponentSlot slot = kiln_component_slot_find(&self->arena, config, &request,
                                                            self->component);
    kiln_config_free(config);
    kiln_errors_free(errors);
    return slot;
}

/* The only component of a kind in the plugin; NULL: it has none, or several. */
static const KilnComponent *only(const KilnPlugin *plugin, KilnKind kind)
{
    const KilnComponent *found = NULL;

    for (size_t i = 0; plugin->components[i] != NULL; i++) {
        if (plugin->components[i]->kind != kind)
            continue;
        if (found != NULL)
            return NULL;
        found = plugin->components[i];
    }
    return found;
}

/* Data, a task and a network that come in one plugin are trained together. */
static void add_neighbours(Words *words, const KilnCase *self)
{
    static const KilnKind kinds[] = { KILN_KIND_DATAMODULE, KILN_KIND_MODULE, KILN_KIND_MODEL };
    const KilnPlugin *plugin = kiln_registry_plugin_of(self->registry, self->component);
    bool belongs = false;

    for (size_t i = 0; i < KILN_COUNT(kinds); i++)
        belongs = belongs || self->component->kind == kinds[i];
    for (size_t i = 0; i < KILN_COUNT(kinds) && belongs && plugin != NULL; i++) {
        const KilnComponent *other = only(plugin, kinds[i]);

        if (other != NULL && other->kind != self->component->kind)
            add(words,
                kiln_arena_printf(words->arena, "%s=%s",
                                  kinds[i] == KILN_KIND_MODULE ? "task" : kiln_kind_name(kinds[i]),
                                  other->name));
    }
}

static void add_tiny(Words *words)
{
    static const char *const tiny[] = {
        "batch_size=8",
        "trainer.max_epochs=2",
        "trainer.limit_train_batches=3",
        "trainer.limit_val_batches=2",
        "trainer.limit_test_batches=2",
        "trainer.log_every_n_steps=1",
        "trainer.threads=1",
        "trainer.enable_progress_bar=false",
        "trainer.enable_model_summary=false",
    };

    for (size_t i = 0; i < KILN_COUNT(tiny); i++)
        add(words, tiny[i]);
}

/* The user's other words, and the component's options at `key`; NULL: they are in a list. */
static void add_users(Words *words, const KilnCase *self, const char *key)
{
    Words options = { .arena = words->arena };

    for (const char *const *word = self->words; *word != NULL; word++)
        if (own_option(self->component, *word) == NULL)
            add(words, *word);
    add_options(&options, self);
    for (size_t i = 0; i < options.n && key != NULL; i++)
        add(words, kiln_arena_printf(words->arena, "++%s.%s", key, options.list[i]));
}

const char *const *kiln_case_run_words(KilnCase *self, const char *const *more)
{
    Words words = { .arena = &self->arena };
    const char *key = NULL;

    switch (self->component->kind) {
    case KILN_KIND_TRANSFORM:
    case KILN_KIND_TOKENIZER:
    case KILN_KIND_SWEEPER:
    case KILN_KIND_PRUNER:
    case KILN_KIND_LAUNCHER:
        return finish(&words);
    case KILN_KIND_BATCH_TRANSFORM:
        add_listed(&words, self, "datamodule.batch_transforms");
        break;
    default: {
        const KilnComponentSlot slot = find_slot(self);

        add_parts(&words, slot.overrides != NULL ? slot.overrides : "");
        add_neighbours(&words, self);
        key = slot.key;
    }
    }
    add_tiny(&words);
    add_users(&words, self, key);
    for (; *more != NULL; more++)
        add(&words, *more);
    return finish(&words);
}

/* Expands defaults lists into the list of files to merge.
 *
 * Entries are expanded from the last to the first, because `override` entries
 * stand at the end and change what is listed before them, also in the lists of
 * configs included there. Entries whose option is an interpolation wait until
 * their siblings' options are known. */
#include "config/defaults.h"

#include <string.h>

#include "base/text.h"
#include "config/choices.h"
#include "config/interpolate.h"
#include "config/state.h"

enum { MOST_LEVELS = 64, MOST_ENTRIES = 5000 };

typedef struct Expander {
    KilnConfig *config;
    KilnArena *arena;
    KilnErrors *errors;
    KilnChoices choices;
    KilnDefaultsList *list;
    size_t n_entries;
    bool failed; /* memory is out */
} Expander;

static void tell(Expander *expander, const KilnOrigin *origin, KilnError *err)
{
    expander->failed |= err->status == KILN_E_NOMEM;
    if (origin != NULL)
        kiln_error_at(err, origin);
    kiln_errors_add(expander->errors, err);
}

/* What lies below the entry's package may be missing because of this error. */
static void give_up(Expander *expander, KilnDefault *entry)
{
    KilnDefaultsList *list = expander->list;
    const char *package = kiln_default_package(expander->arena, entry, true);

    entry->gone = true;
    if (list->n_broken == list->broken_capacity) {
        size_t capacity = list->broken_capacity * 2 + 8;
        const char **more = kiln_arena_alloc(expander->arena, capacity * sizeof(*more));

        if (more != NULL && list->n_broken > 0)
            memcpy(more, list->broken, list->n_broken * sizeof(*more));
        if (more == NULL)
            package = NULL;
        list->broken = more;
        list->broken_capacity = capacity;
    }
    if (package == NULL)
        expander->failed = true;
    else
        list->broken[list->n_broken++] = package;
}

static void say_options(Expander *expander, const char *group, const char *wrong, KilnText *text)
{
    const char **options = kiln_search_options(&expander->config->search, group, false);
    const char *near;
    size_t n = 0;

    while (options != NULL && options[n] != NULL)
        n++;
    if (n == 0)
        return;
    near = wrong != NULL ? kiln_nearest(wrong, options, n) : NULL;
    if (near != NULL)
        kiln_text_printf(text, "; did you mean '%s'?", near);
    kiln_text_printf(text, "%s options of %s: ", near != NULL ? "" : ";", group);
    for (size_t i = 0; i < n && i < 40; i++)
        kiln_text_printf(text, "%s%s", i > 0 ? ", " : "", options[i]);
    if (n > 40)
        kiln_text_append(text, ", ...");
}

static void not_found(Expander *expander, KilnDefault *entry, const char *path)
{
    KilnText text = { 0 };
    KilnError err = { 0 };

    if (entry->primary)
        kiln_text_printf(&text, "there is no config '%s'", path);
    else if (entry->kind == KILN_DEFAULT_GROUP)
        kiln_text_printf(&text, "%s: there is no option '%s'", entry->name, entry->option);
    else
        kiln_text_printf(&text, "there is no config '%s'", path);
    const char *slash = strrchr(path, '/');
    const char *group = slash != NULL ? kiln_arena_strndup(expander->arena, path,
                                                           (size_t)(slash - path))
                                      : "";
    if (group != NULL && *group != '\0')
        say_options(expander, group, slash + 1, &text);
    kiln_text_printf(&text, " (searched %s)", kiln_search_text(&expander->config->search));
    kiln_error_set(&err, KILN_E_KEY, "%s", text.data != NULL ? text.data : "out of memory");
    kiln_text_release(&text);
    tell(expander, entry->origin.source != NULL ? &entry->origin : NULL, &err);
    give_up(expander, entry);
}

static void choice_missing(Expander *expander, KilnDefault *entry, const char *key)
{
    const char *group = kiln_default_group(expander->arena, entry);
    KilnText text = { 0 };
    KilnError err = { 0 };

    kiln_text_printf(&text, "%s: an option must be chosen: %s=OPTION", key, key);
    if (group != NULL)
        say_options(expander, group, NULL, &text);
    kiln_error_set(&err, KILN_E_MISSING, "%s", text.data != NULL ? text.data : "out of memory");
    kiln_text_release(&text);
    tell(expander, &entry->origin, &err);
    give_up(expander, entry);
}

/* ---- Choices ------------------------------------------------------------------- */

/* Remember what a group chose, for interpolations, messages and the run folder. */
static void remember(Expander *expander, KilnDefault *entry, const char *key, const char *option)
{
    KilnDefaultsList *list = expander->list;
    KilnError err = { 0 };

    for (size_t i = 0; i < list->n_chosen; i++) {
        const KilnChosen *other = &list->chosen[i];

        if (strcmp(other->key, key) != 0)
            continue;
        if ((other->option == NULL) == (option == NULL) &&
            (option == NULL || strcmp(other->option, option) == 0))
            return;
        kiln_error_set(&err, KILN_E_KEY,
                       "group '%s' is chosen twice, as '%s' and as '%s'; to change the choice "
                       "write 'override %s: %s'",
                       key, option != NULL ? option : "null",
                       other->option != NULL ? other->option : "null", key,
                       other->option != NULL ? other->option : "null");
        tell(expander, &entry->origin, &err);
        return;
    }
    if (list->n_chosen == list->chosen_capacity) {
        size_t capacity = list->chosen_capacity * 2 + 16;
        KilnChosen *more = kiln_arena_alloc(expander->arena, capacity * sizeof(*more));

        if (more == NULL) {
            expander->failed = true;
            return;
        }
        if (list->n_chosen > 0)
            memcpy(more, list->chosen, list->n_chosen * sizeof(*more));
        list->chosen = more;
        list->chosen_capacity = capacity;
    }
    list->chosen[list->n_chosen++] = (KilnChosen){ .key = key, .option = option };
}

/* Another option from the command line or from an `override` entry. */
static void apply_choice(Expander *expander, KilnDefault *entry)
{
    const char *key = kiln_default_key(expander->arena, entry);
    KilnGroupChoice *choice =
        key != NULL ? kiln_choices_find(&expander->choices, key, false) : NULL;

    expander->failed |= key == NULL;
    if (choice == NULL)
        return;
    entry->option = choice->option;
    entry->options = choice->options;
    entry->origin = choice->origin;
    choice->used = true;
}

static bool is_deleted(Expander *expander, const KilnDefault *entry, const char *key)
{
    KilnGroupChoice *choice = kiln_choices_find(&expander->choices, key, true);

    if (choice == NULL || (choice->option != NULL &&
                           (entry->option == NULL || strcmp(choice->option, entry->option) != 0)))
        return false;
    choice->used = true;
    return true;
}

/* ---- One config's list ----------------------------------------------------------- */

static bool is_interpolated(const KilnDefault *entry)
{
    return entry->kind == KILN_DEFAULT_GROUP && entry->options == NULL && entry->option != NULL &&
           strstr(entry->option, "${") != NULL;
}

/* The option of an entry, with choices made so far put in for ${group}. */
static bool resolve_option(Expander *expander, KilnDefault *entry)
{
    KilnMaker maker = { .arena = expander->arena, .origin = entry->origin };
    KilnConfigNode *map = kiln_node_new(&maker, KILN_NODE_MAP);
    KilnConfigNode *text = kiln_node_string(&maker, entry->option);
    const KilnConfigNode *value = NULL;
    KilnError err = { 0 };
    KilnResolving resolving = { .config = expander->config, .root = map, .err = &err };

    for (size_t i = 0; map != NULL && i < expander->list->n_chosen; i++) {
        const KilnChosen *chosen = &expander->list->chosen[i];

        if (chosen->option != NULL &&
            kiln_node_append(expander->arena, map, chosen->key, entry->origin,
                             kiln_node_string(&maker, chosen->option)) == NULL)
            map = NULL;
    }
    if (map == NULL || text == NULL) {
        expander->failed = true;
        return false;
    }
    text->parent = map;
    if (kiln_resolve_node(&resolving, text, &value) >= 0 && value->kind == KILN_NODE_SCALAR &&
        value->scalar != KILN_SCALAR_MISSING) {
        entry->option = value->scalar == KILN_SCALAR_NULL ? NULL : value->text;
        return true;
    }
    if (err.status == KILN_OK)
        kiln_error_set(&err, KILN_E_TYPE, "%s is not the name of an option", entry->option);
    kiln_error_prefix(&err, "defaults: %s: ", entry->name);
    tell(expander, NULL, &err);
    return false;
}

/* `override` entries come last, for they change what is before them. */
static void collect_overrides(Expander *expander, KilnDefault **entries, size_t n,
                              const KilnDefault *parent)
{
    const KilnDefault *last = NULL;
    KilnError err = { 0 };

    for (size_t i = 0; i < n; i++) {
        const KilnDefault *entry = entries[i];

        if (entry->kind == KILN_DEFAULT_SELF)
            continue;
        if (last != NULL && !entry->override && !entry->appended) {
            kiln_error_set(&err, KILN_E_SYNTAX,
                           "defaults: '%s' stands behind 'override %s'; overrides come last in "
                           "the list",
                           entry->name, last->name);
            tell(expander, &entry->origin, &err);
        }
        if (!entry->override)
            continue;
        last = entry;
        if (parent->interpolated) {
            kiln_error_set(&err, KILN_E_SYNTAX,
                           "defaults: 'override %s' can't stand in a config that is chosen by an "
                           "interpolation: it would come too late",
                           entry->name);
            tell(expander, &entry->origin, &err);
        } else if (kiln_choices_add(&expander->choices, entry, &err) < 0) {
            tell(expander, NULL, &err);
        }
    }
}

/* The entries of the config's list, with _self_ where it is implied, and with what
 * the command line appends. */
static KilnDefault **entries_of(Expander *expander, const KilnDefault *parent,
                                const KilnFile *file, size_t *ret_count)
{
    size_t n = 0, selves = 0, others = 0;
    size_t n_appended = parent->primary ? expander->choices.n_appended : 0;
    KilnDefault **list = NULL, **all;
    KilnError err = { 0 };

    if (file->defaults != NULL)
        list = kiln_defaults_read(expander->arena, file->defaults, expander->errors, &n);
    all = kiln_arena_alloc(expander->arena, (n + n_appended + 2) * sizeof(KilnDefault *));
    if (all == NULL || (file->defaults != NULL && list == NULL)) {
        expander->failed = true;
        return NULL;
    }
    for (size_t i = 0; i < n; i++) {
        all[i] = list[i];
        others += !list[i]->override;
        if (list[i]->kind == KILN_DEFAULT_SELF && ++selves == 2) {
            kiln_error_set(&err, KILN_E_KEY, "defaults: _self_ is there twice");
            tell(expander, &list[i]->origin, &err);
        }
    }
    if (selves == 0 && (others > 0 || (n == 0 && n_appended > 0))) {
        all[n] = kiln_arena_alloc(expander->arena, sizeof(KilnDefault));
        expander->failed |= all[n] == NULL;
        if (all[n] == NULL)
            return NULL;
        n++;
    }
    if (n_appended > 0)
        memcpy(all + n, expander->choices.appended, n_appended * sizeof(*all));
    *ret_count = n + n_appended;
    return all;
}

static void expand(Expander *expander, KilnDefault *entry, int depth);

static void add_child(KilnDefault *parent, KilnDefault *child)
{
    parent->children[parent->n_children++] = child;
}

/* A list of options: a config each, the last one first as everything here. */
static void expand_options(Expander *expander, KilnDefault *parent, KilnDefault *entry, int depth)
{
    size_t n = 0;
    KilnText text = { 0 };
    const char *key = kiln_default_key(expander->arena, entry), *written;

    while (entry->options[n] != NULL)
        n++;
    for (size_t i = 0; i < n; i++)
        kiln_text_printf(&text, "%s%s", i > 0 ? ", " : "[", entry->options[i]);
    kiln_text_append(&text, n > 0 ? "]" : "[]");
    written = kiln_arena_strdup(expander->arena, text.data != NULL ? text.data : "[]");
    kiln_text_release(&text);
    if (key == NULL || written == NULL)
        expander->failed = true;
    else
        remember(expander, entry, key, written);
    for (size_t i = n; i-- > 0;) {
        KilnDefault *child = kiln_arena_alloc(expander->arena, sizeof(*child));

        if (child == NULL) {
            expander->failed = true;
            return;
        }
        child->kind = KILN_DEFAULT_CONFIG;
        child->name = kiln_arena_printf(expander->arena, "%s/%s", entry->name, entry->options[i]);
        child->package = entry->package;
        child->optional = entry->optional;
        child->origin = entry->origin;
        child->interpolated = parent->interpolated;
        if (child->name == NULL || !kiln_default_place(expander->arena, child, entry->base_dir,
                                                       entry->parent_package, parent)) {
            expander->failed = true;
            return;
        }
        add_child(parent, child);
        expand(expander, child, depth + 1);
    }
}

/* Room for all children: entries of the list, and options in the place of some. */
static bool make_room(Expander *expander, KilnDefault *parent, KilnDefault **entries, size_t n)
{
    size_t room = n;

    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; entries[i]->options != NULL && entries[i]->options[j] != NULL; j++)
            room++;
    parent->children = kiln_arena_alloc(expander->arena, (room + 1) * sizeof(KilnDefault *));
    return parent->children != NULL;
}

static void expand_list(Expander *expander, KilnDefault *parent, KilnDefault **entries, size_t n,
                        int depth)
{
    const char *group = kiln_default_group(expander->arena, parent);
    const char *package = kiln_default_package(expander->arena, parent, true);

    for (size_t i = 0; i < n; i++) {
        entries[i]->interpolated = parent->interpolated;
        if (entries[i]->kind != KILN_DEFAULT_SELF &&
            !kiln_default_place(expander->arena, entries[i], group, package, parent))
            expander->failed = true;
    }
    if (expander->failed)
        return;
    collect_overrides(expander, entries, n, parent);
    for (size_t i = 0; i < n; i++)
        if (entries[i]->kind == KILN_DEFAULT_GROUP && !entries[i]->override)
            apply_choice(expander, entries[i]);
    if (!make_room(expander, parent, entries, n))
        expander->failed = true;
    for (size_t i = n; i-- > 0 && !expander->failed;) {
        KilnDefault *entry = entries[i];

        if (entry->override)
            continue;
        if (entry->options != NULL) {
            expand_options(expander, parent, entry, depth);
            continue;
        }
        add_child(parent, entry);
        if (entry->kind != KILN_DEFAULT_SELF && !is_interpolated(entry))
            expand(expander, entry, depth + 1);
    }
    for (size_t i = 0; i < parent->n_children && !expander->failed; i++) {
        KilnDefault *entry = parent->children[i];

        if (!is_interpolated(entry))
            continue;
        entry->interpolated = true;
        if (resolve_option(expander, entry))
            expand(expander, entry, depth + 1);
        else
            give_up(expander, entry);
    }
}

/* ---- One entry ------------------------------------------------------------------ */

/* A config that includes itself, or lists that never end. */
static bool is_endless(Expander *expander, KilnDefault *entry, const char *path, int depth)
{
    KilnError err = { 0 };

    for (const KilnDefault *above = entry->parent; above != NULL; above = above->parent) {
        const char *other = kiln_default_path(expander->arena, above);

        if (other == NULL || strcmp(other, path) != 0)
            continue;
        kiln_error_set(&err, KILN_E_KEY, "defaults: '%s' includes itself", path);
        tell(expander, &entry->origin, &err);
        return true;
    }
    if (depth <= MOST_LEVELS && expander->n_entries <= MOST_ENTRIES)
        return false;
    kiln_error_set(&err, KILN_E_RANGE,
                   "defaults: more than %d levels or %d configs in defaults lists", MOST_LEVELS,
                   MOST_ENTRIES);
    tell(expander, &entry->origin, &err);
    return true;
}

static void set_header(Expander *expander, KilnDefault *entry, const KilnFile *file)
{
    if (file == NULL || file->package == NULL)
        return;
    /* A header's package counts from the top. */
    if (strncmp(file->package, "_global_", 8) == 0 &&
        (file->package[8] == '\0' || file->package[8] == '.'))
        entry->header = file->package;
    else if (strcmp(file->package, "_group_") == 0)
        entry->header = NULL;
    else
        entry->header = kiln_arena_printf(expander->arena, "_global_.%s", file->package);
}

static void expand(Expander *expander, KilnDefault *entry, int depth)
{
    const char *path = kiln_default_path(expander->arena, entry);
    const char *key = NULL;
    KilnDefault **entries;
    KilnFile *file = NULL;
    KilnError err = { 0 };
    size_t n = 0;

    expander->n_entries++;
    if (entry->kind == KILN_DEFAULT_GROUP) {
        key = kiln_default_key(expander->arena, entry);
        expander->failed |= key == NULL;
    }
    if (expander->failed || path == NULL) {
        expander->failed = true;
        return;
    }
    if (key != NULL && is_deleted(expander, entry, key)) {
        entry->gone = true;
        return;
    }
    if (key != NULL && entry->option != NULL && strcmp(entry->option, "???") == 0) {
        choice_missing(expander, entry, key);
        return;
    }
    if (key != NULL)
        remember(expander, entry, key, entry->option);
    if (key != NULL && entry->option == NULL) {
        entry->gone = true;
        return;
    }
    if (is_endless(expander, entry, path, depth)) {
        give_up(expander, entry);
        return;
    }
    if (kiln_search_file(&expander->config->search, path, &file, &err) < 0)
        tell(expander, NULL, &err);
    set_header(expander, entry, file);
    if (file == NULL || file->broken) {
        if (file == NULL && entry->optional)
            entry->gone = true;
        else if (file == NULL && err.status == KILN_OK)
            not_found(expander, entry, path);
        else
            give_up(expander, entry);
        return;
    }
    entries = entries_of(expander, entry, file, &n);
    if (entries != NULL && n > 0)
        expand_list(expander, entry, entries, n, depth);
}

/* ---- The list -------------------------------------------------------------------- */

static void emit(Expander *expander, const KilnDefault *entry, bool primary)
{
    KilnDefaultsList *list = expander->list;
    const char *path = kiln_default_path(expander->arena, entry);
    KilnResult result = { .package = kiln_default_package(expander->arena, entry, true),
                          .primary = primary };
    KilnError err = { 0 };

    if (path == NULL || result.package == NULL ||
        kiln_search_file(&expander->config->search, path, &result.file, &err) < 0 ||
        result.file == NULL) {
        expander->failed = true;
        return;
    }
    if (list->count == list->capacity) {
        size_t capacity = list->capacity * 2 + 32;
        KilnResult *more = kiln_arena_alloc(expander->arena, capacity * sizeof(*more));

        if (more == NULL) {
            expander->failed = true;
            return;
        }
        if (list->count > 0)
            memcpy(more, list->results, list->count * sizeof(*more));
        list->results = more;
        list->capacity = capacity;
    }
    if (entry->kind == KILN_DEFAULT_GROUP)
        result.key = kiln_default_key(expander->arena, entry);
    for (size_t i = 0; result.key != NULL && i < list->count; i++) {
        if (list->results[i].key == NULL || strcmp(list->results[i].key, result.key) != 0)
            continue;
        kiln_error_set(&err, KILN_E_KEY, "defaults: group '%s' is there twice", result.key);
        tell(expander, &entry->origin, &err);
    }
    list->results[list->count++] = result;
}

static void walk(Expander *expander, const KilnDefault *entry)
{
    if (entry->gone)
        return;
    if (entry->n_children == 0) {
        emit(expander, entry, entry->primary);
        return;
    }
    for (size_t i = entry->n_children; i-- > 0;) {
        const KilnDefault *child = entry->children[i];

        if (child->kind != KILN_DEFAULT_SELF) {
            walk(expander, child);
            continue;
        }
        /* The config itself; its key is its own only when it has no list. */
        KilnDefault self = *entry;
        self.n_children = 0;
        emit(expander, &self, entry->primary);
    }
}

KilnStatus kiln_defaults_expand(KilnConfig *config, KilnOverride *overrides, size_t n_overrides,
                                KilnErrors *errors, KilnDefaultsList *ret)
{
    Expander expander = { .config = config, .arena = config->arena, .errors = errors, .list = ret };
    KilnDefault primary = { .kind = KILN_DEFAULT_CONFIG,
                            .name = config->config_name,
                            .primary = true,
                            .base_dir = "",
                            .parent_package = "" };
    KilnDefault own = { .kind = KILN_DEFAULT_CONFIG,
                        .name = "kiln/config",
                        .base_dir = "",
                        .parent_package = "" };

    *ret = (KilnDefaultsList){ 0 };
    if (kiln_choices_read(config, overrides, n_overrides, errors, &expander.choices) < 0)
        return KILN_E_NOMEM;
    expand(&expander, &primary, 0);
    if (!expander.failed)
        expand(&expander, &own, 0);
    if (!expander.failed && ret->n_broken == 0)
        kiln_choices_unused(config, &expander.choices, ret, errors);
    if (!expander.failed) {
        walk(&expander, &own);
        walk(&expander, &primary);
    }
    return expander.failed ? KILN_E_NOMEM : KILN_OK;
}

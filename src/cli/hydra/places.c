/* Finds the classes of a user's tree, and decides where what they do goes. */
#include "cli/hydra/places.h"

#include <string.h>

#include "base/array.h"
#include "base/text.h"
#include "config/tree/tree.h"

/* Where each kind goes; * is the last name of its path. */
static const struct {
    const char *to;
    KilnImportGap gap;
    const char *stand_in;
} kinds[] = {
    [KILN_IMPORT_OPTIMIZER] = { "optimizer", KILN_IMPORT_STAND_IN, "???" },
    [KILN_IMPORT_SCHEDULER] = { "scheduler", KILN_IMPORT_STAND_IN, "scheduler/constant" },
    [KILN_IMPORT_LOSS] = { "task.loss", KILN_IMPORT_LEFT_OUT, NULL },
    [KILN_IMPORT_METRICS] = { "task.metrics.*", KILN_IMPORT_LEFT_OUT, NULL },
    [KILN_IMPORT_MODEL] = { "model", KILN_IMPORT_STAND_IN, "???" },
    [KILN_IMPORT_DATA] = { "datamodule", KILN_IMPORT_STAND_IN, "???" },
    [KILN_IMPORT_TRANSFORM] = { NULL, KILN_IMPORT_LEFT_OUT, NULL },
    [KILN_IMPORT_CALLBACK] = { "callbacks.*", KILN_IMPORT_NULL, NULL },
    [KILN_IMPORT_LOGGER] = { "logger.*", KILN_IMPORT_NULL, NULL },
    [KILN_IMPORT_TRAINER] = { "trainer", KILN_IMPORT_LEFT_OUT, NULL },
    [KILN_IMPORT_TASK] = { "task", KILN_IMPORT_STAND_IN, "module/vision" },
    [KILN_IMPORT_SWEEPER] = { NULL, KILN_IMPORT_LEFT_OUT, NULL },
    [KILN_IMPORT_SAMPLER] = { NULL, KILN_IMPORT_LEFT_OUT, NULL },
    [KILN_IMPORT_WRAPPER] = { NULL, KILN_IMPORT_LEFT_OUT, NULL },
    [KILN_IMPORT_OTHER] = { NULL, KILN_IMPORT_LEFT_OUT, NULL },
};

/* What a user's own class probably is, by the key that it stands at. */
static const struct {
    const char *key;
    KilnImportKind kind;
} usual[] = {
    { "data", KILN_IMPORT_DATA },           { "datamodule", KILN_IMPORT_DATA },
    { "data_module", KILN_IMPORT_DATA },    { "dm", KILN_IMPORT_DATA },
    { "dataset", KILN_IMPORT_DATA },        { "module", KILN_IMPORT_TASK },
    { "lit_module", KILN_IMPORT_TASK },     { "pl_module", KILN_IMPORT_TASK },
    { "litmodule", KILN_IMPORT_TASK },      { "lightning_module", KILN_IMPORT_TASK },
    { "system", KILN_IMPORT_TASK },         { "task", KILN_IMPORT_TASK },
    { "model", KILN_IMPORT_MODEL },         { "net", KILN_IMPORT_MODEL },
    { "network", KILN_IMPORT_MODEL },       { "backbone", KILN_IMPORT_MODEL },
    { "architecture", KILN_IMPORT_MODEL },  { "arch", KILN_IMPORT_MODEL },
    { "encoder", KILN_IMPORT_MODEL },       { "optimizer", KILN_IMPORT_OPTIMIZER },
    { "scheduler", KILN_IMPORT_SCHEDULER }, { "lr_scheduler", KILN_IMPORT_SCHEDULER },
    { "loss", KILN_IMPORT_LOSS },           { "criterion", KILN_IMPORT_LOSS },
    { "loss_fn", KILN_IMPORT_LOSS },
};

KilnImportGap kiln_import_gap(KilnImportKind kind, const char **ret_target)
{
    *ret_target = kinds[kind].stand_in;
    return kinds[kind].gap;
}

const char *kiln_import_path(KilnArena *arena, const char *path, const char *key, size_t i)
{
    const char *dot = path[0] != '\0' ? "." : "";

    return key != NULL ? kiln_arena_printf(arena, "%s%s%s", path, dot, key)
                       : kiln_arena_printf(arena, "%s%s%zu", path, dot, i);
}

static const char *last_part(const char *path)
{
    const char *dot = strrchr(path, '.');

    return dot != NULL ? dot + 1 : path;
}

/* The path above; "" for those of one part. In the arena. */
static const char *parent_of(KilnArena *arena, const char *path)
{
    const char *dot = strrchr(path, '.');

    return kiln_arena_strndup(arena, path, dot != NULL ? (size_t)(dot - path) : 0);
}

static bool is_below(const char *path, const char *above)
{
    const size_t n = strlen(above);

    return strncmp(path, above, n) == 0 && path[n] == '.';
}

/* ---- Finding --------------------------------------------------------------------------------- */

static KilnImportPlace *add_place(KilnImportPlaces *places, const char *path)
{
    KilnImportPlace *place;

    if (!KILN_ARENA_RESERVE(&places->arena, places->places, places->capacity, places->n + 1))
        return NULL;
    place = &places->places[places->n++];
    *place = (KilnImportPlace) { .path = path, .kind = KILN_IMPORT_OTHER };
    return place;
}

/* Lightning's {scheduler: ..., interval: ...}. */
static bool is_schedule(const KilnConfigNode *map)
{
    return kiln_node_get(map, "scheduler") != NULL &&
           (kiln_node_get(map, "interval") != NULL || kiln_node_get(map, "monitor") != NULL ||
            kiln_node_get(map, "frequency") != NULL);
}

static void collect(KilnImportPlaces *places, const KilnImportFile *file,
                    const KilnConfigNode *node, const char *path)
{
    const char *target = node->kind == KILN_NODE_MAP ? kiln_node_text(node, "_target_") : NULL;

    if (path == NULL)
        return;
    if ((target != NULL && !kiln_starts_with(target, "datetime.")) ||
        (node->kind == KILN_NODE_MAP && target == NULL && is_schedule(node))) {
        KilnImportPlace *place = add_place(places, path);

        if (place == NULL)
            return;
        place->file = file;
        place->target = target;
        place->origin = target != NULL ? kiln_node_get(node, "_target_")->origin : node->origin;
        place->type = target != NULL ? kiln_import_class_find(target) : &kiln_import_schedule;
        if (place->type != NULL)
            place->kind = place->type->kind;
    }
    for (size_t i = 0; i < node->count; i++)
        if (path[0] != '\0' || node->entries[i].key == NULL ||
            strcmp(node->entries[i].key, "defaults") != 0)
            collect(places, file, node->entries[i].value,
                    kiln_import_path(&places->arena, path, node->entries[i].key, i));
}

/* ---- Deciding -------------------------------------------------------------------------------- */

static bool has_place_below(const KilnImportPlaces *places, const char *path)
{
    for (size_t i = 0; i < places->n; i++)
        if (is_below(places->places[i].path, path))
            return true;
    return false;
}

/* A LightningModule has an optimizer or a network below it, or says so in its name. */
static bool is_task(const KilnImportPlaces *places, const KilnImportPlace *place)
{
    const char *name = last_part(place->target);

    return has_place_below(places, place->path) || strstr(name, "Lit") != NULL ||
           kiln_ends_with(name, "Module") || kiln_ends_with(name, "Task");
}

static KilnImportKind guess(const KilnImportPlaces *places, const KilnImportPlace *place,
                            const char *parent)
{
    const char *key = last_part(place->path);

    if (strcmp(last_part(parent), "callbacks") == 0)
        return KILN_IMPORT_CALLBACK;
    if (strcmp(last_part(parent), "logger") == 0 || strcmp(last_part(parent), "loggers") == 0 ||
        strcmp(key, "logger") == 0)
        return KILN_IMPORT_LOGGER;
    for (size_t i = 0; i < KILN_COUNT(usual); i++)
        if (strcmp(usual[i].key, key) == 0)
            return usual[i].kind == KILN_IMPORT_MODEL && is_task(places, place) ? KILN_IMPORT_TASK
                                                                                : usual[i].kind;
    return KILN_IMPORT_OTHER;
}

/* kiln's config has any number of the kind, each with a name. */
static bool has_many(KilnImportKind kind)
{
    return kinds[kind].to != NULL && strchr(kinds[kind].to, '*') != NULL;
}

/* Whether one of the same kind is above it in the tree. */
static bool is_nested(const KilnImportPlaces *places, const KilnImportPlace *place)
{
    for (size_t i = 0; i < places->n; i++)
        if (places->places[i].kind == place->kind &&
            is_below(place->path, places->places[i].path) &&
            (places->places[i].file == place->file || !has_many(place->kind)))
            return true;
    return false;
}

/* Whether the file has one of the same kind before it, beside it. */
static bool is_second(const KilnImportPlaces *places, const KilnImportPlace *place)
{
    for (const KilnImportPlace *other = places->places; other < place; other++)
        if (other->file == place->file && other->kind == place->kind && other->to != NULL &&
            strcmp(other->path, place->path) != 0 && !is_below(place->path, other->path))
            return true;
    return false;
}

static const char *component_name(const KilnImportPlace *place)
{
    const char *component = place->type != NULL ? place->type->component : NULL;
    const char *slash = component != NULL ? strrchr(component, '/') : NULL;

    return slash != NULL ? slash + 1 : last_part(place->target);
}

/* The path of the kind, with its own name where kiln has several. */
static const char *destination(KilnImportPlaces *places, const KilnImportPlace *place)
{
    const char *to = kinds[place->kind].to, *key = last_part(place->path);
    const char *star = to != NULL ? strchr(to, '*') : NULL;

    if (star == NULL)
        return to;
    /* An item of a list, or what stands where all of them do: logger: {_target_: ...}. */
    if (kiln_is_digit(key[0]) || strcmp(key, "logger") == 0 || strcmp(key, "callbacks") == 0)
        key = component_name(place);
    return kiln_arena_printf(&places->arena, "%.*s%s", (int)(star - to), to, key);
}

static void decide(KilnImportPlaces *places, KilnImportPlace *place)
{
    const bool known_data = place->kind == KILN_IMPORT_DATA && place->type != NULL;

    if (kinds[place->kind].to == NULL || (is_nested(places, place) && !known_data)) {
        place->kind = kinds[place->kind].to == NULL ? place->kind : KILN_IMPORT_OTHER;
        return;
    }
    if (place->kind == KILN_IMPORT_SCHEDULER && place->type == &kiln_import_schedule &&
        is_second(places, place))
        return;
    place->to = destination(places, place);
    place->second = !has_many(place->kind) && place->kind != KILN_IMPORT_TRAINER &&
                    is_second(places, place);
    if (place->second)
        place->to = NULL;
}

static bool add_move(KilnImportPlaces *places, const char *from, const char *to,
                     const KilnImportFile *file, bool own)
{
    if (!KILN_ARENA_RESERVE(&places->arena, places->moves, places->moves_capacity,
                            places->n_moves + 1))
        return false;
    places->moves[places->n_moves++] = (KilnImportMove) { from, to, file, own };
    return true;
}

bool kiln_import_move(KilnImportPlaces *places, const char *from, const char *to)
{
    return add_move(places, from, to, NULL, false);
}

KilnStatus kiln_import_places_find(KilnImportPlaces *places, const KilnImportSource *source,
                                   KilnError *err)
{
    KilnImportPlace *root, *trainer;

    places->source = source;
    for (size_t i = 0; i < source->n_files; i++)
        if (source->files[i].root != NULL)
            collect(places, &source->files[i], source->files[i].root, source->files[i].package);
    for (size_t i = 0; i < places->n; i++)
        if (places->places[i].type == NULL)
            places->places[i].kind = guess(places, &places->places[i],
                                           parent_of(&places->arena, places->places[i].path));
    for (size_t i = 0; i < places->n; i++)
        decide(places, &places->places[i]);
    for (size_t i = 0; i < places->n; i++) {
        const KilnImportPlace *place = &places->places[i];

        if (place->to != NULL)
            add_move(places, place->path, place->to, place->file, has_many(place->kind));
    }
    /* Users pass the mapping `trainer` to Trainer themselves, too. */
    root = add_place(places, "");
    if (root != NULL)
        root->type = &kiln_import_root;
    trainer = add_place(places, "trainer");
    if (trainer != NULL) {
        trainer->type = &kiln_import_trainer;
        trainer->kind = KILN_IMPORT_TRAINER;
    }
    return places->arena.failed ? kiln_error_nomem(err, places->n) : KILN_OK;
}

void kiln_import_places_release(KilnImportPlaces *places)
{
    kiln_arena_release(&places->arena);
}

/* ---- Asking ---------------------------------------------------------------------------------- */

const KilnImportPlace *kiln_import_place_at(const KilnImportPlaces *places,
                                            const KilnImportFile *file, const char *path, size_t i)
{
    for (int own = 1; own >= 0; own--)
        for (size_t k = 0; k < places->n; k++)
            if ((places->places[k].file == file) == (own == 1) &&
                strcmp(places->places[k].path, path) == 0 && i-- == 0)
                return &places->places[k];
    return NULL;
}

/* The longest move of the path; the file's own come first. */
static const KilnImportMove *find_move(const KilnImportPlaces *places, const KilnImportFile *file,
                                       const char *path)
{
    const KilnImportMove *found = NULL;
    size_t longest = 0;

    for (int own = 1; own >= 0; own--)
        for (size_t i = 0; i < places->n_moves; i++) {
            const KilnImportMove *move = &places->moves[i];
            const size_t n = strlen(move->from);

            if ((move->file == file) == (own == 1) && (own == 1 || !move->own) &&
                n >= longest + (found != NULL) && strncmp(path, move->from, n) == 0 &&
                (path[n] == '\0' || path[n] == '.')) {
                found = move;
                longest = n;
            }
        }
    return found;
}

const char *kiln_import_moved(const KilnImportPlaces *places, KilnArena *arena,
                              const KilnImportFile *file, const char *path, bool exact)
{
    const KilnImportMove *move = find_move(places, file, path);

    if (move == NULL || (exact && strcmp(move->from, path) != 0))
        return exact ? NULL : path;
    return kiln_arena_printf(arena, "%s%s", move->to, path + strlen(move->from));
}

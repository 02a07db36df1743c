/* Makes the files of kiln's config. */
#include "cli/hydra/outputs.h"

#include <string.h>

#include "base/array.h"
#include "kiln/embed/run.h"

enum { PASSES = 8 /* at most, each of which may find more keys that nothing reads */ };

/* Keys of the root that mean something in kiln without being options. */
static const char known_keys[] =
    "model optimizer scheduler trainer lr batch_size tokenizer hydra kiln notes author comment "
    "description name note project tags title version";

/* ---- The task -------------------------------------------------------------------------------- */

/* What a loss or network says about the task of a LightningModule. */
static const struct {
    const char *component, *task;
} evidence[] = {
    { "model/deeplab_v3", "segmentation" },
    { "model/fcos", "detection" },
    { "loss/mse", "regression" },
    { "loss/mae", "regression" },
    { "loss/huber", "regression" },
    { "loss/binary_cross_entropy", "multilabel_classification" },
};

static void assume(KilnImportOutputs *outputs, const char *what, const char *text)
{
    if (outputs->n_assumed < KILN_COUNT(outputs->assumed) && text != NULL)
        outputs->assumed[outputs->n_assumed++] = (KilnImportAssumption) { what, text };
}

static void find_task(KilnImportOutputs *outputs)
{
    const KilnImportPlaces *places = outputs->places;

    outputs->task = "vision";
    for (size_t i = 0; i < KILN_COUNT(evidence); i++)
        for (size_t k = 0; k < places->n; k++) {
            const KilnImportPlace *place = &places->places[k];

            if (place->type != NULL && place->type->component != NULL &&
                strcmp(place->type->component, evidence[i].component) == 0) {
                outputs->task = evidence[i].task;
                assume(outputs, "task",
                       kiln_arena_printf(&outputs->arena,
                                         "%s, because of %s (%s:%d); others: "
                                         "`kiln show task`",
                                         outputs->task, place->target, place->origin.source,
                                         place->origin.line));
                return;
            }
        }
    assume(outputs, "task", "vision, classification of images; others: `kiln show task`");
}

/* ---- Keys that nothing reads ----------------------------------------------------------------- */

/* Whether a value of the tree refers to the key, or to one below it. */
static bool refers(const KilnImportNode *node, const char *key)
{
    const size_t n = strlen(key);

    if (node->left_out)
        return false;
    for (const char *at = node->text; at != NULL && (at = strstr(at, "${")) != NULL; at += 2)
        if (strncmp(at + 2, key, n) == 0 && (at[n + 2] == '}' || at[n + 2] == '.'))
            return true;
    for (const KilnImportNode *child = node->first; child != NULL; child = child->next)
        if (refers(child, key))
            return true;
    return false;
}

/* Outside of itself and of the notes. */
static bool is_read(const KilnImportOutputs *outputs, const char *key)
{
    for (size_t i = 0; i < outputs->source->n_files; i++)
        for (const KilnImportNode *node = outputs->trees[i]->first; node != NULL; node = node->next)
            if (node->key != NULL && strcmp(node->key, key) != 0 &&
                strcmp(node->key, "notes") != 0 && refers(node, key))
                return true;
    return false;
}

static bool is_option(const char *key)
{
    const KilnSection *root = kiln_run_sections();

    for (size_t i = 0; root->fields[i].name != NULL; i++)
        if (strcmp(root->fields[i].name, key) == 0)
            return true;
    return kiln_import_lists(known_keys, key);
}

/* Move the keys of the root that nothing reads to notes. *ret_more: there were some. */
static void move_unread(KilnImportOutputs *outputs, bool *ret_more)
{
    *ret_more = false;
    for (size_t i = 0; i < outputs->source->n_files; i++)
        for (const KilnImportNode *node = outputs->trees[i]->first; node != NULL;
             node = node->next) {
            const char *key = node->key;

            if (key == NULL || !kiln_import_node_lives(node) || is_option(key) ||
                is_read(outputs, key) ||
                kiln_import_moved(outputs->places, &outputs->arena, NULL, key, true) != NULL)
                continue;
            *ret_more = kiln_import_move(outputs->places, key,
                                         kiln_arena_printf(&outputs->arena, "notes.%s", key));
        }
}

/* ---- Rewriting ------------------------------------------------------------------------------- */

static KilnStatus rewrite_all(KilnImportOutputs *outputs, KilnError *err)
{
    KilnStatus status = KILN_OK;

    outputs->changes = (KilnImportChanges) { 0 };
    for (size_t i = 0; i < outputs->source->n_files && status >= 0; i++) {
        KilnImportRewrite *rewrite = kiln_arena_alloc(&outputs->arena, sizeof(*rewrite));

        if (rewrite == NULL)
            return kiln_error_nomem(err, sizeof(*rewrite));
        rewrite->places = outputs->places;
        rewrite->file = &outputs->source->files[i];
        rewrite->arena = &outputs->arena;
        rewrite->changes = &outputs->changes;
        rewrite->task = kiln_arena_printf(&outputs->arena, "module/%s", outputs->task);
        status = kiln_import_rewrite(rewrite, err);
        outputs->trees[i] = &rewrite->root;
    }
    return status;
}

/* ---- Splitting ------------------------------------------------------------------------------- */

static bool is_taken(const KilnImportOutputs *outputs, const char *group, const char *option)
{
    for (size_t i = 0; i < outputs->n; i++)
        if (strcmp(outputs->items[i].group, group) == 0 &&
            strcmp(outputs->items[i].option, option) == 0)
            return true;
    return false;
}

static KilnImportOutput *add_output(KilnImportOutputs *outputs, const KilnImportFile *file,
                                    const char *group, const KilnImportNode *content)
{
    static const KilnImportNode nothing = { 0 };
    KilnArena *arena = &outputs->arena;
    const char *option = file->option;
    KilnImportOutput *output;

    if (!KILN_ARENA_RESERVE(arena, outputs->items, outputs->capacity, outputs->n + 1))
        return NULL;
    if (is_taken(outputs, group, option))
        option = kiln_arena_printf(arena, "%s_%s", option, file->package);
    output = &outputs->items[outputs->n++];
    *output = (KilnImportOutput) { .source = file,
                                   .group = group,
                                   .option = option,
                                   .content = content != NULL ? content : &nothing };
    output->path = kiln_arena_printf(arena, "%s%s%s.yaml", group, group[0] != '\0' ? "/" : "",
                                     option);
    return output;
}

static const char *as_group(KilnArena *arena, const char *path)
{
    char *group = kiln_arena_strdup(arena, path);

    for (char *p = group; p != NULL && *p != '\0'; p++)
        if (*p == '.')
            *p = '/';
    return group;
}

/* The file's main part, and one for each other group that it has values of. */
static bool split(KilnImportOutputs *outputs, size_t i)
{
    const KilnImportFile *file = &outputs->source->files[i];
    KilnArena *arena = &outputs->arena;
    KilnImportNode *root = outputs->trees[i];
    const char *to = kiln_import_moved(outputs->places, arena, file, file->package, false);
    const size_t n = to != NULL ? strcspn(to, ".") : 0;
    const char *top = to != NULL ? kiln_arena_strndup(arena, to, n) : NULL;
    const bool stays = to != NULL && strcmp(to, file->package) == 0;
    const bool many = top != NULL && kiln_import_lists("callbacks logger", top);
    KilnImportOutput *output;

    if (top == NULL)
        return false;
    if (to[0] == '\0') {
        output = add_output(outputs, file, file->group, root);
        if (output != NULL)
            output->header = file->header;
    } else if (stays || strcmp(top, "notes") == 0) {
        output = add_output(outputs, file, file->group, kiln_import_node_make(arena, root, to));
        if (output != NULL)
            output->header = stays ? file->header : to;
    } else {
        output = add_output(outputs, file, many ? top : as_group(arena, to),
                            kiln_import_node_make(arena, root, many ? top : to));
    }
    if (output == NULL)
        return false;
    output->whole = true;
    for (KilnImportNode *node = root->first; to[0] != '\0' && node != NULL; node = node->next)
        if (node->key != NULL && strcmp(node->key, top) != 0 && kiln_import_node_lives(node) &&
            add_output(outputs, file, node->key, node) == NULL)
            return false;
    return true;
}

/* ---- Texts ----------------------------------------------------------------------------------- */

static void write_texts(KilnImportOutputs *outputs)
{
    for (size_t i = 0; i < outputs->n; i++) {
        KilnImportOutput *output = &outputs->items[i];
        KilnText text = { 0 };

        if (output->header != NULL)
            kiln_text_printf(&text, "# @package %s\n", output->header);
        kiln_import_node_write(&text, &output->defaults, 0);
        kiln_import_node_write(&text, output->content, 0);
        if (text.length == 0)
            kiln_text_append(&text, "{}\n");
        output->text = kiln_text_to_arena(&text, &outputs->arena);
    }
}

KilnStatus kiln_import_outputs_make(KilnImportOutputs *outputs, KilnImportPlaces *places,
                                    KilnError *err)
{
    const size_t n = places->source->n_files;
    bool more = true;
    KilnStatus status = KILN_OK;

    outputs->places = places;
    outputs->source = places->source;
    outputs->trees = kiln_arena_alloc(&outputs->arena, n * sizeof(*outputs->trees));
    if (outputs->trees == NULL)
        return kiln_error_nomem(err, n);
    find_task(outputs);
    for (int pass = 0; pass < PASSES && more && status >= 0; pass++) {
        status = rewrite_all(outputs, err);
        if (status >= 0)
            move_unread(outputs, &more);
    }
    for (size_t i = 0; i < n && status >= 0; i++)
        if (!split(outputs, i))
            status = kiln_error_nomem(err, n);
    if (status >= 0)
        status = kiln_import_defaults(outputs, err);
    if (status >= 0)
        write_texts(outputs);
    return status >= 0 && outputs->arena.failed ? kiln_error_nomem(err, n) : status;
}

void kiln_import_outputs_release(KilnImportOutputs *outputs)
{
    kiln_arena_release(&outputs->arena);
}

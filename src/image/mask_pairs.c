/* Finds pairs of image and mask files. Decodes nothing. */
#include "kiln/tools/image_masks.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/arena.h"
#include "base/system/file.h"

/* The names of PNG files in a folder, in byte order. */
typedef struct Names {
    char **all;
    size_t n_all;
    const char **png; /* of `all` */
    size_t n;
} Names;

static int compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static size_t stem_of(const char *name)
{
    return strlen(name) - strlen(".png");
}

static bool is_png(const char *name)
{
    return name[0] != '.' && strlen(name) > strlen(".png") &&
           strcasecmp(name + stem_of(name), ".png") == 0;
}

static KilnStatus list(const char *folder, Names *ret, KilnError *err)
{
    KilnStatus status = kiln_dir_list(folder, &ret->all, &ret->n_all, err);

    if (status < 0)
        return status;
    ret->png = calloc(ret->n_all + 1, sizeof(*ret->png));
    if (ret->png == NULL)
        return kiln_error_nomem(err, ret->n_all * sizeof(*ret->png));
    for (size_t i = 0; i < ret->n_all; i++)
        if (is_png(ret->all[i]))
            ret->png[ret->n++] = ret->all[i];
    qsort(ret->png, ret->n, sizeof(*ret->png), compare);
    return KILN_OK;
}

static void names_release(Names *names)
{
    kiln_names_free(names->all, names->n_all);
    free(names->png);
}

/* The order of two names without their endings. */
static int compare_stems(const char *a, const char *b)
{
    const size_t stem_a = stem_of(a), stem_b = stem_of(b);
    const int order = strncmp(a, b, stem_a < stem_b ? stem_a : stem_b);

    return order != 0 ? order : stem_a < stem_b ? -1 : stem_a > stem_b;
}

static const char *find(const Names *names, const char *like)
{
    for (size_t i = 0; i < names->n; i++) /* endings may differ in capitals alone */
        if (compare_stems(names->png[i], like) == 0)
            return names->png[i];
    return NULL;
}

/* Where the masks have the names of the images, the mask of number i is near i. */
static const char *find_near(const Names *names, size_t i, const char *like)
{
    return i < names->n && compare_stems(names->png[i], like) == 0 ? names->png[i]
                                                                   : find(names, like);
}

static KilnStatus pair_up(KilnArena *arena, const char *image_folder, const char *mask_folder,
                          const Names *images, const Names *masks, const KilnPoll *poll,
                          KilnMaskPairs *ret, KilnError *err)
{
    const char **image_paths = (const char **)ret->images.paths;
    const char **mask_paths = (const char **)ret->masks;

    for (size_t i = 0; i < images->n; i++) {
        const char *name = images->png[i], *mask = find_near(masks, i, name);

        if (kiln_poll_check(poll, "finding masks", (int64_t)i, (int64_t)images->n, err) < 0)
            return KILN_E_INTERRUPTED;
        if (mask == NULL)
            return kiln_error_set(err, KILN_E_FORMAT, "%s/%s has no mask: expected %s/%.*s.png",
                                  image_folder, name, mask_folder, (int)stem_of(name), name);
        image_paths[i] = kiln_arena_printf(arena, "%s/%s", image_folder, name);
        mask_paths[i] = kiln_arena_printf(arena, "%s/%s", mask_folder, mask);
        if (image_paths[i] == NULL || mask_paths[i] == NULL)
            return kiln_error_nomem(err, strlen(mask_folder));
    }
    ret->images.count = (int64_t)images->n;
    return KILN_OK;
}

/* Masks that no image has. */
static KilnStatus leave_out(KilnArena *arena, const char *mask_folder, const Names *images,
                            const Names *masks, KilnMaskPairs *ret, KilnError *err)
{
    KilnOmission omission = { .what = "masks", .reason = "no image has their names" };

    for (size_t i = 0; i < masks->n && images->n < masks->n; i++) {
        if (find_near(images, i, masks->png[i]) != NULL)
            continue;
        if (omission.count++ == 0)
            omission.example = kiln_arena_printf(arena, "%s/%s", mask_folder, masks->png[i]);
    }
    if (omission.count == 0)
        return KILN_OK;
    KilnOmission *kept = kiln_arena_alloc(arena, sizeof(*kept));
    if (kept == NULL || omission.example == NULL)
        return kiln_error_nomem(err, sizeof(*kept));
    *kept = omission;
    ret->no_images = kept;
    return KILN_OK;
}

static KilnStatus scan(const char *image_folder, const char *mask_folder, Names *images,
                       Names *masks, const KilnPoll *poll, KilnMaskPairs *ret, KilnError *err)
{
    KilnStatus status = list(image_folder, images, err);

    if (status >= 0)
        status = list(mask_folder, masks, err);
    if (status < 0)
        return status;
    if (images->n == 0)
        return kiln_error_set(err, KILN_E_FORMAT, "%s: no .png files", image_folder);
    KilnArena *arena = calloc(1, sizeof(*arena));
    ret->memory = arena;
    ret->images.paths = calloc(images->n, sizeof(char *));
    ret->masks = calloc(images->n, sizeof(char *));
    if (arena == NULL || ret->images.paths == NULL || ret->masks == NULL)
        return kiln_error_nomem(err, images->n * sizeof(char *));
    status = pair_up(arena, image_folder, mask_folder, images, masks, poll, ret, err);
    return status < 0 ? status : leave_out(arena, mask_folder, images, masks, ret, err);
}

KilnStatus kiln_mask_pairs_scan(const char *images, const char *masks, const KilnPoll *poll,
                                KilnMaskPairs *ret, KilnError *err)
{
    Names image_names = { 0 }, mask_names = { 0 };
    KilnMaskPairs pairs = { 0 };
    KilnStatus status = scan(images, masks, &image_names, &mask_names, poll, &pairs, err);

    names_release(&image_names);
    names_release(&mask_names);
    if (status < 0)
        kiln_mask_pairs_release(&pairs);
    else
        *ret = pairs;
    return status;
}

void kiln_mask_pairs_release(KilnMaskPairs *pairs)
{
    free((void *)pairs->images.paths);
    free((void *)pairs->masks);
    if (pairs->memory != NULL)
        kiln_arena_release(pairs->memory);
    free(pairs->memory);
    *pairs = (KilnMaskPairs) { 0 };
}

/* The caches of decoded images. What is in one depends on the file, which entries are marked with,
 * and on what its key is made of. */
#include "kiln/image.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

KilnStatus kiln_image_cache_open(const KilnImageCacheSpec *spec, KilnCache **ret, KilnError *err)
{
    struct {
        int64_t version, size[3];
    } made = { .version = 2 };
    const char *root = spec->root, *set = spec->set;
    char here[4096] = "", file[512];

    if (root[0] != '/' && getcwd(here, sizeof(here)) == NULL)
        return kiln_error_errno(err, root);
    memcpy(made.size, spec->size, sizeof(made.size));
    uint64_t key = kiln_hash(&made, sizeof(made), (uint64_t)spec->split);
    key = kiln_hash(set, strlen(set), key);
    key = kiln_hash(root, strlen(root), kiln_hash(here, strlen(here), key));
    snprintf(file, sizeof(file), "%s%s%s", kiln_split_name(spec->split), set[0] != '\0' ? "-" : "",
             set);
    return kiln_cache_open(
        &(KilnCacheSpec) {
            .folder = spec->folder,
            .name = file,
            .key = key,
            .count = spec->count,
            .bytes = (size_t)(made.size[0] * made.size[1] * made.size[2]) * sizeof(float),
        },
        ret, err);
}

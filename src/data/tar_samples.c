/* Groups the files of a tar into samples, and reads their labels. */
#include "kiln/tools/tar_samples.h"

#include <string.h>
#include <strings.h>

#include <jansson.h>

#include "base/text.h"

/* A sample that is being put together. */
typedef struct Group {
    const char *name; /* of its first file */
    size_t key;       /* the part of that name that all of its files share */
    int64_t image, label;
} Group;

/* The length of a name up to the first dot after the last slash. */
static size_t key_of(const char *name)
{
    const char *slash = strrchr(name, '/'), *last = slash != NULL ? slash + 1 : name;

    return (size_t)(last - name) + strcspn(last, ".");
}

static bool is_image(const char *name, const char *const *endings)
{
    const char *dot = strrchr(name, '.');

    for (; dot != NULL && *endings != NULL; endings++)
        if (strcasecmp(dot, *endings) == 0)
            return true;
    return false;
}

static bool append_label(KilnText *text, const json_t *value)
{
    if (text->length > 0)
        kiln_text_char(text, KILN_RECORDS_ITEM_END);
    if (json_is_string(value))
        kiln_text_append_n(text, json_string_value(value), json_string_length(value));
    else if (json_is_integer(value))
        kiln_text_printf(text, "%lld", (long long)json_integer_value(value));
    else
        return false;
    return true;
}

/* The labels at spec->key of a JSON object. */
static KilnStatus read_json(const KilnTarMember *file, const char *path,
                            const KilnTarSampleSpec *spec, KilnText *text, KilnError *err)
{
    json_error_t problem;
    json_t *root = json_loadb(file->data, file->size, JSON_REJECT_DUPLICATES, &problem);
    const json_t *value = json_object_get(root, spec->key), *item;
    KilnStatus status = KILN_OK;
    bool fits = true;
    size_t i;

    if (root == NULL)
        return kiln_error_set(err, KILN_E_FORMAT, "%s/%s:%d: %s", path, file->name, problem.line,
                              problem.text);
    if (json_is_array(value))
        json_array_foreach(value, i, item) fits = fits && append_label(text, item);
    else if (value != NULL)
        fits = append_label(text, value);
    if (!fits)
        status = kiln_error_set(err, KILN_E_TYPE,
                                "%s/%s: \"%s\" is neither a text nor a whole number nor a list of "
                                "these",
                                path, file->name, spec->key);
    else if (text->failed)
        status = kiln_error_nomem(err, text->length);
    json_decref(root);
    return status;
}

/* The sample is complete. */
static KilnStatus finish(const KilnTar *tar, const char *path, const KilnTarSampleSpec *spec,
                         const Group *group, KilnError *err)
{
    KilnTarSample sample = { .image = group->image };
    KilnText text = { 0 };
    KilnStatus status = KILN_OK;

    if (group->image < 0)
        return KILN_OK;
    sample.name = kiln_tar_member(tar, group->image).name;
    if (group->label >= 0) {
        const KilnTarMember file = kiln_tar_member(tar, group->label);

        sample.labels = (KilnString) { .data = file.data, .length = file.size };
        if (spec->key != NULL) {
            status = read_json(&file, path, spec, &text, err);
            sample.labels = (KilnString) { .data = text.data != NULL ? text.data : "",
                                           .length = text.length };
        }
    }
    if (status >= 0)
        status = spec->take(spec->ctx, &sample, err);
    kiln_text_release(&text);
    return status;
}

KilnStatus kiln_tar_samples(const KilnTar *tar, const char *path, const KilnTarSampleSpec *spec,
                            KilnError *err)
{
    Group group = { .image = -1, .label = -1 };
    KilnStatus status = KILN_OK;

    for (int64_t i = 0; i < kiln_tar_count(tar) && status >= 0; i++) {
        const char *name = kiln_tar_member(tar, i).name;
        const size_t key = key_of(name);

        if (group.name == NULL || key != group.key || memcmp(name, group.name, key) != 0) {
            status = finish(tar, path, spec, &group, err);
            group = (Group) { .name = name, .key = key, .image = -1, .label = -1 };
        }
        if (name[key] == '.' && strcmp(name + key + 1, spec->label) == 0)
            group.label = i;
        else if (is_image(name, spec->endings))
            group.image = i;
    }
    return status >= 0 ? finish(tar, path, spec, &group, err) : status;
}

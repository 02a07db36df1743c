/* Initializes parts of a network from the weights of other runs: the option `weights_of`. The names
 * of a part's parameters without its prefix, and those of the file without a prefix of its own, are
 * matched. The file's prefix is what the option names (RUN#PART), or the one that fits best. */
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "base/text.h"
#include "schema/bind.h"
#include "tensor/safetensors.h"
#include "train/checkpoint/initial_weights.h"
#include "train/checkpoint/read_tensor.h"
#include "train/trainer.h"

enum { MAX_NAMES = 6 }; /* that a message lists */

/* A part and its file. */
typedef struct Part {
    KilnTrainer *trainer;
    const char *prefix; /* of the parameters: "image_encoder"; "all": every one */
    KilnSafetensors *file;
    char *path;
    char there[256]; /* the prefix in the file, with a dot at the end; "": none */
} Part;

/* A parameter's name in the part; NULL: it is not of the part. */
static const char *name_in(const char *prefix, const char *name)
{
    const size_t n = strlen(prefix);

    if (strcmp(prefix, "all") == 0)
        return name;
    return strncmp(name, prefix, n) == 0 && name[n] == '.' ? name + n + 1 : NULL;
}

static const KilnStEntry *find(const Part *part, const char *name)
{
    char full[512];

    snprintf(full, sizeof(full), "%s%s", part->there, name);
    return kiln_safetensors_find(part->file, full);
}

static KilnParam *param_at(const Part *part, size_t i)
{
    return kiln_params_at(part->trainer->params, i);
}

/* How many tensors of the part the file has below its prefix. */
static size_t count(const Part *part, size_t *ret_all)
{
    size_t n = 0;

    *ret_all = 0;
    for (size_t i = 0; i < kiln_params_count(part->trainer->params); i++) {
        const char *name = name_in(part->prefix, kiln_param_name(param_at(part, i)));

        *ret_all += name != NULL;
        n += name != NULL && find(part, name) != NULL;
    }
    return n;
}

/* Unless the option names it, set the prefix at which the file has most of the part: none, the
 * part's own, or any other that a name of the part ends. */
static void find_prefix(Part *part)
{
    size_t all, most = count(part, &all);
    Part best = *part;

    if (part->there[0] != '\0')
        return;

    for (size_t i = 0; i < kiln_safetensors_count(part->file) && most < all; i++) {
        const char *entry = kiln_safetensors_at(part->file, i)->name;

        for (const char *dot = strchr(entry, '.'); dot != NULL; dot = strchr(dot + 1, '.')) {
            const size_t length = (size_t)(dot + 1 - entry);
            Part other = *part;

            if (length >= sizeof(other.there) || strncmp(best.there, entry, length) == 0)
                continue;
            memcpy(other.there, entry, length);
            other.there[length] = '\0';
            const size_t n = count(&other, &all);
            if (n > most) {
                most = n;
                best = other;
            }
        }
    }
    memcpy(part->there, best.there, sizeof(part->there));
}

static void put_name(KilnText *text, size_t *n, const char *name)
{
    if (++*n <= MAX_NAMES)
        kiln_text_printf(text, "%s%s", *n > 1 ? ", " : "", name);
    else if (*n == MAX_NAMES + 1)
        kiln_text_append(text, ", ...");
}

/* Read what the file has for one parameter. *ret_loaded: it was there and had its shape; heads of
 * another shape and those that are not there keep their values. */
static KilnStatus read_param(const Part *part, KilnParam *param, bool *ret_loaded, KilnError *err)
{
    const KilnStEntry *entry = find(part, name_in(part->prefix, kiln_param_name(param)));
    char here[KILN_SHAPE_TEXT], there[KILN_SHAPE_TEXT];

    *ret_loaded = false;
    if (entry == NULL)
        return KILN_OK;
    if (kiln_shape_equal(&entry->shape, kiln_param_shape(param))) {
        *ret_loaded = true;
        return kiln_read_tensor(part->file, entry, kiln_param_dtype(param),
                                kiln_param_location(param), err);
    }
    if (param->head)
        return KILN_OK;
    return kiln_error_set(
        err, KILN_E_FORMAT,
        "weights_of.%s: %s of %s is %s, but %s of this network is %s; use an "
        "encoder with the options of that run",
        part->prefix, entry->name, part->path, kiln_shape_text(&entry->shape, there, sizeof(there)),
        kiln_param_name(param), kiln_shape_text(kiln_param_shape(param), here, sizeof(here)));
}

static KilnStatus refuse(const Part *part, size_t all, KilnError *err)
{
    if (all == 0)
        return kiln_error_set(err, KILN_E_KEY,
                              "weights_of.%s: no parameter's name begins with \"%s.\"; `train "
                              "--plan` lists the layers",
                              part->prefix, part->prefix);
    return kiln_error_set(err, KILN_E_FORMAT, "weights_of.%s: nothing %s%s%sin %s fits this part",
                          part->prefix, part->there[0] != '\0' ? "below \"" : "", part->there,
                          part->there[0] != '\0' ? "\" " : "", part->path);
}

static KilnStatus load(Part *part, KilnError *err)
{
    KilnText left = { 0 };
    KilnStatus status = KILN_OK;
    size_t all, n_left = 0, loaded = 0;

    find_prefix(part);
    if (count(part, &all) == 0)
        return refuse(part, all, err);
    for (size_t i = 0; i < kiln_params_count(part->trainer->params) && status >= 0; i++) {
        KilnParam *param = param_at(part, i);
        bool there = false;

        if (name_in(part->prefix, kiln_param_name(param)) == NULL)
            continue;
        status = read_param(part, param, &there, err);
        loaded += there;
        if (!there && status >= 0)
            put_name(&left, &n_left, kiln_param_name(param));
    }
    if (status >= 0)
        kiln_output_print(&part->trainer->output, "weights: %s: %zu of %zu tensors from %s%s%s",
                          part->prefix, loaded, all, part->path,
                          part->there[0] != '\0' ? " below " : "", part->there);
    if (status >= 0 && n_left > 0)
        kiln_output_print(&part->trainer->output,
                          "weights: %s: not in the file or of another size, initialized randomly: "
                          "%s",
                          part->prefix, left.data);
    kiln_text_release(&left);
    return status;
}

/* Where the part's name begins in RUN#PART; NULL: there is none, or the whole is a path. */
static const char *find_name(const char *value)
{
    const char *hash = strrchr(value, '#');

    return hash == NULL || kiln_is_file(value) || kiln_is_dir(value) ? NULL : hash + 1;
}

static KilnStatus open_part(KilnTrainer *trainer, size_t i, Part *ret, KilnError *err)
{
    const KilnPairStr *pair = &trainer->options.root->weights_of[i];
    const char *name = find_name(pair->value);
    char *run = kiln_strdup(pair->value);
    char option[256];

    *ret = (Part) { .trainer = trainer, .prefix = pair->key };
    if (run == NULL)
        return kiln_error_nomem(err, strlen(pair->value));
    snprintf(option, sizeof(option), "weights_of.%s", pair->key);
    if (name != NULL) {
        run[name - pair->value - 1] = '\0';
        snprintf(ret->there, sizeof(ret->there), "%s.", name);
    }
    KilnStatus status = kiln_weights_find_file(option, run, &ret->path, err);
    free(run);
    return status < 0 ? status : kiln_safetensors_open(ret->path, &ret->file, err);
}

static void close_part(Part *part)
{
    kiln_safetensors_close(part->file);
    free(part->path);
}

KilnStatus kiln_part_weights_load(KilnTrainer *trainer, KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < trainer->options.root->weights_of_count && status >= 0; i++) {
        Part part;

        status = open_part(trainer, i, &part, err);
        if (status >= 0)
            status = load(&part, err);
        close_part(&part);
    }
    return status >= 0 ? status : kiln_error_about_key(trainer->config, "weights_of", err);
}

KilnStatus kiln_part_weights_read_param(KilnTrainer *trainer, KilnParam *param, KilnError *err)
{
    KilnStatus status = KILN_OK;

    for (size_t i = 0; i < trainer->options.root->weights_of_count && status >= 0; i++) {
        bool loaded;
        Part part;

        if (name_in(trainer->options.root->weights_of[i].key, kiln_param_name(param)) == NULL)
            continue;
        status = open_part(trainer, i, &part, err);
        if (status >= 0) {
            find_prefix(&part);
            status = read_param(&part, param, &loaded, err);
        }
        close_part(&part);
    }
    return status;
}

/* Initializes a run from the weights of another: the option `weights`. */
#include "train/checkpoint/initial_weights.h"

#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "base/text.h"
#include "schema/bind.h"
#include "tensor/safetensors.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/read_tensor.h"
#include "train/trainer.h"

enum { MAX_NAMES = 6 }; /* that a message lists */

typedef struct Names {
    KilnText text;
    size_t n;
} Names;

static void add(Names *names, const char *format, ...) KILN_PRINTF(2, 3);
static void add(Names *names, const char *format, ...)
{
    char text[512];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (names->n++ < MAX_NAMES)
        kiln_text_printf(&names->text, "%s%s", names->n > 1 ? ", " : "", text);
    else if (names->n == MAX_NAMES + 1)
        kiln_text_append(&names->text, ", ...");
}

KilnStatus kiln_weights_find_file(const char *option, const char *weights, char **ret,
                                  KilnError *err)
{
    char *checkpoint = NULL;
    KilnStatus status = KILN_OK;

    if (kiln_is_dir(weights) || strcmp(weights, "last") == 0 || strcmp(weights, "best") == 0) {
        status = kiln_checkpoint_resolve(weights, "outputs", &checkpoint, err);
        if (status >= 0)
            *ret = kiln_path_join(checkpoint, KILN_CHECKPOINT_MODEL);
        else
            (void)kiln_error_prefix(err, "%s: ", option);
        free(checkpoint);
    } else {
        *ret = kiln_strdup(weights);
    }
    return status >= 0 && *ret == NULL ? kiln_error_nomem(err, strlen(weights)) : status;
}

/* How the tensors of the file and the network match. */
typedef struct Match {
    Names missing;      /* from the file */
    Names other_shapes; /* in the file than in the network */
    Names heads;        /* of another number of classes in the file */
    Names unused;       /* only in the file */
    size_t loaded;
    const char **spare; /* names that only the file has */
    size_t n_spare;
    int64_t classes_there, classes_here; /* of the last head */
} Match;

/* Tensors along the first axis; a scalar is one. */
static int64_t rows_of(const KilnParam *param)
{
    return param->shape.rank > 0 ? param->shape.dim[0] : 1;
}

/* The shape that the part of the parameter has in a file of another program. */
static KilnShape shape_in_file(const KilnParam *param, const KilnForeignTensor *part)
{
    KilnShape shape = *kiln_param_shape(param);

    if (shape.rank > 0)
        shape.dim[0] = part->rows;
    if (part->transposed) {
        shape.dim[0] = shape.dim[1];
        shape.dim[1] = part->rows;
    }
    return shape;
}

/* Whether the file's tensor has the shape of that part of the parameter. */
static bool part_fits(const KilnParam *param, const KilnForeignTensor *part,
                      const KilnStEntry *entry)
{
    KilnShape want = shape_in_file(param, part);

    if (want.rank == entry->shape.rank + 1 && part->rows == 1) /* a row [1, ...] */
        memmove(want.dim, want.dim + 1, (size_t)--want.rank * sizeof(want.dim[0]));
    return kiln_shape_equal(&want, &entry->shape);
}

/* Call `take` for each tensor of another program's names that fills rows of the parameter, in
 * order, until one fails. *ret_rows: how many rows are filled. */
typedef KilnStatus TakePart(const KilnSafetensors *file, const KilnStEntry *entry,
                            const KilnForeignTensor *part, KilnParam *param, KilnError *err);
static KilnStatus for_each_part(const KilnSafetensors *file, KilnParam *param, TakePart *take,
                                int64_t *ret_rows, KilnError *err)
{
    KilnStatus status = KILN_OK;

    *ret_rows = 0;
    for (const KilnForeignName *at = param->foreign; at != NULL && status >= 0; at = at->next) {
        const KilnStEntry *entry = kiln_safetensors_find(file, at->name);

        if (entry == NULL || at->part.row != *ret_rows || at->part.rows == 0 ||
            !part_fits(param, &at->part, entry))
            continue;
        *ret_rows += at->part.rows;
        if (take != NULL)
            status = take(file, entry, &at->part, param, err);
    }
    return status;
}

/* Whether tensors of other names hold the whole parameter. */
static bool is_foreign(const KilnSafetensors *file, KilnParam *param)
{
    int64_t rows;

    return for_each_part(file, param, NULL, &rows, NULL) >= 0 && param->foreign != NULL &&
           rows == rows_of(param);
}

/* The first of another program's names for the parameter, or a part of it, that the file has and
 * that does not fit; NULL: none. */
static const KilnForeignName *other_part(const KilnSafetensors *file, const KilnParam *param)
{
    for (const KilnForeignName *at = param->foreign; at != NULL; at = at->next) {
        const KilnStEntry *entry = at->part.rows > 0 ? kiln_safetensors_find(file, at->name) : NULL;

        if (entry != NULL && !part_fits(param, &at->part, entry))
            return at;
    }
    return NULL;
}

static bool is_named(const KilnTrainer *trainer, const char *name)
{
    for (size_t i = 0; i < kiln_params_count(trainer->params); i++) {
        const KilnParam *param = kiln_params_at(trainer->params, i);

        for (const KilnForeignName *at = param->foreign; at != NULL; at = at->next)
            if (strcmp(at->name, name) == 0)
                return true;
    }
    return false;
}

/* Collect the names that only the file has. */
static KilnStatus find_spare(const KilnTrainer *trainer, const KilnSafetensors *file, Match *match,
                             KilnError *err)
{
    const size_t n = kiln_safetensors_count(file);

    match->spare = calloc(n + 1, sizeof(*match->spare));
    if (match->spare == NULL)
        return kiln_error_nomem(err, (n + 1) * sizeof(*match->spare));
    for (size_t i = 0; i < n; i++) {
        const char *name = kiln_safetensors_at(file, i)->name;

        if (kiln_params_find(trainer->params, name) == NULL && !is_named(trainer, name))
            match->spare[match->n_spare++] = name;
    }
    return KILN_OK;
}

/* Whether the tensor is that of a head for another number of classes than `here`. */
static bool is_other_head(const KilnParam *param, KilnShape here, const KilnShape *there)
{
    if (!param->head || here.rank == 0 || here.rank != there->rank)
        return false;
    here.dim[0] = there->dim[0];
    return kiln_shape_equal(&here, there);
}

/* The file has the parameter, or that part of it, in another shape; `part` NULL: under its own
 * name. */
static void add_other_shape(const KilnParam *param, const KilnForeignName *part,
                            const KilnShape *there, Match *match)
{
    const KilnShape here = part != NULL ? shape_in_file(param, &part->part)
                                        : *kiln_param_shape(param);
    char text_here[KILN_SHAPE_TEXT], text_there[KILN_SHAPE_TEXT];

    if (is_other_head(param, here, there)) {
        add(&match->heads, "%s", kiln_param_name(param));
        match->classes_there = there->dim[0];
        match->classes_here = here.dim[0];
    } else {
        add(&match->other_shapes, "%s (%s%s%s in the file, %s in this network)",
            kiln_param_name(param), part != NULL ? part->name : "", part != NULL ? " is " : "",
            kiln_shape_text(there, text_there, sizeof(text_there)),
            kiln_shape_text(&here, text_here, sizeof(text_here)));
    }
}

static void add_missing(const KilnParam *param, Match *match)
{
    const char *near = match->missing.n < MAX_NAMES
                           ? kiln_nearest(kiln_param_name(param), match->spare, match->n_spare)
                           : NULL;

    if (near != NULL)
        add(&match->missing, "%s (nearest in the file: %s)", kiln_param_name(param), near);
    else
        add(&match->missing, "%s", kiln_param_name(param));
}

/* The parameter under another program's names. */
static void match_foreign(const KilnSafetensors *file, KilnParam *param, Match *match)
{
    const KilnForeignName *part = other_part(file, param);

    if (is_foreign(file, param))
        match->loaded++;
    else if (part != NULL)
        add_other_shape(param, part, &kiln_safetensors_find(file, part->name)->shape, match);
    else if (!param->is_adapter) /* they start from initial values, or come from lora.weights */
        add_missing(param, match);
}

static void match_params(const KilnTrainer *trainer, const KilnSafetensors *file, Match *match)
{
    for (size_t i = 0; i < kiln_params_count(trainer->params); i++) {
        KilnParam *param = kiln_params_at(trainer->params, i);
        const KilnStEntry *entry = kiln_safetensors_find(file, kiln_param_name(param));

        if (entry == NULL)
            match_foreign(file, param, match);
        else if (!kiln_shape_equal(&entry->shape, kiln_param_shape(param)))
            add_other_shape(param, NULL, &entry->shape, match);
        else
            match->loaded++;
    }
    for (size_t i = 0; i < match->n_spare; i++)
        add(&match->unused, "%s", match->spare[i]);
}

static void match_release(Match *match)
{
    kiln_text_release(&match->missing.text);
    kiln_text_release(&match->other_shapes.text);
    kiln_text_release(&match->heads.text);
    kiln_text_release(&match->unused.text);
    free(match->spare);
}

static const char *names_of(const Names *names)
{
    return names->text.data != NULL ? names->text.data : "";
}

/* Is the tensor of the file what the parameter is without the beginning of its name? */
static bool is_tail(const KilnSafetensors *file, const char *tail, KilnParam *param)
{
    const char *name = kiln_param_name(param);
    const size_t length = strlen(name), n = strlen(tail);
    const KilnStEntry *entry = kiln_safetensors_find(file, tail);

    return n + 1 < length && name[length - n - 1] == '.' && strcmp(name + length - n, tail) == 0 &&
           entry != NULL && kiln_shape_equal(&entry->shape, kiln_param_shape(param));
}

/* "image_encoder" where the file has "conv1.weight" and the network "image_encoder.conv1.weight":
 * the beginning of that name, *ret_length long. NULL: the file fits no part. */
static const char *find_part(const KilnTrainer *trainer, const KilnSafetensors *file,
                             const Match *match, int *ret_length)
{
    for (size_t i = 0; i < kiln_params_count(trainer->params); i++) {
        KilnParam *param = kiln_params_at(trainer->params, i);
        for (size_t k = 0; k < match->n_spare; k++)
            if (is_tail(file, match->spare[k], param)) {
                *ret_length = (int)(strlen(kiln_param_name(param)) - strlen(match->spare[k]) - 1);
                return kiln_param_name(param);
            }
    }
    return NULL;
}

static KilnStatus refuse(const KilnTrainer *trainer, const KilnSafetensors *file,
                         const Match *match, const char *path, KilnError *err)
{
    const Names *other_shapes = &match->other_shapes, *missing = &match->missing,
                *unused = &match->unused;
    int length = 0;
    const char *part = match->loaded == 0 ? find_part(trainer, file, match, &length) : NULL;
    KilnText text = { 0 };

    kiln_text_printf(&text,
                     match->loaded == 0 ? "weights: nothing in %s fits this network"
                                        : "weights: %s does not fit this network",
                     path);
    if (other_shapes->n > 0)
        kiln_text_printf(&text, "; different shape: %s", names_of(other_shapes));
    if (missing->n > 0)
        kiln_text_printf(&text, "; not in the file: %s", names_of(missing));
    if (unused->n > 0)
        kiln_text_printf(&text, "; only in the file: %s", names_of(unused));
    if (match->loaded > 0)
        kiln_text_printf(
            &text,
            "\n  weights_strict=false loads the %zu that fit and initializes the others randomly",
            match->loaded);
    if (part != NULL)
        kiln_text_printf(&text,
                         "\n  to load it into a part: +weights_of.%.*s=%s in place of weights",
                         length, part, trainer->options.root->weights);
    kiln_error_set(err, KILN_E_FORMAT, "%s", text.data != NULL ? text.data : "weights");
    kiln_text_release(&text);
    return KILN_E_FORMAT;
}

static void report(KilnTrainer *trainer, const Match *match, const char *path)
{
    size_t n = 0;

    for (size_t i = 0; i < kiln_params_count(trainer->params); i++)
        n += !kiln_params_at(trainer->params, i)->is_adapter;
    kiln_output_print(&trainer->output, "weights: %zu of %zu tensors from %s", match->loaded, n,
                      path);
    if (match->heads.n > 0)
        kiln_output_print(&trainer->output,
                          "weights: %lld classes in the file, %lld here; initialized randomly: %s",
                          (long long)match->classes_there, (long long)match->classes_here,
                          names_of(&match->heads));
    if (match->other_shapes.n > 0)
        kiln_output_print(&trainer->output, "weights: different shape, initialized randomly: %s",
                          names_of(&match->other_shapes));
    if (match->missing.n > 0)
        kiln_output_print(&trainer->output, "weights: not in the file, initialized randomly: %s",
                          names_of(&match->missing));
    if (match->unused.n > 0)
        kiln_output_print(&trainer->output, "weights: not used: %s", names_of(&match->unused));
}

/* Read a matrix whose axes the file has the other way round. */
static KilnStatus read_transposed(const KilnSafetensors *file, const KilnStEntry *entry,
                                  KilnDType dtype, KilnLocation to, KilnError *err)
{
    const size_t size = kiln_dtype_size(dtype);
    const size_t in = (size_t)entry->shape.dim[0], out = (size_t)entry->shape.dim[1];
    char *data = malloc(2 * in * out * size);

    if (data == NULL)
        return kiln_error_nomem(err, 2 * in * out * size);
    char *turned = data + in * out * size;
    KilnStatus status = kiln_safetensors_read(file, entry, dtype, data, err);
    for (size_t o = 0; o < out && status >= 0; o++)
        for (size_t i = 0; i < in; i++)
            memcpy(turned + (o * in + i) * size, data + (i * out + o) * size, size);
    if (status >= 0)
        kiln_buffer_upload(to.buffer, to.offset, turned, in * out * size);
    free(data);
    return status;
}

static KilnStatus read_part(const KilnSafetensors *file, const KilnStEntry *entry,
                            const KilnForeignTensor *part, KilnParam *param, KilnError *err)
{
    const KilnDType dtype = kiln_param_dtype(param);
    const int64_t row = param->count / rows_of(param);
    KilnLocation to = kiln_param_location(param);

    to.offset += (size_t)(part->row * row) * kiln_dtype_size(dtype);
    return part->transposed ? read_transposed(file, entry, dtype, to, err)
                            : kiln_read_tensor(file, entry, dtype, to, err);
}

KilnStatus kiln_weights_read_param(const KilnSafetensors *file, KilnParam *param, KilnError *err)
{
    const KilnStEntry *entry = kiln_safetensors_find(file, kiln_param_name(param));
    int64_t rows;

    if (entry == NULL)
        return is_foreign(file, param) ? for_each_part(file, param, read_part, &rows, err)
                                       : KILN_OK;
    if (!kiln_shape_equal(&entry->shape, kiln_param_shape(param)))
        return KILN_OK;
    return kiln_read_tensor(file, entry, kiln_param_dtype(param), kiln_param_location(param), err);
}

KilnStatus kiln_weights_load(KilnTrainer *trainer, KilnError *err)
{
    const KilnRootOptions *root = trainer->options.root;
    KilnSafetensors *file = NULL;
    char *path = NULL;
    Match match = { 0 };

    if (root->weights == NULL)
        return kiln_part_weights_load(trainer, err);
    KilnStatus status = kiln_weights_find_file("weights", root->weights, &path, err);
    if (status >= 0)
        status = kiln_safetensors_open(path, &file, err);
    if (status >= 0)
        status = find_spare(trainer, file, &match, err);
    if (status >= 0) {
        match_params(trainer, file, &match);
        const bool all = match.other_shapes.n + match.missing.n + match.unused.n == 0;
        if (match.loaded == 0 || (root->weights_strict && !all))
            status = refuse(trainer, file, &match, path, err);
    }
    for (size_t i = 0; i < kiln_params_count(trainer->params) && status >= 0; i++)
        status = kiln_weights_read_param(file, kiln_params_at(trainer->params, i), err);
    if (status >= 0)
        report(trainer, &match, path);
    match_release(&match);
    kiln_safetensors_close(file);
    free(path);
    return status >= 0 ? kiln_part_weights_load(trainer, err)
                       : kiln_error_about_key(trainer->config, "weights", err);
}

KilnStatus kiln_trainer_rewind(KilnTrainer *trainer, KilnParam *param, KilnError *err)
{
    const char *weights = trainer->options.root->weights;
    KilnSafetensors *file = NULL;
    char *path = NULL;
    KilnStatus status = kiln_param_redraw(param, err);

    if (status < 0 || weights == NULL)
        return status < 0 ? status : kiln_part_weights_read_param(trainer, param, err);
    status = kiln_weights_find_file("weights", weights, &path, err);
    if (status >= 0)
        status = kiln_safetensors_open(path, &file, err);
    if (status >= 0)
        status = kiln_weights_read_param(file, param, err);
    kiln_safetensors_close(file);
    free(path);
    return status < 0 ? status : kiln_part_weights_read_param(trainer, param, err);
}

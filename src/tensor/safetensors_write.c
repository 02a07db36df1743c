/* Writing safetensors. */
#include "base/json.h"
#include "tensor/safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/system/file.h"

/* Alignment of the data, as the format requires. */
enum { ALIGN = 8 };

const char *kiln_safetensors_name(KilnDType dtype)
{
    switch (dtype) {
    case KILN_F32:
        return "F32";
    case KILN_F64:
        return "F64";
    case KILN_I32:
        return "I32";
    case KILN_I64:
        return "I64";
    case KILN_U8:
        return "U8";
    case KILN_BF16:
        return "BF16";
    }
    return NULL;
}

static size_t view_bytes(const KilnStView *view)
{
    return (size_t)kiln_shape_count(&view->shape) * kiln_dtype_size(view->dtype);
}

/* ---- The header ---------------------------------------------------------------- */

static KilnStatus check_view(const char *path, const KilnStView *view, KilnError *err)
{
    char text[KILN_SHAPE_TEXT];

    if (kiln_safetensors_name(view->dtype) == NULL || kiln_shape_count(&view->shape) < 0)
        return kiln_error_set(err, KILN_E_INTERNAL, "%s: %s: %s %s cannot be written", path,
                              view->name, kiln_dtype_name(view->dtype),
                              kiln_shape_text(&view->shape, text, sizeof(text)));
    if (strcmp(view->name, "__metadata__") == 0)
        return kiln_error_set(err, KILN_E_INTERNAL, "%s: a tensor cannot be named __metadata__",
                              path);
    return KILN_OK;
}

/* {"dtype": ..., "shape": [...], "data_offsets": [...]}; NULL when out of memory. */
static json_t *entry_json(const KilnStView *view, size_t offset)
{
    json_t *shape = json_array();
    int failed = shape == NULL ? -1 : 0;

    for (int i = 0; i < view->shape.rank; i++)
        failed |= json_array_append_new(shape, json_integer(view->shape.dim[i]));
    if (failed != 0) {
        json_decref(shape);
        return NULL;
    }
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", kiln_safetensors_name(view->dtype), "shape",
                     shape, "data_offsets", (json_int_t)offset,
                     (json_int_t)(offset + view_bytes(view)));
}

static json_t *metadata_json(const KilnStText *metadata, size_t n)
{
    json_t *texts = json_pack("{s:s}", "format", "pt");
    int failed = texts == NULL ? -1 : 0;

    for (size_t i = 0; i < n; i++)
        failed |= json_object_set_new(texts, metadata[i].key, json_string(metadata[i].value));
    if (failed != 0) {
        json_decref(texts);
        return NULL;
    }
    return texts;
}

/* The header as text, owned by the caller. */
static KilnStatus header_text(const char *path, const KilnStView *const *order, size_t n,
                              const KilnStText *metadata, size_t n_metadata, char **ret,
                              KilnError *err)
{
    json_t *header = json_object();
    KilnStatus status = KILN_OK;
    size_t offset = 0;
    int failed = json_object_set_new(header, "__metadata__", metadata_json(metadata, n_metadata));

    for (size_t i = 0; i < n && status >= 0 && failed == 0; i++) {
        if (json_object_get(header, order[i]->name) != NULL)
            status = kiln_error_set(err, KILN_E_INTERNAL, "%s: two tensors are named %s", path,
                                    order[i]->name);
        failed = json_object_set_new(header, order[i]->name, entry_json(order[i], offset));
        offset += view_bytes(order[i]);
    }
    char *text = status >= 0 && failed == 0 ? kiln_json_dump(header, JSON_COMPACT) : NULL;
    json_decref(header);
    if (status >= 0 && text == NULL)
        status = kiln_error_set(err, KILN_E_NOMEM,
                                "%s: cannot make the header: out of memory, or a name is not "
                                "valid UTF-8",
                                path);
    if (status >= 0)
        *ret = text;
    return status;
}

/* ---- The file ------------------------------------------------------------------ */

static bool write_header(int fd, const char *text)
{
    static const char spaces[ALIGN] = "        ";
    unsigned char bytes[8];
    size_t length = strlen(text), padding = (ALIGN - length % ALIGN) % ALIGN;

    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (unsigned char)((uint64_t)(length + padding) >> 8 * i & 255);
    return kiln_fd_write(fd, bytes, sizeof(bytes)) && kiln_fd_write(fd, text, length) &&
           kiln_fd_write(fd, spaces, padding);
}

/* Removes an incomplete file, but never a device or pipe that was given as the path. */
static void discard(int fd, const char *path)
{
    struct stat st;

    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        unlink(path);
    close(fd);
}

static KilnStatus write_file(const char *path, const char *header, const KilnStView *const *order,
                             size_t n, KilnError *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

    if (fd < 0)
        return kiln_error_errno(err, path);
    bool ok = write_header(fd, header);
    for (size_t i = 0; i < n && ok; i++)
        ok = kiln_fd_write(fd, order[i]->data, view_bytes(order[i]));
    if (!ok || fsync(fd) != 0) {
        KilnStatus status = kiln_error_errno(err, path);

        discard(fd, path);
        return status;
    }
    if (close(fd) != 0) {
        KilnStatus status = kiln_error_errno(err, path);

        unlink(path);
        return status;
    }
    return KILN_OK;
}

/* Largest element types first, otherwise in the given order, so that every tensor is aligned. */
static void order_views(const KilnStView *tensors, size_t n, const KilnStView **order)
{
    size_t count = 0;

    for (size_t size = 8; size > 0; size /= 2) {
        for (size_t i = 0; i < n; i++) {
            if (kiln_dtype_size(tensors[i].dtype) == size)
                order[count++] = &tensors[i];
        }
    }
}

KilnStatus kiln_safetensors_write(const char *path, const KilnStView *tensors, size_t n,
                                  const KilnStText *metadata, size_t n_metadata, KilnError *err)
{
    KilnStatus status = KILN_OK;
    char *header = NULL;

    for (size_t i = 0; i < n && status >= 0; i++)
        status = check_view(path, &tensors[i], err);
    if (status < 0)
        return status;
    const KilnStView **order = calloc(n + 1, sizeof(*order));
    if (order == NULL)
        return kiln_error_nomem(err, (n + 1) * sizeof(*order));
    order_views(tensors, n, order);
    status = header_text(path, order, n, metadata, n_metadata, &header, err);
    if (status >= 0)
        status = write_file(path, header, order, n, err);
    free(header);
    free(order);
    return status;
}

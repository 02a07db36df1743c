/* Reading safetensors: checks the whole header when the file is opened, reads data on demand. Does
 * not map the file, since a mapped file that shrinks would kill the process. */
#include "tensor/safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/system/file.h"
#include "base/text.h"
#include "tensor/bf16.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "files are read as they lie");

/* The header of a model with 100 000 tensors takes some 12 MiB. */
enum { LENGTH_BYTES = 8, MAX_HEADER = 32 << 20, PART = 16384 };

struct KilnSafetensors {
    int fd;
    char *path;
    json_t *header;
    KilnStEntry *entries; /* in order of the data; names belong to the header */
    size_t count;
    uint64_t data_start; /* in the file */
};

/* The format's types and their sizes; `readable` if kiln has a matching type. */
static const struct {
    const char *name;
    uint64_t size;
    bool readable;
    KilnDType as;
} dtypes[] = {
    { "F32", 4, true, KILN_F32 },     { "F16", 2, true, KILN_F32 },
    { "BF16", 2, true, KILN_F32 },    { "F64", 8, true, KILN_F32 },
    { "I64", 8, true, KILN_I64 },     { "I32", 4, true, KILN_I32 },
    { "U8", 1, true, KILN_U8 },       { "BOOL", 1, false, KILN_U8 },
    { "I8", 1, false, KILN_U8 },      { "I16", 2, false, KILN_U8 },
    { "U16", 2, false, KILN_U8 },     { "U32", 4, false, KILN_U8 },
    { "U64", 8, false, KILN_U8 },     { "C64", 8, false, KILN_U8 },
    { "F8_E5M2", 1, false, KILN_U8 }, { "F8_E4M3", 1, false, KILN_U8 },
    { "F8_E8M0", 1, false, KILN_U8 },
};

static size_t dtype_find(const char *name)
{
    size_t i = 0;

    while (i < KILN_COUNT(dtypes) && strcmp(dtypes[i].name, name) != 0)
        i++;
    return i;
}

/* ---- The header ---------------------------------------------------------------- */

static KilnStatus read_at(const KilnSafetensors *file, void *data, uint64_t size, uint64_t offset,
                          KilnError *err)
{
    char *to = data;

    while (size > 0) {
        size_t want = size < (1u << 30) ? (size_t)size : 1u << 30;
        ssize_t got = pread(file->fd, to, want, (off_t)offset);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return kiln_error_errno(err, file->path);
        if (got == 0)
            return kiln_error_set(err, KILN_E_FORMAT, "%s: truncated: ends at byte %" PRIu64,
                                  file->path, offset);
        to += got;
        size -= (uint64_t)got;
        offset += (uint64_t)got;
    }
    return KILN_OK;
}

/* A size or offset: a non-negative integer. */
static bool is_count(const json_t *value)
{
    return json_is_integer(value) && json_integer_value(value) >= 0;
}

static KilnStatus read_shape(const KilnSafetensors *file, const char *name, const json_t *shape,
                             KilnStEntry *entry, KilnError *err)
{
    size_t rank = json_array_size(shape);

    if (!json_is_array(shape))
        return kiln_error_set(err, KILN_E_FORMAT, "%s: %s: has no list \"shape\"", file->path,
                              name);
    if (rank > KILN_MAX_RANK)
        return kiln_error_set(err, KILN_E_FORMAT, "%s: %s: has %zu axes; kiln reads up to %d",
                              file->path, name, rank, KILN_MAX_RANK);
    entry->shape.rank = (int)rank;
    for (size_t i = 0; i < rank; i++) {
        const json_t *size = json_array_get(shape, i);

        if (!is_count(size))
            return kiln_error_set(err, KILN_E_FORMAT,
                                  "%s: %s: \"shape\" has a value that is not a size", file->path,
                                  name);
        entry->shape.dim[i] = json_integer_value(size);
    }
    return KILN_OK;
}

static KilnStatus read_entry(const KilnSafetensors *file, const char *name, const json_t *value,
                             KilnStEntry *entry, KilnError *err)
{
    const char *dtype = json_string_value(json_object_get(value, "dtype"));
    const json_t *offsets = json_object_get(value, "data_offsets");

    *entry = (KilnStEntry) { .name = name, .dtype = dtype };
    if (dtype == NULL)
        return kiln_error_set(err, KILN_E_FORMAT, "%s: %s: has no text \"dtype\"", file->path,
                              name);
    if (json_array_size(offsets) != 2 || !is_count(json_array_get(offsets, 0)) ||
        !is_count(json_array_get(offsets, 1)))
        return kiln_error_set(err, KILN_E_FORMAT, "%s: %s: has no \"data_offsets\" [begin, end]",
                              file->path, name);
    entry->begin = (uint64_t)json_integer_value(json_array_get(offsets, 0));
    entry->end = (uint64_t)json_integer_value(json_array_get(offsets, 1));
    KilnStatus status = read_shape(file, name, json_object_get(value, "shape"), entry, err);
    if (status < 0)
        return status;
    size_t type = dtype_find(dtype);
    if (type == KILN_COUNT(dtypes))
        return kiln_error_set(err, KILN_E_FORMAT, "%s: %s: unknown dtype \"%s\"", file->path, name,
                              dtype);
    int64_t count = kiln_shape_count(&entry->shape);
    uint64_t bytes;
    if (count < 0 || __builtin_mul_overflow((uint64_t)count, dtypes[type].size, &bytes) ||
        entry->end < entry->begin || entry->end - entry->begin != bytes)
        return kiln_error_set(err, KILN_E_FORMAT,
                              "%s: %s: data_offsets [%" PRIu64 ", %" PRIu64
                              "] do not match dtype and shape",
                              file->path, name, entry->begin, entry->end);
    return KILN_OK;
}

static int by_data(const void *a, const void *b)
{
    const KilnStEntry *x = a, *y = b;

    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    if (x->end != y->end)
        return x->end < y->end ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* The format requires that tensors cover the data from its first to its last byte, without gaps or
 * overlaps. */
static KilnStatus check_cover(const KilnSafetensors *file, uint64_t size, KilnError *err)
{
    uint64_t at = 0;

    for (size_t i = 0; i < file->count; i++) {
        const KilnStEntry *entry = &file->entries[i];

        if (entry->begin != at)
            return kiln_error_set(
                err, KILN_E_FORMAT,
                "%s: %s: its data begins at byte %" PRIu64 " and %s at %" PRIu64, file->path,
                entry->name, entry->begin,
                entry->begin < at ? "overlaps what ends" : "leaves a hole that begins", at);
        at = entry->end;
    }
    if (at > size)
        return kiln_error_set(err, KILN_E_FORMAT,
                              "%s: truncated: the header names %" PRIu64
                              " bytes of data, the file has %" PRIu64,
                              file->path, at, size);
    if (at < size)
        return kiln_error_set(err, KILN_E_FORMAT,
                              "%s: %" PRIu64 " bytes of data belong to no tensor", file->path,
                              size - at);
    return KILN_OK;
}

static KilnStatus check_metadata(const KilnSafetensors *file, json_t *metadata, KilnError *err)
{
    const char *key;
    json_t *value;

    if (!json_is_object(metadata))
        return kiln_error_set(err, KILN_E_FORMAT, "%s: __metadata__ is not a mapping", file->path);
    json_object_foreach(metadata, key, value)
    {
        if (!json_is_string(value))
            return kiln_error_set(err, KILN_E_FORMAT, "%s: __metadata__: %s is not text",
                                  file->path, key);
    }
    return KILN_OK;
}

static KilnStatus read_entries(KilnSafetensors *file, uint64_t data_size, KilnError *err)
{
    size_t n = json_object_size(file->header);
    const char *name;
    json_t *value;

    file->entries = calloc(n + 1, sizeof(*file->entries));
    if (file->entries == NULL)
        return kiln_error_nomem(err, (n + 1) * sizeof(*file->entries));
    json_object_foreach(file->header, name, value)
    {
        KilnStatus status;

        if (strcmp(name, "__metadata__") == 0)
            status = check_metadata(file, value, err);
        else
            status = read_entry(file, name, value, &file->entries[file->count++], err);
        if (status < 0)
            return status;
    }
    qsort(file->entries, file->count, sizeof(*file->entries), by_data);
    return check_cover(file, data_size, err);
}

static KilnStatus parse_header(KilnSafetensors *file, uint64_t length, KilnError *err)
{
    char *text = malloc((size_t)length);
    json_error_t why;

    if (text == NULL)
        return kiln_error_nomem(err, (size_t)length);
    KilnStatus status = read_at(file, text, length, LENGTH_BYTES, err);
    if (status >= 0) {
        file->header = json_loadb(text, (size_t)length, JSON_REJECT_DUPLICATES, &why);
        if (file->header == NULL)
            status = kiln_error_set(err, KILN_E_FORMAT, "%s: header: %s (byte %d)", file->path,
                                    why.text, why.position);
        else if (!json_is_object(file->header))
            status = kiln_error_set(err, KILN_E_FORMAT, "%s: the header is not a mapping",
                                    file->path);
    }
    free(text);
    return status;
}

static KilnStatus read_header(KilnSafetensors *file, KilnError *err)
{
    unsigned char bytes[LENGTH_BYTES];
    uint64_t length = 0, size;
    struct stat st;

    if (fstat(file->fd, &st) != 0)
        return kiln_error_errno(err, file->path);
    size = (uint64_t)st.st_size;
    if (size < LENGTH_BYTES)
        return kiln_error_set(err, KILN_E_FORMAT,
                              "%s: not a safetensors file: %" PRIu64 " bytes are too few",
                              file->path, size);
    KilnStatus status = read_at(file, bytes, sizeof(bytes), 0, err);
    if (status < 0)
        return status;
    for (int i = LENGTH_BYTES; i-- > 0;)
        length = length << 8 | bytes[i];
    if (length > MAX_HEADER)
        return kiln_error_set(err, KILN_E_FORMAT,
                              "%s: is no safetensors file: its first 8 bytes announce a header of "
                              "%" PRIu64 " bytes; at most %d are read",
                              file->path, length, MAX_HEADER);
    if (length > size - LENGTH_BYTES)
        return kiln_error_set(err, KILN_E_FORMAT,
                              "%s: truncated: the header should have %" PRIu64
                              " bytes, the file has %" PRIu64 " after its length",
                              file->path, length, size - LENGTH_BYTES);
    file->data_start = LENGTH_BYTES + length;
    status = parse_header(file, length, err);
    return status < 0 ? status : read_entries(file, size - file->data_start, err);
}

/* ---- Opening and lookups -------------------------------------------------------- */

KilnStatus kiln_safetensors_open(const char *path, KilnSafetensors **ret, KilnError *err)
{
    KilnSafetensors *file = calloc(1, sizeof(*file));
    KilnStatus status;

    if (file == NULL)
        return kiln_error_nomem(err, sizeof(*file));
    file->fd = -1;
    file->path = kiln_strdup(path);
    status = file->path != NULL ? kiln_file_open_regular(path, &file->fd, err)
                                : kiln_error_nomem(err, strlen(path));
    if (status >= 0)
        status = read_header(file, err);
    if (status < 0)
        kiln_safetensors_close(file);
    else
        *ret = file;
    return status;
}

void kiln_safetensors_close(KilnSafetensors *file)
{
    if (file == NULL)
        return;
    if (file->fd >= 0)
        close(file->fd);
    json_decref(file->header);
    free(file->entries);
    free(file->path);
    free(file);
}

size_t kiln_safetensors_count(const KilnSafetensors *file)
{
    return file->count;
}

const KilnStEntry *kiln_safetensors_at(const KilnSafetensors *file, size_t i)
{
    return i < file->count ? &file->entries[i] : NULL;
}

const KilnStEntry *kiln_safetensors_find(const KilnSafetensors *file, const char *name)
{
    for (size_t i = 0; i < file->count; i++) {
        if (strcmp(file->entries[i].name, name) == 0)
            return &file->entries[i];
    }
    return NULL;
}

const char *kiln_safetensors_metadata(const KilnSafetensors *file, const char *key)
{
    return json_string_value(json_object_get(json_object_get(file->header, "__metadata__"), key));
}

bool kiln_safetensors_dtype(const KilnStEntry *entry, KilnDType *ret)
{
    size_t type = dtype_find(entry->dtype);

    if (type == KILN_COUNT(dtypes) || !dtypes[type].readable)
        return false;
    *ret = dtypes[type].as;
    return true;
}

/* ---- Data ---------------------------------------------------------------------- */

static float float_of_bits(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

static float float_of_half(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 31,
             fraction = half & 1023;

    if (exponent == 31)
        return float_of_bits(sign | 0x7f800000u | fraction << 13);
    if (exponent == 0) { /* zero and subnormals: fraction times 2^-24, exactly */
        float magnitude = (float)fraction * 0x1p-24f;

        return sign != 0 ? -magnitude : magnitude;
    }
    return float_of_bits(sign | (exponent + 112) << 23 | fraction << 13);
}

/* Bytes of a file. */
typedef union Part {
    unsigned char bytes[PART];
    uint16_t halves[PART / sizeof(uint16_t)];
    float floats[PART / sizeof(float)];
} Part;

/* Values of the file's type `dtype`. Each type has a loop of its own, so that they vectorize. */
static void read_values(double *to, const Part *part, const char *dtype, size_t n)
{
    if (strcmp(dtype, "F64") == 0)
        memcpy(to, part->bytes, n * sizeof(*to));
    else if (strcmp(dtype, "F32") == 0)
        for (size_t i = 0; i < n; i++)
            to[i] = (double)part->floats[i];
    else if (strcmp(dtype, "F16") == 0)
        for (size_t i = 0; i < n; i++)
            to[i] = (double)float_of_half(part->halves[i]);
    else
        for (size_t i = 0; i < n; i++)
            to[i] = (double)kiln_bf16_to(part->halves[i]);
}

/* Values from element `at` on, as `dtype`. */
static void write_values(void *to, size_t at, KilnDType dtype, const double *values, size_t n)
{
    double *doubles = to;
    float *floats = to;
    uint16_t *halves = to;

    if (dtype == KILN_F64)
        memcpy(doubles + at, values, n * sizeof(*values));
    else if (dtype == KILN_BF16)
        for (size_t i = 0; i < n; i++)
            halves[at + i] = kiln_bf16_of((float)values[i]);
    else
        for (size_t i = 0; i < n; i++)
            floats[at + i] = (float)values[i];
}

static KilnStatus read_converted(const KilnSafetensors *file, const KilnStEntry *entry, size_t size,
                                 KilnDType dtype, void *data, KilnError *err)
{
    Part part;
    double values[PART / sizeof(uint16_t)];
    size_t at_element = 0;

    for (uint64_t at = entry->begin; at < entry->end; at += sizeof(part)) {
        const size_t bytes = entry->end - at < sizeof(part) ? (size_t)(entry->end - at)
                                                            : sizeof(part);
        const size_t n = bytes / size;
        KilnStatus status = read_at(file, part.bytes, bytes, file->data_start + at, err);

        if (status < 0)
            return status;
        read_values(values, &part, entry->dtype, n);
        write_values(data, at_element, dtype, values, n);
        at_element += n;
    }
    return KILN_OK;
}

KilnStatus kiln_safetensors_read(const KilnSafetensors *file, const KilnStEntry *entry,
                                 KilnDType dtype, void *data, KilnError *err)
{
    size_t type = dtype_find(entry->dtype);
    const bool readable = type < KILN_COUNT(dtypes) && dtypes[type].readable;
    const bool same = readable && strcmp(entry->dtype, kiln_safetensors_name(dtype)) == 0;
    const bool converts = readable && dtypes[type].as == KILN_F32 &&
                          (dtype == KILN_F32 || dtype == KILN_BF16 || dtype == KILN_F64);

    if (!same && !converts)
        return kiln_error_set(err, KILN_E_TYPE, "%s: %s: is %s and cannot be read as %s",
                              file->path, entry->name, entry->dtype, kiln_dtype_name(dtype));
    if (!same)
        return read_converted(file, entry, (size_t)dtypes[type].size, dtype, data, err);
    return read_at(file, data, entry->end - entry->begin, file->data_start + entry->begin, err);
}

bool kiln_safetensors_hash(const KilnSafetensors *file, const KilnStEntry *entry,
                           uint64_t *ret_hash)
{
    const uint64_t size = entry->end - entry->begin;
    void *data = malloc((size_t)size + 1);
    const bool good = data != NULL &&
                      read_at(file, data, size, file->data_start + entry->begin, NULL) >= 0;

    if (good)
        *ret_hash = XXH3_64bits(data, (size_t)size);
    free(data);
    return good;
}

/* Shapes and element types. */
#include <inttypes.h>
#include <stdio.h>

#include "kiln/tensor.h"

/* One row per KilnDType, in its order. */
static const struct {
    const char *name;
    size_t size;
} dtypes[] = {
    [KILN_F32] = { "f32", 4 }, [KILN_I32] = { "i32", 4 }, [KILN_U8] = { "u8", 1 },
    [KILN_I64] = { "i64", 8 }, [KILN_F64] = { "f64", 8 }, [KILN_BF16] = { "bf16", 2 },
};

size_t kiln_dtype_size(KilnDType dtype)
{
    return (size_t)dtype < KILN_COUNT(dtypes) ? dtypes[dtype].size : 0;
}

const char *kiln_dtype_name(KilnDType dtype)
{
    return (size_t)dtype < KILN_COUNT(dtypes) ? dtypes[dtype].name : "unknown";
}

int64_t kiln_shape_count(const KilnShape *shape)
{
    int64_t count = 1;
    bool empty = false;

    for (int i = 0; i < shape->rank; i++) {
        if (shape->dim[i] < 0)
            return -1;
        if (shape->dim[i] == 0)
            empty = true;
        else if (__builtin_mul_overflow(count, shape->dim[i], &count))
            return -1;
    }
    return empty ? 0 : count;
}

bool kiln_shape_equal(const KilnShape *a, const KilnShape *b)
{
    if (a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++) {
        if (a->dim[i] != b->dim[i])
            return false;
    }
    return true;
}

const char *kiln_shape_text(const KilnShape *shape, char *buf, size_t size)
{
    size_t used = 0;

    if (size == 0)
        return buf;
    for (int i = -1; i <= shape->rank && used < size; i++) {
        int put;

        if (i < 0)
            put = snprintf(buf + used, size - used, "[");
        else if (i == shape->rank)
            put = snprintf(buf + used, size - used, "]");
        else
            put = snprintf(buf + used, size - used, "%s%" PRId64, i > 0 ? ", " : "", shape->dim[i]);
        if (put < 0)
            break;
        used += (size_t)put;
    }
    return buf;
}

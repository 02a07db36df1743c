/* Raw samples: what a user or another program has before it is features, such as a file, its bytes,
 * a text or numbers. A datamodule declares which of these it takes (KilnDataModuleOps.raw_fields)
 * and makes features of them (KilnDataModuleOps.preprocess). */
#ifndef KILN_RAW_H
#define KILN_RAW_H

#include "kiln/base.h"
#include "kiln/tensor.h"

/* What a value is, and the members of KilnRawValue that hold it. Bits, since a field may take
 * several. */
typedef enum KilnRawType {
    KILN_RAW_PATH = 1,   /* `text`: the path of a file */
    KILN_RAW_BYTES = 2,  /* `data`, `bytes`: the content of a file */
    KILN_RAW_TEXT = 4,   /* `text`: UTF-8 */
    KILN_RAW_NUMBER = 8, /* `number` */
    KILN_RAW_ARRAY = 16, /* `data`, `dtype`, `shape`: numbers in row-major order */
} KilnRawType;

/* The name of one type ("path", "bytes", "text", "number", "array"); NULL for anything else. */
KILN_API const char *kiln_raw_type_name(unsigned type);

/* One named value that preprocessing takes. */
typedef struct KilnRawField {
    const char *name;
    unsigned types; /* KilnRawType: it takes any of them */
    bool optional;
    const char *help; /* what it is: "a PNG image" */
    /* Of KILN_RAW_PATH: the endings of its files in small letters, the last entry NULL: { ".png",
     * NULL }. A folder's other files are left out. NULL: any file. */
    const char *const *endings;
} KilnRawField;

/* One value of a raw sample. What it points to is borrowed for the call that takes it. */
typedef struct KilnRawValue {
    const char *name; /* NULL: of the only field that is not optional */
    KilnRawType type;
    const char *text;
    double number;
    const void *data;
    size_t bytes;
    KilnDType dtype;
    KilnShape shape; /* of one sample, without a batch axis */
} KilnRawValue;

typedef struct KilnRawSample {
    const KilnRawValue *values;
    size_t n_values;
} KilnRawSample;

/* Sort the values of `raw` by the field that each is for: ret[n_fields] is in the order of
 * `fields`, and the type of an optional field without a value is 0. KILN_E_MISSING, KILN_E_TYPE or
 * KILN_E_KEY if a value is missing, has a type that its field does not take, or is for no
 * field; KILN_E_RANGE if a field has two. Messages list what `fields` take. */
KILN_API KILN_NODISCARD KilnStatus kiln_raw_match(const KilnRawField *fields, size_t n_fields,
                                                  const KilnRawSample *raw, KilnRawValue *ret,
                                                  KilnError *err);

/* Write the elements of `value`, an array or a number, to `to` as `dtype`. KILN_E_RANGE if one
 * can't be represented: f32 that is no whole number as an integer, or out of its range. */
KILN_API KILN_NODISCARD KilnStatus kiln_raw_convert(const KilnRawValue *value, KilnDType dtype,
                                                    void *to, KilnError *err);

/* Raw samples of a user's file or folder. */
typedef struct KilnRawSet {
    int64_t count;
    void *ctx; /* borrowed from the datamodule until the next open_input, or release */
    /* Read sample `index`; runs in several threads at once. The sample and what it points to are
     * valid until `done`, or, without one, as long as the set. */
    KilnStatus (*get)(void *ctx, int64_t index, KilnRawSample *ret, KilnError *err);
    /* Optional: free what a successful `get` allocated for this sample. */
    void (*done)(void *ctx, KilnRawSample *sample);
    /* Optional: a name of sample `index` ("questions.jsonl:7"), for messages and predictions. */
    const char *(*name)(void *ctx, int64_t index);
} KilnRawSet;

#endif

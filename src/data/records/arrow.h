/* Arrow's columns in memory, and what libkiln-parquet gives of a Parquet file. C and C++ share this
 * header. */
#ifndef KILN_DATA_RECORDS_ARROW_H
#define KILN_DATA_RECORDS_ARROW_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The C data interface, https://arrow.apache.org/docs/format/CDataInterface.html, as Arrow's own
 * headers have it. */
#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE

struct ArrowSchema {
    const char *format;
    const char *name;
    const char *metadata;
    int64_t flags;
    int64_t n_children;
    struct ArrowSchema **children;
    struct ArrowSchema *dictionary;
    void (*release)(struct ArrowSchema *);
    void *private_data;
};

struct ArrowArray {
    int64_t length;
    int64_t null_count;
    int64_t offset;
    int64_t n_buffers;
    int64_t n_children;
    const void **buffers;
    struct ArrowArray **children;
    struct ArrowArray *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};

#endif

/* An open Parquet file. */
typedef struct KilnArrowFile KilnArrowFile;

#define KILN_ARROW_LIBRARY 1 /* changes with the struct below */

/* What libkiln-parquet exports, as kiln_arrow_library. Functions return 0, or -1 with a message in
 * message [size]. */
typedef struct KilnArrowLibrary {
    int library;         /* KILN_ARROW_LIBRARY */
    const char *version; /* of Arrow: "26.0.1" */
    /* The schema, of a struct with a child for each column, is released by the caller. */
    int (*open)(const char *path, KilnArrowFile **ret, struct ArrowSchema *ret_schema,
                int64_t *ret_rows, char *message, size_t size);
    /* The next rows, which the caller releases; release is NULL after the last ones. */
    int (*next)(KilnArrowFile *file, struct ArrowArray *ret, char *message, size_t size);
    void (*close)(KilnArrowFile *file);
} KilnArrowLibrary;

#ifdef __cplusplus
}
#endif
#endif

/* Options tables: the types that options can have, the rows, and the macros that write them.
 * Checking, defaults, help, completion and loading of a component's options are all derived from
 * its one table. */
#ifndef KILN_FIELD_H
#define KILN_FIELD_H

#include "kiln/base.h"

/* Kinds of components. A kind's name is also its config group's usual name. */
#define KILN_KIND_TABLE(X)                                                                         \
    X(DATAMODULE, "datamodule")                                                                    \
    X(MODULE, "module")                                                                            \
    X(MODEL, "model")                                                                              \
    X(LOSS, "loss")                                                                                \
    X(OPTIMIZER, "optimizer")                                                                      \
    X(SCHEDULER, "scheduler")                                                                      \
    X(CALLBACK, "callback")                                                                        \
    X(LOGGER, "logger")                                                                            \
    X(METRIC, "metric")                                                                            \
    X(TRANSFORM, "transform")                                                                      \
    X(SAMPLER, "sampler")                                                                          \
    X(BATCH_TRANSFORM, "batch_transform")                                                          \
    X(SWEEPER, "sweeper")                                                                          \
    X(LAUNCHER, "launcher")                                                                        \
    X(STRATEGY, "strategy")                                                                        \
    X(TOKENIZER, "tokenizer")                                                                      \
    X(PRUNER, "pruner")

typedef enum KilnKind {
#define KILN_KIND_ENUM(name, text) KILN_KIND_##name,
    KILN_KIND_TABLE(KILN_KIND_ENUM)
#undef KILN_KIND_ENUM
        KILN_KIND_COUNT
} KilnKind;

/* "datamodule", "module", ... static text. */
KILN_API const char *kiln_kind_name(KilnKind kind);

typedef enum KilnType {
    KILN_TYPE_END, /* closes a table */
    KILN_TYPE_BOOL,
    KILN_TYPE_I64,
    KILN_TYPE_F64,
    KILN_TYPE_STR,        /* any text */
    KILN_TYPE_PATH,       /* text that names a file or folder; a leading ~/ is expanded */
    KILN_TYPE_ENUM,       /* one of `choices`, stored as int64_t */
    KILN_TYPE_DURATION,   /* seconds, stored as double: 90s, 1h30m, 00:15:00, or a plain number */
    KILN_TYPE_SIZE,       /* bytes, stored as int64_t: 64MiB, 2GB, 512 */
    KILN_TYPE_QUANTITY,   /* a count, a fraction or a duration, as written: KilnQuantity */
    KILN_TYPE_STRUCT,     /* a mapping with the table `fields` */
    KILN_TYPE_COMPONENT,  /* a node with _target_ of kind `component_kind`, or only its name */
    KILN_TYPE_IMAGE_SIZE, /* [height, width], or one number for both: KilnSize */
    KILN_TYPE_COUNT
} KilnType;

/* How many values an option has. `optional` allows null: a number, bool, choice or struct is then a
 * pointer member (int64_t *, double *, bool *), which is NULL for null, like text, paths and
 * components; a list or map is NULL with count 0 for null, and not NULL if it is empty. Without
 * `optional`, an empty list or map may be NULL. */
typedef enum KilnShapeOf {
    KILN_ONE,    /* one value: member `x` is the value itself */
    KILN_LIST,   /* a sequence: member `x` is a pointer, member `x_count` a size_t */
    KILN_MAPPING /* a mapping from free names, in file order: the same with pairs of key and
                  * value; a map of components is a list, without null entries */
} KilnShapeOf;

/* The items of maps of plain values. Keys are never NULL. */
typedef struct KilnPairBool {
    char *key;
    bool value;
} KilnPairBool;
typedef struct KilnPairI64 { /* integers, choices, sizes */
    char *key;
    int64_t value;
} KilnPairI64;
typedef struct KilnPairF64 { /* numbers, durations */
    char *key;
    double value;
} KilnPairF64;
typedef struct KilnPairStr { /* text, paths */
    char *key;
    char *value;
} KilnPairStr;

/* How much of something: 3 (a count), 0.25 (a fraction of all), 90s or 00:15:00 (a duration). */
typedef enum KilnQuantityUnit {
    KILN_QUANTITY_COUNT,
    KILN_QUANTITY_FRACTION,
    KILN_QUANTITY_DURATION
} KilnQuantityUnit;
typedef struct KilnQuantity {
    int64_t of;   /* KilnQuantityUnit */
    double value; /* whole and not negative; from 0 to 1; seconds */
} KilnQuantity;
/* The units in which a quantity may be written (KilnField.allowed). */
enum {
    KILN_ALLOW_COUNT = 1,
    KILN_ALLOW_FRACTION = 2,
    KILN_ALLOW_DURATION = 4,
    KILN_ALLOW_BOOL = 8 /* false and true, for the counts 0 and 1 */
};
/* The quantity out of `total`: a count, but never more than `total`; or a fraction, rounded
 * down as in Lightning's limit_*_batches. A duration has none: -1. */
KILN_API int64_t kiln_quantity_of(KilnQuantity quantity, int64_t total);

/* Of an image. */
typedef struct KilnSize {
    int64_t height, width;
} KilnSize;

typedef struct KilnChoice {
    const char *name; /* NULL closes the list */
    int64_t value;
} KilnChoice;

/* One option. Write rows with the KILN_FIELD_* macros below. */
typedef struct KilnField {
    const char *name; /* the struct member's name, which is the option's name */
    KilnType type;
    KilnShapeOf shape;
    bool optional;       /* null allowed (see KilnShapeOf); never of a list's items */
    bool writes;         /* PATH: names what the component writes */
    size_t offset, size; /* of the member in the options struct */
    size_t count_offset; /* LIST and MAP: of the member <name>_count */
    size_t item_size;    /* of one value */
    size_t pair_size;    /* MAP: of a pair ... */
    size_t value_offset; /* ... and of the value in it */
    const char *value;   /* default as YAML text; NULL: required */
    double min, max;     /* inclusive bounds, I64, F64, DURATION, SIZE (of each item in a list) and
                          * IMAGE_SIZE (of both sides) */
    const KilnChoice *choices;
    size_t n_choices; /* the row that closes the list among them */
    unsigned allowed; /* QUANTITY: KILN_ALLOW_... */
    KilnKind component_kind;
    const struct KilnField *fields; /* STRUCT: its own table */
    size_t n_fields;                /* its rows, KILN_FIELD_END among them */
    const char *renamed;            /* not NULL: this row is only a former name of that option,
                                     * and only name, renamed and help are used */
    const char *help;               /* one line, shown by --help */
} KilnField;

/* ---- Macros ---------------------------------------------------------------
 *
 *  T: options struct, m: member, dflt: default as YAML text or NULL, text: help.
 *  A type's name alone is one value; _OPT allows null; _LIST and _MAP are many.
 *  A wrong member type is a compile error: _Generic has one association. */

#define KILN_MEMBER_(T, m, ctype)                                                                  \
    .name = #m, .offset = _Generic(((T *)0)->m, ctype : offsetof(T, m)), .size = sizeof(((T *)0)->m)
#define KILN_COUNT_(T, m)                                                                          \
    .count_offset = _Generic(((T *)0)->m##_count, size_t : offsetof(T, m##_count))
#define KILN_ONE_(T, m, ctype) KILN_MEMBER_(T, m, ctype), .item_size = sizeof(ctype)
#define KILN_OPT_(T, m, ctype)                                                                     \
    KILN_MEMBER_(T, m, ctype *), .item_size = sizeof(ctype), .optional = true
#define KILN_LIST_(T, m, ctype)                                                                    \
    KILN_MEMBER_(T, m, ctype *), KILN_COUNT_(T, m), .item_size = sizeof(ctype), .shape = KILN_LIST
#define KILN_MAP_(T, m, ctype, P)                                                                  \
    KILN_MEMBER_(T, m, P *), KILN_COUNT_(T, m),                                                    \
        .item_size = sizeof(ctype), .pair_size = sizeof(P), .value_offset = offsetof(P, value),    \
        .shape = KILN_MAPPING
/* The key must be text, and first. */
#define KILN_PAIR_SIZE_(P)                                                                         \
    _Generic(((P *)0)->key, char * : sizeof(P) + 0 * sizeof(char[offsetof(P, key) == 0 ? 1 : -1]))
#define KILN_STRUCT_MAP_(T, m, P)                                                                  \
    KILN_MEMBER_(T, m, P *), KILN_COUNT_(T, m),                                                    \
        .item_size = sizeof(((P *)0)->value), .pair_size = KILN_PAIR_SIZE_(P),                     \
        .value_offset = offsetof(P, value), .shape = KILN_MAPPING
/* An options table, which must be the array itself: of a table that KILN_FIELD_END does not close
 * the length tells. Also a component's: KILN_FIELDS(fields) in its KilnComponent. */
#define KILN_FIELDS(table) .fields = (table), .n_fields = sizeof(table) / sizeof((table)[0])
#define KILN_CHOICES_(list) .choices = (list), .n_choices = sizeof(list) / sizeof((list)[0])
#define KILN_AS_(type_, dflt, text) .type = KILN_TYPE_##type_, .value = dflt, .help = text
#define KILN_ROW_(...)                                                                             \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

/* true or false */
#define KILN_FIELD_BOOL(T, m, dflt, text)                                                          \
    KILN_ROW_(KILN_ONE_(T, m, bool), KILN_AS_(BOOL, dflt, text))
#define KILN_FIELD_BOOL_OPT(T, m, dflt, text)                                                      \
    KILN_ROW_(KILN_OPT_(T, m, bool), KILN_AS_(BOOL, dflt, text))
#define KILN_FIELD_BOOL_LIST(T, m, dflt, text)                                                     \
    KILN_ROW_(KILN_LIST_(T, m, bool), KILN_AS_(BOOL, dflt, text))
#define KILN_FIELD_BOOL_LIST_OPT(T, m, dflt, text)                                                 \
    KILN_ROW_(KILN_LIST_(T, m, bool), .optional = true, KILN_AS_(BOOL, dflt, text))
#define KILN_FIELD_BOOL_MAP(T, m, dflt, text)                                                      \
    KILN_ROW_(KILN_MAP_(T, m, bool, KilnPairBool), KILN_AS_(BOOL, dflt, text))
#define KILN_FIELD_BOOL_MAP_OPT(T, m, dflt, text)                                                  \
    KILN_ROW_(KILN_MAP_(T, m, bool, KilnPairBool), .optional = true, KILN_AS_(BOOL, dflt, text))

/* integers within lo..hi */
#define KILN_FIELD_I64(T, m, dflt, lo, hi, text)                                                   \
    KILN_ROW_(KILN_ONE_(T, m, int64_t), KILN_AS_(I64, dflt, text), .min = lo, .max = hi)
#define KILN_FIELD_I64_OPT(T, m, dflt, lo, hi, text)                                               \
    KILN_ROW_(KILN_OPT_(T, m, int64_t), KILN_AS_(I64, dflt, text), .min = lo, .max = hi)
#define KILN_FIELD_I64_LIST(T, m, dflt, lo, hi, text)                                              \
    KILN_ROW_(KILN_LIST_(T, m, int64_t), KILN_AS_(I64, dflt, text), .min = lo, .max = hi)
#define KILN_FIELD_I64_LIST_OPT(T, m, dflt, lo, hi, text)                                          \
    KILN_ROW_(KILN_LIST_(T, m, int64_t), .optional = true, KILN_AS_(I64, dflt, text), .min = lo,   \
              .max = hi)
#define KILN_FIELD_I64_MAP(T, m, dflt, lo, hi, text)                                               \
    KILN_ROW_(KILN_MAP_(T, m, int64_t, KilnPairI64), KILN_AS_(I64, dflt, text), .min = lo,         \
              .max = hi)
#define KILN_FIELD_I64_MAP_OPT(T, m, dflt, lo, hi, text)                                           \
    KILN_ROW_(KILN_MAP_(T, m, int64_t, KilnPairI64), .optional = true, KILN_AS_(I64, dflt, text),  \
              .min = lo, .max = hi)

/* height and width within lo..hi; no lists and maps */
#define KILN_FIELD_IMAGE_SIZE(T, m, dflt, lo, hi, text)                                            \
    KILN_ROW_(KILN_ONE_(T, m, KilnSize), KILN_AS_(IMAGE_SIZE, dflt, text), .min = lo, .max = hi)
#define KILN_FIELD_IMAGE_SIZE_OPT(T, m, dflt, lo, hi, text)                                        \
    KILN_ROW_(KILN_OPT_(T, m, KilnSize), KILN_AS_(IMAGE_SIZE, dflt, text), .min = lo, .max = hi)

/* numbers within lo..hi */
#define KILN_FIELD_F64(T, m, dflt, lo, hi, text)                                                   \
    KILN_ROW_(KILN_ONE_(T, m, double), KILN_AS_(F64, dflt, text), .min = lo, .max = hi)
#define KILN_FIELD_F64_OPT(T, m, dflt, lo, hi, text)                                               \
    KILN_ROW_(KILN_OPT_(T, m, double), KILN_AS_(F64, dflt, text), .min = lo, .max = hi)
#define KILN_FIELD_F64_LIST(T, m, dflt, lo, hi, text)                                              \
    KILN_ROW_(KILN_LIST_(T, m, double), KILN_AS_(F64, dflt, text), .min = lo, .max = hi)
#define KILN_FIELD_F64_LIST_OPT(T, m, dflt, lo, hi, text)                                          \
    KILN_ROW_(KILN_LIST_(T, m, double), .optional = true, KILN_AS_(F64, dflt, text), .min = lo,    \
              .max = hi)
#define KILN_FIELD_F64_MAP(T, m, dflt, lo, hi, text)                                               \
    KILN_ROW_(KILN_MAP_(T, m, double, KilnPairF64), KILN_AS_(F64, dflt, text), .min = lo, .max = hi)
#define KILN_FIELD_F64_MAP_OPT(T, m, dflt, lo, hi, text)                                           \
    KILN_ROW_(KILN_MAP_(T, m, double, KilnPairF64), .optional = true, KILN_AS_(F64, dflt, text),   \
              .min = lo, .max = hi)

/* any text */
#define KILN_FIELD_STR(T, m, dflt, text)                                                           \
    KILN_ROW_(KILN_ONE_(T, m, char *), KILN_AS_(STR, dflt, text))
#define KILN_FIELD_STR_OPT(T, m, dflt, text)                                                       \
    KILN_ROW_(KILN_ONE_(T, m, char *), .optional = true, KILN_AS_(STR, dflt, text))
#define KILN_FIELD_STR_LIST(T, m, dflt, text)                                                      \
    KILN_ROW_(KILN_LIST_(T, m, char *), KILN_AS_(STR, dflt, text))
#define KILN_FIELD_STR_LIST_OPT(T, m, dflt, text)                                                  \
    KILN_ROW_(KILN_LIST_(T, m, char *), .optional = true, KILN_AS_(STR, dflt, text))
#define KILN_FIELD_STR_MAP(T, m, dflt, text)                                                       \
    KILN_ROW_(KILN_MAP_(T, m, char *, KilnPairStr), KILN_AS_(STR, dflt, text))
#define KILN_FIELD_STR_MAP_OPT(T, m, dflt, text)                                                   \
    KILN_ROW_(KILN_MAP_(T, m, char *, KilnPairStr), .optional = true, KILN_AS_(STR, dflt, text))

/* text that names a file or folder */
#define KILN_FIELD_PATH(T, m, dflt, text)                                                          \
    KILN_ROW_(KILN_ONE_(T, m, char *), KILN_AS_(PATH, dflt, text))
#define KILN_FIELD_PATH_OPT(T, m, dflt, text)                                                      \
    KILN_ROW_(KILN_ONE_(T, m, char *), .optional = true, KILN_AS_(PATH, dflt, text))
#define KILN_FIELD_PATH_LIST(T, m, dflt, text)                                                     \
    KILN_ROW_(KILN_LIST_(T, m, char *), KILN_AS_(PATH, dflt, text))
#define KILN_FIELD_PATH_LIST_OPT(T, m, dflt, text)                                                 \
    KILN_ROW_(KILN_LIST_(T, m, char *), .optional = true, KILN_AS_(PATH, dflt, text))
#define KILN_FIELD_PATH_MAP(T, m, dflt, text)                                                      \
    KILN_ROW_(KILN_MAP_(T, m, char *, KilnPairStr), KILN_AS_(PATH, dflt, text))
#define KILN_FIELD_PATH_MAP_OPT(T, m, dflt, text)                                                  \
    KILN_ROW_(KILN_MAP_(T, m, char *, KilnPairStr), .optional = true, KILN_AS_(PATH, dflt, text))

/* The same of a file or folder that the component writes: a config from somebody else's run folder
 * may then not name one outside of that folder. */
#define KILN_FIELD_OUTPUT(T, m, dflt, text)                                                        \
    KILN_ROW_(KILN_ONE_(T, m, char *), .writes = true, KILN_AS_(PATH, dflt, text))
#define KILN_FIELD_OUTPUT_OPT(T, m, dflt, text)                                                    \
    KILN_ROW_(KILN_ONE_(T, m, char *), .optional = true, .writes = true, KILN_AS_(PATH, dflt, text))

/* one of the names in `list`, an array of KilnChoice; stored as its value */
#define KILN_FIELD_ENUM(T, m, dflt, list, text)                                                    \
    KILN_ROW_(KILN_ONE_(T, m, int64_t), KILN_AS_(ENUM, dflt, text), KILN_CHOICES_(list))
#define KILN_FIELD_ENUM_OPT(T, m, dflt, list, text)                                                \
    KILN_ROW_(KILN_OPT_(T, m, int64_t), KILN_AS_(ENUM, dflt, text), KILN_CHOICES_(list))
#define KILN_FIELD_ENUM_LIST(T, m, dflt, list, text)                                               \
    KILN_ROW_(KILN_LIST_(T, m, int64_t), KILN_AS_(ENUM, dflt, text), KILN_CHOICES_(list))
#define KILN_FIELD_ENUM_LIST_OPT(T, m, dflt, list, text)                                           \
    KILN_ROW_(KILN_LIST_(T, m, int64_t), .optional = true, KILN_AS_(ENUM, dflt, text),             \
              KILN_CHOICES_(list))
#define KILN_FIELD_ENUM_MAP(T, m, dflt, list, text)                                                \
    KILN_ROW_(KILN_MAP_(T, m, int64_t, KilnPairI64), KILN_AS_(ENUM, dflt, text),                   \
              KILN_CHOICES_(list))
#define KILN_FIELD_ENUM_MAP_OPT(T, m, dflt, list, text)                                            \
    KILN_ROW_(KILN_MAP_(T, m, int64_t, KilnPairI64), .optional = true, KILN_AS_(ENUM, dflt, text), \
              KILN_CHOICES_(list))

/* lo and hi in seconds */
#define KILN_FIELD_DURATION(T, m, dflt, lo, hi, text)                                              \
    KILN_ROW_(KILN_ONE_(T, m, double), KILN_AS_(DURATION, dflt, text), .min = lo, .max = hi)
#define KILN_FIELD_DURATION_OPT(T, m, dflt, lo, hi, text)                                          \
    KILN_ROW_(KILN_OPT_(T, m, double), KILN_AS_(DURATION, dflt, text), .min = lo, .max = hi)
#define KILN_FIELD_DURATION_LIST(T, m, dflt, lo, hi, text)                                         \
    KILN_ROW_(KILN_LIST_(T, m, double), KILN_AS_(DURATION, dflt, text), .min = lo, .max = hi)
#define KILN_FIELD_DURATION_LIST_OPT(T, m, dflt, lo, hi, text)                                     \
    KILN_ROW_(KILN_LIST_(T, m, double), .optional = true, KILN_AS_(DURATION, dflt, text),          \
              .min = lo, .max = hi)
#define KILN_FIELD_DURATION_MAP(T, m, dflt, lo, hi, text)                                          \
    KILN_ROW_(KILN_MAP_(T, m, double, KilnPairF64), KILN_AS_(DURATION, dflt, text), .min = lo,     \
              .max = hi)
#define KILN_FIELD_DURATION_MAP_OPT(T, m, dflt, lo, hi, text)                                      \
    KILN_ROW_(KILN_MAP_(T, m, double, KilnPairF64), .optional = true,                              \
              KILN_AS_(DURATION, dflt, text), .min = lo, .max = hi)

/* lo and hi in bytes */
#define KILN_FIELD_SIZE(T, m, dflt, lo, hi, text)                                                  \
    KILN_ROW_(KILN_ONE_(T, m, int64_t), KILN_AS_(SIZE, dflt, text), .min = lo, .max = hi)
#define KILN_FIELD_SIZE_OPT(T, m, dflt, lo, hi, text)                                              \
    KILN_ROW_(KILN_OPT_(T, m, int64_t), KILN_AS_(SIZE, dflt, text), .min = lo, .max = hi)
#define KILN_FIELD_SIZE_LIST(T, m, dflt, lo, hi, text)                                             \
    KILN_ROW_(KILN_LIST_(T, m, int64_t), KILN_AS_(SIZE, dflt, text), .min = lo, .max = hi)
#define KILN_FIELD_SIZE_LIST_OPT(T, m, dflt, lo, hi, text)                                         \
    KILN_ROW_(KILN_LIST_(T, m, int64_t), .optional = true, KILN_AS_(SIZE, dflt, text), .min = lo,  \
              .max = hi)
#define KILN_FIELD_SIZE_MAP(T, m, dflt, lo, hi, text)                                              \
    KILN_ROW_(KILN_MAP_(T, m, int64_t, KilnPairI64), KILN_AS_(SIZE, dflt, text), .min = lo,        \
              .max = hi)
#define KILN_FIELD_SIZE_MAP_OPT(T, m, dflt, lo, hi, text)                                          \
    KILN_ROW_(KILN_MAP_(T, m, int64_t, KilnPairI64), .optional = true, KILN_AS_(SIZE, dflt, text), \
              .min = lo, .max = hi)

/* a count, a fraction or a duration, those in `allowed_`; never a list */
#define KILN_FIELD_QUANTITY(T, m, dflt, allowed_, text)                                            \
    KILN_ROW_(KILN_ONE_(T, m, KilnQuantity), KILN_AS_(QUANTITY, dflt, text), .allowed = allowed_)
#define KILN_FIELD_QUANTITY_OPT(T, m, dflt, allowed_, text)                                        \
    KILN_ROW_(KILN_OPT_(T, m, KilnQuantity), KILN_AS_(QUANTITY, dflt, text), .allowed = allowed_)

/* A mapping with options of its own: `table` is the table of struct S. Its defaults
 * are the table's. */
#define KILN_FIELD_STRUCT(T, m, S, table, text)                                                    \
    KILN_ROW_(KILN_ONE_(T, m, S), KILN_AS_(STRUCT, "{}", text), KILN_FIELDS(table))
/* dflt is "null" or "{}": the table's defaults */
#define KILN_FIELD_STRUCT_OPT(T, m, S, table, dflt, text)                                          \
    KILN_ROW_(KILN_OPT_(T, m, S), KILN_AS_(STRUCT, dflt, text), KILN_FIELDS(table))
#define KILN_FIELD_STRUCT_LIST(T, m, S, table, dflt, text)                                         \
    KILN_ROW_(KILN_LIST_(T, m, S), KILN_AS_(STRUCT, dflt, text), KILN_FIELDS(table))
#define KILN_FIELD_STRUCT_LIST_OPT(T, m, S, table, dflt, text)                                     \
    KILN_ROW_(KILN_LIST_(T, m, S), .optional = true, KILN_AS_(STRUCT, dflt, text),                 \
              KILN_FIELDS(table))
/* P: a struct whose first member is `char *key`, and which has the struct of `table` as
 * member `value` */
#define KILN_FIELD_STRUCT_MAP(T, m, P, table, dflt, text)                                          \
    KILN_ROW_(KILN_STRUCT_MAP_(T, m, P), KILN_AS_(STRUCT, dflt, text), KILN_FIELDS(table))
#define KILN_FIELD_STRUCT_MAP_OPT(T, m, P, table, dflt, text)                                      \
    KILN_ROW_(KILN_STRUCT_MAP_(T, m, P), .optional = true, KILN_AS_(STRUCT, dflt, text),           \
              KILN_FIELDS(table))

/* Components of kind kind_; the map is stored as a list, in file order, without null entries */
#define KILN_FIELD_COMPONENT(T, m, kind_, dflt, text)                                              \
    KILN_ROW_(KILN_ONE_(T, m, KilnInstance *), KILN_AS_(COMPONENT, dflt, text),                    \
              .component_kind = kind_)
#define KILN_FIELD_COMPONENT_OPT(T, m, kind_, dflt, text)                                          \
    KILN_ROW_(KILN_ONE_(T, m, KilnInstance *), .optional = true, KILN_AS_(COMPONENT, dflt, text),  \
              .component_kind = kind_)
#define KILN_FIELD_COMPONENT_LIST(T, m, kind_, dflt, text)                                         \
    KILN_ROW_(KILN_LIST_(T, m, KilnInstance *), KILN_AS_(COMPONENT, dflt, text),                   \
              .component_kind = kind_)
#define KILN_FIELD_COMPONENT_LIST_OPT(T, m, kind_, dflt, text)                                     \
    KILN_ROW_(KILN_LIST_(T, m, KilnInstance *), .optional = true, KILN_AS_(COMPONENT, dflt, text), \
              .component_kind = kind_)
#define KILN_FIELD_COMPONENT_MAP(T, m, kind_, dflt, text)                                          \
    KILN_ROW_(KILN_MEMBER_(T, m, KilnInstance **), KILN_COUNT_(T, m), .shape = KILN_MAPPING,       \
              .item_size = sizeof(KilnInstance *), KILN_AS_(COMPONENT, dflt, text),                \
              .component_kind = kind_)
#define KILN_FIELD_COMPONENT_MAP_OPT(T, m, kind_, dflt, text)                                      \
    KILN_ROW_(KILN_MEMBER_(T, m, KilnInstance **), KILN_COUNT_(T, m), .shape = KILN_MAPPING,       \
              .item_size = sizeof(KilnInstance *), .optional = true,                               \
              KILN_AS_(COMPONENT, dflt, text), .component_kind = kind_)

/* `old_name` was the name of option `new_name`, which may be one of a part ("loss.weights"): it is
 * accepted with a warning, which ends with `text` (why, since when). Both in quotes. Overrides of
 * an option that moved into a part need the new name. */
#define KILN_FIELD_RENAMED(old_name, new_name, text)                                               \
    KILN_ROW_(.name = old_name, .type = KILN_TYPE_STR, .renamed = new_name, .help = text)
#define KILN_FIELD_END KILN_ROW_(.type = KILN_TYPE_END)

/* ---- Which values of a metric are better ----------------------------------- */

typedef enum KilnMode { KILN_MODE_AUTO, KILN_MODE_MIN, KILN_MODE_MAX } KilnMode;
/* The choices of an option `mode`, in the order of the enumeration, and its row: a member
 * `int64_t mode` of what monitors a metric (kiln_trainer_mode, trainer.h). */
KILN_API_TABLE const KilnChoice kiln_modes[4];
#define KILN_FIELD_MODE(T)                                                                         \
    KILN_FIELD_ENUM(T, mode, "auto", kiln_modes,                                                   \
                    "whether a smaller (min) or a larger (max) value is better; auto: as the "     \
                    "metric declares")
/* A module's option `monitor`, a member `char *monitor`: the metric that ranks checkpoints of this
 * task, unless the config says otherwise. The module need not read it: the callbacks that come
 * with kiln refer to it as ${oc.select:task.monitor,val/loss}. */
#define KILN_FIELD_MONITOR(T, dflt)                                                                \
    KILN_FIELD_STR_OPT(T, monitor, dflt,                                                           \
                       "metric that ranks checkpoints and ends training early; null: the newest "  \
                       "checkpoint is the best")

#endif

/* A random graph as data: leaves and operations in the order of recording. Being data, it can be
 * recorded on any backend, printed, and made smaller. */
#ifndef KILN_TESTS_FUZZ_GRAPHS_SPEC_H
#define KILN_TESTS_FUZZ_GRAPHS_SPEC_H

#include "graph/op.h"
#include "kiln/rng.h"

enum {
    SPEC_ITEMS = 96,
    SPEC_INPUTS = 12,
    SPEC_OUTPUTS = 4, /* of an item */
    SPEC_ARGS = 16
};

typedef enum LeafKind {
    LEAF_INPUT,    /* float */
    LEAF_PARAM,    /* float that wants a gradient */
    LEAF_VARIABLE, /* float that operations may update */
    LEAF_INDEX,    /* i32 in [low, limit) */
    LEAF_MASK,     /* u8, 0 or 1 */
    LEAF_COUNTER,  /* i64 that an operation updates */
    LEAF_ENDS      /* i64, increasing, the last is `limit` */
} LeafKind;

/* What floats are drawn from. The first ones are inside the domain of every operation. */
typedef enum Values {
    VALUES_POSITIVE, /* 0.1 to 1.1 */
    VALUES_NORMAL,
    VALUES_INTEGERS, /* -3 to 3: exact, with ties and both zeros */
    VALUES_OFFSET,   /* 100 and a little */
    VALUES_FAR,      /* 1e-5 to 1e5 */
    VALUES_TINY,     /* normal, zeros of both signs, and denormal numbers */
    VALUES_LARGE,    /* about 1e12 */
    VALUES_INFINITE, /* normal, with a few infinities and NaN */
    VALUES_COUNT
} Values;

typedef struct Leaf {
    LeafKind kind;
    Values values; /* of floats */
    KilnShape shape;
    int64_t low, limit; /* of integers */
    uint64_t seed;
    bool unaligned; /* begins one element after an aligned address */
} Leaf;

typedef struct Row Row;

/* A leaf, or an operation with inputs and attributes. Output k of item i is the value
 * i * SPEC_OUTPUTS + k. */
typedef struct Item {
    const Row *row; /* NULL: a leaf */
    Leaf leaf;
    int in[SPEC_INPUTS]; /* values; -1: none */
    int64_t arg[SPEC_ARGS];
    double num[2];
} Item;

typedef struct Spec {
    uint64_t seed;
    Item items[SPEC_ITEMS];
    int n;
    KilnPrecision precision;
    bool backward;
    bool accumulates; /* gradients are added to what is there */
    int block[2];     /* items recorded as a block that is recomputed; empty: none */
    int outputs[8];   /* values read after the run, and the terms of the loss */
    int n_outputs;
} Spec;

typedef struct Draw Draw;

/* One operation, or a function that records several. */
struct Row {
    const char *name;
    /* Chooses inputs and attributes; false: nothing fits. */
    bool (*draw)(Draw *draw, Item *item);
    /* Records it. Outputs that don't exist stay NULL. */
    void (*build)(KilnTensor *const *in, const Item *item, KilnTensor **out);
    unsigned constant; /* bit i: input i gets kiln_detach, as it must not want a gradient */
    unsigned optional; /* bit i: input i may be left out */
    bool cancels; /* kernels subtract numbers that nearly agree, before anything can see them */
    /* An infinity or a NaN of the reference may be hidden: it does not multiply what it knows to be
     * 0 (masked keys, ignored labels, steps after the end), or what rounding makes 0 (weights of
     * neighbouring pixels), or puts elements in an order, or gives gradients to the largest, which
     * one NaN more changes. */
    bool hides;
};

typedef struct Rows {
    const Row *rows;
    size_t count;
} Rows;

extern const Rows rows_elementwise, rows_shape, rows_reduce, rows_product, rows_image, rows_norm,
    rows_sequence, rows_select, rows_loss, rows_update;

static inline bool spec_is_float(KilnDType dtype)
{
    return dtype == KILN_F32 || dtype == KILN_F64 || dtype == KILN_BF16;
}

/* Draws the graph of a seed. `only`: every operation is of this row; NULL: of any. */
void spec_draw(Spec *spec, uint64_t seed, const char *only);
/* Removes items that neither an output nor a variable depends on. */
void spec_remove_unused(Spec *spec);
bool spec_has_infinite_leaf(const Spec *spec);
void spec_print(const Spec *spec, FILE *file);

/* Whether the leaf is a float one. */
bool leaf_is_float(const Leaf *leaf);
/* Its values as doubles, `count` of them. */
void leaf_values(const Leaf *leaf, double *ret);

#endif

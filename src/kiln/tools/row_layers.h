/* Layers that models of a table's rows share: vectors of categories, and of numbers. */
#ifndef KILN_ROW_LAYERS_H
#define KILN_ROW_LAYERS_H

#include "kiln/data.h"
#include "kiln/nn.h"

/* A table of vectors for each column of categories. A zeroed one has no columns. */
typedef struct KilnCategoryTables {
    KilnEmbedding *tables;
    size_t n;
} KilnCategoryTables;

/* Tables of `width` for the columns of an i32 row, called "0", "1", ... under `scope`; the name of
 * an absent row is NULL. KILN_E_SHAPE if the number of ids of a column is unknown. Release it also
 * after a failure. */
KILN_API KILN_NODISCARD KilnStatus kiln_nn_category_tables_init(KilnCategoryTables *layer,
                                                                const KilnScope *scope,
                                                                const KilnFeature *row,
                                                                int64_t width, KilnInit init,
                                                                KilnError *err);
/* ids i32 [batch, n] -> [batch, n, width]; n is not 0. */
KILN_API KilnTensor *kiln_nn_category_tables(const KilnCategoryTables *layer, KilnTensor *ids);
KILN_API void kiln_nn_category_tables_release(KilnCategoryTables *layer);

/* A vector for each number: sines and cosines of trained frequencies, a linear layer of the
 * number's own and ReLU (Gorishniy et al., "On embeddings for numerical features in tabular deep
 * learning", 2022: PLR). */
typedef struct KilnPeriodicEmbedding {
    KilnParam *frequencies; /* [numbers, k] */
    KilnParam *weight;      /* [numbers, 2 k, width] */
    KilnParam *bias;        /* [numbers, 1, width] */
} KilnPeriodicEmbedding;

typedef struct KilnPeriodicSpec {
    int64_t numbers, frequencies, width;
    double sigma; /* deviation of the initial frequencies */
} KilnPeriodicSpec;

KILN_API KILN_NODISCARD KilnStatus kiln_nn_periodic_init(KilnPeriodicEmbedding *layer,
                                                         const KilnScope *scope, const char *name,
                                                         KilnPeriodicSpec spec, KilnError *err);
/* x f32 [batch, numbers] -> [batch, numbers, width]. */
KILN_API KilnTensor *kiln_nn_periodic(const KilnPeriodicEmbedding *layer, KilnTensor *x);

#endif

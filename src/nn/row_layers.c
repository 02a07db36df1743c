/* Vectors of a row's categories and numbers. */
#include "kiln/tools/row_layers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- Categories ------------------------------------------------------------------------------ */

KilnStatus kiln_nn_category_tables_init(KilnCategoryTables *layer, const KilnScope *scope,
                                        const KilnFeature *row, int64_t width, KilnInit init,
                                        KilnError *err)
{
    const size_t n = row->name != NULL ? (size_t)row->shape.dim[0] : 0;
    KilnStatus status = KILN_OK;

    layer->tables = calloc(n + 1, sizeof(*layer->tables));
    if (layer->tables == NULL)
        return kiln_error_nomem(err, n * sizeof(*layer->tables));
    layer->n = n;
    for (size_t i = 0; i < n && status >= 0; i++) {
        const int64_t of_column = row->columns != NULL ? row->columns[i].n_ids : 0;
        const int64_t ids = of_column > 0 ? of_column : row->n_ids;
        char name[24];

        if (ids < 1)
            return kiln_error_set(err, KILN_E_SHAPE,
                                  "needs the number of categories in column %zu of row \"%s\"; the "
                                  "datamodule must set n_ids of the feature or of its columns",
                                  i, row->name);
        snprintf(name, sizeof(name), "%zu", i);
        status = kiln_nn_embedding_init(&layer->tables[i], scope, name, ids, width, -1, err);
        if (status >= 0)
            kiln_param_set_init(layer->tables[i].weight, init);
    }
    return status;
}

/* The vectors of n columns of ids from `first` on. */
static KilnTensor *look_up(const KilnCategoryTables *layer, KilnTensor *ids, size_t first, size_t n)
{
    if (n == 1)
        return kiln_nn_embedding(&layer->tables[first], kiln_narrow(ids, 1, (int64_t)first, 1));
    KilnTensor *halves[] = { look_up(layer, ids, first, n / 2),
                             look_up(layer, ids, first + n / 2, n - n / 2) };
    return kiln_concat(halves, 2, 1);
}

KilnTensor *kiln_nn_category_tables(const KilnCategoryTables *layer, KilnTensor *ids)
{
    return look_up(layer, ids, 0, layer->n);
}

void kiln_nn_category_tables_release(KilnCategoryTables *layer)
{
    free(layer->tables);
    *layer = (KilnCategoryTables) { 0 };
}

/* ---- Numbers --------------------------------------------------------------------------------- */

KilnStatus kiln_nn_periodic_init(KilnPeriodicEmbedding *layer, const KilnScope *scope,
                                 const char *name, KilnPeriodicSpec spec, KilnError *err)
{
    const KilnScope own = kiln_scope(scope, "%s", name);
    const int64_t in = 2 * spec.frequencies;
    const KilnInit linear = { .kind = KILN_INIT_UNIFORM, .a = 1.0 / sqrt((double)in) };
    KilnStatus status = kiln_param_new(
        &own, "frequencies", KILN_SHAPE(spec.numbers, spec.frequencies),
        (KilnInit) { .kind = KILN_INIT_NORMAL, .a = spec.sigma }, &layer->frequencies, err);

    if (status >= 0)
        status = kiln_param_new(&own, "weight", KILN_SHAPE(spec.numbers, in, spec.width), linear,
                                &layer->weight, err);
    return status < 0 ? status
                      : kiln_param_new(&own, "bias", KILN_SHAPE(spec.numbers, 1, spec.width),
                                       linear, &layer->bias, err);
}

KilnTensor *kiln_nn_periodic(const KilnPeriodicEmbedding *layer, KilnTensor *x)
{
    KilnGraph *graph = kiln_tensor_graph(x);
    KilnTensor *turns = kiln_mul(kiln_unsqueeze(x, 2),
                                 kiln_param_tensor(layer->frequencies, graph));
    KilnTensor *angle = kiln_scale(turns, 6.283185307179586);
    KilnTensor *waves = kiln_concat((KilnTensor *[]) { kiln_sin(angle), kiln_cos(angle) }, 2, 2);
    KilnTensor *y = kiln_matmul(kiln_transpose(waves, 0, 1),
                                kiln_param_tensor(layer->weight, graph), false, false);

    y = kiln_relu(kiln_add(y, kiln_param_tensor(layer->bias, graph)));
    return kiln_transpose(y, 0, 1);
}

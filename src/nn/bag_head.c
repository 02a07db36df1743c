/* The linear model over a bag of n-grams beside a text model. */
#include "kiln/tools/bag_head.h"

KilnStatus kiln_bag_head_init(KilnBagHead *bag_head, const KilnScope *scope, const KilnFeature *bag,
                              int64_t width, int64_t classes, KilnError *err)
{
    const KilnInit uniform = { .kind = KILN_INIT_UNIFORM, .a = 1.0 / (double)width };

    if (bag->name == NULL)
        return KILN_OK;
    if (bag->n_ids < 1)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "needs the number of ids of feature \"%s\", which has none",
                              bag->name);
    KilnStatus status = kiln_nn_embedding_init(&bag_head->embedding, scope, "bag", bag->n_ids,
                                               width, (int64_t)bag->pad, err);
    if (status >= 0)
        status = kiln_nn_linear_init(&bag_head->head, scope, "bag_head", width, classes, false,
                                     err);
    if (status < 0)
        return status;
    kiln_param_set_init(bag_head->embedding.weight, uniform);
    kiln_param_set_init(bag_head->head.weight, (KilnInit) { .kind = KILN_INIT_CONSTANT });
    return KILN_OK;
}

KilnTensor *kiln_bag_head_add(const KilnBagHead *bag_head, KilnTensor *bag, KilnTensor *logits)
{
    if (bag_head->head.weight == NULL || bag == NULL)
        return logits;
    return kiln_add(logits,
                    kiln_nn_linear(&bag_head->head, kiln_nn_embedding_bag(&bag_head->embedding, bag,
                                                                          NULL, KILN_BAG_MEAN)));
}

/* A linear model over a bag of n-grams, which text models add to their own logits ("Wide and Deep":
 * Cheng et al. 2016): the n-grams remember what the training texts say, the model generalizes
 * (tasks/models/text_cnn.c). */
#ifndef KILN_KILN_TOOLS_BAG_HEAD_H
#define KILN_KILN_TOOLS_BAG_HEAD_H

#include "kiln/model.h"

/* The input of a model that takes a bag: ids of a varying number. */
#define KILN_BAG_INPUT                                                                             \
    {                                                                                              \
        .name = "bag", .content = KILN_TOKENS, .dtype = KILN_I32, .axes = "ids", .varies = true,   \
        .optional = true                                                                           \
    }

/* Zeroed: there is no bag. */
typedef struct KilnBagHead {
    KilnEmbedding embedding;
    KilnLinear head;
} KilnBagHead;

/* Declare "bag" and "bag_head" under `scope` for the feature `bag`, with `width` features of each
 * n-gram; the head begins with 0, as fastText's. `bag->name` NULL: the data have none, and nothing
 * is declared. KILN_E_SHAPE if its number of ids is not known. */
KILN_API KILN_NODISCARD KilnStatus kiln_bag_head_init(KilnBagHead *bag_head, const KilnScope *scope,
                                                      const KilnFeature *bag, int64_t width,
                                                      int64_t classes, KilnError *err);
/* `logits` [batch, classes] and those of the bag i32 [batch, ids]; without one, `logits`. */
KILN_API KilnTensor *kiln_bag_head_add(const KilnBagHead *bag_head, KilnTensor *bag,
                                       KilnTensor *logits);

#endif

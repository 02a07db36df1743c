/* Which items each user has in the training data, for a recommender that leaves them out of its
 * rankings: found in a table, saved with a checkpoint, and applied to scores in a step. */
#ifndef KILN_ITEM_HISTORY_H
#define KILN_ITEM_HISTORY_H

#include "kiln/data.h"
#include "kiln/state.h"
#include "kiln/tensor.h"

/* A zeroed one is empty. */
typedef struct KilnItemHistory {
    int32_t *starts; /* [users + 1]: where a user's items begin; NULL: empty */
    int32_t *items;  /* of all users, one after the other */
    int64_t users, n_items, count;
} KilnItemHistory;

/* Read it from the i32 columns of these names, whose ids are below `users` and `items`; replaces
 * what was there. KILN_E_MISSING without such columns; KILN_E_RANGE for another id, or 2^31 rows.
 */
KILN_API KILN_NODISCARD KilnStatus kiln_item_history_fit(KilnItemHistory *history,
                                                         const KilnTable *table, const char *user,
                                                         const char *item, int64_t users,
                                                         int64_t items, KilnError *err);
/* Save it in a component's state as "history_starts" and "history_items"; read it from there. */
KILN_API void kiln_item_history_save(const KilnItemHistory *history, KilnState *state);
KILN_API KILN_NODISCARD KilnStatus kiln_item_history_load(KilnItemHistory *history,
                                                          const KilnState *state, int64_t users,
                                                          int64_t items, KilnError *err);
/* scores f32 [batch, items] with `value` where the row's user, i32 [batch, 1], has the item.
 * `scores` itself of an empty history. It has no gradient. The history must outlive the graph. */
KILN_API KilnTensor *kiln_item_history_mask(const KilnItemHistory *history, KilnTensor *scores,
                                            KilnTensor *users, double value);
KILN_API void kiln_item_history_release(KilnItemHistory *history);

#endif

/* The items that each user has in the training data. */
#include "kiln/tools/item_history.h"

#include <stdlib.h>
#include <string.h>

#include "kiln/custom_op.h"

static KilnStatus allocate(KilnItemHistory *history, int64_t users, int64_t n_items, int64_t count,
                           KilnError *err)
{
    kiln_item_history_release(history);
    history->starts = calloc((size_t)users + 1, sizeof(*history->starts));
    history->items = malloc(((size_t)count + 1) * sizeof(*history->items));
    history->users = users;
    history->n_items = n_items;
    history->count = count;
    return history->starts != NULL && history->items != NULL
               ? KILN_OK
               : kiln_error_nomem(err, (size_t)(users + count) * sizeof(*history->items));
}

/* ---- From a table ---------------------------------------------------------------------------- */

/* The ids of a column; NULL, with err set: there is none, or one is out of range. */
static const int32_t *find_ids(const KilnTable *table, const char *name, int64_t n_ids,
                               KilnError *err)
{
    const int32_t *ids = NULL;

    for (size_t c = 0; c < table->n_columns && ids == NULL; c++)
        if (table->columns[c].dtype == KILN_I32 && strcmp(table->columns[c].name, name) == 0)
            ids = table->columns[c].data;
    if (ids == NULL) {
        (void)kiln_error_set(err, KILN_E_MISSING, "the data have no column of categories \"%s\"",
                             name);
        return NULL;
    }
    for (int64_t i = 0; i < table->n_rows; i++)
        if (ids[i] < 0 || ids[i] >= n_ids) {
            (void)kiln_error_set(err, KILN_E_RANGE,
                                 "column \"%s\" has the id %d; expected 0 to %lld", name,
                                 (int)ids[i], (long long)n_ids - 1);
            return NULL;
        }
    return ids;
}

KilnStatus kiln_item_history_fit(KilnItemHistory *history, const KilnTable *table, const char *user,
                                 const char *item, int64_t users, int64_t items, KilnError *err)
{
    const int32_t *of_user = find_ids(table, user, users, err);
    const int32_t *of_item = of_user != NULL ? find_ids(table, item, items, err) : NULL;

    if (of_item == NULL)
        return err->status;
    if (table->n_rows >= INT32_MAX)
        return kiln_error_set(err, KILN_E_RANGE, "%lld rows; at most %d can be remembered",
                              (long long)table->n_rows, INT32_MAX - 1);
    const KilnStatus status = allocate(history, users, items, table->n_rows, err);
    if (status < 0)
        return status;
    /* starts[u + 1] counts the items of users before u, then of those before u + 1 */
    for (int64_t i = 0; i < table->n_rows; i++)
        if (of_user[i] + 2 <= users)
            history->starts[of_user[i] + 2]++;
    for (int64_t u = 2; u <= users; u++)
        history->starts[u] += history->starts[u - 1];
    for (int64_t i = 0; i < table->n_rows; i++)
        history->items[history->starts[of_user[i] + 1]++] = of_item[i];
    return KILN_OK;
}

/* ---- In checkpoints -------------------------------------------------------------------------- */

void kiln_item_history_save(const KilnItemHistory *history, KilnState *state)
{
    if (history->starts == NULL)
        return;
    kiln_state_set_tensor(state, "history_starts", KILN_I32, &KILN_SHAPE(history->users + 1),
                          history->starts);
    kiln_state_set_tensor(state, "history_items", KILN_I32, &KILN_SHAPE(history->count),
                          history->items);
}

/* Whether a file's values are those of a history. */
static bool is_sound(const KilnItemHistory *history)
{
    const int32_t *starts = history->starts;
    bool sound = starts[0] == 0 && starts[history->users] == history->count;

    for (int64_t u = 0; u < history->users && sound; u++)
        sound = starts[u] <= starts[u + 1];
    for (int64_t i = 0; i < history->count && sound; i++)
        sound = history->items[i] >= 0 && history->items[i] < history->n_items;
    return sound;
}

KilnStatus kiln_item_history_load(KilnItemHistory *history, const KilnState *state, int64_t users,
                                  int64_t items, KilnError *err)
{
    KilnDType dtype;
    KilnShape starts, list;

    if (!kiln_state_find_tensor(state, "history_starts", &dtype, &starts) || dtype != KILN_I32 ||
        !kiln_shape_equal(&starts, &KILN_SHAPE(users + 1)) ||
        !kiln_state_find_tensor(state, "history_items", &dtype, &list) || dtype != KILN_I32 ||
        list.rank != 1)
        return kiln_error_set(err, KILN_E_FORMAT,
                              "has no items of %lld users (history_starts, history_items)",
                              (long long)users);
    const KilnStatus status = allocate(history, users, items, list.dim[0], err);
    if (status < 0)
        return status;
    if (kiln_state_get_tensor(state, "history_starts", KILN_I32, &starts, history->starts) &&
        kiln_state_get_tensor(state, "history_items", KILN_I32, &list, history->items) &&
        is_sound(history))
        return KILN_OK;
    kiln_item_history_release(history);
    return kiln_error_set(err, KILN_E_FORMAT, "history_starts and history_items do not fit");
}

void kiln_item_history_release(KilnItemHistory *history)
{
    free(history->starts);
    free(history->items);
    *history = (KilnItemHistory) { 0 };
}

/* ---- In a step ------------------------------------------------------------------------------- */

typedef struct Attrs {
    const KilnItemHistory *history;
    double value;
} Attrs;

static KilnStatus infer(const void *attrs, const KilnOpArg *inputs, KilnOpArg *outputs,
                        KilnError *err)
{
    const KilnOpArg *scores = &inputs[0], *users = &inputs[1];

    const int64_t n = ((const Attrs *)attrs)->history->n_items;

    if (scores->shape.rank != 2 || scores->shape.dim[1] != n || users->dtype != KILN_I32 ||
        users->shape.rank != 2 || users->shape.dim[0] != scores->shape.dim[0] ||
        users->shape.dim[1] != 1)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "needs scores [batch, %lld] and users i32 [batch, 1]", (long long)n);
    outputs[0] = (KilnOpArg) { .dtype = scores->dtype, .shape = scores->shape };
    return KILN_OK;
}

static void put(const KilnOpArg *to, int64_t at, double value)
{
    if (to->dtype == KILN_F64)
        ((double *)to->data)[at] = value;
    else
        ((float *)to->data)[at] = (float)value;
}

static void mask(const KilnOpCall *call)
{
    const Attrs *attrs = call->attrs;
    const KilnItemHistory *history = attrs->history;
    const KilnOpArg *y = &call->outputs[0];
    const int64_t batch = y->shape.dim[0], n = y->shape.dim[1];
    const int32_t *users = call->inputs[1].data;

    if (batch * n > 0)
        memcpy(y->data, call->inputs[0].data, (size_t)(batch * n) * kiln_dtype_size(y->dtype));
    for (int64_t row = 0; row < batch; row++) {
        const bool known = users[row] >= 0 && users[row] < history->users;
        const int32_t *range = history->starts + (known ? users[row] : 0);

        for (int32_t i = range[0]; known && i < range[1]; i++)
            put(y, row * n + history->items[i], attrs->value);
    }
}

static const KilnCustomOp mask_op = {
    .size = sizeof(KilnCustomOp),
    .name = "item_history",
    .n_inputs = 2,
    .n_outputs = 1,
    .attrs_size = sizeof(Attrs),
    .infer = infer,
    .cpu = mask,
    .cpu_f64 = mask,
};

KilnTensor *kiln_item_history_mask(const KilnItemHistory *history, KilnTensor *scores,
                                   KilnTensor *users, double value)
{
    const Attrs attrs = { .history = history, .value = value };
    KilnTensor *inputs[] = { scores, users };

    return history->starts == NULL
               ? scores
               : kiln_custom_op(kiln_tensor_graph(scores), &mask_op, inputs, &attrs, NULL);
}

/* Reports on a plan, from a walk over its calls. */
#include "graph/plan/plan_report.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/op.h"
#include "graph/plan/plan.h"

/* ---- Names -------------------------------------------------------------------------- */

/* Appends a step's name, the enumerator in lower case, to a list of names. */
static void add_step(char *text, size_t size, KilnMapCode code)
{
    static const char *const names[] = {
#define KILN_MAP_NAME(name, ...) #name,
        KILN_MAP_CODES(KILN_MAP_NAME)
#undef KILN_MAP_NAME
    };
    size_t length = strlen(text);

    snprintf(text + length, size - length, "%s%s", length > 0 ? " + " : "", names[code]);
    for (char *p = text + length; *p != '\0'; p++)
        *p = (char)tolower((unsigned char)*p);
}

static void add_map(char *text, size_t size, const KilnMap *map)
{
    for (int i = 0; i < map->n_steps; i++)
        add_step(text, size, (KilnMapCode)map->steps[i].code);
}

static bool is_batch_norm(const KilnOp *op)
{
    return op == &kiln_op_batch_norm || op == &kiln_op_batch_norm_eval ||
           op == &kiln_op_batch_norm_grad;
}

/* Names what the passes fuse_norm and fold_norm fused to a normalization or a convolution, from its
 * inputs and attributes: the sum and activation after it, or their gradients before it. */
static void name_with_activation(const KilnCall *call, char *text, size_t size)
{
    const bool backward = call->op == &kiln_op_batch_norm_grad;
    const bool norm = is_batch_norm(call->op);
    const bool takes_relu = norm && ((const KilnBatchNormAttrs *)call->attrs)->relu != 0;
    const int32_t after = norm ? KILN_MAP_NUMBER
                               : ((const KilnConvAttrs *)call->attrs)->activation.code;
    const int more = backward ? 7 : call->op == &kiln_op_batch_norm_eval ? 5 : 3;
    const char *sum = call->n_inputs > more && !call->inputs[more].absent ? "add" : NULL;
    const char *relu = !takes_relu ? NULL : backward ? "relu_grad" : "relu";

    const char *const parts[] = { backward ? sum : NULL, backward ? relu : NULL, call->op->name,
                                  backward ? NULL : sum, backward ? NULL : relu };

    for (size_t i = 0; i < KILN_COUNT(parts); i++) {
        size_t length = strlen(text);

        if (parts[i] != NULL)
            snprintf(text + length, size - length, "%s%s", length > 0 ? " + " : "", parts[i]);
    }
    if (after != KILN_MAP_NUMBER)
        add_step(text, size, (KilnMapCode)after);
}

/* Names an elementwise chain by its steps. */
static void name_call(const KilnPlanCall *made, char *text, size_t size)
{
    const KilnOp *op = made->call.op;

    text[0] = '\0';
    if (op != NULL && strcmp(op->name, "map") == 0 && op->attrs_size == sizeof(KilnMap))
        add_map(text, size, made->call.attrs);
    else if (is_batch_norm(op) || op == &kiln_op_conv2d)
        name_with_activation(&made->call, text, size);
    else
        snprintf(text, size, "%s", made->name);
    if (made->call.epilogue != NULL)
        add_map(text, size, made->call.epilogue);
}

/* ---- Calls ----------------------------------------------------------------------------- */

/* The variable that a call updates. */
static const KilnArg *written(const KilnPlanCall *made)
{
    const KilnOp *op = made->call.op;

    for (int i = 0; op != NULL && i < made->call.n_inputs; i++)
        if ((op->updates >> i & 1) != 0 && !made->call.inputs[i].absent)
            return &made->call.inputs[i];
    return &made->call.inputs[0];
}

static void locate(const KilnPlan *plan, const KilnPlanCall *made, KilnCallReport *row)
{
    int own = made->outputs[0];

    row->workspace = made->call.workspace_size;
    if (made->call.n_outputs == 0 || own < 0)
        return;
    const KilnStorage *storage = &plan->storages[kiln_plan_storage(plan, own)];
    row->in_place = plan->storages[own].merged != own;
    row->in_block = storage->kind == KILN_STORAGE_BLOCK;
    if (row->in_block) {
        row->offset = storage->offset;
        row->first = storage->first;
        row->last = storage->last == INT_MAX ? (int)plan->n_calls - 1 : storage->last;
    }
}

static void fill_row(const KilnPlan *plan, size_t index, KilnCallReport *row)
{
    const KilnPlanCall *made = plan->calls[index];
    const KilnCall *call = &made->call;
    const KilnArg *output = call->n_outputs > 0 ? &call->outputs[0] : written(made);

    *row = (KilnCallReport) {
        .layer = made->layer,
        .name = made->name,
        .backward = made->backward,
        .update = call->op != NULL && call->op->updates != 0,
        .dtype = output->dtype,
        .shape = output->shape,
        .blocked = output->layout != KILN_PLAIN,
        .bytes = output->bytes,
        .flops = made->flops,
        .seconds = made->seconds,
        .runs = made->runs,
    };
    name_call(made, row->op, sizeof(row->op));
    locate(plan, made, row);
}

KilnCallReport *kiln_plan_report(const KilnPlan *plan)
{
    KilnCallReport *rows = calloc(plan->n_calls + 1, sizeof(*rows));

    for (size_t i = 0; rows != NULL && i < plan->n_calls; i++)
        fill_row(plan, i, &rows[i]);
    return rows;
}

/* ---- Queries -------------------------------------------------------------------- */

const KilnPlan *kiln_plan_next(const KilnPlan *plan)
{
    return plan->next;
}

size_t kiln_plan_calls(const KilnPlan *plan)
{
    return plan->n_calls;
}

size_t kiln_plan_bytes(const KilnPlan *plan)
{
    return plan->block_size;
}

size_t kiln_plan_constant_bytes(const KilnPlan *plan)
{
    return plan->constants_size;
}

size_t kiln_plan_converted_bytes(const KilnPlan *plan)
{
    return plan->converted_size;
}

bool kiln_plan_trains(const KilnPlan *plan)
{
    return plan->backward;
}

/* ---- Sums --------------------------------------------------------------------------------- */

size_t kiln_plan_pieces(const KilnPlan *plan, KilnPiece *ret, size_t capacity)
{
    size_t n = 0;

    for (size_t i = 0; i < plan->n_storages; i++) {
        const KilnStorage *storage = &plan->storages[i];

        if (storage->kind != KILN_STORAGE_BLOCK || storage->merged != (int)i || storage->first < 0)
            continue;
        if (n < capacity)
            ret[n] = (KilnPiece) {
                .offset = storage->offset,
                .bytes = storage->bytes,
                .first = storage->first,
                .last = storage->last == INT_MAX ? (int)plan->n_calls - 1 : storage->last,
            };
        n++;
    }
    return n;
}

size_t kiln_plan_occupied(const KilnPlan *plan, size_t call)
{
    size_t sum = 0;

    for (size_t i = 0; i < plan->n_storages; i++) {
        const KilnStorage *storage = &plan->storages[i];

        if (storage->kind == KILN_STORAGE_BLOCK && storage->merged == (int)i &&
            storage->first >= 0 && storage->first <= (int)call && storage->last >= (int)call)
            sum += storage->bytes;
    }
    return sum;
}

double kiln_plan_flops(const KilnPlan *plan, bool backward)
{
    double sum = 0.0;

    for (size_t i = 0; i < plan->n_calls; i++)
        if (plan->calls[i]->backward == backward)
            sum += plan->calls[i]->flops;
    return sum;
}

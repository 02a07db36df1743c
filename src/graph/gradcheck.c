/* Gradients against central finite differences. */
#include "graph/gradcheck.h"

#include <math.h>
#include <stdlib.h>

#include "graph/graph.h"

typedef struct Check {
    KilnGraph *graph;
    KilnGradFunction *function;
    void *ctx;
    const KilnGradVariable *variables;
    size_t n;
} Check;

/* Records and runs the function; `gradients` (one array per variable), if any, get its gradients.
 */
static KilnStatus evaluate(const Check *check, double *const *gradients, double *ret,
                           KilnError *err)
{
    KilnTensor *leaves[KILN_GRADCHECK_VARIABLES];

    kiln_graph_begin(check->graph);
    for (size_t i = 0; i < check->n; i++)
        leaves[i] = kiln_graph_variable(check->graph, KILN_F64, check->variables[i].shape,
                                        check->variables[i].values, true,
                                        gradients != NULL ? gradients[i] : NULL);
    KilnTensor *value = check->function(check->graph, leaves, check->ctx);
    if (gradients != NULL)
        kiln_graph_backward(check->graph, value);
    KilnStatus status = kiln_graph_run(check->graph, &value, 1, err);
    if (status >= 0)
        *ret = kiln_tensor_scalar(value);
    return status;
}

static KilnStatus difference(const Check *check, double *element, double step, double *ret,
                             KilnError *err)
{
    double before = *element, above, below;

    *element = before + step;
    KilnStatus status = evaluate(check, NULL, &above, err);
    *element = before - step;
    if (status >= 0)
        status = evaluate(check, NULL, &below, err);
    *element = before;
    if (status >= 0)
        *ret = (above - below) / (2.0 * step);
    return status;
}

static KilnStatus compare(const Check *check, double *const *gradients, double step,
                          KilnGradWorst *worst, KilnError *err)
{
    for (size_t i = 0; i < check->n; i++) {
        int64_t count = kiln_shape_count(&check->variables[i].shape);

        for (int64_t k = 0; k < count; k++) {
            double gradient = gradients[i][k], numeric;
            KilnStatus status = difference(check, &check->variables[i].values[k], step, &numeric,
                                           err);

            if (status < 0)
                return status;
            double scale = fmax(1.0, fmax(fabs(gradient), fabs(numeric)));
            double error = fabs(gradient - numeric) / scale;
            if (isnan(error))
                error = INFINITY;
            if (error > worst->error)
                *worst = (KilnGradWorst) { error, gradient, numeric, i, k };
        }
    }
    return KILN_OK;
}

static void free_all(double **arrays, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(arrays[i]);
}

KilnStatus kiln_gradcheck(KilnBackend *backend, KilnGradFunction *function, void *ctx,
                          const KilnGradVariable *variables, size_t n, double step,
                          KilnGradWorst *ret, KilnError *err)
{
    Check check = { .function = function, .ctx = ctx, .variables = variables, .n = n };
    double *gradients[KILN_GRADCHECK_VARIABLES] = { NULL }, value;
    KilnGradWorst worst = { .error = -1.0 };

    if (n > KILN_GRADCHECK_VARIABLES)
        return kiln_error_set(err, KILN_E_INTERNAL, "%zu variables; at most %d can be checked", n,
                              KILN_GRADCHECK_VARIABLES);
    KilnStatus status = kiln_graph_new(backend, &check.graph, err);
    for (size_t i = 0; i < n && status >= 0; i++) {
        size_t bytes = (size_t)kiln_shape_count(&variables[i].shape) * sizeof(double);

        gradients[i] = malloc(bytes);
        if (gradients[i] == NULL)
            status = kiln_error_nomem(err, bytes);
    }
    if (status >= 0)
        status = evaluate(&check, gradients, &value, err);
    if (status >= 0)
        status = compare(&check, gradients, step, &worst, err);
    free_all(gradients, n);
    kiln_graph_free(check.graph);
    if (status >= 0)
        *ret = worst;
    return status;
}

/* Fully connected layers with ReLU between them. */
#include "kiln/tools/linear_stack.h"

#include <stdio.h>
#include <stdlib.h>

#include "kiln/ops.h"

KilnStatus kiln_linear_stack_init(KilnLinearStack *ret, const KilnScope *scope, int64_t in,
                                  const int64_t *widths, size_t n, KilnError *err)
{
    KilnStatus status = KILN_OK;

    *ret = (KilnLinearStack) { .layers = calloc(n + 1, sizeof(*ret->layers)), .n = n };
    if (ret->layers == NULL)
        return kiln_error_nomem(err, (n + 1) * sizeof(*ret->layers));
    for (size_t i = 0; i < n && status >= 0; i++) {
        char name[24];

        snprintf(name, sizeof(name), "%zu", i);
        status = kiln_nn_linear_init(&ret->layers[i], scope, name, i == 0 ? in : widths[i - 1],
                                     widths[i], true, err);
    }
    return status;
}

KilnTensor *kiln_linear_stack(const KilnLinearStack *stack, KilnTensor *x, bool relu_last)
{
    for (size_t i = 0; i < stack->n; i++) {
        x = kiln_nn_linear(&stack->layers[i], x);
        if (relu_last || i + 1 < stack->n)
            x = kiln_relu(x);
    }
    return x;
}

void kiln_linear_stack_release(KilnLinearStack *stack)
{
    free(stack->layers);
    *stack = (KilnLinearStack) { 0 };
}

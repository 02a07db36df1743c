/* Samples of activations. */
#ifndef KILN_TESTS_SUPPORT_OPS_ACTIVATION_H
#define KILN_TESTS_SUPPORT_OPS_ACTIVATION_H

#include "tests/support/ops/elementwise.h"

BUILD_ONE(relu, kiln_relu(x))
CASES_ONE(relu, "g")
#define cases_relu_grad cases_relu

BUILD_ONE(leaky_relu, kiln_leaky_relu(x, 0.1))
CASES_ONE(leaky_relu, "g")
#define cases_leaky_relu_grad cases_leaky_relu

BUILD_ONE(elu, kiln_elu(x, 0.7))
CASES_ONE(elu, "g")
#define cases_elu_grad cases_elu

BUILD_ONE(gelu, kiln_gelu(x, KILN_GELU_ERF))
CASES_ONE(gelu, "g")
#define cases_gelu_grad cases_gelu

BUILD_ONE(gelu_tanh, kiln_gelu(x, KILN_GELU_TANH))
CASES_ONE(gelu_tanh, "g")
#define cases_gelu_tanh_grad cases_gelu_tanh

BUILD_ONE(silu, kiln_silu(x))
CASES_ONE(silu, "g")
#define cases_silu_grad cases_silu

BUILD_ONE(softplus, kiln_softplus(x, 1.5, 0.9))
CASES_ONE(softplus, "g")
#define cases_softplus_grad cases_softplus

BUILD_ONE(sigmoid, kiln_sigmoid(x))
CASES_ONE(sigmoid, "g")
#define cases_sigmoid_grad cases_sigmoid

BUILD_ONE(tanh, kiln_tanh(x))
CASES_ONE(tanh, "g")
#define cases_tanh_grad cases_tanh

#endif

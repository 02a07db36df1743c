/* Samples of activations. */
#include "tests/support/ops/case.h"

BUILD_ONE(relu, kiln_relu(x))
CASES_ONE(relu, "g")
SAMPLES_OF(relu_grad, relu)

BUILD_ONE(leaky_relu, kiln_leaky_relu(x, 0.1))
CASES_ONE(leaky_relu, "g")
SAMPLES_OF(leaky_relu_grad, leaky_relu)

BUILD_ONE(elu, kiln_elu(x, 0.7))
CASES_ONE(elu, "g")
SAMPLES_OF(elu_grad, elu)

BUILD_ONE(gelu, kiln_gelu(x, KILN_GELU_ERF))
CASES_ONE(gelu, "g")
SAMPLES_OF(gelu_grad, gelu)

BUILD_ONE(gelu_tanh, kiln_gelu(x, KILN_GELU_TANH))
CASES_ONE(gelu_tanh, "g")
SAMPLES_OF(gelu_tanh_grad, gelu_tanh)

BUILD_ONE(silu, kiln_silu(x))
CASES_ONE(silu, "g")
SAMPLES_OF(silu_grad, silu)

BUILD_ONE(hard_swish, kiln_hard_swish(kiln_scale(x, 3.0)))
CASES_ONE(hard_swish, "g")
SAMPLES_OF(hard_swish_grad, hard_swish)

BUILD_ONE(hard_sigmoid, kiln_hard_sigmoid(kiln_scale(x, 3.0)))
CASES_ONE(hard_sigmoid, "g")
SAMPLES_OF(hard_sigmoid_grad, hard_sigmoid)

BUILD_ONE(softplus, kiln_softplus(x, 1.5, 0.9))
CASES_ONE(softplus, "g")
SAMPLES_OF(softplus_grad, softplus)

BUILD_ONE(sigmoid, kiln_sigmoid(x))
CASES_ONE(sigmoid, "g")
SAMPLES_OF(sigmoid_grad, sigmoid)

BUILD_ONE(tanh, kiln_tanh(x))
CASES_ONE(tanh, "g")
SAMPLES_OF(tanh_grad, tanh)

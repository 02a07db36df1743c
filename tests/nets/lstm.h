/* The LSTM of tests and benchmarks, like class Lstm of bench/peer.py. */
#ifndef KILN_TESTS_NETS_LSTM_H
#define KILN_TESTS_NETS_LSTM_H

#include "kiln/nn.h"

typedef struct LstmNet {
    KilnRecurrentLayer lstm;
    KilnLinear head;
} LstmNet;

KilnStatus lstm_net_init(LstmNet *net, const KilnScope *scope, int64_t width, int64_t layers,
                         int64_t classes, KilnError *err);

/* Mean cross-entropy of a class for each step: x [B, T, width], labels i32 [B, T]. */
KilnTensor *lstm_net_loss(const LstmNet *net, KilnTensor *x, KilnTensor *labels);

#endif

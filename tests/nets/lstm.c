#include "tests/nets/lstm.h"

KilnStatus lstm_net_init(LstmNet *net, const KilnScope *scope, int64_t width, int64_t layers,
                         int64_t classes, KilnError *err)
{
    const KilnRecurrentSpec spec = {
        .in = width, .hidden = width, .layers = layers, .batch_first = true
    };
    KilnStatus status = kiln_nn_lstm_init(&net->lstm, scope, "lstm", spec, err);

    if (status == KILN_OK)
        status = kiln_nn_linear_init(&net->head, scope, "head", width, classes, true, err);
    return status;
}

KilnTensor *lstm_net_loss(const LstmNet *net, KilnTensor *x, KilnTensor *labels)
{
    KilnTensor *y = kiln_nn_recurrent(&net->lstm, x, (KilnRecurrentStart) { 0 }).y;

    return kiln_cross_entropy(kiln_nn_linear(&net->head, y), labels, (KilnCrossEntropy) { 0 });
}

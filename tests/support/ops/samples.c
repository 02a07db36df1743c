#include "tests/support/ops/samples.h"

const OpSamples op_samples[] = {
#define ROW(name) { &kiln_op_##name, &samples_##name },
    KILN_OP_TABLE(ROW)
#undef ROW
};
const size_t op_samples_count = KILN_COUNT(op_samples);

size_t samples_to_run(size_t op)
{
    const Samples *samples = op_samples[op].samples;

    for (size_t i = 0; i < op; i++)
        if (op_samples[i].samples->cases == samples->cases)
            return 0;
    return samples->count;
}

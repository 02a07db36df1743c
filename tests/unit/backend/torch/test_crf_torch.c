/* Conditional random fields on both backends against values and gradients recorded from pytorch-crf
 * (tests/record/crf.py). */
#include "tests/support/torch_groups.h"

#include "tests/data/ops/crf.h"

RETURNS(crf_loss, kiln_crf_loss(x[0], x[1], x[2], x[3], x[4], x[5]))
RETURNS(crf_loss_forbidden, kiln_crf_loss(x[0], x[1], x[2], x[3], x[4], x[5]))
RETURNS(crf_decode, kiln_to_float(kiln_crf_decode(x[0], x[1], x[2], x[3], x[4])))
RETURNS(crf_decode_forbidden, kiln_to_float(kiln_crf_decode(x[0], x[1], x[2], x[3], x[4])))
RETURNS(crf_decode_ties, kiln_to_float(kiln_crf_decode(x[0], x[1], x[2], x[3], x[4])))

#define SCORES(n) F("start", n), F("end", n), F("transitions", n, n)

static const Group groups[] = {
    GROUP(crf_loss, F("x", 3, 6, 5), I("tags", 3, 6), I("lengths", 3), SCORES(5)),
    GROUP(crf_loss_forbidden, F("x", 3, 5, 4), I("tags", 3, 5), I("lengths", 3), SCORES(4)),
    GROUP(crf_decode, F("x", 4, 7, 5), I("lengths", 4), SCORES(5)),
    GROUP(crf_decode_forbidden, F("x", 3, 5, 4), I("lengths", 3), SCORES(4)),
    GROUP(crf_decode_ties, F("x", 4, 6, 3), I("lengths", 4), SCORES(3)),
};

int main(void)
{
    return test_recording((Recording) { groups, KILN_COUNT(groups), records, KILN_COUNT(records) });
}

/* The samples of every operation, found by its name from the table of operations: a
 * missing one does not compile. */
#ifndef KILN_TESTS_SUPPORT_OPS_ALL_H
#define KILN_TESTS_SUPPORT_OPS_ALL_H

#include "tests/support/backend_support.h"

#include "tests/support/ops/activation.h"
#include "tests/support/ops/attention.h"
#include "tests/support/ops/cast.h"
#include "tests/support/ops/conv.h"
#include "tests/support/ops/ctc.h"
#include "tests/support/ops/elementwise.h"
#include "tests/support/ops/embedding.h"
#include "tests/support/ops/index.h"
#include "tests/support/ops/loss.h"
#include "tests/support/ops/norm.h"
#include "tests/support/ops/padding.h"
#include "tests/support/ops/pool.h"
#include "tests/support/ops/product.h"
#include "tests/support/ops/recurrent.h"
#include "tests/support/ops/reduce.h"
#include "tests/support/ops/resample.h"
#include "tests/support/ops/reshape.h"
#include "tests/support/ops/update.h"

static const struct Row {
    const KilnOp *op;
    const Case *cases;
    size_t count;
} rows[] = {
#define ROW(name) { &kiln_op_##name, cases_##name, KILN_COUNT(cases_##name) },
    KILN_OP_TABLE(ROW)
#undef ROW
};

/* Operations may share their samples, which then run once. */
static inline bool first_with_its_cases(size_t row)
{
    for (size_t i = 0; i < row; i++)
        if (rows[i].cases == rows[row].cases)
            return false;
    return true;
}

#endif

/* The samples of every operation, found by its name from the table of operations: a
 * missing one does not compile. */
#ifndef KILN_TEST_OPS_ALL_H
#define KILN_TEST_OPS_ALL_H

#include "tests/unit/backend_support.h"

#include "tests/unit/ops/activation.h"
#include "tests/unit/ops/attention.h"
#include "tests/unit/ops/cast.h"
#include "tests/unit/ops/conv.h"
#include "tests/unit/ops/ctc.h"
#include "tests/unit/ops/elementwise.h"
#include "tests/unit/ops/embedding.h"
#include "tests/unit/ops/index.h"
#include "tests/unit/ops/loss.h"
#include "tests/unit/ops/norm.h"
#include "tests/unit/ops/padding.h"
#include "tests/unit/ops/pool.h"
#include "tests/unit/ops/product.h"
#include "tests/unit/ops/recurrent.h"
#include "tests/unit/ops/reduce.h"
#include "tests/unit/ops/resample.h"
#include "tests/unit/ops/shape.h"
#include "tests/unit/ops/update.h"

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

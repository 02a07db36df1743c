/* The array of all operations. */
#include "graph/op.h"

#define KILN_OP_ADDRESS(name) &kiln_op_##name,
const KilnOp *const kiln_ops[] = { KILN_OP_TABLE(KILN_OP_ADDRESS) };
#undef KILN_OP_ADDRESS

const size_t kiln_ops_count = KILN_COUNT(kiln_ops);

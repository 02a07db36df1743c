/* A backend for tests of planning: a few f32 kernels that log what runs. One of them requires its
 * own layout (elements reversed). */
#ifndef KILN_TESTS_SUPPORT_MOCK_BACKEND_H
#define KILN_TESTS_SUPPORT_MOCK_BACKEND_H

#include "graph/backend.h"
#include "tests/support/cmocka.h"

enum { MOCK_REVERSED = 1, MOCK_LOG = 4096, MOCK_WORKSPACE = 1 << 16 };

typedef struct Mock {
    KilnBackend base;
    const KilnOp *log[MOCK_LOG]; /* what was run, NULL for a reorder */
    size_t n;
    int prepared, released; /* kernels of mul */
    bool fail_prepare;
} Mock;

extern const KilnBackendOps mock_ops;

/* How often `op` (NULL: a reorder) was run since the log was cleared. */
int mock_runs(const Mock *mock, const KilnOp *op);

#endif

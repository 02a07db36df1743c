"""Times PyTorch's fused optimizers as bench/optimizers.c does.

    python bench/optimizers_torch.py [PARAMETERS [THREADS [ROUNDS [USED]]]]
"""
import statistics
import sys
import time

import torch

arguments = [int(a) for a in sys.argv[1:]]
n, threads, rounds, used = (arguments + [25000000, 2, 9, 0][len(arguments):])
torch.set_num_threads(threads)
O = torch.optim
CASES = [
    ("sgd", lambda p: O.SGD(p, lr=1e-6, fused=True), 12),
    ("sgd momentum", lambda p: O.SGD(p, lr=1e-6, momentum=0.9, fused=True), 20),
    ("adamw", lambda p: O.AdamW(p, lr=1e-6, fused=True), 28),
    ("rmsprop", lambda p: O.RMSprop(p, lr=1e-6, foreach=True), 20),
    ("adagrad", lambda p: O.Adagrad(p, lr=1e-6, fused=True), 20),
    ("adamw clip norm", lambda p: O.AdamW(p, lr=1e-6, fused=True), 32),
]


def rows(name, make):
    """Updates of `used` rows of an embedding, whose gradient is sparse."""
    table = torch.full((n // 64, 64), 0.5).requires_grad_()
    optimizer = make([table])
    times = []
    for i in range(rounds + 2):
        part = n // 64 // used
        index = torch.arange(used) * part + torch.randint(part, (used,))
        table.grad = torch.sparse_coo_tensor(index[None], torch.full((used, 64), 0.01), table.shape, is_coalesced=True)
        start = time.perf_counter()
        optimizer.step()
        times.append(time.perf_counter() - start)
    print(f"{name:8} {used} of {n // 64} rows {1e3 * statistics.median(times[2:]):8.4f} ms")


if used:
    rows("sgd", lambda p: O.SGD(p, lr=1e-6))
    rows("adagrad", lambda p: O.Adagrad(p, lr=1e-6))
    rows("adam", lambda p: O.SparseAdam(p, lr=1e-6))
for name, make, size in CASES if not used else []:
    param = torch.full((n,), 0.5).requires_grad_()
    param.grad = torch.full((n,), 0.01)
    optimizer = make([param])
    times = []
    for _ in range(rounds + 2):
        start = time.perf_counter()
        if "clip" in name:
            torch.nn.utils.clip_grad_norm_([param], 1.0)
        optimizer.step()
        times.append(time.perf_counter() - start)
    least = min(times[2:])
    print(f"{name:16} {1e3 * statistics.median(times[2:]):8.2f} ms, least {1e3 * least:8.2f} ms"
          f" {size:4d} B/parameter {1e-9 * size * n / least:6.1f} GB/s")

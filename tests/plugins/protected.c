/* The backend `trainer.accelerator=protected`: the processor's kernels, in memory that nothing else
 * can touch. The addresses that it gives away are pages without any access; the bytes are in other
 * pages at a fixed distance, which only its kernels and copies know. A read or write by anybody
 * else, in any thread, is a segmentation fault. Memory is never given out twice.
 *
 * The callback `peek` makes such a read. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "graph/backend.h"
#include "kiln.h"

#define DISTANCE ((size_t)1 << 38) /* of the bytes from their address; address space alone */
enum { PAGE = 4096, SLACK = 64 /* vector loops read past the end */, MAX_KERNELS = 512 };

static struct {
    char *start; /* of the addresses; the bytes start at start + DISTANCE */
    atomic_size_t used;
    const KilnBackendOps *cpu;
    KilnBackendOps ops;
    struct {
        const KilnKernel *cpu;
        KilnKernel own;
    } kernels[MAX_KERNELS];
    size_t n_kernels;
} protected;

/* ---- Memory -------------------------------------------------------------------------- */

/* Before each block is the size of its pages, in bytes that are not protected. */
static size_t *size_of(char *bytes)
{
    return (size_t *)(void *)(bytes - PAGE);
}

static void *allocate(KilnBackend *backend, size_t bytes)
{
    const size_t pages = PAGE + (bytes + SLACK + PAGE - 1) / PAGE * PAGE;
    const size_t at = atomic_fetch_add(&protected.used, pages);

    (void)backend;
    if (at + pages > DISTANCE ||
        mprotect(protected.start + DISTANCE + at, pages, PROT_READ | PROT_WRITE) != 0)
        return NULL;
    *size_of(protected.start + DISTANCE + at + PAGE) = pages;
    return protected.start + at + PAGE;
}

static void release(KilnBackend *backend, void *address)
{
    char *bytes = (char *)address + DISTANCE;
    const size_t pages = *size_of(bytes);

    (void)backend;
    madvise(bytes - PAGE, pages, MADV_DONTNEED);
    mprotect(bytes - PAGE, pages, PROT_NONE);
}

static void upload(KilnBackend *backend, void *to, const void *host, size_t bytes)
{
    (void)backend;
    memcpy((char *)to + DISTANCE, host, bytes);
}

static void download(KilnBackend *backend, void *host, const void *from, size_t bytes)
{
    (void)backend;
    memcpy(host, (const char *)from + DISTANCE, bytes);
}

static void copy(KilnBackend *backend, void *to, const void *from, size_t bytes)
{
    download(backend, (char *)to + DISTANCE, from, bytes);
}

static void clear(KilnBackend *backend, void *to, size_t bytes)
{
    (void)backend;
    memset((char *)to + DISTANCE, 0, bytes);
}

static KilnStatus synchronize(KilnBackend *backend, KilnError *err)
{
    (void)backend;
    (void)err;
    return KILN_OK;
}

static const KilnMemoryOps memory = {
    .allocate = allocate,
    .free = release,
    .upload = upload,
    .download = download,
    .copy = copy,
    .clear = clear,
    .synchronize = synchronize,
};

/* ---- Kernels ------------------------------------------------------------------------- */

/* Moves the addresses of a call to the bytes, or back. An address of the host stays, so that a
 * kernel which gets one fails the test. */
static void move(KilnCall *call, bool to_bytes)
{
    const ptrdiff_t by = to_bytes ? (ptrdiff_t)DISTANCE : -(ptrdiff_t)DISTANCE;

    for (int i = 0; i < call->n_inputs; i++)
        if (call->inputs[i].data != NULL)
            call->inputs[i].data = (char *)call->inputs[i].data + by;
    for (int i = 0; i < call->n_outputs; i++)
        call->outputs[i].data = (char *)call->outputs[i].data + by;
    if (call->workspace != NULL)
        call->workspace = (char *)call->workspace + by;
}

static void run(KilnCall *call)
{
    const KilnKernel *kernel = call->op != NULL ? protected.cpu->kernel(call->backend, call->op)
                                                : protected.cpu->reorder;

    move(call, true);
    kernel->run(call);
    move(call, false);
}

/* The CPU's kernel with its run replaced. */
static const KilnKernel *protect(const KilnKernel *cpu)
{
    size_t i = 0;

    while (i < protected.n_kernels && protected.kernels[i].cpu != cpu)
        i++;
    if (cpu == NULL || i == MAX_KERNELS)
        return NULL;
    if (i == protected.n_kernels) {
        protected.kernels[i].cpu = cpu;
        protected.kernels[i].own = *cpu;
        protected.kernels[i].own.run = run;
        protected.n_kernels++;
    }
    return &protected.kernels[i].own;
}

static const KilnKernel *kernel(const KilnBackend *backend, const KilnOp *op)
{
    return protect(protected.cpu->kernel(backend, op));
}

/* ---- The backend --------------------------------------------------------------------- */

static KilnStatus open_protected(int threads, KilnBackend **ret, KilnError *err)
{
    KilnStatus status = kiln_backend_cpu_new(threads, ret, err);

    if (status < 0)
        return status;
    if (protected.start == NULL) {
        char *start = mmap(NULL, 2 * DISTANCE, PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

        if (start == MAP_FAILED) {
            kiln_backend_free(*ret);
            return kiln_error_nomem(err, 2 * DISTANCE);
        }
        protected.start = start;
        protected.cpu = (*ret)->ops;
        protected.ops = *protected.cpu;
        protected.ops.name = "protected";
        protected.ops.memory = &memory;
        protected.ops.kernel = kernel;
        protected.ops.reorder = protect(protected.cpu->reorder);
    }
    (*ret)->ops = &protected.ops;
    return KILN_OK;
}

__attribute__((constructor)) static void add(void)
{
    (void)kiln_backend_register("protected", open_protected);
}

static KilnStatus peek(KilnInstance *self, KilnTrainer *trainer, KilnError *err)
{
    (void)self;
    (void)trainer;
    return *(volatile char *)(protected.start + PAGE) >= 0
               ? KILN_OK
               : kiln_error_set(err, KILN_E_INTERNAL, "a negative value");
}

static const KilnCallbackOps ops = { .on_fit_start = peek };

static const KilnComponent component = {
    .kind = KILN_KIND_CALLBACK,
    .name = "peek",
    .summary = "Reads memory of the backend, for tests",
    .ops.callback = &ops,
};

static const KilnComponent *const list[] = { &component, NULL };
KILN_PLUGIN_DEFINE(list)

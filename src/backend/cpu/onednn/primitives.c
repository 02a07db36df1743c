/* Runs oneDNN primitives on a call's buffers. Memory objects are made once; a run only sets their
 * addresses. */
#include "backend/cpu/onednn/primitives.h"

#include <stdlib.h>
#include <string.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/parallel.h"

enum { MAX_STEPS = 4, MAX_ARGS = 10 };

typedef struct Step {
    dnnl_primitive_t primitive;
    int n;
    dnnl_exec_arg_t args[MAX_ARGS];
    KilnBufferKind buffers[MAX_ARGS];
    size_t at[MAX_ARGS];
} Step;

typedef struct Steps {
    int n;
    Step step[MAX_STEPS];
} Steps;

size_t kiln_primitives_reserve(KilnCall *call, size_t bytes)
{
    size_t at = (call->workspace_size + 63) / 64 * 64;

    call->workspace_size = at + bytes;
    return at;
}

static dnnl_status_t add_arg(Step *step, KilnDnnl *dnnl, const KilnPrimitiveArg *arg)
{
    dnnl_memory_t memory = NULL;
    dnnl_status_t status = dnnl_memory_create(&memory, arg->md, dnnl->engine, DNNL_MEMORY_NONE);

    if (status != dnnl_success)
        return status;
    step->args[step->n] = (dnnl_exec_arg_t) { .arg = arg->id, .memory = memory };
    step->buffers[step->n] = arg->buffer;
    step->at[step->n] = arg->at;
    step->n++;
    return dnnl_success;
}

KilnStatus kiln_primitives_add(KilnCall *call, dnnl_primitive_desc_t pd,
                               const KilnPrimitiveArg *args, int n, KilnError *err)
{
    KilnDnnl *dnnl = &kiln_cpu(call)->dnnl;
    Steps *steps = call->priv;

    if (steps == NULL) {
        steps = calloc(1, sizeof(*steps));
        if (steps == NULL)
            return kiln_error_nomem(err, sizeof(*steps));
        call->priv = steps;
    }

    Step *step = &steps->step[steps->n++];
    KilnMd scratch = dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
    size_t bytes = scratch != NULL ? kiln_md_bytes(scratch) : 0;
    int before = kiln_threads_set(dnnl->threads);
    dnnl_status_t status = kiln_dnnl_has_room() ? dnnl_primitive_create(&step->primitive, pd)
                                                : dnnl_out_of_memory;

    kiln_threads_set(before);
    for (int i = 0; i < n && status == dnnl_success; i++)
        status = add_arg(step, dnnl, &args[i]);
    if (bytes > 0 && status == dnnl_success) {
        const KilnPrimitiveArg arg = { DNNL_ARG_SCRATCHPAD, scratch, KILN_BUFFER_WORKSPACE,
                                       kiln_primitives_reserve(call, bytes) };

        status = add_arg(step, dnnl, &arg);
    }
    if (status == dnnl_success)
        return KILN_OK;
    kiln_primitives_release(call);
    return kiln_dnnl_error(err, status, "a primitive");
}

static void *bytes_of(KilnCall *call, KilnBufferKind buffer, size_t at)
{
    switch (buffer) {
    case KILN_BUFFER_INPUT:
        return call->inputs[at].data;
    case KILN_BUFFER_OUTPUT:
        return call->outputs[at].data;
    case KILN_BUFFER_WORKSPACE:
        break;
    }
    return (unsigned char *)call->workspace + at;
}

/* Whether the step copies bytes onto themselves: a sum's first term that is already where the
 * result will be. */
static bool is_done(KilnCall *call, const Step *step)
{
    return step->args[0].arg == DNNL_ARG_FROM && bytes_of(call, step->buffers[0], step->at[0]) ==
                                                     bytes_of(call, step->buffers[1], step->at[1]);
}

static dnnl_status_t run_step(KilnCall *call, Step *step)
{
    dnnl_status_t status = dnnl_success;

    if (is_done(call, step))
        return status;
    for (int i = 0; i < step->n && status == dnnl_success; i++)
        status = dnnl_memory_set_data_handle(step->args[i].memory,
                                             bytes_of(call, step->buffers[i], step->at[i]));
    if (status == dnnl_success)
        status = dnnl_primitive_execute(step->primitive, kiln_cpu(call)->dnnl.stream, step->n,
                                        step->args);
    return status;
}

/* Everything that can be checked was checked when the primitives were added. If oneDNN still fails,
 * the outputs become NaN, so that the error shows and nothing learns from it. */
void kiln_primitives_run(KilnCall *call)
{
    const KilnDnnl *dnnl = &kiln_cpu(call)->dnnl;
    Steps *steps = call->priv;
    dnnl_status_t status = dnnl_success;
    int before = kiln_threads_set(dnnl->threads);

    for (int s = 0; s < steps->n && status == dnnl_success; s++)
        status = run_step(call, &steps->step[s]);
    if (status == dnnl_success)
        status = dnnl_stream_wait(dnnl->stream);
    kiln_threads_set(before);
    for (int i = 0; i < call->n_outputs && status != dnnl_success; i++)
        memset(call->outputs[i].data, 0xFF, call->outputs[i].bytes);
}

void kiln_primitives_release(KilnCall *call)
{
    Steps *steps = call->priv;

    if (steps == NULL)
        return;
    for (int s = 0; s < steps->n; s++) {
        for (int i = 0; i < steps->step[s].n; i++)
            dnnl_memory_destroy(steps->step[s].args[i].memory);
        dnnl_primitive_destroy(steps->step[s].primitive);
    }
    free(steps);
    call->priv = NULL;
}

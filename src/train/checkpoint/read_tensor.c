/* Reads tensors into buffers: straight, or through a copy where the host cannot see them. */
#include "train/checkpoint/read_tensor.h"

#include <stdlib.h>

KilnStatus kiln_read_tensor(const KilnSafetensors *file, const KilnStEntry *entry, KilnDType dtype,
                            KilnLocation to, KilnError *err)
{
    const size_t bytes = (size_t)kiln_shape_count(&entry->shape) * kiln_dtype_size(dtype);
    void *view = kiln_buffer_host_view(to.buffer, to.offset);

    if (view != NULL)
        return kiln_safetensors_read(file, entry, dtype, view, err);
    void *data = malloc(bytes);
    if (data == NULL)
        return kiln_error_nomem(err, bytes);
    KilnStatus status = kiln_safetensors_read(file, entry, dtype, data, err);
    if (status >= 0)
        kiln_buffer_upload(to.buffer, to.offset, data, bytes);
    free(data);
    return status;
}

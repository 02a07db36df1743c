/* Reading tensors into buffers, by way of the host's memory. */
#include "train/checkpoint/read_tensor.h"

#include <stdlib.h>

KilnStatus kiln_read_tensor(const KilnSafetensors *file, const KilnStEntry *entry, KilnDType dtype,
                            KilnLocation to, KilnError *err)
{
    const size_t bytes = (size_t)kiln_shape_count(&entry->shape) * kiln_dtype_size(dtype);
    void *data = malloc(bytes);

    if (data == NULL)
        return kiln_error_nomem(err, bytes);
    KilnStatus status = kiln_safetensors_read(file, entry, dtype, data, err);
    if (status >= 0)
        kiln_buffer_upload(to.buffer, to.offset, data, bytes);
    free(data);
    return status;
}

/* Chooses the reader of a user's file or folder. */
#include "data/raw/raw_input.h"

#include "data/raw/raw_text.h"

/* The only field that takes `type`; NULL: none or several do, or another one is required. */
static const KilnRawField *only_field(const KilnRawField *fields, size_t n, KilnRawType type)
{
    const KilnRawField *found = NULL;

    for (size_t i = 0; i < n; i++) {
        const bool takes = (fields[i].types & type) != 0;

        if (!takes && !fields[i].optional)
            return NULL;
        if (takes && found != NULL)
            return NULL;
        if (takes)
            found = &fields[i];
    }
    return found;
}

KilnStatus kiln_raw_input_open(const char *path, const KilnRawField *fields, size_t n_fields,
                               const KilnPoll *poll, KilnRawInput *ret, KilnError *err)
{
    const KilnRawField *file = only_field(fields, n_fields, KILN_RAW_PATH);

    if (file != NULL)
        return kiln_raw_paths_open(path, file, poll, ret, err);
    KilnText takes = { 0 };
    kiln_raw_fields_text(fields, n_fields, &takes);
    kiln_error_set(err, KILN_E_FORMAT, "%s: can't be read as samples, which are %s", path,
                   takes.data != NULL ? takes.data : "");
    kiln_text_release(&takes);
    return KILN_E_FORMAT;
}

void kiln_raw_input_release(KilnRawInput *input)
{
    if (input->release != NULL)
        input->release(input->set.ctx);
    *input = (KilnRawInput) { 0 };
}

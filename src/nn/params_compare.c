/* Compares a saved state dict with a store before anything is read, so that a mismatch changes
 * nothing and is reported in full. */
#include "nn/params.h"

#include <stdlib.h>

#include "base/text.h"

enum { MAX_NAMED = 5 }; /* per kind of difference; the rest is only counted */

/* One kind of difference, as text for the message. */
typedef struct Differences {
    const char *title;
    KilnText text;
    size_t count;
} Differences;

/* Whether the text has room for one more name; counts it in any case. */
static bool name_it(Differences *list)
{
    if (list->count++ >= MAX_NAMED)
        return false;
    if (list->count > 1)
        kiln_text_append(&list->text, ", ");
    return true;
}

static void compare_one(const KilnParam *param, const KilnParamForm *saved, Differences *misfit)
{
    char here[KILN_SHAPE_TEXT], there[KILN_SHAPE_TEXT];

    if (param->dtype == saved->dtype && kiln_shape_equal(&param->shape, &saved->shape))
        return;
    if (name_it(misfit))
        kiln_text_printf(
            &misfit->text, "%s (%s %s in the file, %s %s in the model)", param->name,
            kiln_dtype_name(saved->dtype), kiln_shape_text(&saved->shape, there, sizeof(there)),
            kiln_dtype_name(param->dtype), kiln_shape_text(&param->shape, here, sizeof(here)));
}

/* Checks every saved tensor, then finds the parameters without one. */
static void compare(const KilnParams *params, const KilnParamForm *forms, size_t n, bool *found,
                    Differences *missing, Differences *unexpected, Differences *misfit)
{
    for (size_t i = 0; i < n; i++) {
        const KilnParam *param = kiln_params_find(params, forms[i].name);

        if (param != NULL) {
            found[param->index] = true;
            compare_one(param, &forms[i], misfit);
        } else if (name_it(unexpected)) {
            kiln_text_append(&unexpected->text, forms[i].name);
        }
    }
    for (size_t i = 0; i < params->count; i++)
        if (!found[i] && name_it(missing))
            kiln_text_append(&missing->text, params->items[i]->name);
}

static KilnStatus report(Differences *const *lists, size_t n, const char *source, KilnError *err)
{
    KilnText text = { 0 };

    kiln_text_printf(&text, "%s does not fit the model:", source);
    for (size_t i = 0; i < n; i++) {
        if (lists[i]->count == 0)
            continue;
        kiln_text_printf(&text, "\n  %s: %s", lists[i]->title,
                         lists[i]->text.data != NULL ? lists[i]->text.data : "");
        if (lists[i]->count > MAX_NAMED)
            kiln_text_printf(&text, " and %zu more", lists[i]->count - MAX_NAMED);
    }
    kiln_text_append(&text,
                     "\n  use the model and the options that made the file, or another file");
    KilnStatus status = text.failed ? kiln_error_nomem(err, text.length)
                                    : kiln_error_set(err, KILN_E_FORMAT, "%s", text.data);
    kiln_text_release(&text);
    return status;
}

KilnStatus kiln_params_compare(const KilnParams *params, const KilnParamForm *forms, size_t n,
                               const char *source, KilnError *err)
{
    Differences missing = { .title = "missing in the file" };
    Differences unexpected = { .title = "not in the model" };
    Differences misfit = { .title = "of another form" };
    Differences *const lists[] = { &missing, &unexpected, &misfit };
    KilnStatus status = KILN_OK;
    bool *found = calloc(params->count + 1, sizeof(*found));

    if (found == NULL)
        return kiln_error_nomem(err, params->count + 1);
    compare(params, forms, n, found, &missing, &unexpected, &misfit);
    if (missing.count + unexpected.count + misfit.count > 0)
        status = report(lists, KILN_COUNT(lists), source, err);
    for (size_t i = 0; i < KILN_COUNT(lists); i++)
        kiln_text_release(&lists[i]->text);
    free(found);
    return status;
}

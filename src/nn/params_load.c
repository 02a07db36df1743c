/* Copying a saved state dict into a store: first everything is compared, so
 * that a misfit changes nothing and is reported whole. */
#include "nn/params.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

enum { MOST_NAMED = 5 }; /* per kind of difference; the rest is counted */

/* One kind of difference, as text for the message. */
typedef struct Differences {
    const char *title;
    KilnText text;
    size_t count;
} Differences;

/* Room for one more in the text; counts it in any case. */
static bool name_it(Differences *list)
{
    if (list->count++ >= MOST_NAMED)
        return false;
    if (list->count > 1)
        kiln_text_append(&list->text, ", ");
    return true;
}

static void compare_one(const KilnParam *param, const KilnParamView *view, Differences *misfit)
{
    char here[KILN_SHAPE_TEXT], there[KILN_SHAPE_TEXT];

    if (param->dtype == view->dtype && kiln_shape_equal(&param->shape, &view->shape))
        return;
    if (name_it(misfit))
        kiln_text_printf(&misfit->text, "%s (%s %s in the file, %s %s in the model)", param->name,
                         kiln_dtype_name(view->dtype),
                         kiln_shape_text(&view->shape, there, sizeof(there)),
                         kiln_dtype_name(param->dtype),
                         kiln_shape_text(&param->shape, here, sizeof(here)));
}

/* Find each parameter's view, order[i] for parameter i, and what differs. */
static void compare(const KilnParams *params, const KilnParamView *views, size_t n, size_t *order,
                    Differences *missing, Differences *unexpected, Differences *misfit)
{
    for (size_t i = 0; i < params->count; i++)
        order[i] = SIZE_MAX;
    for (size_t v = 0; v < n; v++) {
        const KilnParam *param = kiln_params_find(params, views[v].name);
        size_t i = 0;

        if (param == NULL) {
            if (name_it(unexpected))
                kiln_text_append(&unexpected->text, views[v].name);
            continue;
        }
        while (params->items[i] != param)
            i++;
        order[i] = v;
        compare_one(param, &views[v], misfit);
    }
    for (size_t i = 0; i < params->count; i++)
        if (order[i] == SIZE_MAX && name_it(missing))
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
        if (lists[i]->count > MOST_NAMED)
            kiln_text_printf(&text, " and %zu more", lists[i]->count - MOST_NAMED);
    }
    kiln_text_append(&text, "\n  use the model and the options that made the file, or another file");
    KilnStatus status = text.failed ? kiln_error_nomem(err, text.length)
                                    : kiln_error_set(err, KILN_E_FORMAT, "%s", text.data);
    kiln_text_release(&text);
    return status;
}

KilnStatus kiln_params_load(KilnParams *params, const KilnParamView *views, size_t n,
                            const char *source, KilnError *err)
{
    Differences missing = { .title = "missing in the file" };
    Differences unexpected = { .title = "not in the model" };
    Differences misfit = { .title = "of another form" };
    Differences *const lists[] = { &missing, &unexpected, &misfit };
    KilnStatus status = KILN_OK;
    size_t *order;

    if (!params->sealed)
        return kiln_error_set(err, KILN_E_INTERNAL,
                              "%s is loaded into a store that is not sealed", source);
    order = calloc(params->count + 1, sizeof(*order));
    if (order == NULL)
        return kiln_error_nomem(err, (params->count + 1) * sizeof(*order));
    compare(params, views, n, order, &missing, &unexpected, &misfit);
    if (missing.count + unexpected.count + misfit.count > 0) {
        status = report(lists, KILN_COUNT(lists), source, err);
    } else {
        for (size_t i = 0; i < params->count; i++) {
            KilnParam *param = params->items[i];

            memcpy(param->data, views[order[i]].data,
                   (size_t)param->count * kiln_dtype_size(param->dtype));
        }
    }
    for (size_t i = 0; i < KILN_COUNT(lists); i++)
        kiln_text_release(&lists[i]->text);
    free(order);
    return status;
}

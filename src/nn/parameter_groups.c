/* Parameter groups: selects parameters by name and turns them into segments of the flat buffers. */
#include "nn/parameter_groups.h"

#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "nn/params.h"

const KilnField kiln_param_group_fields[] = {
    KILN_FIELD_STR_LIST(KilnParamGroup, params, NULL,
                        "patterns over parameter names, such as ['*.bias', 'fc.*']"),
    KILN_FIELD_F64(KilnParamGroup, lr_scale, "1.0", 0.0, 1e6,
                   "multiplies the learning rate; 0: frozen, no gradient is computed"),
    KILN_FIELD_F64_OPT(KilnParamGroup, weight_decay, "null", 0.0, 1e3,
                       "weight decay; null: the optimizer's"),
    KILN_FIELD_END,
};

/* ---- Patterns ----------------------------------------------------------------- */

bool kiln_name_fits(const char *const *patterns, const char *name)
{
    bool fits = patterns == NULL;

    for (size_t i = 0; !fits && patterns[i] != NULL; i++)
        fits = fnmatch(patterns[i], name, 0) == 0;
    return fits;
}

static bool group_fits(const KilnParamGroup *group, const char *name)
{
    for (size_t i = 0; i < group->params_count; i++)
        if (fnmatch(group->params[i], name, 0) == 0)
            return true;
    return false;
}

static const KilnParamGroup *group_of(const KilnOptimizerCommon *common, const KilnParam *param)
{
    for (size_t i = 0; i < common->groups_count; i++)
        if (group_fits(&common->groups[i].value, param->name))
            return &common->groups[i].value;
    return NULL;
}

/* Whether the pattern fits a parameter that the optimizer trains. */
static bool fits_any(const KilnParams *params, const char *const *trained, const char *pattern)
{
    for (size_t i = 0; i < params->count; i++) {
        const KilnParam *param = params->items[i];

        if (param->trained && kiln_name_fits(trained, param->name) &&
            fnmatch(pattern, param->name, 0) == 0)
            return true;
    }
    return false;
}

KilnStatus kiln_no_such_parameter(const char *option, const char *pattern, const char *what,
                                  const char *const *names, size_t n, KilnError *err)
{
    KilnText list = { 0 };

    for (size_t i = 0; i < n && i < 8; i++)
        kiln_text_printf(&list, "%s%s", i > 0 ? ", " : "", names[i]);
    const char *nearest = kiln_nearest(pattern, names, n);
    kiln_error_set(err, KILN_E_KEY, "%s: \"%s\" matches no %s%s%s%s; there are %s%s", option,
                   pattern, what, nearest != NULL ? "; did you mean " : "",
                   nearest != NULL ? nearest : "", nearest != NULL ? "?" : "",
                   list.data != NULL ? list.data : "none", n > 8 ? ", ..." : "");
    kiln_text_release(&list);
    return KILN_E_KEY;
}

static KilnStatus no_such_parameter(const KilnParams *params, const char *const *trained,
                                    const char *option, const char *pattern, KilnError *err)
{
    const char **names = calloc(params->count + 1, sizeof(*names));
    size_t n = 0;

    if (names == NULL)
        return kiln_error_nomem(err, params->count * sizeof(*names));
    for (size_t i = 0; i < params->count; i++)
        if (params->items[i]->trained && kiln_name_fits(trained, params->items[i]->name))
            names[n++] = params->items[i]->name;
    const KilnStatus status = kiln_no_such_parameter(option, pattern, "trained parameter", names, n,
                                                     err);
    free(names);
    return status;
}

static KilnStatus check_patterns(const KilnParams *params, const char *const *trained,
                                 const KilnOptimizerCommon *common, KilnError *err)
{
    char option[256];

    for (size_t i = 0; trained != NULL && trained[i] != NULL; i++)
        if (!fits_any(params, NULL, trained[i]))
            return no_such_parameter(params, NULL, "its parameters", trained[i], err);
    for (size_t g = 0; g < common->groups_count; g++) {
        const KilnNamedGroup *group = &common->groups[g];

        if (group->value.params_count == 0)
            return kiln_error_set(err, KILN_E_MISSING,
                                  "groups.%s.params: expected patterns, such as ['*.bias']; the "
                                  "list is empty",
                                  group->key);
        for (size_t i = 0; i < group->value.params_count; i++)
            if (!fits_any(params, trained, group->value.params[i])) {
                snprintf(option, sizeof(option), "groups.%s.params", group->key);
                return no_such_parameter(params, trained, option, group->value.params[i], err);
            }
    }
    return KILN_OK;
}

/* ---- Segments ------------------------------------------------------------------------ */

/* The rates of one parameter: its group's, or else the optimizer's. */
static void rates_of(const KilnOptimizerCommon *common, const KilnParam *param, float rates[2])
{
    const KilnParamGroup *group = group_of(common, param);
    double decay = common->no_decay_norms && param->shape.rank <= 1 ? 0.0 : common->weight_decay;

    if (group != NULL && group->weight_decay != NULL)
        decay = *group->weight_decay;
    rates[0] = group != NULL ? (float)group->lr_scale : 1.0f;
    rates[1] = (float)decay;
}

static void append(KilnSegments *segments, int64_t end, const float rates[2], bool apart)
{
    float *last = segments->count > 0 ? segments->rates + 2 * (segments->count - 1) : NULL;

    if (!apart && last != NULL && !(last[0] < rates[0]) && !(last[0] > rates[0]) &&
        !(last[1] < rates[1]) && !(last[1] > rates[1])) {
        segments->ends[segments->count - 1] = end;
        return;
    }
    segments->ends[segments->count] = end;
    segments->rates[2 * segments->count] = rates[0];
    segments->rates[2 * segments->count + 1] = rates[1];
    segments->count++;
}

/* Scale the rates of one parameter by its depth. */
static void decay_rate(const KilnOptimizerCommon *common, const int64_t *depths, size_t i,
                       float rates[2])
{
    if (depths != NULL)
        rates[0] *= (float)pow(common->layer_decay, (double)depths[i]);
}

/* NULL in *ret: no layer-wise decay. Owned by the caller. */
static KilnStatus find_depths(const KilnParams *params, const KilnOptimizerCommon *common,
                              int64_t **ret, KilnError *err)
{
    if (!(common->layer_decay > 0.0) || !(common->layer_decay < 1.0))
        return KILN_OK;
    *ret = calloc(params->count + 1, sizeof(**ret));
    return *ret != NULL ? kiln_layer_depths(params, *ret, err)
                        : kiln_error_nomem(err, params->count * sizeof(**ret));
}

KilnStatus kiln_segments_new(const KilnParams *params, const char *const *trained,
                             const KilnOptimizerCommon *common, bool per_parameter,
                             KilnSegments *ret, KilnError *err)
{
    KilnSegments segments = {
        .ends = calloc(params->count + 1, sizeof(*segments.ends)),
        .rates = calloc(params->count + 1, 2 * sizeof(*segments.rates)),
    };
    bool moves = false;
    int64_t *depths = NULL;
    KilnStatus status = segments.ends != NULL && segments.rates != NULL
                            ? check_patterns(params, trained, common, err)
                            : kiln_error_nomem(err, params->count * sizeof(*segments.ends));

    if (status >= 0)
        status = find_depths(params, common, &depths, err);
    for (size_t i = 0; status >= 0 && i < params->count; i++) {
        const KilnParam *param = params->items[i];
        float rates[2] = { 0.0f, 0.0f };

        if (!param->trained)
            continue;
        if (kiln_name_fits(trained, param->name))
            rates_of(common, param, rates);
        decay_rate(common, depths, i, rates);
        moves = moves || rates[0] > 0.0f;
        append(&segments, param->offset + param->count, rates, per_parameter);
    }
    free(depths);
    if (status >= 0 && !moves && segments.count > 0)
        status = kiln_error_set(err, KILN_E_RANGE,
                                "groups: every parameter is frozen (lr_scale 0): nothing is left "
                                "to train");
    if (status < 0) {
        kiln_segments_release(&segments);
        return status;
    }
    *ret = segments;
    return KILN_OK;
}

float kiln_segments_lr_scale(const KilnSegments *segments, const KilnParam *param)
{
    size_t segment = 0;

    while (segment < segments->count && segments->ends[segment] <= param->offset)
        segment++;
    return segment < segments->count ? segments->rates[2 * segment] : 0.0f;
}

void kiln_segments_require_grad(const KilnSegments *segments, KilnParams *params)
{
    size_t segment = 0;

    for (size_t i = 0; i < params->count; i++) {
        KilnParam *param = params->items[i];

        if (!param->trained)
            continue;
        while (segment < segments->count && segments->ends[segment] <= param->offset)
            segment++;
        param->frozen = segment == segments->count || !(segments->rates[2 * segment] > 0.0f);
    }
}

void kiln_segments_release(KilnSegments *segments)
{
    free(segments->ends);
    free(segments->rates);
    *segments = (KilnSegments) { 0 };
}

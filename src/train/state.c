/* KilnState over jansson. */
#include "train/state.h"

#include <math.h>
#include <string.h>

json_t *kiln_json_f64(double value)
{
    if (isfinite(value))
        return json_real(value);
    return json_pack("{s:s}", "f64", isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
}

bool kiln_json_get_f64(const json_t *value, double *ret)
{
    const char *name;

    if (json_is_real(value)) {
        *ret = json_real_value(value);
        return true;
    }
    name = json_string_value(json_object_get(value, "f64"));
    if (name == NULL)
        return false;
    if (strcmp(name, "nan") == 0)
        *ret = (double)NAN;
    else if (strcmp(name, "inf") == 0)
        *ret = (double)INFINITY;
    else if (strcmp(name, "-inf") == 0)
        *ret = -(double)INFINITY;
    else
        return false;
    return true;
}

static void set(KilnState *state, const char *name, json_t *value)
{
    if (value == NULL || json_object_set_new(state->object, name, value) != 0)
        state->failed = true;
}

void kiln_state_set_i64(KilnState *state, const char *name, int64_t value)
{
    set(state, name, json_integer(value));
}

void kiln_state_set_f64(KilnState *state, const char *name, double value)
{
    set(state, name, kiln_json_f64(value));
}

void kiln_state_set_str(KilnState *state, const char *name, const char *value)
{
    set(state, name, value != NULL ? json_string(value) : json_null());
}

bool kiln_state_get_i64(const KilnState *state, const char *name, int64_t *ret)
{
    const json_t *value = json_object_get(state->object, name);

    if (!json_is_integer(value))
        return false;
    *ret = json_integer_value(value);
    return true;
}

bool kiln_state_get_f64(const KilnState *state, const char *name, double *ret)
{
    return kiln_json_get_f64(json_object_get(state->object, name), ret);
}

bool kiln_state_get_str(const KilnState *state, const char *name, const char **ret)
{
    const json_t *value = json_object_get(state->object, name);

    if (!json_is_string(value) && !json_is_null(value))
        return false;
    *ret = json_string_value(value);
    return true;
}

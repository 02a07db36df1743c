/* How deep in the network a parameter lies, for layer-wise learning rates. */
#include <ctype.h>
#include <string.h>

#include "nn/parameter_groups.h"
#include "nn/params.h"

/* The length of a name up to the first part that is a number or ends with _ and a number
 * ("blocks.3", "encoder.layers.encoder_layer_3"), which is a layer; 0: there is none. */
static size_t layer_length(const char *name)
{
    for (const char *part = name, *end; *part != '\0'; part = *end == '.' ? end + 1 : end) {
        const char *digits;

        end = part + strcspn(part, ".");
        for (digits = end; digits > part && isdigit((unsigned char)digits[-1]); digits--)
            ;
        if (*end == '.' && digits < end && (digits == part || digits[-1] == '_'))
            return (size_t)(end - name);
    }
    return 0;
}

/* The level of the layer that an earlier parameter is of, too; -1: none. */
static int64_t level_of_layer(const KilnParams *params, size_t i, size_t length,
                              const int64_t *levels)
{
    const char *name = params->items[i]->name;

    for (size_t k = i; k-- > 0;)
        if (layer_length(params->items[k]->name) == length &&
            strncmp(params->items[k]->name, name, length) == 0)
            return levels[k];
    return -1;
}

/* 0 for what comes before the layers, then one more for each layer, and for what follows one. */
static int64_t find_levels(const KilnParams *params, int64_t *levels)
{
    int64_t top = 0;
    bool in_layer = false; /* the parameter before is of one */

    for (size_t i = 0; i < params->count; i++) {
        const size_t length = layer_length(params->items[i]->name);
        const int64_t known = length > 0 ? level_of_layer(params, i, length, levels) : -1;

        /* Adapters are declared last, but lie where their weights do. */
        if (known < 0 && !params->items[i]->is_adapter && (length > 0 || in_layer))
            top++;
        levels[i] = known >= 0 ? known : top;
        in_layer = length > 0;
    }
    return top;
}

KilnStatus kiln_layer_depths(const KilnParams *params, int64_t *ret, KilnError *err)
{
    const int64_t top = find_levels(params, ret);

    if (top == 0)
        return kiln_error_set(err, KILN_E_RANGE,
                              "layer_decay: no parameter is of a numbered layer, such as "
                              "blocks.3.*; use groups with lr_scale instead");
    for (size_t i = 0; i < params->count; i++)
        ret[i] = top - ret[i];
    return KILN_OK;
}

/* Transforms of images in Python: an array goes in, an array comes out. */
#include <string.h>

#include "python/python_class.h"

/* A class that does not say sizes must keep them: the network is built for them. */
static KilnStatus check_size(const KilnInstance *self, const KilnImage *image,
                             const KilnPythonArray *array, int64_t channels, KilnError *err)
{
    const KilnShape before = KILN_SHAPE(image->height, image->width, image->channels);
    const KilnShape after = KILN_SHAPE(array->shape.dim[0], array->shape.dim[1], channels);
    char before_text[KILN_SHAPE_TEXT], after_text[KILN_SHAPE_TEXT];

    if (kiln_python_class_of(self)->has_size || kiln_shape_equal(&before, &after))
        return KILN_OK;
    return kiln_error_set(err, KILN_E_SHAPE,
                          "__call__ made an image of %s from one of %s: give the class a method "
                          "size(self, height, width, channels) that returns the new ones",
                          kiln_shape_text(&after, after_text, sizeof(after_text)),
                          kiln_shape_text(&before, before_text, sizeof(before_text)));
}

/* The result of __call__ as the image. */
static KilnStatus take(const KilnInstance *self, KilnPythonHost *host, const json_t *place,
                       KilnImage *image, KilnError *err)
{
    KilnPythonArray array;
    KilnStatus status = kiln_python_array(host, place, &array, err);

    if (status < 0)
        return status;
    const int64_t channels = array.shape.rank == 2 ? 1 : array.shape.dim[2];
    if (array.text || array.shape.rank < 2 || array.shape.rank > 3 ||
        kiln_shape_count(&array.shape) == 0 || channels > 3)
        return kiln_error_set(err, KILN_E_SHAPE,
                              "__call__ returned no image: expected an array [height, width, "
                              "channels] of f32, from 0 to 1 like the one it gets, or of u8");
    status = check_size(self, image, &array, channels, err);
    if (status >= 0)
        status = kiln_image_resize_buffer(image, array.shape.dim[0], array.shape.dim[1], channels,
                                          err);
    const KilnRawValue value = {
        .type = KILN_RAW_ARRAY, .data = array.data, .dtype = array.dtype, .shape = array.shape
    };
    if (status >= 0)
        status = kiln_raw_convert(&value, KILN_F32, image->data, err);
    const int64_t n = kiln_shape_count(&array.shape);
    for (int64_t i = 0; status >= 0 && array.dtype == KILN_U8 && i < n; i++)
        image->data[i] /= 255.0F;
    return status;
}

static KilnStatus apply(KilnInstance *self, KilnImage *image, KilnImage *scratch, KilnRng *rng,
                        bool training, KilnError *err)
{
    const KilnPythonObject *state = kiln_state(self);
    const KilnShape shape = KILN_SHAPE(image->height, image->width, image->channels);
    const uint32_t low = kiln_rng_u32(rng), high = kiln_rng_u32(rng) >> 1;
    json_t *reply = NULL;

    (void)scratch;
    kiln_python_host_lock(state->host);
    const KilnPythonCall call = {
        .what = "__call__",
        .request = json_pack("{s:s, s:o, s:I, s:b}", "call", "apply", "image",
                             kiln_python_put(state->host, KILN_F32, &shape, image->data), "seed",
                             (json_int_t)((uint64_t)high << 32 | low), "training", (int)training),
    };
    KilnStatus status = kiln_python_call(state->host, &call, &reply, err);
    if (status >= 0 &&
        (status = take(self, state->host, json_object_get(reply, "place"), image, err)) < 0 &&
        err != NULL)
        (void)kiln_error_prefix(err, "%s: ", kiln_instance_name(self));
    kiln_python_host_unlock(state->host);
    json_decref(reply);
    return status;
}

static KilnStatus size_after(KilnInstance *self, int64_t size[3], KilnError *err)
{
    const KilnPythonObject *state = kiln_state(self);
    const KilnPythonCall call = { .what = "size",
                                  .request = json_pack("{s:s, s:[I, I, I]}", "call", "size", "size",
                                                       (json_int_t)size[0], (json_int_t)size[1],
                                                       (json_int_t)size[2]) };
    json_t *reply = NULL;

    kiln_python_host_lock(state->host);
    KilnStatus status = kiln_python_call(state->host, &call, &reply, err);
    kiln_python_host_unlock(state->host);
    const json_t *after = json_object_get(reply, "size");
    if (status >= 0 && json_array_size(after) != 3)
        status = kiln_error_set(err, KILN_E_SHAPE,
                                "size returned %zu numbers; expected height, width and channels",
                                json_array_size(after));
    for (size_t i = 0; i < 3 && status >= 0; i++)
        size[i] = json_integer_value(json_array_get(after, i));
    json_decref(reply);
    return status;
}

static const KilnTransformOps same_size = { .apply = apply };
static const KilnTransformOps own_size = { .apply = apply, .shape = size_after };

static void complete(KilnPythonClass *class, KilnArena *arena, const json_t *described)
{
    (void)arena;
    (void)described;
    class->component.ops.transform = class->has_size ? &own_size : &same_size;
}

const KilnPythonKind kiln_python_transform = {
    .fields = kiln_python_fields,
    .opts_size = sizeof(KilnPythonOptions),
    .timeout = offsetof(KilnPythonOptions, timeout),
    .state_size = sizeof(KilnPythonObject),
    .init = kiln_python_object_init,
    .release = kiln_python_object_release,
    .complete = complete,
};

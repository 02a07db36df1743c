/* Fuzzes the readers of image files: whole, in part and scaled. What is read has the size that the
 * header says, and finite values. */
#include "fuzz.h"

#include "image/read.h"

static KilnStatus lower_half(void *ctx, const int64_t size[3], KilnImageWindow *ret, KilnError *err)
{
    (void)ctx;
    (void)err;
    *ret = (KilnImageWindow) { .top = size[0] / 2,
                               .left = size[1] / 3,
                               .height = size[0] - size[0] / 2,
                               .width = size[1] - size[1] / 3,
                               .to_height = 3,
                               .to_width = 2 };
    return KILN_OK;
}

static void check(const KilnImage *image, int64_t height, int64_t width)
{
    fuzz_require(image->height == height && image->width == width, "another size", "");
    for (int64_t i = 0; i < height * width * image->channels; i++)
        fuzz_require(image->data[i] >= 0.0f && image->data[i] <= 1.0001f, "not a color", "");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const KilnPngForm form = { .channels = 1 + size % 2 * 2, .max_pixels = 1 << 18 };
    const KilnRawValue value = {
        .name = "input", .type = KILN_RAW_BYTES, .data = data, .bytes = size
    };
    const KilnImageSelect select = { .window = lower_half };
    KilnImage image = { 0 };
    KilnError err = { 0 };
    int64_t found[3];
    KilnStatus status = kiln_image_size_bytes(data, size, "input", form.max_pixels, found, &err);

    fuzz_check_message(status, &err);
    if (status >= 0) {
        status = kiln_image_read_raw(&value, &form, &image, &err);
        fuzz_check_message(status, &err);
        if (status >= 0)
            check(&image, found[0], found[1]);
        if (kiln_image_read_part(&value, &form, &select, &image, &err) >= 0)
            check(&image, 3, 2);
    }
    kiln_image_release(&image);
    return 0;
}

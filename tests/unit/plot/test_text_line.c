/* Lines of text in the system's fonts: ink where it belongs, widths, styles, a font that is not
 * there. Skipped without cairo, or without the font. */
#include <stdlib.h>
#include <string.h>

#include "kiln/plot.h"
#include "tests/support/cmocka.h"

enum { HEIGHT = 32, WIDEST = 160 };

static const char family[] = "DejaVu Sans";

static void need_font(void)
{
    KilnError err = { 0 };

    if (kiln_plot_font_check(family, &err) < 0)
        skip();
}

typedef struct Drawn {
    uint8_t pixels[HEIGHT][WIDEST];
    int width;
    int64_t ink;
    int left, right, top, bottom; /* the first and last column and row with ink */
} Drawn;

static Drawn draw(const KilnPlotText *line)
{
    Drawn ret = { .left = WIDEST, .right = -1, .top = HEIGHT, .bottom = -1 };
    KilnError err = { 0 };

    if (kiln_plot_text_line(line, HEIGHT, WIDEST, ret.pixels[0], &ret.width, &err) < 0)
        fail_msg("%s", err.text);
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDEST; x++) {
            ret.ink += ret.pixels[y][x];
            if (ret.pixels[y][x] == 0)
                continue;
            ret.left = x < ret.left ? x : ret.left;
            ret.right = x > ret.right ? x : ret.right;
            ret.top = y < ret.top ? y : ret.top;
            ret.bottom = y > ret.bottom ? y : ret.bottom;
        }
    return ret;
}

static void test_ink(void **unused)
{
    const KilnPlotText line = { .text = "Hxg", .family = family, .size = 18.0, .stretch = 1.0 };
    KilnError err = { 0 };
    int width;

    (void)unused;
    need_font();
    const Drawn drawn = draw(&line);
    assert_true(drawn.ink > 255 * 50);
    assert_true(drawn.left >= 2 && drawn.right < drawn.width && drawn.right > drawn.width / 2);
    assert_true(drawn.top >= 4 && drawn.bottom < HEIGHT - 2 && drawn.bottom > HEIGHT / 2);
    assert_int_equal(kiln_plot_text_line(&line, HEIGHT, WIDEST, NULL, &width, &err), KILN_OK);
    assert_int_equal(width, drawn.width);
    const Drawn again = draw(&line);
    assert_memory_equal(again.pixels, drawn.pixels, sizeof(drawn.pixels));
}

static void test_options(void **unused)
{
    const KilnPlotText plain = { .text = "Hxg", .family = family, .size = 14.0, .stretch = 1.0 };
    KilnPlotText line = plain;

    (void)unused;
    need_font();
    const Drawn drawn = draw(&plain);
    line.size = 20.0;
    assert_true(draw(&line).width > drawn.width + 6);
    line = plain;
    line.stretch = 1.5;
    const Drawn stretched = draw(&line);
    assert_true(stretched.width > drawn.width + 6);
    assert_int_equal(stretched.bottom, drawn.bottom);
    line = plain;
    line.bold = true;
    assert_true(draw(&line).ink > drawn.ink);
    line = plain;
    line.slant = 0.3;
    assert_true(draw(&line).width > drawn.width);
    line = plain;
    line.rotation = 10.0;
    assert_true(draw(&line).bottom > drawn.bottom);
}

static void test_too_wide(void **unused)
{
    const KilnPlotText line = {
        .text = "as wide as this and then some more", .family = family, .size = 22.0, .stretch = 1.0
    };

    (void)unused;
    need_font();
    const Drawn drawn = draw(&line);
    assert_true(drawn.width > WIDEST);
    assert_int_equal(drawn.ink, 0);
}

static void test_unknown_font(void **unused)
{
    KilnError err = { 0 };

    (void)unused;
    need_font();
    assert_int_equal(kiln_plot_font_check("No Such Font", &err), KILN_E_MISSING);
    assert_non_null(strstr(err.text, "has no font \"No Such Font\""));
    assert_non_null(strstr(err.text, "fc-list"));
    assert_int_equal(kiln_plot_font_check("dejavu sans", &err), KILN_OK);
}

static void test_bytes_that_are_not_text(void **unused)
{
    const KilnPlotText line = { .text = "a\xff", .family = family, .size = 14.0, .stretch = 1.0 };
    KilnError err = { 0 };
    int width;

    (void)unused;
    need_font();
    assert_true(kiln_plot_text_line(&line, HEIGHT, WIDEST, NULL, &width, &err) < 0);
    assert_non_null(strstr(err.text, "can't be drawn"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ink),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_too_wide),
        cmocka_unit_test(test_unknown_font),
        cmocka_unit_test(test_bytes_that_are_not_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

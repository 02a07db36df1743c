/* Lines of text in the system's fonts, as pixels. */
#ifdef KILN_WITH_CAIRO

#include <fontconfig/fontconfig.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "plot/canvas.h"

enum { MARGIN = 4 };

/* Whether one of the names of the font that fontconfig finds for `family` is this. */
static bool is_family(const char *family, FcPattern *found)
{
    FcChar8 *name;

    for (int i = 0; FcPatternGetString(found, FC_FAMILY, i, &name) == FcResultMatch; i++)
        if (strcasecmp((const char *)name, family) == 0)
            return true;
    return false;
}

KilnStatus kiln_plot_font_check(const char *family, KilnError *err)
{
    FcPattern *wanted = FcPatternCreate(), *found = NULL;
    FcResult result;
    bool there = false;

    if (wanted == NULL || !FcPatternAddString(wanted, FC_FAMILY, (const FcChar8 *)family) ||
        !FcConfigSubstitute(NULL, wanted, FcMatchPattern)) {
        if (wanted != NULL)
            FcPatternDestroy(wanted);
        return kiln_error_nomem(err, strlen(family));
    }
    FcDefaultSubstitute(wanted);
    found = FcFontMatch(NULL, wanted, &result);
    there = found != NULL && is_family(family, found);
    if (found != NULL)
        FcPatternDestroy(found);
    FcPatternDestroy(wanted);
    return there ? KILN_OK
                 : kiln_error_set(err, KILN_E_MISSING,
                                  "the system has no font \"%s\" (`fc-list : family` lists those "
                                  "that it has); install it: `sh tools/deps.sh fonts` in kiln's "
                                  "sources, or `apt install fonts-dejavu-core fonts-liberation`, "
                                  "have common ones",
                                  family);
}

static void set_font(cairo_t *cr, const KilnPlotText *line)
{
    cairo_font_options_t *options = cairo_font_options_create();

    cairo_select_font_face(cr, line->family,
                           line->italic ? CAIRO_FONT_SLANT_ITALIC : CAIRO_FONT_SLANT_NORMAL,
                           line->bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
    cairo_set_font_size(cr, line->size);
    cairo_font_options_set_antialias(options, CAIRO_ANTIALIAS_GRAY);
    cairo_font_options_set_hint_style(options, CAIRO_HINT_STYLE_NONE);
    cairo_font_options_set_hint_metrics(options, CAIRO_HINT_METRICS_OFF);
    cairo_set_font_options(cr, options);
    cairo_font_options_destroy(options);
}

/* Draw the text around the middle of the picture, or only measure its width in pixels. */
static int draw(cairo_t *cr, const KilnPlotText *line, int height, int width)
{
    const double angle = line->rotation * acos(-1.0) / 180.0;
    cairo_text_extents_t extents;
    cairo_font_extents_t font;
    cairo_matrix_t shape;

    set_font(cr, line);
    cairo_text_extents(cr, line->text, &extents);
    cairo_font_extents(cr, &font);
    const double wide = fmax(extents.x_advance, extents.x_bearing + extents.width);
    if (width > 0) {
        cairo_translate(cr, width / 2.0, height / 2.0);
        cairo_rotate(cr, angle);
        cairo_matrix_init(&shape, line->stretch, 0.0, -line->slant, 1.0, 0.0, 0.0);
        cairo_transform(cr, &shape);
        cairo_move_to(cr, -wide / 2.0, (font.ascent - font.descent) / 2.0);
        cairo_show_text(cr, line->text);
    }
    return (int)ceil(wide * line->stretch + fabs(line->slant) * (font.ascent + font.descent)) +
           2 * MARGIN;
}

static KilnStatus begin(int width, int height, cairo_surface_t **surface, cairo_t **cr,
                        KilnError *err)
{
    *surface = cairo_image_surface_create(CAIRO_FORMAT_A8, width, height);
    *cr = cairo_create(*surface);
    return cairo_status(*cr) == CAIRO_STATUS_SUCCESS
               ? KILN_OK
               : kiln_error_nomem(err, (size_t)width * (size_t)height);
}

static KilnStatus drawn(cairo_t *cr, const char *text, KilnError *err)
{
    const cairo_status_t status = cairo_status(cr);

    return status == CAIRO_STATUS_SUCCESS
               ? KILN_OK
               : kiln_error_set(err, KILN_E_FORMAT, "the text \"%.64s\" can't be drawn: %s", text,
                                cairo_status_to_string(status));
}

KilnStatus kiln_plot_text_line(const KilnPlotText *line, int height, int max_width, uint8_t *ret,
                               int *ret_width, KilnError *err)
{
    cairo_surface_t *surface;
    cairo_t *cr;
    int width = 0;
    KilnStatus status = begin(ret != NULL ? max_width : 1, height, &surface, &cr, err);

    if (status >= 0) {
        width = draw(cr, line, height, 0);
        if (ret != NULL && width <= max_width)
            (void)draw(cr, line, height, width);
        status = drawn(cr, line->text, err);
    }
    if (status >= 0 && ret != NULL && width <= max_width) {
        cairo_surface_flush(surface);
        const uint8_t *pixels = cairo_image_surface_get_data(surface);
        const int stride = cairo_image_surface_get_stride(surface);

        for (int y = 0; y < height; y++)
            memcpy(ret + (size_t)y * (size_t)max_width, pixels + (size_t)y * (size_t)stride,
                   (size_t)max_width);
    }
    if (status >= 0)
        *ret_width = width;
    cairo_destroy(cr);
    cairo_surface_destroy(surface);
    return status;
}

#else
typedef int kiln_text_line_left_out; /* ISO C wants a declaration in every file */
#endif

/* What stands for pictures in a build without cairo. */
#include "kiln/plot.h"

#ifndef KILN_WITH_CAIRO

KilnStatus kiln_plot_supported(KilnError *err)
{
    return kiln_error_set(err, KILN_E_MISSING,
                          "this kiln was built without cairo, which drawing needs: install "
                          "libcairo2-dev and build it again");
}

void kiln_plot_load_fonts(void)
{
}

KilnStatus kiln_plot_chart(const char *path, const KilnChart *chart, KilnError *err)
{
    (void)path;
    (void)chart;
    return kiln_plot_supported(err);
}

KilnStatus kiln_plot_confusion(const char *path, const KilnConfusion *confusion, KilnError *err)
{
    (void)path;
    (void)confusion;
    return kiln_plot_supported(err);
}

KilnStatus kiln_plot_bars(const char *path, const KilnPlotBars *bars, KilnError *err)
{
    (void)path;
    (void)bars;
    return kiln_plot_supported(err);
}

KilnStatus kiln_plot_panels(const char *path, const KilnPlotPanels *panels, KilnError *err)
{
    (void)path;
    (void)panels;
    return kiln_plot_supported(err);
}

KilnStatus kiln_plot_parallel(const char *path, const KilnPlotParallel *parallel, KilnError *err)
{
    (void)path;
    (void)parallel;
    return kiln_plot_supported(err);
}

KilnStatus kiln_plot_gallery(const char *path, const KilnPlotGallery *gallery, KilnError *err)
{
    (void)path;
    (void)gallery;
    return kiln_plot_supported(err);
}

KilnStatus kiln_plot_boxes(const KilnPicture *picture, const KilnPlotBox *boxes, size_t n,
                           KilnError *err)
{
    (void)picture;
    (void)boxes;
    (void)n;
    return kiln_plot_supported(err);
}

KilnStatus kiln_plot_font_check(const char *family, KilnError *err)
{
    (void)family;
    return kiln_plot_supported(err);
}

KilnStatus kiln_plot_text_line(const KilnPlotText *line, int height, int max_width, uint8_t *ret,
                               int *ret_width, KilnError *err)
{
    (void)line;
    (void)height;
    (void)max_width;
    (void)ret;
    (void)ret_width;
    return kiln_plot_supported(err);
}

#endif

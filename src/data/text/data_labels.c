/* The classes of a data set, and the labels of its samples. */
#include "kiln/tools/data_labels.h"

#include <string.h>

static const char classes_file[] = "classes.txt";

/* ---- Options --------------------------------------------------------------------------------- */

KilnStatus kiln_label_source_check(const KilnLabelSource *source, const char **ret_option,
                                   KilnError *err)
{
    *ret_option = source->n_columns > 0 ? "label_columns" : "label_separator";
    if (!source->several && (source->n_columns > 0 || source->separator != NULL))
        return kiln_error_set(err, KILN_E_RANGE, "needs multilabel=true");
    if (source->n_columns == 0)
        return KILN_OK;
    if (source->n_classes > 0)
        return kiln_error_set(err, KILN_E_RANGE,
                              "the columns are the classes; leave the option classes out");
    return source->separator == NULL
               ? KILN_OK
               : kiln_error_set(err, KILN_E_RANGE,
                                "the columns have 0 or 1; leave label_separator out");
}

size_t kiln_label_source_width(const KilnLabelSource *source)
{
    return source->n_columns > 0 ? source->n_columns : 1;
}

void kiln_label_source_columns(const KilnLabelSource *source, const char **ret_columns,
                               const char **ret_options)
{
    const bool flags = source->n_columns > 0;

    for (size_t i = 0; i < kiln_label_source_width(source); i++) {
        ret_columns[i] = flags ? source->columns[i] : source->label;
        ret_options[i] = flags ? "label_columns" : "label";
    }
}

/* ---- Labels ---------------------------------------------------------------------------------- */

KilnStatus kiln_data_labels_open(KilnDataLabels *labels, const KilnLabelSource *source,
                                 const KilnDataContext *context, KilnError *err)
{
    const bool flags = source->n_columns > 0;
    char *const *given = flags ? source->columns : source->classes;
    const size_t n = flags ? source->n_columns : source->n_classes;
    KilnStatus status = KILN_OK;

    *labels = (KilnDataLabels) {
        .source = *source,
        .format = { .end = source->end,
                    .separator = source->separator,
                    .columns = (const char *const *)source->columns,
                    .n_columns = source->n_columns },
    };
    if (context->fitted != NULL)
        return kiln_name_list_read(&labels->classes, context->fitted, classes_file, err);
    for (size_t i = 0; i < n && status >= 0; i++)
        status = kiln_name_list_add(&labels->classes, (KilnString) { given[i], strlen(given[i]) },
                                    err);
    labels->collects = labels->classes.sorted = n == 0;
    return status;
}

KilnStatus kiln_data_labels_check(KilnDataLabels *labels, KilnSplit split, const KilnString *fields,
                                  KilnError *err)
{
    const KilnLabelRule rule = { .format = &labels->format,
                                 .several = labels->source.several,
                                 .column = labels->source.label,
                                 .given = labels->source.n_classes > 0 };

    return kiln_row_labels_check(&rule, fields, &labels->classes,
                                 labels->collects && split == KILN_TRAIN, err);
}

KilnStatus kiln_data_labels_add(KilnDataLabels *labels, KilnSplit split, const KilnString *fields,
                                KilnError *err)
{
    return kiln_label_numbers_add(&labels->splits[split], &labels->format, fields, &labels->classes,
                                  err);
}

KilnFeature kiln_data_labels_feature(const KilnDataLabels *labels)
{
    return labels->source.several
               ? (KilnFeature) { .name = "labels",
                                 .content = KILN_LABEL,
                                 .dtype = KILN_F32,
                                 .shape = KILN_SHAPE((int64_t)labels->classes.n) }
               : (KilnFeature) { .name = "label", .content = KILN_LABEL, .dtype = KILN_I32 };
}

int64_t kiln_data_labels_class(const KilnDataLabels *labels, KilnSplit split, int64_t i)
{
    return labels->source.several ? -1 : labels->splits[split].numbers[i];
}

void kiln_data_labels_write(const KilnDataLabels *labels, KilnSplit split, int64_t i, void *to)
{
    if (labels->source.several)
        kiln_label_numbers_flags(&labels->splits[split], i, labels->classes.n, to);
    else
        *(int32_t *)to = labels->splits[split].numbers[i];
}

KilnStatus kiln_data_labels_save(const KilnDataLabels *labels, const char *dir, KilnError *err)
{
    return kiln_name_list_write(&labels->classes, dir, classes_file, err);
}

void kiln_data_labels_release(KilnDataLabels *labels)
{
    kiln_name_list_release(&labels->classes);
    for (int split = 0; split < KILN_SPLIT_COUNT; split++)
        kiln_label_numbers_release(&labels->splits[split]);
    *labels = (KilnDataLabels) { 0 };
}

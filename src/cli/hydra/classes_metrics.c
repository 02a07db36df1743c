/* Metrics of torchmetrics. */
#include "cli/hydra/classes_rows.h"

#define KNOWN                                                                                      \
    NEEDLESS("task"), NEEDLESS("num_classes"), NEEDLESS("num_labels"), NEEDLESS("validate_args"),  \
        NEEDLESS("dist_sync_on_step"), NEEDLESS("compute_on_cpu"), NEEDLESS("sync_on_compute")
#define SCORES KNOWN, ABSENT("threshold", "0.5", "the class of the largest score counts")
#define AVERAGE                                                                                    \
    {                                                                                              \
        "average", "average", KILN_IMPORT_CHOICE, "micro=micro macro=macro weighted=weighted",     \
            "micro, macro, weighted or binary; each class: per_class: true"                        \
    }
#define SAMPLEWISE ABSENT("multidim_average", "global", "over all samples")

static const KilnImportOption accuracy[] = {
    SCORES,
    SAME("top_k"),
    SAME("ignore_index"),
    SAMPLEWISE,
    ABSENT("average", "micro", "kiln's accuracy is that of all rows; recall has macro"),
    END,
};
static const KilnImportOption scores[] = {
    SCORES,
    AVERAGE,
    SAMPLEWISE,
    SAME("ignore_index"),
    ABSENT("top_k", "1", "only accuracy has top_k"),
    ABSENT("zero_division", "0", NULL),
    END,
};
static const KilnImportOption curves[] = {
    KNOWN,
    AVERAGE,
    SAME("ignore_index"),
    ABSENT("thresholds", "null", "kiln's curves are exact"),
    ABSENT("max_fpr", "null", "the whole curve counts"),
    NEEDLESS("normalization"),
    END,
};
static const KilnImportOption confusion[] = {
    SCORES,
    { "normalize", "normalize", KILN_IMPORT_CHOICE,
      "none=none null=none true=true pred=pred all=all", NULL },
    SAME("ignore_index"),
    END,
};
static const KilnImportOption squared[] = {
    { "squared", "root", KILN_IMPORT_CHOICE, "true=false false=true", NULL },
    NEEDLESS("num_outputs"),
    KNOWN,
    END,
};
static const KilnImportOption numbers[] = { KNOWN, NEEDLESS("num_outputs"),
                                            ABSENT("adjusted", "0", NULL),
                                            ABSENT("multioutput", "uniform_average", NULL), END };
static const KilnImportOption bleu[] = {
    KNOWN,
    NAMED("n_gram", "max_order"),
    { "smooth", "smooth", KILN_IMPORT_CHOICE, "false=none true=add_k", NULL },
    { "tokenize", "tokenize", KILN_IMPORT_CHOICE, "none=none 13a=13a char=char intl=intl",
      "13a, none, intl or char" },
    ABSENT("lowercase", "false", "case counts"),
    ABSENT("weights", "null", "all orders count alike"),
    END,
};
static const KilnImportOption chrf[] = {
    KNOWN,
    NAMED("n_char_order", "char_order"),
    NAMED("n_word_order", "word_order"),
    SAME("beta"),
    SAME("whitespace"),
    ABSENT("lowercase", "false", "case counts"),
    NEEDLESS("return_sentence_level_score"),
    END,
};
static const KilnImportOption known[] = { KNOWN, SAME("ignore_index"), END };
static const KilnImportOption rates[] = { KNOWN, END };
#define RANKING                                                                                    \
    KNOWN, ABSENT("ignore_index", "null", NULL),                                                   \
        ABSENT("aggregation", "mean", "the mean of all queries"),                                  \
    {                                                                                              \
        "empty_target_action", "empty", KILN_IMPORT_CHOICE, "neg=zero pos=one skip=skip", NULL     \
    }
static const KilnImportOption ndcg[] = { RANKING, NAMED("top_k", "k"), END };
static const KilnImportOption ranking[] = { RANKING, ABSENT("top_k", "null", "all documents"),
                                            END };
static const KilnImportOption boxes[] = { KNOWN,
                                          NEEDLESS("box_format"),
                                          NEEDLESS("iou_type"),
                                          ABSENT("iou_thresholds", "null", "those of COCO"),
                                          ABSENT("rec_thresholds", "null", "those of COCO"),
                                          ABSENT("max_detection_thresholds", "null",
                                                 "those of COCO"),
                                          NEEDLESS("extended_summary"),
                                          ABSENT("average", "macro", "the mean of the classes"),
                                          NAMED("class_metrics", "per_class"),
                                          NEEDLESS("backend"),
                                          END };
static const KilnImportOption collection[] = {
    { "metrics", NULL, KILN_IMPORT_INSIDE, NULL, NULL },
    ABSENT("prefix", "null", "train/, val/ and test/ precede the name"),
    ABSENT("postfix", "null", "a metric's name is its key"),
    NEEDLESS("compute_groups"),
    ABSENT("additional_metrics", "null", "list all in metrics"),
    END,
};

#define METRIC(name, component, extra, options)                                                    \
    {                                                                                              \
        "torchmetrics", name, KILN_IMPORT_METRICS, "metric/" component, extra, NULL, options       \
    }
/* A function of the task, and the classes of the tasks. */
#define OF_TASKS(name, component, options)                                                         \
    METRIC(name, component, NULL, options), METRIC("Multiclass" name, component, NULL, options)
#define BINARY(name, component, extra, options) METRIC("Binary" name, component, extra, options)
#define NO_METRIC(name, note) NONE("torchmetrics", name, KILN_IMPORT_METRICS, note)

const KilnImportClass kiln_import_metrics[] = {
    OF_TASKS("Accuracy", "accuracy", accuracy),
    BINARY("Accuracy", "accuracy", NULL, accuracy),
    METRIC("Precision", "precision", "average: micro", scores),
    METRIC("MulticlassPrecision", "precision", NULL, scores),
    BINARY("Precision", "precision", "average: binary", scores),
    METRIC("Recall", "recall", "average: micro", scores),
    METRIC("MulticlassRecall", "recall", NULL, scores),
    BINARY("Recall", "recall", "average: binary", scores),
    METRIC("F1Score", "f1", "average: micro", scores),
    METRIC("MulticlassF1Score", "f1", NULL, scores),
    BINARY("F1Score", "f1", "average: binary", scores),
    OF_TASKS("AUROC", "auroc", curves),
    BINARY("AUROC", "auroc", NULL, curves),
    OF_TASKS("AveragePrecision", "average_precision", curves),
    BINARY("AveragePrecision", "average_precision", NULL, curves),
    OF_TASKS("ConfusionMatrix", "confusion_matrix", confusion),
    BINARY("ConfusionMatrix", "confusion_matrix", NULL, confusion),
    OF_TASKS("JaccardIndex", "iou", scores),
    BINARY("JaccardIndex", "iou", "average: binary", scores),
    METRIC("MeanSquaredError", "mse", NULL, squared),
    METRIC("MeanAbsoluteError", "mae", NULL, numbers),
    METRIC("R2Score", "r2", NULL, numbers),
    METRIC("BLEUScore", "bleu", "tokenize: none, smooth: none", bleu),
    METRIC("SacreBLEUScore", "bleu", "smooth: none", bleu),
    METRIC("CHRFScore", "chrf", "word_order: 2", chrf),
    METRIC("CharErrorRate", "error_rate", "unit: characters", rates),
    METRIC("WordErrorRate", "error_rate", "unit: words", rates),
    METRIC("Perplexity", "perplexity", NULL, known),
    METRIC("RetrievalNormalizedDCG", "ndcg", NULL, ndcg),
    METRIC("RetrievalMAP", "mean_average_precision", NULL, ranking),
    METRIC("MeanAveragePrecision", "coco_map", NULL, boxes),
    { "torchmetrics", "MetricCollection", KILN_IMPORT_WRAPPER, NULL, NULL, NULL, collection },
    NO_METRIC("MeanMetric", "kiln logs the mean of the loss by itself"),
    NO_METRIC("MaxMetric", "best values are in summary.json"),
    NO_METRIC("MinMetric", "best values are in summary.json"),
    { .name = NULL },
};

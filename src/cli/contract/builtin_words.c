/* The table of words with which built-in components are checked. */
#include "cli/contract/builtin_words.h"

#include <string.h>

#define TABLE "datamodule=table datamodule.files.train=[@/rows.csv] "
#define NUMBERS                                                                                    \
    "task=regression model=mlp " TABLE                                                             \
    "datamodule.target=y +datamodule.columns.kind=ignored +datamodule.columns.class=ignored "
#define CLASSES "task=classification " TABLE "datamodule.target=class "
#define FCOS "model.depth=18 model.backbone_width=16 model.width=32 model.convs=1 "
#define DETECTION "task=detection model=fcos " FCOS
#define UNET "model=unet model.width=8 model.levels=2 "
#define MASKS                                                                                      \
    "datamodule=mask_folder datamodule.root=@/masks datamodule.classes=[ground,dark,bright] "

static const struct {
    const char *component, *words;
} table[] = {
    { "callback/batch_size_finder", "callback.max_val=16 callback.steps_per_trial=1" },
    { "callback/finetuning", "callback.freeze=[conv*]" },
    { "callback/histograms", "logger=tensorboard" },
    { "callback/sample_images", "logger=tensorboard" },
    { "callback/sample_detections", DETECTION "datamodule=shapes datamodule.size=64" },
    { "callback/sample_masks", "task=segmentation " UNET MASKS },
    { "callback/sample_text", "task=language_model model=gpt datamodule=text_blocks "
                              "datamodule.files=[@/prose.txt] datamodule.context=16 "
                              "callback.prompts=[a] callback.max_tokens=8" },
    { "datamodule/coco", DETECTION "datamodule.root=@/coco datamodule.size=64" },
    { "datamodule/image_folder", "datamodule.root=@/images" },
    { "datamodule/image_list", "datamodule.files.train=[@/images.csv]" },
    { "datamodule/image_shards", "datamodule.files.train=[@/shard.tar]" },
    { "datamodule/labeled_text", "task=classification model=text_cnn "
                                 "datamodule.files.train=[@/texts.csv]" },
    { "datamodule/libsvm", "datamodule.files.train=[@/rows.svm] datamodule.absent=zero "
                           "task=classification model=mlp" },
    { "datamodule/mask_folder", "task=segmentation " UNET MASKS },
    { "datamodule/mnist", "datamodule.root=@/mnist datamodule.val_count=20" },
    { "datamodule/parallel_text",
      "task=translation model=encoder_decoder "
      "datamodule.tokenizer={_target_:tokenizer/bpe,vocab_size:300,special_tokens:['<pad>','<s>',"
      "'</s>']} datamodule.format=parallel datamodule.files.train=[@/from.txt,@/to.txt]" },
    { "datamodule/shapes", DETECTION "datamodule.size=64" },
    { "datamodule/table", NUMBERS },
    { "datamodule/tagged_text", "task=tagging model=text_lstm "
                                "datamodule.files.train=[@/words.conll]" },
    { "datamodule/text_blocks", "task=language_model model=gpt datamodule.files=[@/prose.txt] "
                                "datamodule.context=16" },
    { "datamodule/text_line_list", "task=text_recognition model=crnn "
                                   "datamodule.files.train=[@/lines.csv]" },
    { "datamodule/yolo", DETECTION "datamodule.data=@/yolo.yaml datamodule.size=64" },
    { "loss/binary_cross_entropy",
      "task=multilabel_classification model=text_cnn "
      "datamodule=labeled_text datamodule.multilabel=true datamodule.label=labels "
      "datamodule.files.train=[@/topics.jsonl]" },
    { "loss/huber", NUMBERS },
    { "loss/mae", NUMBERS },
    { "loss/mse", NUMBERS },
    { "metric/mae", NUMBERS },
    { "metric/mse", NUMBERS },
    { "metric/r2", NUMBERS },
    { "model/column_embedding", CLASSES "model=ft_transformer" },
    { "model/convnext", "model.depths=[1,1,1,1] model.widths=[8,16,16,32] "
                        "datamodule=image_folder datamodule.root=@/images" },
    { "model/crnn", "task=text_recognition datamodule=text_line_list "
                    "datamodule.files.train=[@/lines.csv]" },
    { "model/deeplab_v3", "task=segmentation model.width_per_group=8 model.width=16 " MASKS },
    { "model/dlrm", CLASSES },
    { "model/efficientnet", "model.width=0.3 model.depth=0.4" },
    { "model/encoder_decoder",
      "task=translation datamodule=parallel_text "
      "datamodule.format=parallel datamodule.files.train=[@/from.txt,@/to.txt]" },
    { "model/fcos", "task=detection datamodule=shapes datamodule.size=64 " FCOS },
    { "model/fusion",
      "task=classification datamodule=captioned_shapes model.image_encoder=model/cnn "
      "model.text_encoder=model/text_cnn" },
    { "model/mobilenet_v3", "model.width=0.3" },
    { "model/patch_embedding", "model=vit task=vision datamodule=digits" },
    { "model/resnet", "model.stem=large datamodule=image_folder datamodule.root=@/images" },
    { "model/row_encoder", CLASSES },
    { "model/unet", "task=segmentation model.width=8 model.levels=2 " MASKS },
    { "module/detection", "model=fcos datamodule=shapes datamodule.size=64 " FCOS },
    { "module/gan", "datamodule=digits module.generator=model/mlp module.discriminator=model/mlp "
                    "module.generator_optimizer=optimizer/adam "
                    "module.discriminator_optimizer=optimizer/adam" },
    { "module/multilabel_classification", "model=text_cnn datamodule=labeled_text "
                                          "datamodule.multilabel=true datamodule.label=labels "
                                          "datamodule.files.train=[@/topics.jsonl]" },
    { "module/regression", NUMBERS },
    { "module/retrieval", TABLE "+datamodule.columns.a=ignored +datamodule.columns.b=ignored "
                                "+datamodule.columns.y=ignored model=row_encoder task.item=kind "
                                "task.user=class +datamodule.columns.kind=category "
                                "+datamodule.columns.class=category" },
    { "module/segmentation", UNET MASKS },
    { "module/tagging", "model=text_lstm datamodule=tagged_text "
                        "datamodule.files.train=[@/words.conll]" },
    { "module/text_recognition", "model=crnn datamodule=text_line_list "
                                 "datamodule.files.train=[@/lines.csv]" },
    { "module/translation",
      "model=encoder_decoder datamodule=parallel_text "
      "datamodule.format=parallel datamodule.files.train=[@/from.txt,@/to.txt]" },
    { "module/trees", TABLE "datamodule.target=class" },
    { "scheduler/inverse_sqrt", "scheduler.warmup_steps=2" },
};

/* Whether `name` is "kind/name" of the component. */
static bool is(const KilnComponent *component, const char *name)
{
    const char *kind = kiln_kind_name(component->kind);
    const size_t length = strlen(kind);

    return strncmp(name, kind, length) == 0 && name[length] == '/' &&
           strcmp(name + length + 1, component->name) == 0;
}

const char *kiln_builtin_words(const KilnComponent *component)
{
    for (size_t i = 0; i < KILN_COUNT(table); i++)
        if (is(component, table[i].component))
            return table[i].words;
    return NULL;
}

bool kiln_builtin_reads_clock(const KilnComponent *component)
{
    return is(component, "callback/timer");
}

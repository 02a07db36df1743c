"""Datamodule, task and model of a config are compared before data is read; the message names both sides
and what would fit."""
import csv
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from kilntest import Case, build_plugin, main


class Fit(Case):
    def setUp(self):
        super().setUp()
        self.plugin = build_plugin("pairs", self.dir)

    def misfit(self, *args, says):
        for flag in [[], ["--plan"]]:
            self.refused("--plugin", self.plugin, *args, *flag, says=[says])

    def test_two_inputs_train(self):
        self.run_kiln("--plugin", self.plugin, "task=matching", "datamodule=pairs", "model=two_towers", "optimizer=adam",
                      "callbacks=none", "lr=0.05", "trainer.max_epochs=20", "kiln.run.dir=run")
        with open(self.path("run/metrics.csv")) as file:
            losses = [float(row["val/loss"]) for row in csv.DictReader(file) if row.get("val/loss")]
        self.assertLess(losses[-1], 0.6 * losses[0])

    def test_model_for_other_data(self):
        self.misfit("model._target_=two_towers",
                     says='argument 1 `model._target_=two_towers`: model: two_towers takes tokens "source" and tokens '
                          '"target", but datamodule digits gives an image and a label of i32; models that fit: cnn, ')

    def test_model_for_other_images(self):
        self.misfit("task=matching", "datamodule=pairs", "model=resnet",
                     says='model: resnet takes an image, but datamodule pairs gives tokens "source", tokens "target" and '
                          "a label of i32; models that fit: two_towers")

    def test_task_for_other_data(self):
        self.misfit("datamodule=pairs", "model=two_towers",
                     says='task: task vision feeds its model an image, but datamodule pairs gives tokens "source", '
                          'tokens "target" and a label of i32; tasks that fit: classification, matching, translation; datamodules that fit: captioned_shapes, digits, image_folder, image_list, image_shards, mnist, noise')

    def test_outputs(self):
        self.misfit("task=matching", "datamodule=pairs", "model=encoder",
                     says="input \"words\" of encoder has several candidates")
        self.misfit("model=cnn", "task=gan", "task.generator._target_=encoder",
                     says='task.generator: encoder takes tokens "words", but task gan feeds it a vector "noise"; models '
                          "that fit: dlrm, fusion, linear, mlp, row_encoder, transformer with embed=column_embedding")

    def test_models_in_models(self):
        self.run_kiln("model=vit", "trainer.fast_dev_run=true")
        self.misfit("model=vit", "model.embed._target_=token_embedding",
                    says="conf/model/vit.yaml:2:11: model: transformer takes tokens, but datamodule digits gives an image "
                         "and a label of i32; models that fit: cnn, convnext, efficientnet, fusion, linear, lstm, mlp, mobilenet_v3, resnet, transformer with "
                         "embed=patch_embedding")
        self.misfit("model=transformer", "model.embed=mlp",
                    says="model.embed: transformer needs a sequence, but mlp gives a vector \"logits\"; models that fit: "
                         "column_embedding, crnn, encoder, patch_embedding, text_lstm, token_embedding")

    def test_all_errors_at_once(self):
        _, err = self.run_kiln("--plugin", self.plugin, "model._target_=two_towers", "optimizer.lr=-1", status=1)
        self.assertIn("two_towers takes tokens", err)
        self.assertIn("optimizer.lr", err)

    def test_show(self):
        out, _ = self.run_kiln("show", "model/resnet", program="kiln")
        self.assertIn("takes image f32 [height, width, channels]; gives logits f32 [classes]", out)


if __name__ == "__main__":
    main()

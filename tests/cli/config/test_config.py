"""Composes, prints and rejects configs from the command line."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import os
import subprocess

from kilntest import BUILD, SHARED, Case, main


class Printing(Case):
    def test_default_config_names_every_group(self):
        out, _ = self.run_kiln("--cfg", "job")
        for text in ["task:", "_target_: model/cnn", "_target_: datamodule/digits", "lr: 0.05",
                     "max_epochs:"]:
            self.assertIn(text, out)
        self.assertNotIn("kiln:", out)

    def test_overrides_and_resolve(self):
        out, _ = self.run_kiln("--cfg", "job", "--resolve", "model=resnet", "lr=0.1", "optimizer=sgd")
        self.assertIn("_target_: model/resnet", out)
        self.assertRegex(out, r"optimizer:\n(  .*\n)*  lr: 0.1\n")
        out, _ = self.run_kiln("--cfg", "job", "lr=0.1")
        self.assertIn("lr: ${lr}", out)

    def test_package(self):
        out, _ = self.run_kiln("--cfg", "job", "--package", "model", "model=resnet", "model.depth=34")
        self.assertRegex(out, r"depth: ['\"]?34")
        self.assertNotIn("datamodule", out)

    def test_task_with_model_and_options(self):
        out, _ = self.run_kiln("--cfg", "job", "task=vision", "model=resnet", "lr=0.1")
        self.assertIn("_target_: module/vision", out)

    def test_what_a_run_would_refuse(self):
        """It is printed all the same; a tree without components is only composed."""
        out, err = self.run_kiln("--cfg", "job", "lr=fast", "batch_size=0", status=1)
        self.assertIn("lr: fast", out)
        self.assertIn("argument 1 `lr=fast`: optimizer.lr: expected a number", err)
        self.assertIn("train: 2 errors", err)
        out, err = self.run_kiln("--cfg", "all", "--package", "optimizer", "lr=fast", status=1)
        self.assertIn("lr: ${lr}", out)
        self.write("conf/config.yaml", "lr: fast\n")
        self.assertEqual(self.run_kiln("--cfg", "job"), ("lr: fast\n", ""))

    def test_add_force_and_delete(self):
        out, _ = self.run_kiln("--cfg", "job", "+note=hello", "++lr=0.5", "~callbacks.progress_bar")
        self.assertIn("note: hello", out)
        self.assertIn("lr: 0.5", out)
        self.assertNotIn("callback/progress_bar", out)

    def test_explain_shows_the_history(self):
        out, _ = self.run_kiln("--explain", "optimizer.lr", "lr=0.3")
        self.assertIn("0.3", out)
        self.assertIn("argument 1 `lr=0.3`", out)
        self.assertRegex(out, r"config\.yaml:\d+:\d+")
        self.assertIn("default of optimizer/sgd", out)

    def test_own_conf_folder_wins(self):
        self.write("conf/config.yaml", "defaults:\n  - model: tiny\n  - _self_\nlr: 0.5\n")
        self.write("conf/model/tiny.yaml", "_target_: model/mlp\nhidden: [3]\n")
        out, _ = self.run_kiln("--cfg", "job", "--package", "model")
        self.assertIn("[3]", out)
        self.assertIn("dropout", out)

    def test_experiment_changes_groups(self):
        out, _ = self.run_kiln("--cfg", "job", "experiment=cifar10/resnet18", "datamodule.root=x")
        self.assertIn("_target_: model/resnet", out)
        self.assertIn("max_epochs: 15", out)

    def test_help_teaches(self):
        out, _ = self.run_kiln("--help")
        for text in ["usage:", "model", "resnet", "datamodule", "--cfg", "lr="]:
            self.assertIn(text, out)
        out, _ = self.run_kiln("model=resnet", "--help")
        self.assertIn("depth", out)

    def test_list_and_version(self):
        out, _ = self.run_kiln("list", program="kiln")
        self.assertIn("resnet", out)
        self.assertIn("early_stopping", out)
        out, _ = self.run_kiln("show", "model", program="kiln")
        self.assertIn("depth", out)
        self.assertNotIn("early_stopping", out)
        self.refused("list", "model", program="kiln", says=["kiln show model"], status=2)
        out, _ = self.run_kiln("version", program="kiln")
        self.assertRegex(out, r"kiln \d+\.\d+")


class Refusing(Case):
    def test_unknown_key(self):
        self.refused("lrr=0.1", says=["lrr", "argument 1", "lr", "+lrr"])
        self.refused("model.hiden=[3]", "model=mlp", says=["model.hiden", "hidden"])

    def test_unknown_key_in_a_file(self):
        self.write("conf/model/odd.yaml", "_target_: model/mlp\nhiddn: [3]\n")
        self.refused("model=odd", says=["hiddn", "odd.yaml:2:", "hidden"])

    def test_unknown_option_of_a_group(self):
        self.refused("model=resnt", says=["resnt", "resnet"])
        self.refused("modell=resnet", says=["modell", "model"])

    def test_wrong_type_names_the_way(self):
        self.refused("lr=fast", says=["optimizer.lr", "expected a number", "fast",
                                      "argument 1 `lr=fast`", "${lr}", "sgd.yaml:"])

    def test_out_of_range_and_choices(self):
        self.refused("batch_size=0", says=["batch_size", "0"])
        self.refused("model=resnet", "model.depth=19", says=["model.depth", "19", "18", "34", "50"])
        self.refused("trainer.max_epochs=1.5", says=["trainer.max_epochs", "integer"])

    def test_missing_required_value(self):
        self.refused("datamodule=mnist", says=["datamodule.root", "mnist"])

    def test_all_errors_at_once(self):
        err = self.refused("lr=fast", "batch_size=-3", "trainer.max_epochs=x", says=[])
        self.assertIn("optimizer.lr", err)
        self.assertIn("datamodule.batch_size", err)
        self.assertIn("trainer.max_epochs", err)

    def test_yaml_errors_name_the_line(self):
        self.write("conf/config.yaml", "lr: 0.1\nbad: [1, 2\n")
        self.refused(says=["config.yaml:"])
        self.write("conf/config.yaml", "lr: 0.1\nlr: 0.2\n")
        self.refused(says=["config.yaml:2:1", "lr"])

    def test_wrong_command_line(self):
        self.refused("--confg", says=["--confg"], status=2)
        self.refused("--cfg", "nonsense", says=["nonsense"], status=2)
        self.refused("trian", program="kiln", says=["trian", "train"], status=2)
        self.refused(program="kiln", says=["usage"], status=2)

    def test_interpolation_cycle_and_missing(self):
        self.refused("+a=${b}", "+b=${a}", "lr=${a}", says=["a"])
        self.refused("lr=${nothing}", says=["nothing", "argument 1"])

    def test_wrong_keys_and_wrong_values_are_reported_together(self):
        err = self.refused("lr=fast", "optimzer.lr=1", "trainer.max_epochs=x", says=[
            "optimizer.lr: expected a number", "no key 'optimzer'; did you mean 'optimizer'?",
            "trainer.max_epochs: expected an integer", "train: 3 errors"])
        self.assertLess(err.index("argument 1"), err.index("argument 2"))
        self.assertLess(err.index("argument 2"), err.index("argument 3"))


class Conformance(Case):
    def test_recorded_cases(self):
        runner = os.path.join(SHARED, "conformance/hydra/run.py")
        if not os.path.exists(runner):
            print("skip: no conformance cases beside the project")
            return
        command = os.path.join(BUILD, "train") + " --config-path {dir} --config-name {name} {flags} {overrides}"
        done = subprocess.run([sys.executable, runner], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT,
                              env=dict(os.environ, HYDRA_CASES_CMD=command,
                                       HYDRA_CASES_SWEEP_CMD=command.replace("{flags}", "{flags} --plan")))
        self.assertEqual(done.returncode, 0, done.stdout[-3000:])


if __name__ == "__main__":
    main()

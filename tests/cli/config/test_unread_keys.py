"""Reports keys that nothing reads, in config trees like those of users."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import os

from kilntest import TINY, Case, main, read

DEFAULTS = ("defaults: [{task: vision}, {datamodule: digits}, {model: mlp}, {optimizer: sgd}, {scheduler: constant}, "
            "{callbacks: default}, {logger: csv}, {trainer: default}, _self_, {experiment: null}]\nlr: 0.1\n"
            "batch_size: 32\n")
RECIPE = "lr: 0.3\ntrainer:\n  max_epochs: 1\n"


class Recipes(Case):
    """An experiment file without its header goes below `experiment`, where nothing reads it."""

    def check(self, text, *says):
        self.write("conf/experiment/mine.yaml", text)
        err = self.refused("experiment=mine", "--plan", says=[
            "conf/experiment/mine.yaml", "has no `# @package _global_`", "`experiment`; begin the file with that line",
            *says])
        self.assertIn("1 error" if "errors" in err else "mine.yaml", err)

    def test_of_values(self):
        self.check(RECIPE, "mine.yaml:1:1: experiment: nothing reads this key")

    def test_of_groups(self):
        self.check("defaults:\n  - /model: mlp\n", "experiment: nothing reads this key")

    def test_of_overrides(self):
        self.check("defaults:\n  - override /model: mlp\n" + RECIPE, "mine.yaml:2:5: group 'model@experiment.model'")

    def test_with_its_header(self):
        self.write("conf/experiment/mine.yaml", "# @package _global_\ndefaults:\n  - override /model: mlp\n" + RECIPE)
        self.run_kiln("experiment=mine", "--plan")

    def test_that_says_nothing(self):
        self.write("conf/experiment/mine.yaml", "# todo\n")
        self.run_kiln("experiment=mine", "--plan")


class Variables(Case):
    def test_of_an_option_that_is_not_selected(self):
        self.write("conf/config.yaml", DEFAULTS + "width: 32\n")
        self.write("conf/model/wide.yaml", "_target_: mlp\nhidden: ['${width}']\n")
        self.run_kiln("--plan")
        self.write("conf/model/wide.yaml", "_target_: mlp\nhidden: ['${model.width}']\n")
        self.refused("--plan", says=["config.yaml:4:1: width: nothing reads this key"])

    def test_of_the_shipped_config(self):
        self.write("conf/config.yaml", DEFAULTS.replace("{optimizer: sgd}, {scheduler: constant}, ", "") +
                   "optimizer: {_target_: sgd, lr: 0.5}\nscheduler: {_target_: constant}\n")
        self.run_kiln("--plan")

    def test_in_a_tree_made_for_hydra(self):
        for name, text in [("node", "mine: 3\nhydra: {job: {chdir: false}}\n"),
                           ("group", "mine: 3\n")]:
            config = DEFAULTS + text
            if name == "group":
                config = config.replace("null}]", "null}, {override hydra/job_logging: colorlog}]")
            self.write("conf/config.yaml", config)
            _, err = self.run_kiln("--plan")
            self.assertRegex(err, r"warning: conf/config.yaml:4:1: mine: nothing reads this key")

    def test_of_a_run(self):
        """What referred to a variable has its value in the config that a run records."""
        self.run_kiln(*TINY, "kiln.run.dir=run", "trainer.max_epochs=1")
        self.assertIn("batch_size", read(self.path("run/.kiln/config.yaml"), "r"))
        self.run_kiln("eval", "ckpt_path=run", program="kiln")
        self.run_kiln("--config-path", "run/.kiln/", "--plan", "trainer.max_epochs=2")
        self.run_kiln("resume=run", "trainer.max_epochs=2")


class OwnNode(Case):
    def test_searchpath_from_the_environment(self):
        """And from the file that lists it: in both names of the node, and by an argument."""
        self.write("extra/model/mine.yaml", "units: 3\n")
        env = {**os.environ, "EXTRA": self.path("extra")}
        for text in ["hydra: {searchpath: ['file://${oc.env:EXTRA}']}", "kiln: {searchpath: ['${oc.env:EXTRA}']}",
                     "top: ${oc.env:EXTRA}\nkiln: {searchpath: ['${top}']}"]:
            self.write("conf/config.yaml", "defaults: [{model: mine}]\n" + text + "\n")
            out, err = self.run_kiln("--cfg", "job", "--package", "model", env=env)
            self.assertEqual((out, err), ("units: 3\n", ""))
        self.write("conf/config.yaml", "defaults: [{model: mine}]\n")
        self.run_kiln("--cfg", "job", "kiln.searchpath=['${oc.env:EXTRA}']", env=env)
        self.refused("--cfg", "job", "kiln.searchpath=['${oc.env:NO_SUCH_VARIABLE}']",
                     says=["argument 1", "the environment variable NO_SUCH_VARIABLE is not set"])

    def test_unknown_keys(self):
        for text, says in [("kiln: {swep: {dir: x}}", "config.yaml:1:8: kiln.swep: kiln has no such key; did you mean \"sweep\"?"),
                           ("hydra: {job: {nmae: x}}", "config.yaml:1:15: kiln.job.nmae: kiln has no such key; did you mean \"name\"?"),
                           ("hydra: {no_such_node: {a: 1}}", "config.yaml:1:9: kiln.no_such_node: kiln has no such key\n")]:
            self.write("conf/config.yaml", text + "\n")
            self.refused("--cfg", "job", says=[says])


if __name__ == "__main__":
    main()

"""--cfg and --info: the printed config and its sources."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import unittest

import kilntest


class Cfg(kilntest.Case):
    def setUp(self):
        super().setUp()
        self.write("conf/config.yaml", "defaults: [db: mysql, _self_]\nname: x\nref: ${name}\n"
                                       "hydra: {job: {name: '${name}'}}\n")
        self.write("conf/db/mysql.yaml", "port: 1\n")
        self.write("conf/db/pg.yaml", "port: 2\n")

    def test_job(self):
        out, _ = self.run_kiln("--cfg", "job")
        self.assertEqual(out, "db:\n  port: 1\nname: x\nref: ${name}\n")
        out, _ = self.run_kiln("--cfg=job", "--resolve", "--package", "_global_", "db=pg")
        self.assertEqual(out, "db:\n  port: 2\nname: x\nref: x\n")

    def test_kiln_and_all(self):
        own, _ = self.run_kiln("--cfg", "kiln")
        self.assertTrue(own.startswith("kiln:\n  "), own)
        self.assertIn("    name: ${name}\n", own)
        self.assertNotIn("port", own)
        self.assertEqual(self.run_kiln("--cfg", "hydra")[0], own)
        resolved, _ = self.run_kiln("-c", "kiln", "--resolve")
        self.assertIn("    name: x\n", resolved)
        everything, _ = self.run_kiln("--cfg", "all")
        job, _ = self.run_kiln("--cfg", "job")
        for line in (own + job).splitlines():
            self.assertIn(line + "\n", everything)

    def test_package(self):
        out, _ = self.run_kiln("--cfg", "kiln", "--package", "kiln.overrides", "db=pg")
        self.assertEqual(out, "kiln: []\ntask:\n  - db=pg\n")
        self.assertEqual(self.run_kiln("--cfg", "hydra", "-p", "hydra.overrides", "db=pg")[0], out)
        self.assertEqual(self.run_kiln("--cfg", "all", "-p", "db")[0], "port: 1\n")
        _, err = self.run_kiln("--cfg", "kiln", "--package", "db", status=1)
        self.assertIn("'db' is not in the node kiln", err)

    def test_wrong_command_lines(self):
        for words, says in [
            (["--cfg", "jobs"], "expected one of job, kiln, all"),
            (["--resolve"], "--resolve goes with --cfg"),
            (["--package", "db"], "--package goes with --cfg"),
            (["--info", "--cfg", "job"], "give one of them"),
            (["--info=defalts"], "did you mean defaults?"),
        ]:
            _, err = self.run_kiln(*words, status=2)
            self.assertIn(says, err)


class Info(kilntest.Case):
    def setUp(self):
        super().setUp()
        self.write("conf/config.yaml",
                   "defaults:\n  - db: mysql\n  - optional gone: x\n  - cache: lru\n  - _self_\n"
                   "  - exp: null\n  - override cache: lfu\nname: x\n")
        self.write("conf/db/mysql.yaml", "defaults: [base, _self_]\nport: 1\n")
        self.write("conf/db/base.yaml", "host: h\n")
        self.write("conf/db/pg.yaml", "port: 2\n")
        self.write("conf/cache/lru.yaml", "size: 1\n")
        self.write("conf/cache/lfu.yaml", "size: 2\n")
        self.write("more/exp/e.yaml", "# @package _global_\nname: y\n")

    def table(self, out, heading):
        """The rows of the table below a heading, without kiln's own."""
        lines = out.split(heading)[1].splitlines()[4:]
        rows = []
        for line in lines:
            if not line:
                break
            if not line.startswith("kiln/"):
                rows.append(line.split())
        return rows

    def test_defaults(self):
        out, _ = self.run_kiln("--info", "defaults", "exp=e", "--config-dir", "more")
        self.assertEqual(self.table(out, "later ones win"), [
            ["db/base", "db", "-", "db/mysql", "conf/db/base.yaml"],
            ["db/mysql", "db", "yes", "config", "conf/db/mysql.yaml"],
            ["cache/lfu", "cache", "-", "config", "conf/cache/lfu.yaml"],
            ["config", "_global_", "yes", "-", "conf/config.yaml"],
            ["exp/e", "_global_", "-", "config", "more/exp/e.yaml"],
        ])

    def test_tree(self):
        out, _ = self.run_kiln("--info", "defaults-tree", "db=pg", "~exp", "+other@x=a", "--config-dir",
                               "more", status=1)
        self.assertEqual(out, "")
        out, _ = self.run_kiln("--info", "defaults-tree", "db=pg", "~exp", "+cache@more=lru",
                               "--config-dir", "more")
        self.assertIn("config\n"
                      "  db: pg  (selected by argument 1 `db=pg`)\n"
                      "  gone: x  (optional, not found)\n"
                      "  cache: lfu  (selected by conf/config.yaml:7:5)\n"
                      "  _self_\n"
                      "  exp: null  (deleted by argument 2 `~exp`)\n"
                      "  cache@more: lru  (added by argument 3 `+cache@more=lru`)\n", out)
        out, _ = self.run_kiln("--info=defaults-tree")
        self.assertIn("config\n  db: mysql\n    db/base\n    _self_\n", out)

    def test_searchpath(self):
        self.write("third/x.yaml", "")
        out, _ = self.run_kiln("-i", "searchpath", "--config-dir", "more", "kiln.searchpath=[third]")
        rows = self.table(out, "first hit wins")
        self.assertEqual(rows[:3], [["./conf", "conf"], ["--config-dir", "more"],
                                    ["kiln.searchpath", "third"]])
        self.assertEqual([row[0] for row in rows[3:]], ["components", "kiln"])

    def test_plugins(self):
        out, _ = self.run_kiln("--info", "plugins")
        self.assertIn("optimizer    8\n", out)
        self.assertNotIn("Search path", out)

    def test_config(self):
        out, _ = self.run_kiln("--info", "config", "name=z")
        for text in ["Search path", "Defaults list", "Config\n\n", "name: z\n"]:
            self.assertIn(text, out)
        self.assertNotIn("Plugins", out)

    def test_all_swallows_no_override(self):
        for words in [["--info"], ["--info", "name=z"], ["name=z", "-i"], ["--info", "all"]]:
            out, _ = self.run_kiln(*words)
            for text in ["Plugins", "Search path", "Defaults tree", "Defaults list", "Config\n\n"]:
                self.assertIn(text, out)
            self.assertEqual("name: z\n" in out, "name=z" in words)


class Warnings(kilntest.Case):
    def test_deprecated_key(self):
        self.write("conf/config.yaml", "new: 1\nold: ${oc.deprecated:new}\nuses: ['${old}', '${old}']\n")
        out, err = self.run_kiln("--cfg", "job", "--resolve")
        self.assertEqual(out, "new: 1\nold: 1\nuses:\n  - 1\n  - 1\n")
        self.assertEqual(err, "train: warning: conf/config.yaml:2:6: 'old' is deprecated; use 'new'\n"
                              "    2 | old: ${oc.deprecated:new}\n"
                              "      |      ^~~~~~~~~~~~~~~~~~~~\n")
        self.assertEqual(self.run_kiln("--cfg", "job")[1], "")

    def test_absent_folder_of_the_search_path(self):
        self.write("conf/config.yaml", "a: ${hydra:runtime.choices.db}\nhydra: {searchpath: [nope, 'pkg://x.y']}\n")
        out, err = self.run_kiln("--cfg", "job", "--resolve")
        self.assertEqual(out, "a: null\n")
        self.assertIn("train: warning: conf/config.yaml:2:22: kiln.searchpath: there is no folder 'nope'\n", err)
        self.assertIn("train: warning: conf/config.yaml:2:28: kiln.searchpath: 'pkg://x.y' is no folder; "
                      "only folders can be searched\n", err)

    def test_deprecated_key_while_checking(self):
        self.write("conf/experiment/e.yaml", "# @package _global_\nold_seed: ${oc.deprecated:new_seed}\n"
                                             "new_seed: 3\nseed: ${old_seed}\n")
        _, err = self.run_kiln("experiment=e", "lr=x", status=1)
        self.assertIn("warning: conf/experiment/e.yaml:2:11: 'old_seed' is deprecated; use 'new_seed'", err)


if __name__ == "__main__":
    unittest.main()

"""Recommendation: task retrieval with two towers, and model dlrm, on users who like the items of their group."""
import hashlib
import json
import pathlib
import random
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from kilntest import Case, main, read_json

GROUPS, USERS, ITEMS = 4, 160, 32
FIXED = ["datamodule=table", "optimizer=adam", "lr=0.02", "batch_size=64", "seed=1", "callbacks=none",
         "trainer.enable_progress_bar=false", "trainer.threads=1"]
RETRIEVAL = ["task=retrieval", "datamodule.files.train=[liked.csv]", "task.item=item", "model=row_encoder",
             "model.width=8", "model.layers=[8]",
             "+datamodule.columns={user: category, item: category, hour: number, rating: ignored}", "datamodule.target=null"]

RATINGS = ["task=regression", "model=dlrm", "datamodule.files.train=[a.csv]", "datamodule.target=rating",
           "datamodule.target_type=number"]


def likes(seed=1):
    """Each user with most items of the own group, and with some others, which get low ratings."""
    draw = random.Random(seed)
    for user in range(USERS):
        for item in range(ITEMS):
            liked = user % GROUPS == item % GROUPS
            if draw.random() < (0.7 if liked else 0.2):
                yield f"u{user},film {item},{draw.randint(0, 23)},{draw.choice([4, 5]) if liked else draw.choice([1, 2])}"


class Recommendation(Case):
    def setUp(self):
        super().setUp()
        rows = list(likes())
        self.write("a.csv", "user,item,hour,rating\n" + "\n".join(rows) + "\n")
        self.write("liked.csv", "user,item,hour,rating\n" + "\n".join(row for row in rows if row[-1] in "45") + "\n")

    def metrics(self, run="run"):
        return {k: v["last"]["value"] for k, v in read_json(self.path(run, "summary.json"))["metrics"].items()}

    def test_items_of_the_group_come_first(self):
        """Of 32 items the right one is among the 8 of the group nearly always, and predictions name them."""
        for sampling in "true", "false":
            self.run_kiln(*FIXED, *RETRIEVAL, "trainer.max_epochs=20", "task.k=[8, 1]", f"task.correct_sampling={sampling}",
                          f"kiln.run.dir={sampling}")
            metrics = self.metrics(sampling)
            self.assertGreater(metrics["val/hit_rate@8"], 0.8)
            self.assertGreater(metrics["val/hit_rate@8"], metrics["val/hit_rate@1"])
            self.assertLess(metrics["val/ndcg@8"], metrics["val/hit_rate@8"])
        out, _ = self.run_kiln("predict", "ckpt_path=true", "split=val", program="kiln")
        lines = [json.loads(line) for line in out.splitlines()]
        self.assertEqual({len(line["items"]) for line in lines}, {10})
        for line in lines:
            scores = [item["score"] for item in line["items"]]
            self.assertEqual(scores, sorted(scores, reverse=True))
            self.assertTrue(all(re.fullmatch("film [0-9]+", item["item"]) for item in line["items"]), line)
            self.assertTrue(all(abs(score) <= 1.0001 for score in scores), line)

    def test_items_of_training_are_left_out(self):
        """Of a user's predictions; and the right item ranks higher without them."""
        liked = [row.split(",") for row in likes() if row[-1] in "45"]
        random.Random(2).shuffle(liked)
        self.write("liked.csv", "user,item,hour,rating\n" + "".join(",".join(row) + "\n" for row in liked))
        last = {row[0]: i for i, row in enumerate(liked)}
        options = [*FIXED, *RETRIEVAL, "datamodule.leave_last_out=user", "trainer.max_epochs=10", "task.k=[8]", "task.results=30"]
        for user in "user", "null":
            self.run_kiln(*options, f"task.user={user}", f"kiln.run.dir=run-{user}", "callbacks=default")
        self.assertGreater(self.metrics("run-user")["test/hit_rate@8"], self.metrics("run-null")["test/hit_rate@8"])
        # evaluated and predicted from the checkpoint
        out, _ = self.run_kiln("eval", "ckpt_path=run-user/checkpoints/best", program="kiln")
        self.assertEqual(json.loads(out)["metrics"]["test/hit_rate@8"], self.metrics("run-user")["test/hit_rate@8"])
        out, _ = self.run_kiln("predict", "ckpt_path=run-user/checkpoints/last", "split=test", program="kiln")
        lines = [json.loads(line) for line in out.splitlines()]
        held = [liked[i] for i in sorted(last.values())]
        self.assertEqual(len(lines), len(held))
        for line, row in zip(lines, held):
            second = [r[1] for r in liked if r[0] == row[0]][:-2]
            listed = [item["item"] for item in line["items"] if item["score"] > -1.1]
            self.assertIn(row[1], listed)
            self.assertFalse(set(second) & set(listed), line)
            self.assertEqual(len(listed), min(30, ITEMS - len(second)))

    def test_resume(self):
        """Also with the counts of items that training has seen, and with the items of each user."""
        args = [*FIXED, *RETRIEVAL, "task.user=user", "callbacks=default",
                "callbacks.model_checkpoint.save_top_k=-1", "trainer.max_epochs=3"]
        self.run_kiln(*args, "kiln.run.dir=whole")
        first = sorted(p.name for p in pathlib.Path(self.path("whole/checkpoints")).glob("epoch=000*"))[0]
        self.run_kiln(*args, f"ckpt_path='whole/checkpoints/{first}'", "kiln.run.dir=resumed")
        weights = [hashlib.sha256(pathlib.Path(self.path(run, "checkpoints/last/model.safetensors")).read_bytes()).hexdigest()
                   for run in ("whole", "resumed")]
        self.assertEqual(*weights)

    def test_mistakes(self):
        _, err = self.run_kiln(*FIXED, *RETRIEVAL, "task.item=film", "kiln.run.dir=a", status=1)
        self.assertIn('task.item: the data have no column of categories "film"', err)
        _, err = self.run_kiln(*FIXED, *RETRIEVAL, "task.user=hour", "kiln.run.dir=d", status=1)
        self.assertIn('task.user: the data have no column of categories "hour"', err)
        _, err = self.run_kiln(*FIXED, *RETRIEVAL, "task.user=item", "kiln.run.dir=e", status=1)
        self.assertIn('task.user: "item" is the item\'s column', err)
        _, err = self.run_kiln(*FIXED, *RETRIEVAL, "datamodule.columns.user=ignored", "kiln.run.dir=b", status=1)
        self.assertIn("needs another column of categories beside the item's", err)
        _, err = self.run_kiln(*FIXED, *RETRIEVAL, "task.item_model={_target_: model/row_encoder, layers: [4]}", "kiln.run.dir=c", status=1)
        self.assertIn("8 features and those of task.item_model 4", err)

    def test_dlrm_learns_ratings(self):
        """Ratings follow from user and item together: the mean of a user or an item says nothing."""
        self.run_kiln(*FIXED, *RATINGS,
                      "+datamodule.columns={user: category, item: category, hour: number}", "trainer.max_epochs=20", "kiln.run.dir=run")
        self.assertLess(self.metrics()["val/rmse"], 0.8)
        _, err = self.run_kiln(*FIXED, *RATINGS, "+datamodule.columns={user: category, item: ignored, hour: ignored}", "kiln.run.dir=b",
                               status=1)
        self.assertIn("needs two columns of categories, or numbers beside one; the data have 1 column of categories and no numbers", err)


main()

"""Accuracy and time of the recipes of text classification: bench/text/classify.py KILN DATA [RECIPE...]. DATA has the folders
trec, sst2 and ag-news. With the Python module fasttext installed, fastText trains on ag-news with the same options."""
import json
import os
import resource
import subprocess
import sys
import tempfile
import time

RECIPES = {
    "trec/bag_of_ngrams": ("trec/TREC.train", None, "trec/TREC.test"),
    "trec/text_cnn": ("trec/TREC.train", None, "trec/TREC.test"),
    "sst2/bag_of_ngrams": ("sst2/train.tsv", "sst2/dev.tsv", "sst2/test.tsv"),
    "sst2/text_cnn": ("sst2/train.tsv", "sst2/dev.tsv", "sst2/test.tsv"),
    "ag-news/bag_of_ngrams": ("ag-news/sample/train.csv", None, "ag-news/sample/test.csv"),
}


def cpu():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def train(kiln, data, recipe, seed):
    files = [f"datamodule.files.{split}=[{os.path.join(data, path)}]"
             for split, path in zip(("train", "val", "test"), RECIPES[recipe]) if path]
    with tempfile.TemporaryDirectory() as folder:
        start, before = time.time(), cpu()
        subprocess.run([kiln, "train", f"experiment={recipe}", f"seed={seed}", f"kiln.run.dir={folder}/run", *files], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with open(f"{folder}/run/summary.json") as file:
            accuracy = json.load(file)["metrics"]["test/accuracy"]["last"]["value"]
        return accuracy, time.time() - start, cpu() - before


def fasttext(data):
    import csv

    import fasttext as peer
    with tempfile.TemporaryDirectory() as folder:
        for split in "train", "test":
            with open(os.path.join(data, "ag-news/sample", split + ".csv"), encoding="utf-8") as rows, \
                    open(f"{folder}/{split}", "w") as out:
                out.writelines(f"__label__{label} {' '.join(text.split())}\n" for text, label in csv.reader(rows))
        for epochs in 3, 10:
            start = time.time()
            model = peer.train_supervised(f"{folder}/train", epoch=epochs, lr=0.5, dim=10, wordNgrams=2, bucket=2000000, thread=2, verbose=0)
            model.save_model(f"{folder}/model.bin")
            print(f"fastText, ag-news, {epochs} epochs: {model.test(f'{folder}/test')[1]:.4f}, {time.time() - start:.2f} s")


def main():
    kiln, data, *recipes = sys.argv[1:]
    for recipe in recipes or RECIPES:
        runs = [train(kiln, data, recipe, seed) for seed in (1, 2, 3)]
        mean = [sum(values) / len(runs) for values in zip(*runs)]
        print(f"{recipe}: {mean[0]:.4f} (mean of 3 seeds: {', '.join(f'{run[0]:.4f}' for run in runs)}), "
              f"{mean[1]:.2f} s, {mean[2]:.2f} s of processor time", flush=True)
    if not recipes or "ag-news/bag_of_ngrams" in recipes:
        try:
            fasttext(data)
        except ImportError:
            print("fastText: the Python module fasttext is not installed")


main()

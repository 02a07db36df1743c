"""Accuracy and time of the recipes of text classification: bench/text/classify.py KILN DATA [RECIPE...]. DATA has the folders
trec, sst2 and ag-news. FASTTEXT=PROGRAM trains fastText on ag-news with the same options; its source package on PyPI builds the
program: g++ -O3 -march=native -std=c++17 -pthread src/*.cc -o fasttext."""
import json
import os
import re
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


def fasttext(program, data):
    import csv

    with tempfile.TemporaryDirectory() as folder:
        for split in "train", "test":
            with open(os.path.join(data, "ag-news/sample", split + ".csv"), encoding="utf-8") as rows, \
                    open(f"{folder}/{split}", "w") as out:
                out.writelines(f"__label__{label} {' '.join(text.split())}\n" for text, label in csv.reader(rows))
        options = "-lr 0.5 -dim 10 -wordNgrams 2 -bucket 2000000 -thread 2 -verbose 0".split()
        for epochs in 3, 10:
            start = time.time()
            subprocess.run([program, "supervised", "-input", f"{folder}/train", "-output", f"{folder}/model", "-epoch", str(epochs), *options],
                           check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            took = time.time() - start
            test = subprocess.run([program, "test", f"{folder}/model.bin", f"{folder}/test"], check=True, capture_output=True, text=True)
            accuracy = re.search(r"P@1\s+(\S+)", test.stdout).group(1)
            print(f"fastText, ag-news, {epochs} epochs: {accuracy}, {took:.2f} s without the test")


def main():
    kiln, data, *recipes = sys.argv[1:]
    for recipe in recipes or RECIPES:
        runs = [train(kiln, data, recipe, seed) for seed in (1, 2, 3)]
        mean = [sum(values) / len(runs) for values in zip(*runs)]
        print(f"{recipe}: {mean[0]:.4f} (mean of 3 seeds: {', '.join(f'{run[0]:.4f}' for run in runs)}), "
              f"{mean[1]:.2f} s, {mean[2]:.2f} s of processor time", flush=True)
    if "FASTTEXT" in os.environ and (not recipes or "ag-news/bag_of_ngrams" in recipes):
        fasttext(os.environ["FASTTEXT"], data)


main()

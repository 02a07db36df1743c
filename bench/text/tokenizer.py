"""Times kiln's tokenizer beside Hugging Face's: byte-level BPE, tiny-shakespeare 100 times, 2 threads.

    PYTHON bench/text/tokenizer.py [TOKENIZER.json [TEXT]]     PYTHON has the package tokenizers

Lines are texts, with character offsets on both sides. Pairs of runs; prints medians."""
import os
import pathlib
import statistics
import subprocess
import sys
import time

THREADS, COPIES, PAIRS = 2, 100, 3
os.environ.update(RAYON_NUM_THREADS=str(THREADS), TOKENIZERS_PARALLELISM="true")
from tokenizers import Tokenizer  # noqa: E402  after the number of threads is set

ROOT = pathlib.Path(__file__).resolve().parents[2]
TEXT = ROOT / "../shared/data/tiny-shakespeare/input.txt"


def theirs(tokenizer, lines):
    seconds = tokens = 0
    for copy in range(COPIES):
        start = time.perf_counter()
        encoded = tokenizer.encode_batch(lines)
        seconds += time.perf_counter() - start
        tokens += sum(len(e) for e in encoded)
    return seconds, tokens


def main():
    kiln = ROOT / "build/release"
    file, text = (sys.argv[1:] + [str(kiln / "bench/text/tokenizer.json"), str(TEXT)][len(sys.argv) - 1:])[:2]
    if len(sys.argv) == 1:
        subprocess.run([kiln / "kiln", "tokenizer", "train", "tokenizer.vocab_size=30000", f"files={text}", f"output={file}"],
                       check=True, stdout=subprocess.DEVNULL)
    lines = pathlib.Path(text).read_text().splitlines(keepends=True)
    tokenizer, times = Tokenizer.from_file(file), {"kiln": [], "tokenizers": []}
    for _ in range(PAIRS):
        out = subprocess.run([kiln / "bench/text/tokenizer", file, text, str(COPIES), str(THREADS)], check=True,
                             capture_output=True, text=True).stdout.split()
        seconds, tokens = theirs(tokenizer, lines)
        if int(out[2]) != tokens:
            sys.exit(f"kiln made {out[2]} tokens, tokenizers {tokens}")
        times["kiln"].append(float(out[0]))
        times["tokenizers"].append(seconds)
    size = int(out[1]) / 1e6
    for name, seconds in times.items():
        print(f"{name:12} {statistics.median(seconds):7.2f} s  {size / statistics.median(seconds):7.1f} MB/s  {tokens} tokens")
    print(f"ratio {statistics.median(times['tokenizers']) / statistics.median(times['kiln']):.1f}")


main()

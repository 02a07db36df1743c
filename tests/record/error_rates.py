"""Character and word error rates by jiwer, to tests/data/error_rates.h. Run with that package installed:
python3 tests/record/error_rates.py"""

import json
import pathlib
import random

import jiwer

random.seed(5)
words = "the Cat s\u00e4t, on a mat; \u4f60\u597d na\u00efve 3.5% (big) \u20ac2".split()


def change(text):
    kept = []
    for c in text:
        r = random.random()
        kept.append("" if r < 0.06 else random.choice("abxyz\u00fc ") if r < 0.12 else c + "q" if r < 0.16 else c)
    return " ".join("".join(kept).split())


truth = [" ".join(random.choice(words) for _ in range(random.randint(1, 9))) for _ in range(20)]
sets = {
    "corpus": ([change(t) for t in truth], truth),
    "same": (truth, truth),
    "empty": (["", "a b"], ["one two", "a b"]),
    "longer": (["a b c d e f g"], ["a"]),
    "spaces": (["a  b\u00a0c"], ["a b c"]),
}
out = ["/* Recorded by tests/record/error_rates.py; do not edit. */", "/* clang-format off */"]
rows = []


def text(value):
    return json.dumps(value, ensure_ascii=False)


for name, (texts, references) in sets.items():
    out.append(f"static const char *const rate_{name}_texts[] = {{ {', '.join(map(text, texts))} }};")
    out.append(f"static const char *const rate_{name}_references[] = {{ {', '.join(map(text, references))} }};")
    characters = jiwer.cer(references, texts)
    counted = [" ".join(t.split()) for t in texts]  # jiwer's words end at plain blanks alone
    rows.append(f'    {{ {{ "{name}", rate_{name}_texts, rate_{name}_references, {len(texts)}, 1 }}, '
                f"{characters:.17g}, {jiwer.wer(references, counted):.17g} }},")
out += ["static const ErrorRates error_rates[] = {", *rows, "};", "/* clang-format on */"]
path = pathlib.Path(__file__).parent.parent / "data" / "error_rates.h"
path.write_text("\n".join(out) + "\n")

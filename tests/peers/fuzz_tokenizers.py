"""Compares kiln's tokenizers with Hugging Face's on random texts: ids, offsets, type ids, masks, decoded text.

    PYTHON tests/peers/fuzz_tokenizers.py BUILD FILES [SECONDS] [SEED]

PYTHON has the package tokenizers; FILES is a folder of tokenizer.json files (tests/record/tokenizer_files.py makes one)."""
import pathlib
import random
import sys
import time
import unicodedata

from tokenizers import Tokenizer

from kiln_tokenizers import Library

WORDS = """the The THE naïve Straße STRASSE İstanbul don't we'll I'VE they're 's New York new york NewYork <mask> <s> </s>
[MASK] [SEP] <extra_id_1> <|endoftext|> <unk> 3.14 1,000,000 2024-11-23 ½ Ⅷ ² ①② x² a.b.c hello,world!? ... -- — “quoted”
e\u0301 \u1e9b\u0323 ﬁ ﬀ ㎏ Å Å ｆｕｌｌ Ａ１ ｶﾞ 한국어 각 日本語 中文字符 𠮷 𝒜 👍🏽 👨‍👩‍👧‍👦 🇩🇪🇫🇷 ❤️ 1️⃣ שלום עולם مرحبا لَا हिन्दी ไทย
Ελλάς ΟΔΟΣ Привет ё й café cafe\u0301 q\u0307\u0323 \u0344 ▁ ▁▁a Ġ Ā <0x41> aaa qq a''s 'd 'll bc e ee eee""".split()
SPACES = [" ", "  ", "   ", "\n", "\r\n", "\t", "\u00a0", "\u3000", "\u2028", "\u200b", "\x00", "\ufeff", "\x85", "\x0b", "\xad",
          "\u200d", "\u200c", "", "", "", "\u0301", "\ufffd", "\x7f", "\x01"]
RANGES = [(0x20, 0x7f), (0x20, 0x7f), (0xa0, 0x250), (0x300, 0x370), (0x370, 0x600), (0x600, 0x700), (0x900, 0xe00), (0x1100, 0x1200),
          (0x1e00, 0x2400), (0x2400, 0x2800), (0x3000, 0x3400), (0x4e00, 0x4e80), (0xac00, 0xad00), (0xf900, 0xfb50), (0xfb50, 0x10000),
          (0x1d400, 0x1d500), (0x1f300, 0x1f700), (0x20000, 0x20010)]


def text(r):
    parts = []
    for _ in range(r.choice([0, 1, 2, 3, 5, 8, 20])):
        parts.append(r.choice(WORDS) if r.random() < .7 else "".join(character(r) for _ in range(r.randint(1, 6))))
        parts.append(r.choice(SPACES) if r.random() < .5 else " ")
    if r.random() < .05:
        parts.append(r.choice("aé日") * r.choice([101, 300, 1000]))
    return "".join(parts)


def character(r):
    low, high = r.choice(RANGES)
    c = chr(r.randrange(low, high))
    # Both libraries have the characters of Unicode 3.2; of later ones their tables have different versions.
    return c if unicodedata.ucd_3_2_0.category(c) not in ("Cn", "Cs") else "x"


def compare(name, theirs, ours, first, second, special):
    want = theirs.encode(first, second, add_special_tokens=special)
    got = ours.encode(first, second, special)
    for what, a, b in zip(["ids", "offsets", "type ids", "special tokens"], got,
                          [want.ids, want.offsets, want.type_ids, want.special_tokens_mask]):
        if a != b:
            at = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
            return f"{name}: {what} of {first!r}, {second!r}, at {at}:\n  kiln  {a[at:at + 8]}\n  their {b[at:at + 8]} {want.tokens[at:at + 8]}"
    for skip in (False, True):
        if ours.decode(want.ids, skip) != theirs.decode(want.ids, skip_special_tokens=skip):
            return f"{name}: decoded {want.ids}:\n  kiln  {ours.decode(want.ids, skip)!r}\n  their {theirs.decode(want.ids, skip_special_tokens=skip)!r}"
    return None


def main():
    build, folder, seconds, seed = (sys.argv[1:] + ["30", "1"][len(sys.argv) - 3:])[:4]
    library, r = Library(build), random.Random(int(seed))
    pairs = [(path.stem, Tokenizer.from_file(str(path)), library.open(path)) for path in sorted(pathlib.Path(folder).glob("*.json"))]
    end, n, wrong = time.time() + float(seconds), 0, {}
    while time.time() < end:
        first, second, special = text(r), text(r) if r.random() < .3 else None, r.random() < .7
        for name, theirs, ours in pairs:
            difference = compare(name, theirs, ours, first, second, special)
            n += 1
            if difference and len(difference) < len(wrong.get(name, "x" * 10**9)):
                wrong[name] = difference
    print("\n".join(wrong.values()))
    print(f"{n} texts, {len(wrong)} of {len(pairs)} tokenizers differ")
    sys.exit(1 if wrong else 0)


main()

"""Small tokenizer.json files of the shapes of GPT-2, BERT, RoBERTa, T5 and others, and what Hugging Face's library makes of
texts with them: tests/unit/text/NAME.json.

    PYTHON tests/record/tokenizer_files.py [FOLDER [--files]]    PYTHON has tokenizers, sentencepiece and protobuf

--files: only the tokenizer.json files, for tests/peers/fuzz_tokenizers.py. Unigram's trainer is not deterministic, so a
new recording has another vocabulary."""
import gzip
import io
import json
import pathlib
import sys
import tempfile
import unicodedata


from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = ROOT.parent / "shared/data"


def texts(n=4000):
    out = (DATA / "tiny-shakespeare/input.txt").read_text().splitlines()[:n]
    with gzip.open(DATA / "multi30k/train.de.gz", "rt") as f: out += [l.rstrip("\n") for l in f][:n]
    return out


def gpt2():
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = decoders.ByteLevel()
    t.post_processor = processors.ByteLevel(trim_offsets=False)
    t.train_from_iterator(texts(), trainers.BpeTrainer(vocab_size=330, show_progress=False, special_tokens=["<|endoftext|>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    return t


def roberta():
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    t.decoder = decoders.ByteLevel()
    sp = ["<s>", "<pad>", "</s>", "<unk>", AddedToken("<mask>", lstrip=True, special=True)]
    t.train_from_iterator(texts(), trainers.BpeTrainer(vocab_size=330, show_progress=False, special_tokens=sp, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    t.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), trim_offsets=True, add_prefix_space=True)
    return t


def bert(cased=False):
    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer = normalizers.BertNormalizer(lowercase=not cased)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.decoder = decoders.WordPiece()
    t.train_from_iterator(texts(), trainers.WordPieceTrainer(vocab_size=330, show_progress=False, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]))
    t.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    t.add_tokens([AddedToken("New York", single_word=True), AddedToken("Straße", rstrip=True)])
    return t


def bert_processing():
    t = bert(True)
    t.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return t


def charsmap():
    """A small precompiled_charsmap in SentencePiece's format."""
    import sentencepiece as spm
    from sentencepiece import sentencepiece_model_pb2 as pb
    model = io.BytesIO()
    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as rules:
        for source in "ﬁﬀⅧ½²ｆｕｌㅤ㎏Å①İ　\u00a0\u2028\u200b\ufeff\u0344😀":
            target = {"\u2028": " ", "\u200b": "", "\ufeff": " ", "😀": ":-)"}.get(source, unicodedata.normalize("NFKC", source))
            if source == target:
                continue
            rules.write(" ".join(f"{ord(c):X}" for c in source) + "\t" + " ".join(f"{ord(c):X}" for c in target) + "\n")
        rules.write("65 301\tE9\n1112 1161 11AB\tD55C\n1F44D 1F3FD\t1F44D\n")
        rules.flush()
        spm.SentencePieceTrainer.train(sentence_iterator=iter(texts(500)), model_writer=model, vocab_size=200,
                                       normalization_rule_tsv=rules.name, minloglevel=2)
    proto = pb.ModelProto()
    proto.ParseFromString(model.getvalue())
    return proto.normalizer_spec.precompiled_charsmap


def t5():
    t = Tokenizer(models.Unigram())
    t.normalizer = normalizers.Sequence([normalizers.Precompiled(charsmap()), normalizers.Replace(Regex(" {2,}"), " "), normalizers.Strip(left=False, right=True)])
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    t.decoder = decoders.Metaspace()
    t.train_from_iterator(texts(2000), trainers.UnigramTrainer(vocab_size=330, show_progress=False, unk_token="<unk>", special_tokens=["<pad>", "</s>", "<unk>"]))
    t.post_processor = processors.TemplateProcessing(single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)])
    t.add_special_tokens([f"<extra_id_{i}>" for i in range(3)])
    return t


def llama():
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    t.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    t.train_from_iterator([w for l in texts(1000) for w in [l]], trainers.BpeTrainer(vocab_size=330, show_progress=False, max_token_length=8, limit_alphabet=60, special_tokens=["<unk>", "<s>", "</s>"] + [f"<0x{i:02X}>" for i in range(256)]))
    t.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s>:1 $B:1", special_tokens=[("<s>", 1)])
    return t


def llama3():
    t = Tokenizer(models.BPE(ignore_merges=True))
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(texts(), trainers.BpeTrainer(vocab_size=330, show_progress=False, special_tokens=["<|begin_of_text|>", "<|end_of_text|>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    t.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=True), processors.TemplateProcessing(single="<|begin_of_text|> $A", pair="<|begin_of_text|> $A <|begin_of_text|>:1 $B:1", special_tokens=[("<|begin_of_text|>", 0)])])
    return t


def words():
    t = Tokenizer(models.WordLevel(unk_token="<unk>"))
    t.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.Lowercase(), normalizers.StripAccents(), normalizers.Strip()])
    t.pre_tokenizer = pre_tokenizers.Whitespace()
    t.train_from_iterator(texts(), trainers.WordLevelTrainer(vocab_size=330, show_progress=False, special_tokens=["<pad>", "<unk>"]))
    return t


def mixed(norm, pre):
    t = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    t.normalizer = norm
    t.pre_tokenizer = pre
    t.decoder = decoders.BPEDecoder()
    t.train_from_iterator(texts(500), trainers.BpeTrainer(vocab_size=330, show_progress=False, special_tokens=["<unk>"], end_of_word_suffix="</w>"))
    return t


P = pre_tokenizers; N = normalizers


def tokenizers():
    yield "gpt2", gpt2(); yield "roberta", roberta(); yield "bert", bert(); yield "bert_cased", bert_processing()
    yield "t5", t5(); yield "llama", llama(); yield "llama3", llama3(); yield "words", words()
    yield "digits", mixed(N.NFC(), P.Sequence([P.WhitespaceSplit(), P.Digits(True), P.Punctuation("merged_with_previous")]))
    yield "split", mixed(N.NFKC(), P.Sequence([P.Split(Regex(r"[\w']+"), "contiguous", invert=True), P.Digits(False), P.Split("e", "merged_with_next")]))
    yield "delimiter", mixed(N.Sequence([N.NFKD(), N.Nmt(), N.Replace(Regex("a+"), "bc"), N.Replace("q", "")]), P.Sequence([P.CharDelimiterSplit(" "), P.Split(Regex(r"\s+"), "removed"), P.Punctuation("contiguous")]))
    yield "metaspace", mixed(N.Strip(True, False), P.Metaspace(prepend_scheme="first"))
    yield "merged", mixed(N.Lowercase(), P.Sequence([P.Split(" ", "merged_with_previous"), P.Punctuation("removed")]))


TEXTS = ["", " ", "Hello, world!", "  leading and trailing  ", "They're we'll I'VE don't 's 'x", "naïve cafe\u0301 \u00c5 \u212b q\u0307\u0323",
         "ﬁ Ⅷ ½ x² ｆｕｌｌ ㎏", "İstanbul Straße  STRASSE ΟΔΟΣ", "👍🏽 👨\u200d👩\u200d👧\u200d👦 🇩🇪 ❤\ufe0f 1\ufe0f\u20e3", "שלום עולם مرحبا لَا",
         "日本語と中文字符 한국어 각", "\u1112\u1161\u11ab", "a\x00b", "\ufeffBOM", "line\r\nend\n\n\tx", "3.14 1,000,000 2024-11-23",
         "I live in New York, NewYork new york.", "ask <mask> and  <mask>. [MASK][SEP] <s></s> <unk> <extra_id_1> <|endoftext|>",
         "\u00a0nbsp\u3000wide\u2028ls\u200bzw\u00ad", "a" * 150, "日" * 120, "▁under ▁▁ Ġ Ā <0x41>", "Zwei junge weiße Männer sind im Freien."]


def record(tokenizer):
    cases = []
    for i, text in enumerate(TEXTS):
        pair = TEXTS[(i + 2) % len(TEXTS)] if i % 3 == 2 else None
        e = tokenizer.encode(text, pair, add_special_tokens=i % 5 != 4)
        cases.append({"text": text, "pair": pair, "add_special_tokens": i % 5 != 4, "ids": e.ids, "offsets": [list(o) for o in e.offsets],
                      "type_ids": e.type_ids, "special_tokens_mask": e.special_tokens_mask,
                      "decoded": tokenizer.decode(e.ids), "decoded_all": tokenizer.decode(e.ids, skip_special_tokens=False)})
    return cases


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "tests/unit/text")
    folder.mkdir(parents=True, exist_ok=True)
    for name, tokenizer in tokenizers():
        whole = json.loads(tokenizer.to_str())
        if "--files" not in sys.argv:
            whole = {"tokenizer": whole, "cases": record(tokenizer)}
        (folder / f"{name}.json").write_text(json.dumps(whole, ensure_ascii=False, separators=(",", ":")) + "\n")


main()

"""Makes tests/text/golden anew with the package `tokenizers`: PYTHON tests/text/make_golden.py. The text is generated and
the tokenizers are trained here; what the package makes of the text is what the C++ test expects."""
import hashlib
import json
import os
import struct
import sys

import tokenizers

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../bench"))
from mixed_text import MixedText  # noqa: E402
from package_tokenizer import documents  # noqa: E402
from trained_tokenizers import KINDS  # noqa: E402

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden")
SAMPLES = [
    b"", b" ", b"  ", b"\n", b"Hello world", b" Hello  world ", b"the theory that is with it", b"don't DON'T we'Re I'll",
    "'\u017f it'\u017f".encode(), b"x = 12345 + 67;\r\n\r\n\treturn", b"a\n\n b   \n", "na\u00efve caf\u00e9 e\u0301l cafe\u0301".encode(),
    "\u4f60\u597d\uff0c\u4e16\u754c\u3002\u3053\u3093\u306b\u3061\u306f 2024\u5e74".encode(), "\U0001f600\U0001f3fd \U0001f468\u200d\U0001f469\u200d\U0001f467".encode(), "\uac00\u11a7\u1100\u1161\u11a8".encode(),
    "\u180e x\u180e \u00a0\u3000y\u0085z\u2028".encode(), b"<|endoftext|>the<|im_start|> <s>it</s> <unk> [MASK]  of", b" unmerged unmerged",
    b"word a word, words sword word", b"  [MASK]\t\n[MASK]end", "\u2581 \u2581\u2581x <0x41>".encode(), b"\xff\xfe\xe2\x82 \xf0\x9f\x98\xed\xa0\x80 \xc0\x80\x80",
    b"with\0NUL\0", b"a" * 100, b" " * 70 + b"x", ("\u2581" * 60).encode(), ("\u0915\u094d" * 40).encode(), "\ufb01\u2460 \u212b \u1e9b\u0323".encode()]


def ids_of(tokenizer, text):
    return tokenizer.encode(text, add_special_tokens=False).ids


def expected(tokenizer, text):
    samples = [ids_of(tokenizer, sample.decode("utf-8", "replace")) for sample in SAMPLES]
    digests = {}
    for size in (1, 4096):
        ids = [id for document in documents(text, size) for id in ids_of(tokenizer, document)]
        digests[str(size)] = hashlib.blake2b(struct.pack(f"<{len(ids)}I", *ids), digest_size=32).hexdigest()
    return {"samples": samples, "digests": digests,
            "texts": [tokenizer.decode(ids, skip_special_tokens=False) for ids in samples],
            "plain_texts": [tokenizer.decode(ids, skip_special_tokens=True) for ids in samples]}


def trained_merges(text):
    """What the package learns of the lines of `text`, for a vocabulary of 600."""
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    level = tokenizers.pre_tokenizers.ByteLevel
    tokenizer.pre_tokenizer = level(add_prefix_space=False)
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=600, min_frequency=2, show_progress=False,
                                             special_tokens=["<|endoftext|>"], initial_alphabet=level.alphabet())
    tokenizer.train_from_iterator(documents(text, 1), trainer)
    return [" ".join(merge) for merge in json.loads(tokenizer.to_str())["model"]["merges"]]


def main():
    os.makedirs(FOLDER, exist_ok=True)
    training = MixedText(1).bytes(200_000).decode("utf-8", "replace")
    text = MixedText(2).bytes(48_000)
    with open(os.path.join(FOLDER, "text.bin"), "wb") as file:
        file.write(text)
    golden = {"samples": [sample.hex() for sample in SAMPLES], "merges": trained_merges(text), "tokenizers": {}}
    for name, train in KINDS.items():
        path = os.path.join(FOLDER, name + ".json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(train(training, 700), file, ensure_ascii=False, separators=(",", ":"))
        golden["tokenizers"][name] = expected(tokenizers.Tokenizer.from_file(path), text)
    with open(os.path.join(FOLDER, "expected.json"), "w", encoding="utf-8") as file:
        json.dump(golden, file, separators=(",", ":"))


main()

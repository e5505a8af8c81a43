"""The part of scripts/verify-tokenizer that has the package `tokenizers`. tests/text is on its path."""
import argparse
import json
import os
import random
import subprocess
import sys

from mixed_text import MixedText
from trained_tokenizers import KINDS


def arguments():
    parser = argparse.ArgumentParser(prog="scripts/verify-tokenizer")
    parser.add_argument("--bench", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--folder", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--mb", type=float, default=4.5, help="of the text that is compared")
    parser.add_argument("--vocabulary", type=int, default=32000, help="of the tokenizers that are trained")
    parser.add_argument("tokenizers", nargs="*", help="tokenizer.json files besides")
    return parser.parse_args()


def write_text(path, count):
    """Mixed text, and within it two lines without a space: one of letters, one of ideographs."""
    mixed = MixedText(3)
    half = int(count) // 2 - 60_000
    letters = "".join(random.Random(4).choices("aeiounrstl", k=60_000)) + "\n"
    ideographs = "".join(mixed.character(0x4E00, 0x9FFF) for _ in range(20_000)) + "\n"
    text = mixed.bytes(half) + letters.encode() + ideographs.encode() + mixed.bytes(half)
    with open(path, "wb") as file:
        file.write(text)
    return len(text) / 1e6


def train(folder, vocabulary):
    text = MixedText(5).bytes(3_000_000).decode("utf-8", "replace")
    paths = {}
    for name, kind in KINDS.items():
        paths[name] = os.path.join(folder, name + ".json")
        with open(paths[name], "w", encoding="utf-8") as file:
            json.dump(kind(text, vocabulary), file, ensure_ascii=False)
    return paths


def agrees(bench, name, tokenizer, text):
    rates, ids = [], 0
    for size in (16384, 1):
        made = subprocess.run([bench, "tokenizer", "--tokenizer", tokenizer, "--text", text, "--document-bytes", str(size), "--json"],
                              env={**os.environ, "SHOAL_PYTHON": sys.executable}, stdout=subprocess.PIPE, text=True)
        if not made.stdout:
            print(f"{name:24} failed with exit code {made.returncode}", flush=True)
            return False
        figures = json.loads(made.stdout)
        if not figures["equal"]:
            print(f"{name:24} differs: {figures['difference']}", flush=True)
            return False
        rates += [figures["text_mb_s"], figures["tokenizers_mb_s"]]
        ids = figures["ids"]
    print(f"{name:24} equal, {ids} ids; MB/s in documents of 16 KiB: ours {rates[0]:.1f}, the package's {rates[1]:.1f}; "
          f"line by line: {rates[2]:.1f}, {rates[3]:.1f}", flush=True)
    return True


def main():
    options = arguments()
    text = os.path.join(options.folder, "text.bin")
    megabytes = write_text(text, options.mb * 1e6)
    paths = train(options.folder, options.vocabulary)
    for path in options.tokenizers:
        paths[os.path.basename(path)[-24:]] = path
    verdicts = [agrees(options.bench, name, path, text) for name, path in paths.items()]
    print(f"{sum(verdicts)} of {len(verdicts)} tokenizers agree on {megabytes:.1f} MB")
    return 0 if all(verdicts) else 1


sys.exit(main())

"""Encodes a text by the package `tokenizers` and compares with the ids that shoal wrote:
    package_tokenizer.py TOKENIZER TEXT DOCUMENT_BYTES IDS
Prints one line: MB/s of one thread, `equal` or `different`, and where they begin to differ. The rate is of `encode` alone."""
import os
import struct
import sys
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
import tokenizers  # noqa: E402  (reads the variable above)


def documents(text, size):
    """At least `size` bytes each, up to the end of a line: as bench/tokenizer_bench.cc cuts."""
    at = 0
    while at < len(text):
        end = text.find(b"\n", min(len(text), at + size - 1))
        end = len(text) if end < 0 else end + 1
        yield text[at:end].decode("utf-8", "replace")
        at = end


def first_difference(tokenizer, ours, theirs, document):
    for place, (our, their) in enumerate(zip(ours, theirs)):
        if our != their:
            near = slice(max(0, place - 2), place + 4)
            names = [[tokenizer.id_to_token(id) for id in ids[near]] for ids in (ours, theirs)]
            return ascii(f"ours {names[0]}, theirs {names[1]}, in {document[:80]!r}")
    return f"{len(ours)} ids, and theirs are {len(theirs)}"


def main():
    path, text_path, size, ids_path = sys.argv[1:]
    tokenizer = tokenizers.Tokenizer.from_file(path)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    with open(text_path, "rb") as file:
        text = file.read()
    with open(ids_path, "rb") as file:
        packed = file.read()
    ours = struct.unpack(f"<{len(packed) // 4}I", packed)
    took, done, difference = 0.0, 0, ""
    for document in documents(text, int(size)):
        began = time.perf_counter()
        theirs = tokenizer.encode(document, add_special_tokens=False).ids
        took += time.perf_counter() - began
        mine = list(ours[done : done + len(theirs)])
        if not difference and mine != theirs:
            difference = first_difference(tokenizer, mine, theirs, document)
        done += len(theirs)
    if not difference and done != len(ours):
        difference = f"{len(ours)} ids, and theirs are {done}"
    print(f"{len(text) / 1e6 / took:.3f} {'different' if difference else 'equal'} {difference}")


if __name__ == "__main__":
    main()

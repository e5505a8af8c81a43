"""A small model of one's own, by shoal's own commands alone: a tokenizer of a text, the text's ids, a llama model trained on its first half
in one process, and the folder that Python's transformers would read. For the scripts that go on with such a folder.
"""
import json
import os

from harness import output_of
from local_swarm import SwarmError, say, toml


class OwnModel:
    def __init__(self, bin_folder, folder):
        self.folder, self.shoal = folder, os.path.join(bin_folder, "shoal")
        if not os.path.exists(self.shoal):
            raise SwarmError(f"{self.shoal} does not exist. HINT: scripts/setup builds it, or name another folder with --bin")

    def path(self, name):
        return os.path.join(self.folder, name)

    def run(self, *words):
        return output_of([self.shoal, *words])

    def write(self, name, text):
        with open(self.path(name), "w") as file:
            file.write(text)
        return self.path(name)

    def cut_text(self, text_path):
        """first.txt and second.txt: the halves of the text."""
        with open(text_path, "rb") as file:
            text = file.read()
        if len(text) < 200_000:
            raise SwarmError(f"{text_path} has {len(text)} bytes. HINT: give a text of at least 200 kB with --text")
        middle = text.index(b"\n", len(text) // 2) + 1
        for name, part in (("first.txt", text[:middle]), ("second.txt", text[middle:])):
            with open(self.path(name), "wb") as file:
                file.write(part)

    def prepare(self, name, tokenizer):
        """NAME.txt to NAME.bin; returns its path."""
        self.run("data", "prepare", self.path(name + ".txt"), "--tokenizer", tokenizer, "--out", self.path(name + ".bin"))
        return self.path(name + ".bin")

    def make(self, vocabulary, tokens):
        """Trains on first.txt; returns the folder for transformers. What --save wrote is in `pretrained`."""
        tokenizer = self.path("tokenizer.json")
        self.run("data", "train-tokenizer", self.path("first.txt"), "--vocabulary", str(vocabulary), "--out", tokenizer)
        config = toml(run=dict(name="pretrained"),
                      model=dict(family="llama", layers=4, dim=64, heads=4, kv_heads=2, inner=176, positions=64, vocabulary=vocabulary),
                      data=dict(path=self.prepare("first", tokenizer), width="u16", tokenizer=tokenizer, sequences=4, validation_samples=32),
                      optimizer=dict(lr=2e-3), schedule=dict(warmup_tokens=20000), sync=dict(inner_batch=2048), end=dict(tokens=tokens))
        said = json.loads(self.run("--json", "solo", self.write("pretrain.toml", config), "--save", self.path("pretrained"), "--threads", "2"))
        say(f"pre-trained in one process: validation {said['val_loss']:.4f} on its own text")
        self.run("export", self.path("pretrained"), "--format", "hf", self.path("model"))
        return self.path("model")

    def fit(self, model, tokens, boundary, stages):
        """The model with a narrow boundary that is fitted to the text: its folder, and what `shoal fit` said."""
        folder = self.path("narrow-model")
        said = self.run("--json", "fit", model, folder, "--text", tokens, "--boundary", str(boundary), "--stages", str(stages), "--positions", "64",
                        "--threads", "2")
        return folder, json.loads(said)

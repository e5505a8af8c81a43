"""The loss of a saved model as Python's transformers computes it, against that of `shoal eval`, whose object is on stdin.

Called by scripts/verify-hf, which sees that torch and transformers are there.
"""
import json
import os
import sys
import tomllib

import torch
from transformers import AutoModelForCausalLM, logging

AGREES = 1e-6  # of the loss


def validation_rows(run, path):
    """The windows of the last tenth (docs/FILES.md), each (1, T + 1)."""
    data, positions = run["data"], run["model"]["positions"]
    width = {"u8": 1, "u16": 2, "u32": 4}[data["width"]]
    with open(path, "rb") as file:
        raw = bytearray(file.read())
    stored = torch.frombuffer(raw, dtype={1: torch.uint8, 2: torch.int16, 4: torch.int32}[width], count=len(raw) // width)
    tokens = stored.long() & (1 << 8 * width) - 1
    count = (len(tokens) - 1) // positions
    for window in range(count - max(1, count // 10), count):
        yield tokens[window * positions : (window + 1) * positions + 1][None]


def opened(folder):
    """A folder of transformers, or of peft, which names its base."""
    if not os.path.exists(os.path.join(folder, "adapter_config.json")):
        return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, trust_remote_code=True)  # shoal's own of a boundary
    from peft import PeftModel
    with open(os.path.join(folder, "adapter_config.json")) as file:
        base = json.load(file)["base_model_name_or_path"]
    return PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32), folder)


def main():
    saved, text, folder = sys.argv[1:]
    said = sys.stdin.read()
    if not said.strip():
        sys.exit("shoal: eval gave no loss; its own words stand above")
    ours = json.loads(said)
    with open(f"{saved}/run.toml", "rb") as file:
        run = tomllib.load(file)
    torch.set_num_threads(1)
    logging.disable_progress_bar()
    model = opened(folder).eval()
    total, targets = 0.0, 0
    with torch.no_grad():
        for rows in validation_rows(run, text):
            logits = model(rows[:, :-1]).logits
            losses = torch.nn.functional.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten(), reduction="none")
            total += losses.double().sum().item()
            targets += losses.numel()
    theirs = total / targets
    apart = abs(theirs - ours["val_loss"]) / ours["val_loss"]
    print(f"{type(model).__name__}: loss {theirs:.9f} over {targets} targets")
    print(f"shoal eval: loss {ours['val_loss']:.9f} over {ours['targets']} targets; they are {apart:.1e} apart")
    if targets != ours["targets"] or not apart <= AGREES:
        sys.exit(f"shoal: they do not agree (allowed are {AGREES:.0e} of the loss, over the same targets)")


if __name__ == "__main__":
    main()

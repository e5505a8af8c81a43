"""Small random models of every shape that shoal reads, made by Python's transformers: imported, stepped and exported by
shoal, and compared with transformers at each place.

Called by scripts/verify-hf without arguments, which sees that torch and transformers are there.
  verify_shapes.py BIN_DIR      the folder of shoal and shoal-bench
"""
import copy
import json
import pathlib
import subprocess
import sys
import tempfile

import torch
from safetensors.torch import load_file, save_file
from transformers import (AutoModelForCausalLM, AutoTokenizer, GPT2Config, LlamaConfig, MistralConfig, Qwen2Config,
                          Qwen3Config, logging)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "stages/pretrained"))
from modeling_boundary import BoundaryConfig, BoundaryForCausalLM  # noqa: E402

# Whatever opens a folder takes the class that lies in it.
BoundaryConfig.register_for_auto_class()
BoundaryForCausalLM.register_for_auto_class("AutoModelForCausalLM")

LOGITS_APART = 1e-4  # absolute
STEP_APART = 1e-5  # of a tensor's norm
VOCABULARY, CONTEXT, POSITIONS, SEQUENCES, WINDOW = 300, 64, 16, 2, 32
RATE, EPS, DECAY, BETAS = 1e-3, 1e-4, 0.1, (0.9, 0.95)

LLAMA = dict(vocab_size=VOCABULARY, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
             max_position_embeddings=CONTEXT, bos_token_id=None, eos_token_id=None)
LLAMA3 = dict(rope_type="llama3", rope_theta=500000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=16)


def gpt2(**more):
    return GPT2Config(**{**dict(vocab_size=VOCABULARY, n_positions=CONTEXT, n_embd=32, n_layer=2, n_head=4, bos_token_id=None,
                                eos_token_id=None), **more})


def has_boundary(config):
    return config.model_type == BoundaryConfig.model_type


def with_cuts(base, table):
    """Cuts where both stages meet and inside the first."""
    return BoundaryConfig(base=base, boundary=4, boundary_table=table, cuts=[1, 2], tie_word_embeddings=False)


def rewritten(folder, change):
    """The tensors of a folder in one file, as `change` makes them of theirs."""
    (file,) = folder.glob("*.safetensors")
    save_file({name: value.contiguous() for name, value in change(load_file(file)).items()}, file, {"format": "pt"})


def base_class(folder):
    """Saved from the base class: names without what stands in front of the body's, and no head."""
    rewritten(folder, lambda tensors: {name.removeprefix("model.").removeprefix("transformer."): value
                                       for name, value in tensors.items() if not name.startswith("lm_head")})


def wrapped(folder):
    """As torch.compile and data parallel training name tensors; transformers does not read these."""
    rewritten(folder, lambda tensors: {"module._orig_mod." + name: value for name, value in tensors.items()})


def other_head(folder):
    """config.json ties the head, and a head that differs is saved."""
    def with_head(tensors):
        embedding = next(value for name, value in tensors.items() if name.endswith(("embed_tokens.weight", "wte.weight")))
        return {**tensors, "lm_head.weight": embedding.flip(0)}
    rewritten(folder, with_head)


def null_keys(folder):
    """Keys that nobody gave are null, in rope_parameters too."""
    config = json.loads((folder / "config.json").read_text())
    config.update(quantization_config=None, rope_scaling=None, layer_types=None)
    config["rope_parameters"].update(factor=None, attention_factor=None)
    (folder / "config.json").write_text(json.dumps(config))


# What it is, its configuration, type of the values, whether in several files, and what people make of such a folder.
SHAPES = [
    ("gpt2, tied", gpt2(), torch.float32, False),
    ("gpt2, untied", gpt2(tie_word_embeddings=False, n_inner=80), torch.bfloat16, True),
    ("llama", LlamaConfig(**LLAMA, num_key_value_heads=4), torch.float32, False),
    ("llama, tied, fp16", LlamaConfig(**LLAMA, num_key_value_heads=4, tie_word_embeddings=True), torch.float16, False),
    ("llama 3, scaled rotation, grouped queries",
     LlamaConfig(**LLAMA, num_key_value_heads=2, rope_parameters=LLAMA3), torch.float32, True),
    ("smollm, tied, grouped queries",
     LlamaConfig(**{**LLAMA, "hidden_size": 36, "num_attention_heads": 9}, num_key_value_heads=3,
                 tie_word_embeddings=True), torch.bfloat16, False),
    ("mistral, grouped queries, wide heads",
     MistralConfig(**LLAMA, num_key_value_heads=2, head_dim=12, sliding_window=None), torch.float32, True),
    ("qwen2, tied", Qwen2Config(**LLAMA, num_key_value_heads=2, tie_word_embeddings=True), torch.bfloat16, False),
    ("qwen2, untied", Qwen2Config(**LLAMA, num_key_value_heads=2, tie_word_embeddings=False), torch.float32, True),
    ("qwen3, tied, wide heads",
     Qwen3Config(**LLAMA, num_key_value_heads=2, head_dim=16, tie_word_embeddings=True), torch.float32, False),
    ("qwen3, untied", Qwen3Config(**LLAMA, num_key_value_heads=2, head_dim=8, tie_word_embeddings=False),
     torch.bfloat16, True),
    ("gpt2, tied, of the base class", gpt2(), torch.float32, False, base_class),
    ("llama, tied, of the base class", LlamaConfig(**LLAMA, tie_word_embeddings=True), torch.float32, False, base_class),
    ("llama, wrapped", LlamaConfig(**LLAMA), torch.float32, False, wrapped),
    ("gpt2, untied, wrapped", gpt2(tie_word_embeddings=False), torch.bfloat16, False, wrapped),
    ("llama, tied, another head saved", LlamaConfig(**LLAMA, tie_word_embeddings=True), torch.float32, False, other_head),
    ("llama, null keys", LlamaConfig(**LLAMA), torch.float32, False, null_keys),
    ("mistral, a window as wide as the sequences", MistralConfig(**LLAMA, num_key_value_heads=2, sliding_window=WINDOW),
     torch.float32, False),
    ("qwen2, a window from the second layer on",
     Qwen2Config(**LLAMA, num_key_value_heads=2, use_sliding_window=True, sliding_window=WINDOW, max_window_layers=1),
     torch.float32, False),
    ("gpt2, a boundary, a table as wide as the model",
     with_cuts(gpt2(tie_word_embeddings=False, n_layer=4), 32), torch.float32, False),
    ("llama, a boundary", with_cuts(LlamaConfig(**{**LLAMA, "num_hidden_layers": 4}, tie_word_embeddings=False), 16),
     torch.float32, True),
    ("llama, a boundary without a table, bfloat16",
     with_cuts(LlamaConfig(**{**LLAMA, "num_hidden_layers": 4}, tie_word_embeddings=False), 0), torch.bfloat16, False),
    ("qwen3, a boundary",
     with_cuts(Qwen3Config(**{**LLAMA, "num_hidden_layers": 4}, num_key_value_heads=2, head_dim=8, tie_word_embeddings=False), 16),
     torch.float32, False),
]


def make_folder(config, dtype, sharded, folder):
    """A model whose every parameter is random, norms and biases too."""
    model = BoundaryForCausalLM(config) if has_boundary(config) else AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            norm = parameter.ndim == 1 and name.endswith("weight")
            parameter.normal_(1 if norm else 0, 0.1 if norm else 0.2)
    model.to(dtype).save_pretrained(folder, max_shard_size="20KB" if sharded else "1GB")


def opened(folder, **more):
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, trust_remote_code=True, **more)


def untied(model):
    """The same model with a head of its own."""
    head, embedding = model.get_output_embeddings().weight, model.get_input_embeddings().weight
    if not model.config.tie_word_embeddings or head is not embedding:
        return model
    config = copy.deepcopy(model.config)
    config.tie_word_embeddings = False
    other = AutoModelForCausalLM.from_config(config)
    state = {name: value.clone() for name, value in model.state_dict().items()}
    state["lm_head.weight"] = model.get_input_embeddings().weight.detach().clone()
    other.load_state_dict(state)
    return other.eval()


def shoal(*command):
    said = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if said.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command[:3]))}: exit code {said.returncode}: {said.stderr.strip()}")
    return said


def logits_apart(bin_dir, folder, model, scratch):
    longest = min(getattr(model.config.get_text_config(), "sliding_window", None) or CONTEXT, model.config.max_position_embeddings)
    ids = torch.randint(VOCABULARY, (1, longest), generator=torch.Generator().manual_seed(3))
    (scratch / "ids").write_bytes(ids.to(torch.int32).numpy().tobytes())
    shoal(bin_dir / "shoal-bench", "logits", folder, "--tokens", scratch / "ids", "--out", scratch / "logits")
    ours = torch.frombuffer(bytearray((scratch / "logits").read_bytes()), dtype=torch.float32)
    with torch.no_grad():
        theirs = model(ids).logits
    return (ours.view(theirs.shape) - theirs).abs().max().item()


def run_file(folder, scratch):
    """A run of one step whose samples are all the same."""
    ids = torch.randint(VOCABULARY, (SEQUENCES * POSITIONS,), generator=torch.Generator().manual_seed(5))
    text = torch.cat([ids.repeat(20), ids[:1]])
    (scratch / "text").write_bytes(text.to(torch.int16).numpy().tobytes())
    (scratch / "run.toml").write_text(f"""
[model]
from = {json.dumps(str(folder))}
positions = {POSITIONS}
[data]
path = "text"
width = "u16"
sequences = {SEQUENCES}
[optimizer]
lr = {RATE}
eps = {EPS}
weight_decay = {DECAY}
beta1 = {BETAS[0]}
beta2 = {BETAS[1]}
clip_norm = 0
[schedule]
min_lr_factor = 1
[pipeline]
stages = 2
[sync]
rule = "allreduce"
microbatches_per_step = 1
[end]
steps = 1
""")
    windows = text[: SEQUENCES * POSITIONS + 1]
    return torch.stack([windows[i * POSITIONS : (i + 1) * POSITIONS + 1] for i in range(SEQUENCES)])


def decays(name, parameter):
    """Matrices and embeddings do, but a boundary's matrices."""
    return parameter.ndim > 1 and not (name.startswith("boundary.") and name.endswith((".down", ".up", ".table_up")))


def step(model, rows):
    """One step of transformers' model, in place; its loss."""
    matrices = [p for name, p in model.named_parameters() if decays(name, p)]
    rest = [p for name, p in model.named_parameters() if not decays(name, p)]
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": DECAY}, {"params": rest, "weight_decay": 0}],
                                  lr=RATE, betas=BETAS, eps=EPS)
    logits = model(rows[:, :-1]).logits
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten())
    loss.backward()
    optimizer.step()
    return loss.item()


def saved_tensors(folder):
    tensors = {}
    for file in folder.glob("*.safetensors"):
        tensors.update(load_file(file))
    return tensors


def name_in(model, name):
    """What --save calls `name`, in transformers' model."""
    if name.startswith("boundary."):
        return name
    inside = "transformer." if model.config.get_text_config().model_type == "gpt2" and not name.startswith("lm_head") else ""
    return ("base." if has_boundary(model.config) else "") + inside + name


def step_apart(saved, model):
    """The largest difference of a tensor, in parts of its norm."""
    theirs = model.state_dict()
    named = {name_in(model, name): value for name, value in saved.items()}
    assert set(named) == set(theirs), set(named) ^ set(theirs)
    return max(((named[name] - theirs[name]).norm() / theirs[name].norm()).item() for name in theirs)


def write_tokenizer(path):
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={symbol: i for i, symbol in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<|endoftext|>"])
    tokenizer.save(str(path))
    return tokenizer


def check_export(bin_dir, saved, model, dtype, scratch):
    """What transformers makes of the exported folder is what --save wrote."""
    folder = scratch / "export"
    tokenizer = write_tokenizer(scratch / "tokenizer.json")
    shoal(bin_dir / "shoal", "export", saved, folder, "--format", "hf", "--dtype", dtype, "--tokenizer",
          scratch / "tokenizer.json")
    read, found = opened(folder, output_loading_info=True)
    assert not found["missing_keys"] and not found["unexpected_keys"], found
    assert type(read).__name__ in read.config.architectures, read.config.architectures
    written = saved_tensors(saved)
    for name, value in written.items():
        there = read.state_dict()[name_in(model, name)]
        assert torch.equal(there, value.bfloat16().float() if dtype == "bf16" else value), name
    assert (folder / "generation_config.json").exists()
    text = "any text, \u00e9 too"
    of_folder = AutoTokenizer.from_pretrained(folder, trust_remote_code=True)
    assert of_folder(text)["input_ids"] == tokenizer.encode(text).ids
    assert of_folder.eos_token == "<|endoftext|>" and read.config.eos_token_id == of_folder.eos_token_id
    return read.eval()


def check_class(model):
    """A text goes on as it does without a cache, also in a copy, behind padding; and a copy has cuts of its own."""
    ids, more = torch.randint(VOCABULARY, (2, 8)), dict(max_new_tokens=6, do_sample=False, pad_token_id=0)
    ids[0, :3] = 0
    mask = torch.ones_like(ids)
    mask[0, :3] = 0
    copied = copy.deepcopy(model)
    text, whole = copied.generate(ids, attention_mask=mask, **more), ids[1:]
    for _ in range(6):
        whole = torch.cat([whole, model(whole, use_cache=False).logits[:, -1].argmax(-1, keepdim=True)], 1)
    assert torch.equal(text[1:], whole), "with a cache another text"
    assert torch.equal(text[0, 3:], model.generate(ids[:1, 3:], **more)[0]), "behind padding another text"
    with torch.no_grad():
        for parameter in copied.boundary.parameters():
            parameter.zero_()
        assert not torch.equal(copied(ids).logits, model(ids).logits), "a copy crosses the cuts of its original"


def verify(shape, bin_dir, scratch):
    name, config, dtype, sharded, *change = shape
    folder, saved = scratch / "model", scratch / "saved"
    make_folder(config, dtype, sharded, folder)
    files = len(list(folder.glob("*.safetensors")))
    assert (files > 1) == sharded, files
    model = opened(folder).eval()
    for one in change:
        one(folder)
        if one is not wrapped:
            model = opened(folder).eval()
    before = logits_apart(bin_dir, folder, model, scratch)
    rows = run_file(folder, scratch)
    result = json.loads(shoal(bin_dir / "shoal", "--json", "solo", scratch / "run.toml", "--save", saved, "--device",
                              "cpu", "--threads", "1").stdout)
    model = untied(model)
    loss = abs(step(model, rows) - result["loss_start"])
    stepped = step_apart(saved_tensors(saved), model)
    if has_boundary(model.config):
        check_class(model)
    exported = check_export(bin_dir, saved, model, "bf16" if dtype != torch.float32 else "fp32", scratch)
    after = logits_apart(bin_dir, scratch / "export", exported, scratch)
    if has_boundary(model.config):  # what is saved of it is shoal's alone
        after = max(after, logits_apart(bin_dir, scratch / "export", model, scratch) if dtype == torch.float32 else 0)
    else:
        plain = opened(saved).eval()
        after = max(after, *(logits_apart(bin_dir, saved, one, scratch) for one in (model, plain)))
    agrees = max(before, after, loss) <= LOGITS_APART and stepped <= STEP_APART
    print(f"{name}, {str(dtype)[6:]}, {files} file{'s' * (files > 1)}: logits {before:.1e} apart, loss {loss:.1e}; after "
          f"a step a tensor {stepped:.1e} of its norm, logits {after:.1e}; export as {type(exported).__name__}"
          f"{'' if agrees else ': THEY DO NOT AGREE'}", flush=True)
    return agrees


def main():
    bin_dir = pathlib.Path(sys.argv[1]).resolve()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    torch.set_num_threads(1)
    print(f"Allowed are {LOGITS_APART:.0e} of a logit and the loss, and {STEP_APART:.0e} of a tensor's norm behind one "
          "step of AdamW. A tied model is stepped with its head untied, since shoal trains a head of its own.")
    agree = 0
    for number, shape in enumerate(SHAPES):
        torch.manual_seed(number)
        with tempfile.TemporaryDirectory() as scratch:
            try:
                agree += verify(shape, bin_dir, pathlib.Path(scratch))
            except (AssertionError, RuntimeError, OSError, ValueError, KeyError) as error:
                print(f"{shape[0]}: {type(error).__name__}: {error}", flush=True)
    print(f"{agree} of {len(SHAPES)} shapes agree")
    sys.exit(agree < len(SHAPES))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""What `shoal solo` trains, in plain PyTorch and from docs/REPRODUCE.md alone: prints the loss of each step.

    shoal solo RUN.toml --save model --line-every 0
    python3 examples/plain_pytorch.py model/run.toml TEXT --steps 20

The first argument is the manifest that --save writes, in which every option of the run stands; TEXT is its token file.
Needs Python 3.11 and torch; computes on the CPU. No gradient is late here, so look_ahead = "auto" is 0. Runs with
[optimizer] inner = "adamw" alone: Muon is written down in docs/REPRODUCE.md and not made here.
"""
import argparse
import json
import math
import sys
import tomllib

import torch
from torch.nn import functional as F

MASK = (1 << 64) - 1
NORM_EPSILON = 1e-5


# ---- random numbers -------------------------------------------------------------------------------------------------
def mix(x):
    """SplitMix64."""
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ x >> 30) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ x >> 27) * 0x94D049BB133111EB) & MASK
    return x ^ x >> 31


def mix_two(a, b):
    return mix(mix(a) ^ b)


class Generator:
    """xoshiro256**."""

    def __init__(self, seed):
        self.state = [mix((seed + i * 0x9E3779B97F4A7C15) & MASK) for i in range(4)]

    def next(self):
        s = self.state

        def turn(x, k):
            return (x << k | x >> 64 - k) & MASK

        drawn = turn(s[1] * 5 & MASK, 7) * 9 & MASK
        shifted = s[1] << 17 & MASK
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= shifted
        s[3] = turn(s[3], 45)
        return drawn

    def below(self, bound):
        rejected = (1 << 64) % bound
        while True:
            drawn = self.next()
            if drawn >= rejected:
                return drawn % bound

    def uniform(self):
        return (self.next() >> 11) * 2.0**-53

    def fork(self, name):
        seed = self.next()
        for byte in name.encode():
            seed = mix_two(seed, byte)
        return Generator(seed)


def normals(seed):
    """Normal draws by the polar method, two of an accepted point."""
    generator = Generator(seed)
    while True:
        u, v = 2 * generator.uniform() - 1, 2 * generator.uniform() - 1
        s = u * u + v * v
        if 0 < s < 1:
            factor = math.sqrt(-2 * math.log(s) / s)
            yield u * factor
            yield v * factor


# ---- the model ------------------------------------------------------------------------------------------------------
def split(model, stages, given):
    """Layers of each stage: as given, or the split whose dearest stage is cheapest, then with the least squares."""
    if given:
        return given
    d, t, layers = model["dim"], model["positions"], model["layers"]
    layer, head, embedding = 24 * t * d * d + 2 * t * t * d, 2 * t * d * model["vocabulary"], 2 * t * d

    def cost(stage, count):
        return count * layer + (stage == 0) * embedding + (stage == stages - 1) * head

    limit = math.inf
    for squares in (False, True):
        best, taken = {0: 0}, []
        for stage in range(stages):
            following, took = {}, {}
            for end in range(1, layers + 1):
                for count in range(1, end + 1):
                    if end - count not in best or cost(stage, count) > limit:
                        continue
                    before, own = best[end - count], cost(stage, count)
                    value = before + own**2 if squares else max(before, own)
                    if value < following.get(end, math.inf):
                        following[end], took[end] = value, count
            best = following
            taken.append(took)
        limit = best[layers]
    result, end = [], layers
    for took in reversed(taken):
        result.insert(0, took[end])
        end -= took[end]
    return result


def stage_shapes(model, parts):
    """Of each stage: names and shapes."""
    d, result, layer = model["dim"], [], 0
    for stage, count in enumerate(parts):
        names = {"wte.weight": (model["vocabulary"], d), "wpe.weight": (model["positions"], d)} if stage == 0 else {}
        for i in range(layer, layer + count):
            for norm in ("ln_1", "ln_2"):
                names |= {f"h.{i}.{norm}.weight": (d,), f"h.{i}.{norm}.bias": (d,)}
            for linear, inner, outer in (("attn.c_attn", d, 3 * d), ("attn.c_proj", d, d), ("mlp.c_fc", d, 4 * d), ("mlp.c_proj", 4 * d, d)):
                names |= {f"h.{i}.{linear}.weight": (inner, outer), f"h.{i}.{linear}.bias": (outer,)}
        layer += count
        if stage == len(parts) - 1:
            names |= {"ln_f.weight": (d,), "ln_f.bias": (d,), "lm_head.weight": (model["vocabulary"], d)}
        result.append(names)
    return result


def initial(name, shape, seed, layers):
    """Matrices are drawn, from the run's seed and the tensor's name alone; norms begin as 1 and 0, biases as 0."""
    if len(shape) == 1:
        return torch.full(shape, float(name.endswith(".weight")))
    scale = 0.02 / math.sqrt(2 * layers) if name.endswith(".c_proj.weight") else 0.02
    start = mix(seed)
    for byte in name.encode():
        start = mix_two(start, byte)
    drawn = normals(start)
    return torch.tensor([scale * next(drawn) for _ in range(math.prod(shape))], dtype=torch.float64).float().view(shape)


def loss_sum(w, tokens, model):
    """Cross entropy in nats over all targets of (B, T + 1) tokens."""
    b, t, d, heads = tokens.shape[0], tokens.shape[1] - 1, model["dim"], model["heads"]

    def norm(x, name):
        return F.layer_norm(x, (d,), w[name + ".weight"], w[name + ".bias"], NORM_EPSILON)

    def linear(x, name):
        return x @ w[name + ".weight"] + w[name + ".bias"]

    x = w["wte.weight"][tokens[:, :-1]] + w["wpe.weight"]
    for i in range(model["layers"]):
        p = f"h.{i}."
        fused = linear(norm(x, p + "ln_1"), p + "attn.c_attn").chunk(3, 2)
        q, k, v = (part.view(b, t, heads, d // heads).transpose(1, 2) for part in fused)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, d)
        x = x + linear(mixed, p + "attn.c_proj")
        x = x + linear(F.gelu(linear(norm(x, p + "ln_2"), p + "mlp.c_fc"), approximate="tanh"), p + "mlp.c_proj")
    logits = norm(x, "ln_f").view(b * t, d) @ w["lm_head.weight"].t()
    return F.cross_entropy(logits, tokens[:, 1:].reshape(-1), reduction="sum")


# ---- samples, schedule, step ----------------------------------------------------------------------------------------
class Samples:
    def __init__(self, path, data, positions):
        width = {"u8": 1, "u16": 2, "u32": 4}[data["width"]]
        with open(path, "rb") as file:
            raw = bytearray(file.read())
        stored = torch.frombuffer(raw, dtype={1: torch.uint8, 2: torch.int16, 4: torch.int32}[width], count=len(raw) // width)
        self.tokens = stored.long() & (1 << 8 * width) - 1
        self.rows, self.positions = data["sequences"], positions
        self.count = (len(self.tokens) - 1) // (self.rows * positions)
        self.training = self.count - max(1, self.count // 10)
        self.epochs = {}

    def at(self, sample):
        """(B, T + 1)"""
        first = sample * self.rows * self.positions
        starts = range(first, first + self.rows * self.positions, self.positions)
        return torch.stack([self.tokens[start : start + self.positions + 1] for start in starts])

    def of_microbatch(self, index, seed):
        epoch, place = divmod(index, self.training)
        if epoch not in self.epochs:
            order, generator = list(range(self.training)), Generator(mix_two(seed, epoch)).fork("samples")
            for i in range(len(order), 1, -1):
                j = generator.below(i)
                order[i - 1], order[j] = order[j], order[i - 1]
            self.epochs = {epoch: order}
        return self.epochs[epoch][place]


def microbatches_of(step, run):
    """Of global step `step`, from 0."""
    sync = run["sync"]
    if sync["rule"] == "allreduce" or step < sync["warm_steps"]:
        return sync["microbatches_per_step"]
    return -(-sync["inner_batch"] * run["pipeline"]["replicas"] // (run["data"]["sequences"] * run["model"]["positions"]))


def targets_of(steps, run):
    return sum(microbatches_of(step, run) for step in range(steps)) * run["data"]["sequences"] * run["model"]["positions"]


def learning_rate(run, tokens):
    peak, schedule = run["optimizer"]["lr"], run["schedule"]
    last, warm = peak * schedule["min_lr_factor"], schedule["warmup_tokens"]
    ends = [end for end in (run["end"]["tokens"], targets_of(run["end"]["steps"], run)) if end > 0]
    length = schedule["tokens"] or targets_of(schedule["steps"], run) or min(ends, default=0)
    if length == 0:
        return peak * min(max(tokens / warm if warm else 1.0, schedule["min_lr_factor"]), 1.0)
    if tokens < warm:
        return last + (peak - last) * tokens / warm
    if tokens >= length:
        return last
    return last + (peak - last) * 0.5 * (1 + math.cos(math.pi * (tokens - warm) / (length - warm)))


class AdamW:
    """Of one stage, which is clipped by its own norm."""

    def __init__(self, weights, run):
        self.weights, self.options, self.step_number = weights, run["optimizer"], 0
        self.moments = {name: (torch.zeros_like(w), torch.zeros_like(w)) for name, w in weights.items()}

    @torch.no_grad()
    def step(self, lr, targets):
        o, self.step_number = self.options, self.step_number + 1
        n = self.step_number
        ahead = 0.0 if o["look_ahead"] == "auto" or n < 2 else float(o["look_ahead"])
        ahead_before = ahead if n > 2 else 0.0
        norm = math.sqrt(sum(w.grad.double().square().sum().item() for w in self.weights.values())) / targets
        scale = (o["clip_norm"] / norm if 0 < o["clip_norm"] < norm else 1.0) / targets
        for name, w in self.weights.items():
            m, v = self.moments[name]
            before, g = m.clone(), w.grad * scale
            m.mul_(o["beta1"]).add_(g, alpha=1 - o["beta1"])
            v.mul_(o["beta2"]).add_(g * g, alpha=1 - o["beta2"])
            root = v.sqrt() / math.sqrt(1 - o["beta2"] ** n) + o["eps"]
            update = lr * (1 + ahead) / (1 - o["beta1"] ** n) * m
            if ahead_before:
                update = update - lr * ahead_before / (1 - o["beta1"] ** (n - 1)) * before
            if w.dim() == 2:
                w.mul_(1 - lr * o["weight_decay"])
            w.sub_(update / root)
            w.grad = None


def train(run, text, steps):
    """Yields the loss of each step: the mean over its targets, nats."""
    model, seed = run["model"], run["run"]["seed"]
    samples = Samples(text, run["data"], model["positions"])
    shapes = stage_shapes(model, split(model, run["pipeline"]["stages"], run["pipeline"]["layers_per_stage"]))
    stages = [{name: initial(name, shape, seed, model["layers"]).requires_grad_() for name, shape in names.items()} for names in shapes]
    weights = {name: w for stage in stages for name, w in stage.items()}
    optimizers = [AdamW(stage, run) for stage in stages]
    microbatch = tokens = 0
    for step in range(steps):
        loss, targets = 0.0, 0
        for _ in range(microbatches_of(step, run)):
            rows = samples.at(samples.of_microbatch(microbatch, seed))
            one = loss_sum(weights, rows, model)
            one.backward()
            loss, targets, microbatch = loss + one.item(), targets + rows[:, 1:].numel(), microbatch + 1
        tokens += targets
        for optimizer in optimizers:
            optimizer.step(learning_rate(run, tokens), targets)
        yield loss / targets


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("manifest", help="run.toml in the folder that --save wrote")
    parser.add_argument("text", help="the token file, as in [data] path")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--json", action="store_true", help="the losses as one list")
    options = parser.parse_args()
    torch.set_num_threads(1)
    with open(options.manifest, "rb") as file:
        run = tomllib.load(file)
    if run["optimizer"]["inner"] != "adamw":
        sys.exit(f"{options.manifest}: [optimizer] inner = \"{run['optimizer']['inner']}\" is not made here, only \"adamw\"; docs/REPRODUCE.md has its formula")
    losses = []
    for loss in train(run, options.text, options.steps):
        losses.append(loss)
        if not options.json:
            print(f"step {len(losses)} loss {loss:.9f}", flush=True)
    if options.json:
        print(json.dumps(losses))


if __name__ == "__main__":
    main()

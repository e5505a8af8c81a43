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


def values_of(name, seed):
    """The normal draws of a tensor's name."""
    start = mix(seed)
    for byte in name.encode():
        start = mix_two(start, byte)
    return normals(start)


def drawn(name, shape, seed, deviation):
    values = values_of(name, seed)
    return torch.tensor([deviation * next(values) for _ in range(math.prod(shape))], dtype=torch.float64).float().view(shape)


def basis(name, count, width, seed):
    """(count, width): orthonormal rows, Gram-Schmidt done twice over drawn ones, all sums from left to right."""
    values, rows = values_of(name, seed), []
    for _ in range(count):
        row = [next(values) for _ in range(width)]
        for _ in range(2):
            for other in rows:
                along = 0.0
                for a, b in zip(row, other):
                    along += a * b
                row = [a - along * b for a, b in zip(row, other)]
            square = 0.0
            for a in row:
                square += a * a
            row = [a / math.sqrt(square) for a in row]
        rows.append(row)
    return torch.tensor(rows, dtype=torch.float64).float()


# ---- the model ------------------------------------------------------------------------------------------------------
class Gpt2:
    learns_places, table = True, "wte.weight"

    def __init__(self, model):
        self.__dict__.update(model)
        self.d, self.context = model["dim"], model["context"] or model["positions"]
        self.inner = model["inner"] or 4 * self.d

    def layer_cost(self):
        return 8 * self.positions * self.d**2 + 4 * self.positions * self.d * self.inner + 2 * self.positions**2 * self.d

    def embedding(self):
        return {self.table: (self.vocabulary, self.d), "wpe.weight": (self.context, self.d)}

    def layer(self, i):
        d, names = self.d, {}
        for norm in ("ln_1", "ln_2"):
            names |= {f"h.{i}.{norm}.weight": (d,), f"h.{i}.{norm}.bias": (d,)}
        for linear, inner, outer in (("attn.c_attn", d, 3 * d), ("attn.c_proj", d, d), ("mlp.c_fc", d, self.inner), ("mlp.c_proj", self.inner, d)):
            names |= {f"h.{i}.{linear}.weight": (inner, outer), f"h.{i}.{linear}.bias": (outer,)}
        return names

    def head(self):
        return {"ln_f.weight": (self.d,), "ln_f.bias": (self.d,), "lm_head.weight": (self.vocabulary, self.d)}

    def norm(self, w, x, name):
        return F.layer_norm(x, (self.d,), w[name + ".weight"], w[name + ".bias"], self.norm_epsilon)

    def embed(self, w, tokens):
        return w[self.table][tokens] + w["wpe.weight"][: tokens.shape[1]]

    def pass_layer(self, w, x, i):
        (b, t, d), p = x.shape, f"h.{i}."

        def linear(x, name):
            return x @ w[p + name + ".weight"] + w[p + name + ".bias"]

        fused = linear(self.norm(w, x, p + "ln_1"), "attn.c_attn").chunk(3, 2)
        q, k, v = (part.view(b, t, self.heads, d // self.heads).transpose(1, 2) for part in fused)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, d)
        x = x + linear(mixed, "attn.c_proj")
        return x + linear(F.gelu(linear(self.norm(w, x, p + "ln_2"), "mlp.c_fc"), approximate="tanh"), "mlp.c_proj")

    def last_norm(self, w, x):
        return self.norm(w, x, "ln_f")


class Llama:
    learns_places, table = False, "model.embed_tokens.weight"

    def __init__(self, model):
        self.__dict__.update(model)
        self.d, self.kv_heads = model["dim"], model["kv_heads"] or model["heads"]
        self.width, self.inner = model["head_width"] or self.d // self.heads, model["inner"] or (8 * self.d + 2) // 3
        angles = torch.arange(self.positions).double()[:, None] * torch.tensor(self.frequencies(), dtype=torch.float64)
        self.cosines, self.sines = angles.cos().float(), angles.sin().float()

    def frequencies(self):
        found = []
        for i in range(0, self.width, 2):
            turn = torch.tensor(self.rope_theta ** (-i / self.width)).float().item()
            if self.rope_scaling:
                factor, low, high, context = self.rope_scaling
                kept = min(max((context * turn / (2 * math.pi) - low) / (high - low), 0.0), 1.0)
                turn = torch.tensor((1 - kept) * turn / factor + kept * turn).float().item()
            found.append(turn)
        return found

    def layer_cost(self):
        queries, keys = self.heads * self.width, self.kv_heads * self.width
        weights = 2 * self.d * queries + 2 * self.d * keys + 3 * self.d * self.inner
        return 2 * self.positions * weights + 2 * self.positions**2 * queries

    def embedding(self):
        return {self.table: (self.vocabulary, self.d)}

    def layer(self, i):
        p, d = f"model.layers.{i}.", self.d
        names = {p + "input_layernorm.weight": (d,)}
        for name, heads in ("q", self.heads), ("k", self.kv_heads), ("v", self.kv_heads):
            names[p + f"self_attn.{name}_proj.weight"] = (heads * self.width, d)
            if self.attention == "qkv-bias":
                names[p + f"self_attn.{name}_proj.bias"] = (heads * self.width,)
        if self.attention == "qk-norm":
            names |= {p + f"self_attn.{name}_norm.weight": (self.width,) for name in "qk"}
        return names | {p + "self_attn.o_proj.weight": (d, self.heads * self.width), p + "post_attention_layernorm.weight": (d,),
                        p + "mlp.gate_proj.weight": (self.inner, d), p + "mlp.up_proj.weight": (self.inner, d), p + "mlp.down_proj.weight": (d, self.inner)}

    def head(self):
        return {"model.norm.weight": (self.d,), "lm_head.weight": (self.vocabulary, self.d)}

    def norm(self, x, weight):
        return F.rms_norm(x, weight.shape, weight, self.norm_epsilon)

    def embed(self, w, tokens):
        return w[self.table][tokens]

    def turned(self, x):
        """(B, H, T, width): the pairs (i, i + width / 2)."""
        a, b = x.chunk(2, -1)
        return torch.cat([a * self.cosines - b * self.sines, b * self.cosines + a * self.sines], -1)

    def pass_layer(self, w, x, i):
        (b, t, _), p = x.shape, f"model.layers.{i}."
        normed = self.norm(x, w[p + "input_layernorm.weight"])

        def heads(name):
            found = normed @ w[p + f"self_attn.{name}_proj.weight"].t()
            if self.attention == "qkv-bias":
                found = found + w[p + f"self_attn.{name}_proj.bias"]
            found = found.view(b, t, -1, self.width)
            if self.attention == "qk-norm" and name != "v":
                found = self.norm(found, w[p + f"self_attn.{name}_norm.weight"])
            return found.transpose(1, 2)

        q, k, v = self.turned(heads("q")), self.turned(heads("k")), heads("v")
        k, v = (each.repeat_interleave(self.heads // self.kv_heads, 1) for each in (k, v))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, -1)
        x = x + mixed @ w[p + "self_attn.o_proj.weight"].t()
        normed = self.norm(x, w[p + "post_attention_layernorm.weight"])
        wide = F.silu(normed @ w[p + "mlp.gate_proj.weight"].t()) * (normed @ w[p + "mlp.up_proj.weight"].t())
        return x + wide @ w[p + "mlp.down_proj.weight"].t()

    def last_norm(self, w, x):
        return self.norm(x, w["model.norm.weight"])


class Model:
    """Of a family, with its boundary."""

    def __init__(self, model):
        self.family = {"gpt2": Gpt2, "llama": Llama}[model["family"]](model)
        self.d, self.layers, self.vocabulary, self.positions = model["dim"], model["layers"], model["vocabulary"], model["positions"]
        self.k, self.r = model.get("boundary", 0), model.get("boundary_table", 0)
        self.cuts = model.get("cuts", []) if self.k else []

    def split(self, stages, given):
        """Layers of each stage: as given, or of those that meet at cuts the split whose dearest stage is cheapest, then with the least squares."""
        if given:
            return given
        layer, head, embedding = self.family.layer_cost(), 2 * self.positions * self.d * self.vocabulary, 2 * self.positions * self.d
        down = embedding * self.k
        up = down + embedding * (self.r if self.r < self.d else 0)

        def cost(stage, first, end):
            halves = sum(up for cut in self.cuts if first <= cut < end) + sum(down for cut in self.cuts if first < cut <= end)
            return (end - first) * layer + halves + (stage == 0) * embedding + (stage == stages - 1) * head

        limit = math.inf
        for squares in (False, True):
            best, taken = {0: 0}, []
            for stage in range(stages):
                following, took = {}, {}
                for end in range(1, self.layers + 1):
                    for count in range(1, end + 1):
                        first = end - count
                        meets = not self.cuts or end == self.layers or end in self.cuts
                        if first not in best or not meets or cost(stage, first, end) > limit:
                            continue
                        before, own = best[first], cost(stage, first, end)
                        value = before + own**2 if squares else max(before, own)
                        if value < following.get(end, math.inf):
                            following[end], took[end] = value, count
                best = following
                taken.append(took)
            limit = best[self.layers]
        result, end = [], self.layers
        for took in reversed(taken):
            result.insert(0, took[end])
            end -= took[end]
        return result

    def part(self, i):
        """Names and shapes of layer i and of the halves beside it."""
        p, names = f"boundary.{i}.", {}
        if i in self.cuts:
            names[p + "up"] = (self.d, self.k)
            if self.r:
                names[p + "table"] = (self.vocabulary, self.r)
            if 0 < self.r < self.d:
                names[p + "table_up"] = (self.d, self.r)
            if self.family.learns_places:
                names[p + "places"] = (self.family.context, self.d)
        names |= self.family.layer(i)
        if i + 1 in self.cuts:
            names[f"boundary.{i + 1}.down"] = (self.k, self.d)
        return names

    def stage_shapes(self, parts):
        """Of each stage: names and shapes."""
        result, layer = [], 0
        for stage, count in enumerate(parts):
            names = self.family.embedding() if stage == 0 else {}
            for i in range(layer, layer + count):
                names |= self.part(i)
            layer += count
            result.append(names | (self.family.head() if stage == len(parts) - 1 else {}))
        return result

    def initial(self, name, shape, seed):
        """Matrices are drawn, from the run's seed and the tensor's name alone; norms begin as 1 and 0, biases as 0."""
        if name.startswith("boundary."):
            return self.initial_half(name, shape, seed)
        if len(shape) == 1:
            return torch.full(shape, float(name.endswith(".weight")))
        into_residual = name.endswith((".c_proj.weight", ".o_proj.weight", ".down_proj.weight"))
        return drawn(name, shape, seed, 0.02 / math.sqrt(2 * self.layers) if into_residual else 0.02)

    def initial_half(self, name, shape, seed):
        cut, _, kind = name.rpartition(".")
        if kind == "table":
            return drawn(self.family.table, (self.vocabulary, self.d), seed, 0.02)[:, : self.r].contiguous()
        if kind == "table_up":
            return torch.eye(*shape)
        if kind == "places":
            return torch.zeros(shape)
        rows = basis(cut, self.k, self.d, seed)
        return rows if kind == "down" else rows.t().contiguous()

    def cross(self, w, x, tokens, cut):
        """What the layer behind a cut reads."""
        p = f"boundary.{cut}."
        y = x @ w[p + "down"].t() @ w[p + "up"].t()
        if self.r:
            from_table = w[p + "table"][tokens]
            y = y + (from_table @ w[p + "table_up"].t() if self.r < self.d else from_table)
        return y + w[p + "places"][: tokens.shape[1]] if self.family.learns_places else y

    def loss_sum(self, w, tokens):
        """Cross entropy in nats over all targets of (B, T + 1) tokens."""
        inputs, targets = tokens[:, :-1], tokens[:, 1:].reshape(-1)
        x = self.family.embed(w, inputs)
        for i in range(self.layers):
            if i in self.cuts:
                x = self.cross(w, x, inputs, i)
            x = self.family.pass_layer(w, x, i)
        logits = self.family.last_norm(w, x).view(-1, self.d) @ w["lm_head.weight"].t()
        return F.cross_entropy(logits, targets, reduction="sum")


def decays(name, shape):
    return len(shape) == 2 and not (name.startswith("boundary.") and name.endswith((".down", ".up", ".table_up")))


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
            if decays(name, w.shape):
                w.mul_(1 - lr * o["weight_decay"])
            w.sub_(update / root)
            w.grad = None


def train(run, text, steps):
    """Yields the loss of each step: the mean over its targets, nats."""
    model, seed = Model(run["model"]), run["run"]["seed"]
    samples = Samples(text, run["data"], model.positions)
    shapes = model.stage_shapes(model.split(run["pipeline"]["stages"], run["pipeline"]["layers_per_stage"]))
    stages = [{name: model.initial(name, shape, seed).requires_grad_() for name, shape in names.items()} for names in shapes]
    weights = {name: w for stage in stages for name, w in stage.items()}
    optimizers = [AdamW(stage, run) for stage in stages]
    microbatch = tokens = 0
    for step in range(steps):
        loss, targets = 0.0, 0
        for _ in range(microbatches_of(step, run)):
            rows = samples.at(samples.of_microbatch(microbatch, seed))
            one = model.loss_sum(weights, rows)
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

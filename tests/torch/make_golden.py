"""Writes golden_*.txt: each family in plain PyTorch, written from its papers and independently of the C++ code.

Run with torch 2.11.0:  for m in gpt2 llama qwen2 qwen3 gpt2_boundary llama_boundary; do python3 tests/torch/make_golden.py $m > tests/torch/golden_$m.txt; done
Weights: element i of the k-th tensor (order below, from 0) is scale * sin(0.11 * (i + 1)^2 + 1.7 * (k + 1)) in double, rounded to float32, where scale is
0.3 for matrices and embeddings and 0.05 for biases; norm weights are 1 + 0.05 * sin(...). Token (b, t) is (7 t + 11 b + 3 t^2) mod V.
The shapes are those of tests/torch/family_models.h; with a boundary, of tests/torch/golden_test.cc.
"""
import math
import sys

import torch
import torch.nn.functional as F

D, LAYERS, HEADS, T, V, B = 32, 2, 4, 16, 29, 2
K = 8  # of a boundary
torch.manual_seed(0)
torch.set_num_threads(1)


class Boundary:
    """Both halves of the cut in front of layer 1: K values of a token cross it."""

    def __init__(self, width, places=False):
        self.width, self.places = width, places  # of the token table

    def down(self, layer):
        if layer == 0:
            yield "boundary.1.down", (K, D)

    def up(self, layer):
        if layer == 1:
            yield "boundary.1.up", (D, K)
            yield "boundary.1.table", (V, self.width)
            if self.width < D:
                yield "boundary.1.table_up", (D, self.width)
            if self.places:
                yield "boundary.1.places", (T, D)

    def crossed(self, w, x, tokens, layer):
        if layer != 1:
            return x
        y = torch.einsum("btd,kd,ek->bte", x, w["boundary.1.down"], w["boundary.1.up"])
        known = F.one_hot(tokens, V).double() @ w["boundary.1.table"]
        y = y + (known @ w["boundary.1.table_up"].T if self.width < D else known)
        return y + w["boundary.1.places"] if self.places else y


class NoBoundary:
    def down(self, layer):
        return ()

    up = down

    def crossed(self, w, x, tokens, layer):
        return x


class Gpt2:
    def __init__(self, boundary=NoBoundary()):
        self.boundary = boundary

    def names_and_shapes(self):
        yield "wte.weight", (V, D)
        yield "wpe.weight", (T, D)
        for i in range(LAYERS):
            p = f"h.{i}."
            yield from self.boundary.up(i)
            yield p + "ln_1.weight", (D,)
            yield p + "ln_1.bias", (D,)
            yield p + "attn.c_attn.weight", (D, 3 * D)
            yield p + "attn.c_attn.bias", (3 * D,)
            yield p + "attn.c_proj.weight", (D, D)
            yield p + "attn.c_proj.bias", (D,)
            yield p + "ln_2.weight", (D,)
            yield p + "ln_2.bias", (D,)
            yield p + "mlp.c_fc.weight", (D, 4 * D)
            yield p + "mlp.c_fc.bias", (4 * D,)
            yield p + "mlp.c_proj.weight", (4 * D, D)
            yield p + "mlp.c_proj.bias", (D,)
            yield from self.boundary.down(i)
        yield "ln_f.weight", (D,)
        yield "ln_f.bias", (D,)
        yield "lm_head.weight", (V, D)

    def logits(self, w, tokens):
        x = w["wte.weight"][tokens] + w["wpe.weight"]
        for i in range(LAYERS):
            p = f"h.{i}."
            x = self.boundary.crossed(w, x, tokens, i)
            y = F.layer_norm(x, (D,), w[p + "ln_1.weight"], w[p + "ln_1.bias"])
            q, k, v = (y @ w[p + "attn.c_attn.weight"] + w[p + "attn.c_attn.bias"]).split(D, dim=2)
            q, k, v = (z.view(B, T, HEADS, D // HEADS).transpose(1, 2) for z in (q, k, v))
            x = x + attended(q, k, v) @ w[p + "attn.c_proj.weight"] + w[p + "attn.c_proj.bias"]
            y = F.layer_norm(x, (D,), w[p + "ln_2.weight"], w[p + "ln_2.bias"])
            y = y @ w[p + "mlp.c_fc.weight"] + w[p + "mlp.c_fc.bias"]
            y = 0.5 * y * (1 + torch.tanh(math.sqrt(2 / math.pi) * (y + 0.044715 * y**3)))
            x = x + y @ w[p + "mlp.c_proj.weight"] + w[p + "mlp.c_proj.bias"]
        x = F.layer_norm(x, (D,), w["ln_f.weight"], w["ln_f.bias"])
        return x @ w["lm_head.weight"].T


def attended(q, k, v):
    """Causal attention, (B, HEADS, T, width) -> (B, T, HEADS * width)."""
    scores = q @ k.transpose(2, 3) / math.sqrt(q.shape[-1]) + torch.full((T, T), float("-inf"), dtype=q.dtype).triu(1)
    return (scores.softmax(dim=-1) @ v).transpose(1, 2).reshape(B, T, -1)


class Llama:
    def __init__(self, kv_heads=HEADS, width=D // HEADS, theta=10000.0, scaling=None, bias=False, qk_norm=False, boundary=NoBoundary()):
        self.kv_heads, self.width, self.theta, self.scaling = kv_heads, width, theta, scaling
        self.bias, self.qk_norm, self.inner = bias, qk_norm, D + 4
        self.boundary = boundary

    def names_and_shapes(self):
        yield "model.embed_tokens.weight", (V, D)
        for i in range(LAYERS):
            p = f"model.layers.{i}."
            yield from self.boundary.up(i)
            yield p + "input_layernorm.weight", (D,)
            for name, heads in ("q", HEADS), ("k", self.kv_heads), ("v", self.kv_heads):
                yield p + f"self_attn.{name}_proj.weight", (heads * self.width, D)
                if self.bias:
                    yield p + f"self_attn.{name}_proj.bias", (heads * self.width,)
            if self.qk_norm:
                yield p + "self_attn.q_norm.weight", (self.width,)
                yield p + "self_attn.k_norm.weight", (self.width,)
            yield p + "self_attn.o_proj.weight", (D, HEADS * self.width)
            yield p + "post_attention_layernorm.weight", (D,)
            yield p + "mlp.gate_proj.weight", (self.inner, D)
            yield p + "mlp.up_proj.weight", (self.inner, D)
            yield p + "mlp.down_proj.weight", (D, self.inner)
            yield from self.boundary.down(i)
        yield "model.norm.weight", (D,)
        yield "lm_head.weight", (V, D)

    def frequency(self, pair):
        """Radians a place. Wave lengths: kept when short, divided by the factor when long, blended between (Llama 3.1)."""
        f = self.theta ** (-2 * pair / self.width)
        if self.scaling is None:
            return f
        factor, low, high, context = self.scaling
        length = 2 * math.pi / f
        if length < context / high:
            return f
        if length > context / low:
            return f / factor
        smooth = (context / length - low) / (high - low)
        return (1 - smooth) * f / factor + smooth * f

    def turned(self, x):
        """Each pair (i, i + width / 2) of a head as a complex number, times e^(i place frequency)."""
        half = self.width // 2
        angles = torch.tensor([[t * self.frequency(i) for i in range(half)] for t in range(T)], dtype=torch.float64)
        z = torch.complex(x[..., :half], x[..., half:]) * torch.polar(torch.ones_like(angles), angles)
        return torch.cat([z.real, z.imag], dim=-1)

    def logits(self, w, tokens):
        norm = lambda x, weight: x / (x.pow(2).mean(-1, keepdim=True) + 1e-6).sqrt() * weight
        x = w["model.embed_tokens.weight"][tokens]
        for i in range(LAYERS):
            p = f"model.layers.{i}."
            x = self.boundary.crossed(w, x, tokens, i)
            y = norm(x, w[p + "input_layernorm.weight"])
            parts = []
            for name, heads in ("q", HEADS), ("k", self.kv_heads), ("v", self.kv_heads):
                z = y @ w[p + f"self_attn.{name}_proj.weight"].T
                if self.bias:
                    z = z + w[p + f"self_attn.{name}_proj.bias"]
                z = z.view(B, T, heads, self.width)
                if self.qk_norm and name != "v":
                    z = norm(z, w[p + f"self_attn.{name}_norm.weight"])
                z = z.transpose(1, 2)
                parts.append(self.turned(z) if name != "v" else z)
            q, k, v = (z.repeat_interleave(HEADS // z.shape[1], dim=1) for z in parts)
            x = x + attended(q, k, v) @ w[p + "self_attn.o_proj.weight"].T
            y = norm(x, w[p + "post_attention_layernorm.weight"])
            gate, up = y @ w[p + "mlp.gate_proj.weight"].T, y @ w[p + "mlp.up_proj.weight"].T
            x = x + (gate * torch.sigmoid(gate) * up) @ w[p + "mlp.down_proj.weight"].T
        return norm(x, w["model.norm.weight"]) @ w["lm_head.weight"].T


MODELS = {
    "gpt2": Gpt2(),
    "llama": Llama(kv_heads=HEADS // 2, scaling=(4, 1, 4, 8)),
    "qwen2": Llama(bias=True),
    "qwen3": Llama(kv_heads=HEADS // 2, width=6, theta=1000.0, qk_norm=True),
    "gpt2_boundary": Gpt2(Boundary(D // 2, places=True)),
    "llama_boundary": Llama(kv_heads=HEADS // 2, scaling=(4, 1, 4, 8), boundary=Boundary(D)),
}


def formula(k, name, shape):
    count = math.prod(shape)
    values = [math.sin(0.11 * (i + 1) ** 2 + 1.7 * (k + 1)) for i in range(count)]
    if len(shape) == 2:
        values = [0.3 * v for v in values]
    elif name.endswith(".weight"):
        values = [1 + 0.05 * v for v in values]
    else:
        values = [0.05 * v for v in values]
    return torch.tensor(values, dtype=torch.float64).float().view(shape)


def main():
    # Double throughout: the reference is the exact value, the test's bound is what float32 may lose.
    model = MODELS[sys.argv[1]]
    w = {n: formula(k, n, s).double().requires_grad_(True) for k, (n, s) in enumerate(model.names_and_shapes())}
    whole = torch.tensor([[(7 * t + 11 * b + 3 * t * t) % V for t in range(T + 1)] for b in range(B)])
    tokens, targets = whole[:, :-1], whole[:, 1:]
    logits = model.logits(w, tokens)
    loss = F.cross_entropy(logits.reshape(B * T, V), targets.reshape(-1), reduction="sum")
    loss.backward()
    print("loss", f"{loss.item():.17g}")
    for i, value in enumerate(logits.reshape(-1).tolist()):
        print("logit", i, f"{value:.17g}")
    for name, p in w.items():
        print("gradient_norm", name, f"{p.grad.norm().item():.17g}")
    # Three steps of AdamW on the mean gradient of the same microbatch, clipped: the norm of each tensor afterwards. The key biases have
    # gradient 0 but for rounding (softmax does not see them); a large eps keeps AdamW from blowing that rounding up to full steps.
    plain = [p for n, p in w.items() if p.dim() == 1 or n.endswith((".down", ".up", ".table_up"))]
    decay = [p for p in w.values() if all(p is not other for other in plain)]
    groups = [{"params": decay, "weight_decay": 0.1}, {"params": plain, "weight_decay": 0.0}]
    optimiser = torch.optim.AdamW(groups, lr=0.01, betas=(0.9, 0.95), eps=1e-3)
    for step in range(3):
        optimiser.zero_grad()
        loss = F.cross_entropy(model.logits(w, tokens).reshape(B * T, V), targets.reshape(-1))
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(list(w.values()), 1.0)
        print("step", step + 1, f"{loss.item() * B * T:.17g}", f"{norm.item():.17g}")
        optimiser.step()
    for name, p in w.items():
        print("stepped_norm", name, f"{p.norm().item():.17g}")


main()

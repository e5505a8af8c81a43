"""Writes golden.txt: the model in plain PyTorch, written from the GPT-2 paper and independently of the C++ code.

Run with torch 2.11.0:  python3 tests/torch/make_golden.py > tests/torch/golden.txt
Weights: element i of the k-th tensor (order below, from 0) is scale * sin(0.11 * (i + 1)^2 + 1.7 * (k + 1)) in double, rounded to float32, where scale is
0.3 for matrices and embeddings and 0.05 for biases; norm weights are 1 + 0.05 * sin(...). Token (b, t) is (7 t + 11 b + 3 t^2) mod V.
"""
import math

import torch
import torch.nn.functional as F

D, LAYERS, HEADS, T, V, B = 32, 2, 4, 16, 29, 2
torch.manual_seed(0)
torch.set_num_threads(1)


def names_and_shapes():
    yield "wte.weight", (V, D)
    yield "wpe.weight", (T, D)
    for i in range(LAYERS):
        p = f"h.{i}."
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
    yield "ln_f.weight", (D,)
    yield "ln_f.bias", (D,)
    yield "lm_head.weight", (V, D)


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


def logits_of(w, tokens):
    x = w["wte.weight"][tokens] + w["wpe.weight"]
    mask = torch.full((T, T), float("-inf"), dtype=x.dtype).triu(1)
    for i in range(LAYERS):
        p = f"h.{i}."
        y = F.layer_norm(x, (D,), w[p + "ln_1.weight"], w[p + "ln_1.bias"])
        q, k, v = (y @ w[p + "attn.c_attn.weight"] + w[p + "attn.c_attn.bias"]).split(D, dim=2)
        q, k, v = (z.view(B, T, HEADS, D // HEADS).transpose(1, 2) for z in (q, k, v))
        scores = q @ k.transpose(2, 3) / math.sqrt(D // HEADS) + mask
        y = (scores.softmax(dim=-1) @ v).transpose(1, 2).reshape(B, T, D)
        x = x + y @ w[p + "attn.c_proj.weight"] + w[p + "attn.c_proj.bias"]
        y = F.layer_norm(x, (D,), w[p + "ln_2.weight"], w[p + "ln_2.bias"])
        y = y @ w[p + "mlp.c_fc.weight"] + w[p + "mlp.c_fc.bias"]
        y = 0.5 * y * (1 + torch.tanh(math.sqrt(2 / math.pi) * (y + 0.044715 * y**3)))
        x = x + y @ w[p + "mlp.c_proj.weight"] + w[p + "mlp.c_proj.bias"]
    x = F.layer_norm(x, (D,), w["ln_f.weight"], w["ln_f.bias"])
    return x @ w["lm_head.weight"].T


def main():
    # Double throughout: the reference is the exact value, the test's bound is what float32 may lose.
    w = {n: formula(k, n, s).double().requires_grad_(True) for k, (n, s) in enumerate(names_and_shapes())}
    whole = torch.tensor([[(7 * t + 11 * b + 3 * t * t) % V for t in range(T + 1)] for b in range(B)])
    tokens, targets = whole[:, :-1], whole[:, 1:]
    logits = logits_of(w, tokens)
    loss = F.cross_entropy(logits.reshape(B * T, V), targets.reshape(-1), reduction="sum")
    loss.backward()
    print("loss", f"{loss.item():.17g}")
    for i, value in enumerate(logits.reshape(-1).tolist()):
        print("logit", i, f"{value:.17g}")
    for name, p in w.items():
        print("gradient_norm", name, f"{p.grad.norm().item():.17g}")
    # Three steps of AdamW on the mean gradient of the same microbatch, clipped: the norm of each tensor afterwards. The key biases have
    # gradient 0 but for rounding (softmax does not see them); a large eps keeps AdamW from blowing that rounding up to full steps.
    decay = [p for p in w.values() if p.dim() == 2]
    plain = [p for p in w.values() if p.dim() == 1]
    groups = [{"params": decay, "weight_decay": 0.1}, {"params": plain, "weight_decay": 0.0}]
    optimiser = torch.optim.AdamW(groups, lr=0.01, betas=(0.9, 0.95), eps=1e-3)
    for step in range(3):
        optimiser.zero_grad()
        loss = F.cross_entropy(logits_of(w, tokens).reshape(B * T, V), targets.reshape(-1))
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(list(w.values()), 1.0)
        print("step", step + 1, f"{loss.item() * B * T:.17g}", f"{norm.item():.17g}")
        optimiser.step()
    for name, p in w.items():
        print("stepped_norm", name, f"{p.norm().item():.17g}")


main()

#!/usr/bin/env python3
"""A gpt2 or a llama in plain PyTorch, one process: the last line printed is its tokens a second.

The same work as `shoal solo` and `shoal-bench stage`: norms in front, untied head, microbatches of 4 sequences, and with each step clipping and
AdamW. With --dtype bf16 under autocast. Without options it is the model of `shoal-bench hop`.
"""
import argparse
import time

import torch
from torch import nn
from torch.nn import functional as F

SEQUENCES = 4


class Layer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.norm_1, self.norm_2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.up, self.down = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x):                                                   # (B, T, d)
        b, t, d = x.shape
        q, k, v = (part.view(b, t, self.heads, d // self.heads).transpose(1, 2) for part in self.qkv(self.norm_1(x)).split(d, dim=2))
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)  # (B, heads, T, d / heads)
        x = x + self.out(attended.transpose(1, 2).reshape(b, t, d))
        return x + self.down(F.gelu(self.up(self.norm_2(x)), approximate="tanh"))


class LlamaLayer(nn.Module):
    def __init__(self, dim, heads, positions):
        super().__init__()
        self.heads, inner = heads, (8 * dim + 2) // 3
        self.norm_1, self.norm_2 = nn.RMSNorm(dim, eps=1e-5), nn.RMSNorm(dim, eps=1e-5)
        self.q, self.k, self.v, self.out = (nn.Linear(dim, dim, bias=False) for _ in range(4))
        self.gate, self.up = (nn.Linear(dim, inner, bias=False) for _ in range(2))
        self.down = nn.Linear(inner, dim, bias=False)
        width = dim // heads
        angles = torch.outer(torch.arange(positions), 10000.0 ** (-torch.arange(0, width, 2) / width))
        self.register_buffer("cosines", angles.cos())
        self.register_buffer("sines", angles.sin())

    def rotated(self, x):                                                   # (B, heads, T, w)
        a, b = x.chunk(2, dim=-1)
        return torch.cat([a * self.cosines - b * self.sines, b * self.cosines + a * self.sines], dim=-1)

    def forward(self, x):                                                   # (B, T, d)
        b, t, d = x.shape
        normed = self.norm_1(x)
        q, k, v = (part(normed).view(b, t, self.heads, d // self.heads).transpose(1, 2) for part in (self.q, self.k, self.v))
        q, k = self.rotated(q).to(v.dtype), self.rotated(k).to(v.dtype)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(b, t, d))
        normed = self.norm_2(x)
        return x + self.down(F.silu(self.gate(normed)) * self.up(normed))


class Model(nn.Module):
    def __init__(self, family, layers, dim, heads, positions, vocabulary):
        super().__init__()
        llama = family == "llama"
        self.tokens = nn.Embedding(vocabulary, dim)
        self.positions = None if llama else nn.Embedding(positions, dim)
        self.layers = nn.Sequential(*(LlamaLayer(dim, heads, positions) if llama else Layer(dim, heads) for _ in range(layers)))
        self.norm = nn.RMSNorm(dim, eps=1e-5) if llama else nn.LayerNorm(dim)
        self.head = nn.Linear(dim, vocabulary, bias=False)

    def forward(self, tokens, targets):                                     # (B, T), (B, T)
        x = self.tokens(tokens)
        x = self.layers(x if self.positions is None else x + self.positions.weight)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), targets.flatten())


def wait_for(device):
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--family", choices=("gpt2", "llama"), default="gpt2")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=4, help="measured")
    parser.add_argument("--warm", type=int, default=2, help="steps before them")
    for name, default in (("layers", 8), ("dim", 256), ("heads", 8), ("positions", 256), ("vocabulary", 256), ("microbatches", 16)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--dtype", choices=("fp32", "bf16"), default="fp32", help="of matrix products and attention")
    parser.add_argument("--device", default="cpu", help="as torch names it, or auto")
    parser.add_argument("--compile", action="store_true", help="by torch.compile")
    args = parser.parse_args()
    if args.device == "auto":
        args.device = "cuda" if torch.cuda.is_available() else "cpu"
    device = torch.device(args.device)
    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    model = Model(args.family, args.layers, args.dim, args.heads, args.positions, args.vocabulary).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-4, betas=(0.9, 0.95), weight_decay=0.1)
    compute = torch.compile(model) if args.compile else model
    text = torch.randint(args.vocabulary, (1 << 20,))
    begin = 0.0
    for step in range(args.warm + args.steps):
        if step == args.warm:
            wait_for(device)
            begin = time.monotonic()
        for _ in range(args.microbatches):
            at = torch.randint(len(text) - args.positions - 1, (SEQUENCES,))
            window = torch.stack([text[i : i + args.positions + 1] for i in at]).to(device)
            with torch.autocast(device.type, torch.bfloat16, enabled=args.dtype == "bf16"):
                loss = compute(window[:, :-1], window[:, 1:])
            (loss / args.microbatches).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    wait_for(device)
    tokens = args.steps * args.microbatches * SEQUENCES * args.positions
    print(f"{tokens / (time.monotonic() - begin):.1f}")


if __name__ == "__main__":
    main()

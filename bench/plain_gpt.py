#!/usr/bin/env python3
"""A gpt2 in plain PyTorch, one process: the last line printed is its tokens a second.

The same work as `shoal solo` and `shoal-bench stage`: pre-LN layers, untied head, microbatches of 4 sequences, and with each step clipping and
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


class Model(nn.Module):
    def __init__(self, layers, dim, heads, positions, vocabulary):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, dim), nn.Embedding(positions, dim)
        self.layers = nn.Sequential(*(Layer(dim, heads) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, vocabulary, bias=False)

    def forward(self, tokens, targets):                                     # (B, T), (B, T)
        x = self.layers(self.tokens(tokens) + self.positions.weight)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), targets.flatten())


def wait_for(device):
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
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
    model = Model(args.layers, args.dim, args.heads, args.positions, args.vocabulary).to(device)
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

#!/usr/bin/env python3
"""The model of `shoal-bench hop` in plain PyTorch, one process: the last line printed is its tokens a second.

The same work as `shoal solo`: 8 pre-LN layers of width 256, 8 heads, 256 positions, vocabulary 256, untied head, fp32; 16 microbatches of 4
sequences a step, then clipping and AdamW.
"""
import argparse
import time

import torch
from torch import nn
from torch.nn import functional as F

LAYERS, DIM, HEADS, POSITIONS, VOCABULARY = 8, 256, 8, 256, 256
SEQUENCES, MICROBATCHES = 4, 16


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm_1, self.norm_2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.qkv, self.out = nn.Linear(DIM, 3 * DIM), nn.Linear(DIM, DIM)
        self.up, self.down = nn.Linear(DIM, 4 * DIM), nn.Linear(4 * DIM, DIM)

    def forward(self, x):                                                   # (B, T, d)
        b, t, d = x.shape
        q, k, v = (part.view(b, t, HEADS, d // HEADS).transpose(1, 2) for part in self.qkv(self.norm_1(x)).split(d, dim=2))
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)  # (B, heads, T, d / heads)
        x = x + self.out(attended.transpose(1, 2).reshape(b, t, d))
        return x + self.down(F.gelu(self.up(self.norm_2(x)), approximate="tanh"))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCABULARY, DIM), nn.Embedding(POSITIONS, DIM)
        self.layers = nn.Sequential(*(Layer() for _ in range(LAYERS)))
        self.norm, self.head = nn.LayerNorm(DIM), nn.Linear(DIM, VOCABULARY, bias=False)

    def forward(self, tokens, targets):                                     # (B, T), (B, T)
        x = self.layers(self.tokens(tokens) + self.positions.weight)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), targets.flatten())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=4, help="measured")
    parser.add_argument("--warm", type=int, default=2, help="steps before them")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-4, betas=(0.9, 0.95), weight_decay=0.1)
    text = torch.randint(VOCABULARY, (1 << 20,))
    begin = 0.0
    for step in range(args.warm + args.steps):
        if step == args.warm:
            begin = time.monotonic()
        for _ in range(MICROBATCHES):
            at = torch.randint(len(text) - POSITIONS - 1, (SEQUENCES,))
            window = torch.stack([text[i : i + POSITIONS + 1] for i in at])
            (model(window[:, :-1], window[:, 1:]) / MICROBATCHES).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    tokens = args.steps * MICROBATCHES * SEQUENCES * POSITIONS
    print(f"{tokens / (time.monotonic() - begin):.1f}")


if __name__ == "__main__":
    main()

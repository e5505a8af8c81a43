"""Figures as SVG: their frame and words; of lines one or more panels, each with axes of its own. Only Debian's python3."""
import html
import json
import math
import os
import sys

COLOURS = ["#3b6fb6", "#2f8f6b", "#8a63b8", "#b5762a", "#c1272d", "#555555", "#1fa3b5", "#c45aa0", "#7d8b1f", "#222222", "#e0a526", "#6b4a2f"]
TEXT, GRID = "#222222", "#e4e4e4"
STEPS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5)


def rows_of(path, command):
    """The objects of a file of JSON lines, which `command` printed: one at least."""
    with open(path) as file:
        rows = [json.loads(line) for line in file]
    if not rows:
        raise SystemExit(f"{os.path.basename(sys.argv[0])}: {path} is empty. HINT: {command} > {path}")
    return rows


def text(x, y, words, anchor="middle"):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{html.escape(words)}</text>'


def figure(width, height, parts):
    head = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12" '
            f'fill="{TEXT}">', f'<rect width="{width}" height="{height}" fill="#ffffff"/>']
    return "\n".join(head + parts + ["</svg>"])


class Panel:
    """Where values of x from 0 to `x_max` and of y from `low` to `high` lie."""

    def __init__(self, left, top, right, bottom, x_max, low, high):
        self.left, self.top, self.right, self.bottom = left, top, right, bottom
        self.x_max, self.low, self.high = x_max, low, high

    def x(self, value):
        return self.left + (self.right - self.left) * value / self.x_max

    def y(self, value):
        return self.top + (self.bottom - self.top) * (self.high - value) / (self.high - self.low)

    def axes(self, x_ticks, x_label, y_label):
        """`x_ticks`: (value, words)."""
        out = []
        step = next(s for s in STEPS if (self.high - self.low) / s <= 8)
        digits = 3 if step < 0.01 else 2
        for k in range(math.ceil(self.low / step - 1e-9), int(self.high / step + 1e-9) + 1):
            out.append(f'<path d="M{self.left} {self.y(step * k):.1f}H{self.right}" stroke="{GRID}"/>')
            out.append(text(self.left - 8, self.y(step * k) + 4, f"{step * k:.{digits}f}", "end"))
        for value, words in x_ticks:
            out.append(f'<path d="M{self.x(value):.1f} {self.bottom}v5" stroke="{TEXT}"/>')
            out.append(text(self.x(value), self.bottom + 18, words))
        out.append(f'<path d="M{self.left} {self.top}V{self.bottom}H{self.right}" stroke="{TEXT}" fill="none"/>')
        out.append(text((self.left + self.right) / 2, self.bottom + 40, x_label))
        out.append(f'<text transform="translate({self.left - 48} {(self.top + self.bottom) / 2:.1f}) rotate(-90)" text-anchor="middle">'
                   f"{html.escape(y_label)}</text>")
        return out

    def line(self, points, colour, dashed=False):
        path = "L".join(f"{self.x(x):.1f} {self.y(y):.1f}" for x, y in points)
        dashes = ' stroke-dasharray="5 3"' if dashed else ""
        return f'<path d="M{path}" stroke="{colour}" stroke-width="2" fill="none"{dashes}/>'


def legend(left, top, entries):
    """`entries`: (name, colour, dashed), one below the other."""
    out = []
    for place, (name, colour, dashed) in enumerate(entries):
        at = top + 10 + 18 * place
        dashes = ' stroke-dasharray="5 3"' if dashed else ""
        out.append(f'<path d="M{left} {at - 4}h18" stroke="{colour}" stroke-width="2"{dashes}/>')
        out.append(text(left + 24, at, name, "start"))
    return out

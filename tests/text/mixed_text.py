"""Text that no person wrote, for comparing tokenizers: words, code, numbers, blanks, many scripts, marks that combine,
emoji, what added tokens are spelled like, and bytes that are no UTF-8. The same seed gives the same bytes."""
import random
import unicodedata

RANGES = [
    (0x20, 0x7F), (0xA0, 0x250), (0x250, 0x370), (0x370, 0x400), (0x400, 0x530), (0x5D0, 0x5EB), (0x600, 0x700),
    (0x900, 0x980), (0xE00, 0xE60), (0x1100, 0x1200), (0x1E00, 0x2000), (0x2000, 0x2070), (0x2190, 0x2600),
    (0x3000, 0x3100), (0x4E00, 0x9FFF), (0xAC00, 0xD7A4), (0xF900, 0xFB00), (0xFE00, 0xFF00), (0x1F300, 0x1F700),
    (0x10000, 0x10100), (0x300, 0x370), (0x1800, 0x1820), (0x1D400, 0x1D500), (0x20000, 0x20100)]
SYLLABLES = "ka lo mi ren ta shi vor el an un qui stra tion ing er the and of to in that is was he for it with".split()
ENDINGS = ["'s", "'re", "'ll", "'T", "'\u017f", "\u2019s", "'Ve", "'d"]
BLANKS = ["\r\n", "\n\n\n", " \n \n", "\t\t", "   ", "\u00a0 ", "\u3000", "\u180e \u180e", "\u0085x", "\u2028"]
COMBINING = "aàáâéêëeñçüo\u0301\u0308\u0327가각\u1100\u1161\u11a7\u11a8\ufb01\u2460\u212b"
BROKEN = [b"\xff", b"\xe2\x82", b"\xf0\x9f\x98", b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80", b"\x80"]
NEWER = "\U0001fae8\U00031350x\U00011f50 \u1c89\U00016d6d\U0001fae9"  # of Unicode 15 and 16
LIKE_TOKENS = ["<|endoftext|>", "<|im_start|>", "<s>", "</s>", "<unk>", "<0x41>", "\u2581", "\u2581\u2581x", "[MASK]", "word", NEWER]


class MixedText:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.words = ["".join(self.random.choices(SYLLABLES, k=self.random.randint(1, 4))) for _ in range(20000)]

    def word(self):
        draw = self.random
        word = self.words[min(len(self.words), int(draw.paretovariate(0.6))) - 1]
        kind = draw.random()
        word = word.capitalize() if kind < 0.1 else word.upper() if kind < 0.13 else word
        return word + (draw.choice(ENDINGS) if draw.random() < 0.05 else "")

    def character(self, low, high):
        while True:
            character = chr(self.random.randrange(low, high))
            if unicodedata.category(character) not in ("Cn", "Cs"):
                return character

    def any_character(self):
        return self.character(*self.random.choice(RANGES))

    def script(self):
        where = self.random.choice(RANGES)
        return "".join(" " if self.random.random() < 0.15 else self.character(*where) for _ in range(self.random.randint(5, 80)))

    def code(self):
        draw = self.random
        return (f"{'    ' * draw.randint(0, 5)}{self.word()}_{self.word()}({self.word()}={draw.randint(0, 10 ** draw.randint(1, 9))}); "
                f"// {self.word()}\t{' ' * draw.randint(0, 9)}")

    def line(self):
        draw = self.random
        kind = draw.random()
        if kind < 0.5:
            return " ".join(self.word() for _ in range(draw.randint(3, 20))) + draw.choice([".", "!", "?\n", "...", ", "])
        if kind < 0.62:
            return self.code()
        if kind < 0.72:
            return self.script()
        if kind < 0.8:
            return "".join(self.any_character() for _ in range(draw.randint(1, 40)))
        if kind < 0.86:
            return " ".join(str(draw.randint(0, 10 ** draw.randint(1, 12))) for _ in range(6))
        if kind < 0.9:
            return draw.choice(BLANKS) * draw.randint(1, 4)
        if kind < 0.93:
            return "".join(draw.choice(["", " ", "  ", "\n"]) + draw.choice(LIKE_TOKENS) + draw.choice(["", " ", self.word()]) for _ in range(6))
        if kind < 0.96:
            return "".join(draw.choice(COMBINING) for _ in range(30))
        return "".join(draw.choice([self.word(), self.any_character(), "'s", " ", "\n"]) for _ in range(20))

    def bytes_line(self):
        draw = self.random
        line = bytearray(self.line().encode())
        if draw.random() < 0.02:
            for _ in range(min(3, len(line))):
                line[draw.randrange(len(line))] = draw.randrange(256)
        if draw.random() < 0.01:
            line += draw.choice(BROKEN)
        return bytes(line) + b"\n"

    def bytes(self, count):
        out = bytearray()
        while len(out) < count:
            out += self.bytes_line()
        return bytes(out)

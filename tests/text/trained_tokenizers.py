"""Tokenizers of every kind that shoal reads, trained by the package `tokenizers` on a text: its own implementation and
its own files. Each is the JSON object of a tokenizer.json."""
import json

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

#The published patterns of the models that are named.
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
MARK = "\u2581"


def byte_level(prefix=False, regex=False):
    return pre_tokenizers.ByteLevel(add_prefix_space=prefix, use_regex=regex)


def split(pattern, behavior="isolated"):
    return pre_tokenizers.Split(Regex(pattern), behavior)


def train_bytes(text, vocabulary, pre, normalizer=None):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre
    tokenizer.decoder = decoders.ByteLevel()
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    trainer = trainers.BpeTrainer(vocab_size=vocabulary, show_progress=False, special_tokens=["<|endoftext|>"],
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(text.splitlines(keepends=True), trainer)
    return tokenizer


def as_json(tokenizer, **model):
    parts = json.loads(tokenizer.to_str())
    parts["model"].update(model)
    return parts


def gpt2(text, vocabulary):
    parts = as_json(train_bytes(text, vocabulary, byte_level(regex=True)), continuing_subword_prefix="", end_of_word_suffix="")
    parts["model"]["merges"] = [" ".join(merge) for merge in parts["model"]["merges"]]  # as files of old have them
    return parts


def llama3(text, vocabulary):
    tokenizer = train_bytes(text, vocabulary, pre_tokenizers.Sequence([split(LLAMA3), byte_level()]))
    tokenizer.add_special_tokens(["<|im_start|>", AddedToken("[MASK]", lstrip=True, rstrip=True, normalized=False)])
    tokenizer.add_tokens([AddedToken("word", single_word=True, normalized=True)])
    parts = as_json(tokenizer, ignore_merges=True)
#A token that no merge gives, which a whole piece becomes.
    learned = len(parts["model"]["vocab"])
    parts["model"]["vocab"]["\u0120unmerged"] = learned
    for added in parts["added_tokens"]:
        added["id"] += added["id"] >= learned
    return parts


def qwen2(text, vocabulary):
    tokenizer = train_bytes(text, vocabulary, pre_tokenizers.Sequence([split(QWEN2), byte_level()]), normalizers.NFC())
    tokenizer.add_special_tokens(["<|im_start|>"])
    tokenizer.add_tokens([AddedToken("ﬁ\u2460", normalized=True), AddedToken("e\u0301l", normalized=True)])
    return as_json(tokenizer)


def smollm(text, vocabulary):
    return as_json(train_bytes(text, vocabulary, pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), byte_level(regex=True)])))


def o200k(text, vocabulary):
    return as_json(train_bytes(text, vocabulary, pre_tokenizers.Sequence([split(O200K), byte_level(prefix=True)]), normalizers.NFKC()))


def other_splits(text, vocabulary):
    steps = [split(r"[,;]", "removed"), split(r"\s+", "merged_with_next"), split(r"[.!?]", "merged_with_previous"),
             pre_tokenizers.Split("shi", "isolated"), split(r"\p{Han}|[\u3040-\u30ff]", "contiguous"),
             pre_tokenizers.Digits(individual_digits=False), split(r"\w{1,6}", "isolated"), byte_level()]
    return as_json(train_bytes(text, vocabulary, pre_tokenizers.Sequence(steps)))


def train_characters(text, vocabulary, fallback, **parts):
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=fallback))
    for name, part in parts.items():
        setattr(tokenizer, name, part)
    names = ["<unk>", "<s>", "</s>"]
    bytes_ = [f"<0x{byte:02X}>" for byte in range(256)] if fallback else []
    trainer = trainers.BpeTrainer(vocab_size=vocabulary, show_progress=False, special_tokens=names + bytes_, limit_alphabet=200)
    tokenizer.train_from_iterator(text.splitlines(keepends=True), trainer)
    made = as_json(tokenizer)
    made["added_tokens"] = [token for token in made["added_tokens"] if token["content"] in names]
    return made


def words(mark=MARK):
    return pre_tokenizers.Metaspace(replacement=mark, prepend_scheme="always", split=True)


def llama2(text, vocabulary):
    """Trained on words, as sentencepiece does, and used without a pre-tokenizer."""
    parts = train_characters(text, vocabulary, True, pre_tokenizer=words())
    parts["pre_tokenizer"] = None
    parts["normalizer"] = json.loads(json.dumps({"type": "Sequence", "normalizers": [
        {"type": "Prepend", "prepend": MARK}, {"type": "Replace", "pattern": {"String": " "}, "content": MARK}]}))
    parts["decoder"] = {"type": "Sequence", "decoders": [
        {"type": "Replace", "pattern": {"String": MARK}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
        {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}
    return parts


def mistral(text, vocabulary):
    parts = llama2(text, vocabulary)
    parts["normalizer"] = None
    parts["pre_tokenizer"] = {"type": "Metaspace", "replacement": MARK, "prepend_scheme": "first", "split": False}
    return parts


def metaspace(text, vocabulary):
    return train_characters(text, vocabulary, False, pre_tokenizer=words(), decoder=decoders.Metaspace(replacement=MARK, prepend_scheme="always"))


def inner_marks(text, vocabulary):
    """Merges go over the begins of words, so that a line is one piece; unknown characters stay apart."""
    parts = train_characters(text, vocabulary, False, normalizer=normalizers.Replace(" ", MARK),
                             pre_tokenizer=pre_tokenizers.Split("\n", "isolated"),
                             decoder=decoders.Sequence([decoders.Replace(MARK, " "), decoders.Fuse()]))
    parts["model"]["fuse_unk"] = False
    return parts


KINDS = {kind.__name__: kind for kind in (gpt2, llama3, qwen2, smollm, o200k, other_splits, llama2, mistral, metaspace, inner_marks)}

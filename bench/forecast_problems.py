"""What forecast_torch.py trains: language models and XOR; data, and one gradient step, recorded as a graph on CUDA."""
import hashlib
import math
import os
import sys
import sysconfig

import torch
from torch import nn
from torch.nn import functional as F

GPT2_SMALL = 124_439_808
SPECS = {
    "charlm-transformer": dict(model="gpt", blocks=2, width=128, heads=4, positions=64, window=64, batch=32, held=2,
                               validation=8, rate=5e-4, weight_decay=0.0, clip=0.0, bf16=False, vocabulary=0, steps=1200,
                               spacing=10, lr_warm_up=0),
    "charlm-gru": dict(model="gru", width=256, window=64, batch=32, held=2, validation=8, rate=1e-3, weight_decay=0.0,
                       clip=0.0, bf16=False, vocabulary=0, steps=1200, spacing=10, lr_warm_up=0),
    "gpt2-small": dict(model="gpt", blocks=12, width=768, heads=12, positions=1024, window=1024, batch=4, held=1,
                       validation=4, rate=2e-4, weight_decay=0.1, clip=1.0, bf16=True, vocabulary=50257, steps=480,
                       spacing=5, lr_warm_up=20),
    "xor": dict(model="xor", batch=4, held=1, validation=1, rate=0.01, weight_decay=0.0, clip=0.0, bf16=False, vocabulary=2,
                steps=240, spacing=5, lr_warm_up=0, warm_up=20),
}
# The same networks in small, to try the command without an accelerator.
TINY = {"charlm-transformer": dict(blocks=1, width=16, heads=2, positions=16, window=16, batch=8, validation=2, steps=40),
        "charlm-gru": dict(width=16, window=16, batch=8, validation=2, steps=40),
        "gpt2-small": dict(blocks=1, width=16, heads=2, positions=16, window=16, batch=4, validation=2, steps=40,
                           vocabulary=512),
        "xor": {}}


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        n, length, width = x.shape
        q, k, v = (t.view(n, length, self.heads, -1).transpose(1, 2) for t in self.qkv(self.norm1(x)).split(width, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(n, length, width))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Gpt(nn.Module):
    """GPT-2's architecture: learned positions, norms before, GELU, the head tied to the embedding."""

    def __init__(self, spec):
        super().__init__()
        self.words = nn.Embedding(spec["vocabulary"], spec["width"])
        self.places = nn.Embedding(spec["positions"], spec["width"])
        self.blocks = nn.ModuleList(Block(spec["width"], spec["heads"]) for _ in range(spec["blocks"]))
        self.norm = nn.LayerNorm(spec["width"])

    def initialise(self):
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, 0, 0.02)
            if isinstance(module, nn.Linear):
                nn.init.zeros_(module.bias)
            if isinstance(module, nn.LayerNorm):
                module.reset_parameters()
        for block in self.blocks:
            for last in (block.out, block.down):
                nn.init.normal_(last.weight, 0, 0.02 / math.sqrt(2 * len(self.blocks)))

    def forward(self, words):
        x = self.words(words) + self.places.weight[:words.shape[1]]
        for block in self.blocks:
            x = block(x)
        return F.linear(self.norm(x), self.words.weight)


class GruModel(nn.Module):
    def __init__(self, spec):
        super().__init__()
        self.words = nn.Embedding(spec["vocabulary"], spec["width"] // 2)
        self.gru = nn.GRU(spec["width"] // 2, spec["width"], batch_first=True)
        self.head = nn.Linear(spec["width"], spec["vocabulary"])

    def initialise(self):
        for module in (self.words, self.gru, self.head):
            module.reset_parameters()

    def forward(self, words):
        return self.head(self.gru(self.words(words))[0])


def interpreter_sources(limit):
    """Texts of Python files of this interpreter's library and packages, in the order of their paths' digests."""
    paths = []
    for root in {sysconfig.get_paths()["stdlib"], sysconfig.get_paths()["purelib"]}:
        for folder, _, names in os.walk(root):
            paths += [(os.path.relpath(os.path.join(folder, n), root), os.path.join(folder, n))
                      for n in names if n.endswith(".py")]
    texts, total = [], 0
    for _, path in sorted(set(paths), key=lambda p: hashlib.sha1(p[0].encode()).digest()):
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
        except (OSError, UnicodeDecodeError):
            continue
        if len(text) > 1000:
            texts.append(text)
            total += len(text)
        if total > limit:
            break
    return texts


def bpe_tokens(texts, vocabulary):
    """Tokens of a byte-level BPE that is trained on the texts, none of 2/3 of them at the end; and its size."""
    from tokenizers import ByteLevelBPETokenizer
    tokenizer = ByteLevelBPETokenizer()
    tokenizer.train_from_iterator(texts[:2 * len(texts) // 3], vocab_size=vocabulary, show_progress=False)
    tokens = [t for encoded in tokenizer.encode_batch(texts) for t in encoded.ids]
    return torch.tensor(tokens), tokenizer.get_vocab_size()


def tokens_of(task, arguments):
    """(tokens, vocabulary, what they are)."""
    if task.startswith("charlm"):
        file = os.path.join(arguments.data, "tinyshakespeare.txt")
        with open(file, encoding="utf-8") as opened:
            text = opened.read()
        letters = sorted(set(text))
        index = {c: k for k, c in enumerate(letters)}
        return torch.tensor([index[c] for c in text]), len(letters), "characters of Tiny Shakespeare"
    texts = interpreter_sources(arguments.text_bytes)
    digest = hashlib.sha256("".join(texts).encode()).hexdigest()[:16]
    where = f"{len(texts)} Python files of the interpreter's library and packages, {sum(map(len, texts))} characters, " \
            f"sha256 {digest}; Python {sys.version.split()[0]}"
    if arguments.tokens == "bytes":
        tokens = torch.frombuffer(bytearray("".join(texts).encode()), dtype=torch.uint8).long()
        return tokens, 256, f"bytes of {where}"
    tokens, vocabulary = bpe_tokens(texts, arguments.vocabulary or 50257)
    return tokens, vocabulary, f"byte-level BPE of {vocabulary} words, trained on two thirds of {where}"


class Problem:
    """A network, its data on the device, and its loss; `starts` are the first tokens of a batch's windows."""

    def __init__(self, task, arguments):
        self.spec = dict(SPECS[task], **(TINY[task] if arguments.tiny else {}))
        spec, self.device = self.spec, torch.device(arguments.device)
        tokens, vocabulary, self.words = tokens_of(task, arguments)
        spec["vocabulary"] = spec["vocabulary"] or vocabulary
        self.tokens = tokens.to(self.device)
        self.model = (Gpt if spec["model"] == "gpt" else GruModel)(spec).to(self.device)
        self.parameters = list(self.model.parameters())
        self.count = sum(p.numel() for p in self.parameters)
        if task == "gpt2-small" and not arguments.tiny and self.count != GPT2_SMALL:
            sys.exit(f"forecast_torch.py: {self.count} parameters, {GPT2_SMALL} expected")
        self._split()
        self.offsets = torch.arange(spec["window"] + 1, device=self.device)
        self.starts = self.held_starts[:1].repeat(spec["batch"])
        self.forward_starts = self.held_starts.clone()
        self.graphs = None
        if self.device.type == "cuda" and not arguments.eager:
            self._record()

    def _split(self):
        """The last tenth validates; a fiftieth before it is held back for jumps."""
        spec, n = self.spec, self.tokens.numel()
        self.train_end, validation = int(n * 0.88), int(n * 0.9)
        windows = spec["held"] * spec["batch"]

        def spread(first, end, count):
            return torch.linspace(first, end - spec["window"] - 2, count, device=self.device).long()

        self.held_starts = spread(self.train_end, validation, windows)
        self.validation_starts = spread(validation, n, windows * spec["validation"]).split(windows)

    def batches(self, seed, steps):
        generator = torch.Generator().manual_seed(1000 + seed)
        starts = torch.randint(0, self.train_end - self.spec["window"] - 1, (steps, self.spec["batch"]), generator=generator)
        return starts.to(self.device)

    def initialise(self, seed):
        torch.manual_seed(seed)
        with torch.no_grad():
            self.model.initialise()

    def _loss(self, starts):
        words = self.tokens[starts[:, None] + self.offsets]
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.spec["bf16"], cache_enabled=False):
            logits = self.model(words[:, :-1])
        return F.cross_entropy(logits.float().flatten(0, 1), words[:, 1:].flatten())

    def _backward(self):
        for p in self.parameters:
            p.grad = None
        loss = self._loss(self.starts)
        loss.backward()
        if self.spec["clip"]:
            nn.utils.clip_grad_norm_(self.parameters, self.spec["clip"], foreach=True)
        return loss.detach()

    def _forward(self):
        with torch.no_grad():
            return self._loss(self.forward_starts)

    def _record(self):
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                self._backward()
                self._forward()
        torch.cuda.current_stream().wait_stream(stream)
        backward, forward = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
        with torch.cuda.graph(backward):
            self.loss = self._backward()
        with torch.cuda.graph(forward):
            self.forward_loss = self._forward()
        self.graphs = backward, forward

    def gradient(self):
        """The batch's loss; the gradients are in the parameters."""
        if self.graphs is None:
            return self._backward()
        self.graphs[0].replay()
        return self.loss

    def _forward_of(self, starts):
        self.forward_starts.copy_(starts)
        if self.graphs is None:
            return self._forward()
        self.graphs[1].replay()
        return self.forward_loss

    def held_out(self):
        return self._forward_of(self.held_starts)

    def validate(self):
        return sum(float(self._forward_of(s)) for s in self.validation_starts) / len(self.validation_starts)

    def synchronise(self):
        if self.device.type == "cuda":
            torch.cuda.synchronize()


class Xor:
    """2-8-2, whose batch, held-out and validation examples are all four; the interface of Problem."""

    def __init__(self, task, arguments):
        self.spec, self.device, self.graphs, self.words = dict(SPECS[task]), torch.device("cpu"), None, "all of XOR"
        self.model = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 2))
        self.parameters = list(self.model.parameters())
        self.count = sum(p.numel() for p in self.parameters)
        self.inputs = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
        self.targets, self.starts = torch.tensor([0, 1, 1, 0]), torch.zeros(1)

    def batches(self, seed, steps):
        return torch.zeros(steps, 1)

    def initialise(self, seed):
        torch.manual_seed(seed)
        for layer in self.model:
            if isinstance(layer, nn.Linear):
                layer.reset_parameters()

    def gradient(self):
        self.model.zero_grad()
        loss = self.held_out()
        loss.backward()
        return loss.detach()

    def held_out(self):
        return F.cross_entropy(self.model(self.inputs), self.targets)

    def validate(self):
        with torch.no_grad():
            return float(self.held_out())

    def synchronise(self):
        pass


def problem_of(task, arguments):
    return (Xor if task == "xor" else Problem)(task, arguments)

"""A small Transformer (Vaswani et al. 2017) in PyTorch: network, batches, beam search.

Layers are normalised at their input. One matrix has the embeddings of both sides and those of the output,
since both sides share their units. B sentences, S source and T target positions, D width, H heads, V units.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

PAD, BEGIN, END, UNKNOWN = range(4)
SPECIAL = 4  # ids before those of units
LONGEST = 512  # positions

Ids = list[int]
Pairs = Sequence[tuple[Ids, Ids]]


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Sizes of a network."""

    units: int
    layers: int = 4
    width: int = 128
    inner: int = 256
    heads: int = 4
    dropout: float = 0.3


class Attention(nn.Module):  # type: ignore[misc]
    """Scaled dot-product attention with several heads."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.heads = shape.heads
        self.query = nn.Linear(shape.width, shape.width)
        self.key_value = nn.Linear(shape.width, 2 * shape.width)
        self.out = nn.Linear(shape.width, shape.width)

    def memory(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values of states, [B, H, positions, D / H]."""
        key, value = self.key_value(x).chunk(2, dim=-1)
        return self._by_head(key), self._by_head(value)

    def forward(
        self, x: Tensor, memory: tuple[Tensor, Tensor], mask: Tensor | None = None, causal: bool = False
    ) -> Tensor:
        """``mask`` is True where attention is allowed, [B, 1, T or 1, positions]."""
        found = F.scaled_dot_product_attention(self._by_head(self.query(x)), *memory, mask, is_causal=causal)
        return self.out(found.transpose(1, 2).flatten(2))

    def _by_head(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)


class Layer(nn.Module):  # type: ignore[misc]
    """A layer of the encoder, or of the decoder, which also attends to the source."""

    def __init__(self, shape: Shape, *, decoder: bool) -> None:
        super().__init__()
        self.own, self.own_norm = Attention(shape), nn.LayerNorm(shape.width)
        self.cross = Attention(shape) if decoder else None
        self.cross_norm = nn.LayerNorm(shape.width) if decoder else None
        self.norm = nn.LayerNorm(shape.width)
        self.grow, self.shrink = nn.Linear(shape.width, shape.inner), nn.Linear(shape.inner, shape.width)
        self.dropout = nn.Dropout(shape.dropout)

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None,
        source: tuple[Tensor, Tensor] | None = None,
        source_mask: Tensor | None = None,
        past: tuple[Tensor, Tensor] | None = None,
        causal: bool = False,
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """The states after the layer, and the keys and values of its own input, after those of ``past``."""
        normed = self.own_norm(x)
        memory = self.own.memory(normed)
        if past is not None:
            memory = torch.cat([past[0], memory[0]], 2), torch.cat([past[1], memory[1]], 2)
        x = x + self.dropout(self.own(normed, memory, mask, causal))
        if self.cross is not None:
            assert self.cross_norm is not None
            assert source is not None
            x = x + self.dropout(self.cross(self.cross_norm(x), source, source_mask))
        inner = self.dropout(F.relu(self.grow(self.norm(x))))
        return x + self.dropout(self.shrink(inner)), memory


class Transformer(nn.Module):  # type: ignore[misc]
    """Encoder and decoder."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.embedding = nn.Embedding(shape.units, shape.width, padding_idx=PAD)
        self.encoder = nn.ModuleList(Layer(shape, decoder=False) for _ in range(shape.layers))
        self.decoder = nn.ModuleList(Layer(shape, decoder=True) for _ in range(shape.layers))
        self.encoder_norm, self.decoder_norm = nn.LayerNorm(shape.width), nn.LayerNorm(shape.width)
        self.dropout = nn.Dropout(shape.dropout)
        self.register_buffer("position", sinusoids(LONGEST, shape.width), persistent=False)
        for name, parameter in self.named_parameters():
            if parameter.dim() > 1 and not name.startswith("embedding"):
                nn.init.xavier_uniform_(parameter)
        nn.init.normal_(self.embedding.weight, std=shape.width**-0.5)
        with torch.no_grad():
            self.embedding.weight[PAD] = 0

    def embed(self, ids: Tensor, start: int = 0) -> Tensor:
        scaled = self.embedding(ids) * math.sqrt(self.shape.width)
        return self.dropout(scaled + self.position[start : start + ids.shape[1]])

    def encode(self, source: Tensor) -> tuple[list[tuple[Tensor, Tensor]], Tensor]:
        """Keys and values of the source for each layer of the decoder, and the mask, [B, 1, 1, S]."""
        mask = (source != PAD)[:, None, None, :]
        x = self.embed(source)
        for layer in self.encoder:
            x, _ = layer(x, mask)
        x = self.encoder_norm(x)
        return [layer.cross.memory(x) for layer in self.decoder], mask

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Scores of the next unit at each target position, [B, T, V]; the target begins with BEGIN."""
        memory, mask = self.encode(source)
        x = self.embed(target)
        for layer, one in zip(self.decoder, memory, strict=True):
            x, _ = layer(x, None, one, mask, causal=True)
        return self.scores(x)

    def step(
        self,
        unit: Tensor,
        at: int,
        memory: list[tuple[Tensor, Tensor]],
        mask: Tensor,
        past: list[tuple[Tensor, Tensor] | None],
    ) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
        """Scores after one more unit at position ``at``, [B, V], and all keys and values so far."""
        x = self.embed(unit[:, None], at)
        new = []
        for layer, one, before in zip(self.decoder, memory, past, strict=True):
            x, kept = layer(x, None, one, mask, before)
            new.append(kept)
        return self.scores(x)[:, 0], new

    def scores(self, x: Tensor) -> Tensor:
        return F.linear(self.decoder_norm(x), self.embedding.weight)


def sinusoids(length: int, width: int) -> Tensor:
    """Positions as sines and cosines, [length, width]."""
    angle = torch.arange(length)[:, None] * 10000.0 ** (-torch.arange(0, width, 2) / width)
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(1)


# ---- batches


def padded(rows: Sequence[Ids]) -> Tensor:
    """Rows of ids side by side, [rows, longest]."""
    longest = max(map(len, rows))
    return torch.tensor([[*row, *[PAD] * (longest - len(row))] for row in rows])


def batches(pairs: Pairs, most: int, seed: int) -> list[list[int]]:
    """The numbers of the pairs of each batch, drawn anew by ``seed``.

    Pairs of like lengths are together; a batch has at most ``most`` target positions, filled or not.
    """
    draw = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(pairs), generator=draw).tolist()
    order.sort(key=lambda k: (len(pairs[k][1]), len(pairs[k][0])))
    found: list[list[int]] = [[]]
    longest = 0
    for k in order:
        longest = max(longest, *map(len, pairs[k]))
        if found[-1] and longest * (len(found[-1]) + 1) > most:
            found.append([])
            longest = max(map(len, pairs[k]))
        found[-1].append(k)
    return [found[k] for k in torch.randperm(len(found), generator=draw).tolist()]


def loss_of(network: Transformer, pairs: Pairs, smoothing: float) -> Tensor:
    """The mean cross-entropy of the target units of some pairs, with label smoothing."""
    source, target = padded([src for src, _ in pairs]), padded([tgt for _, tgt in pairs])
    scores = network(source, target[:, :-1])
    return F.cross_entropy(
        scores.flatten(0, 1), target[:, 1:].flatten(), ignore_index=PAD, label_smoothing=smoothing
    )


# ---- search


def translate(
    network: Transformer, sources: Sequence[Ids], *, beam: int, alpha: float, most: int = 64
) -> list[Ids]:
    """The translation of each source by beam search; like lengths are translated together."""
    network.eval()
    order = sorted(range(len(sources)), key=lambda k: -len(sources[k]))
    found: list[Ids] = [[] for _ in sources]
    for begin in range(0, len(order), most):
        some = order[begin : begin + most]
        results = beam_search(network, [sources[k] for k in some], beam, alpha)
        for k, result in zip(some, results, strict=True):
            found[k] = result
    return found


@torch.no_grad()  # type: ignore[untyped-decorator]
def beam_search(network: Transformer, sources: Sequence[Ids], beam: int, alpha: float) -> list[Ids]:
    """Beam search for a batch of sources; a hypothesis has its log-probability / ((5 + length) / 6) ** alpha.

    A sentence is done when it has ``beam`` complete hypotheses, or its limit of length is reached.
    """
    memory, mask = network.encode(padded(sources))
    limits = [min(2 * len(source) + 10, LONGEST - 1) for source in sources]
    width = network.shape.units
    rows = torch.arange(len(sources)).repeat_interleave(beam)
    memory = [(key[rows], value[rows]) for key, value in memory]
    mask = mask[rows]
    live = list(range(len(sources)))  # the sentences that are not done, ``beam`` rows each
    score = torch.full((len(live), beam), -torch.inf)
    score[:, 0] = 0.0  # all rows are alike at first
    prefix = torch.full((len(live) * beam, 1), BEGIN)
    past: list[tuple[Tensor, Tensor] | None] = [None] * len(network.decoder)
    complete: list[list[tuple[float, Ids]]] = [[] for _ in sources]
    at = 0
    while live:
        scores, new = network.step(prefix[:, -1], at, memory, mask, past)
        at += 1
        scores[:, [PAD, BEGIN]] = -torch.inf
        total = score[:, :, None] + F.log_softmax(scores, -1).view(len(live), beam, width)
        best, place = total.flatten(1).topk(min(2 * beam, beam * width))  # enough if each row ends
        parent = place // width + beam * torch.arange(len(live))[:, None]
        unit = place % width
        for k, j in ((unit == END) & best.isfinite())[:, :beam].nonzero().tolist():
            ids = prefix[parent[k, j], 1:].tolist()
            complete[live[k]].append((float(best[k, j]) / ((5 + at) / 6) ** alpha, ids))
        score, column = best.masked_fill(unit == END, -torch.inf).topk(beam)
        parent, unit = parent.gather(1, column), unit.gather(1, column)
        kept = []
        for k, sentence in enumerate(live):
            if at < limits[sentence] and len(complete[sentence]) < beam:
                kept.append(k)
            elif not complete[sentence]:
                ids = [*prefix[parent[k, 0], 1:].tolist(), int(unit[k, 0])]
                complete[sentence].append((float(score[k, 0]), ids))
        rows = parent[kept].flatten()
        prefix = torch.cat([prefix[rows], unit[kept].flatten()[:, None]], 1)
        score = score[kept]
        past = [(key[rows], value[rows]) for key, value in new]
        if len(kept) < len(live):
            # The rows of a sentence share what is known of the source.
            memory = [(key[rows], value[rows]) for key, value in memory]
            mask = mask[rows]
            live = [live[k] for k in kept]
    return [max(results)[1] for results in complete]


def averaged(states: Sequence[dict[str, Tensor]]) -> dict[str, Tensor]:
    """The mean of the parameters of several networks."""
    return {name: torch.stack([state[name] for state in states]).mean(0) for name in states[0]}

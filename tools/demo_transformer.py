# demo_transformer.py: trains a character-level transformer on a chapter of a book, and has it write.
"""Run by tools/demo --transformer. The text is tools/data/alice.txt, in the public domain."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import thalweg as tw
from thalweg import nn, optim
from tqdm import tqdm

TEXT = Path(__file__).resolve().parent / "data" / "alice.txt"


class Block(nn.Module):
    """Attention and a layer of four times the width, each on normalised values and added to its input."""

    def __init__(self, width: int, heads: int) -> None:
        self.before_attention = nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, heads)
        self.before_layers = nn.LayerNorm(width)
        self.layers = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: tw.Tensor) -> tw.Tensor:
        x = x + self.attention(self.before_attention(x), is_causal=True)
        return x + self.layers(self.before_layers(x))


class Transformer(nn.Module):
    """Logits of the next character at every place of (N, L) numbers of characters."""

    def __init__(
        self, characters: int, length: int, width: int = 96, heads: int = 4, blocks: int = 2
    ) -> None:
        self.characters = nn.Embedding(characters, width)
        self.places = nn.Embedding(length, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(blocks)))
        self.last = nn.LayerNorm(width)
        self.logits = nn.Linear(width, characters)

    def forward(self, x: tw.Tensor) -> tw.Tensor:
        places = self.places(tw.arange(x.shape[1]))
        return self.logits(self.last(self.blocks(self.characters(x) + places)))


def write(
    model: Transformer, start: list[int], count: int, length: int, generator: tw.Generator
) -> list[int]:
    """`start`, and `count` characters drawn one after the other."""
    numbers = list(start)
    with tw.no_grad():
        for _ in range(count):
            logits = model(tw.asarray([numbers[-length:]]))[0, -1]
            chances = tw.softmax(logits / 0.8)
            numbers.append(int(tw.choice(chances.size, p=chances, generator=generator).item()))
    return numbers


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--length", type=int, default=64, help="characters of one sequence")
    parser.add_argument("--rate", type=float, default=3e-3)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()

    text = TEXT.read_text()
    alphabet = sorted(set(text))
    number = {character: i for i, character in enumerate(alphabet)}
    data = np.array([number[character] for character in text])
    tw.manual_seed(arguments.seed)
    model = Transformer(len(alphabet), arguments.length)
    optimizer = optim.AdamW(model.parameters(), lr=arguments.rate)
    schedule = optim.CosineAnnealingLR(optimizer, arguments.steps, arguments.rate / 20)
    picks = np.random.default_rng(arguments.seed)
    parameters = sum(each.size for each in model.parameters())
    print(f"{len(text)} characters of {len(alphabet)} kinds, {parameters} parameters")

    started = time.perf_counter()
    losses = []
    with tqdm(total=arguments.steps, unit="step", desc="training", file=sys.stdout) as progress:
        for step in range(arguments.steps):
            starts = picks.integers(0, len(data) - arguments.length, arguments.batch)
            rows = data[starts[:, None] + np.arange(arguments.length + 1)]
            logits = model(tw.asarray(rows[:, :-1]))
            targets = tw.asarray(rows[:, 1:].reshape(-1))
            loss = tw.cross_entropy(tw.reshape(logits, (-1, len(alphabet))), targets)
            optimizer.zero_grad()
            loss.backward()
            optim.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            progress.update()
            if step % 20 == 19 or step == 0:
                losses.append(loss.item())
                progress.set_postfix(loss=f"{losses[-1]:.3f}")
    seconds = time.perf_counter() - started
    first = "Alice was "
    sample = write(
        model.eval(), [number[c] for c in first], 300, arguments.length, tw.Generator(arguments.seed)
    )
    print("".join(alphabet[i] for i in sample))
    print(
        f"\n{seconds:.1f} s for {arguments.steps} steps; "
        f"the loss fell from {losses[0]:.3f} to {losses[-1]:.3f}"
    )
    if not losses[-1] < 0.7 * losses[0]:
        print("the loss did not fall: something is wrong", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

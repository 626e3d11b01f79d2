# demo_digits.py: trains a small convolutional network on scikit-learn's handwritten digits.
"""Run by tools/demo. 1,797 real images of 8x8 pixels."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np
import thalweg as tw
from sklearn.datasets import load_digits
from thalweg import nn, optim
from tqdm import tqdm

CLASSES = 10


def load_split(seed: int, held_out: float):
    """Pixels scaled to [0, 1], of shape (images, 1, 8, 8), and labels; shuffled and split."""
    images, labels = load_digits(return_X_y=True)
    images = (images / 16.0).astype(np.float32).reshape(-1, 1, 8, 8)
    order = np.random.default_rng(seed).permutation(len(images))
    cut = int(len(order) * (1 - held_out))
    return (images[order[:cut]], labels[order[:cut]]), (images[order[cut:]], labels[order[cut:]])


def network() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32 * 4 * 4, 64),
        nn.ReLU(),
        nn.Dropout(0.2),
        nn.Linear(64, CLASSES),
    )


def train_step(model, optimizer, images, labels):
    """One step on the mean cross-entropy; returns the loss (still pending)."""
    loss = tw.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


def accuracy(model, images, labels) -> float:
    with tw.no_grad():
        predicted = tw.argmax(model.eval()(images), axis=1)
        return tw.mean(tw.astype(predicted == labels, tw.float32)).item()


def count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is below 1")
    return number


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=count, default=15)
    parser.add_argument("--batch", type=count, default=64)
    parser.add_argument("--rate", type=float, default=0.003)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--dump", type=Path, default=Path("digits_step.json"), help="where the graph of one step goes"
    )
    arguments = parser.parse_args()

    (train_images, train_labels), (test_images, test_labels) = load_split(arguments.seed, held_out=0.2)
    if arguments.batch > len(train_images):
        parser.error(
            f"argument --batch: {arguments.batch} is more than the {len(train_images)} images to train on"
        )
    held_out = tw.asarray(test_images), tw.asarray(test_labels)
    tw.manual_seed(arguments.seed)
    model = network()
    optimizer = optim.AdamW(model.parameters(), lr=arguments.rate)
    batches = range(0, len(train_images) - arguments.batch + 1, arguments.batch)
    schedule = optim.CosineAnnealingLR(optimizer, arguments.epochs * len(batches))
    shuffle = np.random.default_rng(arguments.seed + 1)

    started = time.perf_counter()
    with tqdm(
        total=arguments.epochs * len(batches), unit="step", desc="training", file=sys.stdout
    ) as progress:
        for epoch in range(arguments.epochs):
            order = shuffle.permutation(len(train_images))
            for start in batches:
                rows = order[start : start + arguments.batch]
                images, labels = tw.asarray(train_images[rows]), tw.asarray(train_labels[rows])
                loss = train_step(model, optimizer, images, labels)
                schedule.step()
                progress.update()
            progress.set_postfix(loss=f"{loss.item():.3f}", refresh=epoch == arguments.epochs - 1)
    seconds = time.perf_counter() - started

    with tw.record_graph(arguments.dump):
        train_step(model, optimizer, images, labels)
    result = accuracy(model, *held_out)
    operators = len(json.loads(arguments.dump.read_text())["operators"])
    counters = tw.stats()
    print(f"held-out accuracy {result:.4f} on {len(test_labels)} images after {arguments.epochs} epochs")
    print(
        f"{seconds:.1f} s: {counters['issued']} operators issued, {counters['executed']} executed,", end=" "
    )
    print(f"{tw.sync_count()} blocking reads")
    print(f"the graph of one training step ({operators} operators) is in {arguments.dump}")
    if result < 0.97:
        print("accuracy is below 0.97: something is wrong", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

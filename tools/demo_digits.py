# demo_digits.py: trains a softmax classifier on scikit-learn's handwritten digits through the whole pipeline.
"""Run by tools/demo. 1,797 real images of 8x8 pixels; gradients are written out by hand."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np
import thalweg as tw
from sklearn.datasets import load_digits
from tqdm import tqdm

CLASSES = 10


def load_split(seed: int, held_out: float):
    """Pixels scaled to [0, 1] with a column of ones for the bias, labels; shuffled and split."""
    images, labels = load_digits(return_X_y=True)
    images = np.hstack([images / 16.0, np.ones((len(images), 1))]).astype(np.float32)
    order = np.random.default_rng(seed).permutation(len(images))
    cut = int(len(order) * (1 - held_out))
    return (images[order[:cut]], labels[order[:cut]]), (images[order[cut:]], labels[order[cut:]])


def softmax(logits: tw.Tensor) -> tw.Tensor:
    exponentials = tw.exp(logits - tw.max(logits, axis=1, keepdims=True))
    return exponentials / tw.sum(exponentials, axis=1, keepdims=True)


def train_step(weights, velocity, images, targets, rate: float, momentum: float, decay: float):
    """One step of gradient descent on the mean cross-entropy; returns the loss (still pending)."""
    probabilities = softmax(images @ weights)
    loss = -tw.mean(tw.sum(targets * tw.log(probabilities + 1e-9), axis=1))
    # d loss / d logits of softmax with cross-entropy is (probabilities - targets) / batch.
    gradient = images.T @ ((probabilities - targets) / images.shape[0]) + decay * weights
    velocity *= momentum
    velocity += gradient
    weights -= rate * velocity
    return loss


def accuracy(weights, images, labels) -> float:
    predicted = tw.argmax(images @ weights, axis=1)
    return tw.mean(tw.astype(predicted == labels, tw.float32)).item()


def count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is below 1")
    return number


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=count, default=60)
    parser.add_argument("--batch", type=count, default=64)
    parser.add_argument("--rate", type=float, default=0.5)
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
    one_hot = np.eye(CLASSES, dtype=np.float32)[train_labels]
    held_out = tw.asarray(test_images), tw.asarray(test_labels)
    tw.manual_seed(arguments.seed)
    weights = tw.randn(train_images.shape[1], CLASSES) * 0.01
    velocity = tw.zeros(weights.shape)
    batches = range(0, len(train_images) - arguments.batch + 1, arguments.batch)
    shuffle = np.random.default_rng(arguments.seed + 1)

    started = time.perf_counter()
    with tqdm(
        total=arguments.epochs * len(batches), unit="step", desc="training", file=sys.stdout
    ) as progress:
        for epoch in range(arguments.epochs):
            order = shuffle.permutation(len(train_images))
            for start in batches:
                rows = order[start : start + arguments.batch]
                images, targets = tw.asarray(train_images[rows]), tw.asarray(one_hot[rows])
                loss = train_step(weights, velocity, images, targets, arguments.rate, 0.9, 1e-4)
                progress.update()
            progress.set_postfix(loss=f"{loss.item():.3f}", refresh=epoch == arguments.epochs - 1)
    seconds = time.perf_counter() - started

    with tw.record_graph(arguments.dump):
        train_step(weights, velocity, images, targets, arguments.rate, 0.9, 1e-4)
    result = accuracy(weights, *held_out)
    operators = len(json.loads(arguments.dump.read_text())["operators"])
    counters = tw.stats()
    print(f"held-out accuracy {result:.4f} on {len(test_labels)} images after {arguments.epochs} epochs")
    print(
        f"{seconds:.1f} s: {counters['issued']} operators issued, {counters['executed']} executed,", end=" "
    )
    print(f"{tw.sync_count()} blocking reads")
    print(f"the graph of one training step ({operators} operators) is in {arguments.dump}")
    if result < 0.95:
        print("accuracy is below 0.95: something is wrong", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

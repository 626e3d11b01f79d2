# _random.py: random tensors.
"""Random tensors. What an operation draws is settled when it is issued: results do not depend on threads
or timing."""

from __future__ import annotations

import math

from thalweg import _C
from thalweg._C import Generator, Operation, default_generator, op
from thalweg._operations import documented, shape_of
from thalweg._typing import Any, DeviceLike, DTypeLike, Shape, Tensor

_uniform = op("uniform")
_normal = op("normal")
_randint = op("randint")


def _shape_arguments(shape: tuple[Any, ...]) -> Any:
    return shape[0] if len(shape) == 1 else shape


def _draw(
    operation: Operation,
    generator: Generator | None,
    shape: tuple[int, ...],
    *inputs: Tensor,
    per_counter: int = 2,
    **attributes: Any,
) -> Tensor:
    """Issues a random operation with the next numbers of the stream. One counter gives per_counter
    elements."""
    stream = default_generator() if generator is None else generator
    if not isinstance(stream, Generator):
        name = operation.__name__
        raise _C.DTypeError(f"{name}: generator must be a Generator, not {type(stream).__name__}")
    # What overflows here is refused by the operation.
    draws = -(-min(math.prod(max(size, 0) for size in shape), 2**63) // per_counter)
    counter = stream.take(draws)
    try:
        if not inputs:
            attributes["shape"] = shape
        return operation(*inputs, seed=stream.seed, counter=counter, **attributes)
    except _C.OutOfMemoryError:  # drawn all the same, as where the call returns before the kernel runs
        raise
    except BaseException:
        stream.put_back(counter, draws)
        raise


def manual_seed(seed: int, /) -> Generator:
    """Begins the default generator's stream of `seed`, any int, whose low 64 bits count. Returns the
    generator.

    Raises TypeError for what is no int. PyTorch's manual_seed.

    >>> tw.manual_seed(7)
    Generator(seed=7, counter=0)
    >>> tw.rand(3)
    tensor([0.7502, 0.0857, 0.7953])
    """
    return default_generator().manual_seed(seed)


@documented(_uniform)
def uniform(
    shape: Shape,
    low: float = 0.0,
    high: float = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """>>> tw.uniform(3, -1, 1, generator=tw.Generator(7))
    tensor([ 0.5003, -0.8287,  0.5906])
    """
    shape = shape_of("uniform", shape)
    dtype = "float32" if dtype is None else dtype
    if isinstance(high, tuple):
        raise _C.DTypeError(
            f"uniform: high is the tuple {high}; the shape comes first: uniform(shape, low, high)"
        )
    return _draw(_uniform, generator, shape, low=low, high=high, dtype=dtype, device=device)


@documented(_normal)
def normal(
    shape: Shape,
    mean: float = 0.0,
    std: float = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """>>> tw.normal((2, 3), std=0.1, generator=tw.Generator(7))
    tensor([[ 0.0651,  0.0389,  0.0653],
            [-0.0177,  0.1795, -0.2515]])
    """
    shape = shape_of("normal", shape)
    dtype = "float32" if dtype is None else dtype
    if isinstance(std, tuple):
        raise _C.DTypeError(
            f"normal: std is the tuple {std}; the shape comes first: normal(shape, mean, std)"
        )
    return _draw(_normal, generator, shape, mean=mean, std=std, dtype=dtype, device=device)


def rand(
    *shape: Any,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """Random numbers evenly spread over [0, 1): rand(2, 3) or rand((2, 3)). float32 by default.

    Raises ShapeError for a negative size and DTypeError for a dtype that is not floating. PyTorch's rand;
    drawn as by uniform.

    >>> tw.rand(2, 3, generator=tw.Generator(7))
    tensor([[0.7502, 0.0857, 0.7953],
            [0.9579, 0.0085, 0.8487]])
    """
    return uniform(_shape_arguments(shape), dtype=dtype, device=device, generator=generator)


def randn(
    *shape: Any,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """Random numbers of the standard normal distribution: randn(2, 3) or randn((2, 3)). float32 by
    default.

    Raises ShapeError for a negative size and DTypeError for a dtype that is not floating. PyTorch's randn;
    drawn as by normal.

    >>> tw.randn(3, dtype="float64", generator=tw.Generator(7))
    tensor([0.6511, 0.3887, 0.6532], dtype=float64)
    """
    return normal(_shape_arguments(shape), dtype=dtype, device=device, generator=generator)


@documented(_randint)
def randint(
    low: int,
    high: int | None = None,
    shape: Shape = (),
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """With one bound it is high, and low is 0.

    >>> tw.randint(1, 7, shape=8, generator=tw.Generator(7))  # dice
    tensor([5, 1, 5, 6, 1, 6, 2, 1])
    """
    if high is None:
        low, high = 0, low
    shape = shape_of("randint", shape)
    dtype = "int64" if dtype is None else dtype
    # Bounds are numbers of 64 bits.
    endpoint = high == 2**64
    return _draw(
        _randint,
        generator,
        shape,
        low=low,
        high=high - endpoint,
        endpoint=endpoint,
        dtype=dtype,
        device=device,
    )


__all__ = ["Generator", "default_generator", "manual_seed", "normal", "rand", "randint", "randn", "uniform"]

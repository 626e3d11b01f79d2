# _random.py: random tensors.
"""Random tensors. What an operation draws is settled when it is issued: results do not depend on threads
or timing."""

from __future__ import annotations

from thalweg import _C
from thalweg._C import Generator, default_generator, op
from thalweg._operations import documented, shape_of
from thalweg._typing import Any, DeviceLike, DTypeLike, Shape, Tensor

_uniform = op("uniform")
_normal = op("normal")
_randint = op("randint")


def _shape_arguments(shape: tuple[Any, ...]) -> Any:
    return shape[0] if len(shape) == 1 else shape


def _take(name: str, generator: Generator | None, shape: tuple[int, ...]) -> dict[str, int]:
    """Seed and counter of the next draw. One counter gives two elements."""
    stream = default_generator() if generator is None else generator
    if not isinstance(stream, Generator):
        raise _C.DTypeError(f"{name}: generator must be a Generator, not {type(stream).__name__}")
    count = 1
    for size in shape:
        count *= max(int(size), 0)
    return {"seed": stream.seed, "counter": stream.take((count + 1) // 2)}


def manual_seed(seed: int, /) -> Generator:
    """Begins the default generator's stream of `seed`, any int, whose low 64 bits count. Returns the
    generator."""
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
    shape = shape_of("uniform", shape)
    dtype = "float32" if dtype is None else dtype
    return _uniform(
        shape=shape, low=low, high=high, dtype=dtype, device=device, **_take("uniform", generator, shape)
    )


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
    shape = shape_of("normal", shape)
    dtype = "float32" if dtype is None else dtype
    return _normal(
        shape=shape, mean=mean, std=std, dtype=dtype, device=device, **_take("normal", generator, shape)
    )


def rand(
    *shape: Any,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """Random numbers evenly spread over [0, 1): rand(2, 3) or rand((2, 3)). float32 by default."""
    return uniform(_shape_arguments(shape), dtype=dtype, device=device, generator=generator)


def randn(
    *shape: Any,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """Random numbers of the standard normal distribution: randn(2, 3) or randn((2, 3)). float32 by
    default."""
    return normal(_shape_arguments(shape), dtype=dtype, device=device, generator=generator)


@documented(_randint, "With one bound it is high, and low is 0.")
def randint(
    low: int,
    high: int | None = None,
    shape: Shape = (),
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    generator: Generator | None = None,
) -> Tensor:
    if high is None:
        low, high = 0, low
    shape = shape_of("randint", shape)
    dtype = "int64" if dtype is None else dtype
    # Bounds are numbers of 64 bits.
    endpoint = high == 2**64
    return _randint(
        shape=shape,
        low=low,
        high=high - endpoint,
        endpoint=endpoint,
        dtype=dtype,
        device=device,
        **_take("randint", generator, shape),
    )


__all__ = ["Generator", "default_generator", "manual_seed", "normal", "rand", "randint", "randn", "uniform"]

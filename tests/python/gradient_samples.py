# gradient_samples.py: for each differentiable operation of the registry, calls whose derivatives the tests
# check.
from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import thalweg as tw
from thalweg import _C


@dataclasses.dataclass(frozen=True)
class Sample:
    """A call of an operation, of tensors of the given shapes (or given arrays)."""

    function: Callable[..., Any]
    inputs: tuple[Any, ...]
    low: float = 0.3
    high: float = 0.9
    complex_dtypes: bool = True
    halves: bool = True
    #: The rank from which on inputs may be the same all along their first axis.
    broadcast_rank: int = 2
    #: Another call for complex inputs, where only some of what the real one gives has a derivative.
    of_complex: Callable[..., Any] | None = None

    def arrays(self, dtype: str) -> list[np.ndarray]:
        """Inputs in float64 or complex128: numbers that are apart, in no order."""
        return [self._array(i, each, dtype) for i, each in enumerate(self.inputs)]

    def _array(self, i: int, given: Any, dtype: str) -> np.ndarray:
        if not isinstance(given, tuple):
            # Some angle for each: at real numbers a factorization of complex ones jumps.
            return np.asarray(
                given * np.exp(1j * np.arange(given.size)).reshape(given.shape)
                if dtype == "complex128"
                else given
            )
        rng = np.random.default_rng([i, *given])
        count = int(np.prod(given))

        def part() -> np.ndarray:
            apart = (
                np.linspace(self.low, self.high, count + 2)[1:-1] + 0.017 * i
            )  # not those of another input
            return rng.permutation(apart).reshape(given)

        return np.asarray(part() + 1j * part() if dtype == "complex128" else part())

    def call(self, dtype: str) -> Callable[..., Any]:
        return self.of_complex if dtype == "complex128" and self.of_complex else self.function


def call(name: str, **attributes: Any) -> Callable[..., Any]:
    operation = _C.op(name)
    return lambda *inputs: operation(*inputs, **attributes)


def of_one(name: str, **options: Any) -> list[Sample]:
    return [Sample(call(name), (shape,), **options) for shape in ((2, 3), (), (0,), (2, 0, 3))]


def of_two(name: str, **options: Any) -> list[Sample]:
    shapes = [((2, 3), (2, 3)), ((2, 1), (3,)), ((), (2,)), ((), ()), ((0,), (1,)), ((2, 0, 3), (3,))]
    return [Sample(call(name), each, **options) for each in shapes]


REAL: Any = {"complex_dtypes": False}

UNARY = [
    *("negative", "positive", "abs", "conj", "square", "reciprocal", "sqrt", "exp", "expm1", "log", "log1p"),
    *("log2", "log10", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "atanh"),
    *("sign", "round"),
]
REAL_UNARY = ["floor", "ceil", "trunc", "erf", "erfc", "sigmoid", "silu", "gelu", "relu"]
BINARY = ["add", "subtract", "multiply", "divide", "pow"]
REAL_BINARY = [
    *("floor_divide", "remainder", "minimum", "maximum", "copysign", "atan2", "hypot", "logaddexp"),
    *(f"{name}_gradient" for name in ("relu", "tanh", "sigmoid", "silu", "gelu")),
]

SAMPLES: dict[str, list[Sample]] = {
    **{name: of_one(name) for name in UNARY},
    **{name: of_one(name, **REAL) for name in REAL_UNARY},
    **{name: of_two(name) for name in BINARY},
    **{name: of_two(name, **REAL) for name in REAL_BINARY},
    "acosh": of_one("acosh", low=1.2, high=2.0),
}

CONDITION = np.array([[True, False, True], [False, True, True]])
CLIPPED = np.array([[0.1, 0.5, 0.9], [0.6, 0.2, 0.4]])
SAMPLES["where"] = [
    Sample(lambda x, y: _C.op("where")(tw.asarray(CONDITION), x, y), shapes)
    for shapes in (((2, 3), (2, 3)), ((3,), ()), ((0, 2, 3), (3,)))
]
SAMPLES["clip"] = [
    Sample(call("clip"), (CLIPPED, np.array([0.25, 0.3, 0.35]), np.array(0.7)), **REAL),
    Sample(call("clip"), ((), np.array(0.1), np.array(0.2)), **REAL),
    Sample(call("clip"), ((0, 2), (2,), (2,)), **REAL),
]

# --- casts, views and copies


def of_x(name: str, cases: list[tuple[tuple[int, ...], dict[str, Any]]], **options: Any) -> list[Sample]:
    return [Sample(call(name, **attributes), (shape,), **options) for shape, attributes in cases]


SAMPLES["astype"] = [Sample(call("astype", dtype="complex128"), (shape,)) for shape in ((2, 3), (), (0,))] + [
    Sample(call("astype", dtype="float64"), ((2, 3),), of_complex=call("astype", dtype="complex128"))
]
SAMPLES["contiguous"] = of_one("contiguous")
SAMPLES["check_nan"] = of_x(
    "check_nan", [(shape, {"function": "F", "input": 0}) for shape in ((2, 3), (), (0,))]
)
SAMPLES["to_device"] = of_x("to_device", [(shape, {"device": "cpu:0"}) for shape in ((2, 3), (), (0,))])
SAMPLES["real"] = of_one("real")
SAMPLES["imag"] = [
    Sample(lambda x: _C.op("imag")(tw.astype(x, "complex128")), (shape,)) for shape in ((2, 3), (), (0,))
]
SAMPLES["reshape"] = of_x(
    "reshape", [((2, 3), {"shape": (3, 2)}), ((), {"shape": (1, 1)}), ((0, 2), {"shape": (4, 0)})]
)
SAMPLES["permute_dims"] = of_x(
    "permute_dims", [((2, 3, 2), {"axes": (2, 0, 1)}), ((2, 3), {}), ((), {"axes": ()}), ((0, 2), {})]
)
SAMPLES["broadcast_to"] = of_x(
    "broadcast_to", [((2, 1), {"shape": (3, 2, 2)}), ((), {"shape": (2,)}), ((0, 1), {"shape": (2, 0, 3)})]
)
SAMPLES["expand_dims"] = of_x(
    "expand_dims", [((2, 3), {"axis": (1,)}), ((), {"axis": (0,)}), ((0,), {"axis": (0,)})]
)
SAMPLES["squeeze"] = of_x(
    "squeeze", [((2, 1, 3), {"axis": (1,)}), ((1,), {"axis": (0,)}), ((1, 0), {"axis": (0,)})]
)
SAMPLES["flip"] = of_x("flip", [((2, 3), {}), ((2, 3), {"axis": (1,)}), ((), {}), ((0, 2), {})])
SAMPLES["slice"] = of_x(
    "slice",
    [
        ((3, 4), {"starts": (2, 1), "steps": (-1, 2), "sizes": (3, 2)}),
        ((3, 4), {"starts": (1, 0), "steps": (1, 1), "sizes": (1, 4), "drop": (0,), "insert": (1,)}),
        ((), {"starts": (), "steps": (), "sizes": ()}),
        ((3,), {"starts": (0,), "steps": (1,), "sizes": (0,)}),
        ((0,), {"starts": (0,), "steps": (1,), "sizes": (0,)}),
    ],
)
SAMPLES["diagonal"] = of_x(
    "diagonal",
    [
        ((2, 3), {}),
        ((2, 3, 2), {"offset": -1, "axis1": 2, "axis2": 1}),
        ((2, 2), {"offset": 5}),
        ((0, 2), {}),
    ],
)
SAMPLES["roll"] = of_x(
    "roll",
    [
        ((2, 3), {"shift": (1, -2), "axis": (0, 1)}),
        ((2, 3), {"shift": (4,)}),
        ((0, 2), {"shift": (1,), "axis": (1,)}),
    ],
)
SAMPLES["concat"] = [
    Sample(call("concat", axis=(1,)), ((2, 3), (2, 1), (2, 0))),
    Sample(lambda *x: tw.concat(x, axis=None), ((2, 3), (), (2,))),
    Sample(call("concat", axis=(0,)), ((0, 2), (0, 2))),
]

# --- reductions and scans

for _name in ("sum", "prod", "mean", "max", "min", "var", "std"):
    _options: Any = {} if _name in ("sum", "prod", "mean") else REAL
    if _name in ("max", "min"):
        _options = {**REAL, "broadcast_rank": 4}
    _more: Any = {"correction": 1.0} if _name in ("var", "std") else {}
    SAMPLES[_name] = [
        *of_x(
            _name,
            [((2, 3), {"axis": (1,)}), ((3, 2, 2), {"axis": (0, 2), "keepdims": True, **_more})],
            **_options,
        ),
        *of_x(_name, [((3,), {}), ((2, 0, 3), {"axis": (2,), **_more})], **_options),
    ]
    if _name not in ("var", "std"):
        SAMPLES[_name] += of_x(_name, [((), {})], **_options)
SAMPLES["sum"] += of_x("sum", [((0, 2), {})])
SAMPLES["prod"] += [
    *of_x("prod", [((0, 2), {"axis": (0,)})]),
    Sample(call("prod", axis=(1,)), (np.array([[0.0, 0.5, 0.7], [0.0, 0.4, 0.0]]),)),
]
for _name in ("cumulative_sum", "cumulative_prod"):
    SAMPLES[_name] = of_x(
        _name,
        [
            ((2, 3), {}),
            ((5, 2), {"axis": 0, "include_initial": True}),
            ((1, 2), {"axis": 0}),
            ((0, 2), {"axis": 0, "include_initial": True}),
            ((2, 0), {}),
        ],
    )
SAMPLES["cumulative_prod"] += [
    Sample(call("cumulative_prod"), (np.array([[0.0, 0.5, 0.7, 0.9], [0.3, 0.0, 0.4, 0.0]]),))
]

# --- indexing, selection and order

ROWS, COLUMNS = np.array([0, 1, -1, 0]), np.array([2, 0, 1, 2])
NONE = np.array([], dtype=np.int64)


def indexed(
    name: str, rows: np.ndarray, *columns: np.ndarray, axes: tuple[int, ...], front: bool = False
) -> Any:
    operation = _C.op(name)
    return lambda *x: operation(*x, *map(tw.asarray, (rows, *columns)), axes=axes, front=front)


SAMPLES["index"] = [
    Sample(indexed("index", ROWS, axes=(0,)), ((3, 2),)),
    Sample(indexed("index", ROWS, COLUMNS, axes=(0, 2), front=True), ((2, 2, 3),)),
    Sample(indexed("index", NONE, axes=(0,)), ((3, 2),)),
    Sample(indexed("index", NONE, axes=(0,)), ((0, 2),)),
]
DISTINCT = np.array([2, 0])
SAMPLES["index_assign"] = [
    Sample(indexed("index_assign", DISTINCT, axes=(0,)), ((3, 2), (2, 2))),
    Sample(indexed("index_assign", DISTINCT, COLUMNS[:2], axes=(0, 1)), ((3, 3), (1, 1))),
    Sample(indexed("index_assign", DISTINCT, axes=(0,)), ((3, 2), ())),
    Sample(indexed("index_assign", NONE, axes=(0,)), ((0, 2), (2,))),
]
SAMPLES["index_add"] = [
    Sample(indexed("index_add", ROWS, axes=(0,)), ((3, 2), (4, 2)), halves=False),
    Sample(indexed("index_add", ROWS, COLUMNS, axes=(0, 1)), ((3, 3), ()), halves=False),
    Sample(indexed("index_add", NONE, axes=(0,)), ((0, 2), (2,)), halves=False),
]
SAMPLES["take"] = [
    Sample(lambda x: _C.op("take")(x, tw.asarray(ROWS), axis=1), ((2, 3, 2),)),
    Sample(lambda x: _C.op("take")(x, tw.asarray([[0, 5], [-1, 0]]), axis=None), ((2, 3),)),
    Sample(lambda x: _C.op("take")(x, tw.asarray(NONE), axis=0), ((0, 2),)),
]
ALONG = np.array([[0, 0], [2, 1]])
SAMPLES["take_along_axis"] = [
    Sample(lambda x: _C.op("take_along_axis")(x, tw.asarray(ALONG)), (shape,)) for shape in ((2, 3), (1, 3))
] + [Sample(lambda x: _C.op("take_along_axis")(x, tw.asarray(ALONG[:0]), axis=0), ((0, 2),))]
REGION: Any = {"starts": (2, 1), "steps": (-2, 1), "sizes": (2, 2)}
SAMPLES["slice_assign"] = [
    Sample(call("slice_assign", **REGION), ((3, 4), (2, 2))),
    Sample(call("slice_assign", **REGION), ((3, 4), (1, 1, 2))),
    Sample(call("slice_assign", **REGION), ((3, 4), ())),
    Sample(call("slice_assign", starts=(0,), steps=(1,), sizes=(0,)), ((0,), (1,))),
]


def masked(name: str, mask: np.ndarray, **attributes: Any) -> Callable[..., Any]:
    operation = _C.op(name)
    return lambda *x: operation(*x, tw.asarray(mask), **attributes)


SAMPLES["mask_select"] = [
    Sample(masked("mask_select", CONDITION, count=4), ((2, 3),)),
    Sample(masked("mask_select", CONDITION[0], count=2), ((3, 2),)),
    Sample(masked("mask_select", np.array(True), count=1), ((),)),
    Sample(masked("mask_select", CONDITION[:0], count=0), ((0, 3),)),
]
SAMPLES["mask_assign"] = [
    Sample(masked("mask_assign", CONDITION), shapes)
    for shapes in (((2, 3), (2, 3)), ((2, 3), (1, 3)), ((2, 3), ()))
] + [Sample(masked("mask_assign", CONDITION[:0]), ((0, 3), (3,)))]
SAMPLES["mask_scatter"] = [
    Sample(masked("mask_scatter", CONDITION), ((2, 3), (4,))),
    Sample(masked("mask_scatter", CONDITION[0]), ((3, 2), (2, 2))),
    Sample(masked("mask_scatter", CONDITION[0]), ((3, 2), (2, 1))),
    Sample(masked("mask_scatter", CONDITION[:0]), ((0, 3), (0,))),
]
SAMPLES["sort"] = of_x(
    "sort",
    [((2, 4), {"descending": True}), ((1, 4), {"axis": 1}), ((3, 0), {}), ((0, 2), {"axis": 0})],
    **REAL,
)
SAMPLES["topk"] = of_x(
    "topk", [((2, 4), {"k": 2}), ((2, 4), {"k": 3, "largest": False}), ((0, 3), {"k": 2})], **REAL
)

# --- products, convolutions and norms

SAMPLES["matmul"] = [
    Sample(call("matmul"), shapes)
    for shapes in (
        *(((2, 3), (3, 2)), ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 2, 3), (3, 2))),
        *(((2, 1, 1, 3), (2, 3, 1)), ((0, 3), (3, 2)), ((2, 0), (0, 2)), ((0, 2, 3), (3, 2)), ((0,), (0,))),
    )
]
ONE: Any = {"stride": (2,), "padding": (1, 0), "dilation": (1,)}
TWO: Any = {"stride": (1, 2), "padding": (0, 1, 1, 0), "dilation": (1, 1)}
SAMPLES["conv1d"] = [
    Sample(call("conv1d", **ONE, groups=2), ((1, 2, 4), (2, 1, 2), (2,))),
    Sample(call("conv1d", **ONE), ((2, 3), (1, 2, 2))),
    Sample(call("conv1d", **ONE), ((0, 2, 3), (1, 2, 2), (1,))),
]
SAMPLES["conv2d"] = [
    Sample(call("conv2d", **TWO), ((1, 1, 3, 2), (2, 1, 2, 2), (2,))),
    Sample(call("conv2d", **TWO), ((1, 2, 2), (1, 1, 1, 2))),
    Sample(call("conv2d", **TWO), ((0, 1, 2, 2), (1, 1, 2, 2), (1,))),
]
for _name in ("softmax", "log_softmax"):
    SAMPLES[_name] = of_x(_name, [((2, 3), {}), ((3, 2), {"axis": 0}), ((0, 2), {}), ((2, 0), {})], **REAL)
SAMPLES["layer_norm"] = [
    Sample(call("layer_norm", axes=1, eps=1e-3), ((2, 3), (3,), (3,)), **REAL),
    Sample(call("layer_norm", axes=2, eps=1e-3), ((2, 2, 2),), **REAL),
    Sample(call("layer_norm", axes=1, eps=1e-3), ((0, 3), (3,), (3,)), **REAL),
]
SAMPLES["rms_norm"] = [
    Sample(call("rms_norm", axes=1, eps=1e-3), ((2, 3), (3,)), **REAL),
    Sample(call("rms_norm", axes=2, eps=1e-3), ((2, 2, 2),), **REAL),
    Sample(call("rms_norm", axes=1, eps=1e-3), ((0, 3), (3,)), **REAL),
]

# --- matrices: functions of the vectors that do not depend on their signs and phases

REGULAR = np.array([[[2.3, 0.4, -0.3], [0.2, 1.1, 0.5], [-0.6, 0.7, 3.4]]] * 2)


def symmetric(x: tw.Tensor) -> tw.Tensor:
    return x + tw.conj(x).mT


def definite(x: tw.Tensor) -> tw.Tensor:
    return x @ tw.conj(x).mT + 2 * tw.eye(x.shape[-1], dtype=x.dtype)


def linear(function: Callable[..., Any], *inputs: Any) -> Sample:
    return Sample(function, inputs, halves=False, broadcast_rank=3)  # equal rows make a singular matrix


def vectors(name: str, hermitian: bool) -> Callable[[tw.Tensor], Any]:
    def function(x: tw.Tensor) -> Any:
        values, columns = _C.op(name)(symmetric(x) if hermitian else x)
        weights = tw.asarray(np.arange(1.0, x.shape[-1] + 1))
        return values, tw.abs(columns), (columns * weights) @ tw.conj(columns).mT

    return function


def singular_vectors(full: bool) -> Callable[[tw.Tensor], Any]:
    def function(x: tw.Tensor) -> Any:
        u, s, vh = _C.op("svd")(x, full_matrices=full)
        u, vh = u[..., : s.shape[-1]], vh[..., : s.shape[-1], :]
        weights = tw.asarray(np.arange(1.0, s.shape[-1] + 1))
        return s, tw.abs(u), tw.abs(vh), (u * weights) @ vh

    return function


SQUARES = (REGULAR, (0, 2, 2), (0, 0))
TALL, WIDE = REGULAR[0][:, :2], REGULAR[:, :2]
SAMPLES |= {
    "inv": [linear(call("inv"), each) for each in SQUARES],
    "det": [linear(call("det"), each) for each in SQUARES],
    "slogdet": [linear(call("slogdet"), each) for each in SQUARES],
    "solve": [
        linear(call("solve"), REGULAR, (3, 2)),
        linear(call("solve"), REGULAR[0], (3,)),
        linear(call("solve"), (0, 2, 2), (2, 1)),
        linear(call("solve"), (0, 0), (0, 2)),
    ],
    "cholesky": [
        linear(lambda x, upper=upper: _C.op("cholesky")(definite(x), upper=upper), each)
        for upper in (False, True)
        for each in SQUARES
    ],
    "eigvalsh": [linear(lambda x: _C.op("eigvalsh")(symmetric(x)), each) for each in SQUARES],
    "eigh": [linear(vectors("eigh", hermitian=True), each) for each in SQUARES],
    "eigvals": [linear(call("eigvals"), each) for each in SQUARES],
    "eig": [linear(vectors("eig", hermitian=False), each) for each in SQUARES],
    "svdvals": [linear(call("svdvals"), each) for each in (TALL, WIDE, *SQUARES[1:])],
    "svd": [
        linear(singular_vectors(full), each) for full in (False, True) for each in (TALL, WIDE, *SQUARES[1:])
    ],
    "qr": [linear(call("qr"), each) for each in (TALL, WIDE, *SQUARES)]
    + [linear(call("qr", mode="complete"), WIDE)],
}

# --- Fourier transforms

SINGLE: Any = {"halves": False}
for _name in ("fft", "ifft", "irfft", "hfft", "rfft", "ihfft"):
    _options = {**SINGLE, **REAL} if _name in ("rfft", "ihfft") else SINGLE
    _cases = [((2, 3), {"n": 4, "axis": 0, "norm": "ortho"}), ((3,), {}), ((0, 2), {})]
    SAMPLES[_name] = of_x(_name, _cases, **_options)
for _name in ("fftn", "ifftn", "irfftn", "rfftn"):
    _options = {**SINGLE, **REAL} if _name == "rfftn" else SINGLE
    _cases = [((2, 3), {"s": (3, 2), "axes": (1, 0), "norm": "forward"}), ((0, 2), {"axes": (1,)})]
    SAMPLES[_name] = of_x(_name, _cases, **_options)

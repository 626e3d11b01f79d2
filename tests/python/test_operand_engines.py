# test_operand_engines.py: results and constants belong to the engine and the device of the operands.
from __future__ import annotations

import copy
import inspect
import operator
from types import SimpleNamespace

import numpy as np
import pytest
import thalweg as tw
from thalweg import _engines

pytestmark = pytest.mark.timeout(60)


def words(text):
    return text.split()


# Functions that take no tensor, or nothing of one but its dtype or its values.
WITHOUT_OPERANDS = set(
    words(
        """
        arange broadcast_shapes can_cast default_generator devices dtype dump_graph empty empty_cache engine
        exponential eye fft.fftfreq fft.rfftfreq finfo flush from_numpy get_num_threads
        get_printoptions iinfo integers is_grad_enabled is_inference_mode_enabled
        isdtype linspace manual_seed memory_stats normal num_threads on_sync
        ones printoptions rand randint randn record_graph reset_peak_memory result_type set_memory_limit
        set_num_threads set_printoptions stats sync_count synchronize uniform zeros
        """
    )
)
# It makes a tensor of the current engine of what any library holds, another engine's tensors included.
WITHOUT_OPERANDS.add("from_dlpack")

OF_FLOATS = words(
    """
    abs acos acosh all angle any argmax argmin argsort asarray asin asinh atan atanh ceil conj cos cosh
    count_nonzero cumprod cumsum cumulative_prod cumulative_sum diff erf erfc exp expm1 fft.fft
    fft.fftshift fft.hfft fft.ifft fft.ifftshift fft.ihfft fft.irfft fft.rfft flip floor gelu imag
    isfinite isinf isnan leaky_relu linalg.vector_norm log log10 log1p log2 log_softmax logsumexp max
    mean min negative nonzero ones_like positive prod real reciprocal relu round sigmoid sign signbit
    silu sin sinh softmax softplus sort sqrt square squeeze std sum tan tanh tensor trunc unique_all
    unique_counts unique_inverse unique_values unstack var zeros_like
    """
)
OF_TWO = words(
    """
    add allclose atan2 broadcast_arrays copysign divide equal floor_divide greater greater_equal hypot
    isclose isin less less_equal linalg.outer linalg.vecdot logaddexp logical_and logical_or logical_xor
    maximum meshgrid minimum mse_loss multiply nextafter not_equal pow remainder subtract vecdot
    binary_cross_entropy_with_logits kron
    """
)
OF_INTEGERS = words(
    """
    bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor
    """
)
OF_MATRIX = words(
    """
    diagonal fft.fftn fft.ifftn fft.irfftn fft.rfftn linalg.cholesky linalg.det linalg.diagonal
    linalg.eig linalg.eigh linalg.eigvals linalg.eigvalsh linalg.inv linalg.matrix_norm
    linalg.matrix_rank linalg.matrix_transpose linalg.pinv linalg.qr linalg.slogdet linalg.svd
    linalg.svdvals linalg.trace matrix_transpose transpose tril triu
    """
)


ONES = np.ones(6, np.float32)


def function(name):
    return operator.attrgetter(name)(tw)


def call_of(name, keys):
    """A call of a function with those of the operands."""
    called = function(name)
    return lambda o: called(*(getattr(o, key) for key in keys))


def seeded(name, *args, **kwargs):
    return function(name)(*args, **kwargs, generator=tw.Generator(7))


def pads(x):
    return [tw.pad(x, 2, mode) for mode in ("edge", "reflect", "symmetric", "wrap")]


# name: calls with operands from `operands`.
CALLS = {
    "asarray": [
        lambda o: tw.asarray([o.x[0], 1.0]),
        lambda o: tw.asarray([[0, 1], [2, o.i[0]], [np.int64(3), 4]]),
        lambda o: tw.asarray(o.x, dtype="int8", copy=True),
        lambda o: tw.asarray([o.x, o.x], dtype="float64"),
    ],
    "astype": [lambda o: tw.astype(o.x, "int8")],
    "avg_pool1d": [lambda o: tw.avg_pool1d(o.line, 3, padding=1, count_include_pad=False)],
    "avg_pool2d": [lambda o: tw.avg_pool2d(o.image, 3, padding=1, count_include_pad=False, ceil_mode=True)],
    "batch_norm": [
        lambda o: tw.batch_norm(o.image, training=True),
        lambda o: tw.batch_norm(o.image, o.x[:2], o.x[:2], o.x[:2], o.x[:2]),
    ],
    "bernoulli": [lambda o: seeded("bernoulli", o.x), lambda o: seeded("bernoulli", o.x, (3, 6))],
    "bitwise_invert": [lambda o: tw.bitwise_invert(o.i)],
    "broadcast_to": [lambda o: tw.broadcast_to(o.x, (2, 6))],
    "choice": [
        lambda o: seeded("choice", o.x, 3),
        lambda o: seeded("choice", o.x, 3, replace=False),
        lambda o: seeded("choice", o.x, 3, p=o.x),
        lambda o: seeded("choice", 6, 3, p=o.x, replace=False),
        lambda o: seeded("choice", o.x, 0),
    ],
    "clip": [lambda o: tw.clip(o.x, 0.2, np.float32(0.5)), lambda o: tw.clip(o.x, o.x, ONES)],
    "concat": [lambda o: tw.concat([ONES, o.x]), lambda o: tw.concat([o.x, o.x])],
    "conv1d": [lambda o: tw.conv1d(o.line, o.line[:, :, :3], padding=1, stride=2)],
    "conv2d": [
        lambda o: tw.conv2d(o.image, o.image[:, :, :3, :3], o.x[:1], padding="same"),
        lambda o: tw.conv2d(o.image, o.image[:, :, :3, :3], padding=2, dilation=2),
    ],
    "cross_entropy": [
        lambda o: tw.cross_entropy(o.m, o.i[:4], label_smoothing=0.1),
        lambda o: tw.cross_entropy(o.m, o.m, reduction="none"),
        lambda o: tw.cross_entropy(o.m, o.i[:4], o.m[0], label_smoothing=0.1),
    ],
    "cumulative_sum": [lambda o: tw.cumulative_sum(o.x, include_initial=True)],
    "cumulative_prod": [lambda o: tw.cumulative_prod(o.x, include_initial=True)],
    "diff": [lambda o: tw.diff(o.x, n=2, prepend=o.x[:1])],
    "dropout": [
        lambda o: seeded("dropout", o.x),
        lambda o: seeded("dropout", o.i, 0.3),
        lambda o: tw.dropout(o.x, 0),
    ],
    "einsum": [lambda o: tw.einsum("ij,jk->ik", o.m, o.m), lambda o: tw.einsum("ii->", o.m)],
    "embedding": [lambda o: tw.embedding(o.i % 4, o.m)],
    "empty_like": [lambda o: tw.full_like(tw.empty_like(o.x), 1), lambda o: tw.empty_like(o.x[:0])],
    "expand_dims": [lambda o: tw.expand_dims(o.x, axis=0)],
    "full": [lambda o: tw.full(3, o.x[0]), lambda o: tw.full((2, 3), o.i[0], dtype="float64")],
    "full_like": [lambda o: tw.full_like(o.x, 3), lambda o: tw.full_like(o.x, o.i[0])],
    "gamma": [lambda o: seeded("gamma", o.x), lambda o: seeded("gamma", o.x, (2, 6), 2.0)],
    "imag": [lambda o: tw.imag(o.z)],
    "angle": [lambda o: tw.angle(o.z)],
    "isin": [
        lambda o: tw.isin(o.i, 2),
        lambda o: tw.isin(2, o.i),
        lambda o: tw.isin(o.i, o.i[:0]),
        lambda o: tw.isin(o.z, o.z[:2], invert=True),
        lambda o: tw.isin(tw.astype(o.i, "uint64"), o.i),
    ],
    "layer_norm": [lambda o: tw.layer_norm(o.m, 4, o.x[:4], o.x[:4])],
    "linalg.cross": [lambda o: tw.linalg.cross(o.x[:3], o.x[3:])],
    "linalg.matmul": [lambda o: tw.linalg.matmul(o.m, o.m)],
    "linalg.matrix_norm": [lambda o: tw.linalg.matrix_norm(o.m, ord="nuc")],
    "linalg.matrix_power": [lambda o, n=n: tw.linalg.matrix_power(o.m, n) for n in (-2, 0, 3)],
    "linalg.qr": [lambda o: tw.linalg.qr(o.m, mode="complete")],
    "linalg.solve": [lambda o: tw.linalg.solve(o.m, o.m[:, :2])],
    "linalg.tensordot": [lambda o: tw.linalg.tensordot(o.m, o.m)],
    "logical_not": [lambda o: tw.logical_not(o.b)],
    "logsumexp": [lambda o: tw.logsumexp(o.m[:0], axis=0), lambda o: tw.logsumexp(o.m[:, :0], axis=0)],
    "masked_fill": [lambda o: tw.masked_fill(o.x, o.b, 0)],
    "matmul": [lambda o: tw.matmul(o.m, np.eye(4, dtype="float32"))],
    "max_pool1d": [lambda o: tw.max_pool1d(o.line, 3, padding=1)],
    "max_pool2d": [lambda o: tw.max_pool2d(o.image, 3, stride=2, padding=1, ceil_mode=True)],
    "moveaxis": [lambda o: tw.moveaxis(o.m, 0, 1)],
    "one_hot": [lambda o: tw.one_hot(o.i, 4), lambda o: tw.one_hot(o.i, 4, dtype="float16")],
    "ones_like": [lambda o: tw.ones_like(o.i, dtype="float64")],
    "pad": [lambda o: tw.pad(o.m, ((1, 2), (0, 1)), constant_values=2), lambda o: pads(o.x)],
    "permutation": [lambda o: seeded("permutation", o.x), lambda o: seeded("permutation", o.m, 1)],
    "permute_dims": [lambda o: tw.permute_dims(o.m, (1, 0))],
    "put_along_axis": [lambda o: tw.put_along_axis(o.m, o.i[:4].reshape(4, 1), 7.0, axis=1)],
    "repeat": [
        lambda o: tw.repeat(o.x, 2),
        lambda o: tw.repeat(o.x, o.i),
        lambda o: tw.repeat(o.m, [1, 0, 2, 1], axis=1),
        lambda o: tw.repeat(o.x[:0], []),
    ],
    "reshape": [lambda o: tw.reshape(o.x, (2, 3), copy=True)],
    "rms_norm": [lambda o: tw.rms_norm(o.m, 4, o.x[:4])],
    "roll": [lambda o: tw.roll(o.x, 2)],
    "scaled_dot_product_attention": [
        lambda o: tw.scaled_dot_product_attention(o.m, o.m, o.m, is_causal=True),
        lambda o: tw.scaled_dot_product_attention(o.m, o.m, o.m, o.m > 0.5),
        lambda o: seeded("scaled_dot_product_attention", o.m, o.m, o.m, dropout_p=0.5),
        lambda o: tw.scaled_dot_product_attention(*[tw.astype(o.m, "bfloat16")] * 3, is_causal=True),
    ],
    "searchsorted": [
        lambda o: tw.searchsorted(o.x, 0.5),
        lambda o: tw.searchsorted(o.x, o.x, sorter=o.order),
    ],
    "split": [lambda o: tw.split(o.x, 2)],
    "squeeze": [lambda o: tw.squeeze(o.line, axis=0)],
    "stack": [lambda o: tw.stack([o.x, ONES]), lambda o: tw.stack((o.x, o.x), axis=1)],
    "take": [
        lambda o: tw.take(o.x, o.i),
        lambda o: tw.take(o.x, [0, 2]),
        lambda o: tw.take(o.x, [np.int64(0), 2]),
        lambda o: tw.take(o.x, []),
        lambda o: tw.take(o.x, 1),
        lambda o: tw.take(o.x, np.array([1, 2])),
    ],
    "take_along_axis": [lambda o: tw.take_along_axis(o.x, o.i)],
    "tensordot": [lambda o: tw.tensordot(o.m, o.m, axes=1)],
    "tile": [lambda o: tw.tile(o.x, (2, 2))],
    "topk": [lambda o: tw.topk(o.x, 3)],
    "tril": [lambda o: tw.tril(o.m, k=-1), lambda o: tw.tril(o.m > 1)],
    "unique_all": [lambda o: tw.unique_all(o.z), lambda o: tw.unique_all(o.x[:0])],
    "unique_counts": [lambda o: tw.unique_counts(o.i)],
    "unique_inverse": [lambda o: tw.unique_inverse(o.b)],
    "where": [
        lambda o: tw.where(o.b, o.x, 0.0),
        lambda o: tw.where(np.array([True] * 6), o.x, o.x),
        lambda o: tw.where(o.b, 1, 2),
    ],
}  # fmt: skip
for names, arguments in ((OF_FLOATS, "x"), (OF_TWO, "xx"), (OF_INTEGERS, "ii"), (OF_MATRIX, "m")):
    for name in names:
        CALLS.setdefault(name, []).insert(0, call_of(name, arguments))


def changed(x, change):
    """A handle of its own after an in-place form."""
    result = x[...]
    change(result)
    return result


def with_item(x, key, value):
    return changed(x, lambda y: y.__setitem__(key, value))


OPERATORS = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow,
    operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge,
]  # fmt: skip
IN_PLACE = [operator.iadd, operator.isub, operator.imul, operator.itruediv, operator.ipow]
KEYS = [
    0, -1, slice(1, 4), ..., None, [0, 1], [], np.int64(1), np.array([0, 1]), np.array([True, False] * 3),
    [True, False] * 3, [np.int64(1), 2],
]  # fmt: skip

# Calls of methods, operators and indexing, by a name for the test's report.
MEMBERS = {
    **{
        f"{each.__name__} {type(other).__name__}": lambda o, f=each, y=other: [f(o.x, y), f(y, o.x)]
        for each in OPERATORS
        for other in (2, 0.5, np.float32(2), ONES)
    },
    **{
        f"{each.__name__} {type(other).__name__}": lambda o, f=each, y=other: f(o.x[...], y)
        for each in IN_PLACE
        for other in (2, 0.5, np.float32(2), ONES)
    },
    "matmul": lambda o: [o.m @ np.eye(4, dtype="float32"), np.eye(4, dtype="float32") @ o.m],
    "bits": lambda o: [o.i & 1, 1 | o.i, o.i ^ np.int64(1), o.i << 1, o.i >> 1, ~o.i],
    "unary": lambda o: [-o.x, +o.x, abs(o.x), round(o.x), *divmod(o.x, 2), *divmod(2, o.x)],
    "names in place": lambda o: [
        changed(o.x, lambda y, f=f: getattr(y, f)(2)) for f in ("add_", "sub_", "mul_", "div_")
    ],
    "properties": lambda o: [o.m.T, o.m.mT, o.z.real, o.z.imag, o.x.real, o.x.imag],
    "copies": lambda o: [copy.copy(o.x), copy.deepcopy(o.x), *o.x],
    "reductions": lambda o: [
        getattr(o.m, f)(axis=1)
        for f in ("sum", "prod", "mean", "max", "min", "any", "all", "var", "std", "argmax", "argmin")
    ],
    "shapes": lambda o: [
        o.m.reshape(2, 8), o.m.flatten(), o.m.transpose(1, 0), o.m.permute(1, 0), o.line.squeeze(0),
        o.m.expand_dims(0), o.x.broadcast_to((2, 6)),
    ],
    "methods": lambda o: [
        o.x.take([0, 1]), o.x.take(1), o.x.astype("int8"), o.x.clip(0.2, 0.5), o.x.to(o.x.device),
        o.x.to_device(o.x.device), o.x.recover(), o.x.wait(),
    ],
    "contains": lambda o: [tw.asarray(o.x)] if 0.5 not in o.x else [],
    **{f"getitem {key!r}": lambda o, key=key: o.x[key] for key in KEYS},
    **{f"setitem {key!r}": lambda o, key=key: with_item(o.x, key, np.float32(3)) for key in KEYS},
    "getitem tensors": lambda o: [o.x[o.i], o.x[o.b], o.m[o.i[:4], 1], o.m[1, [0, 1]], o.m[o.m > 1]],
    "setitem values": lambda o: [
        with_item(o.x, [0, 1], [3.0, 4.0]), with_item(o.x, o.b, 1), with_item(o.x, o.b, [1, 2, 3, 4]),
        with_item(o.x, slice(2), np.array([5.0, 6.0])), with_item(o.m, (slice(None), 0), o.x[:4]),
    ],
}  # fmt: skip


def operands(device):
    def of(array):
        return tw.asarray(array, device=device)

    rng = np.random.default_rng(7)
    square = rng.random((4, 4))
    return SimpleNamespace(
        x=of(np.linspace(0.1, 0.9, 6, dtype="float32")),
        i=of(np.array([1, 0, 2, 1, 3, 2])),
        order=of(np.arange(6)),
        b=of(np.array([True, False, True, True, False, True])),
        z=of(np.array([1 + 1j, 2, 1 + 1j, -3j, 0, 4])),
        m=of((square @ square.T + np.eye(4)).astype("float32")),
        line=of(rng.random((1, 2, 8), dtype="float32")),
        image=of(rng.random((1, 2, 8, 8), dtype="float32")),
    )


def tensors_in(result):
    if isinstance(result, (list, tuple)):
        return [tensor for each in result if each is not None for tensor in tensors_in(each)]
    assert isinstance(result, tw.Tensor)
    return [result]


def check_place(tensor, engine, device):
    """The tensor is of the engine: an operator takes it beside one of the engine's, which refuses others."""
    assert tensor.device == device
    with engine:
        own = tw.asarray(0, device=device)
    assert tw.equal(tensor, own).shape == tensor.shape


@pytest.fixture(scope="module")
def second_engine():
    engine = tw.Engine(cpu_devices=2, name="second")
    yield engine
    engine.close()


@pytest.fixture(scope="module", params=["cpu:0", "cpu:1"])
def second(request, second_engine):
    """Operands of another engine than the current one."""
    with second_engine:
        made = operands(request.param)
    return SimpleNamespace(engine=second_engine, device=request.param, operands=made)


@pytest.fixture(scope="module")
def expected_operands():
    return operands(None)


def check_call(call, second, expected_operands):
    results, expected = tensors_in(call(second.operands)), tensors_in(call(expected_operands))
    assert len(results) == len(expected)
    for result, wanted in zip(results, expected, strict=True):
        check_place(result, second.engine, second.device)
        assert result.dtype == wanted.dtype
        assert result.shape == wanted.shape
        np.testing.assert_array_equal(result.numpy(), wanted.numpy())
    with second.engine:
        for result in tensors_in(call(second.operands)):
            check_place(result, second.engine, second.device)


@pytest.mark.parametrize("name", sorted(CALLS))
def test_functions_follow_their_operands(name, second, expected_operands):
    for call in CALLS[name]:
        check_call(call, second, expected_operands)


@pytest.mark.parametrize("name", MEMBERS)
def test_members_follow_their_tensor(name, second, expected_operands):
    check_call(MEMBERS[name], second, expected_operands)


def test_every_public_function_is_listed():
    public = {
        prefix + name
        for prefix, module in (("", tw), ("linalg.", tw.linalg), ("fft.", tw.fft))
        for name in module.__all__
        if callable(getattr(module, name)) and not inspect.isclass(getattr(module, name))
    }
    assert public == set(CALLS) | WITHOUT_OPERANDS
    assert not WITHOUT_OPERANDS & set(CALLS)


def test_what_has_no_operands_is_made_in_the_current_engine(second_engine):
    with second_engine:
        size, source = tw.asarray(3), tw.asarray([1.0, 2.0])
    made = [tw.arange(size), tw.zeros(3), tw.linspace(0, size, 3), tw.rand(2), tw.from_dlpack(source)]
    for tensor in made:
        check_place(tensor, tw.engine(), "cpu:0")


def test_tensors_of_the_default_engine_stay_there_in_a_block(second_engine):
    default = tw.engine()
    x = tw.ones((3, 3))
    with second_engine:
        for result in (tw.triu(x), tw.zeros_like(x), tw.pad(x, 1), tw.asarray([x, x])):
            check_place(result, default, "cpu:0")
        assert tw.engine() is second_engine


def test_operands_of_two_engines_raise(second_engine):
    x = tw.ones(3)
    with second_engine:
        y = tw.asarray([0, 1, 1])
    for call in (
        lambda: tw.isin(x, y),
        lambda: tw.repeat(y, tw.asarray([1, 2, 3])),
        lambda: tw.full_like(x, y[0]),
        lambda: tw.asarray([x, y]),
        lambda: tw.choice(x, p=tw.astype(y, "float32")),
    ):
        with pytest.raises(tw.EngineError, match="another engine"):
            call()


def test_a_call_that_moves_draws_once(second_engine):
    with second_engine:
        x = tw.ones(8)
    generator = tw.Generator(7)
    tw.dropout(x, generator=generator)
    once = generator.counter
    tw.dropout(tw.ones(8), generator=generator)
    assert generator.counter == 2 * once


def test_to_ask_for_the_engine_issues_nothing(second_engine):
    with tw.Engine() as engine:
        x = tw.ones(3).wait()
        before = engine.stats()
    with second_engine:
        assert _engines.elsewhere(x) is not None
    with engine:
        assert _engines.elsewhere(x) is None
    assert _engines.elsewhere(2.0) is None
    assert engine.stats() == before
    assert engine.close() == []
    assert _engines.elsewhere(x) is None, "no operator takes a tensor of a closed engine"
    with pytest.raises(tw.EngineError, match="engine"):
        tw.triu(tw.reshape(x, (1, 3)))


def test_failures_are_not_waited_for():
    """A constant beside a tensor does not depend on its value."""
    engine = tw.Engine(test_operators=True, mode="threaded")
    with engine:
        gated = tw._C.op("test_fail")(tw.ones(3), message="later")
    assert tw.zeros_like(gated).tolist() == [0.0] * 3
    assert tw.one_hot(tw.zeros_like(gated, dtype="int64"), 1).tolist() == [[1]] * 3
    engine.close()

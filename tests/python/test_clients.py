# test_clients.py: what libraries for the array API standard compute on NumPy arrays they compute on tensors.
"""SciPy, scikit-learn, einops, opt_einsum and array_api_extra, none of which knows thalweg.

A client gives tensors where it gives arrays for arrays, with the same dtype and values, and Python numbers
where it promises those.
"""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import thalweg as tw
from conftest import FLOATS, check
from thalweg import _einops

# Sums in another order, and functions whose last bits differ.
TOLERANCES = {"float32": 2e-5, "float64": 1e-11}


def client(name: str) -> Any:
    package = name.split(".")[0]
    pytest.importorskip(package, reason=f"{package} is not installed: tools/requirements.txt lists it")
    return importlib.import_module(name)


@pytest.fixture(scope="module", autouse=True)
def _array_api_mode():
    """SciPy reads the variable when it is imported, scikit-learn when its dispatch is switched on. So the
    clients are imported in the tests, and no other file sees the variable."""
    if "scipy" in sys.modules:
        pytest.fail("SciPy was imported before SCIPY_ARRAY_API was set; import it in a subprocess elsewhere")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SCIPY_ARRAY_API", "1")
        yield


@pytest.fixture
def sklearn() -> Any:
    """scikit-learn with what the tests use of it, its dispatch switched on."""
    package = client("sklearn")
    for name in ("decomposition", "discriminant_analysis", "linear_model", "metrics", "model_selection"):
        client(f"sklearn.{name}")
    for name in ("naive_bayes", "pipeline", "preprocessing"):
        client(f"sklearn.{name}")
    with package.config_context(array_api_dispatch=True):
        yield package


def leaves(result: Any) -> Iterator[Any]:
    if isinstance(result, (tuple, list)):
        for each in result:
            yield from leaves(each)
    else:
        yield result


def compare(call, *arrays: np.ndarray, tolerance: float) -> None:
    """call(xp, *arrays) gives the same with NumPy and with thalweg."""
    expected = list(leaves(call(np, *(array.copy() for array in arrays))))
    found = list(leaves(call(tw, *(tw.asarray(array) for array in arrays))))
    assert len(found) == len(expected) > 0
    for one, wanted in zip(found, expected, strict=True):
        if isinstance(wanted, (np.ndarray, np.generic)):
            assert type(one) is tw.Tensor
            scale = np.max(np.abs(wanted), initial=0.0, where=np.isfinite(wanted))
            check(one, wanted, rtol=tolerance, atol=float(tolerance * scale))
        else:
            assert type(one) is type(wanted)
            # Python numbers come out of means, which thalweg takes of integers in float32.
            assert one == (pytest.approx(wanted, rel=1e-5) if isinstance(wanted, float) else wanted)


def data(dtype: str, *shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def outcome(result: Any) -> tuple[Any, Any]:
    return result.statistic, result.pvalue


# Of the module f, for two arrays of shape (5, 8).
SCIPY = {
    "scipy.special": {
        "logsumexp": lambda xp, f, x, y: (f.logsumexp(x), f.logsumexp(x, axis=1, keepdims=True)),
        "logsumexp_of_weights": lambda xp, f, x, y: f.logsumexp(x, b=y, axis=0, return_sign=True),
        "softmax": lambda xp, f, x, y: (f.softmax(x, axis=1), f.log_softmax(x, axis=0)),
        "entr": lambda xp, f, x, y: (f.entr(xp.abs(x)), f.entr(x)),
        "rel_entr": lambda xp, f, x, y: (f.rel_entr(xp.abs(x), xp.abs(y)), f.rel_entr(x, y)),
        "kl_div": lambda xp, f, x, y: f.kl_div(xp.abs(x), xp.abs(y)),
        "xlogy": lambda xp, f, x, y: f.xlogy(x, xp.abs(y)),
        "erf": lambda xp, f, x, y: (f.erf(x), f.erfc(x), f.ndtr(x), f.expit(x)),
        "gammaln": lambda xp, f, x, y: f.gammaln(xp.abs(x) + 1),
    },
    "scipy.stats": {
        "zscore": lambda xp, f, x, y: (f.zscore(x), f.zscore(x, axis=1, ddof=1), f.zmap(x, y)),
        "pearsonr": lambda xp, f, x, y: outcome(f.pearsonr(x, y, axis=1)),
        "pearsonr_interval": lambda xp, f, x, y: tuple(f.pearsonr(x, y, axis=1).confidence_interval()),
        "describe": lambda xp, f, x, y: tuple(f.describe(x, axis=0)),
        "entropy": lambda xp, f, x, y: f.entropy(xp.abs(x), axis=0),
        "entropy_of_two": lambda xp, f, x, y: f.entropy(xp.abs(x), xp.abs(y), base=2, axis=1),
        "ttest_ind": lambda xp, f, x, y: (*outcome(f.ttest_ind(x, y, axis=1)), f.ttest_ind(x, y).df),
        "ttest_ind_interval": lambda xp, f, x, y: tuple(f.ttest_ind(x, y).confidence_interval()),
        "ttest_of_unequal_variances": lambda xp, f, x, y: outcome(
            f.ttest_ind(x, y, equal_var=False, alternative="less")
        ),
        "moments": lambda xp, f, x, y: (f.skew(x), f.kurtosis(x, axis=1), f.moment(x, 3), f.sem(x)),
        "means": lambda xp, f, x, y: (f.gmean(xp.abs(x)), f.hmean(xp.abs(x)), f.circmean(x)),
        "cramervonmises": lambda xp, f, x, y: outcome(
            f.cramervonmises(x[0, :], lambda values: 1 / (1 + xp.exp(-values)))
        ),
    },
    "scipy.signal": {
        "hilbert": lambda xp, f, x, y: (f.hilbert(x), f.hilbert(x, N=8, axis=0)),
        "detrend": lambda xp, f, x, y: (f.detrend(x, axis=1), f.detrend(x, axis=0, type="constant")),
        "detrend_of_pieces": lambda xp, f, x, y: f.detrend(x, bp=xp.asarray([3])),
        "convolve": lambda xp, f, x, y: (f.fftconvolve(x, y, mode="same"), f.convolve(x, y)),
        "resample": lambda xp, f, x, y: f.resample(x, 9, axis=1),
    },
    "scipy.cluster.vq": {
        "whiten": lambda xp, f, x, y: f.whiten(x),
        "vq": lambda xp, f, x, y: f.vq(x, y[:2, :]),
    },
    "scipy.ndimage": {
        "gaussian_filter": lambda xp, f, x, y: f.gaussian_filter(x, 1.5),
        "sobel": lambda xp, f, x, y: f.sobel(x),
        "median_filter": lambda xp, f, x, y: f.median_filter(x, 3),
        "label": lambda xp, f, x, y: f.label(x > 0),
        "shift": lambda xp, f, x, y: f.shift(x, 1.5),
    },
    "scipy.fft": {
        "fft": lambda xp, f, x, y: (f.rfft(x), f.ifft2(x), f.fftshift(x, axes=1)),
        "dct": lambda xp, f, x, y: f.dct(x),
    },
    "scipy.integrate": {
        "trapezoid": lambda xp, f, x, y: f.trapezoid(x, y, axis=0),
        "tanhsinh": lambda xp, f, x, y: f.tanhsinh(lambda t: xp.exp(-t * t), x, x + 1).integral,
    },
    "scipy.spatial.transform": {
        # Of NumPy's float32 arrays, and only of those, SciPy makes float64.
        "Rotation": lambda xp, f, x, y: f.Rotation.from_rotvec(xp.astype(x[:, :3], xp.float64)).as_matrix(),
    },
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("module", "name"), [(module, name) for module, calls in SCIPY.items() for name in calls]
)
def test_scipy(module, name, dtype):
    functions, call = client(module), SCIPY[module][name]
    x, y = data(dtype, 5, 8), data(dtype, 5, 8, seed=1)
    compare(lambda xp, *arrays: call(xp, functions, *arrays), x, y, tolerance=TOLERANCES[dtype])


# Clients that write into a view in order to change its base. README.md names them.
changes_its_base = pytest.mark.xfail(
    strict=True, reason="writing to a view of a tensor never changes its base"
)


@changes_its_base
def test_oaconvolve():
    signal = client("scipy.signal")
    x, y = data("float64", 50), data("float64", 7, seed=1)
    compare(lambda xp, x, y: signal.oaconvolve(x, y), x, y, tolerance=1e-12)


@changes_its_base
@pytest.mark.parametrize("name", ["tanhsinh", "nsum"])
def test_infinite_limits(name):
    call = getattr(client("scipy.integrate"), name)
    assert call(lambda t: t**-2, tw.asarray(1.0), tw.asarray(float("inf"))).success


@changes_its_base
def test_gaussian_mixture(sklearn):
    # Of points on a line, whose covariance is singular without what is added to its diagonal.
    x = np.outer(np.linspace(-1, 1, 20), [1.0, 1.0])
    mixture = client("sklearn.mixture").GaussianMixture(1, reg_covar=0.5, init_params="random_from_data")
    compare(lambda xp, x: mixture.fit(x).covariances_, x, tolerance=1e-10)


def fitted(estimator: Any, *names: str) -> tuple[Any, ...]:
    return tuple(getattr(estimator, name) for name in names)


def pca(f, x):
    model = f.decomposition.PCA(3, svd_solver="full").fit(x)
    names = ("components_", "explained_variance_", "explained_variance_ratio_", "singular_values_", "mean_")
    reduced = model.transform(x)
    return reduced, model.inverse_transform(reduced), model.get_covariance(), *fitted(model, *names)


def ridge(f, x, target):
    model = f.linear_model.Ridge(alpha=0.5, solver="svd").fit(x, target)
    return model.predict(x), model.coef_, model.intercept_, model.score(x, target)


def discriminants(f, x, labels):
    model = f.discriminant_analysis.LinearDiscriminantAnalysis().fit(x, labels)
    names = ("coef_", "intercept_", "classes_", "means_", "priors_")
    return model.predict(x), model.predict_proba(x), model.decision_function(x), *fitted(model, *names)


def naive_bayes(f, x, labels):
    model = f.naive_bayes.GaussianNB().fit(x, labels)
    return model.predict(x), model.predict_proba(x), *fitted(model, "theta_", "var_", "class_count_")


def standard_scaler(f, x):
    model = f.preprocessing.StandardScaler().fit(x)
    scaled = model.transform(x)
    return scaled, model.inverse_transform(scaled), *fitted(model, "mean_", "var_", "scale_")


def min_max_scaler(f, x):
    model = f.preprocessing.MinMaxScaler((-1, 1)).fit(x)
    scaled = model.transform(x)
    return scaled, model.inverse_transform(scaled), *fitted(model, "min_", "scale_", "data_min_", "data_max_")


def pipeline(f, x, labels):
    steps = f.preprocessing.StandardScaler(), f.decomposition.PCA(2, svd_solver="full")
    model = f.pipeline.make_pipeline(*steps, f.discriminant_analysis.LinearDiscriminantAnalysis())
    return model.fit(x, labels).predict_proba(x)


def scores_of_labels(f, labels):
    others = labels[::-1]
    return f.accuracy_score(labels, others), f.accuracy_score(labels, others, normalize=False)


def scores_of_numbers(f, x, target, other):
    several = f.r2_score(x, x * 0.5, multioutput="raw_values")
    return f.r2_score(target, other), several, f.mean_squared_error(target, other)


# x of shape (60, 5), a target that is linear in it and one nearby, and labels 0, 1 and 2.
SKLEARN = {
    "PCA": lambda f, x, target, near, labels: pca(f, x),
    "Ridge": lambda f, x, target, near, labels: ridge(f, x, target),
    "LinearDiscriminantAnalysis": lambda f, x, target, near, labels: discriminants(f, x, labels),
    "GaussianNB": lambda f, x, target, near, labels: naive_bayes(f, x, labels),
    "StandardScaler": lambda f, x, target, near, labels: standard_scaler(f, x),
    "MinMaxScaler": lambda f, x, target, near, labels: min_max_scaler(f, x),
    "pipeline": lambda f, x, target, near, labels: pipeline(f, x, labels),
    "train_test_split": lambda f, x, target, near, labels: f.model_selection.train_test_split(
        x, labels, random_state=0, stratify=labels
    ),
    "accuracy_score": lambda f, x, target, near, labels: scores_of_labels(f.metrics, labels),
    "r2_score": lambda f, x, target, near, labels: scores_of_numbers(f.metrics, x, target, near),
    "rbf_kernel": lambda f, x, target, near, labels: f.metrics.pairwise.rbf_kernel(x, x[:7, :]),
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", SKLEARN)
def test_sklearn(name, dtype, sklearn):
    x = data(dtype, 60, 5)
    labels = np.arange(60) % 3
    x[:, 0] += labels
    target = (x @ data(dtype, 5, seed=1)).astype(dtype)
    near = target + data(dtype, 60, seed=2) / 10
    # Decompositions are exact to some units in the last place of the largest singular value.
    tolerance = {"float32": 2e-4, "float64": 1e-10}[dtype]
    call = SKLEARN[name]
    compare(lambda xp, *arrays: call(sklearn, *arrays), x, target, near, labels, tolerance=tolerance)


EINOPS = {
    "permute": lambda f, x: f.rearrange(x, "a b c -> c a b"),
    "split_and_join": lambda f, x: f.rearrange(x, "a (b1 b2) c -> b1 (a c) b2", b1=2),
    "ellipsis": lambda f, x: f.rearrange(x, "a ... -> ... 1 a"),
    "nothing": lambda f, x: f.rearrange(x, "a b c -> a b c"),
    "list": lambda f, x: f.rearrange([x[0], x[1]], "n h w -> h (n w)"),
    "sum": lambda f, x: f.reduce(x, "a b (c1 c2) -> c1 a", "sum", c1=2),
    "mean": lambda f, x: f.reduce(x, "a b c -> b", "mean"),
    "max": lambda f, x: f.reduce(x, "a b c -> a c", "max"),
    "min": lambda f, x: f.reduce(x, "a b c -> ", "min"),
    "prod": lambda f, x: f.reduce(x, "a b c -> a 1 c", "prod"),
    "any": lambda f, x: f.reduce(x > 1, "a b c -> b", "any"),
    "all": lambda f, x: f.reduce(x < 1, "a b c -> b c", "all"),
    "repeat": lambda f, x: f.repeat(x, "a b c -> (2 a) r b (c 3)", r=2),
    "pack": lambda f, x: f.pack([x, x[:, :, 0]], "a *"),
    "unpack": lambda f, x: f.unpack(x.reshape(4, 48), [(6, 4), (24,)], "a *"),
    "asnumpy": lambda f, x: f.asnumpy(x).tolist(),
}


@pytest.mark.parametrize("module", ["einops", "einops.array_api"])
@pytest.mark.parametrize("name", EINOPS)
def test_einops(module, name):
    functions = client(module)
    compare(lambda xp, x: EINOPS[name](functions, x), data("float32", 4, 6, 8), tolerance=1e-6)


def test_einops_of_names():
    einops = client("einops")
    x, y = data("float64", 3, 4, 5), data("float64", 3, 6, 5, seed=1)
    compare(
        lambda xp, x, y: einops.einsum(x, y, "batch row k, batch column k -> batch column row"),
        x,
        y,
        tolerance=1e-12,
    )
    compare(lambda xp, x: tuple(einops.parse_shape(x, "a _ c").values()), x, tolerance=0)
    compare(
        lambda xp, x: einops.reduce(x, "a b c -> a", lambda t, axes: t.sum(axis=axes)), x, tolerance=1e-12
    )
    with pytest.raises(NotImplementedError, match="non-floating"):
        einops.reduce(tw.arange(6), "(a b) -> a", "mean", a=2)


def test_einops_makes_views_and_does_not_wait():
    einops = client("einops")
    x = tw.arange(6).reshape(2, 3)
    reads = tw.sync_count()
    assert einops.repeat(x, "a b -> a 4 b").strides == (24, 0, 8)
    einops.reduce(x, "a b -> b", "sum")
    assert tw.sync_count() == reads


@pytest.mark.parametrize("first", ["einops", "thalweg"])
def test_einops_and_thalweg_in_either_order(first):
    client("einops")
    second = {"einops": "thalweg", "thalweg": "einops"}[first]
    program = f"""
import {first}
import {second}
import inspect
assert isinstance(einops.rearrange(thalweg.ones((2, 3)), "a b -> b a"), thalweg.Tensor)
assert "AbstractBackend" in inspect.getsource(einops._backends)
assert einops._backends.__loader__ is einops._backends.__spec__.loader
assert "thalweg" not in type(einops._backends.__loader__).__module__
print("done")
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert ran.stdout == "done\n", ran.stderr


def test_what_einops_does_not_have_is_not_made_up():
    before = list(_einops._backends)
    _einops.register(ModuleType("einops._backends"))
    assert _einops._backends == before
    assert _einops._Finder().find_spec("einops._backends", path=[]) is None
    assert _einops._Finder().find_spec("einops") is None


CONTRACTIONS = ["abc,adc->bd", "abc,abc->", "ab,bc,cd->ad", "aab->b", "a,b->ab", "abc->ca", "ab,bc,ca->"]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "complex128"])
@pytest.mark.parametrize("subscripts", CONTRACTIONS)
def test_opt_einsum(subscripts, dtype):
    opt_einsum = client("opt_einsum")
    sizes = {"a": 4, "b": 5, "c": 6, "d": 3}
    shapes = [tuple(sizes[label] for label in term) for term in subscripts.split("->")[0].split(",")]
    arrays = [(4 * data("float64", *shape, seed=i)).astype(dtype) for i, shape in enumerate(shapes)]
    tolerance = {"float32": 1e-5, "int64": 0}.get(dtype, 1e-12)
    compare(lambda xp, *x: opt_einsum.contract(subscripts, *x), *arrays, tolerance=tolerance)
    compare(
        lambda xp, *x: opt_einsum.contract_expression(subscripts, *shapes)(*x), *arrays, tolerance=tolerance
    )


def at_keeps_its_argument(xp, f, x):
    changed = f.at(x)[0, :].set(5, copy=True)
    return changed, x


EXTRA = {
    "at_set": lambda xp, f, x: f.at(x)[0, :].set(5),
    "at_copy": at_keeps_its_argument,
    "at_mask": lambda xp, f, x: f.at(x, x > 0).set(0),
    "at_in_place": lambda xp, f, x: f.at(x)[:, 1].add(2, copy=False),
    "at_add": lambda xp, f, x: f.at(x)[1:3, ...].add(2),
    "at_multiply": lambda xp, f, x: f.at(x)[1:3, ::2].multiply(x[1:3, ::2]),
    "at_power": lambda xp, f, x: f.at(x)[:, 0].power(2),
    "at_min": lambda xp, f, x: f.at(f.at(x)[:, 0].min(0))[:, 1].max(0),
    "cov": lambda xp, f, x: f.cov(x),
    "kron": lambda xp, f, x: f.kron(x, x[:2, :]),
    "nunique": lambda xp, f, x: f.nunique(xp.round(x)),
    "one_hot": lambda xp, f, x: f.one_hot(xp.asarray([0, 3, 1]), 4, dtype=x.dtype),
    "one_hot_axis": lambda xp, f, x: f.one_hot(xp.asarray([[0, 3, 1]]), 4, axis=0, dtype=xp.int64),
    "create_diagonal": lambda xp, f, x: f.create_diagonal(x[0, :], offset=1),
    "apply_where": lambda xp, f, x: f.apply_where(x > 0, x, xp.log, fill_value=-1),
    "isclose": lambda xp, f, x: f.isclose(x, x + 1e-9),
    "nan_to_num": lambda xp, f, x: f.nan_to_num(xp.log(x), fill_value=3.0),
    "pad": lambda xp, f, x: f.pad(x, ((1, 2), (0, 1)), constant_values=2),
    "sinc": lambda xp, f, x: f.sinc(x),
    "setdiff1d": lambda xp, f, x: f.setdiff1d(xp.asarray([1, 2, 3, 4]), xp.asarray([2, 9])),
    "angle": lambda xp, f, x: f.angle(xp.asarray([1 + 2j, -1j, 0j], dtype=xp.complex64)),
    "lazy_apply": lambda xp, f, x: f.lazy_apply(np.sin, x, shape=x.shape, dtype=x.dtype, as_numpy=True),
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", EXTRA)
def test_array_api_extra(name, dtype):
    functions = client("array_api_extra")
    tolerance = {"float32": 1e-6, "float64": 1e-14}[dtype]
    compare(lambda xp, x: EXTRA[name](xp, functions, x), data(dtype, 4, 6), tolerance=tolerance)

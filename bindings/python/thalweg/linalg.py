# linalg.py: the linear algebra extension of the array API standard.
"""Linear algebra: the `linalg` extension of the array API standard, revision 2025.12.

The last two axes of a tensor are matrices, those in front of them a batch. No function waits. What has no
inverse or no such decomposition raises LinAlgError where the result is read.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Literal, NamedTuple

from thalweg import _C
from thalweg._C import LinAlgError, op
from thalweg._engines import elsewhere, entered
from thalweg._inspection import finfo
from thalweg._linear_algebra import matmul, matrix_transpose, tensordot, vecdot
from thalweg._operations import axis_of, documented, halves_in_float32, require_tensor
from thalweg._typing import Any, Axis, DTypeLike, Tensor

_abs = op("abs")
_astype = op("astype")
_broadcast_to = op("broadcast_to")
_cholesky = op("cholesky")
_concat = op("concat")
_conj = op("conj")
_count_nonzero = op("count_nonzero")
_det = op("det")
_diagonal = op("diagonal")
_divide = op("divide")
_eig = op("eig")
_eigh = op("eigh")
_eigvals = op("eigvals")
_eigvalsh = op("eigvalsh")
_equal = op("equal")
_expand_dims = op("expand_dims")
_eye = op("eye")
_greater = op("greater")
_inv = op("inv")
_max = op("max")
_min = op("min")
_multiply = op("multiply")
_pow = op("pow")
_qr = op("qr")
_slogdet = op("slogdet")
_solve = op("solve")
_sqrt = op("sqrt")
_subtract = op("subtract")
_sum = op("sum")
_svd = op("svd")
_svdvals = op("svdvals")
_where = op("where")


class EighResult(NamedTuple):
    """What eigh returns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class EigResult(NamedTuple):
    """What eig returns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class QRResult(NamedTuple):
    """What qr returns."""

    Q: Tensor
    R: Tensor


class SlogdetResult(NamedTuple):
    """What slogdet returns."""

    sign: Tensor
    logabsdet: Tensor


class SVDResult(NamedTuple):
    """What svd returns."""

    U: Tensor
    S: Tensor
    Vh: Tensor


@documented(_cholesky)
def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """>>> tw.linalg.cholesky(tw.asarray([[4.0, 2.0], [2.0, 5.0]]))
    tensor([[2., 0.],
            [1., 2.]])
    """
    return _cholesky(require_tensor("cholesky", x), upper=upper)


@documented(_det)
def det(x: Tensor, /) -> Tensor:
    """>>> tw.linalg.det(tw.asarray([[0.3, 0.1], [0.2, 0.4]]))
    tensor(0.1000)
    """
    return _det(require_tensor("det", x))


@documented(_slogdet)
def slogdet(x: Tensor, /) -> SlogdetResult:
    """Returns a named tuple (sign, logabsdet).

    >>> sign, logabsdet = tw.linalg.slogdet(1e-30 * tw.eye(2))  # det would underflow to 0
    >>> sign, logabsdet
    (tensor(1.), tensor(-138.1551))
    """
    return SlogdetResult(*_slogdet(require_tensor("slogdet", x)))


@documented(_inv)
def inv(x: Tensor, /) -> Tensor:
    """>>> tw.linalg.inv(tw.asarray([[2.0, 1.0], [1.0, 1.0]]))
    tensor([[ 1., -1.],
            [-1.,  2.]])
    >>> tw.linalg.inv(tw.zeros((2, 2))).wait()
    Traceback (most recent call last):
        ...
    thalweg.linalg.LinAlgError: inv failed on ...
    """
    return _inv(require_tensor("inv", x))


@documented(_solve)
def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """>>> a, b = tw.asarray([[2.0, 0.0], [1.0, 1.0]]), tw.asarray([2.0, 3.0])
    >>> tw.linalg.solve(a, b)
    tensor([1., 2.])
    """
    return _solve(require_tensor("solve", x1), require_tensor("solve", x2))


@documented(_qr)
def qr(x: Tensor, /, *, mode: Literal["reduced", "complete"] = "reduced") -> QRResult:
    """Returns a named tuple (Q, R).

    >>> q, r = tw.linalg.qr(tw.asarray([[1.0, 2.0], [1.0, 0.0]]))
    >>> tw.abs(r)
    tensor([[1.4142, 1.4142],
            [0.0000, 1.4142]])
    """
    return QRResult(*_qr(require_tensor("qr", x), mode=mode))


@documented(_svd)
def svd(x: Tensor, /, *, full_matrices: bool = True) -> SVDResult:
    """Returns a named tuple (U, S, Vh).

    >>> u, s, vh = tw.linalg.svd(tw.asarray([[1.0, 2.0], [3.0, 4.0]]))
    >>> s
    tensor([5.4650, 0.3660])
    >>> tw.round(u * s @ vh)
    tensor([[1., 2.],
            [3., 4.]])
    """
    return SVDResult(*_svd(require_tensor("svd", x), full_matrices=full_matrices))


@documented(_svdvals)
def svdvals(x: Tensor, /) -> Tensor:
    """>>> tw.linalg.svdvals(tw.asarray([[3.0, 0.0], [4.0, 5.0]]))
    tensor([6.7082, 2.2361])
    """
    return _svdvals(require_tensor("svdvals", x))


@documented(_eigh)
def eigh(x: Tensor, /) -> EighResult:
    """Returns a named tuple (eigenvalues, eigenvectors).

    >>> x = tw.asarray([[2.0, 1.0], [1.0, 1.0]])
    >>> values, vectors = tw.linalg.eigh(x)
    >>> values, tw.max(tw.abs(x @ vectors - values * vectors)) < 1e-6
    (tensor([0.3820, 2.6180]), tensor(True))
    """
    return EighResult(*_eigh(require_tensor("eigh", x)))


@documented(_eigvalsh)
def eigvalsh(x: Tensor, /) -> Tensor:
    """>>> tw.linalg.eigvalsh(tw.asarray([[2.0, 1.0], [1.0, 1.0]]))
    tensor([0.3820, 2.6180])
    """
    return _eigvalsh(require_tensor("eigvalsh", x))


@documented(_eig)
def eig(x: Tensor, /) -> EigResult:
    """Returns a named tuple (eigenvalues, eigenvectors).

    >>> values, vectors = tw.linalg.eig(tw.asarray([[0.0, -1.0], [1.0, 0.0]]))  # a quarter turn
    >>> values
    tensor([0.+1.j, 0.-1.j])
    """
    return EigResult(*_eig(require_tensor("eig", x)))


@documented(_eigvals)
def eigvals(x: Tensor, /) -> Tensor:
    """>>> tw.linalg.eigvals(tw.asarray([[0.0, -1.0], [1.0, 0.0]]))  # a quarter turn
    tensor([0.+1.j, 0.-1.j])
    """
    return _eigvals(require_tensor("eigvals", x))


def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """The diagonals of the matrices in the last two axes, as the last axis of the result.

    offset: above (> 0) or below (< 0) the main diagonal; one outside the matrix is empty. Shares x's bytes.
    Raises ShapeError below 2 dimensions. Array API standard, linear algebra extension.

    >>> tw.linalg.diagonal(tw.reshape(tw.arange(9), (3, 3)), offset=-1)
    tensor([3, 7])
    """
    _require_matrices("diagonal", x)
    return _diagonal(x, offset=offset, axis1=-2, axis2=-1)


def trace(x: Tensor, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> Tensor:
    """The sums of the diagonals of the matrices in the last two axes.

    offset: as in diagonal. dtype: the result's, in which the sum is taken; by default x's, or for integers
    and bool the 64-bit integer that sum gives. Raises ShapeError below 2 dimensions. Array API standard,
    linear algebra extension.

    >>> tw.linalg.trace(tw.reshape(tw.arange(9), (3, 3)))
    tensor(12)
    """
    _require_matrices("trace", x)
    return _sum(_diagonal(x, offset=offset, axis1=-2, axis2=-1), axis=-1, dtype=dtype)


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The products of each element of x1 with each of x2, of shape (N, M) for N and M elements.

    Dtypes are promoted. Raises ShapeError unless both have 1 dimension. Array API standard, linear algebra
    extension.

    >>> tw.linalg.outer(tw.asarray([1, 2]), tw.asarray([1, 10, 100]))
    tensor([[  1,  10, 100],
            [  2,  20, 200]])
    """
    for x in (x1, x2):
        if require_tensor("outer", x).ndim != 1:
            raise _C.ShapeError(f"outer: x1 and x2 must have 1 dimension, shape {x.shape} has {x.ndim}")
    return _multiply(_expand_dims(x1, axis=-1), x2)


@halves_in_float32
def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The cross products of the vectors of 3 elements along an axis; the other axes broadcast.

    axis: counted from the back where x1 and x2 differ in dimensions. Dtypes are promoted. Raises ShapeError
    where the axis has another size than 3, IndexError for an axis out of range and ValueError for one counted
    from the front of different numbers of dimensions. Array API standard, linear algebra extension.

    >>> tw.linalg.cross(tw.asarray([1, 0, 0]), tw.asarray([0, 1, 0]))
    tensor([0, 0, 1])
    """
    first = axis_of("cross", axis, require_tensor("cross", x1).ndim)
    second = axis_of("cross", axis, require_tensor("cross", x2).ndim)
    if axis >= 0 and x1.ndim != x2.ndim:
        raise _C.ValueError(f"cross: axis {axis} must be negative where x1 and x2 differ in dimensions")
    if x1.shape[first] != 3 or x2.shape[second] != 3:
        raise _C.ShapeError(
            f"cross: shapes {x1.shape} and {x2.shape} must have size 3 along axis {axis}, the vectors' axis"
        )
    a, b = _components(x1, first), _components(x2, second)
    parts = [_subtract(_multiply(a[i], b[j]), _multiply(a[j], b[i])) for i, j in ((1, 2), (2, 0), (0, 1))]
    back = first - x1.ndim
    return _concat(*parts, axis=back)


def _components(x: Tensor, axis: int) -> list[Tensor]:
    """The three slices along an axis, which stays, with size 1."""
    before = (slice(None),) * axis
    return [x[(*before, slice(i, i + 1))] for i in range(3)]


def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """The n-th power of the square matrices in the last two axes, by repeated squaring.

    The 0th power is the identity; a negative one is that of the inverse, and reading it raises LinAlgError
    if a matrix is singular. Raises ShapeError below 2 dimensions and for matrices that are not square,
    DTypeError for dtypes that are not floating. Array API standard, linear algebra extension.

    >>> fibonacci = tw.asarray([[1.0, 1.0], [1.0, 0.0]])
    >>> tw.linalg.matrix_power(fibonacci, 10)
    tensor([[89., 55.],
            [55., 34.]])
    """
    rows, columns = _require_floating_matrices("matrix_power", x)
    if rows != columns:
        raise _C.ShapeError(
            f"matrix_power: the last two axes of shape {x.shape} differ in size; the matrices must be square"
        )
    try:
        n = operator.index(n)
    except TypeError:
        raise _C.DTypeError(f"matrix_power: n must be an int, not {type(n).__name__}") from None
    if n == 0:
        if entered and (there := elsewhere(x)):
            return there(matrix_power, x, 0)
        identity = _eye(n_rows=rows, dtype=x.dtype, device=x.device)
        return _broadcast_to(identity, shape=x.shape)
    square, n = (_inv(x), -n) if n < 0 else (x, n)
    power = None
    while True:
        if n & 1:
            power = square if power is None else matmul(power, square)
        n >>= 1
        if n == 0:
            return power
        square = matmul(square, square)


def matrix_rank(x: Tensor, /, *, rtol: float | Tensor | None = None) -> Tensor:
    """The ranks of the matrices in the last two axes: how many singular values are above a tolerance.

    rtol: the tolerance as a share of the largest singular value, a number or a tensor that broadcasts to
    the batch; max(M, N) * eps by default, for M x N matrices and the eps of x's dtype. The result is int64.
    Raises as svdvals does. Array API standard, linear algebra extension.

    >>> tw.linalg.matrix_rank(tw.asarray([[1.0, 2.0], [2.0, 4.0]]))
    tensor(1)
    """
    _require_floating_matrices("matrix_rank", x)
    values = _svdvals(x)
    return _count_nonzero(_is_significant("matrix_rank", x, values, rtol), axis=-1)


def pinv(x: Tensor, /, *, rtol: float | Tensor | None = None) -> Tensor:
    """The Moore-Penrose pseudo-inverses of the matrices in the last two axes, from their singular values.

    rtol: singular values up to this share of the largest one count as 0; as in matrix_rank. The result has
    the dtype of x, and N x M matrices for M x N ones. Raises as svd does. Array API standard, linear
    algebra extension.

    >>> tw.linalg.pinv(tw.asarray([[1.0], [1.0], [2.0]]))
    tensor([[0.1667, 0.1667, 0.3333]])
    """
    _require_floating_matrices("pinv", x)
    u, values, vh = _svd(x, full_matrices=False)
    significant = _is_significant("pinv", x, values, rtol)
    reciprocals = _where(significant, _divide(1, values), 0)
    return matmul(_multiply(_adjoint(vh), _expand_dims(reciprocals, axis=-2)), _adjoint(u))


def _is_significant(name: str, x: Tensor, values: Tensor, rtol: float | Tensor | None) -> Tensor:
    """True for the singular values, in descending order, that are above the tolerance."""
    if rtol is None:
        rtol = max(x.shape[-2:]) * finfo(x.dtype).eps
    elif isinstance(rtol, Tensor):
        if rtol.dtype.kind != "real floating":
            raise _C.DTypeError(f"{name}: rtol must have a real floating dtype, not {rtol.dtype}")
        rtol = _expand_dims(rtol, axis=-1)
    elif not isinstance(rtol, (int, float)):
        raise _C.DTypeError(f"{name}: rtol must be a number or a Tensor, not {type(rtol).__name__}")
    return _greater(values, _multiply(values[..., :1], rtol))


def _adjoint(x: Tensor) -> Tensor:
    transposed = matrix_transpose(x)
    return _conj(transposed) if x.dtype.kind == "complex floating" else transposed


def matrix_norm(
    x: Tensor,
    /,
    *,
    keepdims: bool = False,
    ord: float | Literal["fro", "nuc"] | None = "fro",
) -> Tensor:
    """The norms of the matrices in the last two axes.

    ord: 'fro' (or None) for the Frobenius norm, 'nuc' for the sum of the singular values, 2 and -2 for the
    largest and the smallest one, 1 and -1 for the largest and the smallest sum of magnitudes of a column,
    inf and -inf of a row. The result has the real dtype of x's precision; the norm of an empty matrix is 0.
    Raises ValueError for another ord, ShapeError below 2 dimensions and for a smallest of none, DTypeError
    for dtypes that are not floating; 'nuc', 2 and -2 as svdvals does. Array API standard, linear algebra
    extension.

    >>> x = tw.asarray([[3.0, 0.0], [4.0, 0.0]])
    >>> tw.linalg.matrix_norm(x), tw.linalg.matrix_norm(x, ord=1)
    (tensor(5.), tensor(7.))
    """
    _require_floating_matrices("matrix_norm", x)
    if ord is None or ord == "fro":
        return _euclidean(x, (-2, -1), keepdims)
    if ord == "nuc":
        return _last_axes(_sum(_svdvals(x), axis=-1), keepdims)
    if isinstance(ord, (bool, str)) or ord not in (1, -1, 2, -2, math.inf, -math.inf):
        raise _C.ValueError(f"matrix_norm: ord must be 'fro', 'nuc', 1, -1, 2, -2, inf or -inf, not {ord!r}")
    if ord in (2, -2):
        values = _svdvals(x)
    else:
        values = _sum(_abs(x), axis=-2 if ord in (1, -1) else -1)
    return _last_axes(_extremum("matrix_norm", values, -1, False, largest=ord > 0), keepdims)


def _last_axes(x: Tensor, keepdims: bool) -> Tensor:
    return _expand_dims(x, axis=(-2, -1)) if keepdims else x


def vector_norm(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False, ord: float = 2) -> Tensor:
    """The p-norms sum(abs(x)**p)**(1/p) along axes, or of all elements.

    ord: p; inf and -inf give the largest and the smallest magnitude, 0 the number of elements that are not
    zero. The result has the real dtype of x's precision; the largest of no elements is 0. Raises ValueError
    for an ord that is no real number, ShapeError for the smallest of no elements, IndexError for an axis
    out of range, DTypeError for dtypes that are not floating. Array API standard, linear algebra extension.

    >>> x = tw.asarray([3.0, -4.0])
    >>> tw.linalg.vector_norm(x), tw.linalg.vector_norm(x, ord=1)
    (tensor(5.), tensor(7.))
    """
    _require_floating("vector_norm", x)
    if isinstance(ord, (bool, str)) or not hasattr(ord, "__float__") or math.isnan(ord):
        raise _C.ValueError(f"vector_norm: ord must be a real number or infinity, not {ord!r}")
    if ord == 2:
        return _euclidean(x, axis, keepdims)
    if ord == 0:
        dtype = "float32" if x.dtype in ("float32", "complex64") else "float64"
        return _astype(_count_nonzero(x, axis=axis, keepdims=keepdims), dtype=dtype)
    sizes = _abs(x)
    if math.isinf(ord):
        return _extremum("vector_norm", sizes, axis, keepdims, largest=ord > 0)
    if ord == 1:
        return _sum(sizes, axis=axis, keepdims=keepdims)
    powers = _flat_at(0, lambda each: _pow(each, float(ord)), sizes) if ord < 1 else _pow(sizes, float(ord))
    total = _sum(powers, axis=axis, keepdims=keepdims)
    return _flat_at(0 if ord > 0 else math.inf, lambda each: _pow(each, 1 / ord), total)


def _euclidean(x: Tensor, axis: Axis, keepdims: bool) -> Tensor:
    sizes = _abs(x) if x.dtype.kind == "complex floating" else x
    return _flat_at(0, _sqrt, _sum(_multiply(sizes, sizes), axis=axis, keepdims=keepdims))


def _flat_at(corner: float, function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """function(x) with the derivative 0 where x is `corner`: norms have none there, and PyTorch's take 0."""
    if not x.requires_grad:
        return function(x)
    there = _equal(x, corner)
    return _where(there, function(x.detach()), function(_where(there, 1, x)))


def _extremum(name: str, sizes: Tensor, axis: Axis, keepdims: bool, *, largest: bool) -> Tensor:
    """The largest or the smallest along axes; 0 is the largest of none."""
    if 0 in sizes.shape:
        none = _sum(sizes, axis=axis, keepdims=keepdims)
        if largest or none.size == 0:
            return none
        raise _C.ShapeError(f"{name}: shape {sizes.shape} has no smallest element along axis {axis}")
    return (_max if largest else _min)(sizes, axis=axis, keepdims=keepdims)


def _require_floating(name: str, x: Any) -> Tensor:
    if require_tensor(name, x).dtype in ("float16", "bfloat16"):
        raise _C.DTypeError(f'{name}: does not compute in {x.dtype}; cast with astype(x, "float32")')
    if "floating" not in x.dtype.kind:
        raise _C.DTypeError(
            f'{name}: needs a floating or complex dtype, not {x.dtype}; cast with astype(x, "float64")'
        )
    return x


def _require_matrices(name: str, x: Any) -> tuple[int, int]:
    """Rows and columns of the matrices in the last two axes."""
    if require_tensor(name, x).ndim < 2:
        raise _C.ShapeError(f"{name}: needs at least 2 dimensions, shape {x.shape} has {x.ndim}")
    return x.shape[-2], x.shape[-1]


def _require_floating_matrices(name: str, x: Any) -> tuple[int, int]:
    return _require_matrices(name, _require_floating(name, x))


__all__ = [
    "LinAlgError",
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]


def __dir__() -> list[str]:
    return [*__all__, "__doc__", "__name__"]

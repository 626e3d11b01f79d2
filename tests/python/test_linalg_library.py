# test_linalg_library.py: which OpenBLAS and oneDNN linear algebra uses, each in a process of its own.
from __future__ import annotations

import glob
import os
import platform
import shutil
import subprocess
import sys

import numpy as np
import pytest

PROGRAM = """
import numpy as np, thalweg as tw
from thalweg import linalg
rng = np.random.default_rng(0)
for dtype in ("float32", "float64", "complex64", "complex128"):
    a = rng.standard_normal((3, 30, 30))
    a = (a + 1j * rng.standard_normal(a.shape)).astype(dtype) if "complex" in dtype else a.astype(dtype)
    hermitian = a + np.conj(np.swapaxes(a, -1, -2))
    near = lambda x, y: np.testing.assert_allclose(x, y, atol=1e4 * np.finfo(dtype).eps)
    x = tw.asarray(a)
    near((x @ linalg.inv(x)).numpy(), np.broadcast_to(np.eye(30), a.shape))
    near((x @ linalg.solve(x, x)).numpy(), a)
    near(linalg.slogdet(x).logabsdet.numpy(), np.linalg.slogdet(a).logabsdet)
    near(linalg.slogdet(x).sign.numpy(), np.linalg.slogdet(a).sign)
    q, r = linalg.qr(x)
    near((q @ r).numpy(), a)
    for rows in (30, 20):
        part = x[:, :rows, :]
        u, s, vh = linalg.svd(part, full_matrices=False)
        near(((u * s[:, None, :]) @ vh).numpy(), a[:, :rows])
        near(linalg.svdvals(part).numpy(), s.numpy())
        linalg.svd(part)[0].wait()
    w, v = linalg.eigh(tw.asarray(hermitian))
    near((tw.asarray(hermitian) @ v - v * w[:, None, :]).numpy(), 0)
    w, v = linalg.eig(x)
    near((x @ v - v * w[:, None, :]).numpy(), 0)
    positive = x @ tw.asarray(np.conj(np.swapaxes(a, -1, -2))) + tw.eye(30)
    factor = linalg.cholesky(positive)
    near((factor @ tw.conj(linalg.matrix_transpose(factor)) - positive).numpy(), 0)
print("done")
"""


def run(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **environment},
    )


# Threads that call the library at the same time, twice: its buffers must not be shared.
CROWD = """
import numpy as np, thalweg as tw
rng = np.random.default_rng(0)
a, b = (tw.asarray(rng.standard_normal((2000, 24, 24)).astype("float32")) for _ in range(2))
c = tw.asarray(rng.standard_normal((1000, 64, 64)))
def results():
    found = [tw.linalg.inv(a), tw.linalg.solve(a, b), tw.linalg.det(a), c @ c]
    return [np.asarray(each).tobytes() for each in found]
with tw.Engine(num_threads=1, mode="sync"):
    reference = results()
for _ in range(60):
    with tw.Engine(num_threads=4):
        assert results() == reference
print("done")
"""


CORE = "Haswell" if platform.machine() == "x86_64" else ""


@pytest.mark.parametrize("build", ["serial", "pthread", "openmp"])
def test_threads_may_share_every_build_of_debian(build):
    libraries = glob.glob(f"/usr/lib/*/openblas-{build}/libopenblas.so.0")
    if not libraries:
        pytest.skip(f"Debian's {build} build of OpenBLAS is not installed")
    for program in (PROGRAM, CROWD):
        # Kernels for this processor may need no buffers for small matrices.
        result = run(program, THALWEG_BLAS=libraries[0], OPENBLAS_CORETYPE=CORE)
        assert result.stdout == "done\n", result.stderr


def wheel_libraries():
    folder = os.path.dirname(np.__file__) + ".libs"
    return sorted(glob.glob(os.path.join(folder, "libscipy_openblas*")))


@pytest.mark.parametrize("numpy_first", [False, True])
def test_the_library_of_numpy_whose_integers_have_64_bits(numpy_first):
    libraries = wheel_libraries()
    if not libraries:
        pytest.skip("NumPy brings no OpenBLAS of its own")
    program = PROGRAM if numpy_first else PROGRAM.replace("import numpy as np, thalweg as tw", SWAPPED)
    result = run(program, THALWEG_BLAS=libraries[0], OPENBLAS_NUM_THREADS="2")
    assert result.stdout == "done\n", result.stderr


# The package does not need NumPy: its library is opened before NumPy opens it.
SWAPPED = "import thalweg as tw\nlinalg = tw.linalg\nlinalg.inv(tw.eye(2)).wait()\nimport numpy as np"


def test_a_library_without_lapack(tmp_path):
    compiler = shutil.which("cc") or shutil.which("c++")
    if compiler is None:
        pytest.skip("no compiler")
    functions = [f"cblas_{letter}{name}" for letter in "sdcz" for name in ("gemm", "gemv")]
    source = tmp_path / "blas.c"
    source.write_text("".join(f"void {name}(void) {{}}\n" for name in functions))
    library = tmp_path / "libopenblas.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    result = run("import thalweg as tw\ntw.linalg.inv(tw.eye(2)).wait()", THALWEG_BLAS=str(library))
    assert "EngineError: inv" in result.stderr
    assert "the OpenBLAS in use has no sgetrf_; use one that is built with LAPACK" in result.stderr


def test_no_library(tmp_path):
    missing = str(tmp_path / "none.so")
    result = run("import thalweg as tw\ntw.linalg.svd(tw.eye(2))[1].wait()", THALWEG_BLAS=missing)
    assert f"svd: cannot use THALWEG_BLAS={missing}" in result.stderr


PRODUCT = """
import numpy as np, thalweg as tw
rng = np.random.default_rng(0)
a, b = (rng.standard_normal((150, 150)).astype("float32") for _ in range(2))
np.testing.assert_allclose((tw.asarray(a) @ tw.asarray(b)).numpy(), a @ b, atol=1e-4)
print(any("libdnnl" in line for line in open("/proc/self/maps")))
"""


def test_large_products_of_float32_are_onednns():
    if not glob.glob("/usr/lib/*/libdnnl.so.[23]"):
        pytest.skip("Debian's libdnnl2 is not installed")
    result = run(PRODUCT, THALWEG_ONEDNN="")
    assert result.stdout == "True\n", result.stderr


def test_without_onednn_openblas_computes_them():
    result = run(PRODUCT, THALWEG_ONEDNN="off")
    assert result.stdout == "False\n", result.stderr


def test_a_onednn_that_cannot_be_used(tmp_path):
    missing = str(tmp_path / "none.so")
    result = run(PRODUCT, THALWEG_ONEDNN=missing)
    assert f'matmul: cannot use THALWEG_ONEDNN={missing}; it must be "off" or name' in result.stderr

# _control.py: functions about waiting, threads, memory and graph dumps, for the current engine.
"""Each function acts on the engine that tw.engine() returns: that of the innermost `with engine:`, else
the default."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from types import TracebackType

from thalweg import _C
from thalweg._typing import DeviceLike, PathOrFile


def engine() -> _C.Engine:
    """The engine that creation functions use in this thread or asyncio task: that of its innermost
    `with engine:`, else the default. Functions of tensors use the engine of these.

    >>> with tw.Engine(name="mine") as mine:
    ...     tw.engine() is mine
    True
    """
    return _C.current_engine()


def synchronize() -> None:
    """Waits for everything issued by any thread, then raises the oldest failure nobody has seen, with
    the texts of the others.

    >>> x = tw.rand(100, 100) @ tw.rand(100, 100)
    >>> tw.synchronize()
    >>> x.is_ready()
    True
    """
    _C.current_engine().synchronize()


def flush() -> None:
    """Starts what was issued; does not wait.

    >>> x = tw.rand(100, 100) @ tw.rand(100, 100)
    >>> tw.flush()  # x is computed while this thread goes on
    """
    _C.current_engine().flush()


def devices() -> tuple[_C.Device, ...]:
    """The devices of the engine.

    >>> tw.Device("cpu:0") in tw.devices()
    True
    """
    return _C.current_engine().devices()


class _Restore:
    """A setting that was just changed; as a context manager it puts the old one back."""

    def __init__(self, undo: object) -> None:
        self._undo = undo

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._undo()  # type: ignore[operator]


def on_sync(policy: str, /) -> _Restore:
    """What a blocking read does whose value is not there yet: "allow", "warn" (RuntimeWarning) or "error"
    (SyncError).

    Takes effect at once, for all threads; used as a context manager it ends with the block. Raises ValueError
    for another policy and DTypeError for what is no str.

    >>> with tw.on_sync("error"):  # finds what waits in a training step; here nothing does
    ...     x = tw.arange(3) + 1
    """
    if not isinstance(policy, str):
        raise _C.DTypeError(f"on_sync: policy must be a str, not {type(policy).__name__}")
    before = _C.get_sync_policy()
    _C.set_sync_policy(policy)
    return _Restore(lambda: _C.set_sync_policy(before))


def sync_count() -> int:
    """Blocking reads so far whose value was not there yet.

    >>> before = tw.sync_count()
    >>> x = tw.arange(3) + 1  # issued, not read
    >>> tw.sync_count() - before
    0
    """
    return _C.sync_count()


def set_num_threads(count: int, /) -> None:
    """Lets `count` threads run one device's operators at the same time (0: as many as the process may use).

    Waits for what was issued. Raises ValueError for a count below 0 or above 1024. Values do not depend on
    it.

    >>> with tw.Engine():
    ...     tw.set_num_threads(2)
    ...     tw.get_num_threads()
    2
    """
    _C.current_engine().set_num_threads(count)


def get_num_threads() -> int:
    """Threads that may run one device's operators at the same time.

    >>> tw.get_num_threads() >= 1
    True
    """
    return _C.current_engine().get_num_threads()


@contextlib.contextmanager
def num_threads(count: int, /) -> Iterator[None]:
    """As set_num_threads, for a block, with the same errors as it raises.

    >>> with tw.num_threads(1):
    ...     tw.get_num_threads()
    1
    """
    chosen = _C.current_engine()
    before = chosen.get_num_threads()
    chosen.set_num_threads(count)
    try:
        yield
    finally:
        chosen.set_num_threads(before)


def memory_stats(device: DeviceLike | None = None) -> dict[str, int]:
    """live_bytes, peak_bytes, cached_bytes and limit_bytes of a device.

    Raises DeviceError for a device that is not there.

    >>> with tw.Engine():
    ...     x = tw.zeros(1024).wait()
    ...     tw.memory_stats()["live_bytes"]
    4096
    """
    return _C.current_engine().memory_stats(device)


def reset_peak_memory(device: DeviceLike | None = None) -> None:
    """Starts the peak anew from the live bytes. Raises DeviceError for a device that is not there.

    >>> with tw.Engine():
    ...     total = tw.zeros(1024).sum().item()
    ...     tw.reset_peak_memory()
    ...     tw.memory_stats()["peak_bytes"] < 4096
    True
    """
    _C.current_engine().reset_peak_memory(device)


def empty_cache() -> None:
    """Gives freed blocks back to the system.

    >>> with tw.Engine():
    ...     total = tw.zeros(1024).sum().item()
    ...     tw.empty_cache()
    ...     tw.memory_stats()["cached_bytes"]
    0
    """
    _C.current_engine().empty_cache()


def set_memory_limit(bytes: int, /) -> None:
    """Bytes of tensors per device; 0: no limit. An operation beyond it fails with OutOfMemoryError.

    Raises ValueError for a negative number.

    >>> with tw.Engine():
    ...     tw.set_memory_limit(2**20)
    ...     tw.zeros(2**20).wait()
    Traceback (most recent call last):
        ...
    thalweg.OutOfMemoryError: full...
    """
    _C.current_engine().set_memory_limit(bytes)


def stats() -> dict[str, int]:
    """Operator counters: issued, executed, failed, run_inline, donated, in_flight.

    >>> with tw.Engine():
    ...     x = tw.ones(3) + 1
    ...     tw.stats()["issued"]
    2
    """
    return _C.current_engine().stats()


def _write(text: str, target: PathOrFile) -> None:
    if hasattr(target, "write"):
        target.write(text)
        return
    with open(target, "w", encoding="utf-8") as file:
        file.write(text)


def dump_graph(target: PathOrFile, /) -> None:
    """Writes the operators and tensors that are live as JSON (tools/graph.schema.json). Disturbs nothing.

    target: a path, or a file open for text. Raises OSError where it cannot be written.

    >>> import io, json
    >>> file = io.StringIO()
    >>> tw.dump_graph(file)
    >>> list(json.loads(file.getvalue()))
    ['format', 'version', 'graph', 'kind', 'clock', 'engine', 'operators', 'operands']
    """
    _write(_C.current_engine().dump_graph(), target)


@contextlib.contextmanager
def record_graph(target: PathOrFile, /) -> Iterator[None]:
    """Writes all operators that ran in the block, with times, as JSON. target: as for dump_graph.

    Raises EngineError where a recording is on already and OSError where the target cannot be written.

    >>> import io, json
    >>> file = io.StringIO()
    >>> with tw.record_graph(file):
    ...     x = (tw.ones(3) + 1).wait()
    >>> [each["op"] for each in json.loads(file.getvalue())["operators"]]
    ['full', 'add']
    """
    chosen = _C.current_engine()
    chosen.start_recording()
    process = os.getpid()
    try:
        yield
    finally:
        if os.getpid() == process:  # a child forked in the block leaves the recording to its parent
            _write(chosen.stop_recording(), target)


__all__ = [
    "devices",
    "dump_graph",
    "empty_cache",
    "engine",
    "flush",
    "get_num_threads",
    "memory_stats",
    "num_threads",
    "on_sync",
    "record_graph",
    "reset_peak_memory",
    "set_memory_limit",
    "set_num_threads",
    "stats",
    "sync_count",
    "synchronize",
]

# test_signal_handlers.py: handlers that use the engine, or fork, on top of a wait of the main thread.
from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest
import thalweg as tw

pytestmark = pytest.mark.timeout(120)

#: What the main thread waits in when the handler comes.
WAITS = {
    "wait": "held.wait()",
    "synchronize": "tw.synchronize()",
    "drain": "engine.drain()",
    "set_num_threads": "engine.set_num_threads(3)",
    "submit": "[held + 1 for _ in range(20)]",
    "allocate": "tw.asarray(numpy.ones(1 << 17))",
}

PROGRAM = """
import os, signal, threading
import numpy
import thalweg as tw

engine = tw.Engine(
    test_operators=True, mode="{mode}", max_operators_in_flight={operators}, memory_limit={limit}
)
engine.__enter__()
number = tw._C.testing.new_gate()
held = tw._C.op("{op}")(tw.ones(1 << 17, dtype="float64"), {attribute})

def on_alarm(*_):
{handler}

signal.signal(signal.SIGALRM, on_alarm)
signal.setitimer(signal.ITIMER_REAL, 0.3)
{wait}
{end}
"""


def run(handler: str, wait: str, end: str, mode: str, *, gated: bool) -> str:
    program = PROGRAM.format(
        mode=mode,
        op="test_gate" if gated else "test_sleep",
        attribute="gate=number" if gated else "milliseconds=600",
        operators=4 if wait == "submit" else 8192,
        limit=5 << 19 if wait == "allocate" else 0,
        handler=textwrap.indent(textwrap.dedent(handler), "    "),
        wait=WAITS[wait],
        end=textwrap.dedent(end),
    )
    process = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30)
    assert process.returncode == 0, process.stderr
    return process.stdout


@pytest.mark.parametrize("mode", ["threaded", "caller"])
@pytest.mark.parametrize("wait", WAITS)
def test_a_handler_may_issue_and_end_what_is_waited_for(wait, mode):
    out = run(
        """
        tw._C.testing.open_gate(number)
        x = tw.ones(10)
        for _ in range(12):
            x = x + 1
        print(x.sum().item(), flush=True)
        """,
        wait,
        "held.wait(); print(held.sum().item())",
        mode,
        gated=True,
    )
    assert out == "130.0\n131072.0\n"


@pytest.mark.parametrize("mode", ["threaded", "caller"])
@pytest.mark.parametrize("wait", WAITS)
def test_a_handler_may_fork(wait, mode):
    """A fork waits for what is in flight. The child returns from the handler into the wait, as the parent
    does."""
    out = run(
        """
        global child
        child = os.fork()
        if child != 0:
            print("child", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        """,
        wait,
        "if child == 0: os._exit(int((held + 6)[7].item()))\nprint(held.sum().item())",
        mode,
        gated=False,
    )
    assert out == "child 7\n131072.0\n"


def test_what_is_admitted_later_leaves_the_room_of_what_runs():
    """An operator that takes long frees nothing meanwhile: the newest must wait for it all the same."""
    with tw.Engine(memory_limit=48 << 20, num_threads=2) as engine:
        if engine.mode == "sync":
            pytest.skip("nothing is ever pending")
        matrix = tw.rand(900, 900).wait()
        factors = tw.ones(12 << 18).wait()
        largest = tw.linalg.svdvals(matrix)[0]
        product = factors * largest
        ordered = tw.sort(product)
        total = ordered.sum()
        del product, ordered
        newest = tw.ones(22 << 18)
        assert total.item() > 0
        assert newest[0].item() == 1

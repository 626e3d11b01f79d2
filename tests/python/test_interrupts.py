# test_interrupts.py: Ctrl-C, and what else goes on while one thread waits, each in a process of its own.
from __future__ import annotations

import os
import signal
import time

import pytest
from processes import CHAIN, PENDING_MODES, run, start

pytestmark = pytest.mark.timeout(120)

INTERRUPT = """
import numpy  # an import that a signal meets halfway may swallow it
engine = tw.Engine(test_operators=True{options})
engine.__enter__()
gate = tw._C.op("test_gate")
number = tw._C.testing.new_gate()
held = gate(tw.ones(3), gate=number)
print("ready", flush=True)
try:
    {blocked}
    print("not interrupted", flush=True)
except KeyboardInterrupt:
    print("interrupted", flush=True)
tw._C.testing.open_gate(number)
print(held.tolist(), (tw.ones(2) + 1).tolist(), flush=True)
"""

BLOCKED = {
    "wait": ("held.wait()", ""),
    "item": ("held.sum().item()", ""),
    "numpy": ("held.numpy()", ""),
    "synchronize": ("tw.synchronize()", ""),
    "submit": ("[held + 1 for _ in range(100)]", ", max_operators_in_flight=4"),
    "in-place form": (
        "y = held + 0\n    for done in range(100):\n        y.add_(1)",
        ", max_operators_in_flight=4",
    ),
    "dependant": ("(held + 1 + held).tolist()", ""),
    "drain": ("engine.drain()", ""),
    "close": ("engine.close()", ""),
    "set_num_threads": ("engine.set_num_threads(3)", ""),
    "stop_recording": ("(engine.start_recording(), tw.ones(2), engine.stop_recording())", ""),
}


@pytest.mark.parametrize("mode", PENDING_MODES)
@pytest.mark.parametrize("what", BLOCKED)
def test_ctrl_c_ends_what_blocks_and_the_engine_goes_on(what, mode):
    call, options = BLOCKED[what]
    process = start(INTERRUPT.format(blocked=call, options=options), THALWEG_ENGINE=mode)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.3)
    before = time.monotonic()
    process.send_signal(signal.SIGINT)
    line = process.stdout.readline()
    took = time.monotonic() - before
    # Not communicate(): it would miss what readline() has buffered.
    out = process.stdout.read()
    err = process.stderr.read() if process.stderr is not None else ""
    process.wait(60)
    assert line == "interrupted\n", (line, out, err)
    assert took < 10
    assert out == "[1.0, 1.0, 1.0] [2.0, 2.0]\n", err
    assert process.returncode == 0, err


@pytest.mark.parametrize("mode", PENDING_MODES)
def test_ctrl_c_at_exit_leaves_out_what_has_not_begun(mode):
    process = start(
        """
        engine = tw.Engine(test_operators=True)
        with engine:
            x = tw.zeros(3)
            for _ in range(100):
                x = tw._C.op("test_sleep")(x, milliseconds=200)
        print("ready", flush=True)
        """,
        THALWEG_ENGINE=mode,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    before = time.monotonic()
    err = process.stderr.read() if process.stderr is not None else ""
    assert process.wait(60) == 0
    assert time.monotonic() - before < 10, "twenty seconds of work were left"
    assert "interrupted while stopping" in err


WAITS_FOR_ALL = {
    "drain": "engine.drain()",
    "close": "engine.close()",
    "set_num_threads": "engine.set_num_threads(3)",
    "fork": "os.fork() or os._exit(0)",
    "exit": "tw._C._at_exit()",
}


@pytest.mark.parametrize("mode", PENDING_MODES)
@pytest.mark.parametrize("what", WAITS_FOR_ALL)
def test_other_threads_go_on_while_one_waits_for_everything(what, mode):
    out, _ = run(
        f"""
        engine = tw.Engine(test_operators=True)
        engine.__enter__()
        number = tw._C.testing.new_gate()
        held = tw._C.op("test_gate")(tw.ones(3), gate=number)
        def opener():
            time.sleep(0.2)
            tw._C.testing.open_gate(number)
        threading.Thread(target=opener).start()
        {WAITS_FOR_ALL[what]}
        print(held.tolist())
        """,
        THALWEG_ENGINE=mode,
    )
    assert out == "[1.0, 1.0, 1.0]\n"


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, to run as a user who may start no thread")
@pytest.mark.parametrize("mode", PENDING_MODES)
def test_a_thread_that_cannot_be_started_is_an_error_and_not_the_end(mode):
    out, err = run(
        """
        import resource
        hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
        os.setuid(65534)
        resource.setrlimit(resource.RLIMIT_NPROC, (1, hard))
        x = tw.rand(200, 200)
        try:
            (x @ x).wait()
        except tw.EngineError as error:
            print(error)
        resource.setrlimit(resource.RLIMIT_NPROC, (hard, hard))
        y = tw.ones((200, 200))
        print((y @ y)[3, 4].item())
        try:
            tw.synchronize()
        except tw.EngineError:
            pass
        """,
        THALWEG_ENGINE=mode,
    )
    assert "its thread could not be started" in out
    assert out.endswith("\n200.0\n")
    assert err == ""


def test_ctrl_c_without_a_handler_of_ones_own_ends_the_process():
    process = start(
        CHAIN + "print('ready', flush=True)\nwhile True:\n    chain(1000).wait()\n",
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert "KeyboardInterrupt" in err
    assert process.returncode in (-signal.SIGINT, 1, 130)


def test_sigterm_ends_a_process_with_work_in_flight():
    process = start(CHAIN + "x = chain(100)\nprint('ready', flush=True)\nwhile True:\n    x = x + 1\n")
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.terminate()
    assert process.wait(timeout=60) == -signal.SIGTERM

# test_process.py: fork, exit, signals and the environment, each in a process of its own.
from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest
import thalweg as tw

pytestmark = pytest.mark.timeout(120)

MODES = ["threaded", "caller", "sync"]
PENDING_MODES = ["threaded", "caller"]


def start(code: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import os, sys, threading, time\nimport thalweg as tw\n" + textwrap.dedent(code),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )


def run(code: str, *, status: int = 0, **environment: str) -> tuple[str, str]:
    """Runs the code in a fresh process; its stdout and stderr."""
    process = start(code, **environment)
    try:
        out, err = process.communicate(timeout=90)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        raise AssertionError(f"hangs\nstdout: {out}\nstderr: {err}") from None
    assert process.returncode == status, f"status {process.returncode}\nstdout: {out}\nstderr: {err}"
    return out, err


CHAIN = """
def chain(length, size=1000):
    x = tw.zeros(size)
    for _ in range(length):
        x = x + 1
    return x
"""


# --- exit ----------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_importing_starts_no_thread(mode):
    out, err = run(
        """
        print(len(os.listdir("/proc/self/task")))
        a = tw.asarray([1.0, 2.0])
        print(len(os.listdir("/proc/self/task")))
        """,
        THALWEG_ENGINE=mode,
    )
    assert out.split() == ["1", "1"]
    assert err == ""


@pytest.mark.parametrize("mode", MODES)
def test_exit_with_work_in_flight(mode):
    out, err = run(CHAIN + "x = chain(20000)\nprint('end')", THALWEG_ENGINE=mode)
    assert out == "end\n"
    assert err == ""


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("devices", ["1", "4"])
def test_exit_with_work_in_flight_on_several_devices_and_engines(mode, devices):
    _, err = run(
        CHAIN
        + """
        engines = [tw.Engine() for _ in range(3)]
        kept = []
        for engine in engines:
            with engine:
                kept.append(chain(500))
                kept.append(kept[-1].to(tw.devices()[-1]) + 1)
        """.replace("\n        ", "\n"),
        THALWEG_ENGINE=mode,
        THALWEG_CPU_DEVICES=devices,
    )
    assert err == ""


@pytest.mark.parametrize("mode", MODES)
def test_exit_by_sys_exit_and_by_an_exception(mode):
    run(CHAIN + "x = chain(5000)\nsys.exit(3)", status=3, THALWEG_ENGINE=mode)
    _, err = run(CHAIN + "x = chain(5000)\nraise RuntimeError('mine')", status=1, THALWEG_ENGINE=mode)
    assert err.count("Traceback") == 1
    assert "mine" in err


@pytest.mark.parametrize("mode", MODES)
def test_exit_while_threads_issue(mode):
    _, err = run(
        CHAIN
        + """
def work():
    while True:
        try:
            chain(50).wait()
        except tw.EngineError:
            return
for _ in range(4):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.3)
""",
        THALWEG_ENGINE=mode,
    )
    assert "Fatal" not in err
    assert "terminate" not in err


@pytest.mark.parametrize("mode", MODES)
def test_values_are_readable_in_atexit_functions_and_finalizers(mode):
    out, _ = run(
        CHAIN
        + """
import atexit
x = chain(100, 3)
atexit.register(lambda: print(x.tolist()))
class Holder:
    def __init__(self): self.value = chain(10, 2)
    def __del__(self): print(self.value.tolist())
holder = Holder()
""",
        THALWEG_ENGINE=mode,
    )
    assert out.splitlines() == ["[100.0, 100.0, 100.0]", "[10.0, 10.0]"]


@pytest.mark.parametrize("mode", PENDING_MODES)
def test_an_unread_failure_is_reported_at_exit(mode):
    _, err = run(
        """
        engine = tw.Engine(test_operators=True)
        with engine:
            failed = tw._C.op("test_fail")(tw.ones(3), message="nobody looked")
        """,
        THALWEG_ENGINE=mode,
    )
    assert "nobody looked" in err
    assert "test_fail" in err
    assert "<string>:" in err
    assert err.count("nobody looked") == 1


@pytest.mark.parametrize("mode", PENDING_MODES)
def test_a_read_failure_is_not_reported_at_exit(mode):
    _, err = run(
        """
        engine = tw.Engine(test_operators=True)
        with engine:
            failed = tw._C.op("test_fail")(tw.ones(3), message="seen")
            try:
                failed.wait()
            except RuntimeError:
                pass
        """,
        THALWEG_ENGINE=mode,
    )
    assert err == ""


@pytest.mark.parametrize("mode", PENDING_MODES)
def test_the_report_at_exit_is_short(mode):
    _, err = run(
        """
        engine = tw.Engine(test_operators=True)
        with engine:
            x = tw.ones(3)
            for i in range(5000):
                tw._C.op("test_fail")(x, message="the same")
            for i in range(20):
                tw._C.op("test_fail")(x, message=f"another {i}")
        """,
        THALWEG_ENGINE=mode,
    )
    assert err.count("the same") == 1
    assert "times)" in err
    assert " more that were not kept" in err
    assert len(err) < 2000


def test_os_exit_does_not_wait():
    run(CHAIN + "x = chain(1000)\nos._exit(5)", status=5)


# --- fork ----------------------------------------

FORK = (
    CHAIN
    + """
def in_child(function):
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        import faulthandler
        faulthandler.dump_traceback_later(40, exit=True)
        code = 1
        try:
            code = 17 if function() else 2
        finally:
            sys.stdout.flush()
            os._exit(code)
    status = os.waitpid(child, 0)[1]
    assert os.WIFEXITED(status) and os.WEXITSTATUS(status) == 17, status
"""
)


@pytest.mark.parametrize("mode", MODES)
def test_fork_before_use(mode):
    run(
        FORK + "in_child(lambda: chain(100).sum().item() == 100_000)\nassert chain(10)[0].item() == 10",
        THALWEG_ENGINE=mode,
    )


def test_a_forked_child_leaves_unread_failures_to_its_parent():
    run(
        FORK
        + """
x = tw.take(tw.ones(3), tw.asarray([9]))

def the_child_tells_of_what_it_reads():
    tw.synchronize()
    try:
        x.item()
    except IndexError:
        return True

in_child(the_child_tells_of_what_it_reads)
try:
    tw.synchronize()
except IndexError:
    pass
else:
    raise AssertionError("the parent was not told")
""",
    )


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("devices", ["1", "3"])
def test_fork_with_work_in_flight(mode, devices):
    run(
        FORK
        + """
x = chain(3000)
y = x.to(tw.devices()[-1]) * 2
in_child(lambda: x[0].item() == 3000 and y[-1].item() == 6000 and chain(100)[5].item() == 100)
in_child(lambda: tw.engine().mode == "sync")

def raises_in_the_call():
    try:
        tw.take(tw.ones(3), tw.asarray([9]))
    except IndexError:
        return True

in_child(raises_in_the_call)
assert x[0].item() == 3000
assert y[-1].item() == 6000
assert chain(100)[5].item() == 100
""",
        THALWEG_ENGINE=mode,
        THALWEG_CPU_DEVICES=devices,
    )


@pytest.mark.parametrize("mode", MODES)
def test_the_child_may_do_everything(mode):
    run(
        FORK
        + """
chain(10).wait()
def child():
    tw.synchronize()
    tw.flush()
    tw.set_num_threads(2)
    with tw.num_threads(1):
        a = tw.ones((20, 30)) @ tw.ones((30, 40))
    assert a.sum().item() == 20 * 30 * 40
    tw.memory_stats(); tw.empty_cache(); tw.stats()
    assert tw._C.current_engine().dump_graph()
    called = []
    chain(3).on_ready(lambda: called.append(1))
    end = time.monotonic() + 20
    while not called and time.monotonic() < end:
        time.sleep(0.01)
    assert called
    engine = tw.Engine()
    with engine:
        assert chain(10)[0].item() == 10
    engine.close()
    return True
in_child(child)
assert chain(10)[0].item() == 10
""",
        THALWEG_ENGINE=mode,
    )


@pytest.mark.parametrize("mode", MODES)
def test_the_child_may_exit_the_usual_way(mode):
    out, err = run(
        CHAIN
        + """
x = chain(500)
child = os.fork()
if child == 0:
    print("child", x[0].item(), chain(7)[0].item())
    sys.exit(0)
status = os.waitpid(child, 0)[1]
print("parent", status, x[0].item())
""",
        THALWEG_ENGINE=mode,
    )
    assert sorted(out.splitlines()) == ["child 500.0 7.0", "parent 0 500.0"]
    assert err == ""


@pytest.mark.parametrize("mode", MODES)
def test_fork_while_threads_issue(mode):
    run(
        FORK
        + """
stop = False
def work():
    while not stop:
        chain(20, 10).wait()
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads: thread.start()
for _ in range(10):
    in_child(lambda: chain(30)[0].item() == 30)
stop = True
for thread in threads: thread.join()
assert chain(30)[0].item() == 30
""",
        THALWEG_ENGINE=mode,
    )


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_multiprocessing_pools_work(method, tmp_path):
    script = tmp_path / "pool.py"
    script.write_text(
        textwrap.dedent(
            f"""
            import multiprocessing, pickle
            import thalweg as tw

            def work(i):
                return (tw.ones(100) * i).sum()

            if __name__ == "__main__":
                x = tw.ones(10) + 1
                context = multiprocessing.get_context({method!r})
                with context.Pool(2) as pool:
                    print([t.item() for t in pool.map(work, range(5))])
                print(x.sum().item())
            """
        )
    )
    process = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, timeout=90, check=False
    )
    assert process.returncode == 0, process.stderr
    assert process.stdout.splitlines() == ["[0.0, 100.0, 200.0, 300.0, 400.0]", "20.0"]


def test_subprocesses_do_not_disturb_work_in_flight():
    run(
        CHAIN
        + """
import subprocess
x = chain(2000)
for _ in range(5):
    assert subprocess.run([sys.executable, "-c", "print(1)"], capture_output=True, text=True).stdout == "1\\n"
assert x[0].item() == 2000
"""
    )


# --- Ctrl-C ----------------------------------------

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


# --- environment ----------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "names"),
    [
        ("THALWEG_ENGINE", "quick", "threaded, caller or sync"),
        ("THALWEG_INLINE", "maybe", "on or off"),
        ("THALWEG_NUM_THREADS", "0", "1 to 1024"),
        ("THALWEG_NUM_THREADS", "two", "1 to 1024"),
        ("THALWEG_CPU_DEVICES", "65", "1 to 64"),
        ("THALWEG_MEMORY_LIMIT", "-1", "0 to"),
    ],
)
def test_bad_environment_raises_and_names_the_variable(name, value, names):
    out, _ = run(
        """
        try:
            tw.ones(3)
        except ValueError as error:
            print(error)
        """,
        **{name: value},
    )
    assert name in out
    assert names in out


def test_the_environment_configures_the_default_engine():
    out, _ = run(
        "print(tw.engine().mode, tw.get_num_threads(), len(tw.devices()), tw.memory_stats()['limit_bytes'])",
        THALWEG_ENGINE="caller",
        THALWEG_NUM_THREADS="3",
        THALWEG_CPU_DEVICES="2",
        THALWEG_MEMORY_LIMIT="100000000",
    )
    assert out.split() == ["caller", "3", "2", "100000000"]


@pytest.mark.parametrize("inline", ["on", "off"])
def test_inline_off_runs_every_operator_as_a_task(inline):
    out, _ = run(
        CHAIN + "x = chain(500, 3)\nprint(x.tolist(), tw.stats()['run_inline'])",
        THALWEG_INLINE=inline,
        THALWEG_ENGINE="threaded",
    )
    values, count = out.rsplit(" ", 1)
    assert values == "[500.0, 500.0, 500.0]"
    assert (int(count) > 0) == (inline == "on")


def test_nothing_is_written_to_stderr_in_ordinary_use():
    for threads in ("1", "2", "8"):
        _, err = run(
            CHAIN + "chain(1000).wait()\ntw.set_num_threads(5)\nchain(1000).wait()",
            THALWEG_NUM_THREADS=threads,
        )
        assert err == ""


def test_the_version_is_a_string():
    assert isinstance(tw.__version__, str)


def test_threads_of_the_largest_number():
    run(
        """
        tw.set_num_threads(1024)
        x = tw.rand(64, 64)
        assert (x @ x).sum().item() > 0
        """
    )


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="another module makes subinterpreters there")
def test_subinterpreters_are_refused():
    out, _ = run(
        """
        import _xxsubinterpreters as interpreters
        other = interpreters.create()
        try:
            interpreters.run_string(other, "import sys; sys.path = %r; import thalweg" % sys.path)
        except Exception as error:
            print(error)
        assert (tw.ones(2) + 1).tolist() == [2.0, 2.0]
        """
    )
    assert "subinterpreter" in out

# test_process.py: fork, exit and the environment, each in a process of its own.
from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest
import thalweg as tw
from processes import CHAIN, MODES, PENDING_MODES, run

pytestmark = pytest.mark.timeout(120)

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


@pytest.mark.parametrize("mode", MODES)
def test_a_recording_goes_on_in_the_parent_only(mode):
    run(
        FORK
        + """
import io, json

def names(file):
    return [each["op"] for each in json.loads(file.getvalue())["operators"]]

def the_child_records_by_itself():
    try:
        tw.engine().stop_recording()
        return False
    except tw.EngineError as error:
        assert "no recording is on" in str(error), error
    own = io.StringIO()
    with tw.record_graph(own):
        tw.ones(2) * 2
    return names(own) == ["full", "multiply"]

def the_child_leaves_the_block():
    tw.ones(2) - 1
    recording.__exit__(None, None, None)
    return file.getvalue() == ""

file = io.StringIO()
recording = tw.record_graph(file)
recording.__enter__()
tw.ones(2) + 1
in_child(the_child_records_by_itself)
in_child(the_child_leaves_the_block)
recording.__exit__(None, None, None)
assert names(file) == ["full", "add"], names(file)
""",
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


def test_many_children_of_busy_parents_change_their_threads():
    """oneTBB's workers may hold its locks when the process forks: a child must not ask for them."""
    run(
        FORK
        + """
def child():
    tw.set_num_threads(2)
    with tw.num_threads(1):
        assert tw.get_num_threads() == 1
    with tw.Engine(num_threads=4) as engine:
        assert engine.get_num_threads() == 4
    return True

for _ in range(100):
    chain(10)
    in_child(child)
""",
        THALWEG_INLINE="off",
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
@pytest.mark.parametrize("first_call", ["tw.ones(3)", "tw.asarray(np.ones(3))"])
def test_bad_environment_raises_and_names_the_variable(name, value, names, first_call):
    out, _ = run(
        f"""
        import numpy as np
        try:
            {first_call}
        except tw.ValueError as error:
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

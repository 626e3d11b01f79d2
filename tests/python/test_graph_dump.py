# test_graph_dump.py: dump_graph and record_graph, against tools/graph.schema.json.
from __future__ import annotations

import inspect
import json
import math
import threading
from pathlib import Path

import jsonschema
import pytest
import thalweg as tw

SCHEMA = json.loads((Path(__file__).parents[2] / "tools" / "graph.schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def read(path: Path) -> dict:
    """The dump, valid against the schema and with operators and operands that tell the same edges."""
    dump = json.loads(path.read_text(), parse_constant=lambda text: pytest.fail(f"{text} is not JSON"))
    VALIDATOR.validate(dump)
    operators = [operator["id"] for operator in dump["operators"]]
    operands = [operand["id"] for operand in dump["operands"]]
    assert operators == sorted(set(operators))
    assert operands == sorted(set(operands))
    reads = {(i, operator["id"]) for operator in dump["operators"] for i in operator["inputs"]}
    writes = {(i, operator["id"]) for operator in dump["operators"] for i in operator["outputs"]}
    assert reads == {(operand["id"], i) for operand in dump["operands"] for i in operand["consumers"]}
    assert writes == {
        (operand["id"], operand["producer"]) for operand in dump["operands"] if operand["producer"]
    }
    assert all(operand < operator for operand, operator in reads)
    return dump


def by_op(dump: dict, op: str) -> list[dict]:
    return [operator for operator in dump["operators"] if operator["op"] == op]


def named(dump: dict, name: str) -> dict:
    (operand,) = [operand for operand in dump["operands"] if operand["name"] == name]
    return operand


def test_schema_is_valid():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_schema_rejects_what_is_not_a_dump(tmp_path):
    tw.synchronize()
    with tw.record_graph(tmp_path / "graph.json"):
        tw.ones(3)
    dump = json.loads((tmp_path / "graph.json").read_text())
    VALIDATOR.validate(dump)
    for broken in (
        {**dump, "version": 2},
        {**dump, "operators": [{**dump["operators"][0], "state": "lost"}]},
        {**dump, "operands": [{key: value for key, value in dump["operands"][0].items() if key != "shape"}]},
    ):
        assert not VALIDATOR.is_valid(broken)


def test_dump_of_an_idle_engine(tmp_path):
    tw.synchronize()
    tw.engine().drain()
    tw.dump_graph(tmp_path / "graph.json")
    dump = read(tmp_path / "graph.json")
    assert dump["kind"] == "live"
    assert dump["operators"] == []
    assert dump["operands"] == []


def test_dump_shows_what_is_live(tmp_path):
    gate = tw._C.testing.new_gate()
    hold = tw._C.op("test_gate")
    with tw.Engine(test_operators=True, mode="threaded"):
        try:
            x = tw.ones((2, 3), dtype="float32").name_("x")
            x.wait()
            held, line = hold(x, gate=gate), inspect.currentframe().f_lineno
            y = (held + x).name_("y")
            tw.dump_graph(tmp_path / "graph.json")
        finally:
            tw._C.testing.open_gate(gate)
        dump = read(tmp_path / "graph.json")
        (waiting,) = by_op(dump, "test_gate")
        assert waiting["site"] == f"{__file__}:{line}"
        assert waiting["state"] in ("pending", "running")
        assert waiting["attributes"] == {"gate": gate}
        (add,) = by_op(dump, "add")
        assert add["state"] == "pending"
        assert add["inputs"] == [waiting["id"], named(dump, "x")["id"]]
        assert named(dump, "x")["producer"] is None
        assert named(dump, "x")["shape"] == [2, 3]
        assert named(dump, "y")["producer"] == add["id"]
        assert named(dump, "y")["bytes"] == 24
        assert y.tolist() == [[2.0] * 3] * 2


def test_recording_shows_what_ran(tmp_path):
    a = tw.arange(6, dtype="float64").name_("a")
    with tw.record_graph(tmp_path / "graph.json"):
        b = a + 1.0
        c = tw.reshape(b, (2, 3)).name_("c")
        d = tw.sum(c, axis=1, keepdims=True)
        inspect_line = inspect.currentframe().f_lineno - 1
    after = d + d
    dump = read(tmp_path / "graph.json")
    assert dump["kind"] == "recording"
    assert after.tolist() == [[12.0], [30.0]]
    assert len(by_op(dump, "add")) == 1
    (total,) = by_op(dump, "sum")
    assert total["site"] == f"{__file__}:{inspect_line}"
    assert total["attributes"]["axis"] == [1]
    assert total["attributes"]["keepdims"] is True
    (view,) = by_op(dump, "reshape")
    assert view["stream"] is None
    assert view["bytes"] == 0
    assert named(dump, "a")["producer"] is None
    assert named(dump, "c")["producer"] == view["id"]
    for operator in dump["operators"]:
        assert operator["state"] == "ready"
        assert operator["enqueue_ns"] <= operator["start_ns"] <= operator["end_ns"]
        assert operator["thread"] is not None
        assert operator["name"] == f"{operator['op']}_{operator['id']}"


def test_recording_writes_numbers_that_json_lacks_as_text(tmp_path):
    with tw.record_graph(tmp_path / "graph.json"):
        for value in (math.nan, math.inf, -math.inf, 1.5, True, 3):
            tw.full((2,), value)
    values = [operator["attributes"]["value"] for operator in by_op(read(tmp_path / "graph.json"), "full")]
    assert values == ["nan", "inf", "-inf", 1.5, True, 3]


def test_recording_every_kind_of_operator_is_valid(tmp_path):
    with tw.record_graph(tmp_path / "graph.json"):
        x = tw.linspace(0, 1, 12).reshape((3, 4))
        y = x[1:, ::2] @ x.T[:2, :3]
        tw.concat([y, y], axis=0)
        tw.roll(x, 1, axis=0)
        tw.astype(x, "int32")
        tw.take(x, tw.asarray([0, 2]), axis=1)
        tw.argmax(x, axis=None)
        tw.where(x > 0.5, x, -x)
        x[0] = 7.0
        x += 1.0
        tw.rand(3)
        tw.zeros((2, 0, 3))
    dump = read(tmp_path / "graph.json")
    assert len(dump["operators"]) >= 12


def test_recording_shows_failures(tmp_path, test_engine):
    fail = tw._C.op("test_fail")
    x = tw.ones(3)
    with tw.record_graph(tmp_path / "graph.json"):
        try:
            y = fail(x, kind="value", message="no") + 1.0
        except ValueError:
            assert tw.engine().mode == "sync"
    dump = read(tmp_path / "graph.json")
    assert by_op(dump, "test_fail")[0]["state"] == "failed"
    if tw.engine().mode != "sync":
        assert by_op(dump, "add")[0]["state"] == "failed"
        with pytest.raises(ValueError, match="no"):
            y.wait()


def test_recording_ends_when_the_block_raises(tmp_path):
    with pytest.raises(KeyError), tw.record_graph(tmp_path / "graph.json"):
        tw.ones(3)
        raise KeyError
    assert len(read(tmp_path / "graph.json")["operators"]) == 1
    with tw.record_graph(tmp_path / "graph.json"):
        pass
    assert read(tmp_path / "graph.json")["operators"] == []


def test_recordings_do_not_nest(tmp_path):
    with tw.record_graph(tmp_path / "outer.json"):
        with pytest.raises(tw.EngineError, match="recording"), tw.record_graph(tmp_path / "inner.json"):
            pass
        tw.ones(3)
    assert len(read(tmp_path / "outer.json")["operators"]) == 1
    assert not (tmp_path / "inner.json").exists()


def test_dumping_never_disturbs_a_run(tmp_path):
    over = threading.Event()
    dumps = 0

    def dump_in_a_loop():
        nonlocal dumps
        while True:
            tw.dump_graph(tmp_path / "graph.json")
            read(tmp_path / "graph.json")
            dumps += 1
            if over.is_set():
                return

    dumper = threading.Thread(target=dump_in_a_loop)
    dumper.start()
    try:
        total = tw.zeros(8, dtype="int64")
        step = tw.ones(8, dtype="int64")
        for _ in range(20_000):
            total = total + step
        assert total.tolist() == [20_000] * 8
    finally:
        over.set()
        dumper.join()
    assert dumps > 0

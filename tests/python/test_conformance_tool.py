# test_conformance_tool.py: tools/conformance counts a report of the standard's suite as it is.
from __future__ import annotations

from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[2] / "tools" / "conformance"

REPORT = """<testsuites><testsuite>
<testcase classname="array_api_tests.test_fft" name="test_fft"/>
<testcase classname="array_api_tests.test_fft" name="test_ifft"><failure message="no"/></testcase>
<testcase classname="array_api_tests.test_special_cases" name="test_unary[abs]"><skipped/></testcase>
<testcase classname="array_api_tests.test_special_cases" name="test_unary[exp]"><error/></testcase>
</testsuite></testsuites>"""


@pytest.fixture
def tool():
    loader = SourceFileLoader("conformance", str(TOOL))
    module = module_from_spec(spec_from_loader("conformance", loader))
    loader.exec_module(module)
    return module


def test_the_table_counts_every_outcome(tool, tmp_path):
    report = tmp_path / "report.xml"
    report.write_text(REPORT)
    by_file, failed = tool.read_report(report)
    assert failed == ["test_fft.py::test_ifft", "test_special_cases.py::test_unary[exp]"]
    text = tool.table(by_file, failed, 7)
    assert "| fft | 1 | 1 | 0 |" in text
    assert "| special cases | 0 | 1 | 1 |" in text
    assert "| together | 1 | 2 | 1 |" in text
    assert "7 examples" in text
    assert "`test_fft.py::test_ifft`" in text


def test_only_what_is_between_the_marks_changes(tool):
    text = f"before\n{tool.BEGIN}old\n{tool.END}after\n"
    assert tool.rewrite(text, "new\n") == f"before\n{tool.BEGIN}new\n{tool.END}after\n"


def test_the_readme_has_the_marks(tool):
    text = tool.README.read_text(encoding="utf-8")
    assert tool.BEGIN in tool.rewrite(text, "new\n")


@pytest.mark.parametrize("text", ["", "{begin}", "{begin}{end}{begin}{end}"])
def test_missing_marks_are_refused(tool, text):
    with pytest.raises(ValueError, match="both marks once"):
        tool.rewrite(text.format(begin=tool.BEGIN, end=tool.END), "new\n")


@pytest.mark.parametrize(
    ("report", "message"),
    [
        ("<testsuite/>", "no test"),
        ('<testsuite><testcase classname="x" name="y"/></testsuite>', "x.y is not"),
    ],
)
def test_other_reports_are_refused(tool, tmp_path, report, message):
    path = tmp_path / "report.xml"
    path.write_text(report)
    with pytest.raises(ValueError, match=message):
        tool.read_report(path)

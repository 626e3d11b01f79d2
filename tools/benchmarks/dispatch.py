# dispatch.py: nanoseconds per Python call of small operators, not waiting for their values.
from harness import Case, Report, progress, rounds

ELEMENTS = 8
BURST = 1_000  # calls; the queue is drained outside the timing
SUSTAINED = 1_000_000  # calls; the final synchronize is part of the timing
BURSTS_PER_ROUND = 40

bursts = [
    Case("a + b burst", "a + b", ELEMENTS),
    Case("a + 1.0", "a + 1.0", ELEMENTS),
    Case("exp(a)", "lib.exp(a)", ELEMENTS),
    Case("a[1:5]", "a[1:5]", ELEMENTS),
    Case("a.sum()", "a.sum()", ELEMENTS),
]
sustained = Case("a + b sustained", "a + b", ELEMENTS)

total = rounds(7)
for number in range(total):
    for _ in range(BURSTS_PER_ROUND):
        for case in bursts:
            case.measure(BURST)
    sustained.measure(SUSTAINED, drain_inside=True)
    progress("dispatch", number + 1, total)

report = Report()
for case in (bursts[0], sustained, *bursts[1:]):
    case.report_to(report)
report.facts["rounds"] = total
report.print()

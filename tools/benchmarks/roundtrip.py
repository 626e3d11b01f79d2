# roundtrip.py: nanoseconds until a Python program has the value of a small operator.
from harness import Case, Report, progress, rounds

IDLE = 0.003  # seconds; long enough for oneTBB's workers (1 ms) and the controller to go to sleep
BURST = 1_000

busy = Case("(a + b).item() back to back", "(a + b).item()", 1)
idle = Case("(a + b).item() after 3 ms idle", "(a + b).item()", 1)


total = rounds(30)
for number in range(total):
    for _ in range(5):
        busy.measure(BURST)
    for _ in range(10):
        idle.measure(1, idle=IDLE)
    progress("roundtrip", number + 1, total)

report = Report()
busy.report_to(report)
idle.report_to(report)
report.facts["rounds"] = total
report.print()

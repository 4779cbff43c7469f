"""Prints how many tests of JUnit reports (of GoogleTest or pytest) were skipped, and why."""

import re
import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

# GoogleTest writes the place before the reason of GTEST_SKIP() << reason.
GTEST_PLACE = re.compile(r"^\S+:\d+\n")

tests = 0
reasons: Counter[str] = Counter()
for path in sys.argv[1:]:
    # GoogleTest copies the bytes of parameters, which need not be UTF-8.
    report = Path(path).read_bytes().decode(errors="replace")
    for case in ElementTree.fromstring(report).iter("testcase"):
        tests += 1
        skipped = case.find("skipped")
        if skipped is None:
            continue
        reason = GTEST_PLACE.sub("", skipped.get("message", ""))
        reasons[" ".join(reason.split()) or "no reason given"] += 1

if not reasons:
    print(f"Nothing was skipped: all {tests} tests ran.")
else:
    why = "; ".join(f"{count} because: {reason}" for reason, count in reasons.most_common())
    print(f"Skipped {reasons.total()} of {tests} tests: {why}.")

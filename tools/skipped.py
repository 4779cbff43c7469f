"""Prints how many tests of JUnit reports (of ctest or pytest) were skipped, and why."""

import re
import sys
from collections import Counter
from xml.etree import ElementTree

# What GoogleTest prints for GTEST_SKIP() << reason
GTEST_REASON = re.compile(r": Skipped\n(.*?)\n\[  SKIPPED \]", re.DOTALL)

tests = 0
reasons: Counter[str] = Counter()
for path in sys.argv[1:]:
    for case in ElementTree.parse(path).iter("testcase"):
        tests += 1
        skipped = case.find("skipped")
        if skipped is None:
            continue
        said = GTEST_REASON.search(case.findtext("system-out", ""))
        reason = said[1] if said else skipped.get("message", "")
        reasons[" ".join(reason.split()) or "no reason given"] += 1

if not reasons:
    print(f"Nothing was skipped: all {tests} tests ran.")
else:
    why = "; ".join(f"{count} because: {reason}" for reason, count in reasons.most_common())
    print(f"Skipped {reasons.total()} of {tests} tests: {why}.")

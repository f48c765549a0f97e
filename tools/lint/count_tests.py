#!/usr/bin/env python3
"""Sums ctest's JUnit files: the last line is "N passed, N failed". Fails when none was run."""

import sys
import xml.etree.ElementTree as ElementTree


def main() -> int:
    passed = failed = skipped = 0
    for path in sys.argv[1:]:
        try:
            suite = ElementTree.parse(path).getroot()
        except (OSError, ElementTree.ParseError):
            continue  # a build that failed before its tests; its own exit code says so
        for case in suite.iter("testcase"):
            status = case.get("status")
            if status == "run":
                passed += 1
            elif status in ("notrun", "disabled") and case.find("skipped") is not None:
                skipped += 1
            else:
                failed += 1
    if skipped:
        print(f"{skipped} skipped")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())

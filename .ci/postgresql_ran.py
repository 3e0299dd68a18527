"""Exit with 1 and a reason unless the test report given as argument shows the store suite on PostgreSQL."""

import sys
from pathlib import Path
from xml.etree import ElementTree as ET


def ran_on_postgresql(report: Path) -> list[str]:
    """Names of the tests that ran on PostgreSQL and were not skipped."""
    cases = ET.parse(report).iter("testcase")  # noqa: S314 (pytest wrote the report a moment ago)
    return [
        case.attrib["name"]
        for case in cases
        if "postgresql" in case.attrib["name"] and case.find("skipped") is None
    ]


if __name__ == "__main__" and not ran_on_postgresql(Path(sys.argv[1])):
    sys.exit("no test ran on PostgreSQL")

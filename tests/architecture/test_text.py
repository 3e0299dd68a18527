"""What is written here means the same on every machine, and its links lead somewhere."""

import re
from pathlib import Path
from urllib.parse import unquote

from tests.architecture.repository import ROOT, files, shown, texts

# Each pattern is split, so that this file does not hold what it looks for.
MACHINE_PATHS = re.compile(
    r"(?<![\w.])/(?:" + "|".join(["wor" + "k/", "roo" + "t/", "Use" + r"rs/\w", "hom" + r"e/\w"]) + ")"
)
REGISTRY_HOSTS = re.compile(
    "|".join(
        re.escape(name + "." + domain)
        for name, domain in [
            ("pypi", "org"),
            ("pythonhosted", "org"),
            ("npmjs", "org"),
            ("proxy.golang", "org"),
            ("repo1.maven", "org"),
        ]
    )
)
LINK = re.compile(r"(?<!!)\[[^\]]*\]\((?P<target>[^)\s]+)\)|!\[[^\]]*\]\((?P<picture>[^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ +(.+?) *$", re.MULTILINE)


def _found(pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{shown(path)}:{number}: {line.strip()[:100]}"
        for path, text in texts().items()
        for number, line in enumerate(text.splitlines(), start=1)
        if pattern.search(line)
    ]


def test_no_file_names_a_path_of_one_machine() -> None:
    assert _found(MACHINE_PATHS) == []


def test_no_file_names_the_host_of_a_package_registry() -> None:
    assert _found(REGISTRY_HOSTS) == []


def _anchors(page: Path) -> set[str]:
    headings = HEADING.findall(FENCE.sub("", page.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def _leads_nowhere(page: Path, target: str) -> bool:
    if re.match(r"[a-z]+:", target):
        return False
    path, _, anchor = unquote(target).partition("#")
    aim = (page.parent / path).resolve() if path else page
    if ROOT not in (aim, *aim.parents) or not aim.exists():
        return True
    return bool(anchor) and aim.suffix == ".md" and anchor not in _anchors(aim)


def test_every_relative_link_of_the_documents_leads_somewhere() -> None:
    pages = [path for path in files() if path.suffix == ".md"]
    broken = [
        f"{shown(page)}: {target}"
        for page in pages
        for match in LINK.finditer(FENCE.sub("", page.read_text(encoding="utf-8")))
        if (target := match["target"] or match["picture"]) and _leads_nowhere(page, target)
    ]

    assert pages
    assert broken == []

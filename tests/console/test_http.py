"""The console over HTTP: what it serves, to whom, by which name, and that it only reads."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from muster.app.settings import Settings
from muster.app.wiring import why_no_console
from muster.console.bridge import MOST_AT_ONCE, Bridge
from muster.console.pages import read_pages
from muster.engine.errors import ResourceExhaustedError
from tests.console.conftest import TOKEN
from tests.console.served import Served, service
from tests.console.world import BLOCK, CLUSTER, RACK

VIEWS = [
    "clusters",
    "topology",
    "groups",
    "queue",
    "decisions",
    f"explain?kind=PodGroup&name=web&cluster={CLUSTER}",
]


def test_every_file_of_the_console_is_served_as_what_it_is(served: Served) -> None:
    for path, page in read_pages().items():
        reply = served.get(f"/console/{path}")

        assert (reply.status, reply.body) == (200, page.body), path
        assert reply.headers["Content-Type"] == page.content_type
        assert "default-src 'none'" in reply.headers["Content-Security-Policy"]


def test_a_file_that_the_browser_has_is_not_sent_again(served: Served) -> None:
    tag = served.get("/console/main.js").headers["ETag"]

    reply = served.get("/console/main.js", {"If-None-Match": tag})

    assert (reply.status, reply.body) == (304, b"")


def test_no_file_makes_markup_of_text_or_names_another_site() -> None:
    for path, page in read_pages().items():
        text = page.body.decode()
        for forbidden in (
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "https://",
        ):
            assert forbidden not in text, (path, forbidden)


@pytest.mark.parametrize(
    "path", ["../console/main.js", "..%2f..%2fapplication.py", "application.py", "static/"]
)
def test_nothing_but_the_files_is_served(served: Served, path: str) -> None:
    assert served.get(f"/console/{path}").status == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_nothing_can_be_changed(served: Served, method: str) -> None:
    assert served.get("/console/api/queue", method=method).status == 405


def test_the_address_without_its_slash_leads_there(served: Served) -> None:
    reply = served.get("/console")

    assert (reply.status, reply.headers["Location"]) == (308, "/console/")


@pytest.mark.parametrize("host", ["attacker.example", "attacker.example:80", "[", ""])
def test_another_sites_name_for_this_address_is_not_answered(served: Served, host: str) -> None:
    reply = served.get("/console/api/queue", {"Host": host})

    assert reply.status in {400, 421}


def test_the_queue_is_the_apis_json_in_pages(served: Served) -> None:
    first = served.view(f"queue?cluster={CLUSTER}&pageSize=2")
    second = served.view(f"queue?cluster={CLUSTER}&pageSize=2&pageToken={first['nextPageToken']}")

    names = [unit["unit"]["name"] for unit in (*first["units"], *second["units"])]
    assert len(names) == len(set(names)) == 4
    assert {each["state"] for each in first["counts"]} >= {"UNIT_STATE_GATED", "UNIT_STATE_UNSCHEDULABLE"}


def test_the_queue_can_be_asked_for_one_state(served: Served) -> None:
    answer = served.view(f"queue?cluster={CLUSTER}&state=UNIT_STATE_GATED")

    assert [unit["unit"]["name"] for unit in answer["units"]] == ["short"]


def test_a_unit_that_nothing_was_decided_about_is_told_without_a_decision(served: Served) -> None:
    answer = served.view(f"explain?kind=PodGroup&name=short&cluster={CLUSTER}")

    assert answer["queue"]["state"] == "UNIT_STATE_GATED"
    assert not answer.get("lastDecision")


def test_the_topology_nests_domains_and_counts_a_groups_pods(served: Served) -> None:
    asked = f"topology?cluster={CLUSTER}&kind=CompositePodGroup&namespace=default&name=training"
    answer = served.view(asked)

    assert answer["keys"] == [BLOCK, RACK]
    blocks = {each["value"]: each for each in answer["block"]["blocks"]}
    assert [each["value"] for each in blocks["block-0"]["blocks"]] == ["b0-rack-0", "b0-rack-1", "b0-rack-2"]
    assert (answer["block"]["bound"], blocks["block-0"]["bound"]) == (6, 6)
    assert [host["name"] for host in blocks["block-1"]["blocks"][1]["hosts"] if host["cordoned"]] == [
        "b1-r1-h3"
    ]


def test_a_domain_can_be_opened(served: Served) -> None:
    answer = served.view(f"topology?cluster={CLUSTER}&at=block-1&at=b1-rack-2")

    assert answer["path"] == ["block-1", "b1-rack-2"]
    assert len(answer["block"]["hosts"]) == answer["block"]["nodes"] == 4


def test_levels_can_be_chosen(served: Served) -> None:
    answer = served.view(f"topology?cluster={CLUSTER}&level=nvidia.com/gpu.product")

    assert [each["value"] for each in answer["block"]["blocks"]] == ["A100", "T4", None]


def test_groups_are_found_by_a_part_of_their_name(served: Served) -> None:
    found = served.view(f"groups?cluster={CLUSTER}&text=pretraining")

    assert [each["name"] for each in found] == [
        "pretraining",
        "pretraining-0",
        "pretraining-1",
        "pretraining-2",
    ]
    assert (found[0]["bound"], found[0]["pending"]) == (0, 12)


def test_a_decision_is_told_with_how_it_was_made(served: Served) -> None:
    listed = served.view(f"decisions?cluster={CLUSTER}&kind=CompositePodGroup&name=training")["decisions"]

    timeline = served.view(f"timeline?cluster={CLUSTER}&id={listed[0]['id']}")

    assert (timeline["timed"], timeline["equal"]) == (True, True)
    sections = [(span["depth"], span["section"]) for span in timeline["spans"][:4]]
    assert sections == [(0, "cycle"), (1, "group"), (2, "group"), (3, "pods")]
    assert all(span["start"] + span["length"] <= timeline["length"] for span in timeline["spans"])


@pytest.mark.parametrize(
    ("path", "status", "reason"),
    [
        ("explain", 400, "INVALID_REQUEST"),
        ("explain?kind=Node&name=n", 400, "INVALID_REQUEST"),
        ("queue?pageSize=0", 400, "INVALID_REQUEST"),
        ("queue?pageSize=501", 400, "INVALID_REQUEST"),
        ("queue?state=ASLEEP", 400, "INVALID_REQUEST"),
        ("queue?pageToken=x", 400, "PAGE_TOKEN_MISMATCH"),
        ("queue?cluster=A%20B", 400, "INVALID_REQUEST"),
        ("queue?cluster=nowhere", 404, "CLUSTER_NOT_FOUND"),
        ("decision", 400, "INVALID_REQUEST"),
        ("decision?id=1", 404, "DECISION_NOT_FOUND"),
        ("explain?kind=PodGroup&name=none", 404, "OBJECT_NOT_FOUND"),
        (f"queue?{'&'.join(['a=1'] * 65)}", 400, "INVALID_REQUEST"),
    ],
)
def test_a_wrong_question_is_refused_as_the_api_refuses_it(
    served: Served, path: str, status: int, reason: str
) -> None:
    reply = served.get(f"/console/api/{path}")

    assert (reply.status, reply.json()["error"]["reason"]) == (status, reason)


@pytest.mark.parametrize("view", VIEWS)
def test_with_tokens_nobody_reads_without_one(guarded: Served, view: str) -> None:
    reply = guarded.get(f"/console/api/{view}")

    assert (reply.status, reply.json()["error"]["reason"]) == (401, "TOKEN_REQUIRED")


def test_a_reader_may_read(guarded: Served) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}"}

    assert guarded.get("/console/api/queue", headers).status == 200
    assert guarded.get("/console/api/queue", {"Authorization": "Bearer other"}).status == 401


def test_the_files_hold_nothing_and_need_no_token(guarded: Served) -> None:
    assert guarded.get("/console/").status == 200


@pytest.mark.parametrize(
    ("settings", "part"),
    [
        ({"metrics": "127.0.0.1:1"}, ""),
        ({"metrics": "0.0.0.0:1"}, "beyond loopback"),
        ({"metrics": "0.0.0.0:1", "insecure": True}, ""),
        ({"metrics": "127.0.0.1:1", "console": False}, "is off"),
        ({"metrics": "127.0.0.1:1", "client_ca": "a", "tls_cert": "b", "tls_key": "c"}, "certificates"),
        (
            {"metrics": "localhost:1", "client_ca": "a", "tls_cert": "b", "tls_key": "c", "token_file": "d"},
            "",
        ),
    ],
)
def test_the_console_is_open_no_further_than_the_api(settings: dict[str, object], part: str) -> None:
    why = why_no_console(Settings.model_validate(settings))

    assert part in why
    assert bool(why) == bool(part)


def test_a_console_that_is_off_says_so(tmp_path: Path) -> None:
    config = tmp_path / "server.yaml"
    config.write_text("console: false\n", encoding="utf-8")
    with service(tmp_path, "--config", str(config)) as running:
        reply = running.get("/console/")

    assert (reply.status, reply.body) == (403, b"the console is not served: the setting `console` is off\n")


async def test_no_more_requests_than_a_few_are_in_work_at_once() -> None:
    loop = asyncio.get_running_loop()
    bridge, go_on, started = Bridge(loop), asyncio.Event(), asyncio.Semaphore(0)

    async def work() -> str:
        started.release()
        await go_on.wait()
        return "done"

    with ThreadPoolExecutor(MOST_AT_ONCE + 1) as threads:
        in_work = [loop.run_in_executor(threads, bridge.run, work) for _ in range(MOST_AT_ONCE)]
        for _ in range(MOST_AT_ONCE):
            await started.acquire()
        refused = await asyncio.gather(
            loop.run_in_executor(threads, bridge.run, work), return_exceptions=True
        )
        go_on.set()
        answers = await asyncio.gather(*in_work)

    assert isinstance(refused[0], ResourceExhaustedError)
    assert answers == ["done"] * MOST_AT_ONCE

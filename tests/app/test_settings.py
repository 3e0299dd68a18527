"""Settings come from flags, environment and file, in this order, and a wrong one is named."""

from pathlib import Path

import pytest

from muster.app.settings import InvalidSettingsError, is_loopback, load_settings


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LISTEN", "STORE", "METRICS", "INSECURE", "PROFILES", "UDS"):
        monkeypatch.delenv(f"MUSTER_{name}", raising=False)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "muster.yaml"
    file.write_text("listen: 127.0.0.1:1\neviction: client\nprofiles: [a, b]\n", encoding="utf-8")
    return file


def test_without_any_the_defaults_hold() -> None:
    settings = load_settings({})

    assert (settings.listen, settings.store) == ("127.0.0.1:50051", "sqlite:///./muster.db")
    assert (settings.metrics, settings.eviction, settings.insecure) == ("", "server", False)


def test_flags_win_over_environment_and_environment_over_file(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUSTER_LISTEN", "127.0.0.1:2")
    monkeypatch.setenv("MUSTER_STORE", "sqlite:///env.db")

    settings = load_settings({"store": "sqlite:///flag.db", "metrics": None}, config)

    assert (settings.store, settings.listen) == ("sqlite:///flag.db", "127.0.0.1:2")
    assert (settings.eviction, settings.profiles) == ("client", ("a", "b"))


def test_names_of_profiles_may_come_in_one_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUSTER_PROFILES", "default-scheduler, packing")

    assert load_settings({}).profiles == ("default-scheduler", "packing")


def test_a_name_that_is_not_among_the_defined_profiles_is_refused() -> None:
    flags = {"profiles": "pateint", "profile_definitions": ({"name": "patient"},)}

    with pytest.raises(
        InvalidSettingsError, match="'pateint' is not defined; there are 'patient', 'default-sch"
    ):
        load_settings(flags)


def test_the_default_profile_needs_no_definition() -> None:
    flags = {"profiles": "default-scheduler,patient", "profile_definitions": ({"name": "patient"},)}

    assert load_settings(flags).profiles == ("default-scheduler", "patient")


def test_settings_do_not_change() -> None:
    settings = load_settings({})

    with pytest.raises(ValueError, match="frozen"):
        settings.listen = "127.0.0.1:9"


@pytest.mark.parametrize(
    ("flags", "fault"),
    [
        pytest.param({"listen": "here"}, "listen: 'here' is not HOST:PORT", id="no port"),
        pytest.param({"metrics": "127.0.0.1:70000"}, "metrics: '127.0.0.1:70000' is not", id="high port"),
        pytest.param({"listen": "0.0.0.0:0"}, "beyond loopback and without TLS", id="plain text outside"),
        pytest.param({"listen": "example.org:1"}, "beyond loopback and without TLS", id="a name"),
        pytest.param({"listen": ""}, "no way in", id="no address"),
        pytest.param({"store": "muster.db"}, "store: a store is sqlite:///path or .* no URL", id="a path"),
        pytest.param(
            {"store": "mysql://h/d"}, "store: a store is sqlite:///path or .* not mysql", id="MySQL"
        ),
        pytest.param({"store": "postgresql://h:port/d"}, "store: .* this is no URL", id="port of letters"),
        pytest.param({"tls_cert": "c.pem"}, "tls_cert and tls_key go together", id="half of TLS"),
        pytest.param({"client_ca": "c.pem"}, "client_ca needs tls_cert", id="authority alone"),
        pytest.param({"eviction": "nobody"}, "eviction: Input should be 'server' or 'client'", id="eviction"),
        pytest.param({"uds_mode": "999"}, "uds_mode: ", id="mode"),
        pytest.param({"colour": "red"}, "colour: ", id="unknown"),
        *(
            pytest.param({name: 10**13}, f"{name}: Input should be less than", id=name)
            for name in (
                "log_retention_seconds",
                "log_retention_revisions",
                "decision_retention_seconds",
                "decision_retention_count",
                "finished_retention_seconds",
            )
        ),
    ],
)
def test_a_wrong_setting_is_named_with_its_fault(flags: dict[str, str], fault: str) -> None:
    with pytest.raises(InvalidSettingsError, match=fault):
        load_settings(flags)


def test_every_fault_is_named_at_once() -> None:
    with pytest.raises(InvalidSettingsError, match=r"listen: .*; workers: "):
        load_settings({"listen": "x", "workers": -1})


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        pytest.param("colour: red", "colour", id="unknown setting"),
        pytest.param("a: [", "config: ", id="no YAML"),
        pytest.param("- a", "config: ", id="a list"),
        pytest.param("1: 2", "config: ", id="a number for a name"),
        pytest.param("[" * 100_000, "config: ", id="lists without end"),
        pytest.param("listen: 2026-99-99", "config: ", id="a day that is none"),
        pytest.param("insecure: !!bool maybe", "config: ", id="not what its tag says"),
    ],
)
def test_a_wrong_file_is_one_line(tmp_path: Path, text: str, fault: str) -> None:
    file = tmp_path / "muster.yaml"
    file.write_text(text, encoding="utf-8")

    with pytest.raises(InvalidSettingsError) as caught:
        load_settings({}, file)

    assert fault in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettingsError, match=r"config: .*none\.yaml"):
        load_settings({}, tmp_path / "none.yaml")


@pytest.mark.parametrize("allowed", [{"insecure": True}, {"tls_cert": "c.pem", "tls_key": "k.pem"}])
def test_beyond_loopback_needs_tls_or_consent(allowed: dict[str, object]) -> None:
    assert load_settings({"listen": "0.0.0.0:1", **allowed}).listen == "0.0.0.0:1"


@pytest.mark.parametrize(
    ("address", "answer"),
    [
        ("127.0.0.1:1", True),
        ("127.1.2.3:1", True),
        ("localhost:1", True),
        ("[::1]:1", True),
        ("[::]:1", False),
        ("10.0.0.1:1", False),
        ("host:1", False),
    ],
)
def test_loopback_is_told_from_the_rest(address: str, answer: bool) -> None:
    assert is_loopback(address) is answer

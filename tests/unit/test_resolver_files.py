"""The hosts file, as hosts(5) describes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from scrapy_frontier.resolver.files import HostsFile

TEXT = """\
# 192.0.2.9 commented.test
127.0.0.1\tlocalhost
::1 localhost ip6-localhost
192.0.2.1   www.test WWW2.Test   # and a remark
192.0.2.2 www.test
192.0.2.2 www.test
fe80::1%eth0 zone.test
not-an-address broken.test
192.0.2.3
"""


@pytest.mark.parametrize(
    ("name", "addresses"),
    [
        ("www.test", ["192.0.2.1", "192.0.2.2"]),
        ("www.test.", ["192.0.2.1", "192.0.2.2"]),
        ("www2.test", ["192.0.2.1"]),
        ("localhost", ["127.0.0.1", "::1"]),
        ("ip6-localhost", ["::1"]),
        ("commented.test", []),
        ("zone.test", []),
        ("broken.test", []),
        ("remark", []),
        ("elsewhere.test", []),
    ],
)
def test_every_line_of_a_name_counts(tmp_path: Path, name: str, addresses: list[str]) -> None:
    """All addresses of a name in their order, each once; what is no line of addresses is passed over."""
    path = tmp_path / "hosts"
    path.write_text(TEXT)
    assert [address.host for address in HostsFile(path).addresses_of(name)] == addresses


@pytest.mark.parametrize("name", ["localhost", "localhost.", "app.localhost"])
def test_localhost_is_this_machine_without_any_file(tmp_path: Path, name: str) -> None:
    """RFC 6761, section 6.3. Other names that end alike are names like others."""
    hosts = HostsFile(tmp_path / "missing")
    assert [address.host for address in hosts.addresses_of(name)] == ["127.0.0.1", "::1"]
    assert hosts.addresses_of("notlocalhost") == ()
    assert hosts.addresses_of("localhost.test") == ()


def test_change_is_noticed(tmp_path: Path) -> None:
    """An edit counts at once, and so does the end of the file."""
    path = tmp_path / "hosts"
    path.write_text("192.0.2.1 www.test\n")
    hosts = HostsFile(path)
    assert [address.host for address in hosts.addresses_of("www.test")] == ["192.0.2.1"]
    path.write_text("192.0.2.20 www.test\n")
    assert [address.host for address in hosts.addresses_of("www.test")] == ["192.0.2.20"]
    path.unlink()
    assert hosts.addresses_of("www.test") == ()

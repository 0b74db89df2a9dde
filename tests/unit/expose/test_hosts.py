from __future__ import annotations

import pytest

from edgekeeper.errors import ConfigError
from edgekeeper.expose.annotations import read
from edgekeeper.expose.hosts import claim_of, parse_hosts
from edgekeeper.expose.kinds import Options

TEXT = """\
hosts:
  - WWW.example.
  - host: api.example
    class: public
    listen_port: 8443
    proxy_protocol: false
    request_timeout: 90s
    idle_timeout: 1h
    allow_cidrs: [192.0.2.7, 2001:DB8::/32]
    block_cidrs: []
    allow_countries: [de]
    block_countries: [FR]
    delete_policy: keep
    adopt: true
    force_delete: true
"""


def test_an_entry_says_what_the_annotations_of_an_object_would():
    plain, full = (claim_of(entry, "p.example") for entry in parse_hosts(TEXT, "h.yaml"))
    assert (plain.origin.text, plain.hosts, plain.klass, dict(plain.annotations)) == ("File www.example", ("www.example",), "", {})
    assert (full.hosts, full.klass) == (("api.example",), "public")
    said = read(full, "p.example")
    assert not said.remarks
    assert said.options == Options(8443, False, "1m30s", "1h0m0s", ("192.0.2.7/32", "2001:db8::/32"), (), ("DE",), ("FR",), "keep", adopt=True, force=True)


def test_every_mistake_is_told_at_its_place():
    text = "hosts:\n  - '*.example'\n  - {host: a.example, allow_cidrs: [10.0.0.1/8], block_countries: [UK], listenport: 1}\n  - {clas: x}\n"
    with pytest.raises(ConfigError) as caught:
        parse_hosts(text, "h.yaml")
    told = str(caught.value).splitlines()
    assert [line.partition(": ")[0] for line in told] == ["h.yaml:2:5", "h.yaml:3:37", "h.yaml:3:68", "h.yaml:3:73", "h.yaml:4:5", "h.yaml:4:6"]
    assert "wildcard" in told[0]
    assert "write 10.0.0.0/8 or 10.0.0.1" in told[1]
    assert "GB, not UK" in told[2]
    assert "did you mean listen_port?" in told[3]


@pytest.mark.parametrize(("text", "what"), [("", "the file is empty"), ("- a.example\n", "write hosts:"), ("hosts: [a.example, A.example.]\n", "named twice")])
def test_what_is_no_such_file_is_refused(text, what):
    with pytest.raises(ConfigError, match=what):
        parse_hosts(text, "h.yaml")


def test_a_file_that_names_nobody_is_a_file():
    assert parse_hosts("hosts: []\n", "h.yaml") == ()

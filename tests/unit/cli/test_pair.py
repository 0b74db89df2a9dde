from __future__ import annotations

import stat

import pytest
from cryptography import x509

from edgekeeper.cli.main import run
from edgekeeper.cli.pair import configs, read_pair
from edgekeeper.config.load import parse
from edgekeeper.errors import UsageError

PAIR = "edge-a=192.0.2.11,edge-b=192.0.2.12"


def test_every_node_gets_its_own_config_and_all_agree() -> None:
    nodes = read_pair(f"{PAIR},null=192.0.2.13,1e3=192.0.2.14")
    texts, vrids = configs(nodes, ["dns", "vip", "lb"], "/srv/edge")
    roots = {name: parse(text, "edgekeeper.yaml").root for name, text in texts.items()}
    assert list(roots) == ["edge-a", "edge-b", "null", "1e3"]
    assert vrids == [53]
    for name, root in roots.items():
        assert root.node == name
        assert list(root.nodes) == list(roots)
        assert root.nodes == roots["edge-a"].nodes
        assert root.vip == roots["edge-a"].vip
        assert root.ops.listen == f"{root.nodes[name].address}:8084"
        assert root.nodes[name].ops == f"https://{root.ops.listen}"
        assert root.ops.believed_ca == root.ops.client_ca == "/srv/edge/ops-ca.crt"
    assert roots["edge-a"].vip is not None
    assert roots["edge-a"].vip.hmac_key_file == "/srv/edge/vrrp-{vrid}.key"


def test_nodes_of_ipv6_have_a_vip_of_ipv6() -> None:
    texts, _ = configs(read_pair("a=2001:db8::1,b=2001:db8::2"), ["vip"], "/etc/edgekeeper")
    root = parse(texts["a"], "edgekeeper.yaml").root
    assert (root.ops.listen, root.nodes["b"].ops) == ("[2001:db8::1]:8084", "https://[2001:db8::2]:8084")
    assert root.vip is not None
    assert root.vip.vips[0].address == "2001:db8::53/64"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("edge-a=192.0.2.11", "names 1 node"),
        (",".join(f"n{i}=192.0.2.{i}" for i in range(1, 22)), "names 21 nodes"),
        ("edge-a=192.0.2.11,edge-a=192.0.2.12", "edge-a is there twice"),
        ("edge-a=192.0.2.11,edge-b=192.0.2.11", "192.0.2.11 is there twice"),
        ("a=192.0.2.11,b=2001:db8::1", "one family"),
        ("a=192.0.2.11,b=fe80::1%eth0", "is not NAME=ADDRESS"),
        ("a=192.0.2.11,b=host.example", "is not NAME=ADDRESS"),
        ("a\n=192.0.2.11,b=192.0.2.12", "is not NAME=ADDRESS"),
        ("edge-a,edge-b", "is not NAME=ADDRESS"),
    ],
)
def test_what_is_no_pair_is_refused_with_its_reason(text: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        read_pair(text)


@pytest.mark.parametrize("folder", ["etc", "/etc/x\ny", "/etc/a b", "/etc/{vrid}", "", "/", "/etc/"])
def test_a_folder_that_could_say_more_than_a_path_is_refused(folder: str) -> None:
    with pytest.raises(UsageError, match="is not an absolute folder"):
        configs(read_pair(PAIR), ["vip"], folder)


def test_all_is_written_at_once_and_never_over_anything(tmp_path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["init", "--pair", PAIR, "--role", "vip", "--dir", "made"]) == 0
    told = capsys.readouterr().out
    made = tmp_path / "made"
    files = {str(path.relative_to(made)): stat.S_IMODE(path.stat().st_mode) for path in made.rglob("*") if path.is_file()}
    own = {"edgekeeper.yaml": 0o644, "ops-ca.crt": 0o644, "ops.crt": 0o644, "ops.key": 0o600, "vrrp-53.key": 0o600}
    assert files == {"ca.key": 0o600, **{f"{node}/{name}": mode for node in ("edge-a", "edge-b") for name, mode in own.items()}}
    assert stat.S_IMODE(made.stat().st_mode) == 0o700
    keys = {(made / node / "vrrp-53.key").read_text() for node in ("edge-a", "edge-b")}
    assert len(keys) == 1
    (key,) = keys
    assert key.startswith("hex:")
    assert len(bytes.fromhex(key[4:])) == 32
    assert "move it offline" in told
    assert key[4:].strip() not in told
    certificate = x509.load_pem_x509_certificate((made / "edge-b" / "ops.crt").read_bytes())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["edge-b"]
    assert [str(ip) for ip in names.get_values_for_type(x509.IPAddress)] == ["192.0.2.12"]
    before = (made / "ca.key").read_bytes()
    assert run(["init", "--pair", PAIR, "--dir", "made"]) == 3
    assert "nothing was written" in capsys.readouterr().err
    assert (made / "ca.key").read_bytes() == before
    assert run(["init", "--pair", PAIR, "--dir", "made/ca.key/x"]) == 6
    assert [path.name for path in tmp_path.iterdir()] == ["made"]

from __future__ import annotations

from pathlib import Path

import pytest

from edgekeeper.doctor.collect import configurations
from edgekeeper.doctor.collect_vips import collect_vips
from edgekeeper.doctor.facts import KeepalivedFacts
from edgekeeper.errors import MissingError, UsageError

INSTANCE = "vrrp_instance {name} {{\n virtual_router_id 5\n}}\n"


def collected(*files: Path) -> KeepalivedFacts:
    return collect_vips(configurations(files).keepalived)


def problems(facts: KeepalivedFacts) -> list[str]:
    return [problem.text for host in facts.hosts for problem in host.problems]


def test_included_files_are_found_beside_the_file_that_includes_them(tmp_path: Path) -> None:
    inner = tmp_path / "conf.d"
    inner.mkdir()
    (tmp_path / "keepalived.conf").write_text(f"include conf.d/*.conf\ninclude {tmp_path}/more.conf\n" + INSTANCE.format(name="A"))
    (inner / "b.conf").write_text("include c.inc\n" + INSTANCE.format(name="B"))
    (inner / "c.inc").write_text(INSTANCE.format(name="C"))
    (inner / ".hidden.conf").write_text(INSTANCE.format(name="H"))
    (tmp_path / "more.conf").write_text(INSTANCE.format(name="M"))
    facts = collected(tmp_path / "keepalived.conf", tmp_path / "more.conf")
    assert [[i.name for i in host.instances] for host in facts.hosts] == [["C", "B", "M", "A"]]
    assert problems(facts) == []


def test_what_cannot_be_included_is_told_and_the_rest_is_read(tmp_path: Path) -> None:
    main = tmp_path / "keepalived.conf"
    main.write_text("include gone.conf\ninclude keepalived.conf\ninclude folder\ninclude {a,b}\ninclude /*/*/*/*/x\n" + INSTANCE.format(name="A"))
    (tmp_path / "folder").mkdir()
    facts = collected(main)
    assert [i.name for i in facts.hosts[0].instances] == ["A"]
    told = problems(facts)
    for word in ("gone.conf names no file here", "includes itself", "folder cannot be read", "is not looked up"):
        assert any(word in text for text in told), (word, told)


def test_a_ring_of_files_ends(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).write_text("include a\ninclude b\n" * 20 + INSTANCE.format(name=name))
    facts = collected(tmp_path / "a")
    assert len(facts.hosts) == 1
    assert any("includes itself" in text for text in problems(facts))


def test_a_script_beside_the_file_is_read_before_one_of_this_machine(tmp_path: Path) -> None:
    main = tmp_path / "keepalived.conf"
    main.write_text('vrrp_script s {\n script "/etc/keepalived/check.sh -x"\n}\nvrrp_script t {\n script "/bin/sh -c true"\n}\n' + INSTANCE.format(name="A"))
    (tmp_path / "check.sh").write_text("#!/bin/sh\npidof x\n")
    facts = collected(main)
    assert facts.text_of(facts.hosts[0].scripts["s"]) == "#!/bin/sh\npidof x\n"
    assert facts.text_of(facts.hosts[0].scripts["t"]) is None


def test_a_script_that_others_may_change_is_told(tmp_path: Path) -> None:
    script = tmp_path / "real" / "check.sh"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\n")
    script.chmod(0o757)
    main = tmp_path / "keepalived.conf"
    main.write_text(f'vrrp_script s {{\n script "{script}"\n}}\n' + INSTANCE.format(name="A"))
    facts = collected(main)
    found = facts.file_of(facts.hosts[0].scripts["s"])
    assert found is not None
    assert found.writers == "anybody"


def test_a_folder_stands_for_what_is_in_it(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="without files"):
        configurations([tmp_path])
    (tmp_path / "a.conf").write_text(INSTANCE.format(name="A"))
    (tmp_path / "nginx.conf").write_text("http {\n}\n")
    (tmp_path / "h.cfg").write_text("global\n daemon\n")
    named = configurations([tmp_path])
    assert [source.name for source in named.keepalived] == [str(tmp_path / "a.conf")]
    assert len(named.haproxy) == 1
    with pytest.raises(MissingError):
        configurations([tmp_path / "gone"])

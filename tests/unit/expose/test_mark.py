from hypothesis import given
from hypothesis import strategies as st

from edgekeeper.expose.kinds import Origin
from edgekeeper.expose.mark import LONGEST, Mark, read

TEXT = st.text(max_size=300)
OWNER = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?", fullmatch=True)


@given(OWNER, OWNER, TEXT, TEXT, st.booleans(), st.booleans(), st.booleans())
def test_whatever_an_object_is_called_its_mark_fits_and_is_read_back(owner, cluster, namespace, name, keep, force, leaving):
    made = Mark.of(owner, cluster, Origin("Ingress", namespace, name), keep=keep, force=force)
    made = made.gone() if leaving else made
    assert len(made.text) <= LONGEST
    assert made.text.isascii()
    assert read(made.text) == made
    assert made.ours(owner, cluster)


@given(TEXT)
def test_no_other_text_is_a_mark(text):
    found = read(text)
    assert found is None or found.text == text


def test_two_objects_with_long_names_have_two_marks():
    marks = {Mark.of("home", "a", Origin("Ingress", "n" * 63, "x" * 200 + end)).text for end in "ab"}
    assert len(marks) == 2


def test_two_objects_whose_names_differ_in_what_cannot_be_written_have_two_marks():
    marks = {Mark.of("home", "a", Origin("File", "", name)).text for name in ("a b", "a:b", "a_b", "a\u00e4b")}
    assert len(marks) == 4


def test_names_that_resemble_a_mark_are_somebody_elses():
    for name in (
        "git.example",
        "edgekeeper",
        "edgekeeper:home/a:Ingress:shop/web:leaving:keep",
        "edgekeeper:home/a:Ingress:shop/web:other",
        "edgekeeper:HOME/a:Ingress:shop/web",
        " edgekeeper:home/a:Ingress:shop/web",
        "edgekeeper:home/a:Ingress:shop/web\n",
    ):
        assert read(name) is None, name


def test_another_cluster_of_the_same_owner_is_not_ours():
    mark = read("edgekeeper:home/b:Ingress:shop/web")
    assert mark is not None
    assert not mark.ours("home", "a")
    assert mark.ours("home", "b")


def test_the_shortest_owner_with_the_longest_object_is_still_read_back():
    for length in range(130, 180):
        made = Mark.of("a", "b", Origin("File", "n" * 63, "x" * length))
        assert read(made.text) == made, length

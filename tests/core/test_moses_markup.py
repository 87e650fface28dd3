"""Moses' markup of sentences: words, translations, zones and walls, and mistakes."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiero.core.errors import FormatError
from hiero.core.given import Given, MarkedSpan, Wall
from hiero.core.moses_markup import read_markup

MODES = st.sampled_from(["off", "exclusive", "ignore"])
WORDS = ("das", "ist", "ein", "haus")


def span(start: int, end: int, *targets: str, mode: str = "inclusive") -> MarkedSpan:
    return MarkedSpan(start, end, tuple((tuple(text.split()), 0.0) for text in targets), mode)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('das ist <np translation="a  hut">ein haus</np>', Given(spans=(span(2, 4, "a hut"),))),
        (
            "das ist ein<n translation='hut||a dwelling'>haus</n>",
            Given(spans=(span(3, 4, "hut", "a dwelling"),)),
        ),
        ('das ist ein <n english="hut" class="x">haus</n>', Given(spans=(span(3, 4, "hut"),))),
        ('das ist ein <n translate="no">haus</n>', Given(spans=(span(3, 4, "haus", mode="exclusive"),))),
        (
            'das <ne translation="@num@" entity="42">ist</ne> ein haus',
            Given(spans=(span(1, 2, "42", mode="exclusive"),)),
        ),
        (
            '<a translation="u v">das <b translation="v">ist</b></a> ein haus',
            Given(spans=(span(1, 2, "v"), span(0, 2, "u v"))),
        ),
        ("das <zone>ist ein</zone> haus", Given(zones=((1, 3),))),
        ("das ist <wall/> ein haus", Given(walls=(Wall(0, 2, 4),))),
        ("das ist <wall /> ein <wall></wall> haus", Given(walls=(Wall(0, 2, 4), Wall(0, 3, 4)))),
        # A wall in a zone concerns the zone; at its edge, or that of the sentence, it has no effect.
        (
            "<wall/> das <zone> <wall/> ist ein <wall/> haus </zone>",
            Given(zones=((1, 4),), walls=(Wall(1, 3, 4),)),
        ),
        (
            "<zone>das <zone>ist ein</zone> <wall/> haus</zone>",
            Given(zones=((1, 3),), walls=(Wall(0, 3, 4),)),
        ),
        # Other tags are left out.
        ('<b>das</b> ist <i class="x"/> ein haus', None),
        ("das ist ein haus", None),
    ],
)
def test_tags(text: str, expected: Given | None) -> None:
    assert read_markup(text, "inclusive") == (WORDS, expected)
    assert read_markup(text, "ignore") == (WORDS, None)
    assert read_markup(text, "off") == (tuple(text.split()), None)


def test_probabilities() -> None:
    _, found = read_markup('<x translation="a||b" prob=" 0.1||100">haus</x>', "exclusive")
    assert found is not None
    assert dict(found.spans[0].targets) == {("a",): pytest.approx(-1), ("b",): pytest.approx(math.log10(100))}


def test_characters() -> None:
    """Only characters that tags need are escaped: &apos; and the like are words of Moses' models."""
    words, found = read_markup(
        'a < b&lt;i&gt; &amp;lt; &apos;s &quot; <x translation="&quot;&lt;b&gt;&quot; &apos;">c</x> 1<2 <3',
        "exclusive",
    )
    assert words == ("a", "<", "b<i>", "&lt;", "&apos;s", "&quot;", "c", "1<2", "<3")
    assert found is not None
    assert found.spans[0].targets == ((('"<b>"', "&apos;"), 0.0),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("das <b>haus", "in:3: found <b> without an end in column 5, expected </b>"),
        ("das haus</b>", "in:3: found </b> in column 9, expected <b> before it"),
        ("<a><b>das</a></b>", "in:3: found </a> in column 10, expected </b>, the end of the tag in column 4"),
        ("das <b haus", "in:3: found '<b haus' in column 5, expected a tag like <b translation"),
        ("das <b x=1>haus</b>", "in:3: found '<b x=1>haus</b>' in column 5, expected a tag like"),
        ('<b x="1" x="2">haus</b>', "in:3: found x twice in column 9, expected each attribute once"),
        ('das</b x="1">', "in:3: found '</b x=\"1\">' in column 4, expected a tag like </b>"),
        (
            '<n translaton="a">haus</n>',
            "in:3: found the attribute translaton in column 1, expected translation",
        ),
        ('<n translation="a" span="0-1">haus</n>', "in:3: found the attribute span in column 1"),
        ('<n translation="a"></n>', "in:3: found no words in <n> in column 1, expected the words"),
        ('<n translation="a"/>', "in:3: found no words in <n> in column 1"),
        ("das <zone></zone>", "in:3: found no words in <zone> in column 5"),
        ("<wall>das</wall>", "in:3: found words in <wall> in column 1, expected <wall/>"),
        ('<n translation="">haus</n>', "in:3: found no words in translation of <n> in column 1"),
        ('<n translation="a||">haus</n>', "in:3: found no words in translation of <n>"),
        (
            '<n translation="a" prob="0">haus</n>',
            "in:3: found the probability '0' in column 1, expected a number",
        ),
        ('<n translation="a" prob="x">haus</n>', "in:3: found the probability 'x'"),
        ('<n translation="a||b" prob="1">haus</n>', "in:3: found 1 probabilities of 2 translations"),
        ('<n prob="1">haus</n>', "in:3: found prob without translation in column 1"),
        ('<n translate="never">haus</n>', "in:3: found translate='never' in column 1, expected yes or no"),
    ],
)
def test_mistakes(text: str, message: str) -> None:
    with pytest.raises(FormatError) as error:
        read_markup(text, "exclusive", "in", 3)
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)


@given(
    st.text(alphabet=' ab<>/="&;|-\t', max_size=40) | st.text(max_size=20),
    st.sampled_from(["off", "exclusive", "ignore"]),
)
def test_any_text(text: str, mode: str) -> None:
    """Any text is read, or refused; without tags and entities it is its words."""
    try:
        words, found = read_markup(text, mode)
    except FormatError:
        return
    if "<" not in text and "&" not in text:
        assert (words, found) == (read_markup(text, "off")[0], None)

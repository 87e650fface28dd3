"""Lines of input: sentences with terms, as JSON and in <seg>."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiero.core.errors import HieroError
from hiero.core.given import Given, MarkedSpan, Term
from hiero.core.input import looks_like_json, parse_input, parse_with_reference, terms_attributes
from hiero.core.text import InputForm, Segment
from hiero.extraction.write import line_with_grammar

TERMS = [["das haus", "the premises"], ["buch", "tome", 2.5]]
GIVEN = Given((Term(("das", "haus"), ("the", "premises")), Term(("buch",), ("tome",), 2.5)), True)


def test_terms_of_a_sentence() -> None:
    """JSON and <seg> mean the same."""
    words = ("ein", "buch")
    found = parse_input(json.dumps({"source": "ein  buch", "terms": TERMS, "hard_terms": True, "id": 4}))
    assert found == Segment(words, {"id": "4"}, given=GIVEN)
    line = f"<seg terms='{json.dumps(TERMS)}' hard_terms=\"true\">ein buch</seg>"
    assert parse_input(line).given == GIVEN
    # As it was before there were terms of sentences.
    assert parse_input("<seg id=4>ein buch</seg>") == Segment(words, {"id": "4"})
    assert parse_input('{"source": "ein buch"}', form=InputForm("text")).words == (
        '{"source":',
        '"ein',
        'buch"}',
    )
    assert parse_input('{"source": "ein buch"}') == Segment(words)
    assert parse_input('{"source": "arcs", "reference": "a b"}').reference == ("a", "b")
    for text in ('{ "word": "source" }', '{ " source " : 1 }', '{"source"}', "{source: a}"):
        assert not looks_like_json(text)
        assert parse_input(text).words == tuple(text.split())


def test_references() -> None:
    form = InputForm(markup="exclusive")
    for line in (
        'a <x translation="u||v">b</x> ||| c ||| d',
        '<seg>a <x translation="u||v">b</x></seg> ||| c ||| d',
        json.dumps({"source": 'a <x translation="u||v">b</x>', "reference": "c ||| d"}),
    ):
        found = parse_with_reference(line, form=form)
        assert (found.words, found.reference) == (("a", "b"), ("c", "|||", "d"))
        assert found.given is not None
        assert found.given.spans == (MarkedSpan(1, 2, ((("u",), 0.0), (("v",), 0.0)), "exclusive"),)
    assert parse_with_reference("a|||b").words == ("a|||b",)
    assert parse_with_reference("||| b").reference == ("b",)
    assert parse_with_reference("((('a',1,1),),) ||| b").lattice is not None


def test_sentences_keep_terms_beside_grammars() -> None:
    """As ``hiero extract`` writes them."""
    segment = parse_input(
        '{"source": "a b", "terms": [["a", "it\'s"]], "hard_terms": true, "reference": "c"}'
    )
    again = parse_input(line_with_grammar(3, "g.gz", segment).rstrip("\n"))
    assert (again.words, again.given, again.reference) == (("a", "b"), segment.given, ("c",))
    assert (again.attributes["grammar"], again.name) == ("g.gz", "3")


@given(
    st.lists(
        st.tuples(*2 * [st.text("\"'<>&\\ a", min_size=1).filter(lambda text: text.strip())]), min_size=1
    )
)
def test_terms_are_written(terms: list[tuple[str, str]]) -> None:
    """As attributes, which sentences with grammars have."""
    found = parse_input(json.dumps({"source": "a", "terms": terms})).given
    attributes = terms_attributes(found)
    assert parse_input(f"<seg terms='{attributes['terms']}'>a</seg>").given == found


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"source": 3}', "in:2: found source of type int, expected a str of one line"),
        ('{"source": "a", "term": []}', 'in:2: found the keys source, term, expected {"source": "..."}'),
        ('{"source": "a", "reference": "b", "post_edit": "b"}', "in:2: found the keys source, reference"),
        ('{"source": "a", "id": true}', "in:2: found id of type bool, expected a str"),
        ('{"source": "a", "hard_terms": 1}', "in:2: found hard_terms: '1', expected true or false"),
        ('{"source": "a", "terms": {"a": "b"}}', "in:2: terms: found 'a', expected source words"),
        ('{"source": "a", "terms": "a"}', "in:2: terms: found 'a', expected a list of pairs"),
        ('{"source": "a", "terms": 1}', "in:2: terms: found a value of type int, expected a list of pairs"),
        ('{"source": "a", "terms": [["a"]]}', "in:2: terms: found ['a'], expected source words"),
        ('{"source": "a", "terms": [["a", 1]]}', "in:2: terms: found ['a', 1], expected source words"),
        ('{"source": "a", "terms": [["a", "b", "x"]]}', "in:2: terms: found the weight 'x' in"),
        ('{"source": "a", "terms": [["a", "b", true]]}', "in:2: terms: found the weight 'True' in"),
        ('{"source": "a", "terms": [["", "b"]]}', "in:2: terms: found no source words in"),
        (
            '{"source": "a", "terms": [["a b c d", "b"]]}',
            "in:2: terms: found 4 words in 'a b c d', expected at most 3",
        ),
        ("<seg terms='[[\"a\"'>a</seg>", 'in:2: found terms=\'[["a"\', expected terms=\'[["source words"'),
        ('<seg hard_terms="yes">a</seg>', "in:2: found hard_terms='yes', expected true or false"),
        ("<seg terms='[]'>((('a',1,1),),)</seg>", "in:2: found terms of a lattice, expected a sentence"),
        ("<seg id=1>a <b>", "in:2: found '<seg id=1>a <b>', expected <seg"),
        ("<seg id=1>a <b></seg>", "in:2: found <b> without an end in column 13, expected </b>"),
        (
            '<x translation="b">a b c d</x>',
            "in:2: markup: found a translation of 4 words, expected at most 3 (span_limit",
        ),
    ],
)
def test_mistakes(line: str, message: str) -> None:
    with pytest.raises(HieroError) as error:
        parse_input(line, "in", 2, InputForm(markup="exclusive", longest=3))
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)

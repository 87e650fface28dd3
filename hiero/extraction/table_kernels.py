# mypy: ignore-errors
"""Arrays for rule extraction: the index, the cache of patterns and rules, and scratch.

A pattern is the source side of rules without gaps at its edges: words >= 1 with GAP between them. A match is
a place where it occurs, as one number: place of the first word << 16 | second << 8 | third, where second and
third are how far the second and third run of words begin from the first word (0 if there is none).
"""

from typing import NamedTuple

import numpy as np

from hiero.core.hash_kernels import FNV_START, GOLDEN, fnv_step, probe, probe_number
from hiero.core.jit import kernel, leaf

GAP = -1
SPAN, SYMBOLS, GAPS, SAMPLES = 0, 1, 2, 3  # places in ``limits``
MAX_SPAN = 255  # distances in a match are one byte
MAX_RUNS = 3  # of words in a pattern

# Array that holds the matches of a pattern: the suffix array, SentenceScratch.match, Collocations.match.
SUFFIXES, FOUND, LISTED = 0, 1, 2
OK, MORE_PATTERNS, MORE_MATCHES, MORE_RULES, MORE_STATES = 0, 1, 2, 3, 4
LEADING, TRAILING = 1, 2  # gaps at the edges of a rule's source side
NUM_FEATURES = 7
UNSEEN = 99.0  # the loss of a word without a pair in the table


class IndexedText(NamedTuple):
    """A bitext with the suffix array of its source side. Words count from 1, and a 0 ends every sentence.

    src           int32 [N]
    sentence      int32 [N]      the sentence of each place
    first_src     int64 [S + 1]  sentence s: src[first_src[s]:first_src[s + 1] - 1]
    tgt           int32 [M]
    first_tgt     int64 [S + 1]
    suffix        int32 [N]      the suffix array of ``src``
    first_suffix  int64 [V + 2]  suffixes that begin with w: suffix[first_suffix[w]:first_suffix[w + 1]]
    """

    src: np.ndarray
    sentence: np.ndarray
    first_src: np.ndarray
    tgt: np.ndarray
    first_tgt: np.ndarray
    suffix: np.ndarray
    first_suffix: np.ndarray


class IndexedLinks(NamedTuple):
    """Alignments of a bitext, the links of each word as a span and as a list. Words count in their sentence.

    src_span    int16 [A, N, 2]   first target word and the one after the last; -1 if there is none
    tgt_span    int16 [A, M, 2]   likewise, source words
    first_link  int64 [A, N + 1]  links of a source word: link[first_link[a, n]:first_link[a, n + 1]]
    link        int16 [L]         target words, ascending
    """

    src_span: np.ndarray
    tgt_span: np.ndarray
    first_link: np.ndarray
    link: np.ndarray


class PhraseLinks(NamedTuple):
    """IndexedLinks with each span in one number: first | after the last << 16; -1 if there is none.

    src_span    int32 [A, N]
    tgt_span    int32 [A, M]
    first_link  int64 [A, N + 1]
    link        int16 [L]
    """

    src_span: np.ndarray
    tgt_span: np.ndarray
    first_link: np.ndarray
    link: np.ndarray


class LexicalLosses(NamedTuple):
    """Pairs of words in a hash table.

    pair_key   int64 [2 ** k]       source word << 32 | target word, 0 for none; -1 empty
    pair_loss  float32 [2 ** k, 2]  -log10 p(source word | target word), -log10 p(target word | source word)
    """

    pair_key: np.ndarray
    pair_loss: np.ndarray


class Lexicon(NamedTuple):
    """LexicalLosses, or those without some sentences, each computed when it is first looked up.

    pair_key   int64 [2 ** k]       as in LexicalLosses
    pair_loss  float32 [2 ** k, 2]
    own_loss   float32 [2 ** k, 2]  written: losses without some sentences
    computed   int32 [2 ** k]       written: the round in which those were computed
    count      int64 [2 ** k]       how often the pair in a slot is linked
    src        int64 [V + 1]        links of a source word, 0 for none
    tgt        int64 [W + 1]        likewise
    round      int32 [1]            0: ``pair_loss`` holds, and the arrays in between are empty
    """

    pair_key: np.ndarray
    pair_loss: np.ndarray
    own_loss: np.ndarray
    computed: np.ndarray
    count: np.ndarray
    src: np.ndarray
    tgt: np.ndarray
    round: np.ndarray


class Collocations(NamedTuple):
    """Matches of frequent sequences of words with gaps between them.

    frequent      int64 [F, 3]          occurrences, first place in the suffix array, words; in order
    first_pair    int64 [F * F + 1]     matches of a, a gap, b: match[first_pair[a * F + b]:...[... + 1]]
    first_triple  int64 [F ** 3 + 1]    of three, likewise
    match         int64 [.]
    """

    frequent: np.ndarray
    first_pair: np.ndarray
    first_triple: np.ndarray
    match: np.ndarray


class Patterns(NamedTuple):
    """Patterns seen so far; written and growing.

    slot    int32 [2 ** k]  hash table by symbols, -1 empty
    symbol  int32 [P, W]    the pattern
    shape   int32 [P, 4]    symbols; gaps; words after the last gap; row of Collocations.frequent
    count   int64 [P]       its matches; -1 if not known yet
    place   int64 [P, 3]    place of the matches: first, last + 1, in which of three arrays
    stamp   int64 [P, 4]    the round of matches in which the place is good; the generation of its
                            rules; the last call that saw it; the last call that put it into a chain
    chain   int64 [P, 3]    call << 32 | the last of the patterns with a gap and a further word at the right;
                            at the left; the one before in such a chain, -1 if there is none
    rule    int64 [P, 3]    its rules: first, last + 1; how many matches its samples stand for
    used    int64 [1]       patterns
    """

    slot: np.ndarray
    symbol: np.ndarray
    shape: np.ndarray
    count: np.ndarray
    place: np.ndarray
    stamp: np.ndarray
    chain: np.ndarray
    rule: np.ndarray
    used: np.ndarray


class Store(NamedTuple):
    """Rules of patterns; written and growing.

    edge        uint8 [R]       gaps at the edges of the source side: LEADING | TRAILING
    feature     float32 [R, 7]
    first_tgt   int64 [R + 1]   target side: words >= 1; gap g is -g
    tgt         int32 [.]
    first_link  int64 [R + 1]
    link        int16 [., 2]
    used        int64 [1]       rules
    """

    edge: np.ndarray
    feature: np.ndarray
    first_tgt: np.ndarray
    tgt: np.ndarray
    first_link: np.ndarray
    link: np.ndarray
    used: np.ndarray


class SentenceScratch(NamedTuple):
    """Working memory for one sentence.

    match      int64 [.]       matches of patterns with gaps
    candidate  int32 [., 3]    patterns at places of the sentence: pattern, first and last word
    state      int32 [., 3]    those of them that have matches and may grow
    found      int32 [P]       patterns of the sentence that have matches
    pattern    int32 [1, W]    the pattern to look up
    mark       uint8 [V + 1]   numbers, from 1, of the words that are looked for behind a gap; 0 of all others
    slot       int64 [256, 2]  the patterns with these words; numbers of their matches
    wait       int64 [8]       stack of patterns whose parts have no matches yet
    round      int64 [5]       round of matches; matches in use; generation of rules; call; patterns found
    """

    match: np.ndarray
    candidate: np.ndarray
    state: np.ndarray
    found: np.ndarray
    pattern: np.ndarray
    mark: np.ndarray
    slot: np.ndarray
    wait: np.ndarray
    round: np.ndarray


class LatticePaths(NamedTuple):
    """How the A words of a lattice of N nodes follow each other; for a sentence all arrays are empty.

    first        int64 [N + 1]  words that leave node v: first[v] ... first[v + 1] - 1
    end          int32 [A]      the node that a word leads to
    first_reach  int64 [N + 1]  nodes that a gap after node v may end at: node[first_reach[v]:...[v + 1]]
    node         int32 [P]
    size         int32 [P]      words in such a gap, at least
    """

    first: np.ndarray
    end: np.ndarray
    first_reach: np.ndarray
    node: np.ndarray
    size: np.ndarray


class PatternScratch(NamedTuple):
    """Working memory for one pattern.

    sample   int64 [.]          matches chosen
    run      int64 [4]          words of each run of the pattern
    phrase   int64 [., 8]       phrases around matches: match; alignment; where its sentence begins, on both
                                sides; first target word and the one after the last; likewise, source words
    low      int64 [16]         half-open ranges: source gaps from row 0 (that is for one before all words),
    high     int64 [16]         runs of words from row 4, target gaps from row 8
    tally    int64 [4]          rules seen with these gaps at the edges
    used     int64 [4]          rules, alignments, target symbols and links in use
    rule_slot     int32 [2 ** k]  hash table of rules
    variant_slot  int32 [2 ** k]  of alignments of rules
    group    int32 [E, 4]       rules: edges, occurrences, first and last target symbol
    symbol   int32 [.]          their target sides
    variant  int32 [E, 4]       alignments of these rules: rule, occurrences, first and last link
    link     int16 [., 2]
    best     int32 [E]          of each rule, the alignment seen most often
    loss     float64 [.]        of target words
    """

    sample: np.ndarray
    run: np.ndarray
    phrase: np.ndarray
    low: np.ndarray
    high: np.ndarray
    tally: np.ndarray
    used: np.ndarray
    rule_slot: np.ndarray
    variant_slot: np.ndarray
    group: np.ndarray
    symbol: np.ndarray
    variant: np.ndarray
    link: np.ndarray
    best: np.ndarray
    loss: np.ndarray


@leaf
def finish_hash(code):
    """Mix the high bits into the low ones, which tables use."""
    code ^= code >> np.uint64(32)
    code *= GOLDEN
    return code ^ (code >> np.uint64(29))


@leaf
def is_pattern(table, entry, key):
    """``equal`` of patterns."""
    symbol, shape = table
    pattern, row, begin, end = key
    if shape[entry, 0] != end - begin:
        return False
    for k in range(end - begin):
        if symbol[entry, k] != pattern[row, begin + k]:
            return False
    return True


@leaf
def find_pattern(slot, symbol, shape, pattern, row, begin, end):
    """The number of ``pattern[row, begin:end]``, or -1 - the slot where it belongs."""
    code = FNV_START
    for k in range(begin, end):
        code = fnv_step(code, np.int64(pattern[row, k]) & 0xFFFFFFFF)
    at = probe(slot, finish_hash(code), is_pattern, (symbol, shape), (pattern, row, begin, end))
    return np.int64(slot[at]) if slot[at] >= 0 else -1 - at


@kernel
def rehash_patterns_kernel(patterns):
    """Enter all patterns into the slots of their table, which are empty.

    O(P).  Twin: none; it changes no answer.
    """
    for entry in range(patterns.used[0]):
        length = patterns.shape[entry, 0]
        slot = find_pattern(patterns.slot, patterns.symbol, patterns.shape, patterns.symbol, entry, 0, length)
        patterns.slot[-1 - slot] = entry


@leaf
def find_pair(pair_key, src, tgt):
    """The slot of a pair of words in the hash table, or -1 - the slot where it belongs."""
    key = np.int64(src) << 32 | np.int64(tgt)
    at = probe_number(pair_key, finish_hash(np.uint64(key)), key)
    return at if pair_key[at] >= 0 else -1 - at

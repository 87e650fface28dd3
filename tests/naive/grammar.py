"""Grammars in plain Python: rules as tuples of byte strings, one line at a time."""

import math
import re
import struct

GAP = re.compile(rb"\[([^\t \[\],]+)(?:,([1-9][0-9]?))?\]")
NUMBER = re.compile(rb"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
PAIR = re.compile(rb"\[[^\]]+\]\[([^\t \[\],]+)\]")


class Wrong(Exception):
    """A line that is not a rule."""

    def __init__(self, line):
        super().__init__(line)
        self.line = line


def check(condition):
    if not condition:
        raise Wrong(0)


def single(value):
    """The nearest float32."""
    try:
        return struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        raise Wrong(0) from None


def number(token):
    check(NUMBER.fullmatch(token))
    value = single(float(token))
    check(math.isfinite(value))
    return value


def read_lines(text, read_rule):
    """Apply a reader to every line that is not blank; Wrong has the line."""
    rules = []
    for line_number, line in enumerate(text.split(b"\n"), 1):
        line = line.removesuffix(b"\r")
        if not line.strip(b" \t"):
            continue
        try:
            rules.append(read_rule(line))
        except Wrong:
            raise Wrong(line_number) from None
    return rules


def read_rules(text, count_all=True):
    """cdec's syntax: [(lhs, source, target, {name or number of unlabelled: value}, links)].

    A symbol is a word (bytes) or a gap (label, index).
    """
    return read_lines(text, lambda line: read_rule(line, count_all))


def read_rule(line, count_all):
    head = re.match(rb"\[([^\t \[\],]+)\][ \t]+\|\|\|(?=[ \t]|$)(.*)", line, re.DOTALL)
    check(head)
    source, rest = until_bars(head[2], True)
    target, rest = until_bars(rest, False)
    src = source_side(source)
    tgt = target_side(target, [symbol for symbol in src if isinstance(symbol, tuple)])
    features, rest = read_features(rest, count_all)
    links, _ = until_bars(rest, False)
    return head[1], src, tgt, features, read_links(links, src, tgt)


def until_bars(text, needed):
    """Tokens up to a token |||, and the rest."""
    tokens = list(re.finditer(rb"[^ \t]+", text))
    for k, token in enumerate(tokens):
        if token[0] == b"|||":
            return [before[0] for before in tokens[:k]], text[token.end() :]
    check(not needed)
    return [token[0] for token in tokens], b""


def source_side(tokens):
    check(0 < len(tokens) <= 200)
    src, num_gaps = [], 0
    for token in tokens:
        found = GAP.fullmatch(token)
        if found:
            num_gaps += 1
            check(num_gaps <= 2 and int(found[2] or num_gaps) == num_gaps)
            src.append((found[1], num_gaps))
        else:
            src.append(token)
    return tuple(src)


def target_side(tokens, gaps):
    check(len(tokens) <= 200)
    tgt, left = [], {index: label for label, index in gaps}
    for token in tokens:
        found = GAP.fullmatch(token)
        if found and not found[2] and not re.fullmatch(rb"[1-9][0-9]?", found[1]):
            found = None
        if found:
            index = int(found[2] or found[1])
            check(index in left)
            check(not found[2] or found[1] == left[index])
            tgt.append((left.pop(index), index))
        else:
            tgt.append(token)
    check(not left)
    return tuple(tgt)


def read_features(text, count_all):
    features, labelled, unlabelled = {}, 0, 0
    while True:
        text = text.lstrip(b" \t;")
        if not text:
            return features, b""
        if re.match(rb"\|\|\|(?=[ \t]|$)", text):
            return features, text[3:]
        found = re.match(rb"(?:([^ \t;=]*)=)?([^ \t;]*)", text)
        check(found[1] != b"")
        if found[1] is None:
            name = unlabelled + labelled if count_all else unlabelled
            unlabelled += 1
        else:
            name = found[1]
            labelled += 1
        features[name] = number(found[2])
        text = text[found.end() :]


def read_links(tokens, src, tgt):
    links = []
    for token in tokens:
        found = re.fullmatch(rb"([0-9]+)-([0-9]+)", token)
        check(found)
        i, j = int(found[1]), int(found[2])
        check(i < len(src) and j < len(tgt))
        check(isinstance(src[i], tuple) == isinstance(tgt[j], tuple))
        links.append((i, j))
    return [(i, j) for i, j in links if not isinstance(src[i], tuple)]


def read_moses(text):
    """Moses' tables, scores kept as they are: as ``read_rules``."""
    return read_lines(text, read_moses_rule)


def read_moses_rule(line):
    source, rest = until_bars(line, True)
    target, rest = until_bars(rest, True)
    features, rest = read_features(rest, True)
    links, rest = until_bars(rest, False)
    _, rest = until_bars(rest, False)
    sparse, _ = until_bars(rest, False)
    src, _ = moses_side(source)
    tgt, lhs = moses_side(target)
    check(src)
    src_gaps = [k for k, symbol in enumerate(src) if isinstance(symbol, tuple)]
    tgt_gaps = [k for k, symbol in enumerate(tgt) if isinstance(symbol, tuple)]
    for index, k in enumerate(src_gaps, 1):
        src[k] = (src[k][0], index)
    words = read_links(links, src, tgt)
    pairs = {tuple(map(int, link.split(b"-"))) for link in links}
    pairs = {(i, j) for i, j in pairs if i in src_gaps}
    check(len(pairs) == len(src_gaps) == len(tgt_gaps))
    check({i for i, _ in pairs} == set(src_gaps) and {j for _, j in pairs} == set(tgt_gaps))
    for i, j in pairs:
        check(src[i][0] == tgt[j][0])
        tgt[j] = src[i]
    check(len(sparse) % 2 == 0)
    for name, value in zip(sparse[::2], sparse[1::2], strict=True):
        features[name] = number(value)
    return lhs, tuple(src), tuple(tgt), features, words


def read_phrases(text):
    """Moses' phrase tables, scores kept as they are: as ``read_rules``."""
    return read_lines(text, read_phrase)


def read_phrase(line):
    source, rest = until_bars(line, True)
    target, rest = until_bars(rest, True)
    features, rest = read_features(rest, True)
    links, rest = until_bars(rest, False)
    _, rest = until_bars(rest, False)
    sparse, _ = until_bars(rest, False)
    check(source and len(source) <= 200 and len(target) <= 200)
    pairs = read_links(links, source, target)
    check(len(sparse) % 2 == 0)
    for name, value in zip(sparse[::2], sparse[1::2], strict=True):
        features[name] = number(value)
    return b"X", tuple(source), tuple(target), features, pairs


def moses_side(tokens):
    check(tokens)
    lhs = GAP.fullmatch(tokens[-1])
    check(lhs and not lhs[2])
    side = []
    for token in tokens[:-1]:
        found = PAIR.fullmatch(token)
        side.append((found[1], 0) if found else token)
    check(len(side) <= 200 and sum(isinstance(symbol, tuple) for symbol in side) <= 2)
    return side, lhs[1]


def intern_tokens(tokens):
    """Ids in order of first use."""
    known = {}
    return [known.setdefault(token, len(known)) for token in tokens]


def split_features(rows, columns):
    """Rows of (name, value) as dense rows and sparse rows; of a repeated name the last counts."""
    dense, sparse = [], []
    for row in rows:
        values = dict(row)
        dense.append([values.get(name, 0.0) for name in columns])
        sparse.append({name: value for name, value in values.items() if name not in columns})
    return dense, sparse


def ranked(source, rank):
    """A source side whose gaps have ranks for labels. The code of a gap is -(4 * label + index) - 1."""
    return [
        -(4 * rank[(-symbol - 1) // 4] + (-symbol - 1) % 4) - 1 if symbol < 0 else symbol for symbol in source
    ]


def trie(sources):
    """Prefixes in breadth-first order, siblings by symbol."""
    prefixes = {source[:k] for source in sources for k in range(len(source) + 1)} | {()}
    levels = []
    for length in range(max(map(len, prefixes)) + 1):
        level = [prefix for prefix in prefixes if len(prefix) == length]
        # Parents have been numbered, and their order is that of their prefixes.
        levels += sorted(level)
    return levels


def in_order(sources, lhs, rank):
    """The numbers of rules in the order of a grammar: by node, by rank of the left-hand side, as they are."""
    sources = [tuple(ranked(source, rank)) for source in sources]
    node = {prefix: number for number, prefix in enumerate(trie(sources))}
    return sorted(range(len(sources)), key=lambda r: (node[sources[r]], rank[lhs[r]]))


def unknown(rows, ids, mark):
    """The symbols of rows whose id is this mark, with repetitions; negative ones count from the end."""
    return [symbol for row in rows for symbol in row if ids[symbol] == mark]


def fits(pattern, words):
    """Whether a source side, None for a gap, equals these words with one or more words in each gap."""
    if not pattern:
        return not words
    if pattern[0] is None:
        return any(fits(pattern[1:], words[k:]) for k in range(1, len(words) + 1))
    return bool(words) and words[0] == pattern[0] and fits(pattern[1:], words[1:])


def matches(pattern, words, limit):
    """Whether a source side matches a span of at most ``limit`` words."""
    return any(
        fits(pattern, words[i:j])
        for i in range(len(words))
        for j in range(i + 1, min(len(words), i + limit) + 1)
    )


def first_unsound_node(symbol, first_child):
    """The first node of a trie whose children are not later nodes, consecutive and in order; or T."""
    num_nodes = len(symbol)
    if first_child[0] != 1:
        return 0
    for v in range(num_nodes):
        children = symbol[first_child[v] : first_child[v + 1]]
        if not v < first_child[v] <= first_child[v + 1] <= num_nodes or children != sorted(set(children)):
            return v
    return num_nodes


def is_rule(src, tgt, links, num_words, num_labels):
    """Whether codes of both sides, and links, are those of a rule."""
    gaps = [code for code in src if code < 0]
    return bool(
        len(src) > 0
        and all(code < num_words for code in [*src, *tgt])
        and [(-code - 1) % 4 for code in gaps] == [1, 2][: len(gaps)]
        and all((-code - 1) // 4 < num_labels for code in gaps)
        and sorted(code for code in tgt if code < 0) == sorted(gaps)
        and all(0 <= i < len(src) and 0 <= j < len(tgt) for i, j in links)
    )


def first_unsound_rule(rules, num_words, num_labels):
    """The first of (source side, target side, links) that is no rule; or their number."""
    sound = [is_rule(*rule, num_words, num_labels) for rule in rules]
    return sound.index(False) if False in sound else len(sound)

# mypy: ignore-errors
"""Suffix arrays over words, and frequent sequences of a text; checks of an index.

A text is an int32 array of words >= 1 in which 0 ends every sentence; its last entry is 0. Suffixes are
compared by the numbers of their words, through the ends of sentences; the end of the text is the smallest.
"""

import numpy as np

from hiero.core.jit import kernel, leaf

MAX_LENGTH = 32_000  # words of a sentence of an index: positions in it are int16
SMALL = 12  # groups up to this size are sorted by insertion


@kernel
def sort_suffixes(key, suffix, low, high, stack):
    """Sort suffix[low:high], and key[low:high], by the keys; ``stack`` has room for 128 numbers."""
    top = 0
    while True:
        while high - low > SMALL:
            middle = (low + high) >> 1
            # The median of three is the pivot; an ascending group, which is frequent, then splits in halves.
            a, b, c = key[low], key[middle], key[high - 1]
            pivot = max(min(a, b), min(max(a, b), c))
            left, at, right = low, low, high
            while at < right:
                here = key[at]
                if here < pivot:
                    key[at], key[left] = key[left], here
                    suffix[at], suffix[left] = suffix[left], suffix[at]
                    left += 1
                    at += 1
                elif here > pivot:
                    right -= 1
                    key[at], key[right] = key[right], here
                    suffix[at], suffix[right] = suffix[right], suffix[at]
                else:
                    at += 1
            # The longer part goes on the stack, whose size then is at most logarithmic.
            if left - low > high - right:
                stack[top], stack[top + 1] = low, left
                low = right
            else:
                stack[top], stack[top + 1] = right, high
                high = left
            top += 2
        for at in range(low + 1, high):
            here, what = key[at], suffix[at]
            place = at
            while place > low and key[place - 1] > here:
                key[place] = key[place - 1]
                suffix[place] = suffix[place - 1]
                place -= 1
            key[place] = here
            suffix[place] = what
        if top == 0:
            return
        top -= 2
        low, high = stack[top], stack[top + 1]


@kernel
def sort_by_two_kernel(text, first, out_rank, out_suffix):
    """Order suffixes by their first two words.

    text        int32 [N]
    first       int64 [V + 1]  suffixes that begin with a smaller word than w: first[w]
    out_rank    int32 [N + 1]  written; last place of the suffixes that agree in two words; -1 at N
    out_suffix  int32 [N]      written

    O(N).  Twin: tests/naive/extract.py::sort_by_two.
    """
    size = text.shape[0]
    place = np.empty(first.shape[0], np.int64)
    second = np.empty(size, np.int32)
    # Two passes of counting sort, by the second word and then by the first. The last suffix has no second
    # word, so it comes before all others; and the first word of the text is the second of no suffix.
    second[0] = size - 1
    for word in range(first.shape[0]):
        place[word] = first[word] + np.int64(word <= text[0])
    for at in range(size - 1):
        word = text[at + 1]
        second[place[word]] = at
        place[word] += 1
    for word in range(first.shape[0]):
        place[word] = first[word]
    for k in range(size):
        at = second[k]
        word = text[at]
        out_suffix[place[word]] = at
        place[word] += 1
    out_rank[size] = -1
    last = size - 1
    for k in range(size - 1, -1, -1):
        if k < size - 1:
            a, b = out_suffix[k], out_suffix[k + 1]
            if text[a] != text[b] or a == size - 1 or b == size - 1 or text[a + 1] != text[b + 1]:
                last = k
        out_rank[out_suffix[k]] = last


@kernel
def suffix_array_kernel(text, first, out_rank, out_suffix):
    """Sort all suffixes of a text.

    text        int32 [N]
    first       int64 [V + 1]  suffixes that begin with a smaller word than w: first[w]
    out_rank    int32 [N + 1]  written; the place of each suffix
    out_suffix  int32 [N]      written; the starts of the suffixes, in order

    Larsson and Sadakane (2007): groups that agree in h words are sorted by the rank of the suffix h words on,
    so that they agree in 2h; sorted runs are skipped. O(N log N) for any text.
    Twin: tests/naive/extract.py::suffix_array.
    """
    size = text.shape[0]
    sort_by_two_kernel(text, first, out_rank, out_suffix)
    key = np.empty(size, np.int32)
    stack = np.empty(128, np.int64)
    done = np.zeros(size, np.int32)  # length of a sorted run, at its start
    known = 2
    while True:
        run, at = 0, 0
        unsorted = False
        while at < size:
            skip = done[at]
            if skip > 0:
                run += skip
                at += skip
                done[at - run] = run
                continue
            start = at
            last = out_rank[out_suffix[at]]
            at = last + 1
            if last == start:
                run += 1
                done[at - run] = run
                continue
            run = 0
            unsorted = True
            for k in range(start, at):
                key[k] = out_rank[out_suffix[k] + known]
            sort_suffixes(key, out_suffix, start, at, stack)
            group = last
            for k in range(last, start - 1, -1):
                if k < last and key[k] != key[k + 1]:
                    group = k
                out_rank[out_suffix[k]] = group
        if not unsorted:
            return
        known *= 2


@leaf
def narrow(suffix, text, low, high, offset, word):
    """The first suffix in [low, high) whose word at ``offset`` is not smaller than ``word``."""
    size = text.shape[0]
    while low < high:
        middle = (low + high) >> 1
        at = suffix[middle] + offset
        if at >= size or text[at] < word:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def frequent_kernel(text, suffix, longest, least, out_pattern):
    """Find frequent sequences of words; returns their number.

    text         int32 [N]
    suffix       int32 [N]     sorted
    longest      most words of a sequence
    least        fewest occurrences
    out_pattern  int64 [., 3]  written as far as it has room: occurrences, first place among suffixes, words

    O(N longest).  Twin: tests/naive/extract.py::frequent.
    """
    found = 0
    size = text.shape[0]
    start = np.zeros(longest, np.int64)
    for k in range(1, size + 1):
        common = 0
        if k < size:
            a, b = suffix[k - 1], suffix[k]
            while common < longest and max(a, b) + common < size and text[a + common] == text[b + common]:
                common += 1
        for length in range(common, longest):
            if k - start[length] >= least:
                begin = suffix[start[length]]
                inside = begin + length < size
                for at in range(begin, min(begin + length + 1, size)):
                    inside = inside and text[at] != 0
                if inside:
                    if found < out_pattern.shape[0]:
                        out_pattern[found, 0] = k - start[length]
                        out_pattern[found, 1] = start[length]
                        out_pattern[found, 2] = length + 1
                    found += 1
            start[length] = k
    return found


@kernel
def collocations_kernel(text, pattern, limits, out_first_pair, out_first_triple, out_match):
    """List collocations of a text, its frequent sequences with gaps between them; returns their number.

    text              int32 [N]
    pattern           int16 [N, L]    number of the frequent sequence of l + 1 words that begins here, or -1
    limits            int64 [4]       span, symbols, gaps; number of sequences counted as most frequent
    out_first_pair    int64 [F * F + 1]      written; matches of (a, b) end to end, where b = index % F
    out_first_triple  int64 [F * F * F + 1]  written; likewise; after all pairs
    out_match         int64 [.]       written if it has room for all: start << 16 | second << 8 | third, the
                                      starts of second and third relative to the first

    Three sequences are listed if the middle one and one of the others are among the most frequent. Matches
    are in the order of the text. O(matches).  Twin: tests/naive/extract.py::collocations.
    """
    size, longest = pattern.shape
    span, symbols, gaps, top = limits[0], limits[1], limits[2], limits[3]
    num = np.int64(np.sqrt(out_first_pair.shape[0] - 1) + 0.5)
    pairs, triples = num * num, num * num * num
    fill = out_match.shape[0] > 0
    total = 0
    for start in range(size):
        for a_len in range(1, longest + 1):
            a = np.int64(pattern[start, a_len - 1])
            if a < 0:
                break
            second = start + a_len
            while second + 1 < start + span and second < size and text[second] != 0:
                second += 1
                if second == size or text[second] == 0:
                    break
                for b_len in range(1, longest + 1):
                    b = np.int64(pattern[second, b_len - 1])
                    if b < 0 or second + b_len > start + span or a_len + b_len + 1 > symbols or gaps < 1:
                        break
                    code = start << 16 | (second - start) << 8
                    if fill:
                        out_match[out_first_pair[a * num + b]] = code
                        out_first_pair[a * num + b] += 1
                    else:
                        out_first_pair[a * num + b + 1] += 1
                    total += 1
                    if b >= top or gaps < 2:
                        continue
                    third = second + b_len
                    while third + 1 < start + span and text[third] != 0:
                        third += 1
                        if third == size or text[third] == 0:
                            break
                        for c_len in range(1, longest + 1):
                            c = np.int64(pattern[third, c_len - 1])
                            if c < 0 or third + c_len > start + span or a_len + b_len + c_len + 2 > symbols:
                                break
                            if a >= top and c >= top:
                                continue
                            triple = (a * num + b) * num + c
                            if fill:
                                out_match[out_first_triple[triple]] = code | (third - start)
                                out_first_triple[triple] += 1
                            else:
                                out_first_triple[triple + 1] += 1
                            total += 1
    if fill:
        # Every offset has moved to the end of its range, where the next one began.
        for k in range(pairs, 0, -1):
            out_first_pair[k] = out_first_pair[k - 1]
        for k in range(triples, 0, -1):
            out_first_triple[k] = out_first_triple[k - 1]
        out_first_triple[0] = out_first_pair[pairs]
        out_first_pair[0] = 0
    else:
        for k in range(pairs):
            out_first_pair[k + 1] += out_first_pair[k]
        out_first_triple[0] = out_first_pair[pairs]
        for k in range(triples):
            out_first_triple[k + 1] += out_first_triple[k]
    return total


# ---- checks of files


@kernel
def is_text_kernel(text, first, num_words, sentence):
    """Whether a text has known words, and sentences of one word or more that end with a 0 each.

    text       int32 [N]
    first      int64 [S + 1]  CSR offsets
    num_words  words are 1 ... num_words
    sentence   int32 [N]      to be checked: the sentence of each place; empty: not given

    O(N).  Twin: tests/naive/extract.py::is_text.
    """
    for s in range(first.shape[0] - 1):
        last = first[s + 1] - 1
        if last <= first[s] or last - first[s] > MAX_LENGTH or text[last] != 0:
            return False
        for at in range(first[s], last):
            if text[at] <= 0 or text[at] > num_words:
                return False
        if sentence.shape[0] > 0:
            for at in range(first[s], last + 1):
                if sentence[at] != s:
                    return False
    return True


@kernel
def are_links_kernel(first_src, first_tgt, first_link, link):
    """Whether the links of every source word are ascending words of the target sentence.

    first_src, first_tgt  int64 [S + 1]  of sound texts
    first_link            int64 [N + 1]  CSR offsets, not necessarily from 0
    link                  int16 [L]

    O(N + L).  Twin: tests/naive/extract.py::are_links.
    """
    for s in range(first_src.shape[0] - 1):
        size = first_tgt[s + 1] - first_tgt[s] - 1
        for at in range(first_src[s], first_src[s + 1]):
            begin, end = first_link[at], first_link[at + 1]
            if (
                begin < 0
                or end < begin
                or end > link.shape[0]
                or (at + 1 == first_src[s + 1] and end > begin)
            ):
                return False
            last = -1
            for k in range(begin, end):
                if link[k] <= last or link[k] >= size:
                    return False
                last = link[k]
    return True


@kernel
def are_suffixes_kernel(text, suffix, first):
    """Whether an array is the suffix array of a text, with the first place of every word.

    text    int32 [N]      words from 0 to V - 1
    suffix  int32 [N]
    first   int64 [V + 1]  CSR offsets

    A suffix array is a permutation in which neighbours are in the order of their first words or, if these are
    equal, of the rest. O(N).  Twin: tests/naive/extract.py::are_suffixes.
    """
    size = text.shape[0]
    rank = np.full(size + 1, -1, np.int32)
    for k in range(size):
        at = suffix[k]
        if at < 0 or at >= size or rank[at] >= 0:
            return False
        rank[at] = k
    for word in range(first.shape[0] - 1):
        for k in range(first[word], first[word + 1]):
            if text[suffix[k]] != word or (
                k > first[word] and rank[suffix[k - 1] + 1] >= rank[suffix[k] + 1]
            ):
                return False
    return True


@leaf
def _are_in_sentence(text, first_place, begin, end, one, two, three):
    """Whether these places have runs of so many words, apart from each other, each within a sentence."""
    size = text.src.shape[0]
    for k in range(begin, end):
        match = first_place[k]
        start, second, third = match >> 16, match >> 8 & 255, match & 255
        if start < 0 or start >= size or second <= one:
            return False
        last = second + two
        if three > 0:
            if third <= last:
                return False
            last = third + three
        elif third != 0:
            return False
        if start + last >= text.first_src[text.sentence[start] + 1]:
            return False
    return True


@kernel
def are_matches_kernel(text, listed):
    """Whether all matches of collocations lie within sentences.

    text    IndexedText, sound
    listed  Collocations, with fitting lengths and CSR offsets

    O(matches + F ** 3).  Twin: tests/naive/extract.py::are_matches.
    """
    num, length, match = listed.frequent.shape[0], listed.frequent[:, 2], listed.match
    first_pair, first_triple = listed.first_pair, listed.first_triple
    for a in range(num):
        for b in range(num):
            pair = a * num + b
            one, two = length[a], length[b]
            if not _are_in_sentence(text, match, first_pair[pair], first_pair[pair + 1], one, two, 0):
                return False
            for c in range(num):
                k = pair * num + c
                if not _are_in_sentence(
                    text, match, first_triple[k], first_triple[k + 1], one, two, length[c]
                ):
                    return False
    return True


# ---- growth


@leaf
def is_before(text, one, other):
    """Whether a suffix comes before another one by the words up to the end of its sentence."""
    while text[one] == text[other] and text[one] != 0:
        one += 1
        other += 1
    return text[one] < text[other]


@kernel
def merge_suffixes_kernel(text, suffix, first, out_suffix):
    """Merge the suffixes of sentences that were appended to a text into its sorted suffixes.

    text        int32 [N]      old and new sentences, each ended by 0
    suffix      int32 [M]      the suffixes of the old sentences, sorted by the words up to the end of theirs
    first       int64 [V + 1]  old suffixes that begin with a smaller word than w: first[w]
    out_suffix  int32 [N]      written; equal ones, up to the end of the sentence, in their old order, and
                               then in the order of the text

    O(N + (N - M) log N).  Twin: tests/naive/extract.py::merged_suffixes.
    """
    size, old = text.shape[0], suffix.shape[0]
    num = size - old
    place = np.empty(num, np.int64)
    for k in range(num):
        low, high = first[text[old + k]], first[text[old + k] + 1]
        while low < high:
            middle = (low + high) >> 1
            if is_before(text, old + k, suffix[middle]):
                high = middle
            else:
                low = middle + 1
        place[k] = low
    # A merge sort by place, then by words; it keeps the order of equal ones.
    order, spare = np.arange(num), np.empty(num, np.int64)
    width = 1
    while width < num:
        for begin in range(0, num, 2 * width):
            left, middle = begin, min(begin + width, num)
            right, end = middle, min(begin + 2 * width, num)
            for at in range(begin, end):
                take_right = left == middle
                if left < middle and right < end:
                    a, b = order[left], order[right]
                    take_right = place[b] < place[a] or (
                        place[b] == place[a] and is_before(text, old + b, old + a)
                    )
                if take_right:
                    spare[at] = order[right]
                    right += 1
                else:
                    spare[at] = order[left]
                    left += 1
        order, spare = spare, order
        width *= 2
    at, done = 0, 0
    for k in range(num):
        while done < place[order[k]]:
            out_suffix[at] = suffix[done]
            at += 1
            done += 1
        out_suffix[at] = old + order[k]
        at += 1
    while done < old:
        out_suffix[at] = suffix[done]
        at += 1
        done += 1


@kernel
def locate_frequent_kernel(text, suffix, first, words, out_frequent):
    """Find sequences of words again after a text has grown.

    text          int32 [N]
    suffix        int32 [N]      sorted
    first         int64 [V + 1]  suffixes that begin with a smaller word than w: first[w]
    words         int32 [F, L]   the sequences, of at most L words
    out_frequent  int64 [F, 3]   written: occurrences and first place among suffixes; given: words

    O(F L log N).  Twin: tests/naive/extract.py::located.
    """
    for k in range(words.shape[0]):
        low, high = first[words[k, 0]], first[words[k, 0] + 1]
        for offset in range(1, out_frequent[k, 2]):
            word = words[k, offset]
            low = narrow(suffix, text, low, high, offset, word)
            high = narrow(suffix, text, low, high, offset, word + 1)
        out_frequent[k, 0] = high - low
        out_frequent[k, 1] = low

"""Split lines of text into tokens."""

from hiero.core.jit import kernel

TAB, NEWLINE, RETURN, SPACE = 9, 10, 13, 32


@kernel
def split_lines_kernel(text, out_token, out_last):
    """Find the tokens of lines; returns their number.

    text       uint8 [B]      whole lines, each ended by LF; a CR before it is part of the line end
    out_token  int32 [T, 2]   written; first and last byte of each token; T > B / 2 is always enough
    out_last   int64 [L]      written; tokens up to and with each line

    Tokens are separated by spaces and tabs only. O(B).
    Twin: tests/naive/align.py::split_lines.
    """
    tokens, lines, start = 0, 0, 0
    for at in range(text.shape[0]):
        byte = text[at]
        if byte != SPACE and byte != TAB and byte != NEWLINE:
            continue
        end = at
        if byte == NEWLINE and end > start and text[end - 1] == RETURN:
            end -= 1
        if end > start:
            out_token[tokens, 0] = start
            out_token[tokens, 1] = end
            tokens += 1
        start = at + 1
        if byte == NEWLINE:
            out_last[lines] = tokens
            lines += 1
    return tokens

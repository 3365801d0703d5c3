"""Columns of texts, as they lie in objects: where each begins, and all of their UTF-8 in one array.

Rows are picked without a Python object for each. Bytes of UTF-8 are in the order of their characters, so that texts are
compared as bytes.
"""

import numpy as np


class Text:
    """Text `i` is `data[offsets[i]:offsets[i + 1]]`; the first offset is 0."""

    __slots__ = ("offsets", "data")

    def __init__(self, offsets, data):
        self.offsets = offsets
        self.data = data

    @classmethod
    def of(cls, values):
        """Of strings or bytes."""
        encoded = [value.encode() if isinstance(value, str) else value for value in values]
        offsets = np.zeros(len(encoded) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded)), out=offsets[1:])
        data = b"".join(encoded)
        return cls(offsets, np.frombuffer(data, np.uint8) if data else np.empty(0, np.uint8))

    def __len__(self):
        return len(self.offsets) - 1

    def values(self):
        """A list of bytes."""
        data, offsets = self.data.tobytes(), self.offsets.tolist()
        return [data[begin:end] for begin, end in zip(offsets, offsets[1:])]

    def take(self, rows):
        begins = self.offsets[rows]
        lengths = self.offsets[rows + 1] - begins
        offsets = np.zeros(len(rows) + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        places = np.repeat(begins - offsets[:-1], lengths)
        places += np.arange(len(places))
        return Text(offsets, self.data[places])

    def slice(self, begin, end):
        offsets = self.offsets[begin : end + 1]
        return Text(offsets - offsets[0], self.data[offsets[0] : offsets[-1]])

    def ranks(self, but=None):
        """The different texts in order, and the place of each row's among them; those of rows where `but` is true are
        not looked at, and have place 0."""
        values = self.values()
        if but is None:
            some = set(values)
        else:
            some = {value for value, left_out in zip(values, but.tolist()) if not left_out}
        distinct = sorted(some)
        place_of = {value: place for place, value in enumerate(distinct)}
        ranks = np.fromiter((place_of.get(value, 0) for value in values), np.int64, len(values))
        return Text.of(distinct), ranks

    @staticmethod
    def joined(some):
        offsets, end = [np.zeros(1, np.int64)], 0
        for text in some:
            offsets.append(text.offsets[1:] + end)
            end += int(text.offsets[-1])
        return Text(np.concatenate(offsets), np.concatenate([text.data for text in some]))

"""Chunks of frames as a worker sends them."""

import struct

import numpy as np

from tripod_mars.chunk.crc32c import crc32c
from tripod_mars.dtypes import BY_NAME, NUMBERS


def write(frame):
    """The description, and behind it all buffers, each at a multiple of 64."""
    columns = []
    for name, column in zip(frame.names, frame.columns):
        if column.is_text:
            buffers = [column.values.offsets.astype("<u8"), np.asarray(column.values.data, np.uint8)]
        else:
            buffers = [np.ascontiguousarray(column.values, BY_NAME[column.dtype])]
        if column.valid is not None:
            buffers.append(np.ascontiguousarray(column.valid, np.bool_))
        columns.append((name.encode(), NUMBERS[column.dtype], column.valid is not None, buffers))
    size = 24 + sum(8 + -(-len(name) // 8) * 8 + 24 * len(buffers) for name, _, _, buffers in columns)
    head = bytearray(struct.pack("<4sIBBHIQ", b"TPCH", 1, 2, 0, 1, len(columns), frame.rows))
    body = bytearray()
    for name, number, flag, buffers in columns:
        head += struct.pack("<HBBI", len(name), number, flag, 0) + name + bytes(-len(name) % 8)
        for buffer in buffers:
            data = buffer.tobytes()
            if data:
                body += bytes(-(size + len(body)) % 64)
            head += struct.pack("<QQII", size + len(body) if data else 0, len(data), crc32c(data), 0)
            body += data
    assert len(head) == size
    return bytes(head + body)

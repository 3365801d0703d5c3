"""CRC-32C (Castagnoli) of bytes, by numpy: many places of the bytes at a time, since Python has none that is fast.

A buffer is cut into rows of equal length, and the registers of all rows go on together, eight bytes a step. The checksum of
the whole is then put together from those of the rows: that of `a + b` is that of `a`, moved on by as many zeros as `b` has
bytes, with that of `b`. A library for it (`google_crc32c`, `crc32c`) is used if it is there.
"""

import functools

import numpy as np

_POLYNOMIAL = 0x82F63B78
# Below this plain Python is as fast.
_SMALL_BYTES = 512
# Rows of a block, powers of two, for blocks that are at least so long.
_ROWS = ((1 << 20, 4096), (64 << 10, 1024), (0, 64))
# The most bytes of a block, so that a step works on what the processor's caches have.
_BLOCK_BYTES_MAX = 4 << 20


def _tables():
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> np.uint32(1)) ^ np.uint32(_POLYNOMIAL), table >> np.uint32(1))
    tables = [table]
    for _ in range(7):
        last = tables[-1]
        tables.append((last >> np.uint32(8)) ^ table[last & 0xFF])
    return tables


_TABLES = _tables()
_LIST = [int(entry) for entry in _TABLES[0]]
_LOW, _HIGH = np.arange(65536) & 0xFF, np.arange(65536) >> 8
# Of two bytes at a time.
_WIDE = [_TABLES[2 * at + 1][_LOW] ^ _TABLES[2 * at][_HIGH] for at in range(4)]


def _plain(register, data):
    for byte in data:
        register = (register >> 8) ^ _LIST[(register ^ byte) & 0xFF]
    return register


def _times(matrix, vector):
    """A matrix of bits (a column for each bit) and a register."""
    total, at = 0, 0
    while vector:
        if vector & 1:
            total ^= matrix[at]
        vector >>= 1
        at += 1
    return total


def _squared(matrix):
    return [_times(matrix, column) for column in matrix]


@functools.lru_cache(maxsize=64)
def _zeros(count_bytes):
    """What so many zero bytes do to a register, as a matrix."""
    # One zero bit.
    power = [_POLYNOMIAL] + [1 << bit for bit in range(31)]
    power = _squared(_squared(_squared(power)))
    result = [1 << bit for bit in range(32)]
    while count_bytes:
        if count_bytes & 1:
            result = [_times(power, column) for column in result]
        power = _squared(power)
        count_bytes >>= 1
    return result


@functools.lru_cache(maxsize=64)
def _zeros_of_bytes(count_bytes):
    """The same for many registers at once: a table for each of their bytes."""
    matrix = _zeros(count_bytes)
    return [
        np.array([_times(matrix, byte << place) for byte in range(256)], np.uint32) for place in (0, 8, 16, 24)
    ]


def _moved(registers, count_bytes):
    """Registers, after so many zeros."""
    moved = np.zeros(len(registers), np.uint32)
    for table, place in zip(_zeros_of_bytes(count_bytes), (0, 8, 16, 24)):
        moved ^= table[(registers >> np.uint32(place)) & 0xFF]
    return moved


def _rows(block):
    """The register of bytes that begin with 0; `block` is an array of them in rows of a multiple of 8, a power of two of
    those."""
    registers = np.zeros(len(block), np.uint32)
    # A step reads its eight bytes of all rows side by side.
    words = np.ascontiguousarray(block.view("<u4").T)
    w0, w1, w2, w3 = _WIDE
    for at in range(0, len(words), 2):
        low = (registers ^ words[at]).view(np.uint16)
        high = words[at + 1].view(np.uint16)
        registers = w3.take(low[0::2])
        registers ^= w2.take(low[1::2])
        registers ^= w1.take(high[0::2])
        registers ^= w0.take(high[1::2])
    width = block.shape[1]
    while len(registers) > 1:
        registers = _moved(registers[0::2], width) ^ registers[1::2]
        width *= 2
    return int(registers[0])


def _block(register, data):
    """Goes on with a register over an array of bytes."""
    rows = next(rows for least, rows in _ROWS if len(data) >= least)
    width = len(data) // rows // 8 * 8
    whole = width * rows
    if whole:
        register = _times(_zeros(whole), register) ^ _rows(data[:whole].reshape(rows, width))
    rest = data[whole:]
    if len(rest) >= _SMALL_BYTES:
        return _block(register, rest)
    return _plain(register, rest.tobytes())


def _by_numpy(data):
    array = np.frombuffer(data, np.uint8)
    register = 0xFFFFFFFF
    if len(array) < _SMALL_BYTES:
        return _plain(register, array.tobytes()) ^ 0xFFFFFFFF
    for begin in range(0, len(array), _BLOCK_BYTES_MAX):
        register = _block(register, array[begin : begin + _BLOCK_BYTES_MAX])
    return register ^ 0xFFFFFFFF


def _library():
    try:
        import google_crc32c

        if google_crc32c.implementation == "c":
            return lambda data: google_crc32c.value(bytes(data))
    except ImportError:
        pass
    try:
        import crc32c as library

        return library.crc32c
    except ImportError:
        return _by_numpy


_chosen = _library()


def crc32c(data):
    """The checksum of bytes, or of anything that has some."""
    return _chosen(data)

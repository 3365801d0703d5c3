"""CRC-32C (Castagnoli) of memory: by the package google-crc32c where it is installed, else with numpy.

Processors compute it by themselves, and a checksum is then a fraction of what reading the memory costs. Python has no
CRC-32C, and a loop over bytes takes a second for ten megabytes. Three ways, by length:

* Few bytes: a loop over words of eight bytes, with a table for each of those.
* Up to 64 KiB: what each byte adds to the checksum is looked up by the byte and its place in a row of 256, and all of
  it is summed (`^`); what each row adds is looked up in the same way.
* More: bytes are polynomials over two elements, and the checksum is a remainder. The polynomial has a multiple of only
  four terms, `x^6777 + x^484 + x^100 + 1`, and so has its 64th power, whose exponents are 64 times as large. So a word of
  64 bits may be taken away if it is added to the words 6293, 6677 and 6777 places behind it: long sums of arrays, which
  run at the speed of memory, until 54 KiB are left.
"""

import functools

import numpy as np

try:
    import google_crc32c

    # It has a loop over bytes where it could not be compiled.
    _native = google_crc32c.value if google_crc32c.implementation == "c" else None
except ImportError:
    _native = None

_POLYNOMIAL = 0x82F63B78
_ONES = 0xFFFFFFFF
# Below this a loop is as fast.
PLAIN_BYTES_MOST = 40
_ROW_BYTES = 256
# Rows, too, have 256 places.
_ROWS_MOST = 256
_DEGREE = 6777
_OFFSETS = (_DEGREE - 484, _DEGREE - 100, _DEGREE)
# How many words can be taken away at once: what they are added to is behind them all.
_STRIDE = _OFFSETS[0]
# Words that are copied at a time, so that they stay in the cache.
_SEGMENT = 5 * _STRIDE


def crc32c(data):
    """The checksum of bytes, or of the elements of a contiguous array."""
    if _native is not None:
        # It takes no memory that others may resize, and an array of numpy for all else.
        return _native(data if isinstance(data, (bytes, np.ndarray)) else np.frombuffer(data, np.uint8))
    return by_numpy(data)


def by_numpy(data):
    """The same without the package."""
    if isinstance(data, np.ndarray):
        size = data.nbytes
        if size <= PLAIN_BYTES_MOST:
            return plain(data.tobytes())
        array = data.reshape(-1).view(np.uint8)
    else:
        size = len(data)
        if size <= PLAIN_BYTES_MOST:
            return plain(data)
        array = np.frombuffer(data, np.uint8)
    if size <= _ROW_BYTES:
        table, places = _row_table()
        added = table.take(places[_ROW_BYTES - size :] + array)
        return int(np.bitwise_xor.reduce(added)) ^ _of_zeros()[size]
    if size <= _ROW_BYTES * _ROWS_MOST:
        return _by_rows(array, _ONES) ^ _ONES
    return _by_rows(_folded(array), 0) ^ _ONES


def _byte_tables():
    """What a byte adds that is followed by 0, 1, .. 7 zeros."""
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (_POLYNOMIAL if value & 1 else 0)
        table.append(value)
    tables = [table]
    for _ in range(7):
        tables.append([(value >> 8) ^ table[value & 0xFF] for value in tables[-1]])
    return tables


_TABLES = _byte_tables()


def plain(data):
    """The same of bytes, without numpy."""
    register = _ONES
    t0, t1, t2, t3, t4, t5, t6, t7 = _TABLES
    end = len(data) & ~7
    for at in range(0, end, 8):
        word = int.from_bytes(data[at : at + 8], "little") ^ register
        a, b, c, d, e, f, g, h = word.to_bytes(8, "little")
        register = t7[a] ^ t6[b] ^ t5[c] ^ t4[d] ^ t3[e] ^ t2[f] ^ t1[g] ^ t0[h]
    for byte in data[end:]:
        register = (register >> 8) ^ t0[(register ^ byte) & 0xFF]
    return register ^ _ONES


@functools.lru_cache(maxsize=None)
def _of_zeros():
    """Checksums of up to a row of zeros."""
    register, checksums = _ONES, []
    for _ in range(_ROW_BYTES + 1):
        checksums.append(register ^ _ONES)
        register = (register >> 8) ^ _TABLES[0][register & 0xFF]
    return checksums


def _by_rows(array, register):
    """The register after these bytes, if it was `register` before them. At most 256 rows, at least 4 bytes."""
    rows = -(-len(array) // _ROW_BYTES)
    # Zeros in front change nothing but the register that one begins with, which is added to the first bytes instead.
    padded = np.zeros(rows * _ROW_BYTES, np.uint8)
    begin = len(padded) - len(array)
    padded[begin:] = array
    padded[begin : begin + 4] ^= np.frombuffer(register.to_bytes(4, "little"), np.uint8)
    table, places = _row_table()
    registers = np.bitwise_xor.reduce(table.take(padded.reshape(rows, _ROW_BYTES) + places), axis=1)
    table, places = _rows_table()
    parts = registers.astype("<u4").view(np.uint8).reshape(rows, 4)
    return int(np.bitwise_xor.reduce(table.take(parts + places[_ROWS_MOST - rows :]), axis=None))


@functools.lru_cache(maxsize=None)
def _row_table():
    """What a byte at each place of a row adds, and where in the table each place begins."""
    last = np.array([[_TABLES[0][1 << bit] for bit in range(8)]], np.uint32)
    bits = _at_distances(last, _ROW_BYTES, 1)[::-1]
    return _of_bytes(bits), np.arange(_ROW_BYTES, dtype=np.intp) * 256


@functools.lru_cache(maxsize=None)
def _rows_table():
    """What each byte of a row's register adds, by the row, the last one last."""
    last = np.array([[1 << bit for bit in range(32)]], np.uint32)
    bits = _at_distances(last, _ROWS_MOST, _ROW_BYTES)[::-1]
    places = np.arange(_ROWS_MOST * 4, dtype=np.intp).reshape(_ROWS_MOST, 4) * 256
    return _of_bytes(bits.reshape(-1, 8)), places


def _at_distances(registers, count, unit_bytes):
    """Registers followed by 0, 1, 2, .. units of zeros; `count` is a power of two."""
    power = np.array([1 << 31], np.uint32)
    for _ in range(8 * unit_bytes):
        power = _times_x(power)
    while len(registers) < count:
        registers = np.concatenate([registers, _product(registers, int(power[0]))])
        power = _product(power, int(power[0]))
    return registers


def _times_x(registers):
    return (registers >> np.uint32(1)) ^ (registers & np.uint32(1)) * np.uint32(_POLYNOMIAL)


def _product(registers, factor):
    """Products of polynomials, whose highest bit is the one of exponent 0."""
    product = np.zeros_like(registers)
    for bit in range(31, -1, -1):
        if factor >> bit & 1:
            product ^= registers
        registers = _times_x(registers)
    return product


def _of_bytes(bits):
    """For rows of what each bit of a byte adds: what each byte adds, row by row in one table."""
    table = np.zeros((len(bits), 256), np.uint32)
    for bit in range(8):
        table[:, 1 << bit : 2 << bit] = table[:, : 1 << bit] ^ bits[:, bit : bit + 1]
    return table.reshape(-1)


def _folded(array):
    """Bytes as many as `_DEGREE` words, of which the register becomes the same from 0 as of `array` from ones."""
    missing = -len(array) % 8
    words = (len(array) + missing) // 8
    # What is to be added to the words that come next.
    carry = np.zeros(_DEGREE, np.uint64)
    carry.view(np.uint8)[missing : missing + 4] = 0xFF
    buffer = np.empty(min(_SEGMENT, words) + _DEGREE, np.uint64)
    in_bytes = buffer.view(np.uint8)
    done = 0
    while words - done > _DEGREE:
        count = min(_SEGMENT, words - _DEGREE - done)
        begin = done * 8 - missing
        if begin < 0:
            in_bytes[:missing] = 0
        in_bytes[max(-begin, 0) : count * 8] = array[max(begin, 0) : begin + count * 8]
        buffer[count : count + _DEGREE] = 0
        buffer[:_DEGREE] ^= carry
        _fold(buffer, count)
        carry[:] = buffer[count : count + _DEGREE]
        done += count
    return array[-_DEGREE * 8 :] ^ carry.view(np.uint8)


def _fold(buffer, count):
    """Takes the first words away."""
    for begin in range(0, count, _STRIDE):
        end = min(begin + _STRIDE, count)
        for offset in _OFFSETS:
            behind = buffer[begin + offset : end + offset]
            np.bitwise_xor(behind, buffer[begin:end], out=behind)

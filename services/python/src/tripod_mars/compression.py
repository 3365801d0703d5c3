"""How bytes of chunks may be compressed on their way. What this machine can read is looked up once; nothing that is missing
is an error, since a worker sends what is not compressed if it knows none of what it is offered."""

import zlib

from . import wire
from .errors import DamagedDataError, UnsupportedError

NUMBERS = {
    "none": wire.COMPRESSION_NONE,
    "lz4": wire.COMPRESSION_LZ4_FRAME,
    "zstd": wire.COMPRESSION_ZSTD,
    "gzip": wire.COMPRESSION_GZIP,
}
NAMES = {number: name for name, number in NUMBERS.items()}


def _gunzip(data):
    return zlib.decompress(data, zlib.MAX_WBITS | 16)


def _readers():
    found = {"none": bytes, "gzip": _gunzip}
    try:
        import lz4.frame

        found["lz4"] = lz4.frame.decompress
    except ImportError:
        pass
    try:
        import zstandard

        # The bytes of a message may have been written as a stream, whose length is not told.
        found["zstd"] = lambda data: zstandard.ZstdDecompressor().decompressobj().decompress(data)
    except ImportError:
        try:
            from compression import zstd  # Python 3.14

            found["zstd"] = zstd.decompress
        except ImportError:
            pass
    return found


_READERS = _readers()


def readable():
    """The names of what this machine reads, `none` among them."""
    return tuple(_READERS)


def offers(names):
    """Numbers for a request, what is liked best first. What cannot be read here is left out. Raises `UnsupportedError` for
    names that nobody knows."""
    unknown = [name for name in names if name not in NUMBERS]
    if unknown:
        raise UnsupportedError(f"no compression is called {', '.join(unknown)}; there are {', '.join(NUMBERS)}")
    return [NUMBERS[name] for name in names if name in _READERS]


def writer(names):
    """The number and the function of the first of these by which this machine can write; else those of none."""
    for name in names:
        if name == "gzip":
            return NUMBERS[name], _gzip
        if name == "lz4" and name in _READERS:
            import lz4.frame

            return NUMBERS[name], lz4.frame.compress
        if name == "zstd" and name in _READERS:
            try:
                import zstandard

                return NUMBERS[name], zstandard.ZstdCompressor(level=1).compress
            except ImportError:
                from compression import zstd  # Python 3.14

                return NUMBERS[name], zstd.compress
    return NUMBERS["none"], bytes


def _gzip(data):
    compressor = zlib.compressobj(1, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    return compressor.compress(data) + compressor.flush()


def read(compression, data):
    """What was compressed. Raises `DamagedDataError`."""
    name = NAMES.get(compression)
    reader = _READERS.get(name)
    if reader is None:
        raise DamagedDataError(f"bytes are compressed by {name or compression}, which was not asked for")
    if name == "none":
        return data
    try:
        return reader(data)
    except Exception as error:  # Each library has errors of its own.
        raise DamagedDataError(f"bytes that {name} cannot read: {error}") from None

"""Messages of a chunk, put together: checked, uncompressed, and read as numpy has them.

A tensor comes as a file of `np.save`, a frame as its description and buffers. What is read is never a pickle.
"""

import io

import numpy as np

from . import compression, dtypes, image, wire
from .chunk.crc32c import crc32c
from .errors import DamagedDataError


class Assembly:
    """The messages of one chunk, which come in their order."""

    def __init__(self, key):
        self.key = key
        self._parts = []
        self._first = None

    def add(self, message):
        """Takes the next message; answers whether it was the last one. Raises `DamagedDataError`."""
        if message.seq != len(self._parts):
            raise DamagedDataError(f"chunk {self.key}: message {message.seq} came as number {len(self._parts)}")
        if crc32c(message.bytes) != message.crc32c:
            raise DamagedDataError(f"chunk {self.key}: bytes of message {message.seq} are not those of its checksum")
        if self._first is None:
            self._first = message
        self._parts.append(compression.read(message.compression, message.bytes))
        return message.last

    def finish(self):
        """An array, or for a frame a dict of arrays by column. Raises `DamagedDataError`."""
        data = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        encoding = self._first.encoding
        try:
            if encoding == wire.ENCODING_NPY:
                return self._array(data)
            if encoding == wire.ENCODING_TPCH:
                return image.read(data)
        except (ValueError, IndexError, KeyError, OverflowError) as error:
            raise DamagedDataError(f"chunk {self.key}: {error}") from None
        raise DamagedDataError(f"chunk {self.key}: encoding {encoding} was not asked for")

    def _array(self, data):
        array = npy(data)
        expected = tuple(self._first.shape)
        name = dtypes.BY_NUMBER.get(self._first.dtype)
        if array.shape != expected or name is None or array.dtype != dtypes.BY_NAME.get(name):
            raise ValueError(f"{array.dtype} {list(array.shape)} came, and {name} {list(expected)} was told")
        return array


def npy(data):
    """A file of `np.save`, whose elements are not copied. Raises `ValueError`."""
    file = io.BytesIO(data[:4096])
    version = np.lib.format.read_magic(file)
    read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}.get(version)
    if read is None:
        raise ValueError(f"a file of version {version}")
    shape, is_fortran, dtype = read(file)
    if dtype.hasobject or is_fortran:
        raise ValueError("objects, or another order than that of C")
    count = int(np.prod(shape, dtype=object)) if shape else 1
    array = np.frombuffer(data, dtype, count, offset=file.tell())
    return array.reshape(shape)


def write_npy(array):
    """As `np.save` would."""
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asarray(array, order="C"), version=(1, 0), allow_pickle=False)
    return file.getvalue()

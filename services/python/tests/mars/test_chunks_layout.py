"""Chunks as objects of a store."""

import struct
import sys
import unittest

import numpy as np

from tripod_mars.chunk import crc32c, layout
from tripod_mars.chunk.frame import Column, Frame
from tripod_mars.chunk.partial import Partial

from . import chunks

# As the package says what it has.
POLYNOMIAL = 0x82F63B78


def bitwise(data):
    register = 0xFFFFFFFF
    for byte in data:
        register ^= byte
        for _ in range(8):
            register = (register >> 1) ^ (POLYNOMIAL if register & 1 else 0)
    return register ^ 0xFFFFFFFF


class Checksums(unittest.TestCase):
    def test_it_is_castagnolis(self):
        self.assertEqual(0xE3069283, crc32c.crc32c(b"123456789"))
        self.assertEqual(0x8A9136AA, crc32c.crc32c(bytes(32)))
        self.assertEqual(0, crc32c.crc32c(b""))

    def test_all_lengths_have_one_checksum_however_it_is_computed(self):
        data = np.random.default_rng(1).integers(0, 256, 1 << 20, np.uint8)
        for size in [*range(300), 511, 512, 513, 65535, 65536, 65537, 70003, 305_681, 1 << 20]:
            with self.subTest(size=size):
                some = data[:size].tobytes()
                wanted = bitwise(some) if size < 600 else crc32c.plain(some)
                self.assertEqual(wanted, crc32c.plain(some))
                self.assertEqual(wanted, crc32c.by_numpy(some))
                self.assertEqual(wanted, crc32c.by_numpy(data[:size]))
                self.assertEqual(wanted, crc32c.crc32c(some))
                self.assertEqual(wanted, crc32c.crc32c(bytearray(some)))
                self.assertEqual(wanted, crc32c.crc32c(memoryview(some)))
                self.assertEqual(wanted, crc32c.crc32c(data[:size]))

    def test_the_sparse_multiple_is_one(self):
        remainder, powers = 1 << 31, []
        for _ in range(6778):
            powers.append(remainder)
            remainder = (remainder >> 1) ^ (POLYNOMIAL if remainder & 1 else 0)
        self.assertEqual(0, powers[6777] ^ powers[484] ^ powers[100] ^ powers[0])


class Tensors(unittest.TestCase):
    def check(self, array):
        memory, offset = chunks.stored(array)
        self.assertTrue(offset >= 8 and offset % 8 == 0)
        is_ = layout.unpack(memory, offset)
        self.assertEqual((array.shape, array.dtype.newbyteorder("=")), (is_.shape, is_.dtype))
        np.testing.assert_array_equal(is_, array)
        self.assertFalse(is_.flags.writeable)
        return is_

    def test_tensors_of_all_types_and_shapes_come_back(self):
        for dtype in (np.bool_, np.int32, np.int64, np.float32, np.float64):
            for shape in [(), (0,), (1,), (3, 0, 2), (5, 7), (2, 3, 4), (200, 300), (1,) * 32]:
                with self.subTest(dtype=dtype, shape=shape):
                    self.check((np.arange(np.prod(shape, dtype=int)) % 3).astype(dtype).reshape(shape))

    def test_every_order_of_bytes_and_elements_comes_back_as_one(self):
        array = np.arange(12.0).reshape(3, 4)
        for other in (array.T, array[::-2, ::3], array.astype(">f8"), np.arange(5, dtype=">i4"), array[:, :0]):
            self.check(other)

    def test_nan_and_negative_zero_keep_their_bits(self):
        array = np.array([np.nan, -0.0, np.inf, -np.nan])
        self.assertEqual(array.tobytes(), self.check(array).tobytes())

    def test_what_is_read_is_the_memory_itself(self):
        packed = layout.pack(np.arange(100.0))
        memory = bytearray(packed.size_bytes)
        packed.write(memoryview(memory))
        self.assertTrue(np.shares_memory(layout.unpack(memory, packed.metadata_offset), np.frombuffer(memory, np.uint8)))

    def test_the_layout_is_that_of_the_contract(self):
        packed = layout.pack(np.array([[1, 2, 3]], np.int32))
        self.assertEqual((16, (1, 3), 2, 12), (packed.metadata_offset, packed.shape, packed.element_type, packed.data_bytes))
        memory, _ = chunks.stored(np.array([[1, 2, 3]], np.int32))
        elements = struct.pack("<3i", 1, 2, 3)
        head = struct.pack("<4sIBBHI2Q", b"TPCH", 1, 1, 2, 2, 0, 1, 3)
        buffer = struct.pack("<QQII", 0, 12, bitwise(elements), 0)
        self.assertEqual(elements + bytes(4) + head + buffer, bytes(memory))

    def test_an_empty_chunk_is_no_object_of_another_kind(self):
        """Those have a metadata offset of 0."""
        for empty in (np.empty(0), Frame(["a"], [Column("i64", np.empty(0, np.int64))])):
            self.assertEqual(8, layout.pack(empty).metadata_offset)

    def test_metadata_may_come_first(self):
        """As those write it that know all checksums before."""
        elements = struct.pack("<3i", 1, 2, 3)
        head = struct.pack("<4sIBBHIQ", b"TPCH", 1, 1, 2, 1, 0, 3)
        buffer = struct.pack("<QQII", 64, 12, bitwise(elements), 0)
        memory = (head + buffer).ljust(64, b"\0") + elements
        np.testing.assert_array_equal(layout.unpack(memory, 0), [1, 2, 3])
        with self.assertRaisesRegex(layout.DamagedChunkError, "but a value"):
            layout.unpack(b"\x08\x01", 0)

    def test_types_that_no_chunk_has_are_refused(self):
        for array in (np.zeros(1, np.complex128), np.array(["a"]), np.zeros(1, np.int8), np.array([None])):
            self.assertRaises(TypeError, layout.pack, array)
        self.assertRaises(ValueError, layout.pack, np.zeros((1,) * 33))


class Frames(unittest.TestCase):
    def test_frames_with_missing_values_come_back(self):
        columns = {
            "b": ("bool", [True, None, False]),
            "i": ("i32", [1, None, -(2**31)]),
            "l": ("i64", [2**62, 0, None]),
            "f": ("f32", [0.5, 1, 2]),
            "g": ("f64", [0.1, 1, 2]),
            "täxt": ("text", ["a", None, "日本\0\n"]),
            "none": ("text", [None, None, None]),
        }
        is_ = chunks.through(chunks.frame(**columns))
        self.assertEqual({name: values for name, (_, values) in columns.items()}, chunks.table(is_))
        self.assertEqual([dtype for dtype, _ in columns.values()], [column.dtype for column in is_.columns])

    def test_frames_without_rows_come_back(self):
        is_ = chunks.through(chunks.frame(t=("text", []), i=("i32", [])))
        self.assertEqual(({"t": [], "i": []}, 0), (chunks.table(is_), is_.rows))

    def test_the_layout_is_that_of_the_contract(self):
        memory, offset = chunks.stored(chunks.frame(n=("i32", [7, 8]), text=("text", ["ab", None])))
        packed = layout.pack(chunks.frame(n=("i32", [7, 8]), text=("text", ["ab", None])))
        self.assertEqual(((2,), 0, 8 + 24 + 2 + 2), (packed.shape, packed.element_type, packed.data_bytes))

        def buffer(place, data):
            self.assertEqual(data, bytes(memory[place : place + len(data)]))
            return struct.pack("<QQII", place, len(data), bitwise(data), 0)

        wanted = struct.pack("<4sIBBHIQ", b"TPCH", 1, 2, 0, 1, 2, 2)
        wanted += struct.pack("<HBBI8s", 1, 2, 0, 0, b"n") + buffer(0, struct.pack("<2i", 7, 8))
        wanted += struct.pack("<HBBI8s", 4, 6, 1, 0, b"text")
        wanted += buffer(64, struct.pack("<3Q", 0, 2, 2)) + buffer(128, b"ab") + buffer(192, b"\1\0")
        self.assertEqual((200, wanted), (offset, bytes(memory[offset:])))

    def test_rows_are_picked_and_joined(self):
        frame = chunks.frame(t=("text", ["a", "", "ccc", None]), i=("i64", [1, 2, 3, 4]))
        self.assertEqual({"t": [None, "a", "a"], "i": [4, 1, 1]}, chunks.table(frame.take(np.array([3, 0, 0]))))
        self.assertEqual({"t": ["", "ccc"], "i": [2, 3]}, chunks.table(frame.slice(1, 3)))
        joined = Frame.joined([frame.slice(2, 4), frame.slice(0, 0), frame.slice(0, 1)])
        self.assertEqual({"t": ["ccc", None, "a"], "i": [3, 4, 1]}, chunks.table(joined))


class Partials(unittest.TestCase):
    def test_partial_results_come_back(self):
        arrays = [np.arange(3), np.zeros((2, 0)), np.array(True), np.arange(5, dtype=np.uint8), np.ones((1, 2), np.float32)]
        is_ = chunks.through(Partial("kind", {"a": [1, None, "ä"]}, arrays))
        self.assertEqual(("kind", {"a": [1, None, "ä"]}), (is_.kind, is_.attributes))
        self.assertEqual(len(arrays), len(is_.arrays))
        for wanted, array in zip(arrays, is_.arrays):
            self.assertEqual((wanted.dtype, wanted.shape), (array.dtype, array.shape))
            np.testing.assert_array_equal(array, wanted)


class Damage(unittest.TestCase):
    CHUNKS = [
        np.arange(20.0),
        np.arange(100_000),
        chunks.frame(t=("text", ["a", None, "ccc"]), i=("i64", [1, 2, None])),
        Partial("kind", {}, [np.arange(9)]),
    ]

    def test_every_changed_bit_of_a_buffer_is_found(self):
        for chunk in self.CHUNKS:
            memory, offset = chunks.stored(chunk)
            used = [at for at, byte in enumerate(memory[:offset]) if byte]
            for at in (used[0], used[len(used) // 2], used[-1]):
                damaged = bytearray(memory)
                damaged[at] ^= 0x10
                with self.assertRaises(layout.DamagedChunkError):
                    layout.unpack(damaged, offset)

    def test_no_bytes_of_metadata_do_harm(self):
        """Whatever they are: an object, or damage; never another error, and no memory that is not there."""
        for chunk in self.CHUNKS:
            memory, offset = chunks.stored(chunk)
            for at in range(offset, len(memory)):
                for value in (0, 1, 0x7F, 0xFF):
                    damaged = bytearray(memory)
                    damaged[at] = value
                    try:
                        layout.unpack(damaged, offset)
                    except layout.DamagedChunkError:
                        pass

    def test_what_is_cut_off_is_found(self):
        for chunk in self.CHUNKS:
            memory, offset = chunks.stored(chunk)
            for size in range(offset - 8, len(memory)):
                with self.assertRaises(layout.DamagedChunkError):
                    layout.unpack(memory[:size], offset)

    def test_texts_that_overlap_are_found(self):
        frame = chunks.frame(t=("text", ["ab", "c"]))
        frame.columns[0].values.offsets[1] = 7
        with self.assertRaises(layout.DamagedChunkError):
            chunks.through(frame)


class Weight(unittest.TestCase):
    def test_chunks_need_neither_pandas_nor_pyarrow(self):
        import subprocess

        code = (
            "import sys, tripod_mars.chunk.operators, tripod_mars.chunk.node, tripod_mars.chunk.layout;"
            "assert not {'pandas', 'pyarrow'} & set(sys.modules), sorted(sys.modules)"
        )
        subprocess.run([sys.executable, "-c", code], check=True)


if __name__ == "__main__":
    unittest.main()

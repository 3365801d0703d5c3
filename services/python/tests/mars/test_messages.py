"""The compiled messages are those of the .proto file, and the pieces of reading are right by themselves."""

import itertools
import pathlib
import re
import unittest

from mars.case import mt, np
from tripod_mars import DamagedDataError, codec, compression, parts, wire
from tripod_mars.chunk.crc32c import crc32c

PROTO = pathlib.Path(__file__).resolve().parents[4] / "proto" / "mars" / "v1" / "mars.proto"


@unittest.skipUnless(PROTO.is_file(), "the .proto file is not beside the package")
class Messages(unittest.TestCase):
    def test_messages_are_those_of_the_proto_file(self):
        text = re.sub(r"//[^\n]*", "", PROTO.read_text())
        found = 0
        for name, body in re.findall(r"message (\w+) \{((?:[^{}]|\{[^{}]*\})*)\}", text):
            declared = {(field, int(number)) for field, number in re.findall(r"(\w+) = (\d+)", body)}
            fields = wire.message(name).DESCRIPTOR.fields
            self.assertEqual({(field.name, field.number) for field in fields}, declared, "run make_descriptors.py")
            found += 1
        self.assertGreater(found, 80)

    def test_calls_are_those_of_the_proto_file(self):
        for service, calls in (("Scheduler", wire.SCHEDULER), ("Worker", wire.WORKER)):
            body = re.search(rf"service {service} \{{(.*?)\n\}}", PROTO.read_text(), re.DOTALL)[1]
            self.assertEqual(re.findall(r"rpc (\w+)", body), list(calls), "run make_descriptors.py")


class Pieces(unittest.TestCase):
    def test_pieces_of_all_chunks_are_what_numpy_picks(self):
        for extents in ([5], [2, 3], [1, 1, 1, 1, 1], [0, 4, 0, 1], [3, 0, 2]):
            whole = np.arange(5)
            chunks = np.split(whole, np.cumsum(extents)[:-1])
            bounds = (None, *range(-6, 7))
            for start, stop, step in itertools.product(bounds, bounds, (None, 1, 2, 3, -1, -2, -4)):
                index = slice(start, stop, step)
                shape, wanted = parts.pieces([extents], [index])
                found = np.full(shape, -1)
                for place, ask, where in wanted:
                    chunk = chunks[place]
                    found[where] = chunk if ask is None else chunk[self.picked(ask)]
                np.testing.assert_array_equal(found, whole[index], f"{extents} {index}")

    def picked(self, ask):
        from mars.local import picked

        return picked(ask)


class Codec(unittest.TestCase):
    def message(self, array, **more):
        data = codec.write_npy(array)
        fields = {"encoding": wire.ENCODING_NPY, "shape": array.shape, "dtype": 3, "bytes": data, "last": True}
        return wire.ChunkData(**{"crc32c": crc32c(data), **fields, **more})

    def test_an_array_is_read(self):
        for array in (np.arange(6).reshape(2, 3), np.array(5), np.zeros((0, 3), np.int64)):
            assembly = codec.Assembly("k")
            self.assertTrue(assembly.add(self.message(array)))
            np.testing.assert_array_equal(assembly.finish(), array)

    def test_what_is_not_what_was_told_is_damaged(self):
        array = np.arange(6)
        pickle = np.array([{}], object)
        for wrong in (
            self.message(array, crc32c=1),
            self.message(array, seq=1),
            self.message(array, shape=[7]),
            self.message(array, dtype=5),
            self.message(array, dtype=77),
            self.message(array, encoding=0),
            self.message(array, compression=wire.COMPRESSION_GZIP),
            self.message(array, bytes=b"\x93NUMPY", crc32c=crc32c(b"\x93NUMPY")),
            self.message(array, bytes=b"", crc32c=0),
        ):
            assembly = codec.Assembly("k")
            with self.assertRaises(DamagedDataError):
                assembly.add(wrong)
                assembly.finish()
        with self.assertRaises(ValueError):
            codec.npy(b"\x93NUMPY\x01\x00v\x00{'descr': '|O', 'fortran_order': False, 'shape': (1,), }".ljust(200))
        self.assertEqual(pickle.dtype, object)

    def test_what_is_offered_can_be_read(self):
        self.assertEqual(compression.offers(("gzip", "none")), [wire.COMPRESSION_GZIP, wire.COMPRESSION_NONE])
        for name in ("zstd", "lz4"):
            self.assertEqual(compression.offers((name,)) != [], name in compression.readable())
        with self.assertRaises(TypeError):
            compression.offers(("brotli",))
        self.assertTrue(mt)


if __name__ == "__main__":
    unittest.main()

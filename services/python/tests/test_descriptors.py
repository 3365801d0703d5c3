"""The compiled descriptors are those of the .proto files beside this package."""

import pathlib
import re
import unittest

from google.protobuf import descriptor_pb2

import tripod_ray

PROTOS = pathlib.Path(__file__).resolve().parents[3] / "proto"
FIELD = re.compile(
    r"^(?P<label>optional |repeated )?(?P<type>map<[^>]*>|[\w.]+)\s+(?P<name>\w+)\s*=\s*(?P<number>\d+)$"
)
KINDS = {
    kind: name[len("TYPE_") :].lower() for name, kind in descriptor_pb2.FieldDescriptorProto.Type.items()
}


def declared(text):
    """Fields by message, from the text of a .proto file: message -> {(name, number, label, type)}."""
    text = re.sub(r"//[^\n]*", "", text)
    found, names = {}, []
    for piece in re.findall(r"[^{};]*[{};]", text):
        words, end = piece[:-1].strip(), piece[-1]
        words = " ".join(words.split())
        if end == "{":
            kind, _, name = words.partition(" ")
            names.append((kind, name))
            if kind == "message":
                found.setdefault(".".join(n for k, n in names if k == "message"), set())
        elif end == "}":
            names.pop()
        elif names and names[-1][0] in ("message", "oneof"):
            field = FIELD.match(words)
            message = ".".join(n for k, n in names if k == "message")
            label = "oneof" if names[-1][0] == "oneof" else (field["label"] or "").strip()
            found[message].add((field["name"], int(field["number"]), label, field["type"].replace(" ", "")))
    return found


def compiled(file):
    found = {}

    def visit(message, prefix):
        if message.options.map_entry:
            return
        name = prefix + message.name
        maps = {nested.name: nested for nested in message.nested_type if nested.options.map_entry}
        fields = found.setdefault(name, set())
        for field in message.field:
            kind = field.type_name.rpartition(".")[2] or KINDS[field.type]
            label = "repeated" if field.label == field.LABEL_REPEATED else ""
            if field.proto3_optional:
                label = "optional"
            elif field.HasField("oneof_index"):
                label = "oneof"
            if kind in maps:
                entry = maps[kind].field
                value = entry[1].type_name.rpartition(".")[2] or KINDS[entry[1].type]
                kind = f"map<{KINDS[entry[0].type]},{value}>"
                label = ""
            fields.add((field.name, field.number, label, kind))
        for nested in message.nested_type:
            visit(nested, name + ".")

    for message in file.message_type:
        visit(message, "")
    return found


@unittest.skipUnless(PROTOS.is_dir(), "the .proto files are not beside the package")
class Descriptors(unittest.TestCase):
    def test_descriptors_are_those_of_the_proto_files(self):
        data = (pathlib.Path(tripod_ray.__file__).parent / "descriptors.bin").read_bytes()
        for file in descriptor_pb2.FileDescriptorSet.FromString(data).file:
            with self.subTest(file=file.name):
                text = (PROTOS / file.name).read_text()
                self.assertEqual(declared(text), compiled(file), "run services/python/make_descriptors.py")
                services = {
                    (service.name, method.name) for service in file.service for method in service.method
                }
                self.assertEqual(services, rpcs(text), "run services/python/make_descriptors.py")

    def test_a_changed_field_is_noticed(self):
        before = declared("message A { uint64 x = 1; oneof y { B z = 2; } }")
        self.assertEqual(before, {"A": {("x", 1, "", "uint64"), ("z", 2, "oneof", "B")}})
        self.assertNotEqual(before, declared("message A { uint64 x = 3; oneof y { B z = 2; } }"))


def rpcs(text):
    found, service = set(), None
    for line in re.sub(r"//[^\n]*", "", text).splitlines():
        if begins := re.match(r"service (\w+)", line):
            service = begins[1]
        if method := re.search(r"rpc (\w+)", line):
            found.add((service, method[1]))
    return found


if __name__ == "__main__":
    unittest.main()

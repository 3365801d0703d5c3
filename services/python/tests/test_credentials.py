"""By what nodes know who calls: certificates and tokens of files."""

import base64
import datetime
import ipaddress
import os
import pathlib
import tempfile
import unittest
import unittest.mock
import zlib
from concurrent import futures

import grpc

from tripod_ray import credentials, wire
from tripod_ray.credentials import Credentials
from tripod_ray.errors import RefusedError, UnreachableError
from tripod_ray.link import Link

try:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
except ImportError:
    x509 = None



def token(kind):
    summed = f"trp_{kind}_b5kq4w2m7xj3e_" + "a" * 52
    sum_of = base64.b32encode(zlib.crc32(summed.encode()).to_bytes(4, "big"))
    return f"{summed}_{sum_of.decode().rstrip('=').lower()}"


TOKEN, OTHER = token("viewer"), token("driver")
PATH = "/Test/Ask"
WITH = ("authorization", "Bearer " + TOKEN)


class Files(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.place = pathlib.Path(place.name)
        environment = {name: value for name, value in os.environ.items() if name not in VARIABLES}
        patched = unittest.mock.patch.dict(os.environ, environment, clear=True)
        patched.start()
        self.addCleanup(patched.stop)
        self.addCleanup(credentials.use, None)

    def write(self, name, text, mode=0o600):
        path = self.place / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        path.chmod(mode)
        return str(path)


VARIABLES = (credentials.TLS_DIR, credentials.TOKEN_FILE)


class Tokens(Files):
    def setUp(self):
        super().setUp()
        self.write("ca.crt", "roots")

    def of(self, token_file):
        return Credentials(str(self.place), token_file)

    def test_a_token_is_read_from_a_file_that_nobody_else_reads(self):
        for mode in (0o600, 0o400):
            path = self.write("token", TOKEN + "\n", mode)
            self.assertEqual(self.of(path).metadata(), (WITH,))
            os.remove(path)
        for mode in (0o640, 0o604, 0o660):
            path = self.write("token", TOKEN, mode)
            with self.assertRaisesRegex(ValueError, "T1531 token-file: .*chmod 600"):
                self.of(path)
        for text in ("", "trp", TOKEN + " x", TOKEN + "\nx", "a" * 87, "trp_" + "a" * 200, TOKEN[:-1] + "é", TOKEN[:-1], TOKEN.upper()):
            path = self.write("token", text)
            with self.assertRaisesRegex(ValueError, "does not hold a token$"):
                self.of(path)
        with self.assertRaisesRegex(ValueError, "T1531 token-file: .* cannot be read"):
            self.of(str(self.place / "none"))
        with self.assertRaisesRegex(ValueError, "is not a file|cannot be read"):
            self.of(str(self.place))

    def test_s30_none_is_shown_in_plain_text(self):
        path = self.write("token", TOKEN)
        with self.assertRaisesRegex(ValueError, "T1534 token-plain"):
            Credentials(None, path)
        self.assertEqual(Credentials().metadata(), ())

    def test_the_environment_names_what_no_argument_does(self):
        path, other = self.write("token", TOKEN), self.write("other", OTHER)
        os.environ.update({credentials.TLS_DIR: str(self.place), credentials.TOKEN_FILE: path})
        self.assertEqual(credentials.default().metadata(), (WITH,))
        self.assertEqual(credentials.given(None, other).metadata(), (("authorization", "Bearer " + OTHER),))
        # An empty argument says that there is none.
        self.assertEqual(credentials.given("", "").metadata(), ())

    def test_a_token_that_takes_the_place_of_another_is_shown_a_minute_later(self):
        path = self.write("token", TOKEN)
        held = self.of(path)
        now = held._read_at
        self.write("token", OTHER)
        with unittest.mock.patch("time.monotonic", lambda: now + 59):
            self.assertEqual(held.metadata(), (WITH,))
        with unittest.mock.patch("time.monotonic", lambda: now + 61):
            self.assertEqual(held.metadata(), (("authorization", "Bearer " + OTHER),))
        # One that is being written is none yet.
        self.write("token", "trp_")
        with unittest.mock.patch("time.monotonic", lambda: now + 200):
            self.assertEqual(held.metadata(), (("authorization", "Bearer " + OTHER),))

    def test_a_certificate_is_needed_where_there_is_no_token(self):
        with self.assertRaisesRegex(ValueError, "T1511 tls-file: .*tls.crt"):
            Credentials(str(self.place))
        self.write("tls.crt", "certificate")
        self.write("tls.key", "key", 0o644)
        with self.assertRaisesRegex(ValueError, "T1511 tls-file: others may use .*tls.key"):
            Credentials(str(self.place))


@unittest.skipIf(x509 is None, "makes certificates with the package cryptography")
class Nodes(Files):
    """A server that tells what it was shown."""

    def setUp(self):
        super().setUp()
        root, self.root_key = self.made("root", None, None, True)
        self.root = root
        leaf, key = self.made("node", root, self.root_key, False)
        self.write("ca.crt", root.public_bytes(serialization.Encoding.PEM))
        pem = leaf.public_bytes(serialization.Encoding.PEM)
        server = grpc.server(futures.ThreadPoolExecutor(2), handlers=(_Node(),))
        self.addCleanup(lambda: server.stop(None).wait())
        port = server.add_secure_port(
            "127.0.0.1:0", grpc.ssl_server_credentials([(pem_of(key), pem)])
        )
        server.start()
        self.address = f"127.0.0.1:{port}"

    def made(self, name, issuer, issuer_key, is_root):
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        now = datetime.datetime.now(datetime.timezone.utc)
        hour = datetime.timedelta(hours=1)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer.subject if issuer else subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - hour)
            .not_valid_after(now + hour)
            .add_extension(x509.BasicConstraints(ca=is_root, path_length=None), True)
        )
        if not is_root:
            host = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
            builder = builder.add_extension(x509.SubjectAlternativeName([host]), False)
        return builder.sign(issuer_key or key, hashes.SHA256()), key

    def link(self, **how):
        link = Link(self.address, credentials=Credentials(str(self.place), **how))
        self.addCleanup(link.close)
        return link

    def test_s30_a_token_is_shown_to_a_node_whose_certificate_holds(self):
        path = self.write("token", TOKEN)
        self.assertEqual(self.link(token_file=path).call(PATH, b""), b"viewer")
        wrong = self.write("token", OTHER)
        with self.assertRaisesRegex(RefusedError, "T1532"):
            self.link(token_file=wrong).call(PATH, b"")

    def test_s26_a_call_that_a_token_was_too_old_for_is_made_again_by_the_one_in_its_place(self):
        link = self.link(token_file=self.write("token", OTHER))
        self.write("token", TOKEN)
        self.assertEqual(link.call(PATH, b""), b"viewer")

    def test_s26_a_stream_is_opened_anew_by_a_token_that_takes_the_place_of_another(self):
        link = self.link(token_file=self.write("token", TOKEN))
        _Node.shown.clear()
        for text, shown in ((TOKEN, [WITH[1]]), (TOKEN, [WITH[1]]), (OTHER, [WITH[1], "Bearer " + OTHER])):
            self.write("token", text)
            # A minute has passed.
            link._credentials._read_at -= 61
            link.batch(wire.RayLineRequest(), "1")
            self.assertEqual(_Node.shown, shown)

    def test_a_node_of_another_root_is_shown_nothing(self):
        other, _ = self.made("other", None, None, True)
        self.write("ca.crt", other.public_bytes(serialization.Encoding.PEM))
        path = self.write("token", TOKEN)
        _Node.shown.clear()
        with self.assertRaises(UnreachableError):
            self.link(token_file=path).call(PATH, b"", patience_s=0.5, attempt_s=0.5)
        self.assertEqual(_Node.shown, [])


def pem_of(key):
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


class _Node(grpc.GenericRpcHandler):
    shown = []

    def service(self, details):
        if details.method == wire.LINE:
            return grpc.stream_stream_rpc_method_handler(self._answers)
        return grpc.unary_unary_rpc_method_handler(self._answer)

    def _answers(self, requests, context):
        self.shown.append(dict(context.invocation_metadata()).get("authorization"))
        for _ in requests:
            yield wire.RayLineResponse().SerializeToString()

    def _answer(self, _, context):
        said = dict(context.invocation_metadata()).get("authorization")
        self.shown.append(said)
        if said != WITH[1]:
            context.abort(grpc.StatusCode.UNAUTHENTICATED, "T1532 token-refused: the token is not valid here")
        return b"viewer"


if __name__ == "__main__":
    unittest.main()

"""What a program finds when it looks at the package, and what a checker of types finds."""

import importlib.util
import inspect
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import tripod

HERE = pathlib.Path(__file__).parent
SOURCE = pathlib.Path(tripod.__file__).parent


class Interface(unittest.TestCase):
    def test_dir_is_the_interface(self):
        self.assertEqual(dir(tripod), sorted(tripod.__all__))
        for name in dir(tripod):
            self.assertTrue(getattr(tripod, name).__doc__, name)

    def test_every_parameter_and_result_has_a_type(self):
        for name in tripod.__all__:
            found = getattr(tripod, name)
            functions = [found]
            if inspect.isclass(found):
                functions = [one for key, one in vars(found).items() if inspect.isfunction(one) and key[0] != "_"]
            for function in functions:
                signature = inspect.signature(function)
                self.assertIsNot(signature.return_annotation, signature.empty, function)
                for parameter in signature.parameters.values():
                    if parameter.name != "self":
                        self.assertIsNot(parameter.annotation, parameter.empty, (function, parameter))

    def test_the_wheel_says_that_it_has_types(self):
        self.assertTrue((SOURCE / "py.typed").is_file())

    @unittest.skipUnless(importlib.util.find_spec("mypy"), "mypy is not installed")
    def test_mypy_agrees_with_the_package_and_with_what_programs_write(self):
        with tempfile.TemporaryDirectory() as cache:
            command = [sys.executable, "-m", "mypy", "--strict", "--warn-unused-ignores", "--cache-dir", cache]
            done = subprocess.run(
                [*command, str(SOURCE), str(HERE / "usage.py")],
                cwd=SOURCE.parent,
                env={**os.environ, "MYPYPATH": str(SOURCE.parent)},
                capture_output=True,
                text=True,
            )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()

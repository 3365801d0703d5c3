"""What a program finds when it looks at the packages, and what a checker of types finds: the stubs beside the modules say
what these have."""

import ast
import importlib
import importlib.util
import inspect
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import tripod_ray as ray

HERE = pathlib.Path(__file__).parent
SOURCE = pathlib.Path(ray.__file__).parents[1]
PACKAGES = ("tripod_ray", "tripod_mars")
HAS_NUMPY = importlib.util.find_spec("numpy") is not None
# Modules that programs import, with what they find there.
PUBLIC = ("tripod_ray", "tripod_ray.raw")
PUBLIC_WITH_NUMPY = ("tripod_mars", "tripod_mars.tensor", "tripod_mars.dataframe")


def module_of(stub):
    parts = stub.relative_to(SOURCE).with_suffix("").parts
    return importlib.import_module(".".join(parts[:-1] if parts[-1] == "__init__" else parts))


def stubs():
    found = (path for package in PACKAGES for path in (SOURCE / package).rglob("*.pyi"))
    return sorted(path for path in found if HAS_NUMPY or "tripod_mars" not in path.parts)


def parameters_of_stub(function):
    """Name, kind and whether there is a default, in their order."""
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    first = len(positional) - len(arguments.defaults)
    told = [(one.arg, place >= first) for place, one in enumerate(positional)]
    if arguments.vararg:
        told.append(("*" + arguments.vararg.arg, False))
    told += [(one.arg, default is not None) for one, default in zip(arguments.kwonlyargs, arguments.kw_defaults)]
    if arguments.kwarg:
        told.append(("**" + arguments.kwarg.arg, False))
    return told


def parameters_of(function):
    told = []
    for one in inspect.signature(function).parameters.values():
        star = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
        told.append((star + one.name, one.default is not one.empty))
    return told


def has_own_form(function):
    """Whether the stub tells more than the function does: overloads, or options that it passes on."""
    return any("overload" in ast.unparse(one) for one in function.decorator_list)


class Interface(unittest.TestCase):
    """The numbers are those of the walk-through of a new operator."""

    def test_n41_dir_is_the_interface(self):
        for name in (*PUBLIC, *(PUBLIC_WITH_NUMPY if HAS_NUMPY else ())):
            module = importlib.import_module(name)
            with self.subTest(name):
                for one in module.__all__:
                    self.assertTrue(hasattr(module, one), one)
                if name != "tripod_ray.raw":
                    self.assertEqual(dir(module), sorted(module.__all__))
        for module in ("outbox", "relay", "batch_stream", "wire", "layout"):
            self.assertNotIn(module, dir(ray))

    def test_what_the_stubs_say_is_there_with_the_same_parameters(self):
        compared = 0
        for stub in stubs():
            module = module_of(stub)
            for node in ast.parse(stub.read_text()).body:
                if isinstance(node, ast.FunctionDef):
                    compared += self.compare(node, getattr(module, node.name))
                elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    there = getattr(module, node.name)
                    for method in node.body:
                        if isinstance(method, ast.FunctionDef) and method.name not in ("__init__", "__exit__"):
                            compared += self.compare(method, inspect.getattr_static(there, method.name))
        self.assertGreater(compared, 170 if HAS_NUMPY else 10)

    def compare(self, told, found):
        """Answers whether there was something to compare."""
        if isinstance(found, property):
            return 0
        if isinstance(found, classmethod):
            found = found.__func__
        own = {name for name, _ in parameters_of(found)}
        if has_own_form(told) or own & {"**options", "**changed"}:
            return 0
        expected = parameters_of(found)
        self.assertEqual(parameters_of_stub(told), expected, told.name)
        return 1

    def test_every_public_method_of_the_interface_has_types(self):
        for stub in stubs():
            module = module_of(stub)
            for node in ast.parse(stub.read_text()).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    told = {one.name for one in node.body if isinstance(one, ast.FunctionDef)}
                    public = {name for name, one in vars(getattr(module, node.name)).items() if is_public(name, one)}
                    # What the attributes of an instance are is said without a method.
                    told |= {one.target.id for one in node.body if isinstance(one, ast.AnnAssign)}
                    self.assertEqual(public - told - INTERNAL, set(), f"{stub}: {node.name}")

    def test_the_wheels_say_that_they_have_types(self):
        for package in PACKAGES:
            self.assertTrue((SOURCE / package / "py.typed").is_file(), package)

    @unittest.skipUnless(HAS_NUMPY and importlib.util.find_spec("mypy"), "mypy or numpy is not installed")
    def test_mypy_agrees_with_the_stubs_and_with_what_programs_write(self):
        modules = [SOURCE / name for name in ("tripod_ray/__init__.py", "tripod_ray/raw.py", "tripod_mars/tensor/__init__.py")]
        files = [*modules, *stubs(), HERE / "usage_ray.py", HERE / "usage_mars.py"]
        with tempfile.TemporaryDirectory() as cache:
            command = [sys.executable, "-m", "mypy", "--strict", "--warn-unused-ignores", "--follow-imports=silent"]
            done = subprocess.run(
                [*command, "--cache-dir", cache, *map(str, files)],
                cwd=SOURCE.parent,
                env={**os.environ, "MYPYPATH": str(SOURCE)},
                capture_output=True,
                text=True,
            )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


# What other modules of the packages call, and programs do not.
INTERNAL = {"of", "placed", "read_frame", "read_tensor", "export_all", "renew", "take"}


def is_public(name, one):
    return not name.startswith("_") and (inspect.isfunction(one) or isinstance(one, (property, classmethod)))


if __name__ == "__main__":
    unittest.main()

"""What a program finds when it looks at the package."""

import unittest

import tripod_ray as ray


class Interface(unittest.TestCase):
    """The numbers are those of the walk-through of a new operator."""

    def test_n41_dir_is_the_interface(self):
        self.assertEqual(dir(ray), sorted(ray.__all__))
        for name in dir(ray):
            self.assertIsNotNone(getattr(ray, name), name)
        for module in ("outbox", "relay", "batch_stream", "wire", "layout"):
            self.assertNotIn(module, dir(ray))


if __name__ == "__main__":
    unittest.main()

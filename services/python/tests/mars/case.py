"""What tests of tensors and frames have in common."""

import unittest

try:
    import numpy as np

    from mars.local import LocalCluster
except ImportError as error:
    raise unittest.SkipTest(f"the package needs numpy: {error}") from None

import tripod_mars as mars
import tripod_mars.tensor as mt


class Case(unittest.TestCase):
    """Has a cluster in this process, and a default session."""

    @classmethod
    def setUpClass(cls):
        if int(np.__version__.split(".")[0]) < 2:
            raise unittest.SkipTest("types are promoted as numpy 2 does")
        cls.cluster = LocalCluster()
        cls.addClassCleanup(cls.cluster.tiler.close)

    def setUp(self):
        self.session = self.cluster.session()
        mars.set_default_session(self.session)
        self.addCleanup(mars.set_default_session, None)
        self.addCleanup(self.session.close)

    def same(self, tensor, array, rounding=False):
        """The tensor is the array: its shape and type before anything is computed, and then all of it."""
        array = np.asarray(array)
        self.assertEqual(tensor.dtype, array.dtype)
        self.assertEqual(len(tensor.shape), array.ndim)
        for told, is_ in zip(tensor.shape, array.shape):
            self.assertIn(told, (None, is_))
        found = tensor.execute().fetch()
        self.assertEqual((found.dtype, found.shape, tensor.shape), (array.dtype, array.shape, array.shape))
        if rounding:
            np.testing.assert_allclose(found, array, rtol=1e-12 if array.dtype != np.float32 else 1e-6)
        else:
            np.testing.assert_array_equal(found, array)

    def both(self, expression, *arrays, chunk_size=2, rounding=False):
        """An expression of a module and of arrays is the same with tensors."""
        with np.errstate(all="ignore"):
            expected = expression(np, *[np.array(array) for array in arrays])
        tensors = [mt.tensor(array, chunk_size=chunk_size if np.ndim(array) else None) for array in arrays]
        self.same(expression(mt, *tensors), expected, rounding)

    def both_refuse(self, expression, *arrays):
        """Both refuse it, with the same error and the same text."""
        with np.errstate(all="ignore"), self.assertRaises(Exception) as by_numpy:
            expression(np, *[np.array(array) for array in arrays])
        with self.assertRaises(type(by_numpy.exception)) as by_tensors:
            expression(mt, *[mt.tensor(array, chunk_size=2) for array in arrays])
        self.assertEqual(str(by_tensors.exception).strip(), str(by_numpy.exception).strip())

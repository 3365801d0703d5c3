"""Objects between stores, as far as drivers and workers see them: U2."""

import unittest

import numpy as np
from cluster import ClusterTest, only_fake

import tripod_ray as ray


@only_fake("needs two stores on one machine")
class TwoStores(ClusterTest):
    stores = 2
    workers = 2

    def test_results_of_a_worker_of_another_store_come(self):
        """The driver shares a store with one worker at most."""
        for value in [1, "x" * 10_000, [1, [2]], np.arange(20_000), {"a": np.ones((3, 3))}]:
            refs = [ray.remote(lambda x: x).remote(value) for _ in range(4)]
            for got in ray.get(refs):
                np.testing.assert_equal(got, value)
        self.assertGreater(len(self.fake.stores[0].objects) * 1 + len(self.fake.stores[1].objects), 0)

    def test_what_is_put_on_one_store_is_an_argument_on_the_other(self):
        array = np.arange(100_000)
        ref = ray.put(array)
        total = ray.remote(lambda x: int(x.sum()))
        self.assertEqual(ray.get([total.remote(ref) for _ in range(10)]), [int(array.sum())] * 10)

    def test_an_alias_of_an_object_of_the_other_store_comes(self):
        ref = ray.put("far")
        back = ray.remote(lambda refs: refs[0])
        self.assertEqual(ray.get([back.remote([ref]) for _ in range(6)]), ["far"] * 6)


if __name__ == "__main__":
    unittest.main()

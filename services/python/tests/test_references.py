"""References as the scheduler counts them: U12 and U13 of upstream's tests, exactly."""

import unittest

import numpy as np
from cluster import ClusterTest, await_counts, counts, eventually, only_fake

import tripod_ray as ray


@ray.remote
def f():
    return np.zeros([10])


@ray.remote
def identity(x):
    return x


class Deallocation(ClusterTest):
    workers = 2

    def test_a_result_lives_as_long_as_its_handle(self):
        x = f.remote()
        ids = [x.id]
        ray.get(x)
        await_counts(self, ids, [1])
        del x
        await_counts(self, ids, [-1])

    def test_a_result_whose_handle_is_gone_before_it_has_an_id(self):
        for _ in range(20):
            identity.remote(1)
        kept = identity.remote(2)
        ids = [kept.id - 1, kept.id]
        ray.get(kept)
        await_counts(self, ids, [-1, 1])

    def test_a_chain_of_aliases_falls_together(self):
        @ray.remote
        def g():
            return f.remote()

        @ray.remote
        def h():
            return g.remote()

        x = h.remote()
        np.testing.assert_array_equal(ray.get(x), np.zeros([10]))
        ids = [x.id, x.id + 1, x.id + 2]
        await_counts(self, ids, [1, 0, 0])
        del x
        await_counts(self, ids, [-1, -1, -1])

    def test_a_container_holds_what_is_inside(self):
        @ray.remote
        def blocks():
            return [[f.remote(), f.remote()]]

        x = blocks.remote()
        ids = [x.id, x.id + 1, x.id + 2]
        ray.wait([x])
        await_counts(self, ids, [1, 1, 1])
        inside = ray.get(x)
        await_counts(self, ids, [1, 2, 2])
        del x
        await_counts(self, ids, [-1, 1, 1])
        del inside
        await_counts(self, ids, [-1, -1, -1])

    def test_a_put_container_holds_what_is_inside(self):
        one, two = ray.put("one"), ray.put("two")
        box = ray.put({"refs": [one, one, two]})
        ids = [one.id, two.id, box.id]
        await_counts(self, ids, [3, 2, 1])
        del one, two
        await_counts(self, ids, [2, 1, 1])
        del box
        await_counts(self, ids, [-1, -1, -1])

    def test_arguments_of_every_kind_are_given_back(self):
        @ray.remote
        def uses(by_reference, twice, nested, picklish, *, named):
            return ray.get(nested[0])

        class Holder:
            def __init__(self, ref):
                self.ref = ref

        x, y, z = ray.put(1), ray.put(2), ray.put(3)
        ids = [x.id, y.id, z.id]
        done = uses.remote(x, x, [y, y], Holder(z), named=z)
        self.assertEqual(ray.get(done), 2)
        await_counts(self, ids, [1, 1, 1])
        del x, y, z
        await_counts(self, ids, [-1, -1, -1])

    def test_arguments_of_a_failed_task_are_given_back(self):
        @ray.remote
        def fails(a, b):
            raise ValueError("no")

        x, y = ray.put(1), ray.put(2)
        done = fails.remote(x, [y])
        with self.assertRaises(ray.TaskError):
            ray.get(done)
        ids = [x.id, y.id, done.id]
        await_counts(self, ids, [1, 1, 1])
        del x, y, done
        await_counts(self, ids, [-1, -1, -1])

    def test_handles_fall_one_by_one(self):
        x, y = f.remote(), f.remote()
        z = identity.remote([x, y])
        ray.get(z)
        ids = [x.id, y.id, z.id]
        await_counts(self, ids, [2, 2, 1])
        del x
        await_counts(self, ids, [1, 2, 1])
        del y
        await_counts(self, ids, [1, 1, 1])
        del z
        await_counts(self, ids, [-1, -1, -1])

    def test_a_worker_may_keep_a_handle_beyond_its_task(self):
        @ray.remote
        def keep(refs):
            import builtins

            builtins.kept = refs

        @ray.remote
        def let_go():
            import builtins

            if hasattr(builtins, "kept"):
                del builtins.kept
            return 1

        x = ray.put(1)
        ids = [x.id]
        ray.get(keep.remote([x]))
        await_counts(self, ids, [2])
        eventually(lambda: ray.get([let_go.remote() for _ in range(4)]) and counts(ids) == [1])
        del x
        await_counts(self, ids, [-1])


class Values(ClusterTest):
    def test_a_value_in_shared_memory_keeps_its_object(self):
        """U13: the count stays while the value lives; small values are copies and keep nothing."""
        for make, count in [
            (lambda: np.zeros(100_000), 1),
            (lambda: None, -1),
            (lambda: True, -1),
            (lambda: "x", -1),
        ]:
            ref = ray.put(make())
            ids = [ref.id]
            value = ray.get(ref)
            del ref
            await_counts(self, ids, [count])
            del value
            await_counts(self, ids, [-1])

    def test_a_part_of_a_value_keeps_all_of_it(self):
        ref = ray.put([np.arange(100_000), np.arange(50_000)])
        ids = [ref.id]
        part = ray.get(ref)[1][10:20]
        del ref
        await_counts(self, ids, [1])
        np.testing.assert_array_equal(part, np.arange(10, 20))
        del part
        await_counts(self, ids, [-1])

    @only_fake("looks into the store")
    def test_the_store_is_told_when_memory_is_not_used_any_more(self):
        store = self.fake.stores[0]
        before = store.pinned - store.released
        values = [ray.get(ray.put(np.zeros(100_000))) for _ in range(5)]
        self.assertEqual(store.pinned - store.released, before + 5)
        del values
        self.fake.await_true(lambda: store.pinned == store.released + before, 60)

    @only_fake("looks into the scheduler")
    def test_nothing_is_left_when_all_handles_are_gone(self):
        refs = [identity.remote([ray.put(number)]) for number in range(20)]
        ray.get(refs)
        ids = list(range(len(self.fake.scheduler.objects)))
        del refs
        await_counts(self, ids, [-1] * len(ids))


if __name__ == "__main__":
    unittest.main()

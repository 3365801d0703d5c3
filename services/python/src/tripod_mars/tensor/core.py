"""A tensor: a handle of what makes it. Assignment to a part of it makes something else of the handle, and nothing of what
others made of it before."""

from ..errors import UnsupportedError
from ..tileable import Tileable
from . import elementwise, indexing, interoperation, reduction, shaping


class Tensor(Tileable):
    """As an array of numpy, of which nothing is computed until `execute` is called."""

    # numpy's own arrays leave operators with tensors to those.
    __array_priority__ = 100.0

    @property
    def shape(self):
        """Extents; None where only execution tells."""
        return self.node.content.shape

    @property
    def dtype(self):
        return self.node.content.dtype

    @property
    def ndim(self):
        return len(self.shape)

    @property
    def size(self):
        """How many elements there are, None if only execution tells."""
        return elementwise.count_of(self.shape)

    @property
    def nbytes(self):
        return None if self.size is None else self.size * self.dtype.itemsize

    @property
    def T(self):
        return shaping.transpose(self)

    def fetch(self, session=None):
        """An array of numpy. Of a slice of something that was executed only that part is read, and nothing executed. Raises
        `NotExecutedError`, `ChunkLostError`."""
        return self._session(session).read_tensor(self.node)

    def to_numpy(self, session=None):
        """The same, executed first if it was not."""
        if not self.is_executed:
            self.execute(session)
        return self.fetch(session)

    def item(self):
        """The only element, executed first if it was not."""
        return self.to_numpy().item()

    # ---- numpy ----

    def __array__(self, dtype=None, copy=None):
        if copy is False:
            raise ValueError("an array of a tensor is always a copy")
        array = self.to_numpy()
        return array if dtype is None else array.astype(dtype)

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        return interoperation.ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, function, types, args, kwargs):
        return interoperation.function(function, args, kwargs)

    # ---- Python ----

    def __len__(self):
        if not self.shape:
            raise TypeError("len() of unsized object")
        if self.shape[0] is None:
            raise UnsupportedError("how long it is only execution tells; next: call `execute` first")
        return self.shape[0]

    def __iter__(self):
        return (self[place] for place in range(len(self)))

    def __bool__(self):
        return bool(self._single())

    def __int__(self):
        return int(self._single())

    def __float__(self):
        return float(self._single())

    def __index__(self):
        value = self._single() if self.dtype.kind == "i" and self.ndim == 0 else None
        if value is None:
            raise TypeError("only integer scalar arrays can be converted to a scalar index")
        return int(value)

    def _single(self):
        array = self.to_numpy()
        if array.size != 1:
            raise ValueError(
                "The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()"
                if array.size
                else "the truth value of an empty array is ambiguous"
            )
        return array.reshape(())[()]

    __hash__ = object.__hash__

    def __repr__(self):
        extents = ", ".join("?" if one is None else str(one) for one in self.shape)
        state = "executed" if self.is_executed else self.node.op
        return f"Tensor(shape=({extents}{',' if len(self.shape) == 1 else ''}), dtype={self.dtype}, {state})"

    def __getitem__(self, index):
        return indexing.getitem(self, index)

    def __setitem__(self, index, value):
        self.node = indexing.setitem(self, index, value).node

    # ---- Methods of arrays ----

    def astype(self, dtype):
        return elementwise.astype(self, dtype)

    def reshape(self, *shape):
        return shaping.reshape(self, *shape)

    def ravel(self):
        return shaping.ravel(self)

    flatten = ravel

    def transpose(self, *axes):
        return shaping.transpose(self, axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes or None)

    def swapaxes(self, axis1, axis2):
        return shaping.swapaxes(self, axis1, axis2)

    def squeeze(self, axis=None):
        return shaping.squeeze(self, axis)

    def rechunk(self, chunk_size):
        return shaping.rechunk(self, chunk_size)

    def take(self, indices, axis=None):
        return indexing.take(self, indices, axis)

    def compress(self, condition, axis=None):
        return indexing.compress(condition, self, axis)

    def clip(self, a_min=None, a_max=None):
        return elementwise.clip(self, a_min, a_max)

    def copy(self):
        """Another handle of the same; assignment to one of them changes only that."""
        return Tensor(self.node)

    def dot(self, other):
        return reduction.dot(self, other)

    def sum(self, axis=None, dtype=None, out=None, keepdims=False):
        return reduction.sum(self, axis, dtype, out, keepdims)

    def prod(self, axis=None, dtype=None, out=None, keepdims=False):
        return reduction.prod(self, axis, dtype, out, keepdims)

    def mean(self, axis=None, dtype=None, out=None, keepdims=False):
        return reduction.mean(self, axis, dtype, out, keepdims)

    def var(self, axis=None, dtype=None, out=None, ddof=0, keepdims=False):
        return reduction.var(self, axis, dtype, out, ddof, keepdims)

    def std(self, axis=None, dtype=None, out=None, ddof=0, keepdims=False):
        return reduction.std(self, axis, dtype, out, ddof, keepdims)

    def max(self, axis=None, out=None, keepdims=False):
        return reduction.max(self, axis, out, keepdims)

    def min(self, axis=None, out=None, keepdims=False):
        return reduction.min(self, axis, out, keepdims)

    def any(self, axis=None, out=None, keepdims=False):
        return reduction.any(self, axis, out, keepdims)

    def all(self, axis=None, out=None, keepdims=False):
        return reduction.all(self, axis, out, keepdims)

    def argmax(self, axis=None, out=None, keepdims=False):
        return reduction.argmax(self, axis, out, keepdims)

    def argmin(self, axis=None, out=None, keepdims=False):
        return reduction.argmin(self, axis, out, keepdims)

    # ---- Operators ----

    def __neg__(self):
        return elementwise.negative(self)

    def __pos__(self):
        return self.copy()

    def __abs__(self):
        return elementwise.absolute(self)

    def __invert__(self):
        return elementwise.invert(self)

    def __matmul__(self, other):
        return reduction.matmul(self, other)

    def __rmatmul__(self, other):
        return reduction.matmul(other, self)


def _both(name, call):
    def forward(self, other):
        return call(self, other)

    def backward(self, other):
        return call(other, self)

    setattr(Tensor, f"__{name}__", forward)
    setattr(Tensor, f"__r{name}__", backward)


def _bits(sign):
    return lambda left, right: elementwise.bitwise(sign, left, right)


for _name, _call in {
    "add": elementwise.add,
    "sub": elementwise.subtract,
    "mul": elementwise.multiply,
    "truediv": elementwise.divide,
    "floordiv": elementwise.floor_divide,
    "mod": elementwise.mod,
    "pow": elementwise.power,
    "and": _bits("&"),
    "or": _bits("|"),
    "xor": _bits("^"),
}.items():
    _both(_name, _call)


def _comparison(name, call):
    setattr(Tensor, f"__{name}__", lambda self, other: call(self, other))


for _name, _call in {
    "eq": elementwise.equal,
    "ne": elementwise.not_equal,
    "lt": elementwise.less,
    "le": elementwise.less_equal,
    "gt": elementwise.greater,
    "ge": elementwise.greater_equal,
}.items():
    _comparison(_name, _call)

"""Linear algebra over matrices in blocks, as programs of 2016 did it: U17.

A matrix is a container of handles, one for each block. Functions of matrices submit the tasks of their blocks and answer
with the container, before any block is computed; so a program of a few calls becomes thousands of tasks, that are
submitted by tasks, and of objects whose ids are inside of others.
"""

import numpy as np

import tripod_ray as ray

# Rows and columns of a block; those at the right and at the bottom may have fewer.
BLOCK = 10


class Matrix:
    """A matrix in blocks: `rows[i][j]` is the handle of a block."""

    def __init__(self, shape, rows):
        self.shape = shape
        self.rows = rows

    @property
    def grid(self):
        """How many blocks there are from top to bottom, and from left to right."""
        return len(self.rows), len(self.rows[0])

    def column(self, place):
        return [row[place] for row in self.rows]


def block_shape(shape, i, j):
    return tuple(min(BLOCK, extent - place * BLOCK) for extent, place in zip(shape, (i, j)))


def _made(shape, block):
    """A matrix of the blocks that `block(i, j)` submits."""
    down, across = (-(-extent // BLOCK) for extent in shape)
    return Matrix(shape, [[block(i, j) for j in range(across)] for i in range(down)])


# Functions of blocks.


@ray.remote
def block_filled(value, shape):
    return np.full(shape, value)


@ray.remote
def block_eye(shape):
    return np.eye(*shape)


@ray.remote
def block_triu(block):
    return np.triu(block)


@ray.remote
def block_tril(block):
    return np.tril(block)


@ray.remote
def block_transpose(block):
    return block.T


@ray.remote
def block_add(left, right):
    return left + right


@ray.remote
def block_subtract(left, right):
    return left - right


@ray.remote
def block_dot(left, right):
    return left @ right


@ray.remote
def block_sum_of_products(*blocks):
    """The first half times the second one, block by block."""
    half = len(blocks) // 2
    return sum(left @ right for left, right in zip(blocks[:half], blocks[half:]))


@ray.remote(num_returns=2)
def block_qr(*blocks):
    return np.linalg.qr(np.vstack(blocks))


@ray.remote
def block_rows(block, first, end):
    return block[first:end]


# Functions of matrices.


@ray.remote
def split(whole):
    """The matrix of an array."""

    def block(i, j):
        return ray.put(whole[i * BLOCK : (i + 1) * BLOCK, j * BLOCK : (j + 1) * BLOCK])

    return _made(whole.shape, block)


@ray.remote
def assemble(matrix):
    """The array of a matrix."""
    return np.block([ray.get(row) for row in matrix.rows])


@ray.remote
def zeros(shape):
    return _made(shape, lambda i, j: block_filled.remote(0.0, block_shape(shape, i, j)))


@ray.remote
def ones(shape):
    return _made(shape, lambda i, j: block_filled.remote(1.0, block_shape(shape, i, j)))


@ray.remote
def eye(shape):
    def block(i, j):
        extents = block_shape(shape, i, j)
        return block_eye.remote(extents) if i == j else block_filled.remote(0.0, extents)

    return _made(shape, block)


@ray.remote
def triu(matrix):
    return _triangle(matrix, block_triu, lambda i, j: i > j)


@ray.remote
def tril(matrix):
    return _triangle(matrix, block_tril, lambda i, j: i < j)


def _triangle(matrix, diagonal, is_zero):
    def block(i, j):
        if is_zero(i, j):
            return block_filled.remote(0.0, block_shape(matrix.shape, i, j))
        # Blocks that stay as they are are in both matrices.
        return diagonal.remote(matrix.rows[i][j]) if i == j else matrix.rows[i][j]

    return _made(matrix.shape, block)


@ray.remote
def transpose(matrix):
    return _made(matrix.shape[::-1], lambda i, j: block_transpose.remote(matrix.rows[j][i]))


@ray.remote
def add(left, right):
    return _made(left.shape, lambda i, j: block_add.remote(left.rows[i][j], right.rows[i][j]))


@ray.remote
def subtract(left, right):
    return _made(left.shape, lambda i, j: block_subtract.remote(left.rows[i][j], right.rows[i][j]))


@ray.remote
def dot(left, right):
    def block(i, j):
        return block_sum_of_products.remote(*left.rows[i], *right.column(j))

    return _made((left.shape[0], right.shape[1]), block)


@ray.remote
def gram(matrix):
    """The matrix times itself: a result that is the result of another task."""
    return dot.remote(transpose.remote(matrix), matrix)


# Orthogonal factors.


@ray.remote(num_returns=2)
def tsqr(matrix):
    """Orthonormal columns and the upper triangle of a matrix of one column of blocks. Two triangles at a time are
    put below each other and factored again, until one is left; the orthonormal factors come down the same tree."""
    columns = matrix.shape[1]
    levels = [[block_qr.remote(block) for block in matrix.column(0)]]
    while len(levels[-1]) > 1:
        below = levels[-1]
        pairs = [below[place : place + 2] for place in range(0, len(below), 2)]
        levels.append([block_qr.remote(*(triangle for _, triangle in pair)) for pair in pairs])
    (top,) = levels.pop()
    parts, triangle = [top[0]], top[1]
    heights = [min(block_shape(matrix.shape, i, 0)) for i in range(matrix.grid[0])]
    # How many rows each triangle has, level by level.
    rows = [heights]
    while len(rows) < len(levels):
        below = rows[-1]
        rows.append([min(columns, sum(below[place : place + 2])) for place in range(0, len(below), 2)])
    for level, extents in zip(reversed(levels), reversed(rows)):
        lower = []
        for place, (factor, _) in enumerate(level):
            first = extents[place - 1] if place % 2 else 0
            part = block_rows.remote(parts[place // 2], first, first + extents[place])
            lower.append(block_dot.remote(factor, part))
        parts = lower
    return Matrix((matrix.shape[0], min(matrix.shape)), [[part] for part in parts]), triangle


@ray.remote(num_returns=3)
def modified_lu(matrix):
    """L, U and S of a matrix Q of orthonormal columns, so that Q = L U + S: S is diagonal, of ones with the signs
    that make every pivot at least 1, so none is searched for."""
    lower = ray.get(assemble.remote(matrix)).copy()
    count = lower.shape[1]
    signs, upper = np.zeros(count), np.zeros((count, count))
    for place in range(count):
        signs[place] = -1.0 if lower[place, place] >= 0 else 1.0
        lower[place, place] -= signs[place]
        upper[place, place:] = lower[place, place:]
        lower[place, place + 1 :] = 0.0
        lower[place + 1 :, place] /= upper[place, place]
        lower[place, place] = 1.0
        lower[place + 1 :, place + 1 :] -= np.outer(lower[place + 1 :, place], upper[place, place + 1 :])
    return split.remote(lower), upper, signs


@ray.remote
def reflector_of(upper, signs, top):
    """T, of which I - Y T Y' is the reflection whose first columns are L U + S."""
    count = len(signs)
    return -(upper * signs) @ np.linalg.inv(top[:count]).T


@ray.remote
def block_scaled_rows(signs, block):
    return signs[:, np.newaxis] * block


@ray.remote(num_returns=3)
def reflection(matrix):
    """Y, T and R of a matrix of one column of blocks: the matrix is (I - Y T Y') times R."""
    orthonormal, triangle = tsqr.remote(matrix)
    lower, upper, signs = modified_lu.remote(orthonormal)
    # The container is known when the factors are; its blocks may still be on their way.
    top = ray.get(lower).rows[0][0]
    return lower, reflector_of.remote(upper, signs, top), block_scaled_rows.remote(signs, triangle)


@ray.remote
def block_products_below(*blocks):
    """Y' A, of the blocks of Y and those of A."""
    half = len(blocks) // 2
    return sum(left.T @ right for left, right in zip(blocks[:half], blocks[half:]))


@ray.remote
def block_reflected(block, left, middle, projected):
    return block - left @ (middle @ projected)


def _reflect(rows, first, column, reflector, middle):
    """Applies I - Y M Y' to one column of blocks, from row `first` on."""
    left = reflector.column(0)
    below = [row[column] for row in rows[first:]]
    projected = block_products_below.remote(*left, *below)
    for row, part in zip(rows[first:], left):
        row[column] = block_reflected.remote(row[column], part, middle, projected)


@ray.remote(num_returns=2)
def qr(matrix):
    """Q and R of a matrix of any shape, by one reflection for each column of blocks. Q has as many columns, and R as many
    rows, as the matrix has of which it has fewer."""
    down, across = matrix.grid
    extent = min(matrix.shape)
    rows = [list(row) for row in matrix.rows]
    steps = []
    for place in range(-(-extent // BLOCK)):
        height, width = (extent - place * BLOCK for extent in matrix.shape)
        column = Matrix((height, min(BLOCK, width)), [[row[place]] for row in rows[place:]])
        lower, middle, triangle = reflection.remote(column)
        reflector = ray.get(lower)
        turned = block_transpose.remote(middle)
        for right in range(place + 1, across):
            _reflect(rows, place, right, reflector, turned)
        rows[place][place] = triangle
        steps.append((reflector, middle))

    def block(i, j):
        return rows[i][j] if i <= j else block_filled.remote(0.0, block_shape((extent, extent), i, j))

    return _orthogonal((matrix.shape[0], extent), steps), _made((extent, matrix.shape[1]), block)


def _orthogonal(shape, steps):
    """The first columns of the product of reflections."""
    rows = [list(row) for row in ray.get(eye.remote(shape)).rows]
    for place, (reflector, middle) in reversed(list(enumerate(steps))):
        # What is left of it is still that of the identity, and has nothing in these rows.
        for column in range(place, len(rows[0])):
            _reflect(rows, place, column, reflector, middle)
    return Matrix(shape, rows)

"""Chunks: what they are in memory, how they lie in an object store, and what computes them.

    dtypes, text, frame             values of chunks: numpy arrays, frames of columns
    partial, several                partial results, and several of them as one
    layout, crc32c                  chunks as objects of a store
    node                            what is to be computed, from its bytes
    operators                       all operators by name; the modules it imports have them
"""

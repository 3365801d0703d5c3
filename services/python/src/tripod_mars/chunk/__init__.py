"""Chunks: what they are in memory, how they lie in an object store, and what computes them.

    dtypes, text, frame, partial    values of chunks: numpy arrays, frames of columns, partial results
    layout, crc32c                  chunks as objects of a store
    node                            what is to be computed, from its bytes
    operators                       all operators by name; the modules it imports have them
"""

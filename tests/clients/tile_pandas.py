"""Random frames, computed by pandas as wholes, and chunk by chunk as Tripod cuts them and its workers compute them
(`chunk_graph`).

    cargo build -p tripod-tile --example chunks
    python tests/clients/tile_pandas.py target/debug/examples/chunks [--frames 300] [--seed 1]

pandas decides which rows are in which group, what is missing, and what is made of it; types are those of Tripod, which
knows whole numbers that are missing. Fractions are halves, so that their sums are exact in any order.
"""

import argparse
import random
import sys

import chunk_graph
import numpy as np
import pandas as pd

from tripod_mars.chunk.shuffle import reducers_of

TYPES = ["bool", "i32", "i64", "f32", "f64", "text"]
# As pandas has values that may be missing.
PANDAS = {"bool": "boolean", "i32": "Int32", "i64": "Int64", "f32": "float32", "f64": "float64", "text": object}
TEXTS = ["", "a", "b", "ab", "ä", "日本", 'quo"te', "com,ma", "two\nlines", "a\0", "A", "zzz"]
AGGREGATES = ["sum", "count", "min", "max", "mean"]


def value(chance, dtype, missing):
    if chance.random() < missing:
        return None
    if dtype == "bool":
        return chance.random() < 0.5
    if dtype == "text":
        # What is empty in a file is missing.
        return chance.choice(TEXTS[1:])
    # Few keys, so that groups have several rows.
    number = chance.randint(-(2**31), 2**31 - 1) if chance.random() < 0.1 else chance.randint(-2, 2)
    if dtype == "i64" and chance.random() < 0.1:
        number <<= 20
    return number if dtype in ("i32", "i64") else chance.randint(-3, 3) / 2


def whole(columns, rows):
    """The frame as pandas has it."""
    series = {}
    for place, (name, dtype) in enumerate(columns):
        values = [row[place] for row in rows]
        if dtype in ("f32", "f64"):
            values = [np.nan if one is None else one for one in values]
        series[name] = pd.Series(values, dtype=PANDAS[dtype])
    return pd.DataFrame(series)


def csv(columns, rows):
    text = ",".join(name for name, _ in columns) + "\n"
    for row in rows:
        fields = []
        for one in row:
            field = "" if one is None else str(one)
            quoted = any(mark in field for mark in ',"\n') or (not field and len(row) == 1)
            fields.append('"' + field.replace('"', '""') + '"' if quoted else field)
        text += ",".join(fields) + "\n"
    return text.encode()


def listed(column):
    """Values of a column of ours; None is missing."""
    if column.is_text:
        values = [one.decode() for one in column.values.values()]
    else:
        values = column.values.tolist()
    missing = column.missing()
    return values if missing is None else [None if gone else one for one, gone in zip(values, missing.tolist())]


def rows_of(frame):
    return list(zip(*(listed(column) for column in frame.columns)))


def rows_in(frame):
    """The same of a frame of pandas."""
    columns = [[None if pd.isna(one) else one for one in frame[name].tolist()] for name in frame.columns]
    return list(zip(*columns))


def close(one, other):
    if one is None or other is None or isinstance(one, str):
        return one is other if one is None or other is None else one == other
    return bool(np.isclose(float(one), float(other), rtol=1e-6, atol=1e-9)) if isinstance(one, float) else one == other


def same(frame, wanted, what):
    is_, rows = rows_of(frame), rows_in(wanted)
    fine = len(is_) == len(rows) and all(all(map(close, one, other)) for one, other in zip(is_, rows))
    assert fine, f"{what}\n{is_}\nand not\n{rows}"


def grouped(frame, types, by, aggregates):
    """What pandas makes of the groups."""
    groups = frame.groupby(by, sort=True, dropna=True)
    parts = {}
    for aggregate in aggregates:
        column, function = aggregate["column"], aggregate["function"]
        values = groups[column]
        if types[column] == "bool" and function in ("sum", "mean"):
            values = frame.assign(**{"of this": frame[column].astype("Int64")}).groupby(by)["of this"]
        elif types[column] in ("f32", "f64"):
            values = frame.assign(**{"of this": frame[column].astype("float64")}).groupby(by)["of this"]
        parts[aggregate["name"]] = getattr(values, function)()
    keys = groups.size().index.to_frame(index=False)
    table = {name: keys[name].tolist() for name in by}
    table.update({name: part.tolist() for name, part in parts.items()})
    return pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in table.items()})


def compare(chance, tile, used):
    columns = [(f"c{at}", chance.choice(TYPES)) for at in range(chance.choice([1, 3, 4, 6, 8]))]
    types, names = dict(columns), [name for name, _ in columns]
    missing = chance.choice([0, 0.1, 0.4, 0.8, 0.1, 1])
    parts = [chance.choice([0, 1, 2, 5, 20]) for _ in range(chance.randint(1, 6))]
    files = [[[value(chance, dtype, missing) for _, dtype in columns] for _ in range(rows)] for rows in parts]
    contents = [csv(columns, rows) for rows in files]
    frame = whole(columns, [row for rows in files for row in rows])

    described = [{"name": name, "dtype": dtype} for name, dtype in columns]
    sizes = [len(content) for content in contents]
    read = {"op": "read_frame", "format": "csv", "files": sizes, "columns": described}
    graph = [{"key": "f", "operator": read, "data": list(b"".join(contents))}]

    def add(key, operator, *inputs):
        graph.append({"key": key, "operator": operator, "inputs": list(inputs)})

    projected = chance.sample(names, chance.randint(1, len(names)))
    add("p", {"op": "project", "columns": projected}, "f")
    rows = chance.choice([0, 1, 3, 7, 100])
    add("h", {"op": "head", "rows": rows}, "f")
    complete = [name for name in names if types[name] != "text" and not frame[name].isna().any()]
    mask = None
    if complete:
        of = chance.choice(complete)
        add("v", {"op": "column", "name": of}, "f")
        add("m", {"op": "binary", "function": "gt", "left": "input", "right": {"scalar": 0}}, "v")
        add("k", {"op": "filter_rows"}, "f", "m")
        mask = (frame[of].astype(float) > 0).to_numpy()
    by = chance.sample(names, min(chance.choice([1, 1, 2, 3]), len(names)))
    aggregates = []
    for at in range(chance.randint(0, 6)):
        column, function = chance.choice(names), chance.choice(AGGREGATES)
        if types[column] != "text" or function not in ("sum", "mean"):
            aggregates.append({"column": column, "function": function, "name": f"a{at}"})
    reducers = chance.randint(2, 5)
    for key, count in (("g", 1), ("s", reducers)):
        add(key, {"op": "group_by", "by": by, "aggregates": aggregates, "reducers": count}, "f")
    add("x", {"op": "shuffle", "by": by, "reducers": reducers}, "f")

    results = dict(zip((tileable["key"] for tileable in graph), chunk_graph.computed(tile(graph))))
    same(results["f"], frame, "read")
    same(results["p"], frame[projected], "projected")
    same(results["h"], frame.head(rows), "head")
    if mask is not None:
        same(results["k"], frame[mask], "filtered")
    wanted = grouped(frame, types, by, aggregates)
    same(results["g"], wanted, f"groups by {by} of {aggregates}")
    # Reducers have the same groups, each in order.
    to = reducers_of([results["g"].column(name) for name in by], reducers)
    same(results["s"], wanted.iloc[np.argsort(to, kind="stable")], f"groups by {by}, shuffled")
    to = reducers_of([results["f"].column(name) for name in by], reducers)
    same(results["x"], frame.iloc[np.argsort(to, kind="stable")], f"shuffled by {by}")
    for key in results:
        used[key] = used.get(key, 0) + 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--frames", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    used = {}
    with chunk_graph.tiling(arguments.program) as tile:
        for at in range(arguments.frames):
            try:
                compare(random.Random(f"{arguments.seed}/{at}"), tile, used)
            except Exception:
                print(f"frame {at} of seed {arguments.seed}:", file=sys.stderr)
                raise
    print(f"{arguments.frames} frames are what pandas makes of them: {used}")


if __name__ == "__main__":
    sys.exit(main())

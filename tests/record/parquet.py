"""Writes tests/data/parquet: Parquet files, and the CSV of the same table. Needs pyarrow and pandas (recorded with 26.0 and 3.1).

types.parquet has a column of each type that kiln reads, missing values, and row groups of 16 rows, compressed by snappy; zstd.parquet
is the same table by zstd in one. What CSV can't have is in nested.parquet and bytes.parquet."""
import datetime
import decimal
import pathlib
import random

import pyarrow as pa
import pyarrow.parquet as pq

OUT = pathlib.Path(__file__).resolve().parents[1] / "data/parquet"
ROWS = 60
draw = random.Random(1)


def some(make):
    return [make() if draw.random() > 0.1 else None for _ in range(ROWS)]


def seconds(most):
    return datetime.timedelta(seconds=draw.randint(0, most))


EPOCH = datetime.datetime(1960, 1, 1)
TYPES = {
    "i8": pa.array(some(lambda: draw.randint(-128, 127)), pa.int8()),
    "u32": pa.array(some(lambda: draw.randint(0, 2**32 - 1)), pa.uint32()),
    "i64": pa.array(some(lambda: draw.randint(-(2**53), 2**53)), pa.int64()),
    "f32": pa.array(some(lambda: draw.gauss(0, 1)), pa.float32()),
    "f64": pa.array(some(lambda: draw.gauss(0, 1)), pa.float64()),
    "decimal": pa.array(some(lambda: decimal.Decimal(draw.randint(-(10**9), 10**9)) / 1000), pa.decimal128(20, 3)),
    "text": pa.array(some(lambda: draw.choice(["Bonn", "Kiel, the city", 'Ulm "an der Donau"', "Köln"])), pa.string()),
    "large": pa.array(some(lambda: draw.choice(["left", "right"])), pa.large_string()),
    "dictionary": pa.array(some(lambda: draw.choice(["red", "green", "blue"]))).dictionary_encode(),
    "flag": pa.array(some(lambda: draw.random() > 0.5), pa.bool_()),
    "day": pa.array(some(lambda: (EPOCH + seconds(3 * 10**9)).date()), pa.date32()),
    "micros": pa.array(some(lambda: EPOCH + seconds(3 * 10**9) + datetime.timedelta(microseconds=draw.randint(0, 999999))),
                       pa.timestamp("us")),
    "midnight": pa.array(some(lambda: EPOCH + datetime.timedelta(days=draw.randint(0, 30000))), pa.timestamp("ms")),
    "zone": pa.array(some(lambda: (EPOCH + seconds(3 * 10**9)).replace(tzinfo=datetime.timezone.utc)),
                     pa.timestamp("ns", tz="Europe/Berlin")),
    "clock": pa.array(some(lambda: datetime.time(draw.randint(0, 23), 30)), pa.time64("us")),
    "nothing": pa.nulls(ROWS),
    "y": pa.array([draw.choice(["yes", "no"]) for _ in range(ROWS)]),
}

OUT.mkdir(exist_ok=True)
table = pa.table(TYPES)
pq.write_table(table, OUT / "types.parquet", row_group_size=16, compression="snappy")
pq.write_table(table, OUT / "zstd.parquet", compression="zstd")
frame = table.to_pandas()
for name in "i8", "u32", "i64":
    frame[name] = [None if v is None else str(v) for v in table[name].to_pylist()]
frame["flag"] = [None if v is None else str(v).lower() for v in table["flag"].to_pylist()]
frame.to_csv(OUT / "types.csv", index=False)
pq.write_table(pa.table({"x": [1.5, 2.5], "list": [[1, 2], [3]], "y": ["yes", "no"]}), OUT / "nested.parquet")
pq.write_table(pa.table({"x": [1.5, 2.5], "key": [b"1", b"2"], "y": ["yes", "no"]}), OUT / "bytes.parquet")

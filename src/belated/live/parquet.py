"""The Parquet form of an export: the header is in the metadata of the schema, a chunk is a row group."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO

from belated.inputs import InvalidInput
from belated.live.formats import Format, Source, Write, compact
from belated.live.rows import COLUMNS, Row
from belated.live.values import shown

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError:
    raise InvalidInput("format", "parquet needs pyarrow: pip install 'belated[parquet]'") from None

_TIME = pa.timestamp("ms", tz="UTC")
_TYPES = {
    "decision": pa.string(),
    "arm": pa.dictionary(pa.int32(), pa.string()),
    "propensity": pa.float64(),
    "unit": pa.string(),
    "asked_at": _TIME,
    "reward": pa.float64(),
    "occurred_at": _TIME,
    "received_at": _TIME,
    "heard_at": _TIME,
    "revision": pa.int64(),
    "earlier": pa.string(),
}


@contextmanager
def _writing(file: BinaryIO, header: dict[str, Any]) -> Iterator[Write]:
    schema = pa.schema(list(_TYPES.items()), metadata={"belated": compact(header)})

    def write(rows: Sequence[Row]) -> None:
        texts = [row._replace(earlier=compact(row.earlier) if row.earlier else None) for row in rows]  # type: ignore[arg-type]
        columns = zip(*texts, strict=True)
        arrays = [pa.array(column, type=kind) for column, kind in zip(columns, _TYPES.values(), strict=True)]
        out.write_table(pa.Table.from_arrays(arrays, schema=schema))

    with pq.ParquetWriter(file, schema) as out:
        yield write


def _read(file: BinaryIO) -> Source:
    try:
        whole = pq.ParquetFile(file)
        schema = whole.schema_arrow
        text = (schema.metadata or {}).get(b"belated")
        header = None if text is None else json.loads(text)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InvalidInput("parquet", f"cannot be read: {str(error).splitlines()[0]}") from None
    if header is None or sorted(schema.names) != sorted(COLUMNS):
        raise InvalidInput("parquet", f"this is not an export: its columns are {shown(schema.names)}")
    return Source(header, "row", _rows(whole))


def _rows(whole: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    place = 0
    try:
        for batch in whole.iter_batches(batch_size=5000):
            for row in batch.to_pylist():
                place += 1
                yield place, row
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InvalidInput(f"row {place + 1}", f"cannot be read: {str(error).splitlines()[0]}") from None


PARQUET = Format(_writing, _read, 20_000)

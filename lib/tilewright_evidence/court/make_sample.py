"""Write the samples of the package from the full sets: `python -m tilewright_evidence.court.make_sample FOLDER`.

A sample has all rows to which constants are fitted. From each part of the set, it also has a fixed number of other
rows: those with the smallest hashes.
"""

import json
import sys
from collections import defaultdict
from hashlib import sha256
from pathlib import Path
from typing import Any

from tilewright.base.artifacts.files import make_folder, write_atomically
from tilewright.base.json_values import JsonObject

from tilewright_evidence.court import eyeriss, gemmini, gpu, tenstorrent, timeloop, tpu, xdna
from tilewright_evidence.court import language_attention as attention
from tilewright_evidence.court import language_products as products
from tilewright_evidence.court.case import DATA, set_files
from tilewright_evidence.court.rows import read_rows

OF_EACH_PART = 4


def write_samples(folder: Path) -> None:
    """Write the samples that the package contains. Their rows are chosen from the full sets in `folder`."""
    rows = _rows(folder, gemmini.NAME, gemmini.GEMMINI.patterns, gemmini.COLUMNS)
    chosen = _chosen(rows, gemmini.is_fitted, lambda row: (row["source"], row["kind"], row["array"]))
    _write_lines(gemmini.NAME, chosen)
    rows = _rows(folder, timeloop.NAME, timeloop.TIMELOOP.patterns, timeloop.COLUMNS)
    chosen = _chosen(rows, lambda row: False, lambda row: row["mapping_text"].split("[WI]")[1].count("X"), each=12)
    _write_lines(timeloop.NAME, chosen)
    _write_architectures(folder, {row["arch"] for row in chosen})
    rows = _rows(folder, gpu.NAME, gpu.GPU.patterns, gpu.COLUMNS)
    _write_csv(gpu.NAME, "sample.csv", _chosen(rows, gpu.is_fitted, lambda row: (row["device"], row["dtype"]), each=8))

    rows = _rows(folder, eyeriss.NAME, eyeriss.EYERISS.patterns, eyeriss.COLUMNS)
    _write_csv(eyeriss.NAME, "sample.csv", [row for row in rows if row["layer"] in eyeriss.SAMPLE])
    rows = _rows(folder, tenstorrent.NAME, tenstorrent.TENSTORRENT.patterns, tenstorrent.COLUMNS)
    rows = [row for row in rows if not row["flags"]]
    chosen = _chosen(rows, tenstorrent.is_fitted, lambda row: (row["device"], row["config"], row["trace"]), each=8)
    _write_csv(tenstorrent.NAME, "sample.csv", chosen)
    rows = _rows(folder, xdna.NAME, xdna.XDNA.patterns, xdna.COLUMNS)
    chosen = [_numbers_of(row) for row in rows if row["scope"] == xdna.WHOLE_ARRAY and row["m"]]
    _write_csv(xdna.NAME, "sample.csv", chosen)
    _write_language_samples(folder)
    place = folder / tpu.NAME
    rows = read_rows(set_files(place, ("matmul_*",)), tpu.MATMUL_COLUMNS)
    _write_csv(tpu.NAME, "matmul_sample.csv", _chosen(rows, tpu.is_fitted, lambda row: row["contents"], each=8))
    rows = read_rows(set_files(place, ("attention_*",)), tpu.ATTENTION_COLUMNS)
    _write_csv(tpu.NAME, "attention_sample.csv", _chosen(rows, lambda row: False, lambda row: row["phase"], each=8))


def _write_language_samples(folder: Path) -> None:
    """Write the samples of operators of language models. A sample has only the columns that the comparison reads."""
    for court_set, columns, part in (
        (products.VIDUR, products.VIDUR_COLUMNS, "device"),
        (products.SERVING, products.SERVING_COLUMNS, "device"),
        (products.COMPASS, products.COMPASS_COLUMNS, "device"),
        (attention.SERVING, attention.SERVING_COLUMNS, "device"),
        (attention.CONFIGURATOR, attention.CONFIGURATOR_COLUMNS, "op"),
    ):
        prepared = court_set.prepare(set_files(folder / court_set.name, court_set.patterns))
        cases = [row.case(court_set.values()) for row in prepared]
        fitted = {case.identity: case.fitted for case in cases}
        rows = [row for row in _rows(folder, court_set.name, court_set.patterns, columns) if row["row_id"] in fitted]
        kept = [{name: row[name] for name in columns} for row in rows]
        chosen = _chosen(
            kept, lambda row, fitted=fitted: fitted[row["row_id"]], lambda row, part=part: row[part], each=8
        )
        _write_csv(court_set.name, "sample.csv", chosen)


def _numbers_of(row: JsonObject) -> JsonObject:
    """Columns of a row of XDNA that the comparison reads. Whole numbers in these columns have no decimal point."""
    values = {name: row[name] for name in xdna.COLUMNS}
    return {name: int(one) if isinstance(one, float) and one.is_integer() else one for name, one in values.items()}


def _rows(folder: Path, name: str, patterns: Any, columns: Any) -> list[JsonObject]:
    return read_rows(set_files(folder / name, patterns), columns)


def _chosen(rows: list[dict[str, Any]], is_fitted: Any, part_of: Any, each: int = OF_EACH_PART) -> list[dict[str, Any]]:
    """Rows of a sample, in the order of `rows`. The sample has all rows to which constants are fitted. From each part
    of the set, it also has up to `each` other rows: those with the smallest hashes. `is_fitted` and `part_of` are
    functions of a row; `part_of` returns the part that contains the row.
    """
    others = defaultdict(list)
    for place, row in enumerate(rows):
        if not is_fitted(row):
            digest = sha256(json.dumps(row, sort_keys=True).encode()).hexdigest()
            others[part_of(row)].append((digest, place))
    kept = {place for found in others.values() for _, place in sorted(found)[:each]}
    return [row for place, row in enumerate(rows) if place in kept or is_fitted(row)]


def _write_architectures(folder: Path, names: set[str]) -> None:
    head, *lines = (folder / timeloop.NAME / timeloop.ARCHITECTURES).read_text().splitlines()
    kept = [head, *(line for line in lines if line.partition(",")[0] in names)]
    write_atomically(DATA / timeloop.NAME / timeloop.ARCHITECTURES, "\n".join(kept) + "\n")


def _write_csv(name: str, file: str, rows: list[dict[str, Any]]) -> None:
    make_folder(DATA / name)
    lines = [",".join(rows[0]), *(",".join("" if one is None else str(one) for one in row.values()) for row in rows)]
    write_atomically(DATA / name / file, "\n".join(lines) + "\n")


def _write_lines(name: str, rows: list[JsonObject]) -> None:
    text = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
    write_atomically(DATA / name / "sample.jsonl", text)


if __name__ == "__main__":
    write_samples(Path(sys.argv[1]))

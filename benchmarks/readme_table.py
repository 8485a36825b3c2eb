"""Writes the table of README.md anew from results/cpu.jsonl: python benchmarks/readme_table.py"""

from pathlib import Path

from zoo.benchmark import rows

ROOT = Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- made by benchmarks/readme_table.py -->\n", "<!-- end -->\n"
COLUMNS = {
    "network": "{model}",
    "example": "{size}",
    "batch": "{global_batch_size}",
    "parameters": "{millions:.1f} M",
    "device alone": "{device}",
    "input alone": "{input}",
    "both": "{both}",
    "of a matrix product's rate": "{utilisation_of_matrix_product:.0%}",
    "compilation": "{compile_seconds:.0f} s",
}


def table() -> str:
    """Examples per second of training, a line for each network."""
    found = {}
    for row in rows.read(str(ROOT / "results" / "cpu.jsonl")):
        if row["status"] == "ok" and row["mode"] == "train":
            found.setdefault(row["model"], {})[row["feed"]] = row
    lines = []
    for feeds in found.values():
        row = feeds["device"]
        size = f"{row['input_size']} px" if row.get("input_size") else f"{row['sequence_length']} tokens"
        rates = {name: f"{r['examples_per_second']:,.1f} ± {r['standard_error']:.1f}" for name, r in feeds.items()}
        lines.append(row | rates | {"size": size, "millions": row["parameters"] / 1e6})
    machine = f"{row['cores']} cores of an {row['cpu']}, {row['memory_bytes'] / 2**30:.0f} GiB"
    versions = f"TensorFlow {row['versions']['tensorflow']}, float32, {row['time'][:10]}"
    return f"{rows.table(lines, COLUMNS)}\n\nExamples per second in training on {machine}; {versions}.\n"


def main() -> None:
    path = ROOT / "README.md"
    text = path.read_text()
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    path.write_text(before + BEGIN + table() + END + after)


if __name__ == "__main__":
    main()

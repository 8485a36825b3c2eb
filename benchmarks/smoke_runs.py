"""Runs every shipped experiment as a whole rehearsal and shows what it came to.

    python benchmarks/smoke_runs.py --data_dir=data

A rehearsal must reach a top-1 of 0.9 on held-out fake images; the command fails where one does not.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

from zoo.gin_config import shipped_files


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data_dir", default="data")
    data_dir = parser.parse_args().data_dir
    too_low = []
    for name in shipped_files():
        if name == "gin/smoke.gin":
            continue
        with tempfile.TemporaryDirectory() as workdir:
            flags = [f"--gin_file={name}", "--gin_file=gin/smoke.gin", f"--workdir={workdir}", f"--data_dir={data_dir}"]
            started = time.perf_counter()
            subprocess.run([sys.executable, "-m", "zoo.train", *flags], check=True, capture_output=True)
            seconds = time.perf_counter() - started
            with open(os.path.join(workdir, "metrics.jsonl")) as file:
                row = [row for row in map(json.loads, file) if row["split"] == "validation"][-1]
        print(f"{name}: top-1 {row['top1']:.3f} after {row['step']} steps, {seconds:.0f} s in all", flush=True)
        too_low += [name] if row["top1"] < 0.9 else []
    sys.exit(f"below 0.9: {', '.join(too_low)}" if too_low else 0)


if __name__ == "__main__":
    main()

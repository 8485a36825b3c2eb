"""What a run leaves to read and what it shows while it lasts."""

import contextlib
import itertools
import json
import os
import sys
import threading
import time

import tensorflow as tf
import tqdm


class Metrics:
    """The records of a run, a row per device loop and per evaluation.

    `metrics.jsonl` holds what training computed and nothing of the clock: a run that was killed and continued leaves the
    very same file as one that was not. `timing.jsonl` holds what the clock said. TensorBoard's event files
    under `tensorboard/` hold both, and are written anew from them when a run is continued.

    Args:
      workdir: of the run.
      step: that the run goes on from; rows beyond it are cut off, since they will be written again.

    Attributes:
      rows: of metrics.jsonl.
      timing: rows of timing.jsonl.
      seconds_before: what the clock said when the run ended that is gone on with, rows that are cut off included.
    """

    def __init__(self, workdir: str, step: int):
        self._workdir = workdir
        self._path = os.path.join(workdir, "metrics.jsonl")
        self.rows = _cut(self._path, step)
        timing_path = os.path.join(workdir, "timing.jsonl")
        last = _whole_lines(timing_path)[-1:]
        self.seconds_before = json.loads(last[0]).get("clock", 0.0) if last else 0.0
        self.timing = _cut(timing_path, step)
        self._files = {path: tf.io.gfile.GFile(path, "a") for path in (self._path, timing_path)}
        self._timing_path = timing_path
        board = os.path.join(workdir, "tensorboard")
        if tf.io.gfile.exists(board):
            tf.io.gfile.rmtree(board)
        self._writers = {
            split: tf.summary.create_file_writer(os.path.join(board, split)) for split in ("train", "validation")
        }
        for row in self.rows + self.timing:
            self._show(row)

    def write(self, step: int, split: str, values: dict[str, float]) -> None:
        """Adds a row to metrics.jsonl; `split` is 'train' or 'validation'."""
        row = {"step": step, "split": split} | values
        self.rows.append(row)
        self._append(self._path, row)

    def write_timing(self, step: int, split: str, values: dict[str, float]) -> None:
        """Adds a row to timing.jsonl."""
        row = {"step": step, "split": split} | values
        self.timing.append(row)
        self._append(self._timing_path, row)

    def show_configuration(self) -> None:
        """Puts the configuration that is in the workdir into TensorBoard, as text."""
        with self._writers["train"].as_default():
            for name in ("config.gin", "operative_config.gin"):
                with tf.io.gfile.GFile(os.path.join(self._workdir, name)) as file:
                    text = "".join(f"    {line}\n" for line in file.read().splitlines())  # Markdown for code
                tf.summary.text(name, text, step=0)

    def show_images(self, images: tf.Tensor) -> None:
        """Puts a few images, uint8 `[count, height, width, 3]`, into TensorBoard, as the network sees them."""
        with self._writers["train"].as_default():
            tf.summary.image("augmented inputs", images, step=0, max_outputs=len(images))

    def last(self, split: str) -> dict[str, float]:
        """The newest row of a split; empty if there is none."""
        return next((row for row in reversed(self.rows) if row["split"] == split), {})

    def close(self) -> None:
        for file in (*self._files.values(), *self._writers.values()):
            file.close()

    def _append(self, path: str, row: dict) -> None:
        self._files[path].write(json.dumps(row) + "\n")
        self._files[path].flush()
        self._show(row)

    def _show(self, row: dict) -> None:
        with self._writers[row["split"]].as_default():
            for name, value in row.items():
                if name not in ("step", "split", "compiles"):
                    tf.summary.scalar(name, value, step=row["step"])


def _whole_lines(path: str) -> list[str]:
    """Lines of a file but for a last one that was not written whole."""
    if not tf.io.gfile.exists(path):
        return []
    with tf.io.gfile.GFile(path) as file:
        return [line for line in file.read().splitlines(keepends=True) if line.endswith("\n")]


def _cut(path: str, step: int) -> list[dict]:
    """Rows of a JSONL file up to `step`; the file is cut there. A last line that was not written whole is cut too."""
    if not tf.io.gfile.exists(path):
        return []
    rows = [json.loads(line) for line in _whole_lines(path)]
    kept = list(itertools.takewhile(lambda row: row["step"] <= step, rows))
    with tf.io.gfile.GFile(path + ".new", "w") as file:
        file.write("".join(json.dumps(row) + "\n" for row in kept))
    tf.io.gfile.rename(path + ".new", path, overwrite=True)
    return kept


class Bar:
    """A progress bar in a terminal, a plain line now and then elsewhere; both on stderr.

    Examples per second count device loops alone, and never the first one, which compiles.
    """

    def __init__(self, total_steps: int, start_step: int, examples_per_step: int, plain_seconds: float = 10.0):
        self._total, self._examples = total_steps, examples_per_step
        self._seconds, self._steps = 0.0, 0
        self._plain_seconds, self._last_line = plain_seconds, 0.0
        self._bar = None
        if sys.stderr.isatty():
            layout = "{desc}: {percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} [{elapsed}<{remaining}{postfix}]"
            self._bar = tqdm.tqdm(
                total=total_steps, initial=start_step, desc="training", bar_format=layout, dynamic_ncols=True
            )

    def advance(self, step: int, steps: int, seconds: float | None, values: dict[str, float]) -> None:
        """Shows that `steps` steps up to `step` took `seconds` (None: it compiled, and is not timed)."""
        if seconds is not None:
            self._seconds, self._steps = self._seconds + seconds, self._steps + steps
        rate = self._steps * self._examples / self._seconds if self._seconds else None
        words = [f"{name} {value:.4g}" for name, value in values.items()]
        words += [f"{rate:.4g} examples/s"] if rate else []
        if self._bar is not None:
            self._bar.update(steps)
            self._bar.set_postfix_str(", ".join(words))
        elif time.monotonic() - self._last_line >= self._plain_seconds or step == self._total:
            self._last_line = time.monotonic()
            left = f", {(self._total - step) * self._examples / rate:.0f} s left" if rate else ""
            print(f"step {step}/{self._total}: {', '.join(words)}{left}", file=sys.stderr, flush=True)

    @contextlib.contextmanager
    def waiting(self, what: str, every_seconds: float = 30.0):
        """Says what is being waited for, and for how long already, until the block ends."""
        ended, started = threading.Event(), time.monotonic()

        def say():
            self.note(f"{what} ...")
            while not ended.wait(every_seconds):
                self.note(f"{what} ... {time.monotonic() - started:.0f} s so far")

        thread = threading.Thread(target=say, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def note(self, text: str) -> None:
        """Prints a line that stays, above the bar."""
        if self._bar is not None:
            self._bar.write(text, file=sys.stderr)
        else:
            print(text, file=sys.stderr, flush=True)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()

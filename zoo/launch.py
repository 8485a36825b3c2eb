"""From a person's words to a run: the checks that need no TensorFlow, then the configuration, then training."""

import typing
from collections.abc import Sequence

from zoo import devices, gin_config
from zoo.guards import check

if typing.TYPE_CHECKING:
    from zoo.train_and_evaluate import Result


def launch(
    gin_files: Sequence[str],
    gin_bindings: Sequence[str] = (),
    *,
    workdir: str | None = None,
    data_dir: str = "data",
    dry_run: bool = False,
    command: Sequence[str] | None = None,
    found: devices.Found | None = None,
) -> "Result | None":
    """Trains the experiment of Gin files, or continues what is in its workdir.

    Args:
      gin_files: found from here, from a checkout and in the installed package; of several the later wins.
      gin_bindings: for instance 'Experiment.seed = 1'; they win over the files.
      workdir: None takes `runs/<stem of the first file>`, with `-smoke` behind it in a rehearsal.
      data_dir: where the data are; fake data are written below it on first use.
      dry_run: build everything, run one step, print the plan, write nothing.
      command: the command line of the user, for the messages that complete it; None makes one of the arguments.
      found: devices of this machine, if not those that `devices.look` sees.

    Returns:
      Metrics and paths; None from a dry run.

    Raises:
      UserError: on a mistake, before any device work where that is possible.
    """
    for name, value in (("workdir", workdir), ("data_dir", data_dir)):
        check(value != "", f"--{name}= is empty: name a folder, or leave it out.")
    if command is None:
        flags = [f"--gin_file={name}" for name in gin_files] + [f"--gin_bindings={text}" for text in gin_bindings]
        command = ["python", "-m", "zoo.train", *flags]
    asked = gin_config.devices_asked(gin_files, gin_bindings)
    found = found or devices.look()
    devices.check_devices(found, **asked, command=command, dry_run=dry_run)
    devices.check_environment(found, accelerator=asked["accelerator"])
    lines = gin_config.parse(gin_files, gin_bindings)  # imports TensorFlow, which takes seconds

    from zoo import train_and_evaluate
    from zoo.experiment import Experiment

    print("\n".join(lines))
    experiment = Experiment()
    if dry_run:
        return train_and_evaluate.dry_run(experiment, data_dir)
    workdir = workdir or gin_config.default_workdir(gin_files, experiment.rehearsal)
    return train_and_evaluate.train_and_evaluate(experiment, workdir=workdir, data_dir=data_dir)

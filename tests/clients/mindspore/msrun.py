"""Workers of `train.py` by MindSpore's own launcher, as it is installed. The launcher writes what each worker prints into a
file; its steps are printed here with the worker's number."""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from steps import emit, end_with_parent  # noqa: E402

# How often the files are looked at, in seconds.
_POLL = 0.2


class Printed:
    """The steps that a worker has printed and that were not passed on yet."""

    def __init__(self, worker, file):
        self._worker = worker
        self._file = file
        self._read = 0

    def pass_on(self):
        """Whole lines only: the rest of the last one comes later."""
        if not self._file.exists():
            return
        with self._file.open("rb") as opened:
            opened.seek(self._read)
            text = opened.read()
        whole = text[: text.rfind(b"\n") + 1]
        self._read += len(whole)
        for line in whole.decode(errors="replace").splitlines():
            if line.startswith('{"'):
                emit(**json.loads(line), worker=self._worker)
            else:
                print(f"worker {self._worker}: {line}", flush=True)


def main():
    """Launch, pass on, and end as the launcher does."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scheduler", required=True, help="HOST:PORT")
    parser.add_argument("--workers", type=int, required=True)
    parser.add_argument("--logs", type=pathlib.Path, required=True)
    parser.add_argument("--until", required=True, help="the file that ends the program")
    options = parser.parse_args()
    end_with_parent()
    host, port = options.scheduler.rsplit(":", 1)
    programs = pathlib.Path(sys.executable).parent
    launcher = [str(programs / "msrun")]
    launcher += [f"--worker_num={options.workers}", f"--local_worker_num={options.workers}"]
    launcher += [f"--master_addr={host}", f"--master_port={port}", f"--log_dir={options.logs}", "--join=True"]
    program = [str(HERE / "train.py"), "--exit-with-parent", "--until", options.until]
    printed = [Printed(worker, options.logs / f"worker_{worker}.log") for worker in range(options.workers)]
    # The launcher starts workers by the first `python` that is found. Standard input goes on to them, and they end with it.
    environment = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ.get('PATH', os.defpath)}"}
    with subprocess.Popen([*launcher, *program], env=environment) as process:
        while process.poll() is None:
            for worker in printed:
                worker.pass_on()
            time.sleep(_POLL)
    for worker in printed:
        worker.pass_on()
    if (options.logs / "scheduler.log").exists():
        sys.exit("the launcher has started a scheduler of its own")
    emit(step="launcher ended", status=process.returncode)


if __name__ == "__main__":
    main()

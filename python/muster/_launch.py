"""`launch`: a job whose workers run a function of this program."""

from __future__ import annotations

import importlib
import importlib.machinery
import os
import re
import signal
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ._jobs import Job, refuse_in_worker, start
from ._session import Session, connect
from .errors import InvalidArgument

Trainer = Callable[[Session], object]

_ENTRY = '''"""A worker of a job. muster.launch has written this file, and writes it again at each launch."""

import sys

sys.path[:] = {path!r}

from muster._launch import import_script, work

if __name__ == "__main__":
    work({where!r})
elif __name__ == "__mp_main__":  # a process that the worker has started, for `parse`
    import_script({where!r})
'''


def launch(
    function: Trainer,
    *,
    data: str | Sequence[str] | None = None,
    data_records: int | None = None,
    test: str | Sequence[str] | None = None,
    test_records: int | None = None,
    header: bool = False,
    epochs: int | None = None,
    minibatch_size: int | None = None,
    shuffle: bool | str = True,
    workers: int | None = None,
    servers: int | None = None,
    name: str | None = None,
    state_directory: str | os.PathLike[str] = "state",
    progress: bool | None = None,
) -> Job:
    """Makes a job whose workers run `function(session)`, runs it as `muster train` does, and returns when it was started.

        def learn(session):
            table = session.table("user", dim=16)
            for batch in session.batches():
                with batch:
                    ...

        if __name__ == "__main__":
            with muster.launch(learn, data="train-*.csv", workers=2, servers=2) as job:
                ...

    Each worker is a process of its own, and imports the function: one at the top level of a module, or of the script that
    was started, which is then run again as `__muster_worker__`. A function of a notebook or of an interactive session, a
    lambda, and a function inside of another one need the package cloudpickle, which copies them with all that they refer to.

    `data` and `test` are glob patterns of files with a record a line, relative to the current folder; `data_records` and
    `test_records` are numbers of records, without files (`batch.record_numbers`). `test` is evaluated after every epoch.
    What is not given is as in a job file (docs/job-file.md). `name` is the function's name by default. The same call with
    the same `state_directory` resumes the job; another job needs another one.

    Raises `InvalidArgument` if the function cannot be had by the workers, or if the job is refused.
    """
    refuse_in_worker()
    folder = os.path.abspath(state_directory)
    where = _where(function, folder)
    entry = os.path.join(folder, "launch", "worker.py")
    _write(entry, _ENTRY.format(path=sys.path, where=where).encode())
    title = name if name is not None else _name_of(function)
    options: dict[str, object] = {
        "name": title,
        "state-dir": folder,
        "python": sys.executable,
        "data-records": data_records,
        "test-records": test_records,
        "epochs": epochs,
        "minibatch-size": minibatch_size,
        "shuffle": str(shuffle).lower(),
        "workers": workers,
        "servers": servers,
    }
    verb = ["train", entry]
    verb += [f"--{option}={value}" for option, value in options.items() if value is not None]
    for option, files in (("data", data), ("test", test)):
        verb += [f"--{option}={file}" for file in ([files] if isinstance(files, str) else files or [])]
    if header:
        verb.append("--header")
    return start(verb, ["--state-dir", folder], progress)


def work(where: Mapping[str, str]) -> None:
    """The body of a worker: `where` says where its function is."""
    function = _load(where)
    with connect() as session:
        signal.signal(signal.SIGTERM, lambda *_: session.leave())
        function(session)


def import_script(where: Mapping[str, str]) -> None:
    """In a process of a worker: functions of the script can be had by its name."""
    if "script" in where:
        _run_script(where["script"])


def _where(function: Trainer, folder: str) -> dict[str, str]:
    """Where workers find the function: a module, a script, or a copy."""
    if not callable(function):
        raise InvalidArgument(f"function: {function!r} cannot be called: a function of a session is needed")
    path = getattr(function, "__qualname__", "")
    module = getattr(function, "__module__", None) or ""
    if path.isidentifier() and module != "__main__" and getattr(sys.modules.get(module), path, None) is function:
        return {"module": module, "name": path}
    main = sys.modules["__main__"]
    if path.isidentifier() and module == "__main__" and getattr(main, path, None) is function:
        if main.__spec__ is not None:  # python -m
            return {"module": main.__spec__.name, "name": path}
        if getattr(main, "__file__", None) is not None:
            return {"script": os.path.abspath(str(main.__file__)), "name": path}
    return {"copy": _copy(function, os.path.join(folder, "launch", "function.pickle"))}


def _copy(function: Trainer, path: str) -> str:
    try:
        cloudpickle = importlib.import_module("cloudpickle")
    except ModuleNotFoundError:
        what = getattr(function, "__qualname__", repr(function))
        raise InvalidArgument(
            f"function: workers cannot import {what!r}, which is not at the top level of a module or a script: put it into "
            "a module, or install cloudpickle"
        ) from None
    _write(path, cloudpickle.dumps(function))
    return path


def _load(where: Mapping[str, str]) -> Trainer:
    if "module" in where:
        found: Any = getattr(importlib.import_module(where["module"]), where["name"])
    elif "script" in where:
        found = getattr(_run_script(where["script"]), where["name"])
    else:
        with open(where["copy"], "rb") as file:
            # The file is of this user's own state directory.
            found = importlib.import_module("pickle").load(file)
    function: Trainer = found
    return function


def _run_script(path: str) -> types.ModuleType:
    """The script as a module that others find by its name, for example to pickle its functions."""
    module = types.ModuleType("__muster_worker__")
    module.__file__ = path
    sys.modules[module.__name__] = module
    importlib.machinery.SourceFileLoader(module.__name__, path).exec_module(module)
    return module


def _name_of(function: Trainer) -> str:
    """A job's name is 1 to 63 of a-z, 0-9 and -."""
    return re.sub("[^a-z0-9]+", "-", getattr(function, "__name__", "").lower()).strip("-")[:63].strip("-") or "train"


def _write(path: str, contents: bytes) -> None:
    """Workers of a running job see the old file or the new one."""
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    part = f"{path}.{os.getpid()}"
    with open(part, "wb") as file:
        file.write(contents)
    os.replace(part, path)

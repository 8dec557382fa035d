"""What runs inside an isolated process: policies and functions that never share memory with truth.

A *nursery* is started once by `nocta.evaluation.isolation`, before it can have seen any data. It
only imports modules. For every policy it forks a *cell*, so a cell starts in milliseconds, with
memory in which no cohort ever was, and without notes of an earlier roll-out.
"""

from __future__ import annotations

import os
import pickle
import random
import signal
import socket
import sys
import threading
import traceback
import warnings
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

#: What the process needs to know before it unpickles anything: paths and modules.
Surroundings = tuple[list[str], list[str], int]


def nurse(control: int, lifeline: int) -> None:
    """Fork a cell for every socket that arrives, until the process that asks is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that asks decides what ends
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    link = socket.socket(fileno=control)
    while True:
        data, fds, _, _ = socket.recv_fds(link, 1 << 20, 1)
        if not data:
            return
        prepare(pickle.loads(data))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # threads of libraries are idle
            child = os.fork()
        if child == 0:
            link.close()
            live(Connection(fds[0]), lifeline)
            os._exit(0)
        os.close(fds[0])


def prepare(surroundings: Surroundings) -> None:
    """Import what the cell will need; a module that cannot be imported is reported later."""
    path, modules, n_threads = surroundings
    sys.path[:] = path
    for name in modules:
        with suppress(Exception):
            import_module(name)
    os.environ["OMP_NUM_THREADS"] = str(n_threads)


def live(channel: Connection, lifeline: int) -> None:
    """Answer requests until the other end is closed."""
    threading.Thread(target=_end_with_parent, args=(lifeline,), daemon=True).start()
    # Nobody may rely on a stream that no seed reaches, so it differs in every cell.
    np.random.seed(int.from_bytes(os.urandom(4), "little"))
    random.seed()
    torch: Any = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
        torch.seed()
    held: dict[str, Any] = {}
    channel.send_bytes(pickle.dumps(("pid", os.getpid())))
    while True:
        try:
            name, args = pickle.loads(channel.recv_bytes())
        except EOFError:
            return
        try:
            answer: tuple[str, Any] = ("done", _answer(held, name, args))
        except BaseException as error:
            answer = ("error", _describe(error))
        channel.send_bytes(pickle.dumps(answer, protocol=5))


def _end_with_parent(lifeline: int) -> None:
    """Wait until the process that asks is gone, and end whatever is under way."""
    os.read(lifeline, 1)
    os._exit(1)


def _answer(held: dict[str, Any], name: str, args: Sequence[Any]) -> Any:
    if name == "run":
        payload, rest = args
        return pickle.loads(payload)(*pickle.loads(rest))
    if name == "make":
        held["policy"] = policy = pickle.loads(args[0])()
        return type(policy).__name__, bool(policy.acts_within_visit), str(policy.promised_loss)
    policy = held["policy"]
    if name == "begin":
        policy.begin(*args)
        return None
    if name == "decide":
        decision = policy.decide(args[0])
        return np.asarray(decision.time), np.asarray(decision.features)
    if name == "promise":
        found = policy.promise(args[0])
        return None if found is None else [np.asarray(part, dtype=float) for part in found]
    return np.asarray(policy.predict_proba(args[0]))


def _describe(error: BaseException) -> tuple[str, str, str, str]:
    """Module, class and message of an error, and where it happened, all as text."""
    kind = type(error)
    return kind.__module__, kind.__qualname__, str(error), traceback.format_exc()

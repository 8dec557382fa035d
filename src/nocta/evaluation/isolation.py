"""Run policies in processes that never held the truth.

A policy in this process could find the hidden values without being given them: through
`gc.get_objects()`, a stack frame, a global of a module, or an array's `base`. In a cell there is
nothing to find. A cell gets the pickled policy and observations, and answers with plain arrays;
true values and labels stay here. Each policy gets a new cell, so that it cannot remember what it
paid for in another roll-out.
"""

from __future__ import annotations

import atexit
import builtins
import io
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from nocta.core import errors
from nocta.core.cohort import Cohort
from nocta.core.errors import ConfigError, LeakageError, ProcessKilled
from nocta.core.history import History
from nocta.core.policy import Decision, Observation, Policy, Promise
from nocta.evaluation.custody import holding, same_data

#: What an answer may be made of; nothing else is unpickled here.
_PLAIN = {
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "scalar"),
    ("numpy._core.numeric", "_frombuffer"),
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
}
_START = "import sys; sys.path[:] = {path!r}; from nocta.evaluation.cell import nurse; nurse({fds})"


def pack(item: Any, truth: Cohort | None = None, name: str = "") -> bytes:
    """An object as bytes for a cell; classes of scripts and notebooks travel with it.

    Messages call it `name`, by default its class.

    Raises:
        LeakageError: Data of the subjects of `truth` would travel too.
    """
    import cloudpickle

    class Watchful(cloudpickle.Pickler):  # type: ignore[misc]  # cloudpickle has no types
        def reducer_override(self, item: Any) -> Any:
            if truth is not None and isinstance(item, np.ndarray):
                held = same_data(item, truth)
                if held:
                    raise LeakageError(f"the {held}")
            return super().reducer_override(item)

    file = io.BytesIO()
    try:
        Watchful(file, protocol=5).dump(item)
    except LeakageError:
        raise
    except Exception as error:
        raise ConfigError(
            f"{name or type(item).__name__} cannot be sent to another process ({error}), so it "
            f"cannot be shown that it never sees the hidden values. Make it picklable: leave out "
            f"open files, locks and processes, or give it a `__getstate__`."
        ) from error
    return file.getvalue()


def pack_policy(policy: Policy, truth: Cohort | None = None) -> bytes:
    """What an `IsolatedPolicy` is made of: the policy as it is now.

    Raises:
        LeakageError: The policy holds data of the subjects of `truth`.
    """
    if truth is not None:
        holding(policy, truth)
    try:
        return pack(partial(_itself, policy), truth, type(policy).__name__)
    except LeakageError as error:
        raise LeakageError(
            f"{type(policy).__name__} holds {error} of the subjects it is evaluated on, in a "
            f"global or a closure. A policy may keep what it learned from other subjects only."
        ) from None


class Cell:
    """A process that holds nothing of this one; ended by `close`, or when this process ends.

    Args:
        modules: Modules that the nursery may import beforehand, so that cells start faster.
    """

    def __init__(self, *modules: str) -> None:
        self._pid = 0
        self._channel = _Nursery.running().fork(modules)
        self._pid = int(self._receive())

    def run(self, payload: bytes, *args: Any) -> Any:
        """Call the packed function there; what it returns must be plain data and arrays."""
        return self.ask("run", payload, pack(args))

    def ask(self, name: str, *args: Any) -> Any:
        """Send a request and wait for its answer."""
        try:
            self._channel.send_bytes(pickle.dumps((name, args), protocol=5))
            return self._receive()
        except KeyboardInterrupt:
            self.close()
            raise
        except (EOFError, ConnectionError) as error:
            self.close()
            raise ProcessKilled(
                "The isolated process of a method ended in the middle of its work; it may have run "
                "out of memory."
            ) from error

    def _receive(self) -> Any:
        status, value = plain_loads(self._channel.recv_bytes())
        if status == "error":
            raise _error(*value)
        return value

    def close(self) -> None:
        """End the process at once."""
        self._channel.close()
        pid, self._pid = self._pid, 0
        if pid:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class IsolatedPolicy(Policy):
    """A policy that decides and predicts in a cell of its own; close it after use.

    Args:
        payload: `pack` of a function without arguments that returns the policy.
        modules: See `Cell`.

    Example:
        >>> from nocta import rollout
        >>> from nocta.methods.fixed import RandomPolicy
        >>> from nocta.testing import RunningMeanPredictor, tiny_cohort
        >>> policy = RandomPolicy(0.5, RunningMeanPredictor(2))
        >>> with IsolatedPolicy.of(policy) as isolated:
        ...     there = rollout(isolated, tiny_cohort())
        >>> there.cost == rollout(policy, tiny_cohort()).cost
        True
    """

    def __init__(self, payload: bytes, *modules: str) -> None:
        self.cell = Cell(*modules)
        try:
            made = self.cell.ask("make", payload)
            self.policy_name, self.acts_within_visit, self.promised_loss = made
        except BaseException:
            self.cell.close()
            raise

    @classmethod
    def of(cls, policy: Policy) -> Self:
        """A copy of a policy, as it is now."""
        return cls(pack_policy(policy), type(policy).__module__)

    def begin(self, n_subjects: int, seed: int) -> None:
        self.cell.ask("begin", n_subjects, seed)

    def decide(self, observation: Observation) -> Decision:
        time, features = (np.asarray(part) for part in self.cell.ask("decide", observation))
        return Decision(time, features)

    def promise(self, observation: Observation) -> Promise | None:
        found = self.cell.ask("promise", observation)
        if found is None:
            return None
        losses, costs = (np.asarray(part) for part in found)
        return losses, costs

    def predict_proba(self, history: History) -> NDArray[np.float32]:
        return np.asarray(self.cell.ask("predict", history))

    def close(self) -> None:
        """End the process of the policy."""
        self.cell.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def name_of(policy: Policy) -> str:
    """The class of a policy, isolated or not, for messages."""
    return getattr(policy, "policy_name", type(policy).__name__)


def plain_loads(data: bytes) -> Any:
    """Unpickle arrays and plain data; anything that could run code here is a `LeakageError`."""
    return _PlainUnpickler(io.BytesIO(data)).load()


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module.replace("numpy.core", "numpy._core"), name) not in _PLAIN:
            raise LeakageError(
                f"An isolated policy answered with a {module}.{name}; a decision is made of "
                f"arrays, and a setting of plain data."
            )
        return super().find_class(module, name)


class _Nursery:
    """The process that forks cells, one for each process that needs cells."""

    _one: _Nursery | None = None

    def __init__(self) -> None:
        here, there = socket.socketpair()
        read, write = os.pipe()
        self.owner, self.link, self.lifeline = os.getpid(), here, write
        self.lock = threading.Lock()
        fds = f"{there.fileno()}, {read}"
        self.process = subprocess.Popen(
            [sys.executable, "-c", _START.format(path=sys.path, fds=fds)],
            pass_fds=(there.fileno(), read),
            stdin=subprocess.DEVNULL,
        )
        there.close()
        os.close(read)

    @classmethod
    def running(cls) -> _Nursery:
        """The nursery of this process, started if there is none."""
        if os.name != "posix":
            raise ConfigError("Isolated policies need Linux or macOS; on Windows, use WSL.")
        one = cls._one
        if one is None or one.owner != os.getpid() or one.process.poll() is not None:
            one = cls._one = cls()
            atexit.register(one.end)
        return one

    def fork(self, modules: tuple[str, ...]) -> Connection:
        """A channel to a new cell."""
        ours = [name for name in sys.modules if name == "torch" or name.startswith("nocta.")]
        wanted = [*ours, *(name for name in modules if name != "__main__")]
        torch: Any = sys.modules.get("torch")
        n_threads = torch.get_num_threads() if torch else os.environ.get("OMP_NUM_THREADS", "1")
        here, there = socket.socketpair()
        surroundings = pickle.dumps((sys.path, wanted, n_threads))
        with self.lock, there:
            socket.send_fds(self.link, [surroundings], [there.fileno()])
            channel = Connection(here.detach())
            channel.poll(None)  # one request at a time, or two could arrive as one
        return channel

    def end(self) -> None:
        """End the nursery and all its cells."""
        if self.owner == os.getpid():
            self.link.close()
            os.close(self.lifeline)
            self.process.wait()


def _itself(policy: Policy) -> Policy:
    return policy


def _error(module: str, name: str, message: str, trace: str) -> Exception:
    """The error that a cell described, as an error of this process."""
    home = {errors.__name__: errors, "builtins": builtins}.get(module)
    kind = getattr(home, name, None)
    if not (isinstance(kind, type) and issubclass(kind, Exception)):
        kind, message = RuntimeError, f"{name}: {message}"
    try:
        error = kind(message)
    except TypeError:
        error = RuntimeError(f"{name}: {message}")
    error.add_note(f"In the isolated process:\n{trace}")
    return error

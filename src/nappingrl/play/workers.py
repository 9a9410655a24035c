"""The processes behind the tabs: at most four, one prepared in advance, ended when their tab closes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

from nappingrl.play.choices import Choices
from nappingrl.play.commands import AnyCommand
from nappingrl.play.worker import work

MAX_WORKERS = 4
_SPAWN = get_context("spawn")


class Worker:
    """One process, and the pipe to it."""

    def __init__(self, choices: Choices) -> None:
        self._connection, theirs = _SPAWN.Pipe()
        self.process: BaseProcess = _SPAWN.Process(target=work, args=(theirs, choices), daemon=True)
        self.process.start()
        theirs.close()
        self._arrived = asyncio.Event()

    def send(self, command: AnyCommand) -> None:
        """Ask for something; a process that has died is noticed by `receive`."""
        try:
            self._connection.send(command)
        except (BrokenPipeError, ConnectionResetError):
            return

    async def receive(self) -> bytes:
        """The next message; EOFError when the process has ended."""
        loop, connection = asyncio.get_running_loop(), self._connection
        while not connection.poll():
            self._arrived.clear()
            loop.add_reader(connection.fileno(), self._arrived.set)
            try:
                await self._arrived.wait()
            finally:
                loop.remove_reader(connection.fileno())
        return _read(connection)

    def end(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.join()
        self._connection.close()
        self.process.close()


def _read(connection: Connection) -> bytes:
    try:
        return connection.recv_bytes()
    except ConnectionResetError as error:
        raise EOFError from error


class Workers:
    """Gives a worker to each of at most four tabs; others wait."""

    def __init__(self, choices: Choices, limit: int = MAX_WORKERS) -> None:
        self._choices, self._free = choices, asyncio.Semaphore(limit)
        self._spare: Worker | None = None
        self.active: set[Worker] = set()

    def prepare(self) -> None:
        """Start a process before a tab asks for one."""
        if self._spare is None and not self._free.locked():
            self._spare = Worker(self._choices)

    @property
    def is_full(self) -> bool:
        """Whether the next tab has to wait."""
        return self._free.locked()

    @asynccontextmanager
    async def worker(self) -> AsyncIterator[Worker]:
        """A worker for as long as the tab is open."""
        async with self._free:
            worker, self._spare = self._spare or Worker(self._choices), None
            self.active.add(worker)
            try:
                yield worker
            finally:
                self.active.discard(worker)
                worker.end()
                self.prepare()

    def end(self) -> None:
        """End all processes."""
        for worker in [*self.active, *([self._spare] if self._spare is not None else [])]:
            worker.process.kill()

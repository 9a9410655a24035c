"""The processes behind the tabs: at most four, one prepared in advance, ended when their tab closes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from tempfile import TemporaryDirectory
from threading import Thread

from nappingrl.play.choices import Choices
from nappingrl.play.commands import AnyCommand
from nappingrl.play.worker import work

MAX_WORKERS = 4
_SPAWN = get_context("spawn")


class Worker:
    """One process, and the pipe to it."""

    def __init__(self, choices: Choices, folder: str) -> None:
        self._connection, theirs = _SPAWN.Pipe()
        self.process: BaseProcess = _SPAWN.Process(target=work, args=(theirs, choices, folder), daemon=True)
        self.process.start()
        theirs.close()
        self._messages: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._reader = Thread(target=self._read, args=(asyncio.get_running_loop(),), daemon=True)
        self._reader.start()

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        """Pass messages on to the loop, in a thread: a pipe of multiprocessing must be read with blocking calls."""
        while True:
            try:
                message: bytes | None = self._connection.recv_bytes()
            except (EOFError, OSError):
                message = None
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(self._messages.put_nowait, message)
            if message is None:
                return

    def send(self, command: AnyCommand) -> None:
        """Ask for something; a process that has died is noticed by `receive`."""
        try:
            self._connection.send(command)
        except (BrokenPipeError, ConnectionResetError):
            return

    async def receive(self) -> bytes:
        """The next message; EOFError when the process has ended."""
        message = await self._messages.get()
        if message is None:
            raise EOFError
        return message

    def end(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.join()
        self._reader.join()
        self._connection.close()
        self.process.close()


class Workers:
    """Gives a worker to each of at most four tabs; others wait."""

    def __init__(self, choices: Choices, limit: int = MAX_WORKERS) -> None:
        self._choices, self._free = choices, asyncio.Semaphore(limit)
        self._folder = TemporaryDirectory(prefix="napping-play-")
        """For the temporary files of the processes, which are killed."""
        self._spare: Worker | None = None
        self.active: set[Worker] = set()

    def prepare(self) -> None:
        """Start a process before a tab asks for one."""
        if self._spare is None and not self._free.locked():
            self._spare = self._make()

    def _make(self) -> Worker:
        return Worker(self._choices, self._folder.name)

    @property
    def is_full(self) -> bool:
        """Whether the next tab has to wait."""
        return self._free.locked()

    @asynccontextmanager
    async def worker(self) -> AsyncIterator[Worker]:
        """A worker for as long as the tab is open."""
        async with self._free:
            worker, self._spare = self._spare or self._make(), None
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
        self._folder.cleanup()

"""Tiles of a city handed to executors: concurrent.futures, dask.distributed, or what else has `submit`."""
import json
import os
import queue
import threading
import zlib

import numpy as np

from . import _core
from ._errors import InputError

_WHERE = "lockstep.urban.run_tiles"
_opened = {}  # in a worker: the run that it computes tiles of
_opening = threading.Lock()


def compute_tile(task, number):
    """In a worker: the key of its run, the values of a tile, (times, outputs, rows, cols), and of its points, (times, points, values)."""
    token, device, arguments, arrays, weather = task
    with _opening:
        run = _opened.get(token)
        if run is None:
            _opened.clear()
            run = _opened[token] = _core.UrbanTiles(device._core, arguments, arrays, weather)
    return run.key, *run.compute(number)


class TileGrids:
    """The outputs as grids in memory, or as .npy files of a folder with a list of the tiles that are done; so the values of points,
    (points, times, values), by the name POINTS."""

    POINTS = "points"

    def __init__(self, folder, shapes, key, points):
        """points: row and column of each."""
        self.folder, self.key, self.points, self.done = folder, key, points, {}
        if folder is None:
            self.grids = {name: np.full(shape, np.nan, np.float32) for name, shape in shapes.items()}
            return
        os.makedirs(folder, exist_ok=True)
        self.list = os.path.join(folder, "tiles.json")
        kept = self._read()
        self.grids = {}
        for name, shape in shapes.items():
            path = os.path.join(folder, name + ".npy")
            if kept is None or not os.path.exists(path):
                kept = None
                self.grids[name] = np.lib.format.open_memmap(path, "w+", np.float32, shape)
            else:
                self.grids[name] = np.lib.format.open_memmap(path, "r+")
        self.done = kept or {}
        self._write()

    def _read(self):
        try:
            with open(self.list, encoding="utf-8") as file:
                found = json.load(file)
            return {int(k): v for k, v in found["done"].items()} if found["key"] == self.key else None
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def _write(self):
        with open(self.list + ".part", "w", encoding="utf-8") as file:
            json.dump({"key": self.key, "done": self.done}, file)
        os.replace(self.list + ".part", self.list)

    def _part(self, name, tile):
        """The index of what a tile fills."""
        row, col, rows, cols = tile
        if name == self.POINTS:
            return [k for k, (r, c) in enumerate(self.points) if row <= r < row + rows and col <= c < col + cols]
        return slice(None), slice(row, row + rows), slice(col, col + cols)

    def _sum(self, tile):
        return zlib.crc32(b"".join(grid[self._part(name, tile)].tobytes() for name, grid in self.grids.items()))

    def has(self, number, tile):
        """Whether the folder holds this tile, undamaged."""
        return number in self.done and self.done[number] == self._sum(tile)

    def put(self, number, tile, values, points):
        for k, (name, grid) in enumerate(self.grids.items()):
            grid[self._part(name, tile)] = points.swapaxes(0, 1) if name == self.POINTS else values[:, k]
        if self.folder is None:
            return
        for grid in self.grids.values():
            grid.flush()
        self.done[number] = self._sum(tile)
        self._write()


def run_on(executor, task, tiles, grids, key, progress):
    """Hands all tiles that are not there yet to the executor, some more at a time than it has workers."""
    waiting = [k for k, tile in enumerate(tiles) if not grids.has(k, tile)]
    finished, total = len(tiles) - len(waiting), len(tiles)
    if progress:
        progress(finished, total)
    if hasattr(executor, "scatter"):  # dask: the inputs travel once
        task = executor.scatter(task, broadcast=True)
    room = 2 * (getattr(executor, "_max_workers", None) or 32)
    done, running = queue.SimpleQueue(), {}

    def submit():
        number = waiting.pop(0)
        future = executor.submit(compute_tile, task, number)
        running[number] = future
        future.add_done_callback(lambda _: done.put(number))

    try:
        while waiting or running:
            while waiting and len(running) < room:
                submit()
            number = done.get()
            found, values, points = running.pop(number).result()
            if found != key:
                raise InputError("a worker with other inputs, another version or tiles of another side", _WHERE,
                                 "workers that read the same files and have memory for a tile")
            grids.put(number, tiles[number], values, points)
            finished += 1
            if progress:
                progress(finished, total)
    finally:
        for future in running.values():
            future.cancel()

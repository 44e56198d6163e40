"""Commands that train: their log, and runs that are killed on the way."""
import csv
import os
import signal
import subprocess
import time

from program import PROGRAM, ProgramTest


class TrainingTest(ProgramTest):
    def train(self, *more, out="out"):
        document = self.json_of("forecast", "train", *more, "--device", "cpu", "--out", self.path(out))
        self.check_summary(document)
        return document

    def log(self, out):
        """Rows but for their seconds."""
        with open(self.path(out, "log.csv")) as file:
            return [{k: v for k, v in row.items() if k != "seconds"} for row in csv.DictReader(file)]

    def killed(self, *more, checkpoint, out):
        """A run that is killed soon after its first checkpoint."""
        process = subprocess.Popen([PROGRAM, "forecast", "train", *more, "--device", "cpu", "--checkpoint", checkpoint, "--out", self.path(out)],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + 60
        while not os.path.exists(checkpoint) and time.monotonic() < until and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()

"""Run smtp_sink.py and read what it kept."""
import json
import pathlib
import subprocess

from instance import HANG, PYTHON


class Peer:
    def __init__(self, directory, *options):
        self.directory = pathlib.Path(directory)
        self.directory.mkdir(parents=True)
        self.process = subprocess.Popen(
            [PYTHON, pathlib.Path(__file__).with_name("smtp_sink.py"), self.directory, *options],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline())

    def messages(self):
        return sorted(self.directory.glob("*.eml"))

    def envelopes(self):
        return [json.loads(p.with_suffix(".env").read_text()) for p in self.messages()]

    def stop(self):
        self.process.stdin.close()
        self.process.wait(HANG)
        self.process.stdout.close()

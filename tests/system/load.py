"""Submitters that go on while a test does something else to an instance."""
import collections
import concurrent.futures
import pathlib
import random
import re
import subprocess
import threading

ACCEPTED = re.compile(rb"^Subject: (\S+)", re.M)


class Load:
    """Threads that submit one message after the other, each with a subject of
    its own, to `users` users, `pace` seconds apart. accepted: subjects whose
    submitter exited 0."""

    def __init__(self, instance, threads=2, users=6, domain="test.example", seed=1, pace=0.0):
        self.instance = instance
        self.users = users
        self.domain = domain
        self.pace = pace
        self.accepted = []
        self.refused = []
        self.running = []  # submitters that may be killed
        self._end = threading.Event()
        self._lock = threading.Lock()
        self._face = instance.face("queue-inject")  # made once, before all want it
        self._pool = concurrent.futures.ThreadPoolExecutor(threads)
        self._submitters = [self._pool.submit(self._submit, n, random.Random(seed + n)) for n in range(threads)]

    def _submit(self, number, dice):
        count = 0
        while not self._end.wait(self.pace):
            count += 1
            subject = f"m{number}-{count}"
            message = f"Subject: {subject}\n\n{'x' * dice.randrange(4000)}\n".encode()
            command = [self._face, "-c", self.instance.conf_file, "-f",
                       "sender@test.example", "--", f"u{dice.randrange(self.users)}@{self.domain}"]
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.PIPE, env=self.instance.environment())
            with self._lock:
                self.running.append(process)
            _, error = process.communicate(message)
            with self._lock:
                self.running.remove(process)
                if process.returncode == 0:
                    self.accepted.append(subject)
                else:
                    self.refused.append((subject, process.returncode, error))

    def kill_one(self, dice):
        """kill -9 of a submitter; what it had not answered was not accepted."""
        with self._lock:
            if self.running:
                dice.choice(self.running).kill()

    def stop(self):
        """The end of all; raises what ended one of them before."""
        self._end.set()
        self._pool.shutdown()
        for submitter in self._submitters:
            submitter.result()

    def delivered(self):
        """How often each subject lies in the maildirs."""
        count = collections.Counter()
        for path in pathlib.Path(self.instance.mail).glob("*/new/*"):
            found = ACCEPTED.search(path.read_bytes())
            count[found.group(1).decode() if found else f"no subject: {path}"] += 1
        return count

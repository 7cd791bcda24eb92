"""Local mail at a steady pace while something else goes on, and how long each
message took from acceptance to the maildir.

The pace does not wait for deliveries: a time in which nothing is delivered
counts with every message of it.
"""
import os
import re
import subprocess
import threading
import time

SUBJECT = re.compile(rb"^Subject: p(\d+)", re.M)


class LocalMail:
    """Submits to `users` users of `domain`, one message every `every` seconds."""

    def __init__(self, instance, every=0.1, users=4, domain="test.example"):
        self.instance = instance
        self.every = every
        self.users = users
        self.domain = domain
        self.accepted = {}  # number: when
        self.delivered = {}
        self.took = []  # seconds of each submission
        self.phases = [("", 0)]
        self._seen = set()
        self._end = threading.Event()
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._submit), threading.Thread(target=self._look)]

    def start(self):
        for thread in self._threads:
            thread.start()
        return self

    def stop(self, limit=300):
        """After the last one was delivered."""
        self._end.set()
        for thread in self._threads:
            thread.join()
        end = time.monotonic() + limit
        while len(self.delivered) < len(self.accepted) and time.monotonic() < end:
            self._look_once()
            time.sleep(0.02)  # between two looks, never instead of one

    def phase(self, name):
        """Mail that is submitted from now on counts under this name."""
        with self._lock:
            self.phases.append((name, len(self.accepted)))

    def _submit(self):
        command = [self.instance.face("queue-inject"), "-c", self.instance.conf_file, "-f", "p@test.example", "--"]
        number, at = 0, time.monotonic()
        while not self._end.is_set():
            user = f"u{number % self.users}"
            began = time.monotonic()
            done = subprocess.run([*command, f"{user}@{self.domain}"], input=f"Subject: p{number}\n\nx\n".encode(),
                                  capture_output=True, env=self.instance.environment(), check=False)
            if done.returncode == 0:
                with self._lock:
                    self.accepted[number] = time.monotonic()
                    self.took.append(self.accepted[number] - began)
            number += 1
            at = max(at + self.every, time.monotonic() - 1)
            self._end.wait(max(0, at - time.monotonic()))

    def _look_once(self):
        for user in range(self.users):
            new = self.instance.mail / f"u{user}" / "new"
            try:
                names = os.listdir(new)
            except FileNotFoundError:
                continue
            for name in names:
                if (user, name) in self._seen:
                    continue
                self._seen.add((user, name))
                found = SUBJECT.search((new / name).read_bytes())
                if found:
                    self.delivered.setdefault(int(found.group(1)), time.monotonic())

    def _look(self):
        while not self._end.is_set():
            self._look_once()
            self._end.wait(0.01)

    def delays(self):
        """Seconds of each message by phase, those that never came without end."""
        numbers = sorted(self.accepted)
        found = {}
        for at, (name, first) in enumerate(self.phases):
            last = self.phases[at + 1][1] if at + 1 < len(self.phases) else len(numbers)
            found.setdefault(name, []).extend(
                max(0.0, self.delivered.get(n, float("inf")) - self.accepted[n]) for n in numbers[first:last])
        return {name: sorted(values) for name, values in found.items() if values}


def percentile(values, part):
    """Of a sorted list, by the nearest rank."""
    return values[max(0, -(-len(values) * part // 100) - 1)]

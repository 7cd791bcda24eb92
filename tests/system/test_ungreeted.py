"""Servers that take connections and never greet leave slots to other mail."""
import contextlib
import socket
import subprocess
import threading

from case import SystemTest, cost
from counting_site import CountingSite
from instance import BIN, wait

HELLO = b"Subject: hello\n\nhello\n"
SLOTS = 12
NAMES = 45


class Silent:
    """Connections are taken on all of 127/8 and never greeted."""

    def __init__(self):
        self.socket = socket.create_server(("0.0.0.0", 0), backlog=256)
        self.port = self.socket.getsockname()[1]
        self.taken = []
        threading.Thread(target=self._take, daemon=True).start()

    def _take(self):
        with contextlib.suppress(OSError):
            while True:
                self.taken.append(self.socket.accept()[0])

    def stop(self):
        self.socket.close()
        for taken in self.taken:
            taken.close()


class Ungreeted(SystemTest):
    @cost(6)
    def test_N46_mail_of_others_goes_at_once_beside_silent_hosts(self):
        """A server that has answered; 225 messages, by SMTP and LMTP, to 45 names of
        one that does not. No time limit of a greeting is waited for."""
        for kind in ("smtp", "lmtp"):
            with self.subTest(kind):
                silent, honest = Silent(), CountingSite()
                self.addCleanup(silent.stop)
                self.addCleanup(honest.stop)
                names = "".join(f"s{n}.example {kind}:[127.0.0.{n + 2}]:{silent.port}\n" for n in range(NAMES))
                i = self.instance(queues=1, routing=f"{names}honest.example smtp:127.0.0.1:{honest.port}\n", conf={
                    f"{kind}_process_limit": str(SLOTS), "smtp_connect_timeout": "1h", "smtp_greeting_timeout": "1h",
                    "smtp_connection_cache_time_limit": "0", "stop_time_limit": "1s"}).start_open()
                i.inject(HELLO, "first@honest.example")
                wait(lambda: honest.rcpts, what="a greeting")
                for n in range(225):
                    i.inject(HELLO, f"u@s{n % NAMES}.example")
                wait(lambda: len(silent.taken) >= SLOTS // 2, what="half of the slots are held by silent hosts")
                i.inject(HELLO, "u@honest.example")
                wait(lambda: honest.rcpts == ["first@honest.example", "u@honest.example"], 60, "mail of others")
                self.assertEqual(len(silent.taken), SLOTS // 2)
                said = subprocess.run([BIN / "qctl", "explain", f"domain=s{NAMES - 1}.example", "-c", i.conf_file],
                                      capture_output=True, text=True, check=True).stdout
                self.assertRegex(said, "no server of it has greeted so far, and such destinations have 6 deliveries, of 6")
                self.assertNotIn("its window is full", said)
                i.stop()

    @cost(12)
    def test_N46_the_first_mail_of_a_host_gets_a_slot_of_silent_ones(self):
        silent, honest = Silent(), CountingSite()
        self.addCleanup(silent.stop)
        self.addCleanup(honest.stop)
        names = "".join(f"s{n}.example smtp:[127.0.0.{n + 2}]:{silent.port}\n" for n in range(SLOTS))
        i = self.instance(queues=1, routing=f"{names}honest.example smtp:127.0.0.1:{honest.port}\n", conf={
            "smtp_process_limit": str(SLOTS), "smtp_connect_timeout": "1h", "smtp_greeting_timeout": "1h",
            "smtp_before_mail_timeout": "1h", "smtp_ungreeted_time": "1s", "stop_time_limit": "1s"}).start_open()
        for n in range(SLOTS):
            i.inject(HELLO, f"u@s{n}.example")
        wait(lambda: len(silent.taken) >= SLOTS // 2, what="the slots are held by silent hosts")
        i.inject(HELLO, "u@honest.example")
        wait(lambda: honest.rcpts == ["u@honest.example"], what="the first mail of a host")
        self.assertTrue(i.log_has(r"dsn=4\.4\.2, status=deferred \(no server has greeted within smtp_ungreeted_time, "
                                  r"and other mail waits for the slot\)"))
        i.stop()

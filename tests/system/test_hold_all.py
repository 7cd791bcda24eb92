"""Acts on all messages, while these move (docs/QCTL.md, "Acts")."""
import re
import subprocess

from case import SystemTest, cost
from instance import BIN, HANG, Popen, wait

MESSAGES = 1200
SUBMIT = 'n=0; while [ $n -lt %d ]; do printf "Subject: x\\n\\nx\\n" | "$0" -i -f "" -- "r$n@later.example"; n=$((n + 1)); done'


class Moving(SystemTest):
    def call(self, i, *words):
        done = subprocess.run([BIN / "qctl", *words], text=True, capture_output=True, check=False, env=i.environment())
        self.assertEqual(done.returncode, 0, f"{words}: {done.stdout}{done.stderr}")
        return done

    def counts(self, i):
        return {state: n for state in ("incoming", "active", "deferred", "hold", "deleted")
                if (n := len(i.files(state)))}

    @cost(60)
    def test_A13_no_message_is_passed_over_that_is_tried_meanwhile(self):
        """Each message is tried every second: it goes from deferred/ to active/ and back while qctl reads. A list of
        one look at each directory misses some of them, in one of 20 lists.

        mutation: message_walk() makes one pass."""
        i = self.running(queues=1, routing="later.example smtp:[127.0.0.1]:1\n* local\n",
                         conf={"maximal_backoff_time": "1s"})
        submitters = [Popen(["sh", "-c", SUBMIT % (MESSAGES // 3), i.face("sendmail")], env=i.environment())
                      for _ in range(3)]
        for submitter in submitters:
            self.assertEqual(submitter.wait(HANG), 0)
        wait(lambda: not i.files("incoming") and len(i.files("defer")) == MESSAGES, what="all tried once")
        for _ in range(40):
            self.assertEqual(self.call(i, "requeue", "ALL", "--dry-run").stdout, f"would requeue {MESSAGES} messages\n")
        for verb, back, state in (("hold", "release", "hold"), ("delete", "undelete", "deleted"),
                                  ("hold", "release", "hold")):
            said = self.call(i, verb, "ALL").stderr
            done, = re.findall(r"(\d+) messages?\n$", said)
            self.assertEqual(int(done), MESSAGES, said)
            self.assertEqual(self.counts(i), {state: MESSAGES}, said)
            self.call(i, back, "ALL", "state=" + state)
            if back == "undelete":
                self.call(i, "release", "ALL")
            wait(lambda: not i.files("hold", "deleted"), what="all on their road again")

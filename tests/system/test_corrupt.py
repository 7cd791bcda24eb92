"""Messages in corrupt/: what an operator sees of them, and the ways out
(docs/QCTL.md, "Corrupt messages")."""
import os
import re
import subprocess

from case import SystemTest
from instance import BIN, wait

HELLO = b"Subject: hello\n\nhello there\n"
HOUR = {"minimal_backoff_time": "1h", "maximal_backoff_time": "1h"}
WARNED = HOUR | {"delay_warning_time": "4h"}
WHY = "content checksum differs from the one stored at acceptance"


def flip(path, at):
    """One bit of the byte at this offset; from the end where it is negative."""
    with open(path, "r+b") as f:
        f.seek(at, os.SEEK_END if at < 0 else os.SEEK_SET)
        byte = f.read(1)[0]
        f.seek(-1, os.SEEK_CUR)
        f.write(bytes([byte ^ 4]))


def find(path, text):
    return path.read_bytes().rindex(text)


class Corrupt(SystemTest):
    def call(self, i, *words, status=0, name="qctl", **options):
        done = subprocess.run([name, *words], executable=BIN / "qctl", capture_output=True, text=True, errors="replace",
                              check=False, env=i.environment(), **options)
        self.assertEqual(done.returncode, status, f"{words}: {done.stdout}{done.stderr}")
        return done

    def corrupt(self, harm, count=1, whole=0, sender="sender@test.example", conf=HOUR):
        """An instance, and its messages that were damaged while it was stopped, beside others."""
        i = self.running(queues=1, conf=conf)
        i.stop()
        for n in range(count):
            i.inject(HELLO, f"alice{n}@test.example", sender=sender)
        for path in i.files("incoming"):
            harm(path)
        for n in range(whole):
            i.inject(HELLO, f"bob{n}@test.example", sender=sender)
        i.start()
        wait(lambda: len(i.files("corrupt")) == count, 30, what="the files in corrupt/")
        return i

    def corrupt_id(self, i):
        rows = self.call(i, "list", "state=corrupt").stdout.splitlines()
        return rows[1].split()[0]

    def content(self, path):
        flip(path, find(path, b"hello there"))

    def test_D44_damaged_content_is_explained_shown_and_deleted(self):
        i = self.corrupt(self.content)
        name = self.corrupt_id(i)
        line = (f"    Damaged: {WHY}. It is not delivered. `qctl show --content {name}` prints it; "
                f"`qctl release --force {name}` delivers it as it is; `qctl delete {name}` removes it.\n")
        self.assertIn(line, self.call(i, "explain", name).stdout)
        self.assertRegex(i.log(), rf"ALERT: .*damaged \({WHY}\): moved to corrupt/")
        for program, word in (("qctl", "list"), ("mailq", None), ("postqueue", "-p")):
            listed = self.call(i, *([word] if word else []), name=program).stdout
            self.assertIn(name, listed)
            self.assertIn("(damaged: `qctl explain' says which check fails)", listed)
        self.assertIn('"queue_name": "corrupt"', self.call(i, "-j", name="postqueue").stdout)
        shown = self.call(i, "show", "--content", name).stdout
        self.assertIn(f"Damaged: {WHY}\n", shown)
        self.assertIn("Recipient (pending): <alice0@test.example>", shown)
        self.assertIn("lello there\n", shown)
        self.call(i, "release", name, status=75)
        self.assertEqual(len(i.files("corrupt")), 1, "a release without --force leaves it")
        i.stop()
        self.assertIn(line, self.call(i, "explain", name).stdout, "after a restart, and while nothing runs")
        i.start()
        self.assertIn("Deleted: 1 message", self.call(i, "delete", name).stderr)
        self.assertEqual((i.files("corrupt"), len(i.files("deleted"))), ([], 1))
        self.call(i, "undelete", name)
        self.assertEqual(len(i.files("hold")), 1)
        i.stop()

    def test_D44_release_delivers_content_as_it_is(self):
        i = self.corrupt(self.content)
        self.assertIn("Released: 1 message", self.call(i, "release", "--force", self.corrupt_id(i)).stderr)
        [got] = i.wait_delivered("alice0", 1)
        self.assertIn(b"lello there", got.read_bytes())
        i.wait_empty()
        self.assertEqual(i.files("corrupt"), [])
        i.stop()

    def test_D44_release_with_a_damaged_envelope(self):
        """A sender that can be read, and is not the one that was accepted."""
        i = self.corrupt(lambda path: flip(path, find(path, b"sender@test.example")))
        name = self.corrupt_id(i)
        self.assertIn("Damaged: checksum of sender and recipients differs", self.call(i, "explain", name).stdout)
        self.call(i, "release", "--force", name)
        i.wait_delivered("alice0", 1)
        i.stop()

    def test_D44_without_a_trailer(self):
        i = self.corrupt(lambda path: os.truncate(path, path.stat().st_size - 9))
        name = self.corrupt_id(i)
        said = self.call(i, "explain", name).stdout
        self.assertRegex(said, rf"Damaged: .+\. It is not delivered\. `qctl show --content {name}` prints it; "
                         rf"`qctl delete {name}` removes it\.")
        self.assertIn("hello there\n", self.call(i, "show", "--content", name).stdout)
        done = self.call(i, "release", "--force", name, status=75)
        self.assertIn(f"{name}: is too damaged to be delivered", done.stderr)
        self.assertEqual(len(i.files("corrupt")), 1)
        self.call(i, "-d", name, name="postsuper")
        self.assertEqual(i.files("corrupt"), [])
        said = self.call(i, "undelete", name).stderr
        self.assertIn("qctl: 1 message is damaged: in corrupt/ again, not on hold\n", said)
        self.assertEqual((len(i.files("corrupt")), i.files("hold")), (1, []), "what is damaged is not held")
        wait(lambda: (i.page(1)["corrupt"], i.page(1)["hold"]) == (1, 0), what="the figures of the page")
        i.stop()
        self.call(i, "delete", name)
        self.assertEqual(i.files("corrupt"), [], "while nothing runs")

    def test_D44_a_file_that_is_not_named_by_its_inode(self):
        """Fewer than half, so the queue runs: nothing is damaged, and all is released."""
        def rename(path):
            path.rename(path.with_name(str(int(path.name) + 23 * 7919)))
        i = self.corrupt(rename, count=2, whole=3)
        said = self.call(i, "explain", "state=corrupt").stdout
        self.assertEqual(len(re.findall(r"Damaged: not named by its inode\. It is not delivered\.", said)), 2, said)
        self.assertIn("Released: 2 messages", self.call(i, "release", "--force", "state=corrupt", "--yes").stderr)
        i.wait_delivered("alice0", 1)
        i.wait_delivered("alice1", 1)
        i.stop()

    def test_D44_the_sender_is_told_once(self):
        i = self.corrupt(self.content, sender="carol@test.example", conf=WARNED)
        [warning] = i.wait_delivered("carol", 1)
        text = warning.read_text(errors="replace")
        self.assertIn("Subject: Delayed Mail (damaged, waits for the administrator)", text)
        self.assertIn("Action: delayed", text)
        self.assertRegex(text, r"Final-Recipient: rfc822; ?alice0@test\.example")
        self.assertNotIn("Will-Retry-Until", text)
        i.wait_empty()
        i.stop()
        i.start()
        i.inject(HELLO, "last@test.example")
        i.wait_delivered("last", 1)
        i.flush()
        wait(lambda: i.log_has("retry everything|flush"), 20, what="the flush, which walks corrupt/")
        i.stop()
        self.assertEqual(len(i.maildir("carol")), 1)

    def test_D44_no_word_to_a_sender_that_may_be_another(self):
        i = self.corrupt(lambda path: flip(path, find(path, b"sender@test.example")), conf=WARNED)
        i.inject(HELLO, "last@test.example")
        i.wait_delivered("last", 1)
        i.stop()
        self.assertFalse(i.log_has("notification"))

    def test_D44_all_does_not_touch_it(self):
        i = self.corrupt(self.content)
        self.call(i, "delete", "ALL", "--yes")
        self.call(i, "-d", "ALL", name="postsuper")
        self.assertEqual(len(i.files("corrupt")), 1)
        i.stop()

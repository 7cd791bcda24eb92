"""F and A rows: configuration and arguments, as an operator meets them."""
import contextlib
import os
import re
import shutil
import signal
import subprocess

from case import SystemTest, needs_root
from instance import AS_ROOT, BIN, HANG, USERS, wait

HELLO = b"Subject: hello\n\nhello\n"
PROGRAMS = ("qscheduler", "queue-inject", "setqload", "qtop", "qctl", "qsim", "queue-send", "todo-proc",
            "deliver-local", "deliver-smtp")


class Configuration(SystemTest):
    def judged(self, i, text, status=100):
        i.conf_file.write_bytes(text if isinstance(text, bytes) else text.encode())
        done = subprocess.run([BIN / "qscheduler", "--check", i.conf_file], capture_output=True,
                              text=True, check=False, env=i.environment(), errors="replace")
        self.assertEqual(done.returncode, status, f"{text[:60]!r}: {done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def test_check_tells_where_queues_will_lie(self):
        i = self.instance(queues=3)
        base = f"/dev/shm/{i.name}.nothing"  # there is none yet
        env = i.environment() | {"QUEUE_BASE": base}
        done = subprocess.run([BIN / "qscheduler", "--check", i.conf_file], capture_output=True, text=True,
                              check=False, env=env)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, f"qscheduler: warning: {base}: queue 1: its file system \\S+ at /dev/shm is in "
                                      "memory: accepted mail does not survive a loss of power\n")

    def test_F2_F3_F4_wrong_values_name_file_line_parameter(self):
        i = self.instance()
        base = f"queue_base = {i.base}\n"
        for line in ("queue_count =", "queue_count = -1", "queue_count = 2147483648",
                     "queue_count = 9223372036854775808", "queue_count = 10x", "queue_count = 0x10",
                     "queue_count = 1.5", "queue_count = 0", "queue_count = 21\nqueue_max = 20",
                     "queue_start = 4095", "minimal_backoff_time = 2h\nmaximal_backoff_time = 1h",
                     "no_such_parameter = 1", "queue_count = 1\nqueue_count = 2",
                     "queue_base_x", "queue_base = relative/path",
                     "default_destination_concurrency_positive_feedback = 2",
                     "default_destination_concurrency_negative_feedback = 1/concurrence"):
            said = self.judged(i, base + line + "\n" if "queue_base = r" not in line else line + "\n")
            self.assertIn(str(i.conf_file), said, line)
            self.assertRegex(said, r":\d+: ", line)
            name = line.split(" ")[0]
            self.assertTrue(name in said or name.startswith("queue_base_x") or "queue_" in said
                            or "backoff" in said, f"{line}: {said}")

    # mutation: qscheduler/supervisor/command.c, load() calls conf_load() always; it calls no files_check_lines();
    # files.c, files_check_pipes() gives wrong_lines_go_on() NULL.
    def test_check_names_each_wrong_line(self):
        i = self.instance(programs="")
        good = i.conf_file.read_text()
        n = good.count("\n")
        said = self.judged(i, good + "nonsense = 1\nno value\nhopcount_limit = many\n").splitlines()
        self.assertEqual([line.split(": ")[:2] for line in said],
                         [["qscheduler", f"{i.conf_file}:{n + k}"] for k in (1, 2, 3)])
        said = self.judged(i, good + "nonsense = 1\n" * 25).splitlines()
        self.assertEqual((len(said), said[-1]), (21, "qscheduler: 5 more wrong lines"))
        i.routing_file.write_text("a nowhere\nb local\nc\nb smtp\n")
        said = self.judged(i, good).splitlines()
        self.assertEqual([line.split(": ")[1] for line in said], [f"{i.routing_file}:{k}" for k in (1, 3, 4)])
        i.routing_file.write_text("b pipe:x\na pipe:y\n* local\n")
        said = self.judged(i, good).splitlines()
        self.assertEqual([line.split(": ")[1] for line in said], [f"{i.routing_file}:{k}" for k in (1, 2)])

    def test_F4_forms_that_are_read(self):
        i = self.instance()
        users = "".join(f"{k} = {v}\n" for k, v in USERS.items()) if AS_ROOT else ""
        good = f"{users}queue_base = {i.base}\nqueue_count = 2"
        self.judged(i, good, 0)
        self.judged(i, good.replace("\n", "\r\n") + "\r\n", 0)
        self.judged(i, "# comment\n\n  \t\n" + good, 0)
        self.judged(i, b"\xef\xbb\xbf" + good.encode())
        self.judged(i, good + "\nqueue_max = 1\0")
        self.judged(i, good + "\n# " + "x" * 1000000)

    def test_F1_not_a_readable_file(self):
        i = self.instance()
        for path in (i.dir / "missing", i.dir, "/dev/null/x"):
            done = subprocess.run([BIN / "qscheduler", "-s", "-c", path], capture_output=True,
                                  text=True, check=False, timeout=HANG, env=i.environment())
            self.assertEqual(done.returncode, 100, path)
            self.assertIn(str(path), done.stderr)
        os.mkfifo(i.dir / "fifo")
        done = subprocess.run([BIN / "qscheduler", "-s", "-c", i.dir / "fifo"], capture_output=True,
                              check=False, timeout=HANG, env=i.environment())
        self.assertEqual(done.returncode, 100)

    def test_F1_reload_keeps_the_old_when_the_new_is_wrong(self):
        i = self.running()
        i.conf_file.write_text(i.conf_file.read_text() + "nonsense = 1\n")
        i.reload()
        wait(lambda: i.log_has(r"nonsense"), what="the complaint")
        self.assertTrue(i.log_has(rf"{i.conf_file}:\d+: nonsense"))
        # Submission reads the file itself, and says so; what runs goes on.
        i.write_conf()
        i.inject(HELLO, "alice@test.example")
        i.wait_delivered("alice", 1)
        i.stop()

    def test_F9_no_mail_into_a_base_that_the_file_may_not_mean(self):
        """mutation: locate_base() asks the next source where base_of_file() fails."""
        i = self.running()
        good = i.conf_file.read_text()
        rest = "".join(line for line in good.splitlines(True) if not line.startswith("queue_base"))
        control = i.conf_file.parent / "queue_base"  # a base that is served, and not the one that is meant
        control.write_text(f"{i.base}\n")
        for lines in ("queue_base = srv/mail/queue\n", "queue_base = /a\nqueue_base = /a\n", "queue_base /a\n"):
            i.conf_file.write_text(rest + lines)
            for program, code in (("queue-inject", 75), ("qctl", 78), ("qtop", 78)):
                words = {"queue-inject": ["-f", "a@x.example", "b@x.example"], "qctl": ["list"],
                         "qtop": ["-b", "-n", "1"]}[program]
                done = subprocess.run([BIN / program, *words], input="\n", capture_output=True, text=True, check=False,
                                      timeout=HANG, env=i.environment())
                self.assertEqual(done.returncode, code, f"{program}: {lines}: {done.stdout}{done.stderr}")
                self.assertIn(str(i.conf_file), done.stderr, program)
        control.unlink()
        i.conf_file.write_text(good)
        i.stop()

    def test_F1_reload_names_what_needs_a_restart(self):
        """mutation: answer_askers() answers "configuration reloaded" alone."""
        i = self.running()
        i.write_conf(queue_max="9")
        done = subprocess.run([BIN / "setqload", "--reload"], capture_output=True, text=True, check=False,
                              timeout=HANG, env=i.environment())
        self.assertEqual((done.returncode, done.stdout),
                         (0, "configuration reloaded; needs a restart: queue_max\n"), done.stderr)
        i.write_conf()
        i.stop()

    def test_F9_a_wrong_file_does_not_stop_a_restart(self):
        """mutation: load_conf() does not ask for the one that was in force."""
        i = self.running(conf={"hopcount_limit": "77"})
        for end in (i.kill, i.stop):
            i.conf_file.write_text(i.conf_file.read_text() + "nonsense = 1\n")
            end()
            wait(lambda: not i.pids(), what="the end of the children")
            i.start()
            wait(lambda: i.log_has(rf"ALERT: {i.conf_file}:\d+: nonsense: .*{i.base}/conf, is used"), what="the alert")
            self.assertIn("hopcount_limit = 77", (i.base / "conf").read_text())
            done = subprocess.run([BIN / "qscheduler", "--check", i.conf_file], capture_output=True,
                                  text=True, check=False, env=i.environment())
            self.assertEqual(done.returncode, 100, done.stdout)
            self.assertIn("nonsense", done.stderr)
            i.log_file.unlink()
            i.write_conf(hopcount_limit="78")
            i.reload()
            wait(lambda: "hopcount_limit = 78" in (i.base / "conf").read_text(), what="the right one in force")
            i.write_conf(hopcount_limit="77")
            i.reload()
            wait(lambda: "hopcount_limit = 77" in (i.base / "conf").read_text(), what="the first again")
        i.inject(HELLO, "alice@test.example")
        i.wait_delivered("alice", 1)
        i.stop()

    def test_F9_wrong_files_of_children_do_not_stop_a_restart(self):
        """mutation: inforce_write() names the operator's routing and programs."""
        i = self.instance(routing="x.example discard\n* local\n", programs=f"keep {USERS['maildir_user'] if AS_ROOT else '-'} /bin/cat\n")
        i.start()
        for path in (i.routing_file, i.programs_file):
            good = path.read_text()
            path.write_text("nothing: that is known\n")
            for pid in i.pids("queue-send") + i.pids("deliver-local") + i.pids("todo-proc"):
                with contextlib.suppress(ProcessLookupError):  # it followed another
                    os.kill(pid, signal.SIGKILL)
            i.inject(HELLO, "alice@test.example", "bob@x.example")
            i.wait_empty()  # by those that were started again
            i.kill()
            wait(lambda: not i.pids(), what="the end of the children")
            i.start()
            self.assertTrue(i.log_has(rf"ALERT: {path}:1: .*{i.base}/conf, is used"), i.log()[-2000:])
            i.inject(HELLO, "alice@test.example", "bob@x.example")
            i.wait_empty()
            path.write_text(good)
            before = len(i.log())
            i.reload()
            wait(lambda n=before: "qscheduler: configuration reloaded" in i.log()[n:], what="the operator's files in force")
        self.assertEqual(len(i.maildir("alice")), 4)
        self.assertFalse(i.maildir("bob"))
        i.stop()

    def test_F9_files_in_force_are_read_by_those_who_could_before(self):
        """mutation: put_copy() leaves the mode as it is."""
        i = self.instance()
        os.chmod(i.routing_file, 0o640)
        if AS_ROOT:
            shutil.chown(i.routing_file, "root", USERS["qmail_group"])
        os.chmod(i.programs_file, 0o644)
        i.start()
        modes = [(i.base / name).stat().st_mode & 0o777 for name in ("routing", "programs")]
        self.assertEqual(modes, [0o640, 0o644] if AS_ROOT else [0o600, 0o600])
        i.routing_file.unlink()  # no file has a meaning, too
        i.reload()
        wait(lambda: re.search(rf"^routing_file = {i.routing_file}\b", (i.base / "conf").read_text(), re.M),
             what="no routing file in force")
        i.inject(HELLO, "alice@test.example")
        i.wait_delivered("alice", 1)
        i.stop()

    def test_F9_a_file_that_names_an_unknown_user_does_not_stop_a_restart(self):
        i = self.running()
        i.stop()
        i.write_conf(**({"qmailq_user": "nosuchuser"} if AS_ROOT else {"queue_max": "none"}))
        i.start()
        self.assertTrue(i.log_has("ALERT: .*(nosuchuser|queue_max)"), i.log())
        i.stop()

    @needs_root
    def test_F9_what_others_may_write_is_not_taken_for_the_one_in_force(self):
        i = self.running()
        i.stop()
        (i.base / "conf").chmod(0o666)
        i.write_conf(nonsense="1")
        done = subprocess.run([BIN / "qscheduler", "-s", "-c", i.conf_file], capture_output=True,
                              text=True, check=False, timeout=HANG, env=i.environment())
        self.assertEqual(done.returncode, 100)

    def test_F1_files_of_children_are_judged_before_the_start(self):
        i = self.instance()
        for path, text, line in ((i.routing_file, "* local\nx.example nowhere\n", 2),
                                 (i.routing_file, "\n\n* local local local\n", 3),
                                 (i.programs_file, "one\n", 1),
                                 (i.programs_file, "a user /bin/x\na user /bin/y\n", 2)):
            good = path.read_text()
            path.write_text(text)
            for command in (("-s",), ("--check",)):
                done = subprocess.run([BIN / "qscheduler", *command, "-c", i.conf_file], check=False,
                                      capture_output=True, text=True, timeout=HANG, env=i.environment())
                self.assertEqual(done.returncode, 100, f"{command} {text!r}: {done.stderr}")
                self.assertIn(f"{path}:{line}: ", done.stderr)
            path.write_text(good)
        self.assertEqual([], i.pids())
        self.assertEqual([], i.ipc_objects())
        self.assertFalse(i.base.exists())
        for path in (i.routing_file, i.programs_file):
            path.unlink()
        i.start()
        i.stop()

    # mutation: qscheduler/supervisor/files.c, files_check(), judge_map() and files_check_lines() without named().
    def test_F1_an_error_of_a_file_names_its_parameter(self):
        i = self.instance()
        lines = i.conf_file.read_text().splitlines()
        (i.dir / "directory").mkdir(0o700)
        for name in ("routing_file", "programs_file", "alias_file", "sender_dependent_relayhost", "sender_rewrite",
                     "smtp_tls_policy_file", "smtp_password_file"):
            rest = "".join(f"{line}\n" for line in lines if not line.startswith(f"{name} ="))
            said = f"qscheduler: {i.conf_file}:{rest.count(chr(10)) + 1}: {name}: {i.dir}"
            self.assertEqual(self.judged(i, f"{rest}{name} = {i.dir}/directory"), f"{said}/directory: is a directory\n")
            done = subprocess.run([BIN / "qscheduler", "-s", "-c", i.conf_file], check=False, capture_output=True,
                                  text=True, timeout=HANG, env=i.environment())
            self.assertEqual((done.returncode, done.stderr), (100, f"{said}/directory: is a directory\n"))
            if name not in ("routing_file", "programs_file", "alias_file"):
                self.assertEqual(self.judged(i, f"{rest}{name} = {i.dir}/missing"),
                                 f"{said}/missing: No such file or directory; create the file (it may be empty) or "
                                 "remove the parameter\n")

    @needs_root
    def test_F1_a_routing_file_that_only_root_may_read(self):
        i = self.instance()
        i.routing_file.chmod(0o600)
        done = subprocess.run([BIN / "qscheduler", "-s", "-c", i.conf_file], capture_output=True,
                              text=True, check=False, timeout=HANG, env=i.environment())
        self.assertEqual(done.returncode, 100)
        self.assertIn(f"routing_file: {i.routing_file}: cannot be read by user {USERS['qmailq_user']}", done.stderr)

    def test_F1_reload_with_a_wrong_routing_file_changes_nothing(self):
        i = self.running()
        i.routing_file.write_text("* local\n* nowhere\n")
        i.write_conf(hopcount_limit="77")
        i.reload()
        wait(lambda: i.log_has(rf"qscheduler: error: reload: {i.routing_file}:2: .*old configuration"),
             what="the complaint")
        i.inject(HELLO, "alice@test.example")
        i.wait_delivered("alice", 1)
        self.assertFalse(i.log_has("configuration reloaded"))
        i.stop()

    def test_F7_routing_reload(self):
        i = self.running(routing='* error:"5.1.1 closed"\n', conf={"log_level": "debug"})
        i.inject(HELLO, "alice@test.example")
        wait(lambda: i.log_has(r"to=<alice@test\.example>.*status=bounced"), what="the first one refused")
        i.wait_empty()
        i.routing_file.write_text("* local\n")
        i.reload()
        wait(lambda: i.log_has("reload"), what="the reload")

        def now_local():
            i.inject(HELLO, "bob@test.example")
            return i.maildir("bob")
        wait(now_local, what="mail by the new rules")
        # Other than what holds without a file, so that one sees which is in force.
        i.routing_file.write_text('* local\nshut.example error:"5.1.1 shut"\n')
        i.reload()

        def shut():
            i.inject(HELLO, "x@shut.example")
            return i.log_has(r"to=<x@shut\.example>.*status=bounced")
        wait(shut, what="the third set of rules")
        wait(lambda: i.log().count("configuration reloaded") == 2 * (1 + 4 * 2), what="two reloads by all")
        i.routing_file.write_text("* nowhere\n")
        i.reload()
        wait(lambda: i.log_has(rf"{i.routing_file}:1"), what="the complaint with file and line")
        for n in range(4):
            i.inject(HELLO, "carol@test.example", f"y{n}@shut.example")
        i.wait_delivered("carol", 4)
        wait(lambda: all(i.log_has(rf"to=<y{n}@shut\.example>.*status=bounced") for n in range(4)),
             what="the old rules")
        i.stop()

    def test_F3_F5_F6_refused_at_start(self):
        for change, word in (({"queue_base": "relative"}, "queue_base"),
                             ({"queue_count": "0"}, "queue_count"),
                             ({"queue_count": "30", "queue_max": "20"}, "queue_count"),
                             ({"qmails_user": "nobody-of-that-name"}, "nobody-of-that-name")):
            if word.startswith("nobody") and os.geteuid() != 0:
                continue  # users are looked at when it is started as root
            i = self.instance(conf=change)
            done = subprocess.run([BIN / "qscheduler", "-s", "-c", i.conf_file], capture_output=True,
                                  text=True, check=False, timeout=HANG, env=i.environment())
            self.assertEqual(done.returncode, 100, done.stderr)
            self.assertIn(word, done.stderr)

    def test_F5_queue_base_in_a_directory_that_anybody_may_change(self):
        open_to_all = self.instance().dir / "open"
        open_to_all.mkdir()
        os.chmod(open_to_all, 0o777)
        i = self.instance(conf={"queue_base": open_to_all / "queue"})
        done = subprocess.run([BIN / "qscheduler", "-s", "-c", i.conf_file], capture_output=True,
                              text=True, check=False, timeout=HANG, env=i.environment())
        self.assertEqual(done.returncode, 100, done.stderr)
        self.assertIn(str(open_to_all / "queue"), done.stderr)

    def test_number_of_queues_where_nobody_says(self):
        """One for each two processor cores, two at least; QUEUE_COUNT outranks that."""
        i = self.instance()
        conf = i.dir / "few.conf"
        conf.write_text(re.sub(r"^queue_(count|max) .*\n", "", i.conf_file.read_text(), flags=re.M))

        def count(**variables):
            done = subprocess.run([BIN / "qscheduler", "--dump", "-c", conf], capture_output=True, text=True,
                                  check=True, env=i.environment() | variables)
            return re.search(r"^queue_count = (.*)$", done.stdout, re.M).group(1)
        cores = len(os.sched_getaffinity(0))
        self.assertEqual(count(), f"{min(20, max(2, cores // 2))}  # default")
        self.assertEqual(count(QUEUE_COUNT="5"), "5  # environment QUEUE_COUNT")

    def test_dump_tells_where_a_value_comes_from(self):
        i = self.instance()
        done = subprocess.run([BIN / "qscheduler", "--dump", "-c", i.conf_file], capture_output=True,
                              text=True, check=True, env=i.environment() | {"QUEUE_COUNT": "3"})
        self.assertRegex(done.stdout, r"queue_count = 3\s+# .*environment.*QUEUE_COUNT")
        self.assertRegex(done.stdout, rf"scan_interval = 1s\s+# .*{i.conf_file}:\d+")
        self.assertRegex(done.stdout, r"error_interval = 5s\s+# .*default")


class Arguments(SystemTest):
    def test_A1_of_every_program(self):
        i = self.instance()
        for program in PROGRAMS:
            for words in (["--no-such-option"], ["-c"], ["--"] + ["x"] * 50000, ["x" * 128000]):
                done = subprocess.run([BIN / program, *words], capture_output=True, check=False,
                                      stdin=subprocess.DEVNULL, timeout=HANG, env=i.environment())
                self.assertIn(done.returncode, (1, 64, 65, 69, 75, 77, 100, 111),
                              f"{program} {words[0][:20]}: {done.stderr[-500:]!r}")
                self.assertTrue(done.stderr, program)
                self.assertLess(len(done.stderr), 20000, program)
        self.assertEqual(i.files(), [])

    def test_help_and_version(self):
        for program in ("qscheduler", "queue-inject", "setqload", "qtop", "qctl"):
            for word in ("--help", "--version"):
                done = subprocess.run([BIN / program, word], capture_output=True, check=False, timeout=HANG)
                self.assertEqual(done.returncode, 0, f"{program} {word}")
                self.assertTrue(done.stdout, f"{program} {word}")
                if word == "--help":
                    self.assertRegex(done.stdout, rb"\n  --version +show the version\n", program)

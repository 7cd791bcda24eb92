#!/usr/bin/python3 -B
"""Our sendmail beside Postfix's, on the same input: a row for each case, and
every difference explained.

    sendmail-beside.py [--write] [NAME...]     as root; POSTFIX_ROOT: a bare
                                               Debian root with its package

What came out is compared with tests/golden/sendmail; --write writes that file
and the tables of docs/SENDMAIL.md. NAME chooses cases.
"""
import os
import subprocess
import sys

import cases
import table

IN_NAMESPACE = "SENDMAIL_BESIDE_INSIDE"


def inside():
    """In namespaces that go with this process: mounts, processes, network."""
    if os.environ.get(IN_NAMESPACE):
        subprocess.run(["mount", "--make-rprivate", "/"], check=True)
        subprocess.run(["hostname", "host"], check=True)
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        return
    os.execvpe("unshare", ["unshare", "--mount", "--pid", "--mount-proc", "--net", "--ipc", "--uts", "--fork",
                           "--kill-child", sys.executable, "-B", *sys.argv], os.environ | {IN_NAMESPACE: "1"})


def mount_root(root):
    for words in (["-t", "proc", "proc", f"{root}/proc"], ["--rbind", "/dev", f"{root}/dev"]):
        subprocess.run(["mount", *words], check=True)


def main():
    root = os.environ.get("POSTFIX_ROOT", "")
    if os.geteuid() != 0 or not os.path.exists(f"{root}/usr/sbin/postfix"):
        print("SKIP sendmail beside Postfix: needs root, and POSTFIX_ROOT with Debian's package postfix")
        return 0
    inside()
    mount_root(root)
    import ours  # pylint: disable=import-outside-toplevel
    import postfix  # pylint: disable=import-outside-toplevel
    chosen = [w for w in sys.argv[1:] if w != "--write"]
    rows, us, them = [], ours.Ours(), postfix.Postfix(root)
    try:
        for case in cases.cases:
            if isinstance(case, str) or (chosen and case.name not in chosen):
                continue
            rows.append(table.Row(case, us.run(case), them.run(case)))
            if chosen:
                print(rows[-1].text())
    finally:
        us.close()
        them.stop()
    if "--write" in sys.argv:
        table.write(rows)
    return table.judge(rows)


if __name__ == "__main__":
    sys.exit(main())

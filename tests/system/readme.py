"""Lines of README.md, as the shell that an operator types them into has them."""
import subprocess

from instance import ROOT


def smarthost(i, port, **changes):
    """Run the five lines for a smarthost that wants a password. Only what is
    the operator's own differs: host and port, the directory of the
    configuration, root, and words of `changes`."""
    text = (ROOT / "README.md").read_text()
    [lines] = [block.lstrip("\n") for block in text.split("```")[1::2] if "smtp_password_file = " in block]
    assert len(lines.splitlines()) == 5, lines
    for was, now in (("smtp.provider.example]:587", f"localhost]:{port}"), ("/etc/qscheduler", str(i.dir)),
                     ("sudo ", ""), *changes.items()):
        assert was in lines, was
        lines = lines.replace(was, now)
    done = subprocess.run(["/bin/sh", "-eu"], input=lines, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr

"""A mail server of Debian's for the demo: Postfix, which takes mail over TLS.

The packages and the cell are those of `make check-peers` (tests/peers), so
nothing is installed, and root is needed. What it takes lies in maildirs that
belong to the user of the demo.
"""
import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "peers"))

DOMAIN = "debian.example"
BOXES = 100


def start(uid):
    """The running server; packages.Unavailable says why there is none."""
    import cell
    import postfix
    from certificates import Certificates
    cell.can_run()
    server = postfix.Receiver(0, {
        "virtual_mailbox_domains": DOMAIN, "virtual_minimum_uid": "1",
        "virtual_uid_maps": f"static:{uid}", "virtual_gid_maps": f"static:{uid}",
    })
    try:
        names = [f"s{n:02d}" for n in range(BOXES)]
        server.write("etc/postfix/boxes", "".join(f"{name}@{DOMAIN} {name}/\n" for name in names))
        os.chown(server.root / "mail", uid, uid)
        authority = Certificates(server.root / "etc/tls").authority
        server.listen({"good": "/etc/tls/good"}).run()
    except BaseException:
        server.destroy()
        raise
    server.told = json.dumps({"port": server.ports["good"], "mail": str(server.root / "mail"),
                              "authority": str(authority)})
    return server

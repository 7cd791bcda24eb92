"""A mailbox of a user's own that never answers: a FUSE file system whose
requests are read and left lying, so that who waits for one cannot be killed.
Mounted by root in the user's name, as fusermount3 would."""
import contextlib
import ctypes
import os
import struct
import threading

INIT = 26
REQUEST = struct.Struct("=IIQQIIII")
MS_NOSUID, MS_NODEV = 2, 4


class Hanging:
    def __init__(self, where, uid):
        self.where = where
        self.waiting = 0
        self._fuse = os.open("/dev/fuse", os.O_RDWR)
        options = f"fd={self._fuse},rootmode=40000,user_id={uid},group_id={uid}"
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mount(b"hanging", os.fsencode(where), b"fuse", MS_NOSUID | MS_NODEV, options.encode()) < 0:
            raise OSError(ctypes.get_errno(), "mount")
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        with contextlib.suppress(OSError):
            while True:
                request = os.read(self._fuse, 1 << 17)
                _, opcode, unique, *_ = REQUEST.unpack_from(request)
                if opcode == INIT:
                    body = struct.pack("=IIIIHHIIHHI7I", 7, 31, 0, 0, 16, 12, 1 << 16, 1, 0, 0, 0, *[0] * 7)
                    os.write(self._fuse, struct.pack("=IiQ", 16 + len(body), 0, unique) + body)
                else:
                    self.waiting += 1

    def close(self):
        """Waiting connections are refused."""
        libc = ctypes.CDLL(None, use_errno=True)
        libc.umount2(os.fsencode(self.where), 1 | 2)  # MNT_FORCE | MNT_DETACH
        os.close(self._fuse)

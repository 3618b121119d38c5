"""Kernels of the executed pages: forks of one process that has imported the package, so that no page begins anew."""

import atexit
import json
import math
import os
import signal
import socket
import subprocess
import sys
import threading
from multiprocessing import get_context
from pathlib import Path
from select import select
from tempfile import TemporaryDirectory


def start(folder):
    """Start the process whose forks the kernels are, and let Jupyter find them; it ends with this one."""
    if not hasattr(os, "fork"):
        return
    serving = [sys.executable, __file__]
    server = subprocess.Popen(serving, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(server.communicate)  # closes its input, and waits
    address = server.stdout.readline().strip()
    spec = {"argv": [*serving, address, "{connection_file}"], "display_name": "Python 3", "language": "python"}
    file = folder / "kernels" / "python3" / "kernel.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(spec), encoding="utf-8")
    os.environ["JUPYTER_PATH"] = os.pathsep.join(filter(None, [str(folder), os.environ.get("JUPYTER_PATH")]))


def serve():
    """Fork a kernel for each page, until the input closes."""
    with TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as server:
        server.bind(str(Path(folder) / "kernels"))
        server.listen()
        print(server.getsockname(), flush=True)
        sys.stdout = sys.stderr
        ready()  # while the pages of the gallery are prepared, which keeps one processor busy
        while sys.stdin not in select([sys.stdin, server], [], [])[0]:
            page, _ = server.accept()
            get_context("fork").Process(target=_become, args=[page]).start()
            page.close()


def ready():
    """Import what pages need, and use it once."""
    import ipykernel.kernelapp  # noqa: F401

    from symcavity.derivations import gardner
    from symcavity.evaluate import progress

    progress.QUIET = math.inf  # no bar on a page, however slow the machine is
    gardner.problem.cavity().solve(gardner.values)


def _become(page):
    """Be the kernel of a page, as long as there is someone who asked for it."""
    from ipykernel.kernelapp import launch_new_instance

    place, environment, arguments = json.loads(page.makefile(encoding="utf-8").readline())
    os.chdir(place)
    os.environ.clear()
    os.environ.update(environment)
    threading.Thread(target=_end_with, args=[page], daemon=True).start()
    launch_new_instance(["-f", *arguments, "--log-level=ERROR"])


def _end_with(page):
    page.recv(1)  # nothing is sent: it returns when the other end is gone
    os._exit(1)


def ask(address, *arguments):
    """Ask for a kernel, and last as long as it does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Jupyter interrupts what it ends: the kernel is told, and ends this
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(address)
        server.sendall(json.dumps([str(Path.cwd()), dict(os.environ), arguments]).encode() + b"\n")
        server.recv(1)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        ask(*sys.argv[1:])
    else:
        serve()

__all__ = ["start"]

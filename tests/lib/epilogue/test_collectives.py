"""Communication after outputs: the kernel stores, a function of the user's shares."""

import numpy as np
import pytest

from tilewright import epilogue
from tilewright.epilogue import EpilogueError, EVTPassBase, NoImplementationError, relu, sum

SHAPE = (2, 16, 8)
RANDOM = np.random.default_rng(1)
ACCUM, C = (RANDOM.integers(-3, 4, SHAPE).astype(np.float32) for _ in range(2))


class PassShareGradients(EVTPassBase):
    def call(self):
        for node in self.dag_ir.nodes_meta:
            if node.name.startswith("grad"):
                made = self.create_communication_node(f"{node.name}_allreduce", "allreduce", node.output_tensor)
                self.dag_ir.add_node(made)
                self.dag_ir.add_edge(node.name, made.name)


def function(accum, C):
    grad_bias = sum(accum, dim=(0, 1))
    grad = accum * C
    D = relu(accum) + C
    return D, grad_bias, grad


@pytest.fixture(autouse=True)
def on_the_emulator(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_TARGET", "emu")


def examples():
    return {
        "accum": ACCUM, "C": C, "D": np.zeros(SHAPE, np.float32), "grad_bias": np.zeros((1, 8), np.float32),
        "grad": np.zeros(SHAPE, np.float32),
    }  # fmt: skip


def compiled(fn=function, **options):
    return epilogue.compile(fn, examples(), additional_passes=[PassShareGradients], **options)


@pytest.mark.parametrize("in_place", [True, False])
def test_each_shared_output_goes_through_the_collective(in_place):
    seen = []

    def collective(node, tensor):
        seen.append((node.name, node.kind, node.scope, tensor.shape))
        if in_place:
            tensor *= 3
            return None
        return tensor * 3

    found = compiled(collective=collective)(accum=ACCUM, C=C)
    np.testing.assert_array_equal(found["grad_bias"], 3 * ACCUM.sum((0, 1))[None])
    np.testing.assert_array_equal(found["grad"], 3 * ACCUM * C)
    np.testing.assert_array_equal(found["D"], np.maximum(ACCUM, 0) + C)
    assert sorted(seen) == [
        ("grad_allreduce", "allreduce", "node", SHAPE), ("grad_bias_allreduce", "allreduce", "node", (1, 8)),
    ]  # fmt: skip


def test_tensors_of_the_caller_are_shared_too():
    mine = examples()
    kernel = compiled(collective=lambda node, tensor: tensor + 1)
    for _ in range(2):
        found = kernel(**mine)
        assert found["grad"] is mine["grad"]
        np.testing.assert_array_equal(mine["grad"], ACCUM * C + 1)


def test_a_participant_without_elements_takes_part():
    """The others would wait for it for ever."""
    seen = []

    def collective(node, tensor):
        seen.append(node.name)
        tensor += 5

    nothing = np.zeros((2, 0, 8), np.float32)
    found = compiled(collective=collective)(accum=nothing, C=nothing)
    assert sorted(seen) == ["grad_allreduce", "grad_bias_allreduce"]
    np.testing.assert_array_equal(found["grad_bias"], np.full((1, 8), 5))
    assert found["grad"].shape == (2, 0, 8)


def test_without_a_collective():
    with pytest.raises(EpilogueError) as caught:
        compiled()
    assert caught.value.message == "The epilogue communicates in grad_allreduce, but no collective is given."
    assert "torch.distributed.all_reduce" in str(caught.value)


def test_values_inside_the_kernel():
    def inside(accum, C):
        grad = accum * C
        D = grad + 1
        return D

    with pytest.raises(NoImplementationError) as caught:
        compiled(inside, collective=lambda node, tensor: None)(accum=ACCUM, C=C)
    assert caught.value.message == "No kernel shares grad_allreduce between participants."
    assert "value" in str(caught.value) and "after a variable that is returned" in str(caught.value)

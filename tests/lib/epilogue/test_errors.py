"""What is wrong with an epilogue, in EVT's words, at the user's line."""

import numpy as np
import pytest

from tilewright import epilogue
from tilewright.base.errors import EpilogueError, EpilogueSyntaxError, NoImplementationError
from tilewright.epilogue import max, permute, relu, reshape, topk_softmax

SHAPE = (6, 512, 512)


def f16(*shape):
    return np.zeros(shape or SHAPE, np.float16)


def refused(kind, epilogue_function, examples, **options):
    """The error that tracing raises: its message, and its whole text."""
    with pytest.raises(kind) as caught:
        epilogue.trace(epilogue_function, examples, **options)
    return caught.value.message, str(caught.value)


def at(text, source):
    """Whether the text shows the line of this file that has `source`."""
    return f"{__file__}:" in text and source in text.split("hint:")[0]


# EVT's own rows


def test_root_not_d():
    def evt_root_not_d(accum, alpha):
        F = accum * alpha
        return F

    examples = {"accum": f16(), "alpha": 1.2, "F": f16()}
    message, text = refused(SyntaxError, evt_root_not_d, examples, cc=90)
    assert message == (
        "Sm90+ EVT requires the epilogue to have a returned tensor D, "
        "but the variable 'D' is not found in the return values."
    )
    assert at(text, "return F")
    assert epilogue.trace(evt_root_not_d, examples, cc=80).return_names == ("F",)


def test_no_accum():
    def evt_no_accum(alpha, C):
        D = alpha * C
        return D

    message, text = refused(SyntaxError, evt_no_accum, {"C": f16(), "alpha": 1.2, "D": f16()})
    assert message == "Cannot find 'accum' in the argument list."
    assert at(text, "def evt_no_accum(alpha, C):")


def test_too_much_shared_memory():
    def evt_too_much_shared_memory(accum, C1, C2, C3, C4, C5, C6, C7, C8):
        D1 = accum + C1
        D2 = D1 + C2
        D3 = D2 + C3
        D4 = D3 + C4
        D5 = D4 + C5
        D6 = D5 + C6
        D7 = D6 + C7
        D = D7 + C8
        return D, D1, D2, D3, D4, D5, D6, D7

    names = ["accum", "D", *(f"C{k}" for k in range(1, 9)), *(f"D{k}" for k in range(1, 8))]
    message, text = refused(
        RuntimeError,
        evt_too_much_shared_memory,
        {name: f16() for name in names},
        additional_passes=[epilogue.PassSharedMemoryBudget],
    )
    assert message == (
        "The epilogue consumes too much shared memory. No valid tile description is found in the generator."
    )
    # 8 loads and 8 stores of 64 x 128 halves.
    assert f"tile 64 x 128   {16 * 64 * 128 * 2} bytes of {227 * 1024}" in text


def test_not_ssa():
    def evt_redefine(accum, C, alpha):
        F = accum + C
        F = F * alpha
        D = F
        return D, F

    examples = {"accum": f16(), "C": f16(), "alpha": 1.5, "D": f16(), "F": f16()}
    message, text = refused(SyntaxError, evt_redefine, examples)
    assert message == "Variable 'F' cannot be defined twice."
    assert at(text, "F = F * alpha")


def test_an_augmented_assignment_defines_a_variable_again():
    def epilogue_function(accum):
        D = relu(accum)
        D += 1
        return D

    message, text = refused(SyntaxError, epilogue_function, {"accum": f16(), "D": f16()})
    assert message == "Variable 'D' cannot be defined twice."
    assert at(text, "D += 1")


def test_an_argument_is_not_assigned_to():
    def epilogue_function(accum, C):
        C = C + 1
        D = accum + C
        return D

    message, _ = refused(SyntaxError, epilogue_function, {"accum": f16(), "C": f16(), "D": f16()})
    assert message == "Variable 'C' cannot be defined twice."


def test_undefined():
    def evt_undefine(accum, alpha):
        F = accum + C  # noqa: F821
        D = F * alpha
        return D, F

    examples = {"accum": f16(), "alpha": 1.5, "D": f16(), "F": f16()}
    message, text = refused(SyntaxError, evt_undefine, examples)
    assert message == "Variable 'C' is undefined."
    assert at(text, "F = accum + C")


def test_a_variable_that_is_assigned_later_is_undefined():
    def epilogue_function(accum):
        D = accum + F  # noqa: F821
        F = accum  # noqa: F841
        return D

    message, _ = refused(SyntaxError, epilogue_function, {"accum": f16(), "D": f16()})
    assert message == "Variable 'F' is undefined."


@pytest.mark.parametrize("missing", ["C", "D", "accum"])
def test_missing_example(missing):
    def evt_missing_example_tensor(accum, C):
        D = accum + C
        return D

    examples = {name: f16() for name in ("accum", "C", "D") if name != missing}
    message, text = refused(RuntimeError, evt_missing_example_tensor, examples)
    assert message == f"Example input for {missing} is not provided."
    assert at(text, "return D" if missing == "D" else "def evt_missing_example_tensor(accum, C):")


def test_return_expression():
    def evt_return_expr(accum, C):
        return accum + C

    message, text = refused(SyntaxError, evt_return_expr, {"accum": f16(), "C": f16()})
    assert message == "Return value cannot be an expression"
    assert at(text, "return accum + C")
    assert "return a dict" in text


def test_return_of_two_expressions():
    def epilogue_function(accum, C):
        D = accum + C
        return D, D * 2

    message, _ = refused(SyntaxError, epilogue_function, {"accum": f16(), "C": f16(), "D": f16()})
    assert message == "Return value cannot be an expression"


def test_incompatible_shape():
    def evt_incompatible_shape(accum, C):
        D = accum + C
        return D

    examples = {"accum": f16(6, 256, 512), "C": f16(), "D": f16()}
    message, text = refused(RuntimeError, evt_incompatible_shape, examples)
    assert message == "Dimension mismatch between accum(6, 256, 512), C(6, 512, 512)."
    assert at(text, "D = accum + C")


def test_no_matching_impl():
    def evt_no_matching_impl(accum, bias):
        D = accum + reshape(permute(bias, indices=(1, 0)), new_shape=(512, 1))
        return D

    examples = {"accum": f16(6, 512, 256), "bias": f16(16, 32), "D": f16(6, 512, 256)}
    message, text = refused(NotImplementedError, evt_no_matching_impl, examples)
    assert message == "No matching op for node bias with stride (0, (1, 32), 0)."
    assert "hint:" in text


def test_invalid_store():
    def evt_invalid_store(accum):
        D = accum
        F = D + 1
        return D, F

    examples = {"accum": f16(), "D": f16(), "F": f16()}
    message, text = refused(RuntimeError, evt_invalid_store, examples, cc=90)
    assert message == (
        "On SM90 or higher, D is expected to be a output node with 0 users "
        "to enable smem reuse between C and D, but got 1"
    )
    assert at(text, "F = D + 1")
    assert epilogue.trace(evt_invalid_store, examples, cc=89).return_names == ("D", "F")


def test_the_classes_are_ours_too():
    assert issubclass(EpilogueSyntaxError, EpilogueError | SyntaxError)
    assert issubclass(EpilogueError, RuntimeError) and issubclass(NoImplementationError, NotImplementedError)


# Ours


def d_of(function, **operands):
    shape = (2, 16, 8)
    examples = {"accum": f16(*shape), "D": f16(*shape), **operands}
    return refused(EpilogueError, function, examples)


def test_the_accumulator_is_not_broadcast():
    def epilogue_function(accum, C):
        D = accum + C
        return D

    examples = {"accum": f16(16, 8), "C": f16(2, 16, 8), "D": f16(2, 16, 8)}
    message, text = refused(EpilogueError, epilogue_function, examples)
    assert message == "Dimension mismatch between accum(1, 16, 8), C(2, 16, 8)."
    assert "never broadcast" in text


def test_the_accumulator_in_two_arrangements():
    def epilogue_function(accum):
        flipped = permute(accum, indices=(0, 2, 1))
        D = accum + flipped
        return D

    examples = {"accum": f16(2, 8, 8), "D": f16(2, 8, 8)}
    message, text = refused(EpilogueError, epilogue_function, examples)
    assert message.startswith("Unsolved propagation direction: compute_0 uses the accumulator in two arrangements.")
    assert "accum" in text and "permute(0, 2, 1)" in text and at(text, "D = accum + flipped")


def test_a_branch_on_a_value():
    def epilogue_function(accum):
        D = accum if accum > 0 else -accum
        return D

    message, text = d_of(epilogue_function)
    assert message == "A value of an epilogue is not known while it is traced, so no Python branch can depend on it."
    assert at(text, "D = accum if accum > 0 else -accum") and "select(condition, a, b)" in text


def test_items_of_a_value():
    def epilogue_function(accum):
        D = accum[0]
        return D

    message, _ = d_of(epilogue_function)
    assert message == "A value of an epilogue has no items."
    with pytest.raises(EpilogueError, match="has no items"):
        epilogue.trace("def f(accum):\n    a, D = accum\n    return D", {"accum": f16(), "D": f16()})


def test_a_tensor_that_is_no_argument():
    table = np.ones((16, 8), np.float32)

    def epilogue_function(accum):
        D = accum + table
        return D

    message, text = d_of(epilogue_function)
    assert message == "An operand is a ndarray, which is no value of the epilogue and no number."
    assert "make a tensor an argument" in text and at(text, "D = accum + table")


def test_a_value_of_another_epilogue():
    kept = []

    def first(accum):
        kept.append(accum)
        D = relu(accum)
        return D

    def second(accum):
        D = accum + kept[0]
        return D

    epilogue.trace(first, {"accum": f16(), "D": f16()})
    message, _ = d_of(second)
    assert message == "accum belongs to another epilogue."


def test_powers():
    def epilogue_function(accum):
        D = accum**0.5
        return D

    message, _ = d_of(epilogue_function)
    assert message == "A value of an epilogue cannot be raised to 0.5."


def test_a_reduction_is_not_computed_with():
    def epilogue_function(accum):
        D = accum - max(accum, dim=2)
        return D

    message, text = d_of(epilogue_function)
    assert message == "The reduction compute_0 is used by something else than one variable."
    assert at(text, "D = accum - max(accum, dim=2)") and "known only when the kernel is done" in text


def test_a_reduced_variable_is_not_computed_with():
    def epilogue_function(accum):
        most = max(accum, dim=2)
        D = accum - most
        return D, most

    message, _ = d_of(epilogue_function, most=np.zeros((2, 16, 1), np.float32))
    assert message == "The reduction compute_0 is used by something else than one variable."


def test_max_of_two_values_is_maximum():
    def epilogue_function(accum, C):
        D = max(accum, C)
        return D

    message, text = d_of(epilogue_function, C=f16(2, 16, 8))
    assert message == "max of several values is no reduction."
    assert "maximum(a, b)" in text


def test_a_reduction_s_example_has_its_shape():
    def epilogue_function(accum):
        most = max(accum, dim=2)
        D = accum
        return D, most

    message, text = d_of(epilogue_function, most=np.zeros((2, 1, 8), np.float32))
    assert message == "Output most has another shape than its example."
    assert "(2, 16, 1)" in text and "(2, 1, 8)" in text
    message, text = d_of(epilogue_function, most=np.zeros(16, np.float32))
    assert message == "Output most has another shape than its example."


def test_a_reduction_over_modes_that_are_not_there():
    def epilogue_function(accum):
        most = max(accum, dim=3)
        D = accum
        return D, most

    message, text = d_of(epilogue_function, most=np.zeros((2, 16, 1), np.float32))
    assert message == "The reduction most is over modes that its value does not have."
    assert "(2, 16, 8)" in text


def test_an_output_s_example_has_its_shape():
    def epilogue_function(accum):
        D = relu(accum)
        return D

    message, _ = refused(EpilogueError, epilogue_function, {"accum": f16(2, 16, 8), "D": f16(2, 8, 16)})
    assert message == "Output D has another shape than its example."
    message, text = refused(EpilogueError, epilogue_function, {"accum": f16(16, 8), "D": f16(2, 16, 8)})
    assert message == "Output D has another shape than its example."
    assert "(1, 16, 8)" in text


def test_an_output_is_a_tensor():
    def epilogue_function(accum):
        D = relu(accum)
        return D

    message, _ = refused(EpilogueError, epilogue_function, {"accum": f16(), "D": 1.0})
    assert message == "The example of output D is a number."


def test_an_operand_is_returned():
    def epilogue_function(accum, C):
        D = accum + C
        return D, C

    message, _ = d_of(epilogue_function, C=f16(2, 16, 8))
    assert message == "The returned variable 'C' is an operand."


def test_a_number_is_returned():
    def epilogue_function(accum):
        D = relu(accum)
        k = 3
        return D, k

    message, text = d_of(epilogue_function, k=f16())
    assert message == "Output k of the epilogue is a int, which is no value of it."
    assert at(text, "return D, k")


def test_nothing_is_returned():
    def epilogue_function(accum):
        D = relu(accum)  # noqa: F841

    message, _ = d_of(epilogue_function)
    assert message == "The epilogue returns nothing."


@pytest.mark.parametrize("shape, rank", [((8,), 1), ((2, 2, 8, 8), 4)])
def test_the_accumulator_s_rank(shape, rank):
    def epilogue_function(accum):
        D = relu(accum)
        return D

    message, _ = refused(EpilogueError, epilogue_function, {"accum": f16(*shape), "D": f16(*shape)})
    assert message == f"accum has {rank} modes."


@pytest.mark.parametrize("call", ["permute(C, indices=(0, 0, 1))", "reshape(C, new_shape=(3, 5))"])
def test_layouts_that_do_not_fit(call):
    text = f"def f(accum, C):\n    D = accum + {call}\n    return D"
    message, shown = d_of(text, C=f16(2, 16, 8))
    assert message == f"{call.split('(')[0]} does not fit C(2, 16, 8)."
    assert "D = accum +" in shown


def test_strides_that_cannot_be_reshaped():
    """Of a wide tensor's first 6 columns, rows of 4 would be cut out of rows of 6 that are 8 apart."""
    wide = np.zeros((4, 8), np.float32)[:, :6]

    def epilogue_function(accum, C):
        D = accum + reshape(C, new_shape=(6, 4))
        return D

    message, text = refused(EpilogueError, epilogue_function, {"accum": f16(6, 4), "C": wide, "D": f16(6, 4)})
    assert message == "The strides of C cannot express how it is permuted and reshaped."
    assert "(8, 1)" in text and "reshape(6, 4)" in text


def test_an_output_apart_from_the_accumulator():
    def epilogue_function(accum, C):
        D = relu(accum)
        E = C + 1
        return D, E

    message, text = d_of(epilogue_function, C=f16(3, 5), E=f16(3, 5))
    assert message == "Output E neither broadcasts to the accumulator's shape nor has as many elements."
    assert "(3, 5)" in text and "(2, 16, 8)" in text


def test_topk_of_another_arrangement():
    def epilogue_function(accum):
        D = topk_softmax(permute(accum, indices=(0, 2, 1)), 2)
        return D

    message, _ = refused(EpilogueError, epilogue_function, {"accum": f16(2, 8, 8), "D": f16(2, 8, 8)})
    assert message == "compute_0 works on rows of the accumulator, but its value is in another arrangement."
    with pytest.raises(EpilogueError, match="topk_softmax takes k = 0"):
        epilogue.topk_softmax(np.zeros((2, 2)), 0)


@pytest.mark.parametrize("text", ["x = 1", ""])
def test_a_text_without_a_function(text):
    message, _ = d_of(text)
    assert message == "The source text of the epilogue defines no function."


@pytest.mark.parametrize(
    "signature, name", [("accum, *rest", "rest"), ("accum, **rest", "rest"), ("accum, /", "accum")]
)
def test_parameters_have_names(signature, name):
    message, _ = d_of(f"def f({signature}):\n    D = accum + 1\n    return D")
    assert message == f"Parameter '{name}' of the epilogue has no name that examples could use."


def test_an_example_that_is_no_tensor():
    def epilogue_function(accum, C):
        D = accum + C
        return D

    message, _ = d_of(epilogue_function, C="C")
    assert message == "The example of C is a str, which is neither a tensor nor a number."
    message, _ = d_of(epilogue_function, C=np.zeros((2, 16, 8), np.complex64))
    assert message == "epilogues have no tensors of type complex64"


def test_an_epilogue_that_is_no_function():
    message, _ = d_of(3)
    assert message == "An epilogue is a int."


def test_an_unknown_capability():
    def epilogue_function(accum):
        D = relu(accum)
        return D

    message, text = refused(EpilogueError, epilogue_function, {"accum": f16(), "D": f16()}, cc=70)
    assert message == "Compute capability 70 is not known to epilogues."
    assert "80" in text and "120" in text


def test_an_error_of_python_s_names_the_line():
    def epilogue_function(accum):
        D = relu(accum, slope=0.1)
        return D

    with pytest.raises(TypeError, match="unexpected keyword argument 'slope'") as caught:
        epilogue.trace(epilogue_function, {"accum": f16(), "D": f16()})
    assert at(str(caught.value), "D = relu(accum, slope=0.1)")


def test_too_many_operands():
    def epilogue_function(accum):
        D = epilogue.tanh(accum, accum)
        return D

    message, _ = d_of(epilogue_function)
    assert message == "tanh takes 1 operands, but got 2."


def test_what_the_user_raises_stays():
    def epilogue_function(accum):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        epilogue.trace(epilogue_function, {"accum": f16(), "D": f16()})

"""The tutorial's own imports and its passes, typed as it has them."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

import tilewright.dropin  # noqa: F401
from tilewright import epilogue
from tilewright.epilogue import create_test_dag

PASS_FILE = '''
from cutlass_cppgen.backend.evt.passes.pass_manager import EVTPassBase
from cutlass_cppgen.backend.evt.passes.pass_shape_type_propagation import PassShapeTypePropagation

class PassMyCustom(EVTPassBase):
    """
    Description of what your pass does.
    """
    dependencies = [PassShapeTypePropagation]

    def requires(self) -> None:
        # Validate preconditions
        pass

    def call(self):
        # Main pass logic
        for node_meta in self.dag_ir.nodes_meta:
            # Process each node
            self.process_node(node_meta)

    def process_node(self, node_meta):
        # Your custom logic here
        node_meta.processed = True

    def ensures(self) -> None:
        # Validate postconditions
        pass
'''
USE = """
from cutlass_cppgen.backend.evt.passes import (
    EVTPassManager,
    PassShapeTypePropagation,
    PassMyCustom
)

pass_list = [
    PassShapeTypePropagation,
    PassMyCustom,
    # ... other passes
]

pass_manager = EVTPassManager(dag_ir, pass_list)
pass_manager()
"""


def test_the_tutorial_s_three_steps(tmp_path, monkeypatch):
    (tmp_path / "pass_my_custom.py").write_text(PASS_FILE)
    monkeypatch.syspath_prepend(tmp_path)
    import pass_my_custom

    dag_ir = create_test_dag()
    exec(USE, {"dag_ir": dag_ir})
    assert all(node.processed for node in dag_ir.nodes_meta)

    # Its test of a pass.
    dag_ir = create_test_dag()
    pass_instance = pass_my_custom.PassMyCustom(dag_ir)
    pass_instance()
    assert epilogue.validate_dag_transformation(dag_ir)


def test_modules_are_ours():
    import cutlass_cppgen
    from cutlass_cppgen.backend.evt.passes.pass_dag_2_tree import PassDAG2Tree
    from cutlass_cppgen.backend.evt.passes.pass_get_impl import PassGetImpl
    from cutlass_cppgen.backend.evt.passes.pass_layout_elimination import PassLayoutManipulateElimination
    from cutlass_cppgen.backend.evt.passes.pass_manager import EVTPassManager
    from cutlass_cppgen.epilogue import permute, trace

    assert EVTPassManager is epilogue.EVTPassManager and trace is epilogue.trace and permute is epilogue.permute
    assert PassDAG2Tree is epilogue.PassDAG2Tree and PassGetImpl is epilogue.PassGetImpl
    assert PassLayoutManipulateElimination is epilogue.PassLayoutManipulateElimination
    assert cutlass_cppgen.epilogue is epilogue


def test_the_older_names():
    import cutlass
    from cutlass.backend.evt.passes import EVTPassManager
    from cutlass.epilogue import reshape

    assert EVTPassManager is epilogue.EVTPassManager and reshape is epilogue.reshape
    example = np.zeros((6, 16, 8), np.float16)

    def evt(accum, C):
        D = accum + C
        return D

    assert cutlass.epilogue.trace(evt, {"accum": example, "C": example, "D": example}).return_names == ("D",)


def test_what_is_not_there_is_an_import_error():
    done = subprocess.run(
        [sys.executable, "-c", "import tilewright.dropin\nimport cutlass_cppgen.op"], capture_output=True, text=True
    )
    assert "No module named 'cutlass_cppgen.op'" in done.stderr


def test_the_folder_on_pythonpath_is_enough():
    import tilewright

    package = Path(tilewright.__file__).parent
    path = os.pathsep.join([str(package / "dropin_path"), str(package.parent)])
    text = "from cutlass_cppgen.backend.evt.passes import EVTPassManager as m; print(m.__module__)"
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}
    )
    assert done.stdout == "tilewright.lib.epilogue.passes.pass_manager\n", done.stderr

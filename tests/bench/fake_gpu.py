"""PyTorch with a GPU that is the processor: its clock advances by what each call is said to take."""

import types

import torch


class FakeGpu:
    """`costs` maps what a call is named to its microseconds; `now` is the device's clock, in microseconds."""

    def __init__(self):
        self.now = 0.0
        self.flushes = 0

    def work(self, microseconds):
        """A call that takes this long."""

        def call():
            self.now += microseconds

        return call

    def module(self):
        """What stands for the module `torch`."""
        fake = types.SimpleNamespace(**{name: getattr(torch, name) for name in dir(torch) if not name.startswith("__")})
        fake.randn = lambda *shape, device: torch.randn(*shape)
        fake.zeros = lambda *shape, device: torch.zeros(*shape)
        fake.cuda = types.SimpleNamespace(
            Event=lambda enable_timing: Event(self),
            synchronize=lambda: None,
            _sleep=lambda cycles: setattr(self, "now", self.now + 1000.0),
            get_device_properties=lambda number: types.SimpleNamespace(
                L2_cache_size=1 << 12, name="NVIDIA H100 80GB HBM3", multi_processor_count=132, total_memory=80 << 30
            ),
        )
        return fake


class Event:
    """An event of the fake device."""

    def __init__(self, gpu):
        self.gpu = gpu

    def record(self):
        """Note the device's time."""
        self.at = self.gpu.now

    def elapsed_time(self, end):
        """Milliseconds, as PyTorch has them."""
        return (end.at - self.at) / 1e3

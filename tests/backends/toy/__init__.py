"""A back end that interprets stage `cute` in NumPy, as an example of the protocol in `tilewright.targets.target`.

It is registered by one line:

    register("toy", "tests.backends.toy.back_end:BACK_END", ("toy",))
"""

"""The cache of compiled functions, in memory and on disk.

lookup.py       a plan -> a compiled function: memory, disk, compilation
reach.py        what a function can reach, as a digest and as a watch; or why that cannot be known
  code_reads.py   what a code object reads
  owners.py       whose an object is: ours, trusted, the user's
  pure.py         what of Python and of installed packages depends on nothing but its arguments
  watch.py        whether what was reached is still the same
keys.py         a plan, or a traced program -> a key
  toolkit.py      the compiler and its tools, by their files
entry.py        a compiled function <-> bytes
store.py        keys <-> files: atomic, locked, bounded
tunings.py      which configuration was fastest <-> files
parallel.py     compilations in processes beside each other
"""

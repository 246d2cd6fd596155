"""Recording: the user's function is run once on traced values, and what it does to them becomes a tape.

From the ground up:

- `where`, `leaves`, `pytree`: the user's line; which arguments are data; arguments as trees
- `dispatch`, `substitutes`: the tables in which NumPy's and SciPy's functions find their rules
- `arrays`: which elements an array shows, indexing, assignment, the storage that arrays share
- `ufuncs`: NumPy's ufuncs as rows of the table of primitives
- `values`: what recorded code sees in place of arrays and numbers: `Tracer`, `Complex`, `LocalArray`
- `recorder`, `templates`, `loop_body`: the builder of a recording, rules written again without being run, loops
- `numpy_rules`, `complexes`, `scipy_rules`: the rules, each entered in a table by the file that has it
- `captures`: what the function reads that is no argument
- `record`: the entry, which fills the tables and runs the function
"""

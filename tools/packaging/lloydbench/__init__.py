"""lloydbench as an installed package: the program, its specs and the analysis.

The folder is an installation prefix, as `make install` writes it. The analysis is a package of its
own, named `analysis`, in share/lloydbench. It must not be a neighbour of this package in
site-packages, where that name may belong to somebody else. `import lloydbench` appends its folder
to the path of modules:

    import lloydbench
    from analysis.model.load import load_run
"""

import sys
from importlib.metadata import version
from pathlib import Path

__version__ = version("lloydbench")

PREFIX = Path(__file__).resolve().parent
HOME = PREFIX / "share" / "lloydbench"

if str(HOME) not in sys.path:
    sys.path.append(str(HOME))

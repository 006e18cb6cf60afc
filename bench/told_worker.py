"""`folkmoot worker`, told apart only by a line on standard output each time a model is about to be called: Unix nanoseconds.

The command itself runs; the moment is taken at the product's own fault point `before_model_call`.
"""

from __future__ import annotations

import sys
import time

from folkmoot.cli.main import main
from folkmoot.kernel import fault_points

if __name__ == "__main__":
    fault_points.arm("before_model_call", lambda: print(time.time_ns(), flush=True))
    sys.argv = ["folkmoot", "worker"]
    main()

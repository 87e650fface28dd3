"""Experiments of the papers.

One thread of BLAS, unless the environment says otherwise: L-BFGS works on vectors so short that threads would
mostly wait for each other, which took fifteen times the CPU time on two processors in use.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

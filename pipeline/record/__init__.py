"""Records the machine and the training, in the files that ``tracelake ingest`` reads.

``SystemRecorder`` samples the machine, ``TorchHook`` writes the steps of a PyTorch training,
``torch_profiler`` those of its profiler; ``pipeline.record.composer`` has a callback of Composer
that samples the machine into its trace. None of them imports torch before it is used.
"""

from pipeline.record.profiler import torch_profiler
from pipeline.record.system import SystemRecorder
from pipeline.record.torch import TorchHook

__all__ = ["SystemRecorder", "TorchHook", "torch_profiler"]

"""Records the machine and the training, in the files that ``tracelake ingest`` reads.

``SystemRecorder`` samples the machine; ``pipeline.record.composer`` has a callback of Composer
that does so into its trace.
"""

from pipeline.record.system import SystemRecorder

__all__ = ["SystemRecorder"]

"""Programs as CUDA graphs: recorded once, and then launched as one."""

from thunder_transforms.cudagraphs.recorder import CaptureError, CudaRecorder, Recorder, Recording
from thunder_transforms.cudagraphs.run import GraphRun
from thunder_transforms.cudagraphs.transform import CUDAGraphTransform, why_not_captured

__all__ = [
    "CUDAGraphTransform", "CaptureError", "CudaRecorder", "GraphRun", "Recorder", "Recording", "why_not_captured",
]  # fmt: skip

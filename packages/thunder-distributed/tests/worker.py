"""One of several processes that run the scenarios of a file, one after the other: see conftest.py.

python worker.py FILE RANK SIZE FOLDER
"""

import json
import runpy
import sys
import traceback
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist


def main() -> int:
    file, rank, size, folder = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"file://{folder / 'store'}", rank=rank, world_size=size, timeout=timedelta(seconds=90)
    )
    scenarios = {name: value for name, value in runpy.run_path(file).items() if name.startswith("scenario_")}
    with open(folder / f"results_{rank}", "w", encoding="utf-8") as results:
        for name, scenario in scenarios.items():
            try:
                torch.manual_seed(0)
                scenario(rank, size)
                outcome = ""
            except Exception:
                outcome = traceback.format_exc()
            print(json.dumps([name, outcome]), file=results, flush=True)
            if outcome:
                return 1  # the others notice, and are ended
            dist.barrier()
    dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())

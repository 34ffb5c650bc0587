#!/usr/bin/env python3
"""all_reduce of torch.distributed with the backend gloo: float32, on loopback, one thread of torch's own in each process.

One line of JSON on stdout: {"version", "sum_ms": [of each run, as rank 0 sees it]}. A run begins when all processes have left a
barrier, and all have the sum in place of their numbers. Gloo leaves a group when a member dies, and has no checksum over the sum.

Example: ~/.cache/muster-peers/torch/bin/python benchmarks/peers/torch_gloo.py --members 4 --bytes 67108864 --runs 7
"""

import argparse
import json
import os
import sys
import time

import spawned


def member(options, rank, port, answers):
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    import torch
    import torch.distributed
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=options.members)
    numbers, taken = torch.empty(options.bytes // 4), []
    for run in range(1 + options.runs):
        numbers.fill_(1)
        torch.distributed.barrier()
        begin = time.perf_counter()
        torch.distributed.all_reduce(numbers)
        took = 1e3 * (time.perf_counter() - begin)
        if numbers[0] != options.members or numbers[-1] != options.members:
            sys.exit(f"torch_gloo.py: the sum of {options.members} ones is {numbers[0]}")
        if run > 0:  # the first one is the warm-up
            taken.append(took)
    if rank == 0:
        answers.put({"version": f"torch {torch.__version__} (gloo)", "sum_ms": taken})
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--members", type=int, required=True, help="processes")
    parser.add_argument("--bytes", type=int, required=True, help="of the numbers, a multiple of 4")
    parser.add_argument("--runs", type=int, default=7, help="besides the warm-up (default: %(default)s)")
    options = parser.parse_args()
    if options.members < 2 or options.bytes < 4 or options.bytes % 4 or options.runs < 1:
        parser.error("--members is at least 2, --bytes a multiple of 4, and --runs at least 1")
    port = spawned.free_port()
    print(json.dumps(spawned.answer([(member, (options, rank, port)) for rank in range(options.members)])))


if __name__ == "__main__":
    main()

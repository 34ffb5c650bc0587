"""The processes of one peer: they are spawned, find each other at a port of loopback, and one of them answers."""

import multiprocessing
import os
import queue
import socket
import sys


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def answer(calls):
    """What `function(*arguments, answers)` of one of the processes puts into the queue `answers`. `calls`: [(function, arguments)]. Ends
    this program if a process fails before."""
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    processes = [context.Process(target=function, args=(*arguments, answers), daemon=True) for function, arguments in calls]
    for process in processes:
        process.start()
    while True:
        try:
            said = answers.get(timeout=1)
            break
        except queue.Empty:
            if any(process.exitcode for process in processes):
                sys.exit(f"{os.path.basename(sys.argv[0])}: a process ended early")
    for process in processes:
        process.join(30)
    return said

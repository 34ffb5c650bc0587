"""Writes gpu_kernels.cc: the loops of gpu_loops.h as text that CUDA's driver compiles for its GPU. It needs Clang 19 with the target NVPTX.

After a change of gpu_loops.h: python3 collectives/backends/gpu_kernels.py"""

import os
import subprocess
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))
# Volta and later.
ARCHITECTURE = "sm_70"
WIDTH = 99
# As C++; `i` and `size` stand for the element of the thread and the number of elements.
KERNELS = {
    "add_fixed": ("Floats from, MUSTER_GPU_GLOBAL Fixed* sum, double scale, Bits limit, Bits first, MUSTER_GPU_GLOBAL Word* bad",
                  "AddFixed(i, from, sum, scale, limit, first != 0, bad)"),
    "add_float": ("Floats from, FloatsOut sum, Bits first, MUSTER_GPU_GLOBAL Word* bad", "AddFloat(i, from, sum, first != 0, bad)"),
    "to_bfloat16": ("Floats from, MUSTER_GPU_GLOBAL Half* to, MUSTER_GPU_GLOBAL Word* bad", "ToBfloat16(i, from, to, bad)"),
    "from_fixed": ("const MUSTER_GPU_GLOBAL Fixed* from, FloatsOut to, double scale", "FromFixed(i, from, to, scale)"),
    "from_bfloat16": ("const MUSTER_GPU_GLOBAL Half* from, FloatsOut to, MUSTER_GPU_GLOBAL Word* bad", "FromBfloat16(i, from, to, bad)"),
    "from_float": ("Floats from, FloatsOut to, MUSTER_GPU_GLOBAL Word* bad", "FromFloat(i, from, to, bad)"),
}
# Each thread adds up many elements first, because all threads add to one number.
DIGEST = """extern "C" __attribute__((nvptx_kernel)) void digest_{bits}(Word size, const MUSTER_GPU_GLOBAL {type}* from, MUSTER_GPU_GLOBAL Word* sum) {{
  const Word threads = static_cast<Word>(__nvvm_read_ptx_sreg_nctaid_x()) * __nvvm_read_ptx_sreg_ntid_x();
  Word own = 0;
#pragma clang loop unroll_count(4)
  for (Word i = Element(); i < size; i += threads) own += DigestOf(i, static_cast<Word>(from[i]));
  __atomic_fetch_add(sum, own, __ATOMIC_RELAXED);
}}
"""


def source():
    lines = ['#include "gpu_loops.h"', "using namespace muster::collectives::gpu;", "static inline Word Element() {",
             "return static_cast<Word>(__nvvm_read_ptx_sreg_ctaid_x()) * __nvvm_read_ptx_sreg_ntid_x() + __nvvm_read_ptx_sreg_tid_x();", "}"]
    for name, (parameters, call) in KERNELS.items():
        lines.append(f'extern "C" __attribute__((nvptx_kernel)) void {name}(Word size, {parameters}) {{')
        lines.append(f"const Word i = Element(); if (i < size) {call}; }}")
    lines += [DIGEST.format(bits=bits, type=kind) for bits, kind in ((16, "Half"), (32, "Bits"), (64, "Word"))]
    return "\n".join(lines)


def text():
    """The file's contents."""
    command = ["clang++-19", "--target=nvptx64-nvidia-cuda", f"-march={ARCHITECTURE}", "-std=c++20", "-O2", "-ffp-contract=off", "-nostdinc",
               "-I", FOLDER, "-I", os.path.dirname(os.path.dirname(FOLDER)), "-x", "c++", "-", "-S", "-o", "-"]
    made = subprocess.run(command, input=source(), text=True, capture_output=True, check=False)
    if made.returncode != 0:
        sys.exit(made.stderr)
    lines = [line.split("//")[0].replace("\t", " ").strip() for line in made.stdout.splitlines()]
    packed = []
    for line in filter(None, lines):
        if packed and packed[-1].endswith(";") and line.endswith(";") and len(packed[-1]) + len(line) < WIDTH:
            packed[-1] += " " + line
        else:
            packed.append(line)
    body = "\n".join(packed)
    return ("// Made by gpu_kernels.py from gpu_loops.h; not to be changed by hand.\n"
            '#include "collectives/backends/gpu_kernels.h"\n\nnamespace muster::collectives::gpu {\n\n'
            '// clang-format off\nconst char* const kKernels = R"ptx(' + body + '\n)ptx";\n// clang-format on\n\n'
            "}  // namespace muster::collectives::gpu\n")


if __name__ == "__main__":
    with open(os.path.join(FOLDER, "gpu_kernels.cc"), "w", encoding="utf-8") as file:
        file.write(text())

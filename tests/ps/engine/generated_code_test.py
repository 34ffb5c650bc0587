"""The machine code of the engine's hot functions: every optimizer computes whole vectors, and what
asks for memory in time is there. A compiler that drops either gives the same bits, only slower, so
no other test sees it.

  generated_code_test.py <objdump> <libmuster_ps_engine.a>
"""
import re
import subprocess
import sys

OPTIMIZERS = ['Sum', 'Sgd', 'Momentum', 'Adagrad', 'RowwiseAdagrad', 'Adam', 'AdamW', 'Ftrl']
PACKED = re.compile(r'\bv(add|sub|mul|div|sqrt)ps\b.*%ymm')
PREFETCH = re.compile(r'\bprefetcht[01]\b')
PREFETCHING = ['muster::ps::Table::Apply(', 'muster::ps::RowGather::FindRows(']


def functions(objdump, library):
    """(name, instructions) of every function."""
    code = subprocess.run([objdump, '-dC', '--no-show-raw-insn', library], check=True, text=True,
                          stdout=subprocess.PIPE).stdout
    for block in re.split(r'\n(?=[0-9a-f]{16} <)', code):
        head, _, body = block.partition('\n')
        yield head, body


def main():
    vectors, prefetches = set(), set()
    for name, body in functions(*sys.argv[1:3]):
        step = re.search(r'N_AVX2::(?:Adam)?Step.*?\(muster::(\w+)Spec const&', name)
        if step and PACKED.search(body):
            vectors.add(step[1])
        prefetches |= {hot for hot in PREFETCHING if hot in name and PREFETCH.search(body)}
    wrong = [f'{name}: its step has no arithmetic on whole vectors'
             for name in OPTIMIZERS if name not in vectors]
    wrong += [f'{name}...): it prefetches nothing' for name in PREFETCHING if name not in prefetches]
    print('\n'.join(wrong) or 'as it should be')
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())

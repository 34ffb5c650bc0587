#!/usr/bin/env python3
"""Computes the reference values of optimizer_test.cc in double precision, from the published formulas.

Usage: optimizer_reference.py > optimizer_reference.inc
       optimizer_reference.py --torch     compares SGD, Adagrad, Adam and AdamW with PyTorch's own, in double

Shares no code with the engine: PyTorch's documentation for SGD (with momentum), Adagrad, Adam and AdamW; FBGEMM's
"exact row-wise Adagrad" (mean of squares); McMahan et al. 2013, algorithm 1, for FTRL-Proximal.
"""
import math
import sys

STEPS = 5


def weights(dim):
    return [0.5 - 0.25 * i if i % 3 else -0.125 * (i + 1) for i in range(dim)]


def gradients(dim):
    """Exact in float32: multiples of 1/64, a zero among them."""
    return [[((7 * s + 5 * i + 3) % 23 - 11) / 64 for i in range(dim)] for s in range(STEPS)]


def factors():
    """What a linear warm-up over 4 steps gives."""
    return [0.25, 0.5, 0.75, 1.0, 1.0]


def sum_(w, grads, factors, p):
    for g in grads:
        w = [a + b for a, b in zip(w, g)]
    return w, []


def sgd(w, grads, factors, p):
    lr, wd = p
    for g, f in zip(grads, factors):
        w = [a - lr * f * (b + wd * a) for a, b in zip(w, g)]
    return w, []


def momentum(w, grads, factors, p):
    lr, mu, nesterov, wd = p
    buf = None
    for g, f in zip(grads, factors):
        d = [b + wd * a for a, b in zip(w, g)]
        buf = list(d) if buf is None else [mu * v + x for v, x in zip(buf, d)]
        d = [x + mu * v for x, v in zip(d, buf)] if nesterov else buf
        w = [a - lr * f * x for a, x in zip(w, d)]
    return w, buf


def adagrad(w, grads, factors, p):
    lr, start, eps = p
    s = [start] * len(w)
    for g, f in zip(grads, factors):
        s = [v + x * x for v, x in zip(s, g)]
        w = [a - lr * f * x / (math.sqrt(v) + eps) for a, x, v in zip(w, g, s)]
    return w, s


def rowwise_adagrad(w, grads, factors, p):
    lr, s, eps = p
    for g, f in zip(grads, factors):
        s += sum(x * x for x in g) / len(g)
        w = [a - lr * f / (math.sqrt(s) + eps) * x for a, x in zip(w, g)]
    return w, [s]


def adam(w, grads, factors, p, decay=0.0):
    lr, b1, b2, eps = p
    m, v, t = [0.0] * len(w), [0.0] * len(w), 0
    for g, f in zip(grads, factors):
        t += 1
        w = [a * (1 - lr * f * decay) for a in w]
        m = [b1 * a + (1 - b1) * x for a, x in zip(m, g)]
        v = [b2 * a + (1 - b2) * x * x for a, x in zip(v, g)]
        c1, c2 = 1 - b1 ** t, 1 - b2 ** t
        w = [a - (lr * f / c1) * y / (math.sqrt(z) / math.sqrt(c2) + eps) for a, y, z in zip(w, m, v)]
    return w, m + v + [float(t)]


def adamw(w, grads, factors, p):
    return adam(w, grads, factors, p[:4], p[4])


def ftrl(w, grads, factors, p):
    """The start w is expressed as the z that yields it at n = 0 under the unscheduled rate."""
    lr, beta, l1, l2 = p
    z = [0.0 if a == 0 else -(a * (beta / lr + l2) + math.copysign(l1, a)) for a in w]
    n = [0.0] * len(w)
    w = list(w)
    for g, f in zip(grads, factors):
        alpha = lr * f
        for i, x in enumerate(g):
            sigma = (math.sqrt(n[i] + x * x) - math.sqrt(n[i])) / alpha
            z[i] += x - sigma * w[i]
            n[i] += x * x
            if abs(z[i]) <= l1:
                w[i] = 0.0
            else:
                w[i] = -(z[i] - math.copysign(l1, z[i])) / ((beta + math.sqrt(n[i])) / alpha + l2)
    return w, z + n


CASES = [
    ("Sum", "SumSpec{}", sum_, ()),
    ("Sgd", "SgdSpec{0.1f, 0}", sgd, (0.1, 0)),
    ("SgdDecay", "SgdSpec{0.1f, 0.01f}", sgd, (0.1, 0.01)),
    ("Momentum", "MomentumSpec{0.1f, 0.9f, false, 0}", momentum, (0.1, 0.9, False, 0)),
    ("MomentumDecay", "MomentumSpec{0.1f, 0.9f, false, 0.01f}", momentum, (0.1, 0.9, False, 0.01)),
    ("Nesterov", "MomentumSpec{0.1f, 0.9f, true, 0.01f}", momentum, (0.1, 0.9, True, 0.01)),
    ("Adagrad", "AdagradSpec{0.05f, 0, 1e-10f}", adagrad, (0.05, 0, 1e-10)),
    ("AdagradStart", "AdagradSpec{0.05f, 0.1f, 1e-3f}", adagrad, (0.05, 0.1, 1e-3)),
    ("RowwiseAdagrad", "RowwiseAdagradSpec{0.05f, 0, 1e-10f}", rowwise_adagrad, (0.05, 0, 1e-10)),
    ("RowwiseAdagradStart", "RowwiseAdagradSpec{0.05f, 0.1f, 1e-3f}", rowwise_adagrad, (0.05, 0.1, 1e-3)),
    ("Adam", "AdamSpec{0.01f, 0.9f, 0.999f, 1e-8f}", adam, (0.01, 0.9, 0.999, 1e-8)),
    ("AdamOther", "AdamSpec{0.01f, 0, 0.5f, 1e-2f}", adam, (0.01, 0.0, 0.5, 1e-2)),
    ("AdamW", "AdamWSpec{0.01f, 0.9f, 0.999f, 1e-8f, 0.1f}", adamw, (0.01, 0.9, 0.999, 1e-8, 0.1)),
    ("Ftrl", "FtrlSpec{0.1f, 1, 0, 0}", ftrl, (0.1, 1, 0, 0)),
    ("FtrlBoth", "FtrlSpec{0.1f, 0.5f, 0.3f, 0.2f}", ftrl, (0.1, 0.5, 0.3, 0.2)),
]


def with_torch():
    import torch

    make = {
        "Sgd": lambda x, p: torch.optim.SGD(x, lr=p[0], weight_decay=p[1]),
        "SgdDecay": lambda x, p: torch.optim.SGD(x, lr=p[0], weight_decay=p[1]),
        "Momentum": lambda x, p: torch.optim.SGD(x, lr=p[0], momentum=p[1], nesterov=p[2], weight_decay=p[3]),
        "Adagrad": lambda x, p: torch.optim.Adagrad(x, lr=p[0], initial_accumulator_value=p[1], eps=p[2]),
        "Adam": lambda x, p: torch.optim.Adam(x, lr=p[0], betas=(p[1], p[2]), eps=p[3]),
        "AdamW": lambda x, p: torch.optim.AdamW(x, lr=p[0], betas=(p[1], p[2]), eps=p[3], weight_decay=p[4]),
    }
    make["MomentumDecay"] = make["Nesterov"] = make["Momentum"]
    make["AdagradStart"], make["AdamOther"] = make["Adagrad"], make["Adam"]
    for name, _, function, p in CASES:
        if name not in make:
            continue
        x = torch.tensor(weights(17), dtype=torch.float64, requires_grad=True)
        optimizer = make[name]([x], p)
        for g, f in zip(gradients(17), factors()):
            optimizer.param_groups[0]["lr"] = p[0] * f
            x.grad = torch.tensor(g, dtype=torch.float64)
            optimizer.step()
        ours = function(weights(17), gradients(17), factors(), p)[0]
        error = max(abs(a - b) for a, b in zip(ours, x.tolist()))
        print(f"{name:14} largest difference from PyTorch {torch.__version__}: {error:.1e}")
        assert error < 1e-12


def main():
    if "--torch" in sys.argv:
        return with_torch()
    print("// Written by optimizer_reference.py; clang-format off")
    for name, spec, function, p in CASES:
        for dim in (1, 3, 17):
            for what, fs in (("warm-up", factors()), ("constant", [1.0] * STEPS)):
                w, slots = function(weights(dim), gradients(dim), fs, p)
                kind = "true" if what == "warm-up" else "false"
                row = ", ".join(f"{x:.9g}" for x in w + slots)
                print(f'{{"{name}", {spec}, {dim}, {kind}, {{{row}}}}},')


if __name__ == "__main__":
    main()

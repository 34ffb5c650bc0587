"""The member of ddp_test.py: a small network in ElasticDDP, and what a test asks of it besides. ddp_trainer.py MODE FOLDER"""

import copy
import os
import signal
import sys

import numpy as np
import torch
from bits import digest
from torch import nn

import muster
import muster.torch
from muster.torch import _device

MODE, FOLDER = sys.argv[1:]
NODE = os.environ["MUSTER_NODE"]
# What a mode does besides happens in one process: the first one of worker-1.
PLANTED = NODE == "worker-1" and os.environ.get("MUSTER_START") == "1"


def path(name):
    return os.path.join(FOLDER, name)


def write(name, text):
    """Others see all of the text or nothing, and several members may write it."""
    unfinished = path(f"{name}.{os.getpid()}.part")
    with open(unfinished, "w", encoding="utf-8") as file:
        file.write(text)
    os.rename(unfinished, path(name))


def with_error(call, kind):
    try:
        call()
    except kind as error:
        return f"{type(error).__name__}: {error}"
    raise AssertionError(f"no {kind.__name__}")


def parse(batch):
    values = torch.from_numpy(np.array([line.split(b",") for line in batch.records]).astype(np.float32))
    return values[:, :2], values[:, 3] - values[:, 2]


def loss_of(module, data):
    inputs, labels = data if MODE != "bfloat16" else [values.bfloat16() for values in data]
    return nn.functional.mse_loss(module(inputs)[:, 0], labels)


def network(hidden=8):
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(2, hidden), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Dropout(0.1), nn.Linear(hidden, 1))


def treat_the_cpu_as_a_gpu():
    """What is registered is then a copy, and gradients leave at the end of the minibatch."""
    _device.pins = lambda device: True
    _device._pinned = lambda shape, dtype: torch.zeros(shape, dtype=dtype)
    _device._wait = lambda device: None


def learn(session):
    """MODE learn, bfloat16, kill, apply, nan, mismatch: trains; worker-1 has its accident. MODE scale: as for float16 on a GPU."""
    scaler = None
    if MODE == "scale":
        treat_the_cpu_as_a_gpu()
        scaler = torch.amp.GradScaler("cpu", init_scale=1024, growth_interval=4)
    module = network(9 if MODE == "mismatch" and NODE == "worker-1" else 8)
    if MODE == "bfloat16":
        module = module.bfloat16()
    optimizer = torch.optim.AdamW(module.parameters(), lr=0.02)
    calls = []

    def clip():
        nn.utils.clip_grad_norm_(module.parameters(), 1.0)
        calls.append(None)
        if MODE == "apply" and PLANTED and len(calls) == 3:
            module[0].weight.data += 1
            raise RuntimeError("planted in apply")

    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.2, total_steps=16)
    ddp = muster.torch.ElasticDDP(module, optimizer, session.group(), schedulers=[scheduler], before_step=clip, scaler=scaler)
    for step in ddp.steps():
        module.train(not step.evaluate)
        for batch in step.batches(parse):
            with batch:
                loss = loss_of(ddp, batch.data)
                batch.metric("loss", loss.item(), len(batch))
                if step.evaluate:
                    continue
                if MODE == "nan" and step.step == 2 and not os.path.exists(path("nan")):
                    write("nan", "")
                    loss = loss * float("nan")
                (loss if scaler is None else scaler.scale(loss)).backward()
                assert module[0].weight.grad is None
                if PLANTED and step.step == 3 and MODE == "kill":
                    write("killed", "")
                    os.kill(os.getpid(), signal.SIGKILL)
        try:
            step.commit()
        except RuntimeError as error:
            write("raised", str(error))
    if ddp.group.has_final_state():
        state = ddp.state_dict()
        if scaler is not None:
            assert state.pop("scaler")["scale"] > 1024
            write("scaled", "")
        write(f"weights-{NODE}", digest(state))
        torch.save(state, path(f"state-{NODE}.pt"))


def same(session):
    """MODE same: the one member also trains a copy with plain PyTorch, on whole steps."""
    torch.manual_seed(1)
    module = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
    plain = copy.deepcopy(module)

    def optimizer_of(one):
        optimizer = torch.optim.SGD(one.parameters(), lr=0.05, momentum=0.9, dampening=0.5, weight_decay=0.01)
        return optimizer, torch.optim.lr_scheduler.StepLR(optimizer, 3, 0.5)

    (own, own_scheduler), (other, other_scheduler) = optimizer_of(module), optimizer_of(plain)
    ddp = muster.torch.ElasticDDP(module, own, session.group(), schedulers=[own_scheduler])
    steps = 0
    for step in ddp.steps():
        parts = []
        for batch in step.batches(parse):
            if step.evaluate:
                continue
            parts.append(batch.data)
            inputs, labels = batch.data
            with ddp.no_sync():  # the mean of two halves
                (loss_of(ddp, (inputs[::2], labels[::2])) / 2).backward()
            (loss_of(ddp, (inputs[1::2], labels[1::2])) / 2).backward()
        assert step.commit()
        if step.evaluate:
            continue
        steps += 1
        other.zero_grad()
        loss_of(plain, [torch.cat(values) for values in zip(*parts)]).backward()
        other.step()
        other_scheduler.step()
        for mine, theirs in zip(module.parameters(), plain.parameters()):
            torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-6)
        assert own.param_groups[0]["lr"] == other.param_groups[0]["lr"]
    write("same", str(steps))


def local(session):
    """MODE local: DiLoCo, with an optimizer of each member's own."""
    module = network()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    model = muster.torch.DiLoCo(module, session.group(), outer=muster.OuterNesterov(0.9, momentum=0.1))
    for step in model.steps():
        module.train(not step.evaluate)
        for batch in step.batches(parse):
            with batch:
                optimizer.zero_grad()
                loss = loss_of(module, batch.data)
                batch.metric("loss", loss.item(), len(batch))
                if not step.evaluate:
                    loss.backward()
                    optimizer.step()
        step.commit()
    if model.group.has_final_state():
        shared = {name: value for name, value in module.state_dict().items() if value.is_floating_point()}
        write(f"weights-{NODE}", digest(shared))


def misuse(session):
    """MODE misuse: the first steps are done wrong. After what cannot be undone, a new process goes on."""
    start = int(os.environ["MUSTER_START"])
    module = network()
    module[1].register_buffer("flag", torch.zeros(1, dtype=torch.bool))
    optimizer = torch.optim.SGD(module.parameters(), lr=0.01)
    ddp = muster.torch.ElasticDDP(module, optimizer, session.group())
    wrong = {1: wrong_and_undone(module, optimizer), 2: [(lambda: module[0].weight.detach().add_(1), None)]}.get(start, [])
    said = []
    for step in ddp.steps():
        for batch in step.batches(parse):
            loss = loss_of(ddp, batch.data)
            if step.evaluate:
                if start == 3 and not said:
                    said.append(with_error(loss.backward, RuntimeError))
                continue
            loss.backward()
            if start == 1 and not said:
                said.append(with_error(lambda: loss_of(ddp, batch.data).backward(), RuntimeError))
                with ddp.no_sync():
                    said.append(with_error(lambda: loss_of(ddp, batch.data).backward(), RuntimeError))
                said.append(with_error(optimizer.step, RuntimeError))
                said.append(with_error(lambda: ddp.load_state_dict(ddp.state_dict()), RuntimeError))
        if not wrong or step.evaluate:
            step.commit()
            continue
        do, undo = wrong.pop(0)
        do()
        said.append(with_error(step.commit, RuntimeError))
        if undo is None:
            write(f"misuse-{start}", "\n".join(said))
            os.kill(os.getpid(), signal.SIGKILL)
        undo()
    write(f"misuse-{start}", "\n".join(said))


def wrong_and_undone(module, optimizer):
    weight, kept, mean = module[0].weight, module[0].weight.data, module[1].running_mean

    def restore():
        weight.data = kept

    return [
        (lambda: setattr(weight, "data", torch.zeros(4, 4)), restore),
        (lambda: setattr(weight, "data", kept.clone()), restore),
        (lambda: module[0].register_parameter("more", nn.Parameter(torch.zeros(1))), lambda: module[0]._parameters.pop("more")),
        (lambda: module[0].register_buffer("more", torch.zeros(1)), lambda: module[0]._buffers.pop("more")),
        (lambda: module[1]._buffers.update(running_mean=torch.zeros(8)), lambda: module[1]._buffers.update(running_mean=mean)),
        (lambda: weight.requires_grad_(False), lambda: weight.requires_grad_(True)),
        (lambda: optimizer.add_param_group({"params": [nn.Parameter(torch.zeros(1))]}), optimizer.param_groups.pop),
        (lambda: module[1].flag.fill_(True), None),
    ]


def main():
    modes = {"local": local, "same": same, "misuse": misuse}
    session = muster.connect()
    modes.get(MODE, learn)(session)
    sys.exit(session.finish())


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()

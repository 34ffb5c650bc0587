"""The bits of a state: what must not depend on what was killed."""

import hashlib

import torch


def digest(value, into=None):
    """Of all bits of a state_dict."""
    into = into or hashlib.sha256()
    if isinstance(value, torch.Tensor):
        into.update(value.reshape(-1).view(torch.uint8).numpy().tobytes())
    elif isinstance(value, dict):
        for key in value:
            into.update(str(key).encode())
            digest(value[key], into)
    elif isinstance(value, (list, tuple)):
        for one in value:
            digest(one, into)
    else:
        into.update(repr(value).encode())
    return into.hexdigest()

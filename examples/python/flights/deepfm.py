"""The DeepFM of ../../flights/deepfm.h in PyTorch. There is no Muster in it."""

import torch
from torch import nn

FIELDS, DIM, HIDDEN = 9, 16, (64, 32)
# How it is trained: Adagrad everywhere, as deepfm.h explains.
LEARNING_RATE, INITIAL_ACCUMULATOR, EMBEDDING_STDDEV, WARMUP_STEPS = 0.05, 1e-5, 0.01, 200


class DeepFm(nn.Module):
    """What is not an embedding. A factorization machine, and a perceptron over the same embeddings.

    Source: Guo et al., "DeepFM: A Factorization-Machine based Neural Network for CTR Prediction", IJCAI 2017.
    """

    def __init__(self) -> None:
        super().__init__()
        self.hidden1 = nn.Linear(FIELDS * DIM, HIDDEN[0])
        self.hidden2 = nn.Linear(HIDDEN[0], HIDDEN[1])
        self.output = nn.Linear(HIDDEN[1], 1, bias=False)
        self.bias = nn.Parameter(torch.zeros(1))

    def forward(self, embeddings: torch.Tensor, first_order: torch.Tensor) -> torch.Tensor:
        """Logits [n] of embeddings [n, 9, 16] and sums of first-order weights [n, 1]."""
        hidden = torch.relu(self.hidden2(torch.relu(self.hidden1(embeddings.flatten(1)))))
        # Sum over pairs of <v_i, v_j> = (|sum of v|^2 - sum of |v|^2) / 2.
        pairs = (embeddings.sum(1).square().sum(1) - embeddings.square().sum((1, 2))) / 2
        logits: torch.Tensor = (self.output(hidden) + first_order).squeeze(1) + pairs + self.bias
        return logits

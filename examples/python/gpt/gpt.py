"""A member of a group that trains a small GPT on characters with DiLoCo: each trains alone, and they meet once in a step."""

import os

import torch
from torch import nn
from torch.nn import functional

import muster
import muster.torch

ALPHABET = "abcdefghijklmnopqrstuvwxyz. "
CONTEXT, WIDTH, HEADS, BLOCKS = 32, 64, 4, 2


class Block(nn.Module):
    """Attention to the characters before, and a perceptron, each added to what comes in."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attend, self.join = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.perceptron = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        records, length, _ = x.shape
        query, key, value = self.attend(self.norm1(x)).view(records, length, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        attended = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.join(attended.transpose(1, 2).reshape(records, length, WIDTH))
        result: torch.Tensor = x + self.perceptron(self.norm2(x))
        return result


class Gpt(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.characters, self.places = nn.Embedding(len(ALPHABET), WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(BLOCKS)), nn.LayerNorm(WIDTH))
        self.output = nn.Linear(WIDTH, len(ALPHABET))

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        """Logits [records, length, letters] of the next character at each place of text [records, length]."""
        x = self.characters(text) + self.places(torch.arange(text.shape[1]))
        logits: torch.Tensor = self.output(self.blocks(x))
        return logits

    @torch.no_grad()
    def write(self, text: str, length: int) -> str:
        """Goes on from a text, with the character that is most likely."""
        for _ in range(length):
            known = torch.tensor([[ALPHABET.index(character) for character in text[-CONTEXT:]]])
            text += ALPHABET[int(self(known)[0, -1].argmax())]
        return text


def parse(batch: muster.Batch) -> torch.Tensor:
    """[records, CONTEXT + 1]: the characters of each line."""
    return torch.tensor([[ALPHABET.index(character) for character in line.decode()] for line in batch.records])


def main() -> None:
    torch.manual_seed(1)  # all members begin with the same weights
    torch.set_num_threads(1)
    model = Gpt()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.003)
    with muster.connect() as session:
        local = muster.torch.DiLoCo(model, session.group(), outer=muster.OuterNesterov(0.7, momentum=0.6))
        for step in local.steps():
            for batch in step.batches(parse):
                with batch, torch.set_grad_enabled(not step.evaluate):
                    text = batch.data
                    loss = functional.cross_entropy(model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())
                    batch.metric("loss", loss.item(), len(text))
                    if not step.evaluate:
                        optimizer.zero_grad()
                        loss.backward()
                        optimizer.step()
            step.commit()
        if local.group.has_final_state():
            with open(f"written-{os.environ['MUSTER_NODE']}.txt", "w", encoding="ascii") as file:
                print(model.write("the ", 200), file=file)


if __name__ == "__main__":
    main()

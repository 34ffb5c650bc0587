"""The shapes in which the flights come: which files, which datasets. Each writes its files into a folder and returns its train datasets."""

import os
import random


class Records:
    """The training records of the flights, and what they are sorted by."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            self.header, *lines = file.read().splitlines()
        self.lines = [line for line in lines if line]
        columns = self.header.split(",")
        self._delay = columns.index("arr_delay")

    def late(self, line):
        """The label, as examples/flights/flight_record.cc has it."""
        delay = line.split(",")[self._delay]
        return delay in ("", "NA") or float(delay) > 15

    def shuffled(self, seed):
        lines = list(self.lines)
        random.Random(seed).shuffle(lines)
        return lines

    def by_label(self, seed):
        return sorted(self.shuffled(seed), key=self.late)

    def by_date(self, seed):
        return sorted(self.shuffled(seed), key=lambda line: tuple(int(number) for number in line.split(",")[:3]))

    def write(self, path, lines):
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join([self.header, *lines]) + "\n")


def dataset(name, *files, **fields):
    return {"name": name, "files": list(files), "header": True, "minibatchSize": 256, "minibatchesPerShard": 16, "shuffle": True} | fields


def one_file(records, folder, seed):
    records.write(os.path.join(folder, "train.csv"), records.shuffled(seed))
    return [dataset("train", "train.csv")]


def sorted_file(order):
    def write(records, folder, seed):
        records.write(os.path.join(folder, "train.csv"), order(records, seed))
        return [dataset("train", "train.csv")]
    return write


def in_files(size):
    """Files of `size(random)` records each, in a random order of the records."""
    def write(records, folder, seed):
        lines, rng, number = records.shuffled(seed), random.Random(seed), 0
        while lines:
            count = size(rng)
            records.write(os.path.join(folder, f"part-{number:06}.csv"), lines[:count])
            lines, number = lines[count:], number + 1
        return [dataset("train", "part-*.csv")]
    return write


def two_datasets(records, folder, seed):
    """Nine of ten flights that were late are in the first of two datasets, and one of two others."""
    rng = random.Random(seed)
    first, second = [], []
    for line in records.shuffled(seed):
        (first if rng.random() < (0.9 if records.late(line) else 0.5) else second).append(line)
    records.write(os.path.join(folder, "first.csv"), first)
    records.write(os.path.join(folder, "second.csv"), second)
    both = [dataset("first", "first.csv"), dataset("second", "second.csv")]
    for one in both:
        del one["minibatchesPerShard"]  # the default of several train datasets
    return both


# name: (in words, how it is written)
SHAPES = {
    "mixed": ("one file in a random order", one_file),
    "label": ("one file sorted by label", sorted_file(Records.by_label)),
    "date": ("one file sorted by date", sorted_file(Records.by_date)),
    "small": ("files of 260 records", in_files(lambda rng: 260)),
    "uneven": ("files of 1 to 600 records", in_files(lambda rng: rng.randint(1, 600))),
    "datasets": ("two train datasets with other base rates", two_datasets),
}
# name: (in words, partitions of a topic to which they are written meanwhile, 8,000 a second)
TOPICS = {
    "topic4": ("a topic of 4 partitions", 4),
    "topic64": ("a topic of 64 partitions", 64),
    "topic1000": ("a topic of 1,000 partitions", 1000),
}

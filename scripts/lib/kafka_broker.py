"""A real Apache Kafka broker for tests, benchmarks and the demo: one process (KRaft), loopback, free ports.

Python's standard library only. The jars come from Maven (scripts/kafka install); `find()` says whether they and Java are there.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

import ports

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
JARS = os.path.join(ROOT, "build", "kafka")
# What clients expect within; a broker on this machine takes 2 s.
START_SECONDS = 60
CLUSTER = "TXVzdGVyVGVzdHNLYWZrYQ"
SETTINGS = """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
log.dirs={data}
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
group.initial.rebalance.delay.ms=0
broker.heartbeat.interval.ms=500
broker.session.timeout.ms=3000
log.retention.check.interval.ms=500
log.cleaner.backoff.ms=500
log.cleaner.dedupe.buffer.size=8388608
log.segment.delete.delay.ms=0
log.initial.task.delay.ms=0
"""
LOG4J = """log4j.rootLogger=WARN, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d %p %c{1}: %m%n
"""


class Missing(Exception):
    """A broker lacks something; the text says what, and how to get it."""


def find():
    """Raises Missing unless Java and the jars are there."""
    if shutil.which("java") is None:
        raise Missing("no java: install openjdk-17-jre-headless (scripts/install --all)")
    if not os.path.isdir(JARS) or not any(name.startswith("kafka_") for name in os.listdir(JARS)):
        raise Missing(f"no Kafka in {os.path.relpath(JARS, ROOT)}: scripts/kafka install")


def install():
    """Copies the jars from Maven's repositories into build/kafka, unless they are there."""
    try:
        return find()
    except Missing:
        pass
    if shutil.which("mvn") is None:
        raise Missing("no mvn: install maven (scripts/install --all)")
    os.makedirs(JARS, exist_ok=True)
    subprocess.run(["mvn", "--batch-mode", "--quiet", "-f", os.path.join(ROOT, "scripts", "lib", "kafka", "pom.xml"),
                    "dependency:copy-dependencies", f"-DoutputDirectory={JARS}", "-DincludeScope=runtime"], check=True)
    find()


class Broker:
    """A broker with its data in `folder`. `with` starts it, waits until it serves, and ends it."""

    def __init__(self, folder, more="", memory="256m"):
        """`memory`: of Java's heap. A thousand partitions need more than a few."""
        find()
        self.memory = memory
        self.folder = os.path.abspath(folder)
        self.port, self.controller = ports.free_ports(2)
        self.address = f"127.0.0.1:{self.port}"
        self.process = None
        os.makedirs(self.folder, exist_ok=True)
        self._write("server.properties", SETTINGS.format(port=self.port, controller=self.controller,
                                                         data=self._path("data")) + more)
        self._write("log4j.properties", LOG4J)

    def _path(self, name):
        return os.path.join(self.folder, name)

    def _write(self, name, text):
        with open(self._path(name), "w", encoding="utf-8") as file:
            file.write(text)

    def _java(self, main, *arguments, memory="256m"):
        return ["java", f"-Xmx{memory}", "-Xms64m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Djava.awt.headless=true",
                f"-Dlog4j.configuration=file:{self._path('log4j.properties')}", "-cp", os.path.join(JARS, "*"), main, *arguments]

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def start(self):
        if not os.path.exists(self._path("data/meta.properties")):
            self.tool("kafka.tools.StorageTool", "format", "-t", CLUSTER, "-c", self._path("server.properties"))
        with open(self._path("broker.log"), "ab") as log:
            self.process = subprocess.Popen(self._java("kafka.Kafka", self._path("server.properties"), memory=self.memory), stdout=log, stderr=log,
                                            stdin=subprocess.DEVNULL, start_new_session=True)
        end = time.monotonic() + START_SECONDS
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > end:
                    raise RuntimeError(f"the broker does not serve: {self._path('broker.log')}") from None
                time.sleep(0.05)

    def kill(self):
        """SIGKILL, as a crash."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        if self.process is None or self.process.poll() is not None:
            return
        self.process.terminate()
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.kill()

    def tool(self, main, *arguments, text=None):
        """Runs one of Kafka's own tools; returns its output."""
        result = subprocess.run(self._java(main, *arguments, memory="128m"), input=text, capture_output=True, text=True, timeout=120,
                                check=False)
        if result.returncode != 0:
            raise RuntimeError(f"{main} {' '.join(arguments)}: {result.stdout}{result.stderr}")
        return result.stdout

    def create_topic(self, topic, partitions, **settings):
        """`settings`: of the topic, with _ for the dots."""
        config = [word for name, value in settings.items() for word in ("--config", f"{name.replace('_', '.')}={value}")]
        self._topic("--create", topic, "--partitions", str(partitions), *config)

    def add_partitions(self, topic, partitions):
        """Adds partitions until the topic has this many."""
        self._topic("--alter", topic, "--partitions", str(partitions))

    def delete_topic(self, topic):
        self._topic("--delete", topic)

    def _topic(self, verb, topic, *arguments):
        self.tool("org.apache.kafka.tools.TopicCommand", "--bootstrap-server", self.address, verb, "--topic", topic, *arguments)

    def set_topic(self, topic, **settings):
        """Changes settings of a topic that is there; names as in create_topic."""
        config = ",".join(f"{name.replace('_', '.')}={value}" for name, value in settings.items())
        self.tool("kafka.admin.ConfigCommand", "--bootstrap-server", self.address, "--alter", "--entity-type", "topics", "--entity-name", topic,
                  "--add-config", config)

    def delete_records(self, topic, before):
        """What retention does, at once: no offset is left before those of {partition: offset}."""
        what = {"version": 1, "partitions": [{"topic": topic, "partition": p, "offset": offset} for p, offset in before.items()]}
        self._write("delete.json", json.dumps(what))
        self.tool("org.apache.kafka.tools.DeleteRecordsCommand", "--bootstrap-server", self.address, "--offset-json-file", self._path("delete.json"))

    def group_lags(self, group):
        """The output of Kafka's consumer-group tool: {(topic, partition): (committed, end, lag)}."""
        lags = {}
        for line in self.tool("org.apache.kafka.tools.consumer.group.ConsumerGroupCommand", "--bootstrap-server", self.address,
                              "--describe", "--group", group).splitlines():
            words = line.split()
            if len(words) >= 6 and words[0] == group and words[2].isdigit():
                lags[words[1], int(words[2])] = tuple(None if word == "-" else int(word) for word in words[3:6])
        return lags


def produce(broker, topic, lines, partition=None):
    """With kcat, which shares no code of ours."""
    # One by one to any partition, not in batches to the same.
    command = ["kcat", "-q", "-P", "-b", broker.address, "-t", topic, "-X", "sticky.partitioning.linger.ms=0"]
    if partition is not None:
        command += ["-p", str(partition)]
    subprocess.run(command, input="".join(f"{line}\n" for line in lines), text=True, check=True, timeout=120)


def consume(broker, topic, isolation="read_committed"):
    """All records of a topic by kcat, by partition and offset: [(partition, offset, key or None, value or None)].

    kcat gives up at an error that would pass, for example while the topic is compacted; so it reads again, at most five times.
    """
    command = ["kcat", "-q", "-C", "-b", broker.address, "-t", topic, "-e", "-o", "beginning", "-X", f"isolation.level={isolation}",
               "-f", "%p\\t%o\\t%K\\t%k\\t%S\\t%s\\n"]
    for attempt in range(1, 6):
        result = subprocess.run(command, capture_output=True, text=True, timeout=120)
        if result.returncode == 0:
            break
        print(f"kcat could not read '{topic}' (attempt {attempt}): {result.stderr.strip()}", file=sys.stderr, flush=True)
    result.check_returncode()
    records = []
    for line in result.stdout.splitlines():
        partition, offset, key_bytes, key, value_bytes, value = line.split("\t", 5)
        records.append((int(partition), int(offset), None if int(key_bytes) < 0 else key, None if int(value_bytes) < 0 else value))
    return sorted(records, key=lambda record: record[:2])

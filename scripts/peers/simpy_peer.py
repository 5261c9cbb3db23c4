"""SimPy: a time-out for every task and a callback at its end, the lightest way to use it; ready tasks wait in a queue for
each type of worker. Usage: simpy_peer.py SHAPE TASKS"""

import json
import sys
import time
from collections import deque

import graphs
import simpy


class Simulation:
    def __init__(self, shape, tasks):
        self.environment = simpy.Environment()
        self.shape = shape
        self.idle = {True: 24, False: 48}
        self.ready = {True: deque(), False: deque()}
        self.consumers = [[] for _ in range(tasks)]
        self.waits_for = [0] * tasks
        self.ended = 0

    def build(self):
        """Links all tasks and returns the number of edges."""
        producers_of = graphs.SHAPES[self.shape]
        edges = 0
        for number in range(len(self.waits_for)):
            producers = producers_of(number)
            self.waits_for[number] = len(producers)
            edges += len(producers)
            for producer in producers:
                self.consumers[producer].append(number)
        return edges

    def run(self):
        for number in [number for number, count in enumerate(self.waits_for) if count == 0]:
            self.is_ready(number)
        self.environment.run()

    def is_ready(self, number):
        cube = graphs.on_cube(self.shape, number)
        if self.idle[cube] > 0:
            self.idle[cube] -= 1
            self.start(number, cube)
        else:
            self.ready[cube].append(number)

    def start(self, number, cube):
        end = self.environment.timeout(100 if cube else 50)
        end.callbacks.append(lambda _: self.complete(number, cube))

    def complete(self, number, cube):
        self.ended += 1
        if self.ready[cube]:
            self.start(self.ready[cube].popleft(), cube)
        else:
            self.idle[cube] += 1
        for consumer in self.consumers[number]:
            self.waits_for[consumer] -= 1
            if self.waits_for[consumer] == 0:
                self.is_ready(consumer)


def main(shape, tasks):
    start = time.process_time_ns()
    simulation = Simulation(shape, tasks)
    edges = simulation.build()
    simulation.run()
    ns = time.process_time_ns() - start
    told = {"tasks": simulation.ended, "edges": edges, "ns": ns, "makespan": simulation.environment.now}
    print(json.dumps({**told, "version": simpy.__version__}))


main(sys.argv[1], int(sys.argv[2]))

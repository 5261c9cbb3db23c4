// SimGrid: an execution on a host for every task. Consumers and ready tasks are kept here and an execution is made when its
// task starts: SimGrid's own dependencies want all executions at once, and ending one takes time linear in those that exist.
#include "graphs.hpp"
#include <deque>
#include <simgrid/s4u.hpp>
#include <simgrid/version.h>
#include <string>
#include <unistd.h>

namespace s4u = simgrid::s4u;

// The workers of one type: those without work, and ready tasks.
struct Pool {
    std::vector<s4u::Host *> idle;
    std::deque<uint64_t> ready;
};

struct Task {
    unsigned waits_for = 0;
    std::vector<uint64_t> consumers;
    s4u::ExecPtr exec; // SimGrid does not keep it alive
};

class Simulation {
  public:
    Simulation(const Run &run, Pool &cube, Pool &vector) : run(run), cube(cube), vector(vector), tasks(run.tasks) {}

    // Links all tasks and returns the number of edges.
    uint64_t build() {
        uint64_t edges = 0;
        for (uint64_t id = 0; id < run.tasks; id++) {
            Producers producers = run.producers(id);
            tasks[id].waits_for = producers.count;
            edges += producers.count;
            for (unsigned i = 0; i < producers.count; i++) tasks[producers.ids[i]].consumers.push_back(id);
        }
        for (uint64_t id = 0; id < run.tasks; id++)
            if (tasks[id].waits_for == 0) pool(id).ready.push_back(id);
        dispatch(cube);
        dispatch(vector);
        return edges;
    }

    void complete(const s4u::Exec &exec) {
        ended++;
        uint64_t id = reinterpret_cast<uint64_t>(exec.get_data<void>());
        pool(id).idle.push_back(exec.get_host());
        for (uint64_t consumer : tasks[id].consumers)
            if (--tasks[consumer].waits_for == 0) pool(consumer).ready.push_back(consumer);
        dispatch(cube);
        dispatch(vector);
    }

    uint64_t ended = 0;

  private:
    Pool &pool(uint64_t id) { return run.on_cube(id) ? cube : vector; }

    void dispatch(Pool &pool) {
        for (; !pool.idle.empty() && !pool.ready.empty(); pool.idle.pop_back(), pool.ready.pop_front()) {
            uint64_t id = pool.ready.front();
            s4u::ExecPtr &exec = tasks[id].exec;
            exec = s4u::Exec::init()->set_flops_amount(double(run.cycles(id)));
            exec->set_data(reinterpret_cast<void *>(id));
            exec->set_host(pool.idle.back());
            exec->vetoable_start();
        }
    }

    const Run &run;
    Pool &cube, &vector;
    std::vector<Task> tasks;
};

int main(int count, char **words) {
    Run run = arguments(count, words);
    s4u::Engine engine(&count, words);
    auto *zone = s4u::create_full_zone("machine");
    Pool cube, vector;
    for (int i = 0; i < 24; i++) cube.idle.push_back(zone->create_host("cube" + std::to_string(i), "1f"));
    for (int i = 0; i < 48; i++) vector.idle.push_back(zone->create_host("vector" + std::to_string(i), "1f"));
    zone->seal();

    uint64_t start = now(CLOCK_PROCESS_CPUTIME_ID);
    Simulation simulation(run, cube, vector);
    s4u::Activity::on_completion_cb(
        [&](const s4u::Activity &task) { simulation.complete(static_cast<const s4u::Exec &>(task)); });
    uint64_t edges = simulation.build();
    engine.run();
    uint64_t ns = now(CLOCK_PROCESS_CPUTIME_ID) - start;
    printf("{\"tasks\": %lu, \"edges\": %lu, \"ns\": %lu, \"makespan\": %.0f, \"version\": \"%d.%d\"}\n", simulation.ended,
           edges, ns, engine.get_clock(), SIMGRID_VERSION_MAJOR, SIMGRID_VERSION_MINOR);
    fflush(stdout);
    _exit(simulation.ended == run.tasks ? 0 : 1); // the graph need not be destroyed
}

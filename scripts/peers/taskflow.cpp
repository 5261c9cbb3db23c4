// Taskflow: a static graph of closures on an executor with two threads.
#include "graphs.hpp"
#include <taskflow/taskflow.hpp>

int main(int count, char **words) {
    Run run = arguments(count, words);
    tf::Executor executor(2);
    tf::Taskflow flow;
    std::vector<tf::Task> tasks(run.tasks);
    uint64_t edges = 0;
    Executed executed(run);
    for (uint64_t id = 0; id < run.tasks; id++) {
        tasks[id] = flow.emplace([&executed, id] { executed.task(id); });
        Producers producers = run.producers(id);
        for (unsigned i = 0; i < producers.count; i++) tasks[producers.ids[i]].precede(tasks[id]);
        edges += producers.count;
    }
    executor.run(flow).wait();
    return executed.finish(edges, tf::version());
}

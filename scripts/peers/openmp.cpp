// OpenMP: tasks with depend clauses on two threads; every task writes a byte of its own and reads those of its producers.
#include "graphs.hpp"

int main(int count, char **words) {
    Run run = arguments(count, words);
    std::vector<char> written(run.tasks);
    [[maybe_unused]] char *at = written.data();
    uint64_t edges = 0;
    Executed executed(run);
#pragma omp parallel num_threads(2)
#pragma omp single
    for (uint64_t id = 0; id < run.tasks; id++) {
        Producers producers = run.producers(id);
        edges += producers.count;
        uint64_t a = producers.ids[0], b = producers.ids[1], c = producers.ids[2];
        switch (producers.count) {
        case 0:
#pragma omp task depend(out : at[id]) firstprivate(id)
            executed.task(id);
            break;
        case 1:
#pragma omp task depend(in : at[a]) depend(out : at[id]) firstprivate(id)
            executed.task(id);
            break;
        case 2:
#pragma omp task depend(in : at[a], at[b]) depend(out : at[id]) firstprivate(id)
            executed.task(id);
            break;
        default:
#pragma omp task depend(in : at[a], at[b], at[c]) depend(out : at[id]) firstprivate(id)
            executed.task(id);
        }
    }
    return executed.finish(edges, "gcc " __VERSION__);
}

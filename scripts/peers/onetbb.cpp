// oneTBB: a flow graph of continue nodes on two threads.
#include "graphs.hpp"
#include <deque>
#include <tbb/flow_graph.h>
#include <tbb/global_control.h>
#include <tbb/version.h>

using Node = tbb::flow::continue_node<tbb::flow::continue_msg>;

int main(int count, char **words) {
    Run run = arguments(count, words);
    tbb::global_control threads(tbb::global_control::max_allowed_parallelism, 2);
    tbb::flow::graph graph;
    std::deque<Node> nodes;
    std::vector<uint64_t> roots;
    uint64_t edges = 0;
    Executed executed(run);
    for (uint64_t id = 0; id < run.tasks; id++) {
        nodes.emplace_back(graph, [&executed, id](const tbb::flow::continue_msg &) { executed.task(id); });
        Producers producers = run.producers(id);
        for (unsigned i = 0; i < producers.count; i++) tbb::flow::make_edge(nodes[producers.ids[i]], nodes[id]);
        if (producers.count == 0) roots.push_back(id);
        edges += producers.count;
    }
    for (uint64_t root : roots) nodes[root].try_put(tbb::flow::continue_msg());
    graph.wait_for_all();
    return executed.finish(edges, TBB_VERSION_STRING);
}

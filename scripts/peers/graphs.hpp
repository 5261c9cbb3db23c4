// The graphs of the comparison as functions from the number of a task to its producers, as the generators of ptosim make
// them, and what every peer does around its run: read the arguments, take the time, check, print.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <vector>

enum class Shape { chain, stencil, bgemm, random };

constexpr uint64_t WIDTH = 256; // points of one step of the stencil
constexpr uint64_t STEPS = 16;  // products added into one tile of C
constexpr uint64_t REACH = 256; // how far back random producers are

struct Producers {
    uint64_t ids[3];
    unsigned count = 0;

    void add(uint64_t id) { ids[count++] = id; }
    bool has(uint64_t id) const {
        for (unsigned i = 0; i < count; i++)
            if (ids[i] == id) return true;
        return false;
    }
};

inline uint64_t mix(uint64_t value) {
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9;
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB;
    return value ^ (value >> 31);
}

inline Producers of_stencil(uint64_t id) {
    Producers found;
    if (id < WIDTH) return found;
    uint64_t before = id - WIDTH, point = id % WIDTH;
    if (point > 0) found.add(before - 1);
    found.add(before);
    if (point + 1 < WIDTH) found.add(before + 1);
    return found;
}

// Even tasks multiply and wait for nothing; odd ones add the product into a tile of C after the addition before.
inline Producers of_bgemm(uint64_t id) {
    Producers found;
    if (id % 2 == 0) return found;
    found.add(id - 1);
    if (id / 2 % STEPS > 0) found.add(id - 2);
    return found;
}

inline Producers of_random(uint64_t id) {
    Producers found;
    uint64_t reach = id < REACH ? id : REACH;
    if (reach <= 3) {
        for (uint64_t back = reach; back > 0; back--) found.add(id - back);
        return found;
    }
    uint64_t state = mix(1 ^ mix(id));
    for (int i = 0; i < 3; i++) {
        state += 0x9E3779B97F4A7C15;
        uint64_t producer = id - 1 - uint64_t((unsigned __int128)mix(state) * reach >> 64);
        if (!found.has(producer)) found.add(producer);
    }
    return found;
}

// One run as asked for on the command line.
struct Run {
    Shape shape;
    uint64_t tasks;
    uint64_t spin_ns;

    Producers producers(uint64_t id) const {
        switch (shape) {
        case Shape::chain: {
            Producers found;
            if (id > 0) found.add(id - 1);
            return found;
        }
        case Shape::stencil: return of_stencil(id);
        case Shape::bgemm: return of_bgemm(id);
        case Shape::random: return of_random(id);
        }
        abort();
    }

    // The type of worker, CUBE or VECTOR, and the cycles of a task.
    bool on_cube(uint64_t id) const { return shape != Shape::stencil && id % 2 == 0; }
    uint64_t cycles(uint64_t id) const { return on_cube(id) ? 100 : 50; }
};

inline Run arguments(int count, char **words) {
    const char *names[] = {"chain", "stencil", "bgemm", "random"};
    for (int i = 0; i < 4 && count >= 3; i++)
        if (strcmp(words[1], names[i]) == 0)
            return Run{Shape(i), strtoull(words[2], nullptr, 10), count > 3 ? strtoull(words[3], nullptr, 10) : 0};
    fprintf(stderr, "usage: %s chain|stencil|bgemm|random TASKS [SPIN_NS]\n", words[0]);
    exit(2);
}

inline uint64_t now(clockid_t clock) {
    timespec time;
    clock_gettime(clock, &time);
    return uint64_t(time.tv_sec) * 1000000000 + uint64_t(time.tv_nsec);
}

// Runs tasks on threads: a task does nothing or spins. One byte for each task counts how often it ran.
class Executed {
  public:
    explicit Executed(const Run &run) : spin_ns(run.spin_ns), ran(run.tasks), start(now(CLOCK_MONOTONIC)) {}

    void task(uint64_t id) {
        ran[id]++;
        if (spin_ns == 0) return;
        uint64_t until = now(CLOCK_MONOTONIC) + spin_ns;
        while (now(CLOCK_MONOTONIC) < until) {
        }
    }

    // Prints the wall time since the start; the exit code tells whether every task ran once.
    int finish(uint64_t edges, const char *version) const {
        uint64_t ns = now(CLOCK_MONOTONIC) - start;
        for (unsigned char times : ran)
            if (times != 1) return fprintf(stderr, "a task ran %d times\n", times), 1;
        printf("{\"tasks\": %zu, \"edges\": %lu, \"ns\": %lu, \"version\": \"%s\"}\n", ran.size(), edges, ns, version);
        return 0;
    }

  private:
    uint64_t spin_ns;
    std::vector<unsigned char> ran;
    uint64_t start;
};

// Burns about half a second in three lambdas, which compilers inline into the function that makes them.

#include <chrono>
#include <cstdint>
#include <functional>

static volatile std::uint64_t sink;

template <class Work> static inline std::uint64_t turns(std::uint64_t from, Work work) {
    using clock = std::chrono::steady_clock;
    const auto end = clock::now() + std::chrono::milliseconds(170);
    std::uint64_t value = from;
    while (clock::now() < end)
        for (int turn = 0; turn < 2000; turn++) value = std::invoke(work, value);
    return value;
}

namespace app {
namespace {
struct Mixer {
    template <class T> T mixed(T value) const { return (value ^ (value >> 29)) * 0xbf58476d1ce4e5b9u; }
};
}  // namespace

__attribute__((noinline)) void first() {
    sink = turns(1, [](std::uint64_t value) {
        for (int i = 0; i < 20; i++) value = value * 6364136223846793005u + (value >> 33);
        return value;
    });
    sink = turns(sink, [](std::uint64_t value) {
        for (int i = 0; i < 20; i++) value = value / 7 + 0x9e3779b97f4a7c15u;
        return value;
    });
}

__attribute__((noinline)) void second() {
    Mixer mixer;
    sink = turns(2, [&](std::uint64_t value) {
        for (int i = 0; i < 20; i++) value = mixer.mixed(value) + 1;
        return value;
    });
}
}  // namespace app

int main() {
    app::first();
    app::second();
}

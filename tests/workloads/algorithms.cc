// Burns in algorithms of the C++ library, which are inlined.

#include <algorithm>
#include <chrono>
#include <numeric>
#include <vector>

__attribute__((noinline)) static long sums_up(const std::vector<long> &values) {
  return std::accumulate(values.begin(), values.end(), 0L);
}

__attribute__((noinline)) static void transforms(std::vector<long> &values) {
  std::transform(values.begin(), values.end(), values.begin(), [](long value) { return value * 3 + 1; });
}

int main() {
  std::vector<long> values(4096, 1);
  volatile long sum = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(800);
  while (std::chrono::steady_clock::now() < end) {
    for (int round = 0; round < 50; round++) {
      transforms(values);
      sum = sum + sums_up(values);
    }
  }
  return sum == 42;
}

// read.cpp: prints the microseconds that reading BYTES of memory takes THREADS threads: the bound of a
// reduction.
#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

/// Eight sums that do not wait for each other: as fast as the memory gives.
std::uint64_t read(const std::uint64_t* begin, const std::uint64_t* end) {
  std::uint64_t sums[8] = {};
  for (; begin + 8 <= end; begin += 8) {
    for (int i = 0; i < 8; ++i) sums[i] += begin[i];
  }
  std::uint64_t all = 0;
  for (const std::uint64_t sum : sums) all += sum;
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const auto words = static_cast<std::size_t>(std::strtoull(argv[1], nullptr, 10) / 8);
  const int threads = std::max(1, std::atoi(argv[2]));
  constexpr int kRounds = 9;
  const std::vector<std::uint64_t> data(words, 1);
  std::vector<double> times;
  std::barrier line(threads);
  std::vector<std::uint64_t> sums(static_cast<std::size_t>(threads) * 8);
  const auto part = [&](int number) {
    const std::size_t each = words / static_cast<std::size_t>(threads);
    const std::uint64_t* begin = data.data() + each * static_cast<std::size_t>(number);
    for (int round = 0; round < kRounds; ++round) {
      line.arrive_and_wait();
      const auto start = std::chrono::steady_clock::now();
      sums[static_cast<std::size_t>(number) * 8] += read(begin, begin + each);
      line.arrive_and_wait();
      if (number == 0) {
        times.push_back(
            std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
      }
    }
  };
  std::vector<std::thread> others;
  for (int number = 1; number < threads; ++number) others.emplace_back(part, number);
  part(0);
  for (std::thread& other : others) other.join();
  std::uint64_t sum = 0;
  for (const std::uint64_t one : sums) sum += one;
  if (sum == 0 && words >= static_cast<std::size_t>(threads) * 8) return 1;  // the reads must happen
  std::sort(times.begin(), times.end());
  std::printf("%.3f\n", times[times.size() / 2]);
  return 0;
}

// filter_test.cpp: the loops of every instruction set that find elements, against plain ones.
#include <cstdint>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernels/cpu/filter_table.h"
#include "kernels/cpu/isa.h"
#include "kernels/op_runner.h"

namespace thalweg::cpu {

THALWEG_DECLARE_PER_ISA(fill_filter, FilterTable)

namespace {

/// Bytes that end where a page begins that may not be touched.
class GuardedBytes {
 public:
  GuardedBytes()
      : page_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))),
        base_(static_cast<char*>(
            mmap(nullptr, kBytes + page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    mprotect(base_ + kBytes, page_, PROT_NONE);
  }
  ~GuardedBytes() { munmap(base_, kBytes + page_); }
  GuardedBytes(const GuardedBytes&) = delete;
  GuardedBytes& operator=(const GuardedBytes&) = delete;

  template <class T>
  T* last(std::int64_t count) const {
    return reinterpret_cast<T*>(base_ + kBytes) - count;
  }

 private:
  static constexpr std::size_t kBytes = 16 * 4096;
  std::size_t page_;
  char* base_;
};

template <class T>
class Filter : public ::testing::Test {};
using Elements = ::testing::Types<std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t,
                                  std::uint16_t, std::uint32_t, std::uint64_t, float, double>;
TYPED_TEST_SUITE(Filter, Elements);

template <class T, class Test>
std::vector<std::uint32_t> expected_positions(const T* data, std::int64_t count, Test test) {
  std::vector<std::uint32_t> positions;
  for (std::int64_t i = 0; i < count; ++i) {
    if (test(data[i])) positions.push_back(static_cast<std::uint32_t>(i));
  }
  return positions;
}

TYPED_TEST(Filter, FindsWhatPlainLoopsFind) {
  using T = TypeParam;
  const GuardedBytes bytes;
  for (Isa isa : kIsas) {
    if (!is_supported(isa)) continue;
    FilterTable table{};
    fill_filter(isa, table);
    const FilterLoops<T>& loops = table;
    for (std::int64_t count : {0, 1, 5, 63, 64, 255, 256, 300, 777, 1024}) {
      // Of so many elements one is above and one below the bound, the rest equal it; then mixtures.
      for (unsigned rarity : {1u, 3u, 500u}) {
        T* data = bytes.last<T>(count);
        const T bound = std::numeric_limits<T>::max() / 2;
        std::mt19937 random(rarity);
        for (std::int64_t i = 0; i < count; ++i) {
          const unsigned number = random() % (3 * rarity);
          data[i] = number == 0   ? std::numeric_limits<T>::max()
                    : number == 1 ? std::numeric_limits<T>::lowest()
                                  : bound;
        }
        if (std::is_floating_point_v<T> && count > 2) data[count / 2] = std::numeric_limits<T>::quiet_NaN();
        const auto found = [&](FilterLoop<T> loop) {
          std::vector<std::uint32_t> positions(kFilterRoom);
          positions.resize(static_cast<std::size_t>(loop(data, count, bound, positions.data())));
          return positions;
        };
        const auto differs = expected_positions(data, count, [&](T x) { return x != bound; });
        EXPECT_EQ(found(loops.above), expected_positions(data, count, [&](T x) { return x > bound; }));
        EXPECT_EQ(found(loops.below), expected_positions(data, count, [&](T x) { return x < bound; }));
        EXPECT_EQ(found(loops.differs), differs) << name(isa) << ", " << count;
        EXPECT_EQ(loops.count_differs(data, count, bound), static_cast<std::int64_t>(differs.size()));
      }
    }
  }
}

TYPED_TEST(Filter, CountsMoreThanALaneHolds) {
  const std::vector<TypeParam> data(100'003, TypeParam(1));
  for (Isa isa : kIsas) {
    if (!is_supported(isa)) continue;
    FilterTable table{};
    fill_filter(isa, table);
    const FilterLoops<TypeParam>& loops = table;
    EXPECT_EQ(loops.count_differs(data.data(), 100'003, TypeParam(0)), 100'003) << name(isa);
    EXPECT_EQ(loops.count_differs(data.data(), 100'003, TypeParam(1)), 0) << name(isa);
  }
}

}  // namespace
}  // namespace thalweg::cpu

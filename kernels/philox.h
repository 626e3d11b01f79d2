// philox.h: the random number generator Philox4x32-10 and what its bits are turned into, for every device.
#pragma once

#include <stdint.h>

#include "kernels/functors.h"

namespace thalweg::functors {
// Unnamed, as in functors.h: one copy per object file.
namespace {

struct PhiloxBlock {
  uint32_t words[4];
};

/// Ten rounds of Philox4x32: Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3 (SC'11),
/// table 2.
THALWEG_HD PhiloxBlock philox4x32_10(PhiloxBlock counter, uint32_t key0, uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
    uint64_t left = uint64_t{0xD2511F53u} * counter.words[0];
    uint64_t right = uint64_t{0xCD9E8D57u} * counter.words[2];
    counter = {{static_cast<uint32_t>(right >> 32) ^ counter.words[1] ^ key0, static_cast<uint32_t>(right),
                static_cast<uint32_t>(left >> 32) ^ counter.words[3] ^ key1, static_cast<uint32_t>(left)}};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return counter;
}

/// The two 64-bit numbers of one counter of a stream; `attempt` numbers the further blocks of the same
/// counter.
struct RandomPair {
  uint64_t first;
  uint64_t second;
};
THALWEG_HD RandomPair random_pair(uint64_t seed, uint64_t counter, uint32_t attempt) {
  PhiloxBlock block =
      philox4x32_10({{static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), attempt, 0}},
                    static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32));
  return {block.words[0] | uint64_t{block.words[1]} << 32, block.words[2] | uint64_t{block.words[3]} << 32};
}

/// In [0, 1): 53 random bits.
THALWEG_HD double unit_interval(uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

}  // namespace
}  // namespace thalweg::functors

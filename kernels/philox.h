// philox.h: the random number generator Philox4x32-10 and what its bits are turned into, for every device.
#pragma once

#include <stdint.h>
#include <string.h>

#include "kernels/functors.h"

namespace thalweg::functors {
// Unnamed, as in functors.h: one copy per object file.
namespace {

/// Ten rounds of Philox4x32: Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3 (SC'11),
/// table 2. Each word is the lower half of a 64-bit number, or of each lane of a vector of such numbers; the
/// upper halves are never read and hold anything afterwards. `product(factor, word)` multiplies lower halves.
template <class Word, class Product>
THALWEG_HD void philox_rounds(Word* words, uint64_t key0, uint64_t key1, Product product) {
  for (int round = 0; round < 10; ++round) {
    const Word left = product(0xD2511F53u, words[0]);
    const Word right = product(0xCD9E8D57u, words[2]);
    words[0] = (right >> 32) ^ words[1] ^ key0;
    words[1] = right;
    words[2] = (left >> 32) ^ words[3] ^ key1;
    words[3] = left;
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
}

struct LowProduct {
  THALWEG_HD uint64_t operator()(uint32_t factor, uint64_t word) const {
    return uint64_t{factor} * static_cast<uint32_t>(word);
  }
};

/// Two 64-bit numbers of the words that philox_rounds leaves.
template <class Word>
THALWEG_HD Word first_number(const Word* words) {
  return (words[0] & 0xffffffffu) | words[1] << 32;
}
template <class Word>
THALWEG_HD Word second_number(const Word* words) {
  return (words[2] & 0xffffffffu) | words[3] << 32;
}

/// The two 64-bit numbers of one counter of a stream; `attempt` numbers the further blocks of the same
/// counter.
struct RandomPair {
  uint64_t first;
  uint64_t second;
};
THALWEG_HD RandomPair random_pair(uint64_t seed, uint64_t counter, uint32_t attempt) {
  uint64_t words[4] = {counter, counter >> 32, attempt, 0};
  philox_rounds(words, seed, seed >> 32, LowProduct{});
  return {first_number(words), second_number(words)};
}

THALWEG_HD uint64_t double_bits(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}
THALWEG_HD double double_of_bits(uint64_t bits) {
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/// In [0, 1): 53 random bits k, as k * 2^-53, all steps exact. Written without a conversion of 64-bit
/// integers, which vectors have since AVX-512 only: the two parts of k become fractions of 2^31 and of 1/2.
THALWEG_HD double unit_interval(uint64_t bits) {
  const double upper = double_of_bits(double_bits(0x1p31) | bits >> 43);
  const double lower = double_of_bits(double_bits(0x1p-1) | (bits >> 11 & 0xffffffffu));
  return (upper - (0x1p31 + 0x1p-1)) + lower;
}

}  // namespace
}  // namespace thalweg::functors

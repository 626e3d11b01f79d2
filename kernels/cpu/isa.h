// isa.h: which of the compiled instruction sets the kernels use on this processor.
#pragma once

#include <string_view>

namespace thalweg::cpu {

/// The instruction sets for which every `*_isa.cpp` file is compiled. The order is that of preference.
enum class Isa { baseline, avx2, avx512 };

inline constexpr Isa kIsas[] = {Isa::baseline, Isa::avx2, Isa::avx512};

std::string_view name(Isa isa) noexcept;

/// True if this build has `isa` and this processor runs it.
bool is_supported(Isa isa) noexcept;

/// The instruction set of every kernel: the best supported one, or the one that the environment variable
/// THALWEG_CPU_ISA (baseline, avx2, avx512) names; decided at the first call. Throws ValueError for a name
/// that is unknown or not supported here.
Isa active_isa();

}  // namespace thalweg::cpu

/// Declares what one `*_isa.cpp` file exports, `function(Table&)` in the namespace of each instruction set,
/// and `function(Isa, Table&)`, which calls the right one. Used inside namespace thalweg::cpu.
#if defined(__x86_64__)
#define THALWEG_DECLARE_PER_ISA(function, Table)            \
  namespace baseline {                                      \
  void function(Table& table);                              \
  }                                                         \
  namespace avx2 {                                          \
  void function(Table& table);                              \
  }                                                         \
  namespace avx512 {                                        \
  void function(Table& table);                              \
  }                                                         \
  inline void function(Isa isa, Table& table) {             \
    switch (isa) {                                          \
      case Isa::avx512: return avx512::function(table);     \
      case Isa::avx2: return avx2::function(table);         \
      case Isa::baseline: return baseline::function(table); \
    }                                                       \
  }
#else
#define THALWEG_DECLARE_PER_ISA(function, Table) \
  namespace baseline {                           \
  void function(Table& table);                   \
  }                                              \
  inline void function(Isa, Table& table) { baseline::function(table); }
#endif

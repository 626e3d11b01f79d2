// isa.cpp: the choice of an instruction set.
#include "kernels/cpu/isa.h"

#include <cstdlib>
#include <string>

#include <thalweg/errors.h>

namespace thalweg::cpu {
namespace {

Isa choose_isa() {
  const char* wanted = std::getenv("THALWEG_CPU_ISA");
  if (wanted == nullptr || *wanted == '\0') {
    if (is_supported(Isa::avx512)) return Isa::avx512;
    return is_supported(Isa::avx2) ? Isa::avx2 : Isa::baseline;
  }
  for (Isa isa : kIsas) {
    if (name(isa) == wanted && is_supported(isa)) return isa;
  }
  std::string usable;
  for (Isa isa : kIsas) {
    if (is_supported(isa)) usable.append(usable.empty() ? "" : ", ").append(name(isa));
  }
  throw ValueError("THALWEG_CPU_ISA is '" + std::string(wanted) + "'; this processor can use " + usable);
}

}  // namespace

std::string_view name(Isa isa) noexcept {
  switch (isa) {
    case Isa::avx512: return "avx512";
    case Isa::avx2: return "avx2";
    case Isa::baseline: break;
  }
  return "baseline";
}

bool is_supported(Isa isa) noexcept {
#if defined(__x86_64__)
  switch (isa) {
    case Isa::avx512:
      return is_supported(Isa::avx2) && __builtin_cpu_supports("avx512f") &&
             __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
             __builtin_cpu_supports("avx512bw");
    case Isa::avx2:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
             __builtin_cpu_supports("bmi2");
    case Isa::baseline: break;
  }
#endif
  return isa == Isa::baseline;
}

Isa active_isa() {
  static const Isa chosen = choose_isa();
  return chosen;
}

}  // namespace thalweg::cpu

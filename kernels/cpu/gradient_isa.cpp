// gradient_isa.cpp: inner loops of g times a derivative, compiled once per instruction set.
#include "kernels/cpu/float32_functions.h"

namespace thalweg::cpu::THALWEG_ISA {
namespace {

struct DoubleExp {
  using Lanes = Float64Lanes;
  static THALWEG_HD Doubles apply(Doubles x) { return THALWEG_SLEEF_F64(exp, u10)(x); }
};

/// g s (1 + x (1 - s)) with s = sigmoid(x).
template <class Exp>
struct SiluGradientOf {
  using Lanes = typename Exp::Lanes;
  using Vector = typename Lanes::Vector;
  static THALWEG_HD Vector apply(Vector g, Vector x) {
    const Vector zero = Lanes::splat(0);
    const Vector one = Lanes::splat(1);
    const Vector most = Lanes::splat(1e4f);  // infinity times 0 would be nan
    const Vector above = x < -most ? -most : x;
    const Vector bounded = above > most ? most : above;
    const Vector small = Exp::apply(bounded < zero ? bounded : -bounded);
    const Vector larger = one / (one + small);
    const Vector smaller = small / (one + small);
    const Vector s = bounded < zero ? smaller : larger;
    const Vector rest = bounded < zero ? larger : smaller;
    return g * (s * (one + bounded * rest));
  }
};

/// g (F(x) + x f(x)) with the normal distribution's F and f. At -|x| that is exp(-x^2 / 2) (P - |x| / sqrt(2
/// pi)) with FloatGelu's P, and 1 less it at |x|.
struct FloatGeluGradient {
  using Lanes = Float32Lanes;
  static THALWEG_HD Floats apply(Floats g, Floats x) {
    const Floats largest = floats(18);  // 0 or 1 from here on
    const Floats size = size_of(x);
    const Floats bounded = size > largest ? largest : size;
    const Floats factor = FloatGelu::tail_factor(bounded) - bounded * floats(0.39894228f);
    const Floats part = times_exp2(factor, -(bounded * bounded * floats(0.72134752f)));
    return g * unless_nan(x, x < floats(0) ? part : floats(1) - part);
  }
};
struct DoubleGeluGradient {
  using Lanes = Float64Lanes;
  static THALWEG_HD Doubles apply(Doubles g, Doubles x) {
    const Doubles most = Lanes::splat(60);  // infinity times 0 would be nan
    const Doubles above = x < -most ? -most : x;
    const Doubles bounded = above > most ? most : above;
    const Doubles below =
        Lanes::splat(0.5) * THALWEG_SLEEF_F64(erfc, u15)(bounded * Lanes::splat(-0.70710678118654752));
    const Doubles bell = DoubleExp::apply(bounded * bounded * Lanes::splat(-0.5));
    return g * (below + bounded * bell * Lanes::splat(0.3989422804014327));
  }
};

}  // namespace

void fill_gradients(ElementwiseTable& table) {
  Loop* silu = table.binary[static_cast<int>(BinaryFn::silu_gradient)];
  silu[kLoopIndex<float>] = vector_binary_loop<SiluGradientOf<FloatExp>>;
  silu[kLoopIndex<double>] = vector_binary_loop<SiluGradientOf<DoubleExp>>;
  Loop* gelu = table.binary[static_cast<int>(BinaryFn::gelu_gradient)];
  gelu[kLoopIndex<float>] = vector_binary_loop<FloatGeluGradient>;
  gelu[kLoopIndex<double>] = vector_binary_loop<DoubleGeluGradient>;
}

}  // namespace thalweg::cpu::THALWEG_ISA

// derivative.h: what the families' derivatives share.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include <thalweg/gradient.h>
#include <thalweg/op.h>

namespace thalweg {

/// The derivative of one Op: what its record says of it.
struct Derivative {
  const char* name;
  void (*gradient)(GradientContext&);
  std::vector<SavedValue> saves{};
};

inline void set_derivative(Op& op, void (*gradient)(GradientContext&), std::vector<SavedValue> saves = {}) {
  op.gradient = gradient;
  op.saves = std::move(saves);
}

/// elementwise_gradient.cpp: the derivative of a function of elementwise.cpp, or that it has none.
void set_elementwise_derivative(Op& op);
/// reduction_gradient.cpp
void set_reduction_derivative(Op& op);
/// normalization_gradient.cpp
void set_normalization_derivative(Op& op);
/// linear_algebra_gradient.cpp
void matmul_gradient(GradientContext& ctx);
/// manipulation_gradient.cpp
void set_manipulation_derivative(Op& op);
/// indexing_gradient.cpp: the Ops of indexing.cpp, selection.cpp and sorting.cpp
void set_indexing_derivative(Op& op);

/// The derivatives of `table` for the Op of that name; none is left as it is.
template <class Table>
void set_from(const Table& table, Op& op) {
  for (const Derivative& each : table) {
    if (op.name == each.name) return set_derivative(op, each.gradient, each.saves);
  }
}

/// `x` with its last two axes swapped, conjugated: the adjoint of matrices.
Tensor adjoint(const GradientContext& ctx, const Tensor& x);

}  // namespace thalweg

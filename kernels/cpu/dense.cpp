// dense.cpp: picks the inner loops over contiguous elements for the processor.
#include "kernels/cpu/dense_table.h"
#include "kernels/cpu/isa.h"

namespace thalweg::cpu {

THALWEG_DECLARE_PER_ISA(fill_dense, DenseTable)

const DenseTable& dense_table() {
  static const DenseTable table = [] {
    DenseTable fresh{};
    fill_dense(active_isa(), fresh);
    return fresh;
  }();
  return table;
}

}  // namespace thalweg::cpu

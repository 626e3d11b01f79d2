// select.cpp: picks the loops that find elements for the processor.
#include "kernels/cpu/isa.h"
#include "kernels/cpu/select_table.h"

namespace thalweg::cpu {

THALWEG_DECLARE_PER_ISA(fill_select, SelectTable)

const SelectTable& select_table() {
  static const SelectTable table = [] {
    SelectTable fresh{};
    fill_select(active_isa(), fresh);
    return fresh;
  }();
  return table;
}

}  // namespace thalweg::cpu

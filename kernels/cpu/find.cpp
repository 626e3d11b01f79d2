// find.cpp: picks the loops that find elements for the processor.
#include "kernels/cpu/find_table.h"
#include "kernels/cpu/isa.h"

namespace thalweg::cpu {

THALWEG_DECLARE_PER_ISA(fill_find, FindTable)

const FindTable& find_table() {
  static const FindTable table = [] {
    FindTable fresh{};
    fill_find(active_isa(), fresh);
    return fresh;
  }();
  return table;
}

}  // namespace thalweg::cpu

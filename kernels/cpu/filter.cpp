// filter.cpp: picks the loops that find elements for the processor.
#include "kernels/cpu/filter_table.h"
#include "kernels/cpu/isa.h"

namespace thalweg::cpu {

THALWEG_DECLARE_PER_ISA(fill_filter, FilterTable)

const FilterTable& filter_table() {
  static const FilterTable table = [] {
    FilterTable fresh{};
    fill_filter(active_isa(), fresh);
    return fresh;
  }();
  return table;
}

}  // namespace thalweg::cpu

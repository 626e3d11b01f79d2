// line_latency.cpp: prints the nanoseconds in which a cache line goes from one core to another.
#include <cstdio>

#include "harness.h"

int main() {
  std::printf("%.1f\n", bench::line_latency_ns());
  return 0;
}

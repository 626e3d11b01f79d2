// assert.h: THALWEG_ASSERT for the library's own mistakes; users' mistakes throw.
#pragma once

#ifndef NDEBUG
#include <cstdio>
#include <cstdlib>
#define THALWEG_ASSERT(condition, why)                                                                   \
  do {                                                                                                   \
    if (!(condition)) {                                                                                  \
      std::fprintf(stderr, "%s:%d: thalweg assertion failed: %s (%s)\n", __FILE__, __LINE__, #condition, \
                   why);                                                                                 \
      std::abort();                                                                                      \
    }                                                                                                    \
  } while (false)
#else
#define THALWEG_ASSERT(condition, why) static_cast<void>(sizeof(!(condition)))
#endif

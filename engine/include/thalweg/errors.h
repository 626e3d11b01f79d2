// errors.h: the exceptions users see. Text is led by the operator's name and shows the values and the fix.
#pragma once

#include <stdexcept>
#include <string>

namespace thalweg {

/// Base of every error the library raises.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& text) : std::runtime_error(text) {}

  /// Throws an error of the same type whose text is `before` + this text + `after`.
  [[noreturn]] virtual void rethrow_with(const std::string& before, const std::string& after = {}) const {
    throw Error(before + what() + after);
  }
};

#define THALWEG_DEFINE_ERROR(Name, python_type)                                    \
  /** Becomes thalweg.Name, a subclass of Python's python_type. */                 \
  class Name : public Error {                                                      \
   public:                                                                         \
    explicit Name(const std::string& text) : Error(text) {}                        \
    [[noreturn]] void rethrow_with(const std::string& before,                      \
                                   const std::string& after = {}) const override { \
      throw Name(before + what() + after);                                         \
    }                                                                              \
  };

THALWEG_DEFINE_ERROR(ShapeError, ValueError)
THALWEG_DEFINE_ERROR(DTypeError, TypeError)
THALWEG_DEFINE_ERROR(IndexError, IndexError)
THALWEG_DEFINE_ERROR(DeviceError, ValueError)
THALWEG_DEFINE_ERROR(AttributeError, TypeError)
THALWEG_DEFINE_ERROR(ValueError, ValueError)
THALWEG_DEFINE_ERROR(OutOfMemoryError, MemoryError)
THALWEG_DEFINE_ERROR(EngineError, RuntimeError)
THALWEG_DEFINE_ERROR(KernelError, RuntimeError)
THALWEG_DEFINE_ERROR(LinAlgError, ValueError)

#undef THALWEG_DEFINE_ERROR

/// A wait was given up because the interrupt check asked for it (Ctrl-C in Python).
class Interrupted : public Error {
 public:
  Interrupted() : Error("interrupted") {}
};

}  // namespace thalweg

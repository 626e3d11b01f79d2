// matrix_batch.h: what kernels over stacks of matrices share: copies from and into any layout, and a loop
// over the matrices that gives each thread memory of its own and reports the first failure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include <thalweg/kernel.h>

#include "kernels/cpu/lapack.h"
#include "kernels/cpu/loop_nest.h"
#include "kernels/cpu/scratch.h"

namespace thalweg::cpu {

/// A matrix in any layout; strides count elements.
template <class T>
struct Matrix {
  T* data;
  std::int64_t rows, columns;
  std::int64_t row_stride, column_stride;

  Matrix transposed() const noexcept { return {data, columns, rows, column_stride, row_stride}; }
};

template <class T>
Matrix<T> row_major(T* data, std::int64_t rows, std::int64_t columns) noexcept {
  return {data, rows, columns, columns, 1};
}

template <class T>
Matrix<T> column_major(T* data, std::int64_t rows, std::int64_t columns) noexcept {
  return {data, rows, columns, 1, rows};
}

/// `to` becomes `convert(element)` of `from`, in blocks that stay in the cache when one is transposed. An
/// element may be copied onto itself.
template <class T, class Convert>
void copy_matrix(const Matrix<const T>& from, const Matrix<T>& to, Convert convert) noexcept {
  constexpr std::int64_t block = 32;
  // The inner loop goes along the stride of `to` that is 1.
  if (to.column_stride != 1 && to.row_stride == 1) {
    return copy_matrix(from.transposed(), to.transposed(), convert);
  }
  if (from.column_stride == 1 && to.column_stride == 1) {
    for (std::int64_t row = 0; row < to.rows; ++row) {
      const T* in = from.data + row * from.row_stride;
      std::transform(in, in + to.columns, to.data + row * to.row_stride, convert);
    }
    return;
  }
  for (std::int64_t column = 0; column < to.columns; column += block) {
    const std::int64_t count = std::min(block, to.columns - column);
    for (std::int64_t row = 0; row < to.rows; ++row) {
      const T* in = from.data + row * from.row_stride + column * from.column_stride;
      T* out = to.data + row * to.row_stride + column * to.column_stride;
      for (std::int64_t i = 0; i < count; ++i) {
        out[i * to.column_stride] = convert(in[i * from.column_stride]);
      }
    }
  }
}

template <class T>
void copy_matrix(const Matrix<const T>& from, const Matrix<T>& to) noexcept {
  copy_matrix(from, to, [](const T& x) { return x; });
}

/// The identity, also where the matrix is not square.
template <class T>
void fill_identity(const Matrix<T>& matrix) noexcept {
  for (std::int64_t i = 0; i < matrix.rows; ++i) {
    for (std::int64_t j = 0; j < matrix.columns; ++j) {
      matrix.data[i * matrix.row_stride + j * matrix.column_stride] = T(i == j ? 1 : 0);
    }
  }
}

/// The axes of a stack of matrices in front of the last two.
inline Shape batch_of(const Shape& shape) {
  return Shape(std::span<const std::int64_t>(shape.data(), shape.size() - 2));
}

/// The matrices in the last two axes of an input, one after the other.
template <class T>
class MatrixBatch {
 public:
  explicit MatrixBatch(const TensorView& view) : MatrixBatch(view, batch_of(view.shape())) {}
  /// The stack broadcast to the axes `batch`.
  MatrixBatch(const TensorView& view, const Shape& batch) {
    const Shape& shape = view.shape();
    const Strides& strides = view.strides();
    const std::size_t rank = shape.size();
    const Strides outer = broadcast_strides(
        batch_of(shape), Strides(std::span<const std::int64_t>(strides.data(), rank - 2)), batch);
    for (std::size_t axis = 0; axis < batch.size(); ++axis) starts_.add(batch[axis], {outer[axis]});
    first_ = {view.as<const T>(), shape[rank - 2], shape[rank - 1], strides[rank - 2], strides[rank - 1]};
  }

  std::int64_t count() const noexcept { return starts_.total(); }
  std::int64_t rows() const noexcept { return first_.rows; }
  std::int64_t columns() const noexcept { return first_.columns; }
  Matrix<const T> operator[](std::int64_t index) const noexcept {
    Matrix<const T> matrix = first_;
    matrix.data += starts_.offsets(index)[0];
    return matrix;
  }

 private:
  LoopNest<1> starts_;
  Matrix<const T> first_;
};

/// Bytes that `Room::take` of `count` elements uses up.
template <class T>
constexpr std::int64_t room_for(std::int64_t count) noexcept {
  return (count * static_cast<std::int64_t>(sizeof(T)) + 63) / 64 * 64;
}

template <class T>
std::int64_t room_for(const WorkSize& size) noexcept {
  return room_for<T>(size.work) + room_for<typename RealPart<T>::Type>(size.real) +
         room_for<std::int64_t>(size.integers);
}

/// Bytes to keep at the end of a room in which LAPACK works on complex matrices of up to `size` rows and
/// columns: OpenBLAS's gemv reads (and ignores) the element that would follow the last one of a strided
/// vector (its issue 5000), so up to a column behind a matrix or workspace.
template <class T>
constexpr std::int64_t margin_for(std::int64_t size) noexcept {
  return functors::kIsComplex<T> ? room_for<T>(size) : 0;
}

/// The memory of one thread, handed out piece by piece. A copy begins anew where the original was.
class Room {
 public:
  explicit Room(std::byte* data) : next_(data) {}

  template <class T>
  T* take(std::int64_t count) noexcept {
    T* taken = reinterpret_cast<T*>(next_);
    next_ += room_for<T>(count);
    return taken;
  }
  template <class T>
  Work<T> take_work(const WorkSize& size) noexcept {
    T* work = take<T>(size.work);
    auto* real = take<typename RealPart<T>::Type>(size.real);
    return {size, work, real, take<std::int64_t>(size.integers)};
  }

 private:
  std::byte* next_;
};

/// The matrix that failed and what the body said of it.
struct MatrixFailure {
  std::int64_t index;
  std::int64_t info;
};

/// Calls `body(index, room)` for each of `count` matrices, several to a chunk where they are small. `bytes`:
/// what the body takes from its room. It returns 0 or a number that says what failed, and must not throw.
/// Returns the failure of the smallest index, whatever the threads did. Throws std::bad_alloc.
template <class Body>
std::optional<MatrixFailure> for_each_matrix(const KernelContext& ctx, std::int64_t count, std::int64_t bytes,
                                             Body&& body) {
  constexpr double chunk_ns = 20000;
  constexpr std::int64_t most_chunks = 128;
  std::vector<const TensorMeta*> inputs;
  std::vector<const TensorMeta*> outputs;
  for (const TensorView& view : ctx.inputs()) inputs.push_back(view.meta);
  for (const TensorView& view : ctx.outputs()) outputs.push_back(view.meta);
  const double total_ns = std::min(ctx.op().cost_ns(inputs, outputs), chunk_ns * most_chunks);
  const auto wanted = std::max<std::int64_t>(1, static_cast<std::int64_t>(total_ns / chunk_ns));
  const std::int64_t group = std::max<std::int64_t>(1, ceil_div(count, wanted));
  constexpr std::int64_t no_memory = -1;
  std::vector<std::optional<MatrixFailure>> failures(static_cast<std::size_t>(ceil_div(count, group)));
  ctx.parallel_for(ceil_div(count, group), [&](std::int64_t chunk) {
    std::optional<MatrixFailure>& failure = failures[static_cast<std::size_t>(chunk)];
    try {
      const Scratch<std::byte> memory(bytes);
      const std::int64_t end = std::min(count, (chunk + 1) * group);
      for (std::int64_t index = chunk * group; index < end && !failure; ++index) {
        const std::int64_t info = body(index, Room(memory.get()));
        if (info != 0) failure = MatrixFailure{index, info};
      }
    } catch (const std::bad_alloc&) {
      failure = MatrixFailure{no_memory, 0};
    }
  });
  std::optional<MatrixFailure> first;
  for (const std::optional<MatrixFailure>& failure : failures) {
    if (failure && failure->index == no_memory) throw std::bad_alloc();
    if (failure && !first) first = failure;
  }
  return first;
}

/// "the matrix", or "the matrix at batch index (1, 0)" of a stack with axes `batch`.
inline std::string matrix_text(const Shape& batch, std::int64_t index) {
  if (batch.empty()) return "the matrix";
  Dims position = batch;
  for (std::size_t axis = batch.size(); axis-- > 0;) {
    position[axis] = index % batch[axis];
    index /= batch[axis];
  }
  return "the matrix at batch index " + to_string(position);
}

/// Calls `fn.template operator()<T>()` with the element type of an inexact dtype.
template <class Fn>
decltype(auto) visit_inexact(DType dtype, Fn&& fn) {
  if (dtype == DType::float32) return fn.template operator()<float>();
  if (dtype == DType::float64) return fn.template operator()<double>();
  if (dtype == DType::complex64) return fn.template operator()<functors::Complex<float>>();
  return fn.template operator()<functors::Complex<double>>();
}

inline float conjugate(float x) noexcept { return x; }
inline double conjugate(double x) noexcept { return x; }
template <class T>
functors::Complex<T> conjugate(functors::Complex<T> x) noexcept {
  return {x.real, -x.imag};
}

}  // namespace thalweg::cpu

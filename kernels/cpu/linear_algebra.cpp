// linear_algebra.cpp: the kernel of matmul: OpenBLAS and oneDNN for floating and complex dtypes, plain loops
// for the others, split by size.
#include <algorithm>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include <thalweg/kernel.h>

#include "kernels/cpu/blas.h"
#include "kernels/cpu/dense_table.h"
#include "kernels/cpu/half.h"
#include "kernels/cpu/nd_copy.h"
#include "kernels/cpu/register.h"
#include "kernels/cpu/rings.h"

namespace thalweg::cpu {
namespace {

// A large product is computed in tiles of the result. Libraries round differently at edges, so tiles must
// depend on the shape alone. An even number of them goes down, for two threads to
// get equal shares.
constexpr std::int64_t kTileRows = 256;
constexpr std::int64_t kTileColumns = 1024;
std::int64_t tile_rows_of(std::int64_t rows) noexcept {
  if (rows <= kTileRows) return kTileRows;
  constexpr std::int64_t kStep = 16;  // rows that OpenBLAS's kernels take at a time
  const std::int64_t tiles = ceil_div(ceil_div(rows, kTileRows), 2) * 2;
  return ceil_div(ceil_div(rows, tiles), kStep) * kStep;
}
/// Elements of the matrix that one chunk of a matrix-vector product reads, at least.
constexpr std::int64_t kVectorTile = 65536;
/// Multiply-adds of a chunk, at least: some 20 µs.
constexpr std::int64_t kChunkWork = std::int64_t{1} << 20;
/// Products of so few multiply-adds take less time than a BLAS call costs.
template <class T>
constexpr std::int64_t kSmallWork = std::is_floating_point_v<T> ? 16 * 16 * 16 : 8 * 8 * 8;

/// A stack of matrices as they lie in memory.
template <class T>
struct MatrixStack {
  const T* data;
  Shape batch;
  Strides batch_strides;
  std::int64_t rows, columns;
  std::int64_t row_stride, column_stride;
  std::vector<T> packed{};
};

/// Operand `view` with its last two axes as a matrix; a 1-D one is a row or a column.
enum class VectorIs { row, column };

template <class T>
MatrixStack<T> matrix_stack(const TensorView& view, VectorIs vector) {
  const Shape& shape = view.shape();
  const Strides& strides = view.strides();
  const std::size_t rank = shape.size();
  const T* data = view.as<const T>();
  if (rank == 1 && vector == VectorIs::row) return {data, {}, {}, 1, shape[0], 0, strides[0]};
  if (rank == 1) return {data, {}, {}, shape[0], 1, strides[0], 0};
  return {data,
          Shape(std::span<const std::int64_t>(shape.data(), rank - 2)),
          Strides(std::span<const std::int64_t>(strides.data(), rank - 2)),
          shape[rank - 2],
          shape[rank - 1],
          strides[rank - 2],
          strides[rank - 1]};
}

/// True if the matrix can be read row by row: what BLAS calls not transposed.
template <class T>
bool is_row_major(const MatrixStack<T>& a) noexcept {
  return (a.columns <= 1 || a.column_stride == 1) &&
         (a.rows <= 1 || a.row_stride >= std::max<std::int64_t>(1, a.columns));
}

template <class T>
bool is_column_major(const MatrixStack<T>& a) noexcept {
  return (a.rows <= 1 || a.row_stride == 1) &&
         (a.columns <= 1 || a.column_stride >= std::max<std::int64_t>(1, a.rows));
}

/// True for a single row or column that gemv can read as it lies: elements a positive distance apart. Complex
/// ones are packed: gemv of OpenBLAS reads (and ignores) the element that would follow the last one (its
/// issue 5000).
template <class T>
bool is_vector(const MatrixStack<T>& a) noexcept {
  if (functors::kIsComplex<T>) return false;
  if (a.rows == 1) return a.columns == 1 || a.column_stride > 0;
  return a.columns == 1 && a.row_stride > 0;
}

/// Copies the stack into scratch in C order. Broadcast batch axes are copied once.
template <class T>
void pack(const KernelContext& ctx, MatrixStack<T>* a) {
  Shape shape = a->batch;
  Strides strides = a->batch_strides;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (strides[axis] == 0) shape[axis] = 1;
  }
  for (auto [size, stride] : {std::pair(a->rows, a->row_stride), std::pair(a->columns, a->column_stride)}) {
    shape.push_back(size);
    strides.push_back(stride);
  }
  const Strides dense = contiguous_strides(shape);
  a->packed.resize(static_cast<std::size_t>(numel(shape) + (functors::kIsComplex<T> ? 1 : 0)));
  copy_all(ctx, copy_nest(shape, strides, dense), a->data, a->packed.data(), sizeof(T));
  for (std::size_t axis = 0; axis < a->batch.size(); ++axis) {
    if (a->batch_strides[axis] != 0) a->batch_strides[axis] = dense[axis];
  }
  a->data = a->packed.data();
  a->row_stride = a->columns;
  a->column_stride = 1;
}

/// A batch of products (m, k) x (k, n) with a contiguous result.
template <class T>
struct Product {
  MatrixStack<T> a;
  MatrixStack<T> b;
  T* result;
  std::int64_t m, n, k;
  LoopNest<3> batches;  ///< operands: a, b, result
};

template <class T>
void set_batches(const KernelContext& ctx, Product<T>* product) {
  const Shape batch =
      ctx.op().name.empty() ? Shape{} : broadcast_shapes(ctx.op().name, product->a.batch, product->b.batch);
  const Strides a = broadcast_strides(product->a.batch, product->a.batch_strides, batch);
  const Strides b = broadcast_strides(product->b.batch, product->b.batch_strides, batch);
  Strides result = contiguous_strides(batch);
  product->batches = {};
  for (std::size_t axis = 0; axis < batch.size(); ++axis) {
    product->batches.add(batch[axis], {a[axis], b[axis], result[axis] * product->m * product->n});
  }
}

/// Many matrices times one are one tall matrix, where the rows of all follow each other evenly.
template <class T>
void merge_batch_into_rows(Product<T>* product) {
  if (product->batches.total() == 1 || numel(product->b.batch) != 1) return;
  LoopNest<1> rows;
  for (std::size_t axis = 0; axis < product->a.batch.size(); ++axis) {
    rows.add(product->a.batch[axis], {product->a.batch_strides[axis]});
  }
  rows.add(product->m, {product->a.row_stride});
  if (rows.rank() > 1) return;
  product->m = product->a.rows = rows.total();
  product->a.row_stride = rows.inner_stride(0);
  product->a.batch.clear();
  product->a.batch_strides.clear();
  product->batches = {};
}

/// One tile of one result.
struct Tile {
  std::int64_t row, rows;
  std::int64_t column, columns;
};

/// Calls `compute(a, b, result, tile)` for every tile of every product, cheap ones several to a chunk.
template <class T, class Compute>
void for_each_tile(const KernelContext& ctx, const Product<T>& product, std::int64_t tile_rows,
                   std::int64_t tile_columns, Compute compute) {
  tile_rows = std::min(tile_rows, product.m);
  tile_columns = std::min(tile_columns, product.n);
  const std::int64_t down = ceil_div(product.m, tile_rows);
  const std::int64_t across = ceil_div(product.n, tile_columns);
  const std::int64_t units = product.batches.total() * down * across;
  const double work =
      static_cast<double>(tile_rows) * static_cast<double>(tile_columns) * static_cast<double>(product.k);
  const auto group =
      std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<double>(kChunkWork) / work));
  ctx.parallel_for(ceil_div(units, group), [&](std::int64_t chunk) {
    const std::int64_t end = std::min(units, (chunk + 1) * group);
    for (std::int64_t unit = chunk * group; unit < end; ++unit) {
      const auto at = product.batches.offsets(unit / (down * across));
      const std::int64_t row = unit / across % down * tile_rows;
      const std::int64_t column = unit % across * tile_columns;
      compute(product.a.data + at[0], product.b.data + at[1], product.result + at[2],
              Tile{row, std::min(tile_rows, product.m - row), column,
                   std::min(tile_columns, product.n - column)});
    }
  });
}

/// A product of few rows is cut across, into tiles of some 120 µs.
template <class T>
std::int64_t tile_columns_of(const Product<T>& product) noexcept {
  constexpr double kTileWork = 8 << 20;  // multiply-adds
  constexpr std::int64_t kStep = 128;
  const double work =
      static_cast<double>(product.m) * static_cast<double>(product.n) * static_cast<double>(product.k);
  if (product.m > kTileRows || product.batches.total() > 1 || work <= 2 * kTileWork) return kTileColumns;
  const auto tiles = static_cast<std::int64_t>(work / (2 * kTileWork)) * 2;
  const std::int64_t columns = ceil_div(ceil_div(product.n, tiles), kStep) * kStep;
  return std::min(columns, kTileColumns);
}

/// The product by plain loops over any strides; blocks of b stay in the cache.
template <class Ring, class T>
void multiply_by_loops(const KernelContext& ctx, const Product<T>& product) {
  constexpr std::int64_t block = 64;
  const std::int64_t n = product.n;
  for_each_tile(ctx, product, 32, 512, [&](const T* a, const T* b, T* result, Tile tile) {
    for (std::int64_t row = tile.row; row < tile.row + tile.rows; ++row) {
      std::fill_n(result + row * n + tile.column, tile.columns, T(0));
    }
    for (std::int64_t k0 = 0; k0 < product.k; k0 += block) {
      const std::int64_t k1 = std::min(product.k, k0 + block);
      for (std::int64_t row = tile.row; row < tile.row + tile.rows; ++row) {
        T* out = result + row * n + tile.column;
        for (std::int64_t k = k0; k < k1; ++k) {
          const T factor = a[row * product.a.row_stride + k * product.a.column_stride];
          const T* in = b + k * product.b.row_stride + tile.column * product.b.column_stride;
          if (product.b.column_stride == 1) {
            Ring::apply_row(out, in, factor, tile.columns);
          } else {
            for (std::int64_t j = 0; j < tile.columns; ++j) {
              out[j] = Ring::apply(out[j], factor, in[j * product.b.column_stride]);
            }
          }
        }
      }
    }
  });
}

/// Part of a matrix as BLAS reads it; `matrix` is row- or column-major.
template <class T>
BlasMatrix<T> blas_matrix(const MatrixStack<T>& matrix, const T* data, std::int64_t row,
                          std::int64_t column) noexcept {
  const T* start = data + row * matrix.row_stride + column * matrix.column_stride;
  if (is_row_major(matrix)) {
    return {start, matrix.rows <= 1 ? std::max<std::int64_t>(1, matrix.columns) : matrix.row_stride, false};
  }
  return {start, matrix.columns <= 1 ? std::max<std::int64_t>(1, matrix.rows) : matrix.column_stride, true};
}

template <class T>
void multiply_matrices(const KernelContext& ctx, const Product<T>& product) {
  for_each_tile(ctx, product, tile_rows_of(product.m), tile_columns_of(product),
                [&](const T* a, const T* b, T* result, Tile tile) {
                  gemm({tile.rows, tile.columns, product.k}, blas_matrix(product.a, a, tile.row, 0),
                       blas_matrix(product.b, b, 0, tile.column), result + tile.row * product.n + tile.column,
                       product.n);
                });
}

/// A matrix times a column.
template <class T>
void multiply_column(const KernelContext& ctx, const Product<T>& product) {
  const std::int64_t rows = std::max<std::int64_t>(64, kVectorTile / product.k);
  for_each_tile(ctx, product, rows, 1, [&](const T* a, const T* b, T* result, Tile tile) {
    gemv(tile.rows, product.k, blas_matrix(product.a, a, tile.row, 0),
         {b, product.k == 1 ? 1 : product.b.row_stride}, result + tile.row);
  });
}

/// A row times a matrix: the transposed matrix times a column.
template <class T>
void multiply_row(const KernelContext& ctx, const Product<T>& product) {
  const std::int64_t columns = std::max<std::int64_t>(64, kVectorTile / product.k);
  for_each_tile(ctx, product, 1, columns, [&](const T* a, const T* b, T* result, Tile tile) {
    BlasMatrix<T> transposed = blas_matrix(product.b, b, 0, tile.column);
    transposed.transposed = !transposed.transposed;
    gemv(tile.columns, product.k, transposed, {a, product.k == 1 ? 1 : product.a.column_stride},
         result + tile.column);
  });
}

template <class T>
bool fits_blas(const Product<T>& product) noexcept {
  constexpr std::int64_t limit = std::numeric_limits<int>::max();
  auto fits = [](const MatrixStack<T>& a) {
    return std::abs(a.row_stride) <= limit && std::abs(a.column_stride) <= limit;
  };
  return product.n <= limit && product.k <= limit && product.m <= limit && fits(product.a) && fits(product.b);
}

template <class T>
void multiply_small(const KernelContext& ctx, Product<T>* product) {
  if (product->n > 1 && product->b.column_stride != 1) {
    pack(ctx, &product->b);
    set_batches(ctx, product);
  }
  const auto loop = [] {
    if constexpr (std::is_same_v<T, float>) return dense_table().small_product_float;
    if constexpr (std::is_same_v<T, double>) return dense_table().small_product_double;
  }();
  for_each_tile(ctx, *product, product->m, product->n, [&](const T* a, const T* b, T* result, Tile) {
    loop({a, b, result, product->m, product->n, product->k, product->a.row_stride, product->a.column_stride,
          product->b.row_stride});
  });
}

template <class T>
bool is_small(const Product<T>& product) noexcept {
  constexpr std::int64_t most = kSmallWork<T>;
  return product.m <= most && product.n <= most && product.k <= most && product.m * product.n <= most &&
         product.m * product.n * product.k <= most;
}

template <class T>
void multiply_by_blas(const KernelContext& ctx, Product<T>* product) {
  if (is_small(*product)) {
    if constexpr (std::is_floating_point_v<T>) return multiply_small(ctx, product);
    return multiply_by_loops<PlusTimes<T>>(ctx, *product);
  }
  if (!fits_blas(*product)) return multiply_by_loops<PlusTimes<T>>(ctx, *product);
  load_blas(ctx.op().name);
  const bool column = product->n == 1;
  const bool row = !column && product->m == 1;
  auto ready = [](const MatrixStack<T>& a, bool vector) {
    return vector ? is_vector(a) : is_row_major(a) || is_column_major(a);
  };
  if (!ready(product->a, row)) pack(ctx, &product->a);
  if (!ready(product->b, column)) pack(ctx, &product->b);
  set_batches(ctx, product);
  if (column) return multiply_column(ctx, *product);
  if (row) return multiply_row(ctx, *product);
  multiply_matrices(ctx, *product);
}

template <class T, class Ring>
void run_matmul(const KernelContext& ctx) {
  Product<T> product{matrix_stack<T>(ctx.input(0), VectorIs::row),
                     matrix_stack<T>(ctx.input(1), VectorIs::column),
                     ctx.output().as<T>(),
                     0,
                     0,
                     0,
                     {}};
  product.m = product.a.rows;
  product.n = product.b.columns;
  product.k = product.a.columns;
  if (product.k == 0) {
    std::fill_n(product.result, ctx.output().numel(), T(0));
    return;
  }
  set_batches(ctx, &product);
  merge_batch_into_rows(&product);
  if constexpr (std::is_floating_point_v<T> || functors::kIsComplex<T>) {
    multiply_by_blas(ctx, &product);
  } else {
    multiply_by_loops<Ring>(ctx, product);
  }
}

void matmul_kernel(const KernelContext& ctx) {
  if (ctx.output().numel() == 0) return;
  visit_ring(ctx.output().dtype(), [&]<class T, class Ring>() { run_matmul<T, Ring>(ctx); });
}

}  // namespace

void register_linear_algebra_kernels(KernelRegistry& registry) {
  registry.add("matmul", DeviceType::cpu, in_float32(matmul_kernel));
}

}  // namespace thalweg::cpu
